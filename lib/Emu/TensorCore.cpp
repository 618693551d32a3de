#include "gemmc/Emu/TensorCore.h"
#include "gemmc/Emu/Numerics.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace gemmc::emu::sem {

namespace {

/// Of a zero c in the fast path, where no product is as small.
constexpr int zeroExponent = -126;
/// Of zero: neither a product of a zero nor a zero c counts in the alignment (H200, every type).
constexpr int zeroFactor = -1000;
/// The fast path multiplies in f32. With factors of exponents in -moderate..moderate, products and their alignment stay
/// far from both ends of f32's range.
constexpr int moderate = 50;

/// Terms are aligned at this exponent at least: the card's answers to 10^4 dots of tiny powers of two in each of ten
/// families of tf32 and bf16 leave no other (H200, `protocol/24`; docs/emulator.md). Products of f16 and fp8 are
/// larger.
constexpr int smallestAlignment = -133;

constexpr uint32_t nanF32 = 0x7fffffff, nanF16 = 0x7fff;

int smallestExponent(ptx::Type type) {
  switch (type) {
  case ptx::Type::f16:
  case ptx::Type::e5m2:
    return -14;
  case ptx::Type::e4m3:
    return -6;
  default:
    return -126;
  }
}

/// Exponent of a finite value: of its leading bit, but not below the format's smallest.
int exponentOf(float value, int smallest, int ofZero) {
  auto bits = std::bit_cast<uint32_t>(value) & 0x7fffffff;
  int exponent = static_cast<int>(bits >> 23) - 127;
  return bits ? std::max(exponent, smallest) : ofZero;
}

float accumulatorValue(const DotModel &model, uint32_t bits) {
  return model.f16Result ? f16ToF32(static_cast<uint16_t>(bits)) : std::bit_cast<float>(bits);
}
int accumulatorExponent(const DotModel &model, float value) {
  return exponentOf(value, model.f16Result ? -14 : -126, zeroExponent);
}

/// Cuts an f32 result (as an exact double) to `fraction` bits below its leading bit, or below 2^-126 for smaller ones.
uint32_t truncateToF32(double value, unsigned fraction) {
  if (value == 0)
    return 0;
  int exponent = std::max(std::ilogb(value), -126);
  double steps = std::trunc(std::ldexp(value, static_cast<int>(fraction) - exponent));
  double cut = std::ldexp(steps, exponent - static_cast<int>(fraction));
  return cut == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(cut)); // 2^128 and more become infinity
}

uint32_t roundResult(const DotModel &model, double value) {
  if (!model.f16Result)
    return truncateToF32(value, model.resultFraction);
  uint32_t bits = encode(formatF16, value);
  return bits == 0x8000 ? 0 : bits;
}

/// Infinity or NaN by IEEE 754 (the finite sum cannot overflow a double).
uint32_t specialResult(const DotModel &model, double sum) {
  if (std::isnan(sum))
    return model.f16Result ? nanF16 : nanF32;
  uint32_t infinity = model.f16Result ? 0x7c00 : 0x7f800000;
  return sum < 0 ? infinity | (model.f16Result ? 0x8000 : 0x80000000) : infinity;
}

/// One fused sum over elements [begin, end) of K.
uint32_t fusedStep(const DotModel &model, const float *a, const int16_t *ea, const float *b, const int16_t *eb,
                   unsigned count, uint32_t cBits) {
  float c = accumulatorValue(model, cBits);
  double plain = c;
  for (unsigned i = 0; i < count; ++i)
    plain += static_cast<double>(a[i]) * b[i];
  if (!std::isfinite(plain))
    return specialResult(model, plain);
  int largest = std::max(model.smallest, c == 0 ? zeroFactor : accumulatorExponent(model, c));
  for (unsigned i = 0; i < count; ++i)
    largest = std::max(largest, ea[i] + eb[i]);
  int unit = static_cast<int>(model.fraction) - largest; // terms are counted in 2^-unit
  double sum = std::trunc(std::ldexp(static_cast<double>(c), unit));
  for (unsigned i = 0; i < count; ++i)
    sum += std::trunc(std::ldexp(static_cast<double>(a[i]) * b[i], unit));
  return roundResult(model, std::ldexp(sum, -unit));
}

// ---- The fast path: eight columns at a time ----

constexpr unsigned width = 8;
typedef float FloatV __attribute__((vector_size(4 * width)));
typedef int32_t IntV __attribute__((vector_size(4 * width)));
typedef int16_t ShortV __attribute__((vector_size(2 * width)));

/// Products that may be added in 32 bits: each is below 4 * 2^25 * (1 - 2^-10)^2.
constexpr unsigned chunk = 16;
/// Largest K of an instruction with floating-point factors.
constexpr unsigned maxK = 32;

/// Columns j .. j+7 of B, transposed: [k][column].
struct Panel {
  FloatV values[maxK];
  ShortV exponents[maxK];
  bool plain;

  Panel(const Factors &b, unsigned first) {
    plain = true;
    for (unsigned lane = 0; lane < width; ++lane) {
      unsigned line = std::min(first + lane, b.lines - 1);
      plain &= b.plain[line] != 0;
      for (unsigned i = 0; i < b.k; ++i) {
        values[i][lane] = b.values[line * b.k + i];
        exponents[i][lane] = b.exponents[line * b.k + i];
      }
    }
  }
};

/// One fused sum for eight columns: c and exponents in, exact results out as doubles. False for lanes whose c is
/// special.
struct Accumulators {
  double value[width];
  int exponent[width];
};

/// One fused sum for eight columns. The scale of products is clamped where the largest exponent is below -100: then all
/// products are zero, since moderate factors have none so small, and c alone counts: `model.smallest` is below all
/// that.
void fusedStepFast(const DotModel &model, const float *a, const int16_t *ea, const Panel &b, unsigned begin,
                   unsigned end, Accumulators &acc) {
  ShortV largest;
  for (unsigned lane = 0; lane < width; ++lane)
    largest[lane] = static_cast<int16_t>(acc.exponent[lane]);
  for (unsigned i = begin; i < end; ++i) {
    ShortV e = b.exponents[i] + ea[i];
    largest = e > largest ? e : largest;
  }
  IntV aligned = __builtin_convertvector(largest, IntV);
  IntV shift = static_cast<int>(model.fraction) - aligned;
  IntV clamped = shift > 126 ? IntV{} + 126 : shift;
  FloatV scale = (FloatV)((clamped + 127) << 23);
  double sums[width];
  for (unsigned lane = 0; lane < width; ++lane)
    sums[lane] = static_cast<int32_t>(acc.value[lane] * std::bit_cast<double>(uint64_t(1023 + shift[lane]) << 52));
  for (unsigned from = begin; from < end; from += chunk) {
    IntV sum{};
    for (unsigned i = from, to = std::min(from + chunk, end); i < to; ++i)
      sum += __builtin_convertvector(b.values[i] * a[i] * scale, IntV);
    for (unsigned lane = 0; lane < width; ++lane)
      sums[lane] += sum[lane];
  }
  for (unsigned lane = 0; lane < width; ++lane)
    acc.value[lane] = sums[lane] * std::bit_cast<double>(uint64_t(1023 - shift[lane]) << 52);
}

/// The same as `roundResult`, by cutting the double. Below 2^-126 an f32 has fewer bits, and the conversion would
/// round.
uint32_t quickResult(const DotModel &model, double value) {
  constexpr double smallestNormal = 0x1p-126;
  if (model.f16Result || (value != 0 && std::abs(value) < smallestNormal))
    return roundResult(model, value);
  uint64_t kept = std::bit_cast<uint64_t>(value) & ~uint64_t(0) << (52 - model.resultFraction);
  return value == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(kept)));
}

/// Up to eight elements of a row of D.
void fusedDotsFast(const DotModel &model, const Factors &a, unsigned row, const Factors &b, unsigned column,
                   const Panel &panel, unsigned count, uint32_t *d) {
  const float *av = &a.values[row * a.k];
  const int16_t *ae = &a.exponents[row * a.k];
  uint32_t bits[width] = {};
  bool good[width];
  std::copy(d, d + count, bits);
  std::fill(good, good + width, true);
  for (unsigned begin = 0; begin < a.k;) {
    unsigned end = begin + std::min(model.step, a.k - begin);
    Accumulators acc;
    for (unsigned lane = 0; lane < width; ++lane) {
      float c = accumulatorValue(model, bits[lane]);
      good[lane] &= std::isfinite(c);
      acc.value[lane] = good[lane] ? c : 0;
      acc.exponent[lane] = good[lane] ? accumulatorExponent(model, c) : zeroExponent;
    }
    fusedStepFast(model, av, ae, panel, begin, end, acc);
    for (unsigned lane = 0; lane < width; ++lane)
      bits[lane] = quickResult(model, acc.value[lane]);
    begin = end;
  }
  for (unsigned lane = 0; lane < count; ++lane)
    d[lane] = good[lane] ? bits[lane] : fusedDot(model, a, row, b, column + lane, d[lane]);
}

} // namespace

Chip chipOf(unsigned sm) { return sm >= 90 ? Chip::hopper : sm >= 89 ? Chip::ada : Chip::ampere; }

DotModel dotModel(Chip chip, bool wgmma, ptx::Type a, ptx::Type d, unsigned k) {
  bool fp8 = a == ptx::Type::e4m3 || a == ptx::Type::e5m2;
  DotModel model;
  model.f16Result = d == ptx::Type::f16;
  model.fraction = chip == Chip::hopper ? 25 : 24;
  if (fp8 && (chip == Chip::ada || wgmma))
    model.fraction = model.resultFraction = 13;
  if (chip != Chip::hopper)
    model.step = fp8 ? 16 : 128 / (a == ptx::Type::tf32 ? 32 : 16);
  model.step = std::min(model.step, k);
  if (chip == Chip::hopper)
    model.smallest = smallestAlignment;
  return model;
}

void Factors::resize(unsigned newLines, unsigned newK) {
  lines = newLines;
  k = newK;
  values.resize(size_t(lines) * k);
  exponents.resize(size_t(lines) * k);
  plain.resize(lines);
}

namespace {

template <typename Bits, typename Convert>
void fillWith(Factors &to, unsigned line, unsigned i, unsigned count, const void *data, bool alongLines, bool negate,
              int smallest, Convert convert) {
  const auto *bytes = static_cast<const std::byte *>(data);
  size_t at = size_t(line) * to.k + i, step = alongLines ? to.k : 1;
  uint32_t sign = negate ? 0x80000000 : 0;
  for (unsigned j = 0; j < count; ++j, at += step) {
    Bits bits;
    std::memcpy(&bits, bytes + j * sizeof(Bits), sizeof(Bits));
    float value = convert(bits);
    to.values[at] = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ sign);
    to.exponents[at] = static_cast<int16_t>(exponentOf(value, smallest, zeroFactor));
  }
}

} // namespace

void Factors::fill(unsigned line, unsigned i, unsigned count, ptx::Type type, const void *data, bool alongLines,
                   bool negate) {
  auto with = [&]<typename Bits>(Bits, auto convert) {
    fillWith<Bits>(*this, line, i, count, data, alongLines, negate, smallestExponent(type), convert);
  };
  switch (type) {
  case ptx::Type::f16:
    return with(uint16_t(), [&table = f16Table()](uint16_t bits) { return table[bits]; });
  case ptx::Type::bf16:
    return with(uint16_t(), bf16ToF32);
  case ptx::Type::e4m3:
    return with(uint8_t(), [&table = e4m3Table()](uint8_t bits) { return table[bits]; });
  case ptx::Type::e5m2:
    return with(uint8_t(), [&table = e5m2Table()](uint8_t bits) { return table[bits]; });
  default:
    return with(uint32_t(), tf32ToF32);
  }
}

void Factors::finish() {
  for (unsigned line = 0; line < lines; ++line) {
    bool good = true;
    for (size_t i = size_t(line) * k, end = i + k; i < end; ++i)
      good &= values[i] == 0 || (exponents[i] >= -moderate && exponents[i] <= moderate);
    plain[line] = good; // the exponent of infinity and NaN is 128
  }
}

uint32_t fusedDot(const DotModel &model, const Factors &a, unsigned row, const Factors &b, unsigned column,
                  uint32_t c) {
  for (unsigned begin = 0; begin < a.k;) {
    unsigned count = std::min(model.step, a.k - begin);
    size_t i = size_t(row) * a.k + begin, j = size_t(column) * b.k + begin;
    c = fusedStep(model, &a.values[i], &a.exponents[i], &b.values[j], &b.exponents[j], count, c);
    begin += count;
  }
  return c;
}

void fusedDots(const DotModel &model, const Factors &a, const Factors &b, uint32_t *acc, unsigned stride) {
  for (unsigned column = 0; column < b.lines; column += width) {
    unsigned count = std::min(width, b.lines - column);
    Panel panel(b, column);
    for (unsigned row = 0; row < a.lines; ++row) {
      uint32_t *d = acc + size_t(row) * stride + column;
      if (panel.plain && a.plain[row])
        fusedDotsFast(model, a, row, b, column, panel, count, d);
      else
        for (unsigned lane = 0; lane < count; ++lane)
          d[lane] = fusedDot(model, a, row, b, column + lane, d[lane]);
    }
  }
}

void integerDots(const int16_t *a, unsigned rows, const int16_t *b, unsigned columns, unsigned k, bool satfinite,
                 uint32_t *acc, unsigned stride) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      const int16_t *x = a + size_t(row) * k, *y = b + size_t(column) * k;
      int32_t dot = 0; // at most 64 products below 2^16
      for (unsigned i = 0; i < k; ++i)
        dot += int32_t(x[i]) * y[i];
      uint32_t &d = acc[size_t(row) * stride + column];
      int64_t sum = int64_t(dot) + static_cast<int32_t>(d);
      if (satfinite)
        sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      d = static_cast<uint32_t>(sum);
    }
}

void bitDots(const uint32_t *a, unsigned rows, const uint32_t *b, unsigned columns, unsigned words, bool exclusive,
             uint32_t *acc, unsigned stride) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      const uint32_t *x = a + size_t(row) * words, *y = b + size_t(column) * words;
      uint32_t count = 0;
      for (unsigned i = 0; i < words; ++i)
        count += std::popcount(exclusive ? x[i] ^ y[i] : x[i] & y[i]);
      acc[size_t(row) * stride + column] += count;
    }
}

} // namespace gemmc::emu::sem
