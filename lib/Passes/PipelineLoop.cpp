#include "Rewrite.h"

namespace gemmc::tile {
namespace {

/// The copies for `iteration`, into the write cursor's stage; only `when` there is one.
std::vector<Op> copiesFor(const std::vector<Op> &copies, const Expr &iteration, const Expr &when) {
  std::vector<Op> result = copies;
  for (Op &copy : result) {
    substitute(copy, "kt", iteration);
    indexCopies(copy, Expr::var("w"));
    copy.set("when", when);
  }
  Op next = advance("w");
  next.set("when", when);
  result.push_back(std::move(next));
  return result;
}

/// Rewrites the k-loop at `at` of `tile`: a prologue in front, the copies stages - 1 iterations ahead inside.
void pipeline(std::vector<Op> &tile, size_t at, int64_t stages) {
  Op loop = std::move(tile[at]);
  Expr end = loop.expr("to"), kt = Expr::var("kt");
  std::vector<Op> copies, rest;
  for (Op &op : loop.body)
    (isCopy(op) ? copies : rest).push_back(std::move(op));
  for (Op &op : rest)
    indexReads(op, Expr::var("r"));

  // cp.async: the stage that is copied into was read in the iteration before, and the barrier that the reads wait for
  // stands between. TMA: its stage is free only once the previous wgmma has been waited for, so copies come last; in
  // iteration 0 there is none, so the prologue fills all stages.
  bool copiesLast = copies.front().word("via") == "tma";
  int64_t ahead = stages - 1;
  Op prologue(OpKind::For, "p");
  prologue.set("from", 0).set("to", copiesLast ? stages : ahead).set("unroll", "full");
  prologue.body = copiesFor(copies, Expr::var("p"), less(Expr::var("p"), end));
  Expr more = less(kt + ahead, end);
  std::vector<Op> steady = copiesFor(copies, kt + ahead, copiesLast ? less(0, kt) * more : more);
  loop.body.clear();
  if (!copiesLast)
    append(loop.body, steady);
  append(loop.body, std::move(rest));
  loop.body.push_back(advance("r"));
  if (copiesLast)
    append(loop.body, std::move(steady));

  tile[at] = std::move(loop);
  tile.insert(tile.begin() + at, std::move(prologue));
}
} // namespace

void pipelineLoop(Kernel &kernel) {
  int64_t stages = kernel.number("stages");
  if (stages == 1 || kernel.word("schedule") != "pipelined")
    return;
  giveStages(kernel, stages);
  size_t tiles = indexOf(kernel.body(), OpKind::Tiles);
  std::vector<Op> &tile = kernel.body()[tiles].body;
  pipeline(tile, indexOf(tile, OpKind::For), stages);
  kernel.body().insert(kernel.body().begin() + tiles, {cursor("w", stages), cursor("r", stages)});
}
} // namespace gemmc::tile
