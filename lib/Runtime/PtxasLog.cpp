// What `ptxas -v` prints, for each kernel:
//
//   ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
//   ptxas info    : Function properties for gemm
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 168 registers, used 2 barriers, 384 bytes smem
//
// and advice that costs speed, such as `(C7510) Potential Performance Loss: wgmma.mma_async instructions are
// serialized`.
#include "gemmc/Runtime/Ptxas.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace gemmc {
namespace {
/// The number in front of `unit` ("168 registers"), 0 when the line has no such part.
unsigned numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t at = line.find(unit);
  if (at == llvm::StringRef::npos)
    return 0;
  llvm::StringRef number = line.take_front(at).rtrim();
  number = number.take_back(number.size() - (number.find_last_not_of("0123456789") + 1));
  unsigned value = 0;
  number.getAsInteger(10, value);
  return value;
}

PtxasKernel &kernelNamed(PtxasReport &report, llvm::StringRef name) {
  auto found = llvm::find_if(report.kernels, [&](const PtxasKernel &kernel) { return kernel.name == name; });
  if (found != report.kernels.end())
    return *found;
  report.kernels.push_back(PtxasKernel{name.str()});
  return report.kernels.back();
}

/// `(C7510)` anywhere in the line.
bool isAdvisory(llvm::StringRef line) {
  size_t at = line.find("(C75");
  return at != llvm::StringRef::npos && line.drop_front(at + 4).find(')') == 2;
}
} // namespace

bool PtxasReport::spills() const {
  return llvm::any_of(kernels, [](const PtxasKernel &k) { return k.spillStoreBytes || k.spillLoadBytes; });
}

PtxasReport parsePtxasLog(llvm::StringRef log) {
  PtxasReport report;
  report.log = log.str();
  std::string current; // of the last line that named one
  llvm::SmallVector<llvm::StringRef, 32> lines;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    if (isAdvisory(line)) {
      report.advisories.push_back(line.trim().str());
      continue;
    }
    if (line.contains("warning")) {
      report.warnings.push_back(line.trim().str());
      continue;
    }
    auto [before, name] = line.split("Compiling entry function '");
    if (!name.empty()) {
      current = name.split('\'').first.str();
      kernelNamed(report, current);
    }
    if (auto [head, function] = line.split("Function properties for "); !function.empty())
      current = function.trim().str();
    if (current.empty())
      continue;
    if (line.contains("bytes stack frame")) {
      PtxasKernel &kernel = kernelNamed(report, current);
      kernel.stackBytes = numberBefore(line, "bytes stack frame");
      kernel.spillStoreBytes = numberBefore(line, "bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, "bytes spill loads");
    } else if (line.contains(" registers")) {
      PtxasKernel &kernel = kernelNamed(report, current);
      kernel.registers = numberBefore(line, "registers");
      kernel.barriers = numberBefore(line, "barriers");
      kernel.sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return report;
}

} // namespace gemmc
