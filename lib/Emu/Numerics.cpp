#include "gemmc/Emu/Numerics.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace gemmc::emu::sem {

namespace {

/// Codes without sign and padding.
uint32_t codeOfNaN(const Format &format) { return (1u << (format.exponent + format.fraction)) - 1; }
uint32_t codeOfLargest(const Format &format) {
  return format.infinity ? codeOfNaN(format) - (1u << format.fraction) : codeOfNaN(format) - 1;
}
/// What stands for a value that is too large.
uint32_t codeOfOverflow(const Format &format) {
  return format.infinity ? codeOfLargest(format) + 1 : codeOfNaN(format);
}

/// Whether to round away from zero, given the parts of the exact magnitude: `whole` steps, and the rest as a fraction
/// `rest / 2^shift` of a step.
bool roundsUp(Round round, bool negative, uint64_t whole, uint64_t rest, unsigned shift) {
  uint64_t half = uint64_t(1) << (shift - 1);
  switch (round) {
  case Round::nearest:
    return rest > half || (rest == half && (whole & 1));
  case Round::nearestAway:
    return rest >= half;
  case Round::zero:
    return false;
  case Round::down:
    return negative && rest;
  case Round::up:
    return !negative && rest;
  }
  return false;
}

/// The code of a finite magnitude, rounded; it may lie beyond the largest one. `significand * 2^exponent` is the value,
/// with 53 significant bits at most.
uint64_t roundedCode(const Format &format, uint64_t significand, int exponent, Round round, bool negative) {
  if (!significand)
    return 0;
  int bias = (1 << (format.exponent - 1)) - 1;
  int top = exponent + 63 - std::countl_zero(significand); // 2^top <= value < 2^(top + 1)
  int step = std::max(top, 1 - bias) - format.fraction;    // the format's steps at this value are 2^step
  int shift = std::min(step - exponent, 62);               // further out, nothing is left but the sticky rest
  uint64_t whole = shift > 0 ? significand >> shift : significand << -shift;
  uint64_t rest = shift > 0 ? significand - (whole << shift) : 0;
  if (rest && roundsUp(round, negative, whole, rest, shift))
    ++whole;
  // Subnormals share the step of the smallest normal numbers, so that a carry into the next exponent just works.
  return whole + (static_cast<uint64_t>(step + format.fraction + bias - 1) << format.fraction);
}

bool overflowsToLargest(Round round, bool negative) {
  return round == Round::zero || (round == Round::down && !negative) || (round == Round::up && negative);
}

template <typename Array> Array makeTable(const Format &format) {
  Array table;
  for (uint32_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<float>(decode(format, i));
  return table;
}

} // namespace

uint32_t encode(const Format &format, double value, CvtMode mode) {
  if (std::isnan(value))
    return codeOfNaN(format) << format.padding;
  bool negative = std::signbit(value);
  uint64_t code;
  if (std::isinf(value)) {
    code = mode.satfinite ? codeOfLargest(format) : codeOfOverflow(format);
  } else {
    auto bits = std::bit_cast<uint64_t>(value);
    uint64_t field = bits >> 52 & 0x7ff, fraction = bits & ((uint64_t(1) << 52) - 1);
    uint64_t significand = field ? fraction | uint64_t(1) << 52 : fraction;
    code =
        roundedCode(format, significand, static_cast<int>(std::max<uint64_t>(field, 1)) - 1075, mode.round, negative);
    if (code > codeOfLargest(format))
      code =
          mode.satfinite || overflowsToLargest(mode.round, negative) ? codeOfLargest(format) : codeOfOverflow(format);
  }
  if (negative && mode.relu && !(code == codeOfNaN(format)))
    return 0;
  if (negative)
    code |= uint64_t(1) << (format.exponent + format.fraction);
  return static_cast<uint32_t>(code << format.padding);
}

double decode(const Format &format, uint32_t bits) {
  bits >>= format.padding;
  uint32_t fraction = bits & ((1u << format.fraction) - 1);
  uint32_t field = bits >> format.fraction & ((1u << format.exponent) - 1);
  bool negative = bits >> (format.exponent + format.fraction) & 1;
  uint32_t code = field << format.fraction | fraction;
  int bias = (1 << (format.exponent - 1)) - 1;
  double magnitude;
  if (code > codeOfLargest(format))
    magnitude = format.infinity && !fraction ? std::numeric_limits<double>::infinity()
                                             : std::numeric_limits<double>::quiet_NaN();
  else if (field)
    magnitude = std::ldexp(fraction + (1u << format.fraction), static_cast<int>(field) - bias - format.fraction);
  else
    magnitude = std::ldexp(fraction, 1 - bias - format.fraction);
  return negative ? -magnitude : magnitude;
}

const std::array<float, 65536> &f16Table() {
  static const auto table = makeTable<std::array<float, 65536>>(formatF16);
  return table;
}
const std::array<float, 256> &e4m3Table() {
  static const auto table = makeTable<std::array<float, 256>>(formatE4m3);
  return table;
}
const std::array<float, 256> &e5m2Table() {
  static const auto table = makeTable<std::array<float, 256>>(formatE5m2);
  return table;
}

const Format *formatOf(ptx::Type type) {
  switch (type) {
  case ptx::Type::f16:
    return &formatF16;
  case ptx::Type::bf16:
    return &formatBf16;
  case ptx::Type::tf32:
    return &formatTf32;
  case ptx::Type::e4m3:
    return &formatE4m3;
  case ptx::Type::e5m2:
    return &formatE5m2;
  case ptx::Type::f32:
    return &formatF32;
  default:
    return nullptr;
  }
}

} // namespace gemmc::emu::sem
