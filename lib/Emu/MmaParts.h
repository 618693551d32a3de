/// What mma.sync and wmma share: elements in registers, and the product of two gathered matrices.
#pragma once
#include "gemmc/Emu/Mma.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <vector>

namespace gemmc::emu::sem {

inline ptx::Type typeOf(const MmaForm &form, Role role) {
  switch (role) {
  case Role::a:
    return form.a;
  case Role::b:
    return form.b;
  case Role::c:
    return form.c;
  default:
    return form.d;
  }
}

/// Elements of matrices of f32, s32 and tf32 fill a register; those of f64 fill a 64-bit one.
inline unsigned elementBits(ptx::Type type) {
  switch (type) {
  case ptx::Type::f64:
    return 64;
  case ptx::Type::f16:
  case ptx::Type::bf16:
    return 16;
  case ptx::Type::e4m3:
  case ptx::Type::e5m2:
  case ptx::Type::s8:
  case ptx::Type::u8:
    return 8;
  case ptx::Type::s4:
  case ptx::Type::u4:
    return 4;
  case ptx::Type::b1:
    return 1;
  default:
    return 32;
  }
}
inline unsigned elementsPerRegister(ptx::Type type) {
  unsigned bits = elementBits(type);
  return bits > 32 ? 1 : 32 / bits;
}

/// Element `index` of a lane, counted from the low end of its first register.
inline uint64_t element(const uint32_t *const *regs, ptx::Type type, unsigned lane, unsigned index) {
  unsigned bits = elementBits(type);
  if (bits == 64) {
    uint64_t value;
    std::memcpy(&value, reinterpret_cast<const std::byte *>(regs[index]) + lane * 8, 8);
    return value;
  }
  unsigned per = 32 / bits, shift = index % per * bits;
  return regs[index / per][lane] >> shift & (~uint32_t(0) >> (32 - bits));
}
inline void setElement(uint32_t *const *regs, ptx::Type type, unsigned lane, unsigned index, uint64_t value) {
  unsigned bits = elementBits(type);
  if (bits == 64) {
    std::memcpy(reinterpret_cast<std::byte *>(regs[index]) + lane * 8, &value, 8);
    return;
  }
  unsigned per = 32 / bits, shift = index % per * bits;
  uint32_t mask = (~uint32_t(0) >> (32 - bits)) << shift, &reg = regs[index / per][lane];
  reg = (reg & ~mask) | (static_cast<uint32_t>(value) << shift & mask);
}

/// An operand as lines along K: rows of A, columns of B, elements packed as in registers and in memory.
struct Lines {
  unsigned words = 0; ///< Of a line.
  std::vector<uint32_t> data;

  void resize(unsigned lines, unsigned k, unsigned elementBits) {
    words = k * elementBits / 32;
    data.assign(size_t(lines) * words, 0);
  }
  uint32_t *line(unsigned i) { return &data[size_t(i) * words]; }
  const uint32_t *line(unsigned i) const { return &data[size_t(i) * words]; }
  /// Once for each element.
  void set(unsigned i, unsigned k, unsigned bits, uint64_t value) {
    uint32_t *at = line(i) + k * bits / 32;
    at[0] |= static_cast<uint32_t>(value) << k * bits % 32;
    if (bits == 64)
      at[1] = static_cast<uint32_t>(value >> 32);
  }
};

/// Fragments of A and B lie in blocks of eight lines by four registers: register r of a lane holds word lane % 4 +
/// 4 * (r / blocks) of line lane / 4 + 8 * (r % blocks).
inline void gatherBlocks(const uint32_t *const *regs, unsigned numRegs, unsigned blocks, Lines &lines) {
  for (unsigned r = 0; r < numRegs; ++r) {
    uint32_t *first = lines.line(8 * (r % blocks)) + 4 * (r / blocks);
    for (unsigned lane = 0; lane < 32; ++lane)
      first[lane / 4 * lines.words + lane % 4] = regs[r][lane];
  }
}

/// acc = a * b + acc, row-major: c's elements in, d's elements out.
void multiply(const MmaForm &form, const Lines &a, const Lines &b, std::vector<uint64_t> &acc);

} // namespace gemmc::emu::sem
