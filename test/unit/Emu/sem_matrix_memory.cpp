// ldmatrix, stmatrix and movmatrix against figures 104, 107, 109 and 110 of PTX ISA 9.7.14.5.
#include "gemmc/Emu/MatrixMemory.h"
#include "gtest/gtest.h"
#include <cstring>
#include <random>

using namespace gemmc::emu::sem;

namespace {

/// Four matrices whose element (r, c) is m * 1000 + r * 8 + c, rows scattered backwards over memory.
struct Scene {
  alignas(16) std::byte memory[32][16];
  std::byte *rows[32];
  uint32_t regs[4][32];
  uint32_t *reg[4] = {regs[0], regs[1], regs[2], regs[3]};

  Scene() {
    std::memset(memory, 0xee, sizeof memory);
    std::memset(regs, 0xdd, sizeof regs);
    for (unsigned i = 0; i < 32; ++i)
      rows[i] = memory[31 - i];
  }
  void fill() {
    for (unsigned i = 0; i < 32; ++i)
      for (unsigned c = 0; c < 8; ++c)
        put(i / 8, i % 8, c, i / 8 * 1000 + i % 8 * 8 + c);
  }
  void put(unsigned m, unsigned r, unsigned c, uint16_t value) { std::memcpy(rows[m * 8 + r] + 2 * c, &value, 2); }
  uint16_t get(unsigned m, unsigned r, unsigned c) const {
    uint16_t value;
    std::memcpy(&value, rows[m * 8 + r] + 2 * c, 2);
    return value;
  }
};

} // namespace

TEST(SemMatrixMemory, LdmatrixFigure) {
  for (unsigned count : {1, 2, 4})
    for (bool trans : {false, true}) {
      Scene scene;
      scene.fill();
      ldmatrix(count, trans, scene.rows, scene.reg);
      for (unsigned m = 0; m < 4; ++m)
        for (unsigned r = 0; r < 8; ++r)
          for (unsigned c = 0; c < 8; ++c) {
            unsigned row = trans ? c : r, column = trans ? r : c;
            unsigned got = scene.regs[m][4 * row + column / 2] >> 16 * (column % 2) & 0xffff;
            EXPECT_EQ(got, m < count ? m * 1000 + r * 8 + c : 0xdddd) << m << " " << r << " " << c << " " << trans;
          }
    }
}

// Storing undoes loading, and loading undoes storing, for arbitrary registers.
TEST(SemMatrixMemory, StmatrixIsTheInverse) {
  std::mt19937 rng(5);
  for (unsigned count : {1, 2, 4})
    for (bool trans : {false, true}) {
      Scene from, to;
      for (auto &reg : from.regs)
        for (uint32_t &lane : reg)
          lane = rng();
      stmatrix(count, trans, from.reg, to.rows);
      ldmatrix(count, trans, to.rows, to.reg);
      for (unsigned m = 0; m < 4; ++m)
        for (unsigned lane = 0; lane < 32; ++lane)
          EXPECT_EQ(to.regs[m][lane], m < count ? from.regs[m][lane] : 0xdddddddd);
      for (unsigned m = count; m < 4; ++m)
        EXPECT_EQ(to.get(m, 3, 3), 0xeeee) << "a matrix that is not stored was touched";
    }
}

TEST(SemMatrixMemory, StmatrixFigure) {
  Scene scene;
  for (unsigned lane = 0; lane < 32; ++lane)
    scene.regs[0][lane] = lane * 2 | (lane * 2 + 1) << 16; // element n of the matrix, row-major
  stmatrix(1, false, scene.reg, scene.rows);
  EXPECT_EQ(scene.get(0, 0, 7), 7);
  EXPECT_EQ(scene.get(0, 5, 2), 42);
  stmatrix(1, true, scene.reg, scene.rows);
  EXPECT_EQ(scene.get(0, 2, 5), 42);
}

TEST(SemMatrixMemory, MovmatrixTransposes) {
  uint32_t lanes[32];
  for (unsigned lane = 0; lane < 32; ++lane)
    lanes[lane] = lane * 2 | (lane * 2 + 1) << 16;
  movmatrix(lanes, lanes);
  for (unsigned r = 0; r < 8; ++r)
    for (unsigned c = 0; c < 8; ++c)
      EXPECT_EQ(lanes[4 * r + c / 2] >> 16 * (c % 2) & 0xffff, c * 8 + r);
}
