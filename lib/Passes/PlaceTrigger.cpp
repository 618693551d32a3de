#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// Behind the waits that end the main loop: all stages have been read.
size_t behindMainLoop(const std::vector<Op> &tile) {
  auto loop = llvm::find_if(tile, [](const Op &op) { return op.kind == OpKind::For && !op.has("unroll"); });
  auto ends = [](const Op &op) {
    return op.kind == OpKind::WaitWgmma || op.kind == OpKind::WaitGroup || op.kind == OpKind::Sync ||
           op.kind == OpKind::Arrive || op.kind == OpKind::Advance || op.kind == OpKind::Turn;
  };
  return size_t(std::find_if_not(std::next(loop), tile.end(), ends) - tile.begin());
}
} // namespace

void placeTrigger(Kernel &kernel) {
  // Of two warpgroups that take tiles from a counter in turn nobody knows who is last: the end of the CTA says it.
  bool unknown = kernel.root.has("scheduler") && kernel.word("schedule") == "pingpong";
  if (!kernel.root.has("trigger") || unknown)
    return;
  std::vector<Op> *multiplies = &kernel.body(); // or those of the consumers, the last role
  for (Op &op : kernel.body())
    if (op.kind == OpKind::Role)
      multiplies = &op.body;
  std::vector<Op> &tile = findIn(*multiplies, OpKind::Tiles)->body;
  if (kernel.word("trigger") == "sums")
    tile.insert(tile.begin() + behindMainLoop(tile), Op(OpKind::Trigger));
  else
    multiplies->push_back(Op(OpKind::Trigger));
}
} // namespace gemmc::tile
