#include "Rewrite.h"

namespace gemmc::tile {
namespace {

bool never(const Op &op) { return op.has("when") && op.expr("when").isConst(0); }
/// Takes a condition that is known to hold out of all `when`s: the whole, or one of two.
void dropWhen(Op &op, const Expr &known) {
  if (op.has("when") && op.expr("when").kind() == Expr::Mul && op.expr("when").lhs() == known)
    op.set("when", Expr(op.expr("when").rhs()));
  if (op.has("when") && (op.expr("when") == known || (op.expr("when").isConst() && !op.expr("when").isConst(0))))
    op.erase("when");
  for (Op &inner : op.body)
    dropWhen(inner, known);
}

/// The products that begin a tile: those of a stage's first half where it is multiplied by halves.
Op &firstProducts(std::vector<Op> &body) { return *findIn(body, OpKind::Wgmma); }

/// Iteration 0: what waits for an earlier iteration goes, the accumulator is written.
std::vector<Op> firstOf(const Op &loop) {
  std::vector<Op> first = loop.body;
  for (Op &op : first) {
    substitute(op, "kt", 0);
    dropWhen(op, Expr(1));
  }
  firstProducts(first).set("accumulate", "no");
  // One group is in flight: a wait for all but one or more waits for nothing.
  llvm::erase_if(first,
                 [](const Op &op) { return never(op) || (op.kind == OpKind::WaitWgmma && op.number("pending") > 0); });
  return first;
}

/// An unknown number of iterations, at least one: without a second copy of the body no path jumps over the loop while a
/// wgmma is in flight, which ptxas would answer by serialising them all (C7514). Iteration 0 tells itself by its
/// number.
void keepFirst(Op &loop) {
  loop.set("runs", "once");
  firstProducts(loop.body).set("accumulate", "later");
  for (Op &op : loop.body)
    if (op.kind == OpKind::WaitWgmma)
      op.erase("when"); // with one group in flight it waits for nothing
}

void peel(std::vector<Op> &body) {
  for (size_t at = 0; at < body.size(); ++at) {
    peel(body[at].body);
    if (body[at].kind != OpKind::For || !findIn(body[at].body, OpKind::Wgmma) || findIn(body[at].body, OpKind::Promote))
      continue; // sums that are promoted begin with each step
    llvm::erase_if(body, [](const Op &op) { return op.kind == OpKind::Zero; });
    at = indexOf(body, OpKind::For);
    while (!findIn(body[at].body, OpKind::Wgmma))
      ++at;
    // Where one instruction is all there is and known not to add, ptxas waits for it a second time (C7517).
    if (!body[at].expr("to").isConst() || body[at].expr("to").isConst(1))
      return keepFirst(body[at]);
    std::vector<Op> first = firstOf(body[at]);
    body[at].set("from", 1);
    for (Op &op : body[at].body)
      dropWhen(op, less(0, Expr::var("kt")));
    body.insert(body.begin() + at, first.begin(), first.end());
    return; // one main loop a tile
  }
}
} // namespace

void peelFirst(Kernel &kernel) { peel(kernel.body()); }
} // namespace gemmc::tile
