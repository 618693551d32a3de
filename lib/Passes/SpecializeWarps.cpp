#include "Rewrite.h"

namespace gemmc::tile {
namespace {

Op producerOf(const Kernel &kernel, Op tiles) {
  std::vector<Op> &loop = findIn(tiles.body, OpKind::For)->body;
  llvm::erase_if(loop, [](const Op &op) { return !isCopy(op); });
  for (Op &op : loop)
    indexCopies(op, Expr::var("w"));
  loop.push_back(advance("w"));
  llvm::erase_if(tiles.body, [](const Op &op) { return op.kind != OpKind::For; });

  Op elect(OpKind::Elect);
  elect.set("warp", 0);
  elect.body.push_back(cursor("w", kernel.number("stages")));
  elect.body.push_back(std::move(tiles));

  // A whole warpgroup, because setmaxnreg is executed by whole warpgroups; one lane of it works.
  Op role(OpKind::Role, "producer");
  role.set("warps", std::vector<Expr>{0, warpsOfGroup});
  if (kernel.root.has("producer_regs"))
    role.set("regs", kernel.number("producer_regs"));
  role.body.push_back(std::move(elect));
  return role;
}

/// Ping-pong: two warpgroups take the tiles in turn, so a consumer's cursor steps over the other one's iterations, and
/// the main loops follow one another while each epilogue runs under the other's main loop.
void alternate(Op &role, Op &tiles) {
  size_t at = indexOf(tiles.body, OpKind::For);
  Expr iterations = tiles.body[at].expr("to");
  tiles.set("alternate", 2);
  Op skip = advance("r");
  skip.set("by", iterations);
  tiles.body.insert(tiles.body.begin() + at + 1, {Op(OpKind::Turn).set("action", "pass"), skip});
  tiles.body.insert(tiles.body.begin() + at, Op(OpKind::Turn).set("action", "wait"));
  Op offset = advance("r");
  offset.set("by", iterations * Expr::var("wg"));
  role.body.push_back(std::move(offset));
}

Op consumerOf(const Kernel &kernel, Op tiles) {
  std::vector<Op> &loop = findIn(tiles.body, OpKind::For)->body;
  llvm::erase_if(loop, isCopy);
  for (Op &op : loop)
    indexReads(op, Expr::var("r"));
  loop.push_back(advance("r"));

  Op role(OpKind::Role, "consumer");
  role.set("warps", std::vector<Expr>{warpsOfGroup, warpsOfGroup * kernel.number("consumers")});
  if (kernel.root.has("consumer_regs"))
    role.set("regs", kernel.number("consumer_regs"));
  role.body.push_back(cursor("r", kernel.number("stages")));
  if (kernel.word("schedule") == "pingpong")
    alternate(role, tiles);
  role.body.push_back(std::move(tiles));
  return role;
}
} // namespace

void specializeWarps(Kernel &kernel) {
  if (kernel.word("schedule") == "pipelined")
    return;
  giveStages(kernel, kernel.number("stages"));
  size_t at = indexOf(kernel.body(), OpKind::Tiles);
  Op tiles = kernel.body()[at];
  kernel.body()[at] = producerOf(kernel, tiles);
  kernel.body().insert(kernel.body().begin() + at + 1, consumerOf(kernel, std::move(tiles)));
}
} // namespace gemmc::tile
