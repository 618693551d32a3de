// Any bytes: the tile IR reader ends with a kernel or a located error. What it reads prints to text that reads again
// and prints the same, and the verifier does not crash on it.
#include "gemmc/Tile/IR.h"
#include "llvm/Support/ErrorHandling.h"

using namespace gemmc;

static std::string roundTrip(llvm::StringRef text) {
  Diags diags;
  auto kernel = tile::parse(diags.addSource("again.tile", text), diags);
  if (!kernel)
    llvm::report_fatal_error("printed tile IR is not read back");
  return tile::print(*kernel);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Diags diags;
  llvm::StringRef text = diags.addSource("fuzz.tile", {reinterpret_cast<const char *>(data), size});
  auto kernel = tile::parse(text, diags);
  if (!kernel) {
    if (!diags.hasErrors())
      llvm::report_fatal_error("no kernel and no error");
    return 0;
  }
  std::string once = tile::print(*kernel);
  if (roundTrip(once) != once)
    llvm::report_fatal_error("printing is not stable");
  tile::verify(*kernel, diags);
  return 0;
}
