#include "FindingText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using llvm::formatv;

namespace gemmc::run {
namespace {
/// Line `number` of a file, when it is a spec of the usual size and speaks of the field.
std::string lineOf(const std::string &file, uint32_t number, llvm::StringRef field) {
  constexpr uint64_t most = 1 << 20;
  uint64_t size = 0;
  if (!llvm::sys::fs::is_regular_file(file) || llvm::sys::fs::file_size(file, size) || size > most)
    return "";
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return "";
  llvm::StringRef rest = (*buffer)->getBuffer();
  for (uint32_t line = 1; line < number; ++line)
    rest = rest.split('\n').second;
  llvm::StringRef text = rest.split('\n').first.trim();
  bool plain = llvm::none_of(text, [](unsigned char c) { return c < ' '; });
  return plain && text.contains(field.rsplit('.').second) ? text.str() : "";
}

llvm::json::Object witnessJson(const emu::Witness &witness) {
  llvm::json::Object one{{"line", witness.line},
                         {"instruction", witness.mnemonic},
                         {"cta", llvm::json::Array{witness.cta[0], witness.cta[1], witness.cta[2]}},
                         {"thread", witness.thread},
                         {"role", witness.role}};
  if (witness.kStep)
    one["k_step"] = int64_t(*witness.kStep);
  return one;
}
} // namespace

SpecPlace specPlaceOf(const emu::Finding &finding, const ptx::LaunchInfo &info) {
  SpecPlace place;
  for (const ptx::KernelInfo &kernel : info.kernels)
    for (const ptx::RegionInfo &region : kernel.memory)
      if (region.name == finding.memory)
        place.field = region.field;
  if (place.field.empty())
    return place;
  place.file = info.spec.file;
  for (const auto &[field, line] : info.spec.lines)
    if (field == place.field)
      place.line = line;
  if (place.line)
    place.text = lineOf(place.file, place.line, place.field);
  return place;
}

std::string SpecPlace::str() const {
  std::string what = text.empty() ? field : text;
  if (line)
    return formatv("{0}:{1}: {2}", file, line, what);
  return file.empty() ? what : formatv("{0}: {1} (not given)", file, what).str();
}

std::string str(const emu::Witness &witness) {
  std::string role = witness.role.empty() ? "" : ", " + witness.role;
  return formatv("ptx:{0}  {1}  CTA ({2}, {3}, {4}), thread {5} (warp {6}{7}){8}", witness.line, witness.mnemonic,
                 witness.cta[0], witness.cta[1], witness.cta[2], witness.thread, witness.thread / 32, role,
                 witness.kStep ? formatv(", k step {0}", *witness.kStep).str() : "");
}

llvm::json::Object toJson(const emu::Finding &finding, const ptx::LaunchInfo &info) {
  llvm::json::Object one = witnessJson(finding);
  one["verdict"] = finding.verdict == emu::Verdict::clean ? "info" : nameOf(finding.verdict);
  one["code"] = finding.code;
  one["message"] = finding.message;
  if (!finding.memory.empty())
    one["memory"] = finding.memory;
  if (finding.stage)
    one["stage"] = *finding.stage;
  if (finding.other.line)
    one["other"] = witnessJson(finding.other);
  SpecPlace place = specPlaceOf(finding, info);
  if (!place.field.empty()) {
    llvm::json::Object spec{{"field", place.field}};
    if (!place.file.empty())
      spec["file"] = place.file;
    if (place.line)
      spec["line"] = place.line;
    one["spec"] = std::move(spec);
  }
  return one;
}

} // namespace gemmc::run
