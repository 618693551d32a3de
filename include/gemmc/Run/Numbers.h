/// Elements as numbers, and random numbers: what inputs and references are made of. Conversions are exact or round
/// once, to nearest even, straight from double; they are written here and not taken from a compiler's half type,
/// because they judge results.
#pragma once
#include "gemmc/Support/Types.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <cstdint>
#include <vector>

namespace gemmc::run {

/// A binary interchange format: 1 sign bit, exponent bits, fraction bits.
struct FloatFormat {
  int exponentBits, fractionBits;
  bool noInfinity = false; ///< e4m3: the largest exponent is one of numbers, all ones are a NaN (PTX ISA 5.2.3).
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int precision() const { return fractionBits + 1; } ///< Significant bits p; rounding to nearest errs by 2^-p at most.
  int minExponent() const { return 1 - bias(); }     ///< Of the smallest normal number.
  double maxFinite() const;
};
/// Of the floating-point types; nullopt for integers, and for a type that the harness cannot make or check. tf32 has
/// the format of what is multiplied, the upper 19 of its 32 bits.
std::optional<FloatFormat> formatOf(Elem type);
/// Whether matrices of `type` can be made and checked.
bool isKnown(Elem type);
/// The smallest and largest value of an integer type.
int64_t lowestOf(Elem type);
int64_t highestOf(Elem type);

/// The value of `bits`; of a tf32 that of its upper 19 bits, as the tensor cores see it.
double decode(Elem type, uint64_t bits);
/// The same for many elements: a table for types of up to 16 bits, several times faster than arithmetic.
class Decoder {
public:
  explicit Decoder(Elem type);
  double operator()(uint64_t bits) const { return table.empty() ? decode(type, bits) : table[bits]; }

private:
  Elem type;
  std::vector<double> table;
};
/// The nearest value, ties to even, overflow to infinity (of e4m3 to NaN), subnormals kept; any NaN becomes all ones
/// but the sign. An integer that is
/// too large keeps its low bits; a tf32 keeps the bits of an f32.
uint64_t encode(Elem type, double value);

/// Two bytes that fill guard zones and unwritten results: a NaN in f16, bf16, f32 and f64 alike, and one with a payload
/// that no arithmetic gives. In integers it is a number like any other.
constexpr uint16_t poison = 0xfff5;
uint64_t poisonOf(Elem type);

/// xoshiro256++ (Blackman and Vigna), seeded by splitmix64. Same seed, same numbers, on every machine.
class Random {
public:
  explicit Random(uint64_t seed);
  uint64_t next();
  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  double unit(); ///< In [0, 1).
  double normal();

private:
  std::array<uint64_t, 4> state;
};

/// Calls `body(i)` for all i in [0, count) on up to `threads` threads (0 = all cores).
void parallelFor(int64_t count, unsigned threads, llvm::function_ref<void(int64_t)> body);

} // namespace gemmc::run
