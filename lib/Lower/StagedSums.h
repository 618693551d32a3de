/// The sums of a wgmma warp on their way into shared memory, row by row (WarpStore.cpp) or turned
/// (TransposedStore.cpp).
#pragma once
#include "FragmentsOfC.h"

namespace gemmc {

/// The fragment of an m64 accumulator (PTX ISA 9.7.15.5.1.1): column group j and half h of row block i are the two
/// neighbours at row lane / 4 + 8 h of the warp's 16, columns 8 j + 2 (lane % 4) and the next.
struct Lowering::StagedSums {
  Lowering &l;
  ptx::Builder &b;
  const AccumulatorView &acc;
  bool finished;      ///< D itself is staged, not the sums.
  Elem type, typeOfC; ///< Of what is staged, and of a C that comes in before.
  std::optional<double> alpha, beta;
  std::optional<FragmentsOfC> fragmentsOfC{}; ///< A C that lanes bring to their sums.

  using Pair = FragmentsOfC::Pair;

  /// Sums in s32, whose alpha and beta are whole numbers that the spec fixes.
  bool isWhole() const { return acc.type == Elem::s32; }
  Type wordType() const { return isWhole() ? Type::b32 : Type::f32; }
  const char *word() const { return isWhole() ? "b32" : "f32"; }
  Val scaled(Val x) {
    if (!finished || (alpha && *alpha == 1))
      return x;
    Val factor = l.factorOf(alpha, l.alpha, acc.type), result = b.reg(wordType(), "x");
    if (isWhole()) {
      b("mul.lo.s32", result, x, factor);
      return result;
    }
    // Plus zero, so that a negative alpha times an empty sum is +0 and not -0.
    b("fma.rn.f32", result, x, factor, Val(ptx::Operand::makeF32(0)));
    return result;
  }
  /// Two neighbours, as f32 or s32.
  std::pair<Val, Val> sums(int64_t i, int64_t j, int64_t h) {
    const auto &regs = acc.regs[i];
    if (acc.type != Elem::f16)
      return {scaled(regs[4 * j + 2 * h]), scaled(regs[4 * j + 2 * h + 1])};
    std::vector<Val> halves = b.regs(Type::b16, "half", 2), wide = b.regs(Type::f32, "x", 2);
    b("mov.b32", Val(halves), regs[2 * j + h]);
    b("cvt.f32.f16", wide[0], halves[0]);
    b("cvt.f32.f16", wide[1], halves[1]);
    return {scaled(wide[0]), scaled(wide[1])};
  }
  /// beta * C comes in.
  std::pair<Val, Val> plus(const std::pair<Val, Val> &sums, const std::pair<Val, Val> &c) {
    Val factor = l.factorOf(beta, l.beta, acc.type);
    std::vector<Val> both = b.regs(wordType(), "x", 2);
    const char *fma = isWhole() ? "mad.lo.s32" : "fma.rn.f32";
    b(fma, both[0], c.first, factor, sums.first);
    b(fma, both[1], c.second, factor, sums.second);
    return {both[0], both[1]};
  }
  /// Two neighbours of C as the sums are.
  Pair widened(const Pair &c) {
    if (bytesOf(typeOfC) > 2)
      return c;
    const bool apart = c.second.isReg();
    std::vector<Val> wide = b.regs(Type::f32, "c", 2);
    if (typeOfC == Elem::f16) {
      std::vector<Val> halves = apart ? std::vector<Val>{c.first, c.second} : b.regs(Type::b16, "half", 2);
      if (!apart)
        b("mov.b32", Val(halves), c.first);
      b("cvt.f32.f16", wide[0], halves[0]);
      b("cvt.f32.f16", wide[1], halves[1]);
      return {wide[0], wide[1]};
    }
    if (apart) {
      Val zero = b.reg(Type::b16, "zero");
      b("mov.b16", zero, 0);
      b("mov.b32", wide[0], Val(std::vector<Val>{zero, c.first})); // bf16 is the upper half of an f32
      b("mov.b32", wide[1], Val(std::vector<Val>{zero, c.second}));
      return {wide[0], wide[1]};
    }
    Val low = b.reg(Type::b32, "low"), high = b.reg(Type::b32, "high");
    b("shl.b32", low, c.first, 16);
    b("and.b32", high, c.first, int64_t(0xffff0000));
    b("mov.b32", wide[0], low);
    b("mov.b32", wide[1], high);
    return {wide[0], wide[1]};
  }
  /// Whether a register of sums is what is staged.
  bool areStagedAlready() const {
    return acc.type == Elem::f16 && type == Elem::f16 && (!finished || (alpha && *alpha == 1));
  }
  /// Of column group j of the piece that is being staged; None where lanes bring no C.
  Pair fragmentOfC(int64_t j, int64_t h) { return fragmentsOfC ? fragmentsOfC->pair(j, h) : Pair(); }
  /// Two neighbours in one register of the staged 16-bit type; `c`: those of C that come in, or None.
  Val packed(int64_t i, int64_t j, int64_t h, const Pair &c = {}) {
    if (auto kept = acc.kept.find(i); kept != acc.kept.end())
      return kept->second[2 * j + h];
    if (areStagedAlready() && !c.first.isReg())
      return acc.regs[i][2 * j + h];
    auto [x, y] = sums(i, j, h);
    if (c.first.isReg())
      std::tie(x, y) = plus({x, y}, widened(c));
    Val pair = b.reg(Type::b32, "d");
    pack(pair, x, y);
    return pair;
  }
  /// The same without C, in a register that outlives the sums. ptxas sees through a `mov`, takes the register for the
  /// sums' own and waits for the next tile's products before it is read (C7517); bytes in their own order it copies.
  void packInto(const Val &pair, int64_t i, int64_t j, int64_t h) {
    if (areStagedAlready()) {
      const Val &own = acc.regs[i][2 * j + h];
      b("prmt.b32", pair, own, own, 0x3210);
      return;
    }
    auto [x, y] = sums(i, j, h);
    pack(pair, x, y);
  }
  void pack(const Val &pair, const Val &x, const Val &y) {
    b(type == Elem::f16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", pair, y, x);
  }
};

} // namespace gemmc
