/// Operands that show differences: random bits, edges of each format, sums that cancel, and plain normal numbers.
#pragma once
#include "gemmc/PTX/IR.h"
#include <cstdint>

namespace gemmc::microtests {

/// xoshiro256**: the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed);
  uint64_t bits();
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((bits() >> 32) * limit >> 32); }
  int between(int low, int high) { return low + static_cast<int>(below(high - low + 1)); }
  bool chance(unsigned oneIn) { return below(oneIn) == 0; }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal();

private:
  uint64_t state[4];
};

/// Fields of a floating-point format; `padding`: low bits that carry nothing (tf32).
struct Fields {
  unsigned exponent, fraction, padding;
  unsigned width() const { return 1 + exponent + fraction + padding; }
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
/// Nullptr for what is no floating-point number.
const Fields *fieldsOf(ptx::Type type);
unsigned widthOf(ptx::Type type); ///< Bits; packed pairs count whole.

/// How the elements of one matrix are drawn. One style for a whole operand, so that rare events (NaN) do not drown
/// everything else in long sums.
class Style {
public:
  /// `exponent`: around which magnitude (unbiased).
  Style(Random &random, ptx::Type type, int exponent);
  /// The addend of products whose factors are around `exponent`.
  static Style addend(Random &random, ptx::Type type, int exponent);
  uint64_t draw(Random &random) const;

private:
  enum Kind : uint8_t {
    bits,
    finite,
    normal,
    near,
    window,
    cancel,
    edges,
    sprinkled,
    large,
    tiny,
    zeros,
    powers,
    kinds
  };
  uint64_t drawFloat(Random &random, Kind of) const;
  uint64_t drawInteger(Random &random) const;
  ptx::Type type;
  Kind kind;
  int base;
  uint64_t pool[3];
};

/// One scalar operand: a mixture by element.
uint64_t drawScalar(Random &random, ptx::Type type);
/// An operand near another one: equal, its negative, a few units away.
uint64_t drawNear(Random &random, ptx::Type type, uint64_t other);

} // namespace gemmc::microtests
