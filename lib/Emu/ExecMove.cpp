// Moves, comparison and selection, addresses between windows (PTX ISA 9.7.6, 9.7.9).
#include "Formats.h"
#include "Lanes.h"
#include "llvm/ADT/StringSwitch.h"

namespace gemmc::emu {
namespace {

// --- Comparison

struct Eq {
  template <typename T> static bool of(T a, T b) { return a == b; }
};
struct Ne { // ordered: false when an operand is NaN
  template <typename T> static bool of(T a, T b) { return a < b || a > b; }
};
struct Lt {
  template <typename T> static bool of(T a, T b) { return a < b; }
};
struct Le {
  template <typename T> static bool of(T a, T b) { return a <= b; }
};
struct Gt {
  template <typename T> static bool of(T a, T b) { return a > b; }
};
struct Ge {
  template <typename T> static bool of(T a, T b) { return a >= b; }
};
template <typename F> struct Unordered {
  template <typename T> static bool of(T a, T b) { return F::of(a, b) || a != a || b != b; }
};
struct Num {
  template <typename T> static bool of(T a, T b) { return a == a && b == b; }
};
struct NaN {
  template <typename T> static bool of(T a, T b) { return a != a || b != b; }
};

using Test = LaneTest;

template <typename F, typename T> Mask test(Warp &warp, const Code &code, unsigned first) {
  return testLanes<F, T>(warp.read<Stored<T>>(code.args[first]), warp.read<Stored<T>>(code.args[first + 1]));
}
/// Half types (`part`: which half of a pair) and flushed f32: through double, lane by lane.
template <typename F, typename Format, bool flush, unsigned part = 0>
Mask testFormat(Warp &warp, const Code &code, unsigned first) {
  Mask bits = 0;
  auto get = [&](unsigned operand, unsigned l) {
    auto raw = static_cast<typename Format::Bits>(warp.value(code.args[operand], l) >> 16 * part);
    return Format::get(flush ? flushSubnormal<Format>(raw) : raw);
  };
  for (unsigned l = 0; l < numLanes; ++l)
    bits |= F::of(get(first, l), get(first + 1, l)) ? laneBits[l] : 0;
  return bits;
}
template <typename F, typename Format, unsigned part = 0> Test formatTest(bool flush) {
  return flush ? testFormat<F, Format, true, part> : testFormat<F, Format, false, part>;
}

template <typename F> Test testFor(Type type, bool flush) {
  switch (type) {
  case Type::u16:
  case Type::b16:
    return test<F, uint16_t>;
  case Type::s16:
    return test<F, int16_t>;
  case Type::u32:
  case Type::b32:
    return test<F, uint32_t>;
  case Type::s32:
    return test<F, int32_t>;
  case Type::u64:
  case Type::b64:
    return test<F, uint64_t>;
  case Type::s64:
    return test<F, int64_t>;
  case Type::f32:
    return flush ? testFormat<F, F32, true> : test<F, float>;
  case Type::f64:
    return test<F, double>;
  case Type::f16:
  case Type::f16x2:
    return formatTest<F, F16>(flush);
  case Type::bf16:
  case Type::bf16x2:
    return formatTest<F, Bf16>(flush);
  default:
    return nullptr;
  }
}
template <typename F> Test highTestFor(Type type, bool flush) {
  return type == Type::f16x2 ? formatTest<F, F16, 1>(flush) : formatTest<F, Bf16, 1>(flush);
}

struct TestPair {
  Test low = nullptr, high = nullptr; ///< `high`: the upper halves of a packed type.
};
template <typename F> TestPair pairFor(Type type, bool flush) {
  bool packed = type == Type::f16x2 || type == Type::bf16x2;
  return {testFor<F>(type, flush), packed ? highTestFor<F>(type, flush) : nullptr};
}
TestPair testOf(llvm::StringRef name, Type type, bool flush) {
  using Make = TestPair (*)(Type, bool);
  Make make = llvm::StringSwitch<Make>(name)
                  .Case("eq", pairFor<Eq>)
                  .Case("ne", pairFor<Ne>)
                  .Cases("lt", "lo", pairFor<Lt>)
                  .Cases("le", "ls", pairFor<Le>)
                  .Cases("gt", "hi", pairFor<Gt>)
                  .Cases("ge", "hs", pairFor<Ge>)
                  .Case("equ", pairFor<Unordered<Eq>>)
                  .Case("neu", pairFor<Unordered<Ne>>)
                  .Case("ltu", pairFor<Unordered<Lt>>)
                  .Case("leu", pairFor<Unordered<Le>>)
                  .Case("gtu", pairFor<Unordered<Gt>>)
                  .Case("geu", pairFor<Unordered<Ge>>)
                  .Case("num", pairFor<Num>)
                  .Case("nan", pairFor<NaN>)
                  .Default(nullptr);
  return make ? make(type, flush) : TestPair{};
}

enum Join : uint32_t { Alone, JoinAnd, JoinOr, JoinXor };
Mask join(uint32_t how, Mask a, Mask b) {
  return how == JoinAnd ? a & b : how == JoinOr ? a | b : how == JoinXor ? a ^ b : a;
}

/// Operands: p, q, a, b, c. q is the complement's result; of a packed type, the result of the upper halves.
Step setp(Warp &warp, const Code &code, Mask mask) {
  Mask c = code.flags ? warp.pred(code.args[4]) : 0;
  Mask low = code.test(warp, code, 2), high = code.highTest ? code.highTest(warp, code, 2) : ~low;
  warp.setPred(code.args[0], join(code.flags, low, c), mask);
  if (code.args[1].kind == Arg::Pred)
    warp.setPred(code.args[1], join(code.flags, high, c), mask);
  return Step::Next;
}
/// Operands: p, a, b, c: a comparison whose row has no second predicate.
Step setpSingle(Warp &warp, const Code &code, Mask mask) {
  Mask c = code.flags ? warp.pred(code.args[3]) : 0;
  warp.setPred(code.args[0], join(code.flags, code.test(warp, code, 1), c), mask);
  return Step::Next;
}
/// Operands: d, a, b, c. True is 1.0 for a result of f32, else all ones (9.7.6.1).
Step set(Warp &warp, const Code &code, Mask mask) {
  Mask c = code.flags ? warp.pred(code.args[3]) : 0;
  Mask result = join(code.flags, code.test(warp, code, 1), c);
  forLanes(mask, [&](unsigned l) {
    warp.set(code.args[0], l, result >> l & 1 ? code.imm[1] ? 0x3f800000 : ~uint64_t(0) : 0);
  });
  return Step::Next;
}

Exec compare(Decoder &d, Type type, Exec exec) {
  d.code->flags = d.has("and") ? JoinAnd : d.has("or") ? JoinOr : d.has("xor") ? JoinXor : Alone;
  TestPair pair = testOf(d.inst->mod(0), type, d.has("ftz"));
  d.code->test = pair.low;
  d.code->highTest = pair.high;
  return pair.low ? exec : unmodelled;
}

// --- Selection and moves

template <typename S> Step selp(Warp &warp, const Code &code, Mask mask) {
  const S *a = warp.read<S>(code.args[1]), *b = warp.read<S>(code.args[2]);
  Mask c = warp.pred(code.args[3]);
  alignas(64) S out[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    out[l] = c & laneBits[l] ? a[l] : b[l];
  blend(warp.write<S>(code.args[0]), out, mask);
  return Step::Next;
}

template <typename S, unsigned rows> Step move(Warp &warp, const Code &code, Mask mask) {
  for (unsigned i = 0; i < rows; ++i)
    blend(warp.write<S>(code.args[0]) + i * numLanes, warp.read<S>(code.args[1]) + i * numLanes, mask);
  return Step::Next;
}
Step movePred(Warp &warp, const Code &code, Mask mask) {
  warp.setPred(code.args[0], warp.pred(code.args[1]), mask);
  return Step::Next;
}
/// Clocks count the cluster's instructions: they only need to grow.
Step moveClock(Warp &warp, const Code &code, Mask mask) {
  forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, warp.cluster.steps >> code.imm[0]); });
  return Step::Next;
}

/// A 128-bit register is two 64-bit ones, the low half first.
uint64_t half128(const Warp &warp, const Arg &arg, unsigned lane, unsigned half) {
  return warp.read<uint64_t>(arg)[half * numLanes + lane];
}
/// Puts the elements of a vector together, the first one lowest.
Step pack(Warp &warp, const Code &code, Mask mask) {
  const Arg &to = code.args[0], &from = code.args[1];
  unsigned bits = code.bytes * 8 / from.count;
  forLanes(mask, [&](unsigned l) {
    uint64_t words[2] = {};
    for (unsigned i = 0; i < from.count; ++i)
      words[i * bits / 64] |= warp.value(warp.element(from, i), l) << (i * bits & 63);
    if (code.bytes <= 8)
      return warp.set(to, l, words[0]);
    warp.write<uint64_t>(to)[l] = words[0];
    warp.write<uint64_t>(to)[numLanes + l] = words[1];
  });
  return Step::Next;
}
Step unpack(Warp &warp, const Code &code, Mask mask) {
  const Arg &to = code.args[0], &from = code.args[1];
  unsigned bits = code.bytes * 8 / to.count;
  alignas(64) uint64_t words[2][numLanes] = {};
  for (unsigned l = 0; l < numLanes; ++l)
    for (unsigned i = 0; i < (code.bytes + 7u) / 8; ++i)
      words[i][l] = code.bytes > 8 ? half128(warp, from, l, i) : warp.value(from, l);
  for (unsigned i = 0; i < to.count; ++i)
    forLanes(mask, [&](unsigned l) { warp.set(warp.element(to, i), l, words[i * bits / 64][l] >> (i * bits & 63)); });
  return Step::Next;
}

// --- Address windows

uint64_t baseOf(Where where) {
  switch (where) {
  case Where::Shared:
  case Where::SharedCluster:
    return window::shared;
  case Where::Local:
    return window::local;
  default:
    return 0; // global, const and param addresses are generic already
  }
}
Step cvta(Warp &warp, const Code &code, Mask mask) {
  uint64_t base = baseOf(code.where);
  forLanes(mask, [&](unsigned l) {
    uint64_t address = warp.value(code.args[1], l);
    warp.set(code.args[0], l, code.flags ? address - base : address + base);
  });
  return Step::Next;
}
bool isIn(Where where, uint64_t address, const Warp &warp) {
  switch (where) {
  case Where::Shared:
    return address - window::shared < window::size && (address - window::shared) >> window::rankShift == warp.cta.rank;
  case Where::SharedCluster:
    return address - window::shared < window::size;
  case Where::Local:
    return address - window::local < window::size;
  case Where::Param:
    return address - window::param < window::size;
  case Where::Const:
    return address - window::module < warp.program.constBytes;
  default:
    return address - window::shared >= 3 * window::size && !isIn(Where::Const, address, warp);
  }
}
Step isspacep(Warp &warp, const Code &code, Mask mask) {
  Mask result = 0;
  forLanes(mask, [&](unsigned l) { result |= isIn(code.where, warp.value(code.args[1], l), warp) ? laneBits[l] : 0; });
  warp.setPred(code.args[0], result, mask);
  return Step::Next;
}
/// `flags`: shared addresses; else generic ones.
Step mapa(Warp &warp, const Code &code, Mask mask) {
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    uint64_t base = code.flags ? 0 : window::shared, address = warp.value(code.args[1], l) - base;
    auto rank = static_cast<uint32_t>(warp.value(code.args[2], l));
    if (step != Step::Next)
      return;
    if (rank >= warp.cluster.ctas.size())
      step = warp.fail(code, l, "CL-8",
                       llvm::Twine("`mapa` asks for CTA ") + llvm::Twine(rank) + " of a cluster of " +
                           llvm::Twine(warp.cluster.ctas.size()));
    else if (address >= window::size)
      step = warp.fail(code, l, "CL-9",
                       llvm::Twine("`mapa` of 0x") + llvm::Twine::utohexstr(address + base) +
                           ", which is not a shared address");
    else
      warp.set(code.args[0], l,
               base + (uint64_t(rank) << window::rankShift | (address & ((1u << window::rankShift) - 1))));
  });
  return step;
}
/// Cache policies have no meaning for results.
Step createPolicy(Warp &warp, const Code &code, Mask mask) {
  forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, 0); });
  return Step::Next;
}
Step getctarank(Warp &warp, const Code &code, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    uint64_t address = warp.value(code.args[1], l) - (code.flags ? 0 : window::shared);
    warp.set(code.args[0], l, address >> window::rankShift);
  });
  return Step::Next;
}
} // namespace

Exec execSetp(Decoder &d) { return compare(d, d.type(), setp); }
Exec execSetpHalf(Decoder &d) { return compare(d, d.type(), setpSingle); }
Exec execSetpHalf2(Decoder &d) { return compare(d, d.type(), setp); }
Exec execSet(Decoder &d) {
  d.code->imm[1] = d.typeAt(1) == Type::f32;
  return compare(d, d.typeAt(2), set);
}
Exec execSelp(Decoder &d) { return d.code->bytes == 8 ? selp<uint64_t> : selp<uint32_t>; }

Exec execMov(Decoder &d) {
  const ptx::Operand &source = d.inst->ops[1];
  llvm::StringRef name;
  if (source.kind == ptx::Operand::Special)
    name = source.name;
  if (name == "%clock" || name == "%clock64" || name == "%globaltimer" || name == "%globaltimer_lo")
    return moveClock;
  if (name == "%clock_hi" || name == "%globaltimer_hi") {
    d.code->imm[0] = 32;
    return moveClock;
  }
  if (name.starts_with("%") && !isSpecialModelled(name))
    return unmodelled;
  if (d.type() == Type::pred)
    return movePred;
  if (d.code->bytes == 16)
    return move<uint64_t, 2>;
  return d.code->bytes == 8 ? move<uint64_t, 1> : move<uint32_t, 1>;
}
Exec execMovPack(Decoder &) { return pack; }
Exec execMovUnpack(Decoder &) { return unpack; }
Exec execCvta(Decoder &d) {
  d.code->where = d.where();
  d.code->flags = d.has("to");
  return cvta;
}
Exec execIsspacep(Decoder &d) {
  d.code->where = d.where();
  return isspacep;
}
Exec execMapa(Decoder &d) {
  d.code->flags = d.has("shared::cluster");
  return mapa;
}
Exec execGetctarank(Decoder &d) {
  d.code->flags = d.has("shared::cluster");
  return getctarank;
}
Exec execCreatePolicy(Decoder &) { return createPolicy; }
Exec execCreatePolicyRange(Decoder &) { return createPolicy; }

} // namespace gemmc::emu
