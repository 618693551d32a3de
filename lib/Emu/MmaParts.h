/// What mma.sync and wmma share: elements in registers, and the product of two gathered matrices.
#pragma once
#include "gemmc/Emu/Mma.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <vector>

namespace gemmc::emu::sem {

/// A matrix of raw elements, row-major; each in the low bits of a word.
struct Tile {
  unsigned rows = 0, columns = 0;
  std::vector<uint64_t> elements;

  void resize(unsigned newRows, unsigned newColumns) {
    rows = newRows;
    columns = newColumns;
    elements.resize(size_t(rows) * columns);
  }
  uint64_t &at(unsigned row, unsigned column) { return elements[size_t(row) * columns + column]; }
  uint64_t at(unsigned row, unsigned column) const { return elements[size_t(row) * columns + column]; }
};

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

/// acc = a * b + acc: c's elements in, d's elements out. `a` is m x k, `b` k x n.
void multiply(const MmaForm &form, const Tile &a, const Tile &b, Tile &acc);

} // namespace gemmc::emu::sem
