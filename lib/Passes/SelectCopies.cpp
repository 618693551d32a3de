#include "gemmc/Passes/Passes.h"

namespace gemmc::tile {

void selectCopies(Kernel &kernel) {
  llvm::StringRef via = kernel.word("copy");
  walk(kernel.body(), [&](Op &op) {
    if (op.kind != OpKind::Copy)
      return;
    int64_t bytes = kernel.root.item("copy_bytes", op.ref("from").name == "A" ? 0 : 1);
    // cp.async moves 4, 8 or 16 bytes: a smaller unit goes through registers.
    op.set("via", via == "cp_async" && bytes < 4 ? "ld" : via);
    op.set("bytes", bytes);
  });
}
} // namespace gemmc::tile
