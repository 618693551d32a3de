// Conversions (PTX ISA 9.7.9.21).
#include "Formats.h"
#include "Lanes.h"
#include <limits>

namespace gemmc::emu {
namespace {

/// What a conversion does beside changing the type.
enum Flag : uint32_t { Ftz = 1, Sat = 2, Relu = 4, SatFinite = 8, ToInteger = 16 };

template <typename T> constexpr bool isHalf = false;
template <> constexpr bool isHalf<F16> = true;
template <> constexpr bool isHalf<Bf16> = true;

double roundToInteger(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::nearest:
    return std::nearbyint(value);
  case Rounding::nearestAway:
    return std::round(value);
  case Rounding::zero:
    return std::trunc(value);
  case Rounding::down:
    return std::floor(value);
  case Rounding::up:
    return std::ceil(value);
  }
  return value;
}

/// NaN becomes 0, or the lowest signed value where 64-bit types take part.
template <typename D> D toInteger(double value, bool wide, Rounding rounding) {
  if (value != value)
    return wide ? static_cast<D>(D(1) << (sizeof(D) * 8 - 1)) : D(0);
  value = roundToInteger(value, rounding);
  if (value <= static_cast<double>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  if (value >= static_cast<double>(std::numeric_limits<D>::max()))
    return std::numeric_limits<D>::max();
  return static_cast<D>(value);
}
template <typename D, typename S> D clampInteger(S value) {
  using Both = __int128;
  Both low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max(), x = value;
  return static_cast<D>(x < low ? low : x > high ? high : x);
}

/// A 64-bit integer as a double that rounds on like the integer itself.
template <typename S> double oddFromInteger(S value) {
  auto nearest = static_cast<double>(value);
  auto error = static_cast<__int128>(value) - static_cast<__int128>(nearest);
  return makeOdd(nearest, static_cast<double>(error));
}

/// An f64 rounded to f32 in the host's current mode; halves round once from their double.
template <typename Format> typename Format::Bits fromDouble(double value, Rounding rounding) {
  if constexpr (isHalf<Format>)
    return Format::put(value, rounding);
  else
    return Format::put(static_cast<typename Format::Math>(value), rounding);
}
template <typename Format, typename S> typename Format::Bits fromInteger(S value, Rounding rounding) {
  if constexpr (isHalf<Format>)
    return Format::put(oddFromInteger(value), rounding);
  else
    return Format::put(static_cast<typename Format::Math>(value), rounding);
}
template <typename Format> typename Format::Bits saturated(typename Format::Bits bits, uint32_t flags) {
  auto value = Format::get(bits);
  if (flags & Sat)
    return value > 0 ? (value < 1 ? bits : Format::put(1, Rounding::nearest)) : typename Format::Bits(0);
  if (flags & Relu && value < 0)
    return 0;
  return bits;
}

template <typename T> constexpr bool isFormat = !std::is_integral_v<T>;
template <typename T, bool = isFormat<T>> struct BitsOfType {
  using Type = std::make_unsigned_t<T>;
};
template <typename T> struct BitsOfType<T, true> {
  using Type = typename T::Bits;
};
template <typename T> using Bits = typename BitsOfType<T>::Type;

template <typename S> Bits<S> flushIfAsked(Bits<S> bits, uint32_t flags) {
  if constexpr (std::is_same_v<S, F32>)
    return flags & Ftz ? flushSubnormal<F32>(bits) : bits;
  return bits;
}
/// `.ftz` of an f64 that becomes an f32: see `flushesF32`.
template <typename D, typename S> Bits<D> flushResult(Bits<D> bits, double value, uint32_t flags) {
  if constexpr (std::is_same_v<D, F32> && std::is_same_v<S, F64>)
    if (flags & Ftz && (bits & 0x7fffffff) == 0x00800000 && flushesF32(value))
      return bits & 0x80000000;
  return flushIfAsked<D>(bits, flags);
}

/// A NaN's payload as far as it fits, made quiet.
template <typename D, typename S> Bits<D> payloadOf(Bits<S> bits) {
  uint64_t fraction = uint64_t(bits) << (52 - S::mantissa) & ((uint64_t(1) << 52) - 1);
  uint64_t kept = (fraction | uint64_t(1) << 51) >> (52 - D::mantissa);
  uint64_t sign = bits & signOf<S> ? signOf<D> : 0, exponent = (uint64_t(signOf<D>) - 1) >> D::mantissa << D::mantissa;
  return static_cast<Bits<D>>(sign | exponent | kept);
}
/// The card's NaN: f64 hands payloads on, with `.ftz` an f32 is made canonical before; f32 from bf16 only shifts bits.
template <typename D, typename S> Bits<D> convertNaN(Bits<S> bits, uint32_t flags) {
  if constexpr (std::is_same_v<D, F32> && std::is_same_v<S, Bf16>)
    return uint32_t(bits) << 16;
  else if constexpr (std::is_same_v<D, F64> || std::is_same_v<S, F64>)
    return std::is_same_v<S, F32> && flags & Ftz ? payloadOf<D, S>(S::canonicalNaN) : payloadOf<D, S>(bits);
  else
    return D::canonicalNaN;
}

/// One value; the result sign-extended to 64 bits for signed integers, zero-extended for the rest.
template <typename D, typename S> uint64_t convert(uint64_t raw, uint32_t flags, Rounding rounding) {
  auto bits = static_cast<Bits<S>>(raw);
  if constexpr (!isHalf<D>) // f16 from f32 has no instruction that flushes
    bits = flushIfAsked<S>(bits, flags);
  if constexpr (isFormat<D>) {
    Bits<D> result;
    if constexpr (!isFormat<S>)
      result = fromInteger<D>(static_cast<S>(bits), rounding);
    else {
      double value = S::get(bits);
      if (flags & ToInteger)
        value = roundToInteger(value, rounding);
      if (std::is_same_v<D, S> && !(flags & ToInteger))
        result = bits;
      else if (value != value)
        result = convertNaN<D, S>(bits, flags);
      else
        result = fromDouble<D>(value, std::is_same_v<D, S> ? Rounding::nearest : rounding);
      return flushResult<D, S>(saturated<D>(result, flags), value, flags);
    }
    return flushIfAsked<D>(saturated<D>(result, flags), flags);
  } else {
    D result;
    if constexpr (isFormat<S>)
      result = toInteger<D>(S::get(bits), sizeof(D) == 8 || std::is_same_v<S, F64>, rounding);
    else
      result = flags & Sat ? clampInteger<D>(static_cast<S>(bits)) : static_cast<D>(static_cast<S>(bits));
    return static_cast<uint64_t>(static_cast<int64_t>(result)); // a signed result fills a wider register
  }
}

/// Modes other than nearest change the host's rounding only where the host does the rounding: for f32 and f64 results.
template <typename D, typename S> Step cvt(Warp &warp, const Code &code, Mask mask) {
  auto rounding = static_cast<Rounding>(code.imm[0]);
  bool byHost = isFormat<D> && !isHalf<D> && !(code.flags & ToInteger);
  RoundingScope scope(byHost ? rounding : Rounding::nearest);
  forLanes(mask, [&](unsigned l) {
    uint64_t result = convert<D, S>(warp.value(code.args[1], l), code.flags, rounding);
    if constexpr (!isFormat<D> && !std::is_signed_v<D>)
      result = static_cast<D>(result);
    warp.set(code.args[0], l, result);
  });
  return Step::Next;
}

template <typename D> Exec cvtFrom(Type from) {
  switch (from) {
  case Type::u8:
    return cvt<D, uint8_t>;
  case Type::u16:
    return cvt<D, uint16_t>;
  case Type::u32:
    return cvt<D, uint32_t>;
  case Type::u64:
    return cvt<D, uint64_t>;
  case Type::s8:
    return cvt<D, int8_t>;
  case Type::s16:
    return cvt<D, int16_t>;
  case Type::s32:
    return cvt<D, int32_t>;
  case Type::s64:
    return cvt<D, int64_t>;
  case Type::f16:
    return cvt<D, F16>;
  case Type::bf16:
    return cvt<D, Bf16>;
  case Type::f32:
    return cvt<D, F32>;
  case Type::f64:
    return cvt<D, F64>;
  default:
    return unmodelled;
  }
}

// --- The frequent cases as vector loops

template <typename D> struct Cast {
  template <typename S> static D of(S value) { return static_cast<D>(value); }
};
/// Plain conversions between registers of exactly the types' widths.
Exec fastCvt(Type to, Type from) {
  switch (to) {
  case Type::u32:
  case Type::s32:
    if (from == Type::u64 || from == Type::s64)
      return map1<Cast<uint32_t>, uint32_t, uint64_t>;
    return from == Type::u16   ? map1<Cast<uint32_t>, uint32_t, uint16_t>
           : from == Type::s16 ? map1<Cast<int32_t>, int32_t, int16_t>
                               : nullptr;
  case Type::u64:
  case Type::s64:
    return from == Type::u32   ? map1<Cast<uint64_t>, uint64_t, uint32_t>
           : from == Type::s32 ? map1<Cast<int64_t>, int64_t, int32_t>
                               : nullptr;
  case Type::u16:
  case Type::s16:
    return from == Type::u32 || from == Type::s32 ? map1<Cast<uint16_t>, uint16_t, uint32_t> : nullptr;
  case Type::f32:
    return from == Type::s32   ? map1<Cast<float>, float, int32_t>
           : from == Type::u32 ? map1<Cast<float>, float, uint32_t>
                               : nullptr;
  default:
    return nullptr;
  }
}
bool widthsMatch(Decoder &d) {
  return d.arg(0).bits == ptx::bitsOf(d.typeAt(1)) && d.arg(1).bits == ptx::bitsOf(d.typeAt(2));
}

void noteModifiers(Decoder &d) {
  d.flag("ftz", Ftz);
  d.flag("sat", Sat);
  d.flag("relu", Relu);
  d.flag("satfinite", SatFinite);
  for (const char *mode : {"rni", "rzi", "rmi", "rpi"})
    d.flag(mode, ToInteger);
  Rounding rounding = Rounding::nearest;
  if (d.has("rz") || d.has("rzi"))
    rounding = Rounding::zero;
  else if (d.has("rna"))
    rounding = Rounding::nearestAway;
  else if (d.has("rm") || d.has("rmi"))
    rounding = Rounding::down;
  else if (d.has("rp") || d.has("rpi"))
    rounding = Rounding::up;
  d.code->imm[0] = static_cast<int32_t>(rounding);
}

// --- f32 to smaller formats

template <const sem::Format &format> uint32_t narrow(double value, const Code &code) {
  return sem::encode(format, value,
                     {static_cast<Rounding>(code.imm[0]), (code.flags & SatFinite) != 0, (code.flags & Relu) != 0});
}
template <const sem::Format &format> Step cvtNarrow(Warp &warp, const Code &code, Mask mask) {
  const float *a = warp.read<float>(code.args[1]);
  forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, narrow<format>(a[l], code)); });
  return Step::Next;
}
/// `.rna` is integer arithmetic on the card: a NaN loses its low bits and may become an infinity.
Step cvtTf32Away(Warp &warp, const Code &code, Mask mask) {
  const uint32_t *a = warp.read<uint32_t>(code.args[1]);
  auto finite = [](uint32_t bits) { return (bits & 0x7fffffff) < 0x7f800000; };
  forLanes(mask, [&](unsigned l) {
    uint32_t bits = (finite(a[l]) ? a[l] + 0x1000 : a[l]) & 0xffffe000;
    if (code.flags & SatFinite && !finite(bits))
      bits -= 0x2000;
    warp.set(code.args[0], l, bits);
  });
  return Step::Next;
}
/// The first source becomes the upper half.
template <const sem::Format &format> Step cvtPack(Warp &warp, const Code &code, Mask mask) {
  const float *a = warp.read<float>(code.args[1]), *b = warp.read<float>(code.args[2]);
  forLanes(mask, [&](unsigned l) {
    warp.set(code.args[0], l, narrow<format>(a[l], code) << format.bits | narrow<format>(b[l], code));
  });
  return Step::Next;
}
// --- 8-bit formats, two in a 16-bit register

template <const sem::Format &format> Step cvtHalfToFp8(Warp &warp, const Code &code, Mask mask) {
  const uint32_t *a = warp.read<uint32_t>(code.args[1]);
  forLanes(mask, [&](unsigned l) {
    warp.set(code.args[0], l,
             narrow<format>(F16::get(a[l] >> 16), code) << 8 | narrow<format>(F16::get(a[l] & 0xffff), code));
  });
  return Step::Next;
}
template <const sem::Format &format> Step cvtFromFp8(Warp &warp, const Code &code, Mask mask) {
  sem::CvtMode mode;
  mode.relu = code.flags & Relu;
  auto half = [&](uint32_t byte) { return sem::encode(sem::formatF16, sem::decode(format, byte), mode); };
  forLanes(mask, [&](unsigned l) {
    auto pair = static_cast<uint32_t>(warp.value(code.args[1], l));
    warp.set(code.args[0], l, half(pair >> 8 & 0xff) << 16 | half(pair & 0xff));
  });
  return Step::Next;
}
} // namespace

Exec execCvtToFp8(Decoder &d) {
  noteModifiers(d);
  return d.typeAt(1) == Type::e4m3x2 ? cvtPack<sem::formatE4m3> : cvtPack<sem::formatE5m2>;
}
Exec execCvtHalfToFp8(Decoder &d) {
  noteModifiers(d);
  return d.typeAt(1) == Type::e4m3x2 ? cvtHalfToFp8<sem::formatE4m3> : cvtHalfToFp8<sem::formatE5m2>;
}
Exec execCvtFromFp8(Decoder &d) {
  noteModifiers(d);
  return d.typeAt(2) == Type::e4m3x2 ? cvtFromFp8<sem::formatE4m3> : cvtFromFp8<sem::formatE5m2>;
}
Exec execCvt(Decoder &d) {
  noteModifiers(d);
  Type to = d.typeAt(1), from = d.typeAt(2);
  if (!d.code->flags && !d.code->imm[0] && widthsMatch(d))
    if (Exec fast = fastCvt(to, from))
      return fast;
  switch (to) {
  case Type::u8:
    return cvtFrom<uint8_t>(from);
  case Type::u16:
    return cvtFrom<uint16_t>(from);
  case Type::u32:
    return cvtFrom<uint32_t>(from);
  case Type::u64:
    return cvtFrom<uint64_t>(from);
  case Type::s8:
    return cvtFrom<int8_t>(from);
  case Type::s16:
    return cvtFrom<int16_t>(from);
  case Type::s32:
    return cvtFrom<int32_t>(from);
  case Type::s64:
    return cvtFrom<int64_t>(from);
  case Type::f16:
    return cvtFrom<F16>(from);
  case Type::bf16:
    return cvtFrom<Bf16>(from);
  case Type::f32:
    return cvtFrom<F32>(from);
  case Type::f64:
    return cvtFrom<F64>(from);
  default:
    return unmodelled;
  }
}
Exec execCvtHalf(Decoder &d) {
  noteModifiers(d);
  return d.typeAt(1) == Type::bf16 ? cvtNarrow<sem::formatBf16> : cvtNarrow<sem::formatF16>;
}
Exec execCvtPack(Decoder &d) {
  noteModifiers(d);
  return d.typeAt(1) == Type::bf16x2 ? cvtPack<sem::formatBf16> : cvtPack<sem::formatF16>;
}
Exec execCvtTf32(Decoder &d) {
  noteModifiers(d);
  return d.has("rna") ? cvtTf32Away : cvtNarrow<sem::formatTf32>;
}

} // namespace gemmc::emu
