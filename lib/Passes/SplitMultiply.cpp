#include "gemmc/Layout/MatrixInstruction.h"
#include "gemmc/Passes/Passes.h"
#include "gemmc/Support/Types.h"

namespace gemmc::tile {
namespace {
/// The k of one matrix instruction.
int64_t stepOf(const Kernel &kernel) {
  constexpr int64_t usual = 16;
  if (kernel.root.has("matrix"))
    return kernel.root.item("matrix", 2);
  const Op *tile = kernel.word("instruction") == "wgmma" ? kernel.declaration("sA") : nullptr;
  return tile ? wgmmaDepthBytes / bytesOf(*parseElem(tile->word("type"))) : usual;
}

/// A from shared memory; or from registers, half of a stage's k steps at a time: lanes load one half while the other
/// one is multiplied. Not where a stage's products are added up by themselves: nothing is under way then.
std::vector<Op> wgmmaOf(const Op &multiply, const Kernel &kernel, int64_t depth) {
  Op op(OpKind::Wgmma, multiply.subject);
  op.set("a", multiply.ref("a")).set("b", multiply.ref("b")).set("accumulate", "yes");
  if (multiply.has("negate"))
    op.set("negate", multiply.word("negate"));
  op.range = multiply.range;
  if (!kernel.root.has("load_a"))
    return {op};
  std::vector<Op> ops;
  const int64_t steps = kernel.root.item("block", 2) / depth,
                half = kernel.root.has("promote") ? steps : (steps + 1) / 2;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == half)
      ops.push_back(Op(op).set("a", Ref{"fA", {0}}).set("steps", half));
    ops.push_back(Op(OpKind::Load, Ref{"fA", {step}})
                      .set("from", multiply.ref("a"))
                      .set("step", step)
                      .set("via", kernel.word("load_a")));
  }
  const int64_t first = steps > half ? half : 0;
  ops.push_back(op.set("a", Ref{"fA", {first}}).set("steps", steps - first));
  return ops;
}

/// Gives `op` the kernel's word `from` as its attribute `key`, where there is one.
Op with(Op op, llvm::StringRef key, const Kernel &kernel, llvm::StringRef from) {
  if (kernel.root.has(from))
    op.set(key, kernel.word(from));
  return op;
}

/// load fA; load fB; mma, for each k-step of the block tile.
std::vector<Op> mmaStepsOf(const Op &multiply, const Kernel &kernel, int64_t depth) {
  std::vector<Op> ops;
  // Warps that share a block tile's depth take its slices one behind the other.
  int64_t steps = kernel.root.item("block", 2) / kernel.root.number("slices", 1) / depth;
  for (int64_t step = 0; step < steps; ++step) {
    Op a = Op(OpKind::Load, Ref{"fA", {0}}).set("from", multiply.ref("a")).set("step", step);
    Op b = Op(OpKind::Load, Ref{"fB", {0}}).set("from", multiply.ref("b")).set("step", step);
    Op mma = Op(OpKind::Mma, multiply.subject).set("a", Ref{"fA", {0}}).set("b", Ref{"fB", {0}});
    ops.push_back(with(std::move(a), "via", kernel, "load_a"));
    ops.push_back(with(std::move(b), "via", kernel, "load_b"));
    ops.push_back(with(std::move(mma), "order", kernel, "order"));
  }
  for (Op &op : ops)
    op.range = multiply.range;
  return ops;
}

void declareFragments(Kernel &kernel) {
  auto fragment = [](llvm::StringRef name, llvm::StringRef operand, llvm::StringRef buffer) {
    return Op(OpKind::Fragment, name)
        .set("of", Ref{"acc", {}})
        .set("operand", operand)
        .set("from", Ref{buffer.str(), {}})
        .set("buffers", 1);
  };
  auto after = llvm::find_if(kernel.body(), [](const Op &op) { return op.kind == OpKind::Accumulator; });
  if (kernel.word("instruction") == "wgmma") {
    kernel.body().insert(std::next(after),
                         fragment("fA", "a", "sA").set("buffers", kernel.root.item("block", 2) / stepOf(kernel)));
    return;
  }
  after = kernel.body().insert(std::next(after), fragment("fA", "a", "sA"));
  kernel.body().insert(std::next(after), fragment("fB", "b", "sB"));
}

void split(std::vector<Op> &body, const Kernel &kernel, int64_t depth) {
  std::vector<Op> result;
  for (Op &op : body) {
    split(op.body, kernel, depth);
    if (op.kind != OpKind::Multiply) {
      result.push_back(std::move(op));
      continue;
    }
    for (Op &part : kernel.word("instruction") == "wgmma" ? wgmmaOf(op, kernel, depth) : mmaStepsOf(op, kernel, depth))
      result.push_back(std::move(part));
  }
  body = std::move(result);
}
} // namespace

void splitMultiply(Kernel &kernel) {
  bool wgmma = kernel.word("instruction") == "wgmma";
  split(kernel.body(), kernel, stepOf(kernel));
  kernel.declaration("acc")->set("warp", kernel.root.list("warp"));
  if (!wgmma || kernel.root.has("load_a"))
    declareFragments(kernel);
}
} // namespace gemmc::tile
