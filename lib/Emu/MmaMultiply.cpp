// The product behind mma.sync and wmma: chooses the arithmetic of the types.
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

/// f64: fused multiply-adds in the order of K.
void multiplyF64(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint64_t> &acc) {
  HostRounding rounding(form.round);
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < form.n; ++column) {
      uint64_t &at = acc[row * form.n + column];
      auto sum = std::bit_cast<double>(at);
      for (unsigned i = 0; i < form.k; ++i)
        sum = std::fma(elementF64(a.line(row), i), elementF64(b.line(column), i), sum);
      at = std::bit_cast<uint64_t>(sum);
    }
}

/// f32 and f16 accumulators as words. c may be of another type than d (m8n8k4 and wmma): the conversion is exact from
/// f16 to f32, and rounds to nearest even the other way.
uint32_t convertC(Type from, Type to, uint64_t bits) {
  if (from == Type::f16 && to == Type::f32)
    return std::bit_cast<uint32_t>(f16ToF32(static_cast<uint16_t>(bits)));
  if (from == Type::f32 && to == Type::f16)
    return f32ToF16(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return static_cast<uint32_t>(bits);
}

void loadFactors(Factors &factors, Type type, unsigned count, unsigned k, const Lines &lines) {
  factors.resize(count, k);
  for (unsigned line = 0; line < count; ++line)
    factors.fill(line, 0, k, type, lines.line(line));
  factors.finish();
}

void multiplyFloat(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint32_t> &acc) {
  static thread_local Factors rows, columns;
  loadFactors(rows, form.a, form.m, form.k, a);
  loadFactors(columns, form.b, form.n, form.k, b);
  fusedDots(dotModel(form.chip, false, form.a, form.d, form.k), rows, columns, acc.data(), form.n);
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
    multiplyFloat(form, a, b, words);
  }
  llvm::copy(words, acc.begin());
}

} // namespace gemmc::emu::sem
