#include "Rewrite.h"

namespace gemmc::tile {
namespace {
constexpr int64_t upper = 0, lower = 1; ///< The row blocks of a warpgroup's tile.

Op waitProducts(int64_t pending) { return Op(OpKind::WaitWgmma).set("pending", pending); }
Op ofBlock(Op op, int64_t block) { return std::move(op.set("block", block)); }

/// A tile, in parts that follow one another:
///
///     head    wait, upper products          of `steps` stages, which stay filled;
///             late: store lower rows        of the tile before
///             lower products                of the same stages, each released when it is done
///     main    all steps but those of head and tail
///     tail    wait, upper and lower products
///             store upper rows              while the lower products run
///             keep lower rows               as they will be stored
struct Overlap {
  std::vector<Op> first, last; ///< Iteration 0; what ends the main loop.
  Op loop, store;
  int64_t steps, stages;
  llvm::StringRef kept; ///< As which type sums wait: D's.

  /// Releases the oldest stage.
  void release(std::vector<Op> &to) const {
    to.push_back(Op(OpKind::Arrive, Ref{"empty", {Expr::var("q")}}));
    to.push_back(advance("q"));
  }

  void head(std::vector<Op> &to) const {
    for (int64_t step = 0; step < steps; ++step)
      for (const Op &op : first)
        to.push_back(op.kind != OpKind::Wgmma ? op : ofBlock(op, upper).set("accumulate", step == 0 ? "no" : "yes"));
    Op late(OpKind::Late);
    late.body.push_back(ofBlock(store, lower));
    to.push_back(std::move(late));
    const Op &products = first[indexOf(first, OpKind::Wgmma)];
    Expr oldest = Expr::var("q"), next = (oldest + 1) % Expr(stages);
    for (int64_t step = 0; step < steps; ++step) {
      Op again = ofBlock(products, lower).set("accumulate", step == 0 ? "no" : "yes");
      indexReads(again, step == 0 ? oldest : next);
      to.push_back(std::move(again));
      if (step == 0)
        continue;
      to.push_back(waitProducts(1));
      release(to);
    }
  }

  void main(std::vector<Op> &to) const {
    Op rest = loop;
    rest.set("from", steps).set("to", loop.expr("to") - 1);
    to.push_back(std::move(rest));
  }

  void tail(std::vector<Op> &to) const {
    for (const Op &op : loop.body) {
      if (op.kind == OpKind::Wgmma) {
        to.push_back(ofBlock(op, upper));
        to.push_back(ofBlock(op, lower));
      } else {
        to.push_back(op.kind == OpKind::WaitWgmma ? waitProducts(2) : op); // the two halves are under way
      }
    }
    to.push_back(waitProducts(1));
    to.push_back(ofBlock(store, upper));
    append(to, last);
    to.push_back(Op(OpKind::Keep, store.ref("from").name)
                     .set("block", lower)
                     .set("type", kept)
                     .set("alpha", store.word("alpha")));
  }
};
} // namespace

void overlapStore(Kernel &kernel) {
  if (!kernel.root.has("overlap"))
    return;
  std::vector<Op> &tile = findIn(multiplying(kernel), OpKind::Tiles)->body;
  auto at = mainLoopOf(tile);
  const Op &store = tile.back();
  Overlap parts{{tile.begin(), at},
                {at + 1, tile.end() - 1},
                *at,
                store,
                kernel.number("overlap"),
                kernel.number("stages"),
                kernel.declaration(store.subject.name)->word("type")};
  tile.clear();
  parts.head(tile);
  parts.main(tile);
  parts.tail(tile);
}
} // namespace gemmc::tile
