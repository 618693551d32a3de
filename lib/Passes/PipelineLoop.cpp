#include "Rewrite.h"

namespace gemmc::tile {
namespace {

/// The copies of one iteration, into the write cursor's stage, for iteration `iteration`; only when there is one.
std::vector<Op> copiesFor(const std::vector<Op> &copies, const Expr &iteration, const Expr &end) {
  std::vector<Op> result = copies;
  for (Op &copy : result) {
    substitute(copy, "kt", iteration);
    indexCopies(copy, Expr::var("w"));
    copy.set("when", less(iteration, end));
  }
  Op next = advance("w");
  next.set("when", less(iteration, end));
  result.push_back(std::move(next));
  return result;
}

/// Rewrites the k-loop at `at` of `tile`: a prologue in front, the copies `ahead` iterations ahead inside.
void pipeline(std::vector<Op> &tile, size_t at, int64_t ahead) {
  Op loop = std::move(tile[at]);
  Expr end = loop.expr("to"), kt = Expr::var("kt");
  std::vector<Op> copies, rest;
  for (Op &op : loop.body)
    (isCopy(op) ? copies : rest).push_back(std::move(op));
  for (Op &op : rest)
    indexReads(op, Expr::var("r"));

  Op prologue(OpKind::For, "p");
  prologue.set("from", 0).set("to", ahead).set("unroll", "full");
  prologue.body = copiesFor(copies, Expr::var("p"), end);

  // cp.async: the stage that is copied into was read in the iteration before, and the barrier that the reads wait for
  // stands between. TMA: its stage is free only once the previous wgmma has been waited for, so copies come last.
  std::vector<Op> steady = copiesFor(copies, kt + ahead, end);
  bool copiesLast = copies.front().word("via") == "tma";
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
  pipeline(tile, indexOf(tile, OpKind::For), stages - 1);
  kernel.body().insert(kernel.body().begin() + tiles, {cursor("w", stages), cursor("r", stages)});
}
} // namespace gemmc::tile
