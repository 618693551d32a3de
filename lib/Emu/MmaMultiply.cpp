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

/// f64: fused multiply-adds in the order of K.
void multiplyF64(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc) {
  HostRounding rounding(form.round);
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < form.n; ++column) {
      auto sum = std::bit_cast<double>(acc.at(row, column));
      for (unsigned i = 0; i < form.k; ++i)
        sum = std::fma(std::bit_cast<double>(a.at(row, i)), std::bit_cast<double>(b.at(i, column)), sum);
      acc.at(row, column) = std::bit_cast<uint64_t>(sum);
    }
}

void loadFactors(Factors &factors, Type type, unsigned lines, unsigned k, auto at) {
  factors.resize(lines, k);
  uint32_t line[64];
  std::byte packed[256];
  unsigned bytes = elementBits(type) / 8;
  for (unsigned l = 0; l < lines; ++l) {
    for (unsigned i = 0; i < k; ++i) {
      line[i] = static_cast<uint32_t>(at(l, i));
      std::memcpy(packed + i * bytes, &line[i], bytes);
    }
    factors.fill(l, 0, k, type, packed);
  }
  factors.finish();
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

void multiplyFloat(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc) {
  static thread_local Factors rows, columns;
  static thread_local std::vector<uint32_t> words;
  loadFactors(rows, form.a, form.m, form.k, [&](unsigned line, unsigned i) { return a.at(line, i); });
  loadFactors(columns, form.b, form.n, form.k, [&](unsigned line, unsigned i) { return b.at(i, line); });
  words.resize(acc.elements.size());
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = convertC(form.c, form.d, acc.elements[i]);
  fusedDots(dotModel(form.chip, false, form.a, form.d, form.k), rows, columns, words.data(), form.n);
  llvm::copy(words, acc.elements.begin());
}

int16_t integerValue(Type type, uint64_t bits) {
  switch (type) {
  case Type::s8:
    return static_cast<int8_t>(bits);
  case Type::s4:
    return static_cast<int16_t>((bits ^ 8) - 8);
  default:
    return static_cast<int16_t>(bits);
  }
}

void multiplyInteger(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc) {
  std::vector<int16_t> rows(size_t(form.m) * form.k), columns(size_t(form.n) * form.k);
  for (unsigned i = 0; i < form.k; ++i) {
    for (unsigned row = 0; row < form.m; ++row)
      rows[row * form.k + i] = integerValue(form.a, a.at(row, i));
    for (unsigned column = 0; column < form.n; ++column)
      columns[column * form.k + i] = integerValue(form.b, b.at(i, column));
  }
  std::vector<uint32_t> words(acc.elements.begin(), acc.elements.end());
  integerDots(rows.data(), form.m, columns.data(), form.n, form.k, form.satfinite, words.data(), form.n);
  llvm::copy(words, acc.elements.begin());
}

void multiplyBits(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc) {
  unsigned perLine = form.k / 32;
  std::vector<uint32_t> rows(form.m * perLine), columns(form.n * perLine);
  for (unsigned i = 0; i < form.k; ++i) {
    for (unsigned row = 0; row < form.m; ++row)
      rows[row * perLine + i / 32] |= static_cast<uint32_t>(a.at(row, i)) << i % 32;
    for (unsigned column = 0; column < form.n; ++column)
      columns[column * perLine + i / 32] |= static_cast<uint32_t>(b.at(i, column)) << i % 32;
  }
  std::vector<uint32_t> words(acc.elements.begin(), acc.elements.end());
  bitDots(rows.data(), form.m, columns.data(), form.n, perLine, form.exclusive, words.data(), form.n);
  llvm::copy(words, acc.elements.begin());
}

} // namespace

void multiply(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc) {
  switch (form.a) {
  case Type::f64:
    return multiplyF64(form, a, b, acc);
  case Type::s8:
  case Type::u8:
  case Type::s4:
  case Type::u4:
    return multiplyInteger(form, a, b, acc);
  case Type::b1:
    return multiplyBits(form, a, b, acc);
  default:
    return multiplyFloat(form, a, b, acc);
  }
}

} // namespace gemmc::emu::sem
