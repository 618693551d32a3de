#include "Rewrite.h"
#include <algorithm>

namespace gemmc::tile {
namespace {
/// The producer's loop over all tiles; nullptr where threads copy, or where CTAs meet in the workspace for a tile.
Op *copiedTiles(Kernel &kernel) {
  Op *role = findIn(kernel.body(), OpKind::Role);
  Op *elect = role ? findIn(role->body, OpKind::Elect) : nullptr;
  Op *tiles = elect ? findIn(elect->body, OpKind::Tiles) : nullptr;
  return tiles && (!tiles->has("parts") || tiles->word("parts") == "cluster") ? tiles : nullptr;
}

Op prefetchOf(const Op &copy) {
  Op op = Op(OpKind::Prefetch, Ref{copy.subject.name, {0}}).set("from", copy.ref("from"));
  if (copy.has("multicast"))
    op.set("multicast", copy.word("multicast"));
  return op;
}
} // namespace

void prefetchAhead(Kernel &kernel) {
  int64_t steps = kernel.root.number("prefetch", 0);
  Op *tiles = copiedTiles(kernel), *loop = tiles ? findIn(tiles->body, OpKind::For) : nullptr;
  if (steps == 0 || !loop)
    return;
  if (loop->expr("to").isConst())
    steps = std::min(steps, loop->expr("to").constant());
  Op first(OpKind::Tiles), ahead(OpKind::Ahead), elect = Op(OpKind::Elect).set("warp", 0);
  if (tiles->has("parts"))
    first.set("parts", tiles->word("parts"));
  first.set("first", "yes");
  Op fetch = Op(OpKind::For, loop->subject.name).set("from", 0).set("to", steps).set("unroll", "full");
  for (const Op &op : loop->body)
    if (isCopy(op))
      fetch.body.push_back(prefetchOf(op));
  first.body.push_back(std::move(fetch));
  elect.body.push_back(std::move(first));
  ahead.body.push_back(std::move(elect));
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Role), std::move(ahead));
}
} // namespace gemmc::tile
