/// Floating-point formats as the scalar instructions see them: bits in, a host type to compute in, bits out with one
/// rounding. NaN results are canonical, as on the hardware (f32 0x7fffffff, halves 0x7fff).
#pragma once
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

namespace gemmc::emu {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

/// The host's rounding mode while it lives. The compiler does not know that arithmetic depends on it, so values must
/// come from and go to memory across its ends.
class RoundingScope {
public:
  explicit RoundingScope(Rounding rounding) : changed(rounding != Rounding::Nearest) {
    if (changed)
      std::fesetround(rounding == Rounding::Zero ? FE_TOWARDZERO : rounding == Rounding::Down ? FE_DOWNWARD : FE_UPWARD);
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

/// Rounds to a format of `mantissa` stored bits and `exponent` bits with subnormals and infinity.
inline uint32_t roundTo(double value, unsigned exponent, unsigned mantissa, Rounding rounding) {
  uint32_t sign = std::signbit(value) ? 1u << (exponent + mantissa) : 0;
  uint32_t infinity = ((1u << exponent) - 1) << mantissa;
  if (value != value)
    return (1u << (exponent + mantissa)) - 1;
  double size = std::fabs(value);
  if (std::isinf(size))
    return sign | infinity;
  if (size == 0)
    return sign;
  int bias = (1 << (exponent - 1)) - 1, e = std::max(std::ilogb(size), 1 - bias);
  double scaled = std::ldexp(size, static_cast<int>(mantissa) - e); // exact, below 2^(mantissa + 1)
  double whole = std::floor(scaled), rest = scaled - whole;
  auto steps = static_cast<uint64_t>(whole);
  bool up = false;
  if (rounding == Rounding::Nearest)
    up = rest > 0.5 || (rest == 0.5 && (steps & 1));
  else if (rounding != Rounding::Zero)
    up = rest > 0 && (rounding == Rounding::Up) == !sign;
  steps += up;
  // Subnormals have exponent field 0 and the same step as the smallest normal numbers, so that the carry just works.
  uint64_t bits = steps + (static_cast<uint64_t>(e + bias - 1) << mantissa);
  if (bits < infinity)
    return sign | static_cast<uint32_t>(bits);
  bool toMax = rounding == Rounding::Zero || (rounding == Rounding::Up && sign) || (rounding == Rounding::Down && !sign);
  return sign | (toMax ? infinity - 1 : infinity);
}
inline double widen(uint32_t bits, unsigned exponent, unsigned mantissa) {
  int bias = (1 << (exponent - 1)) - 1;
  uint32_t field = bits >> mantissa & ((1u << exponent) - 1), fraction = bits & ((1u << mantissa) - 1);
  double size;
  if (field == (1u << exponent) - 1)
    size = fraction ? std::nan("") : INFINITY;
  else if (field)
    size = std::ldexp(fraction + (1u << mantissa), static_cast<int>(field) - bias - static_cast<int>(mantissa));
  else
    size = std::ldexp(fraction, 1 - bias - static_cast<int>(mantissa));
  return bits >> (exponent + mantissa) & 1 ? -size : size;
}

struct F16 {
  using Bits = uint16_t;
  using Math = double;
  static constexpr bool half = true;
  static constexpr unsigned mantissa = 10;
  static constexpr Bits canonicalNaN = 0x7fff;
  static double get(Bits bits) { return widen(bits, 5, 10); }
  static Bits put(double value, Rounding rounding) { return roundTo(value, 5, 10, rounding); }
};
struct Bf16 {
  using Bits = uint16_t;
  using Math = double;
  static constexpr bool half = true;
  static constexpr unsigned mantissa = 7;
  static constexpr Bits canonicalNaN = 0x7fff;
  static double get(Bits bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static Bits put(double value, Rounding rounding) { return roundTo(value, 8, 7, rounding); }
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

/// Subnormal numbers become zeros of their sign.
template <typename Format> typename Format::Bits flushSubnormal(typename Format::Bits bits) {
  using Bits = typename Format::Bits;
  constexpr Bits sign = Bits(1) << (sizeof(Bits) * 8 - 1);
  bool zeroField = !((bits & static_cast<Bits>(~sign)) >> Format::mantissa);
  return zeroField ? static_cast<Bits>(bits & sign) : bits;
}

} // namespace gemmc::emu
