#include "Rewrite.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::tile {

void allocateShared(Kernel &kernel) {
  int64_t offset = 0, highest = 0;
  auto place = [&](Op &op) {
    SharedTile tile = tileOf(op);
    int64_t bytes = tile.stageBytes() * op.number("stages", 1);
    if (op.word("over") == "operands") { // used while no operand tile is
      op.set("offset", 0);
      highest = std::max(highest, bytes);
      return;
    }
    offset = llvm::alignTo(offset, tile.alignment());
    op.set("offset", offset);
    offset += bytes;
  };
  auto placeAll = [&](auto wanted) {
    for (Op &op : kernel.body())
      if (op.kind == OpKind::Shared && wanted(op))
        place(op);
  };
  // What takes the operands' place may be larger than they are: what is used beside it lies behind both.
  placeAll([&](const Op &op) { return isOperandTile(op) || op.has("over"); });
  offset = std::max(offset, highest);
  placeAll([&](const Op &op) { return !isOperandTile(op) && !op.has("over"); });
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
