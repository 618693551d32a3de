#include "gemmc/Emu/MatrixMemory.h"
#include <cstring>

namespace gemmc::emu::sem {

namespace {

/// One 8x8 matrix as a plain array, and its two ways in and out.
struct Matrix {
  uint16_t at[8][8];

  void fromRows(const std::byte *const *rows) {
    for (unsigned r = 0; r < 8; ++r)
      std::memcpy(at[r], rows[r], 16);
  }
  void toRows(std::byte *const *rows) const {
    for (unsigned r = 0; r < 8; ++r)
      std::memcpy(rows[r], at[r], 16);
  }
  void fromLanes(const uint32_t *lanes, bool trans) {
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned r = lane / 4, c = lane % 4 * 2 + half;
        (trans ? at[c][r] : at[r][c]) = static_cast<uint16_t>(lanes[lane] >> (16 * half));
      }
  }
  void toLanes(uint32_t *lanes, bool trans) const {
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned r = lane / 4, c = lane % 4 * 2;
      uint32_t low = trans ? at[c][r] : at[r][c], high = trans ? at[c + 1][r] : at[r][c + 1];
      lanes[lane] = low | high << 16;
    }
  }
};

} // namespace

void ldmatrix(unsigned count, bool trans, const std::byte *const *rows, uint32_t *const *regs) {
  for (unsigned m = 0; m < count; ++m) {
    Matrix matrix;
    matrix.fromRows(rows + 8 * m);
    matrix.toLanes(regs[m], trans);
  }
}

void stmatrix(unsigned count, bool trans, const uint32_t *const *regs, std::byte *const *rows) {
  for (unsigned m = 0; m < count; ++m) {
    Matrix matrix;
    matrix.fromLanes(regs[m], trans);
    matrix.toRows(rows + 8 * m);
  }
}

void movmatrix(const uint32_t *from, uint32_t *to) {
  Matrix matrix;
  matrix.fromLanes(from, false);
  matrix.toLanes(to, true);
}

} // namespace gemmc::emu::sem
