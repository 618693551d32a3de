// The product behind mma.sync and wmma: chooses the arithmetic of the types.
//
// Some forms are no instructions of the chip: ptxas makes several of one, seen in what ptxas 13.0 makes for sm_90a, and
// equal to the H200 bit for bit. m8n8k4 of f16 becomes shuffles and f32 arithmetic; fp8 becomes f16, two products and
// an addition; wmma of tf32 two products; wmma with f32 in and f16 out a product in f32 and a conversion.
#include "MmaParts.h"
#include <cfenv>
#include <cmath>

namespace gemmc::emu::sem {

namespace {

using ptx::Type;

/// The host's rounding mode while it lives. Values cross its ends through memory, since the compiler does not know that
/// arithmetic depends on it.
class HostRounding {
public:
  explicit HostRounding(Round round) {
    int mode = round == Round::zero   ? FE_TOWARDZERO
               : round == Round::down ? FE_DOWNWARD
               : round == Round::up   ? FE_UPWARD
                                      : FE_TONEAREST;
    std::fesetround(mode);
    asm volatile("" ::: "memory");
  }
  ~HostRounding() {
    asm volatile("" ::: "memory");
    std::fesetround(FE_TONEAREST);
  }
};

double elementF64(const uint32_t *line, unsigned i) {
  double value;
  std::memcpy(&value, line + 2 * i, 8);
  return value;
}

bool isNaN(double value) { return value != value; }
double quiet(double value) { return std::bit_cast<double>(std::bit_cast<uint64_t>(value) | uint64_t(1) << 51); }

/// The NaN of b, else of the sum, else of a is passed on.
double fusedF64(double a, double b, double sum) {
  double result = std::fma(a, b, sum);
  return !isNaN(result) ? result : isNaN(b) ? quiet(b) : isNaN(sum) ? quiet(sum) : isNaN(a) ? quiet(a) : result;
}
/// f64: fused multiply-adds in the order of K.
void multiplyF64(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint64_t> &acc) {
  HostRounding rounding(form.round);
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < form.n; ++column) {
      uint64_t &at = acc[row * form.n + column];
      auto sum = std::bit_cast<double>(at);
      for (unsigned i = 0; i < form.k; ++i)
        sum = fusedF64(elementF64(a.line(row), i), elementF64(b.line(column), i), sum);
      at = std::bit_cast<uint64_t>(sum);
    }
}

/// f32 and f16 accumulators as words. c of f16 becomes f32 when d is (m8n8k4 and wmma).
uint32_t convertC(Type from, Type to, uint64_t bits) {
  if (from == Type::f16 && to == Type::f32)
    return std::bit_cast<uint32_t>(f16ToF32(static_cast<uint16_t>(bits)));
  return static_cast<uint32_t>(bits);
}

void loadFactors(Factors &factors, Type type, unsigned count, unsigned k, const Lines &lines) {
  factors.resize(count, k);
  for (unsigned line = 0; line < count; ++line)
    factors.fill(line, 0, k, type, lines.line(line));
  factors.finish();
}

/// `step`: elements of K in one instruction of the chip.
void multiplyFloat(const MmaForm &form, Type d, unsigned step, const Lines &a, const Lines &b,
                   std::vector<uint32_t> &acc) {
  static thread_local Factors rows, columns;
  loadFactors(rows, form.a, form.m, form.k, a);
  loadFactors(columns, form.b, form.n, form.k, b);
  fusedDots(dotModel(form.chip, false, form.a, d, step), rows, columns, acc.data(), form.n);
}

uint32_t addF32(float a, float b) {
  float sum = a + b;
  return sum == sum ? std::bit_cast<uint32_t>(sum) : 0x7fffffff;
}

/// Elements 0, 1, 4, 5... of K (`half` 0), or 2, 3, 6, 7...: the bytes of one half of each register, as f16.
void loadHalves(Factors &factors, Type type, unsigned count, unsigned k, const Lines &lines, unsigned half) {
  factors.resize(count, k / 2);
  for (unsigned line = 0; line < count; ++line)
    for (unsigned i = 0; i < k / 2; ++i) {
      unsigned at = i / 2 * 4 + half * 2 + i % 2;
      auto byte = static_cast<uint8_t>(lines.line(line)[at / 4] >> at % 4 * 8);
      uint16_t value = type == Type::e4m3 ? e4m3ToF16(byte) : e5m2ToF16(byte);
      factors.fill(line, i, 1, Type::f16, &value);
    }
  factors.finish();
}
/// fp8 on Hopper: two products of f16 from zero, then c.
void multiplyFp8(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint32_t> &acc) {
  static thread_local Factors rows, columns;
  std::vector<uint32_t> sums(acc.size());
  for (unsigned half = 0; half < 2; ++half) {
    loadHalves(rows, form.a, form.m, form.k, a, half);
    loadHalves(columns, form.b, form.n, form.k, b, half);
    fusedDots(dotModel(form.chip, false, Type::f16, form.d, form.k / 2), rows, columns, sums.data(), form.n);
  }
  auto half = [](uint32_t bits) { return f16ToF32(static_cast<uint16_t>(bits)); };
  for (size_t i = 0; i < acc.size(); ++i)
    acc[i] = form.d == Type::f16 ? f32ToF16(half(sums[i]) + half(acc[i]))
                                 : addF32(std::bit_cast<float>(sums[i]), std::bit_cast<float>(acc[i]));
}

/// m8n8k4 of f16: an f32 sum adds all four products to zero, and that to c; an f16 sum adds two and two to c.
void multiplyQuad(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint32_t> &acc) {
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      float x[4], y[4];
      for (unsigned i = 0; i < 4; ++i) {
        x[i] = f16ToF32(static_cast<uint16_t>(a.line(row)[i / 2] >> i % 2 * 16));
        y[i] = f16ToF32(static_cast<uint16_t>(b.line(column)[i / 2] >> i % 2 * 16));
      }
      uint32_t &d = acc[row * 8 + column];
      if (form.d == Type::f32) {
        float sum = 0;
        for (unsigned i = 0; i < 4; ++i)
          sum = std::fma(x[i], y[i], sum);
        d = addF32(std::bit_cast<float>(d), sum);
        continue;
      }
      float low = std::fma(x[1], y[1], x[0] * y[0]), high = std::fma(x[3], y[3], x[2] * y[2]);
      d = f32ToF16(f16ToF32(static_cast<uint16_t>(d)) + low + high);
    }
}

void multiplyFactors(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint32_t> &acc) {
  bool fp8 = form.a == Type::e4m3 || form.a == Type::e5m2;
  if (form.a == Type::f16 && form.k == 4)
    return multiplyQuad(form, a, b, acc);
  if (fp8 && form.chip == Chip::hopper)
    return multiplyFp8(form, a, b, acc);
  bool converts = form.c == Type::f32 && form.d == Type::f16;
  bool isWmma = form.n != 8 || form.m == 32;
  multiplyFloat(form, converts ? Type::f32 : form.d, isWmma && form.a == Type::tf32 ? 4 : form.k, a, b, acc);
  if (converts)
    for (uint32_t &d : acc)
      d = f32ToF16(std::bit_cast<float>(d));
}

void loadIntegers(std::vector<int16_t> &integers, Type type, unsigned count, unsigned k, const Lines &lines) {
  unsigned bits = elementBits(type);
  bool isSigned = type == Type::s8 || type == Type::s4;
  integers.resize(size_t(count) * k);
  for (unsigned line = 0; line < count; ++line)
    for (unsigned i = 0; i < k; ++i) {
      uint32_t value = lines.line(line)[i * bits / 32] << (32 - bits - i * bits % 32); // at the top of the word
      integers[line * k + i] = static_cast<int16_t>(isSigned ? static_cast<int32_t>(value) >> (32 - bits)
                                                             : static_cast<int32_t>(value >> (32 - bits)));
    }
}

void multiplyInteger(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint32_t> &acc) {
  static thread_local std::vector<int16_t> rows, columns;
  loadIntegers(rows, form.a, form.m, form.k, a);
  loadIntegers(columns, form.b, form.n, form.k, b);
  integerDots(rows.data(), form.m, columns.data(), form.n, form.k, form.satfinite, acc.data(), form.n);
}

} // namespace

void multiply(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint64_t> &acc) {
  if (form.a == Type::f64)
    return multiplyF64(form, a, b, acc);
  static thread_local std::vector<uint32_t> words;
  words.resize(acc.size());
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = convertC(form.c, form.d, acc[i]);
  switch (form.a) {
  case Type::s8:
  case Type::u8:
  case Type::s4:
  case Type::u4:
    multiplyInteger(form, a, b, words);
    break;
  case Type::b1:
    bitDots(a.data.data(), form.m, b.data.data(), form.n, a.words, form.exclusive, words.data(), form.n);
    break;
  default:
    multiplyFactors(form, a, b, words);
  }
  llvm::copy(words, acc.begin());
}

} // namespace gemmc::emu::sem
