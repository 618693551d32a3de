// Warps that share a block tile's depth: warp w multiplies slice w / (warps of a slice) of each stage's k, as the warp
// w % (warps of a slice) of that slice. At the end their sums meet in shared memory.
#include "Lowering.h"

namespace gemmc {
namespace {
std::string vectorOf(llvm::StringRef stem, size_t count, llvm::StringRef type) {
  return (stem + (count == 1 ? "." : count == 2 ? ".v2." : ".v4.") + type).str();
}
Val asOne(const std::vector<Val> &regs) { return regs.size() == 1 ? regs[0] : Val(regs); }
} // namespace

Lowering::SumWords Lowering::sumWords(Elem type) {
  switch (type) {
  case Elem::f64:
    return {"f64", "mov.f64", "add.rn.f64", Type::f64, 8};
  case Elem::f16:
    return {"b32", "mov.b32", "add.rn.f16x2", Type::b32, 4};
  case Elem::s32:
    return {"b32", "mov.b32", "add.s32", Type::b32, 4};
  default:
    return {"f32", "mov.f32", "add.rn.f32", Type::f32, 4};
  }
}

Val Lowering::SumWords::zero() const {
  return reg == Type::f64 ? Val(ptx::Operand::makeF64(0)) : reg == Type::f32 ? Val(ptx::Operand::makeF32(0)) : Val(0);
}

Val Lowering::slice() { return slices == 1 ? Val(0) : divide(warp, kernel.number("threads") / 32 / slices, "slice"); }

Val Lowering::warpInSlice() {
  return slices == 1 ? warp : remainder(warp, kernel.number("threads") / 32 / slices, "warp_in_slice");
}

/// The corresponding warps of two slices hold the same elements in the same registers, whatever their layout is, so
/// registers travel as they are: 16 bytes at a time, all lanes of a warp side by side.
void Lowering::exchange(llvm::StringRef buffer, const AccumulatorView &acc,
                        llvm::function_ref<void(const Val &address, const std::vector<Val> &regs)> visit) {
  std::vector<Val> regs;
  for (const auto &block : acc.regs)
    regs.insert(regs.end(), block.begin(), block.end());
  int64_t bytes = sumWords(acc.type).bytes, lanes = 32, group = 16 / bytes, total = regs.size();
  while (total % group)
    group /= 2;
  Val start = add(sharedBase, buffers.find(buffer)->second.offset, "exchange");
  start = add(mul(warpInSlice(), total * bytes * lanes, "warp_place"), start, "exchange");
  start = add(mul(lane, group * bytes, "lane_place"), start, "exchange");
  for (int64_t i = 0; i < total; i += group)
    visit(at(start, i * bytes * lanes), {regs.begin() + i, regs.begin() + i + group});
}

void Lowering::send(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  Val end = b.label("sent"), others = b.reg(Type::pred, "others");
  b("setp.ne.u32", others, slice(), op.number("slice"));
  b.when(others)("bra", end);
  exchange(op.subject.name, acc, [&](const Val &address, const std::vector<Val> &regs) {
    b(vectorOf("st.shared", regs.size(), sumWords(acc.type).type), address, asOne(regs));
  });
  b.place(end);
}

void Lowering::receive(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const SumWords words = sumWords(acc.type);
  Val end = b.label("received"), others = b.reg(Type::pred, "others");
  b("setp.ne.u32", others, slice(), 0);
  b.when(others)("bra", end);
  exchange(op.ref("from").name, acc, [&](const Val &address, const std::vector<Val> &regs) {
    std::vector<Val> more = b.regs(words.reg, "more", regs.size());
    b(vectorOf("ld.shared", regs.size(), words.type), asOne(more), address);
    for (size_t i = 0; i < regs.size(); ++i)
      b(words.add, regs[i], regs[i], more[i]);
  });
  b.place(end);
}

} // namespace gemmc
