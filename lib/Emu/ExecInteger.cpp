// Integer arithmetic (PTX ISA 9.7.1).
#include "Lanes.h"
#include <limits>

namespace gemmc::emu {
namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
/// Arithmetic modulo 2^n; at least 32 bits wide, so that 16-bit operands are not promoted to a signed type.
template <typename T> using Modular = std::common_type_t<Unsigned<T>, uint32_t>;
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <typename T> constexpr unsigned width = sizeof(T) * 8;

template <typename T, typename W> T saturate(W value) {
  W low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(value < low ? low : value > high ? high : value);
}

struct AddOf {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Modular<T>(a) + Modular<T>(b)); }
};
struct SubOf {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Modular<T>(a) - Modular<T>(b)); }
};
struct AddSat {
  static int32_t of(int32_t a, int32_t b) { return saturate<int32_t>(int64_t(a) + b); }
};
struct SubSat {
  static int32_t of(int32_t a, int32_t b) { return saturate<int32_t>(int64_t(a) - b); }
};
struct MulLo {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Modular<T>(a) * Modular<T>(b)); }
};
struct MulHi {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Wide<T>(a) * Wide<T>(b) >> width<T>); }
};
struct MadLo {
  template <typename T> static T of(T a, T b, T c) { return AddOf::of(MulLo::of(a, b), c); }
};
struct MadHi {
  template <typename T> static T of(T a, T b, T c) { return AddOf::of(MulHi::of(a, b), c); }
};
struct MadHiSat {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return saturate<int32_t>(int64_t(MulHi::of(a, b)) + c); }
};
template <typename D> struct MulWideOf {
  template <typename T> static D of(T a, T b) { return static_cast<D>(D(a) * D(b)); }
};
template <typename D> struct MadWideOf {
  template <typename T> static D of(T a, T b, D c) { return static_cast<D>(Unsigned<D>(D(a) * D(b)) + Unsigned<D>(c)); }
};
/// Division by zero has no defined result; quotient and remainder are all ones on the hardware.
struct DivOf {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(0 - Modular<T>(a));
    return static_cast<T>(a / b);
  }
};
struct RemOf {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? T(0) : static_cast<T>(a % b);
  }
};
struct MinOf {
  template <typename T> static T of(T a, T b) { return a < b ? a : b; }
};
struct MaxOf {
  template <typename T> static T of(T a, T b) { return a > b ? a : b; }
};
struct NegOf {
  template <typename T> static T of(T a) { return static_cast<T>(0 - Modular<T>(a)); }
};
struct AbsOf {
  template <typename T> static T of(T a) { return a < 0 ? NegOf::of(a) : a; }
};

template <typename F> Exec intMap3(Type type) {
  switch (type) {
  case Type::u16:
    return map3<F, uint16_t, uint16_t, uint16_t, uint16_t>;
  case Type::s16:
    return map3<F, int16_t, int16_t, int16_t, int16_t>;
  case Type::u32:
    return map3<F, uint32_t, uint32_t, uint32_t, uint32_t>;
  case Type::s32:
    return map3<F, int32_t, int32_t, int32_t, int32_t>;
  case Type::u64:
    return map3<F, uint64_t, uint64_t, uint64_t, uint64_t>;
  case Type::s64:
    return map3<F, int64_t, int64_t, int64_t, int64_t>;
  default:
    return unmodelled;
  }
}
template <typename F> Exec signedMap1(Type type) {
  switch (type) {
  case Type::s16:
    return map1<F, int16_t, int16_t>;
  case Type::s32:
    return map1<F, int32_t, int32_t>;
  case Type::s64:
    return map1<F, int64_t, int64_t>;
  default:
    return unmodelled;
  }
}
} // namespace

Exec execAdd(Decoder &d) { return d.has("sat") ? map2<AddSat, int32_t, int32_t, int32_t> : intMap2<AddOf>(d.type()); }
Exec execSub(Decoder &d) { return d.has("sat") ? map2<SubSat, int32_t, int32_t, int32_t> : intMap2<SubOf>(d.type()); }
Exec execMul(Decoder &d) { return d.has("hi") ? intMap2<MulHi>(d.type()) : intMap2<MulLo>(d.type()); }
Exec execMad(Decoder &d) {
  if (d.has("sat"))
    return map3<MadHiSat, int32_t, int32_t, int32_t, int32_t>;
  return d.has("hi") ? intMap3<MadHi>(d.type()) : intMap3<MadLo>(d.type());
}
Exec execMulWide(Decoder &d) {
  switch (d.type()) {
  case Type::u16:
    return map2<MulWideOf<uint32_t>, uint32_t, uint16_t, uint16_t>;
  case Type::s16:
    return map2<MulWideOf<int32_t>, int32_t, int16_t, int16_t>;
  case Type::u32:
    return map2<MulWideOf<uint64_t>, uint64_t, uint32_t, uint32_t>;
  case Type::s32:
    return map2<MulWideOf<int64_t>, int64_t, int32_t, int32_t>;
  default:
    return unmodelled;
  }
}
Exec execMadWide(Decoder &d) {
  switch (d.type()) {
  case Type::u16:
    return map3<MadWideOf<uint32_t>, uint32_t, uint16_t, uint16_t, uint32_t>;
  case Type::s16:
    return map3<MadWideOf<int32_t>, int32_t, int16_t, int16_t, int32_t>;
  case Type::u32:
    return map3<MadWideOf<uint64_t>, uint64_t, uint32_t, uint32_t, uint64_t>;
  case Type::s32:
    return map3<MadWideOf<int64_t>, int64_t, int32_t, int32_t, int64_t>;
  default:
    return unmodelled;
  }
}
Exec execDiv(Decoder &d) { return intMap2<DivOf>(d.type()); }
Exec execRem(Decoder &d) { return intMap2<RemOf>(d.type()); }
Exec execMin(Decoder &d) { return intMap2<MinOf>(d.type()); }
Exec execMax(Decoder &d) { return intMap2<MaxOf>(d.type()); }
Exec execNeg(Decoder &d) { return signedMap1<NegOf>(d.type()); }
Exec execAbs(Decoder &d) { return signedMap1<AbsOf>(d.type()); }

namespace {
template <typename A, typename B> struct Dot4 {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    for (unsigned i = 0; i < 32; i += 8)
      c += static_cast<uint32_t>(int32_t(static_cast<A>(a >> i)) * int32_t(static_cast<B>(b >> i)));
    return c;
  }
};
template <typename A, typename B> constexpr Exec dot4 = map3<Dot4<A, B>, uint32_t, uint32_t, uint32_t, uint32_t>;
} // namespace

namespace {
/// c + |a - b|.
struct SadOf {
  template <typename T> static T of(T a, T b, T c) {
    return static_cast<T>(Modular<T>(c) + (a < b ? Modular<T>(b) - Modular<T>(a) : Modular<T>(a) - Modular<T>(b)));
  }
};
/// The low 24 bits as a number.
template <typename T> int64_t low24(T x) {
  auto bits = static_cast<uint32_t>(x) << 8;
  return std::is_signed_v<T> ? static_cast<int64_t>(static_cast<int32_t>(bits) >> 8) : bits >> 8;
}
/// Bits 31..0 of the product of 48 bits, or 47..16 of it.
template <bool high> struct Mul24Of {
  template <typename T> static T of(T a, T b) { return static_cast<T>(low24(a) * low24(b) >> (high ? 16 : 0)); }
};
template <bool high> struct Mad24Of {
  template <typename T> static T of(T a, T b, T c) {
    return static_cast<T>(Modular<T>(Mul24Of<high>::of(a, b)) + Modular<T>(c));
  }
};
struct Mad24HiSat {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return AddSat::of(Mul24Of<true>::of(a, b), c); }
};
} // namespace

Exec execSad(Decoder &d) { return intMap3<SadOf>(d.type()); }
Exec execMul24(Decoder &d) {
  if (d.type() == Type::s32)
    return d.has("hi") ? map2<Mul24Of<true>, int32_t, int32_t, int32_t>
                       : map2<Mul24Of<false>, int32_t, int32_t, int32_t>;
  return d.has("hi") ? map2<Mul24Of<true>, uint32_t, uint32_t, uint32_t>
                     : map2<Mul24Of<false>, uint32_t, uint32_t, uint32_t>;
}
Exec execMad24(Decoder &d) {
  if (d.has("sat"))
    return map3<Mad24HiSat, int32_t, int32_t, int32_t, int32_t>;
  if (d.type() == Type::s32)
    return d.has("hi") ? map3<Mad24Of<true>, int32_t, int32_t, int32_t, int32_t>
                       : map3<Mad24Of<false>, int32_t, int32_t, int32_t, int32_t>;
  return d.has("hi") ? map3<Mad24Of<true>, uint32_t, uint32_t, uint32_t, uint32_t>
                     : map3<Mad24Of<false>, uint32_t, uint32_t, uint32_t, uint32_t>;
}

Exec execDp4a(Decoder &d) {
  bool signedA = d.typeAt(1) == Type::s32, signedB = d.typeAt(2) == Type::s32;
  if (signedA)
    return signedB ? dot4<int8_t, int8_t> : dot4<int8_t, uint8_t>;
  return signedB ? dot4<uint8_t, int8_t> : dot4<uint8_t, uint8_t>;
}

} // namespace gemmc::emu
