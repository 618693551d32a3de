// Logic, shifts and bit fields (PTX ISA 9.7.1.14 to 9.7.1.22, 9.7.8, 9.7.9.9).
#include "Lanes.h"

namespace gemmc::emu {
namespace {

struct AndOf {
  template <typename T> static T of(T a, T b) { return a & b; }
};
struct OrOf {
  template <typename T> static T of(T a, T b) { return a | b; }
};
struct XorOf {
  template <typename T> static T of(T a, T b) { return a ^ b; }
};
struct NotOf {
  template <typename T> static T of(T a) { return static_cast<T>(~a); }
};

template <typename F> Step predMap2(Warp &warp, const Code &code, Mask mask) {
  warp.setPred(code.args[0], F::of(warp.pred(code.args[1]), warp.pred(code.args[2])), mask);
  return Step::Next;
}
Step predNot(Warp &warp, const Code &code, Mask mask) {
  warp.setPred(code.args[0], ~warp.pred(code.args[1]), mask);
  return Step::Next;
}

/// Amounts of the width and more are clamped to it.
struct ShlOf {
  template <typename T> static T of(T a, uint32_t b) {
    return b < sizeof(T) * 8 ? static_cast<T>(a << (b & (sizeof(T) * 8 - 1))) : T(0);
  }
};
struct ShrOf {
  template <typename T> static T of(T a, uint32_t b) {
    constexpr uint32_t top = sizeof(T) * 8 - 1;
    return std::is_signed_v<T> || b <= top ? static_cast<T>(a >> (b < top ? b : top)) : T(0);
  }
};
template <typename F> Exec shiftOf(Type type) {
  switch (type) {
  case Type::b16:
  case Type::u16:
    return map2<F, uint16_t, uint16_t, uint32_t>;
  case Type::b32:
  case Type::u32:
    return map2<F, uint32_t, uint32_t, uint32_t>;
  case Type::b64:
  case Type::u64:
    return map2<F, uint64_t, uint64_t, uint32_t>;
  case Type::s16:
    return map2<F, int16_t, int16_t, uint32_t>;
  case Type::s32:
    return map2<F, int32_t, int32_t, uint32_t>;
  case Type::s64:
    return map2<F, int64_t, int64_t, uint32_t>;
  default:
    return unmodelled;
  }
}

template <bool left, bool clamp> struct Funnel {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = clamp ? (c < 32 ? c : 32) : c & 31;
    uint64_t both = uint64_t(b) << 32 | a;
    return left ? static_cast<uint32_t>(both << n >> 32) : static_cast<uint32_t>(both >> n);
  }
};
template <bool left, bool clamp>
constexpr Exec funnel = map3<Funnel<left, clamp>, uint32_t, uint32_t, uint32_t, uint32_t>;

/// Bits behind the field's end, and a signed field's bits behind the top, are copies of the sign.
struct BfeOf {
  template <typename T> static T of(T a, uint32_t b, uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t width = sizeof(T) * 8;
    uint32_t pos = b & 0xff, len = c & 0xff;
    if (!len)
      return 0;
    uint32_t top = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
    bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1);
    U field = pos < width ? static_cast<U>(a) >> pos : U(0);
    uint32_t have = pos < width ? (len < width - pos ? len : width - pos) : 0;
    U mask = have >= width ? ~U(0) : (U(1) << have) - 1;
    return static_cast<T>((field & mask) | (sign ? static_cast<U>(~mask) : U(0)));
  }
};
template <typename T> T insertBits(T a, T b, uint32_t c, uint32_t d) {
  constexpr uint32_t width = sizeof(T) * 8;
  uint32_t pos = c & 0xff, len = d & 0xff;
  if (pos >= width || !len)
    return b;
  T mask = (len >= width ? ~T(0) : (T(1) << len) - 1) << pos;
  return (b & ~mask) | (a << pos & mask);
}
template <typename T> Step bitInsert(Warp &warp, const Code &code, Mask mask) {
  const Arg *args = code.args;
  forLanes(mask, [&](unsigned l) {
    warp.set(
        args[0], l,
        insertBits<T>(warp.value(args[1], l), warp.value(args[2], l), warp.value(args[3], l), warp.value(args[4], l)));
  });
  return Step::Next;
}

template <bool clamp> struct BitMask {
  static uint32_t of(uint32_t a, uint32_t b) {
    uint32_t pos = clamp ? (a < 32 ? a : 32) : a & 31;
    uint32_t len = clamp ? (b < 32 ? b : 32) : b & 31;
    uint64_t ones = (uint64_t(1) << len) - 1;
    return static_cast<uint32_t>(ones << pos);
  }
};

/// Bit `4a + 2b + c` of the table is the result where the inputs' bits are a, b, c.
/// Operands: d, p, a, b, c, table, q.
Step lop3(Warp &warp, const Code &code, Mask mask) {
  const uint32_t *a = warp.read<uint32_t>(code.args[2]), *b = warp.read<uint32_t>(code.args[3]),
                 *c = warp.read<uint32_t>(code.args[4]);
  alignas(64) uint32_t out[numLanes];
  Mask nonzero = 0;
  uint32_t full[8];
  for (unsigned i = 0; i < 8; ++i)
    full[i] = code.imm[0] >> i & 1 ? ~0u : 0;
  for (unsigned l = 0; l < numLanes; ++l) {
    uint32_t x = a[l], y = b[l], z = c[l];
    uint32_t low = (full[0] & ~y & ~z) | (full[1] & ~y & z) | (full[2] & y & ~z) | (full[3] & y & z);
    uint32_t high = (full[4] & ~y & ~z) | (full[5] & ~y & z) | (full[6] & y & ~z) | (full[7] & y & z);
    out[l] = (low & ~x) | (high & x);
    nonzero |= out[l] ? laneBits[l] : 0;
  }
  blend(warp.write<uint32_t>(code.args[0]), out, mask);
  if (code.args[1].kind == Arg::Pred) {
    Mask q = warp.pred(code.args[6]);
    warp.setPred(code.args[1], code.flags ? nonzero & q : nonzero | q, mask);
  }
  return Step::Next;
}

enum PrmtMode { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
/// Which byte of {b, a} becomes byte `i`: 4 bits, the top one asks for its sign instead.
unsigned selectorOf(PrmtMode mode, uint32_t control, unsigned i) {
  unsigned n = control & 3;
  switch (mode) {
  case Index:
    return control >> 4 * i & 15;
  case F4e:
    return n + i;
  case B4e:
    return (n - i) & 7;
  case Rc8:
    return n;
  case Ecl:
    return i < n ? n : i;
  case Ecr:
    return i < n ? i : n;
  case Rc16:
    return (n & 1) * 2 + (i & 1);
  }
  return 0;
}
template <PrmtMode mode> struct Permute {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned selector = selectorOf(mode, c, i);
      uint32_t byte = bytes >> 8 * (selector & 7) & 0xff;
      if (selector & 8)
        byte = byte & 0x80 ? 0xff : 0;
      result |= byte << 8 * i;
    }
    return result;
  }
};
template <PrmtMode mode> constexpr Exec permute = map3<Permute<mode>, uint32_t, uint32_t, uint32_t, uint32_t>;

struct PopcOf {
  template <typename T> static uint32_t of(T a) { return std::popcount(a); }
};
struct ClzOf {
  template <typename T> static uint32_t of(T a) { return std::countl_zero(a); }
};
struct BrevOf {
  template <typename T> static T of(T a) {
    T result = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i)
      result |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
    return result;
  }
};
/// The highest bit that differs from the sign (signed) or is set (unsigned), counted from below, or with `shift` from
/// above; all ones when there is none.
template <bool shift> struct FindTop {
  template <typename T> static uint32_t of(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = std::is_signed_v<T> && a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
    if (!bits)
      return ~0u;
    uint32_t top = sizeof(T) * 8 - 1 - std::countl_zero(bits);
    return shift ? sizeof(T) * 8 - 1 - top : top;
  }
};
template <bool shift> Exec findTop(Type type) {
  switch (type) {
  case Type::u32:
    return map1<FindTop<shift>, uint32_t, uint32_t>;
  case Type::s32:
    return map1<FindTop<shift>, uint32_t, int32_t>;
  case Type::u64:
    return map1<FindTop<shift>, uint32_t, uint64_t>;
  case Type::s64:
    return map1<FindTop<shift>, uint32_t, int64_t>;
  default:
    return unmodelled;
  }
}
} // namespace

Exec execAnd(Decoder &d) { return d.type() == Type::pred ? predMap2<AndOf> : intMap2<AndOf>(d.type()); }
Exec execOr(Decoder &d) { return d.type() == Type::pred ? predMap2<OrOf> : intMap2<OrOf>(d.type()); }
Exec execXor(Decoder &d) { return d.type() == Type::pred ? predMap2<XorOf> : intMap2<XorOf>(d.type()); }
Exec execNot(Decoder &d) {
  switch (d.type()) {
  case Type::pred:
    return predNot;
  case Type::b16:
    return map1<NotOf, uint16_t, uint16_t>;
  case Type::b32:
    return map1<NotOf, uint32_t, uint32_t>;
  default:
    return map1<NotOf, uint64_t, uint64_t>;
  }
}
Exec execShl(Decoder &d) { return shiftOf<ShlOf>(d.type()); }
Exec execShr(Decoder &d) { return shiftOf<ShrOf>(d.type()); }
Exec execShf(Decoder &d) {
  if (d.has("clamp"))
    return d.has("l") ? funnel<true, true> : funnel<false, true>;
  return d.has("l") ? funnel<true, false> : funnel<false, false>;
}
Exec execBfe(Decoder &d) {
  switch (d.type()) {
  case Type::u32:
    return map3<BfeOf, uint32_t, uint32_t, uint32_t, uint32_t>;
  case Type::s32:
    return map3<BfeOf, int32_t, int32_t, uint32_t, uint32_t>;
  case Type::u64:
    return map3<BfeOf, uint64_t, uint64_t, uint32_t, uint32_t>;
  default:
    return map3<BfeOf, int64_t, int64_t, uint32_t, uint32_t>;
  }
}
Exec execBfi(Decoder &d) { return d.type() == Type::b64 ? bitInsert<uint64_t> : bitInsert<uint32_t>; }
Exec execBmsk(Decoder &d) {
  return d.has("clamp") ? map2<BitMask<true>, uint32_t, uint32_t, uint32_t>
                        : map2<BitMask<false>, uint32_t, uint32_t, uint32_t>;
}
Exec execLop3(Decoder &d) {
  d.code->imm[0] = d.immediate(5);
  d.code->flags = d.has("and");
  return lop3;
}
Exec execPrmt(Decoder &d) {
  llvm::StringRef mode = d.inst->mod(1);
  if (mode == "f4e")
    return permute<F4e>;
  if (mode == "b4e")
    return permute<B4e>;
  if (mode == "rc8")
    return permute<Rc8>;
  if (mode == "ecl")
    return permute<Ecl>;
  if (mode == "ecr")
    return permute<Ecr>;
  return mode == "rc16" ? permute<Rc16> : permute<Index>;
}
Exec execPopc(Decoder &d) {
  return d.type() == Type::b64 ? map1<PopcOf, uint32_t, uint64_t> : map1<PopcOf, uint32_t, uint32_t>;
}
Exec execClz(Decoder &d) {
  return d.type() == Type::b64 ? map1<ClzOf, uint32_t, uint64_t> : map1<ClzOf, uint32_t, uint32_t>;
}
Exec execBrev(Decoder &d) {
  return d.type() == Type::b64 ? map1<BrevOf, uint64_t, uint64_t> : map1<BrevOf, uint32_t, uint32_t>;
}
Exec execBfind(Decoder &d) { return d.has("shiftamt") ? findTop<true>(d.type()) : findTop<false>(d.type()); }

} // namespace gemmc::emu
