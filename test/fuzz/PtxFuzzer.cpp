// Any bytes: the PTX reader ends with a module or a located error. What it reads prints to text that reads again and
// prints the same, and the verifier does not crash on it.
#include "gemmc/PTX/IR.h"
#include "llvm/Support/ErrorHandling.h"

using namespace gemmc;

static std::string roundTrip(llvm::StringRef text) {
  Diags diags;
  auto module = ptx::parse(diags.addSource("again.ptx", text), diags);
  if (!module)
    llvm::report_fatal_error("printed PTX is not read back");
  return ptx::print(*module);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Diags diags;
  llvm::StringRef text = diags.addSource("fuzz.ptx", {reinterpret_cast<const char *>(data), size});
  auto module = ptx::parse(text, diags);
  if (!module) {
    if (!diags.hasErrors())
      llvm::report_fatal_error("no module and no error");
    return 0;
  }
  std::string once = ptx::print(*module);
  if (roundTrip(once) != once)
    llvm::report_fatal_error("printing is not stable");
  ptx::verify(*module, diags, text);
  return 0;
}
