#include "Elements.h"

namespace gemmc {

Lowering::Elements::Elements(Lowering &l, const Op &store, Elem sums)
    : l(l), b(l.b), sums(sums), d(&l.tensors.find(store.subject.name)->second),
      c(store.has("c") ? &l.tensors.find(store.ref("c").name)->second : nullptr),
      fixedAlpha(fixedScale(store.word("alpha"))), fixedBeta(fixedScale(store.word("beta"))) {}

const char *Lowering::Elements::loadOf(Elem type) {
  return type == Elem::f32   ? "ld.global.f32"
         : type == Elem::f64 ? "ld.global.f64"
         : type == Elem::s32 ? "ld.global.b32"
                             : "ld.global.b16";
}

Type Lowering::Elements::registerOf(Elem type) {
  return type == Elem::f32 ? Type::f32 : type == Elem::f64 ? Type::f64 : type == Elem::s32 ? Type::b32 : Type::b16;
}

Val Lowering::Elements::scaled(const Val &sum) {
  if (fixedAlpha && *fixedAlpha == 1)
    return sum;
  Val factor = l.factorOf(fixedAlpha, l.alpha, sums), x = b.reg(sumType(), "x");
  if (isS32()) {
    b("mul.lo.s32", x, sum, factor);
    return x;
  }
  // Plus zero, so that a negative alpha times an empty sum is +0 and not -0.
  Val plusZero = isF64() ? ptx::Operand::makeF64(0) : ptx::Operand::makeF32(0);
  b(isF64() ? "fma.rn.f64" : "fma.rn.f32", x, sum, factor, plusZero);
  return x;
}

Val Lowering::Elements::rawC(const Val &guard) {
  Elem type = c->type;
  Val raw = b.reg(registerOf(type), "c");
  if (!guard.isReg())
    return raw;
  if (type == Elem::f32)
    b("mov.f32", raw, Val(ptx::Operand::makeF32(0)));
  else if (type == Elem::f64)
    b("mov.f64", raw, Val(ptx::Operand::makeF64(0)));
  else
    b(type == Elem::s32 ? "mov.b32" : "mov.b16", raw, 0);
  return raw;
}

Val Lowering::Elements::loadC(const Place &place, const Val &guard) {
  Val raw = rawC(guard);
  if (guard.isReg())
    b.when(guard);
  b(loadOf(c->type), raw, at(place.base, place.offset));
  return raw;
}

Val Lowering::Elements::widened(const Val &raw) {
  if (registerOf(c->type) != Type::b16)
    return raw;
  Val wide = b.reg(Type::f32, "c");
  if (c->type == Elem::f16) {
    b("cvt.f32.f16", wide, raw);
  } else {
    Val zero = b.reg(Type::b16, "zero");
    b("mov.b16", zero, 0);
    b("mov.b32", wide, Val(std::vector<Val>{zero, raw})); // bf16 is the upper half of an f32
  }
  return wide;
}

Val Lowering::Elements::plusC(const Val &x, const Val &raw) {
  Val wide = widened(raw), sum = b.reg(sumType(), "x");
  Val factor = l.factorOf(fixedBeta, l.beta, sums);
  if (isS32())
    b("mad.lo.s32", sum, wide, factor, x);
  else if (isF64())
    b("fma.rn.f64", sum, wide, factor, x);
  else
    b("fma.rn.f32", sum, l.floatInRegister(factor), wide, x);
  return sum;
}

void Lowering::Elements::put(const Place &place, const Val &x, const Val &guard) {
  Val out = x;
  Elem type = d->type;
  if (registerOf(type) == Type::b16) {
    out = b.reg(Type::b16, "d");
    b(type == Elem::f16 ? "cvt.rn.f16.f32" : "cvt.rn.bf16.f32", out, x);
  }
  if (guard.isReg())
    b.when(guard);
  const char *mnemonic = type == Elem::f32   ? "st.global.f32"
                         : type == Elem::f64 ? "st.global.f64"
                         : type == Elem::s32 ? "st.global.b32"
                                             : "st.global.b16";
  b(mnemonic, at(place.base, place.offset), out);
}

} // namespace gemmc
