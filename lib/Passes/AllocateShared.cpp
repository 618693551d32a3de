#include "Rewrite.h"
#include "gemmc/Layout/SharedTile.h"
#include "gemmc/Support/Types.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::tile {

void allocateShared(Kernel &kernel) {
  int64_t offset = 0;
  for (Op &op : kernel.body()) {
    if (op.kind != OpKind::Shared)
      continue;
    SharedTile tile = makeSharedTile(op.item("extent", 0), op.item("extent", 1), op.word("major") == "k",
                                     *parseElem(op.word("type")), *parseSharedLayout(op.word("swizzle")));
    offset = llvm::alignTo(offset, tile.alignment());
    op.set("offset", offset);
    offset += tile.stageBytes() * op.number("stages", 1);
  }
  constexpr int64_t barrierBytes = 8;
  offset = llvm::alignTo(offset, barrierBytes);
  for (Op &op : kernel.body()) {
    if (op.kind != OpKind::Barrier)
      continue;
    op.set("offset", offset);
    offset += barrierBytes * op.number("stages");
  }
  kernel.root.set("shared", offset);
}
} // namespace gemmc::tile
