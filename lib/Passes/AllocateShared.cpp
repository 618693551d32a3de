#include "Rewrite.h"
#include "gemmc/Layout/SharedTile.h"
#include "gemmc/Support/Types.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::tile {

void allocateShared(Kernel &kernel) {
  int64_t offset = 0, highest = 0;
  for (Op &op : kernel.body()) {
    if (op.kind != OpKind::Shared)
      continue;
    SharedTile tile = makeSharedTile(op.item("extent", 0), op.item("extent", 1), op.word("major") == "k",
                                     *parseElem(op.word("type")), *parseSharedLayout(op.word("swizzle")),
                                     op.number("padding", 16));
    int64_t bytes = tile.stageBytes() * op.number("stages", 1);
    if (op.word("over") == "operands") { // used while no operand tile is
      op.set("offset", 0);
      highest = std::max(highest, bytes);
      continue;
    }
    offset = llvm::alignTo(offset, tile.alignment());
    op.set("offset", offset);
    offset += bytes;
  }
  offset = std::max(offset, highest);
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
