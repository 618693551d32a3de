// Sums of 8-bit floats, of which the tensor cores keep 14 bits: each stage's products are a sum of their own, which is
// added to one in f32 registers. So nothing is under way between two stages: a stage is waited for, given back and
// added before the next one is multiplied, while another warpgroup has the tensor cores.
#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// `q` follows the stage that is given back when the next one is multiplied: here that is the same one.
bool isLate(const Op &op) {
  const bool follows = op.subject.name == "q" && (op.kind == OpKind::Cursor || op.kind == OpKind::Advance);
  const bool gives = op.kind == OpKind::Arrive && op.subject.name == "empty";
  return follows || gives || op.kind == OpKind::WaitWgmma;
}

void promote(std::vector<Op> &body, const Op &release) {
  llvm::erase_if(body, isLate);
  for (size_t at = 0; at < body.size(); ++at) {
    promote(body[at].body, release);
    if (body[at].kind != OpKind::Wgmma)
      continue;
    body[at].subject.name = "part";
    body[at].set("accumulate", "no");
    body.insert(body.begin() + at + 1, {Op(OpKind::WaitWgmma).set("pending", 0), release,
                                        Op(OpKind::Promote, "acc").set("from", Ref{"part", {}})});
  }
}
} // namespace

void promoteSums(Kernel &kernel) {
  if (!kernel.root.has("promote") || kernel.word("instruction") != "wgmma")
    return;
  Op part = *kernel.declaration("acc");
  part.subject.name = "part";
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Accumulator) + 1, std::move(part));
  Op release(OpKind::Arrive, Ref{"empty", {Expr::var("r")}});
  walk(kernel.body(), [&](const Op &op) {
    if (op.kind == OpKind::Arrive && op.has("by"))
      release.set("by", op.word("by"));
  });
  promote(kernel.body(), release);
}
} // namespace gemmc::tile
