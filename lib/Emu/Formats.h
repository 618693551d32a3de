/// Floating-point formats as the scalar instructions see them: bits in, a host type to compute in, bits out with one
/// rounding. NaN results are canonical, as on the hardware (f32 0x7fffffff, halves 0x7fff); only f64 keeps payloads.
#pragma once
#include "gemmc/Emu/Numerics.h"
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace gemmc::emu {

using Rounding = sem::Round;

/// The host's rounding mode while it lives. The compiler does not know that arithmetic depends on it, so values must
/// come from and go to memory across its ends.
class RoundingScope {
public:
  explicit RoundingScope(Rounding rounding) : changed(rounding != Rounding::nearest) {
    if (changed)
      std::fesetround(rounding == Rounding::zero   ? FE_TOWARDZERO
                      : rounding == Rounding::down ? FE_DOWNWARD
                                                   : FE_UPWARD);
    asm volatile("" ::: "memory");
  }
  ~RoundingScope() {
    asm volatile("" ::: "memory");
    if (changed)
      std::fesetround(FE_TONEAREST);
  }

private:
  bool changed;
};

/// The last bit of an inexact result is set, so that a later rounding to fewer bits (at least two less) is right.
/// `error` is the exact result minus `value`.
inline double makeOdd(double value, double error) {
  if (error == 0 || !std::isfinite(value) || !std::isfinite(error))
    return value;
  auto bits = std::bit_cast<uint64_t>(value);
  if (bits & 1)
    return value;
  if (value == 0)
    return error;
  bits += (error > 0) == (value > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}
/// a * b + c for half operands: the product is exact in double.
inline double fmaToOdd(double a, double b, double c) {
  double product = a * b, sum = product + c;
  double back = sum - product;
  return makeOdd(sum, (product - (sum - back)) + (c - back));
}

struct F16 {
  using Bits = uint16_t;
  using Math = double;
  static constexpr bool half = true;
  static constexpr unsigned mantissa = 10;
  static constexpr Bits canonicalNaN = 0x7fff;
  static double get(Bits bits) { return sem::f16ToF32(bits); }
  static Bits put(double value, Rounding rounding) { return sem::encode(sem::formatF16, value, {rounding}); }
};
struct Bf16 {
  using Bits = uint16_t;
  using Math = double;
  static constexpr bool half = true;
  static constexpr unsigned mantissa = 7;
  static constexpr Bits canonicalNaN = 0x7fff;
  static double get(Bits bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static Bits put(double value, Rounding rounding) { return sem::encode(sem::formatBf16, value, {rounding}); }
};
/// f32 and f64 are computed in their own type, under a `RoundingScope`.
struct F32 {
  using Bits = uint32_t;
  using Math = float;
  static constexpr bool half = false;
  static constexpr unsigned mantissa = 23;
  static constexpr Bits canonicalNaN = 0x7fffffff;
  static float get(Bits bits) { return std::bit_cast<float>(bits); }
  static Bits put(float value, Rounding) { return value == value ? std::bit_cast<Bits>(value) : canonicalNaN; }
};
struct F64 {
  using Bits = uint64_t;
  using Math = double;
  static constexpr bool half = false;
  static constexpr unsigned mantissa = 52;
  static constexpr Bits canonicalNaN = 0x7ff8000000000000;
  static double get(Bits bits) { return std::bit_cast<double>(bits); }
  static Bits put(double value, Rounding) { return std::bit_cast<Bits>(value); }
};

template <typename Format>
constexpr typename Format::Bits signOf = typename Format::Bits(1) << (sizeof(typename Format::Bits) * 8 - 1);
template <typename Format> bool isNaN(typename Format::Bits bits) {
  auto value = Format::get(bits);
  return value != value;
}
/// What becomes of a NaN that passes through an instruction: f64 makes it quiet, the others have one NaN only.
template <typename Format> typename Format::Bits passNaN(typename Format::Bits bits) {
  if constexpr (std::is_same_v<Format, F64>)
    return bits | uint64_t(1) << 51;
  return Format::canonicalNaN;
}
/// An addition of f64 where the L2 does it, atomic or bulk: a NaN is handed on as it is, that of the operand before
/// that of the place (H200, gemmc-microtests).
inline uint64_t addF64InMemory(uint64_t old, uint64_t operand) {
  if (isNaN<F64>(operand) || isNaN<F64>(old))
    return isNaN<F64>(operand) ? operand : old;
  return F64::put(F64::get(old) + F64::get(operand), Rounding::nearest);
}
/// `.ftz` flushes what is below the smallest normal number after rounding to full precision, as if there were no
/// subnormal numbers: such a result shows as the smallest normal one here, `value` (rounded to odd) tells.
inline bool flushesF32(double value) { return std::fabs(static_cast<float>(value * 0x1p64)) < 0x1p-62f; }
inline bool flushesF16(double value, Rounding rounding) { return (F16::put(value * 16, rounding) & 0x7fff) < 0x1400; }

/// Subnormal numbers become zeros of their sign.
template <typename Format> typename Format::Bits flushSubnormal(typename Format::Bits bits) {
  using Bits = typename Format::Bits;
  constexpr Bits sign = Bits(1) << (sizeof(Bits) * 8 - 1);
  bool zeroField = !((bits & static_cast<Bits>(~sign)) >> Format::mantissa);
  return zeroField ? static_cast<Bits>(bits & sign) : bits;
}

} // namespace gemmc::emu
