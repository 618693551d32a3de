#include "gemmc/Layout/SharedTile.h"
#include "gemmc/Passes/Passes.h"

namespace gemmc::tile {

void swizzleShared(Kernel &kernel) {
  llvm::StringRef swizzle = kernel.word("swizzle");
  // ldmatrix reads whole rows; without a swizzle they just lie one behind the other.
  if (kernel.word("instruction") != "wgmma" && swizzle == "none")
    swizzle = "rows";
  auto layoutOf = [&](const Op &op) {
    return nameOf(fittingLayout(*parseSharedLayout(swizzle), op.item("extent", 0), op.item("extent", 1),
                                op.word("major") == "k", bytesOf(*parseElem(op.word("type")))));
  };
  for (Op &op : kernel.body())
    if (op.kind == OpKind::Shared) {
      op.set("swizzle", layoutOf(op));
      if (swizzle == "padded" && kernel.root.has("padding"))
        op.set("padding", kernel.number("padding"));
    }
}
} // namespace gemmc::tile
