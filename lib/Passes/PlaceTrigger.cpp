#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// Behind the waits that end the main loop: all stages have been read.
size_t behindMainLoop(std::vector<Op> &tile) {
  auto ends = [](const Op &op) {
    return op.kind == OpKind::WaitWgmma || op.kind == OpKind::WaitGroup || op.kind == OpKind::Sync ||
           op.kind == OpKind::Arrive || op.kind == OpKind::Advance || op.kind == OpKind::Turn;
  };
  return size_t(std::find_if_not(std::next(mainLoopOf(tile)), tile.end(), ends) - tile.begin());
}
} // namespace

void placeTrigger(Kernel &kernel) {
  // Of two warpgroups that take tiles from a counter in turn nobody knows who is last: the end of the CTA says it.
  bool unknown = kernel.root.has("scheduler") && kernel.word("schedule") == "pingpong";
  if (!kernel.root.has("trigger") || unknown)
    return;
  std::vector<Op> &ops = multiplying(kernel), &tile = findIn(ops, OpKind::Tiles)->body;
  if (kernel.word("trigger") == "sums")
    tile.insert(tile.begin() + behindMainLoop(tile), Op(OpKind::Trigger));
  else
    ops.push_back(Op(OpKind::Trigger));
}
} // namespace gemmc::tile
