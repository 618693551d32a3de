#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// Of longer main loops the lines would have left the L2 again by the end: they are asked for so many steps before it.
/// In between, not in the loop: with a branch in it ptxas has each step's products wait for those of the one before.
constexpr int64_t fewSteps = 16, ahead = 8;

/// The store of whole tiles that adds C by itself; nullptr where there is none. Slices gain nothing (H100, 2026-11-25).
const Op *storeOfC(const std::vector<Op> &tile) {
  const Op *last = tile.empty() ? nullptr : &tile.back();
  return last && last->kind == OpKind::Store && last->has("c") && !last->has("after") ? last : nullptr;
}
} // namespace

void prefetchC(Kernel &kernel) {
  for (Op &role : kernel.body()) {
    Op *tiles = role.kind == OpKind::Role ? findIn(role.body, OpKind::Tiles) : nullptr;
    const Op *store = tiles ? storeOfC(tiles->body) : nullptr;
    const Op *acc = store ? kernel.declaration(store->ref("from").name) : nullptr;
    if (!acc || acc->kind != OpKind::Accumulator || findIn(tiles->body, OpKind::PrefetchLines))
      continue;
    auto loop = mainLoopOf(tiles->body);
    if (loop == tiles->body.end() || !loop->expr("to").isConst() || !loop->expr("from").isConst())
      continue;
    const int64_t steps = loop->expr("to").constant();
    Op prefetch = Op(OpKind::PrefetchLines, store->ref("c"));
    prefetch.set("rows", acc->item("tile", 0)).set("cols", acc->item("tile", 1)).set("beta", store->word("beta"));
    if (steps <= fewSteps || loop->expr("from").constant() >= steps - ahead) {
      tiles->body.insert(tiles->body.begin(), std::move(prefetch));
      continue;
    }
    Op end = *loop;
    loop->set("to", steps - ahead);
    end.set("from", steps - ahead);
    tiles->body.insert(loop + 1, {std::move(prefetch), std::move(end)});
  }
}
} // namespace gemmc::tile
