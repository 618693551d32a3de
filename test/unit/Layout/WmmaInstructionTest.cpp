// Registers of wmma fragments, against the tables of PTX ISA 9.7.14.4.1.
#include "gemmc/Layout/WmmaInstruction.h"
#include <gtest/gtest.h>

using namespace gemmc;

namespace {
struct Fragments {
  int64_t m, n, k;
  Elem type, accumulator;
  int64_t a, b, d;
};

TEST(WmmaInstruction, FragmentsHaveTheRegistersOfTheManual) {
  const Fragments rows[] = {
      {16, 16, 16, Elem::f16, Elem::f32, 8, 8, 8}, {32, 8, 16, Elem::f16, Elem::f16, 8, 8, 4},
      {8, 32, 16, Elem::f16, Elem::f32, 8, 8, 8},  {16, 16, 16, Elem::bf16, Elem::f32, 4, 4, 8},
      {8, 32, 16, Elem::bf16, Elem::f32, 2, 8, 8}, {32, 8, 16, Elem::bf16, Elem::f32, 8, 2, 8},
      {16, 16, 8, Elem::tf32, Elem::f32, 4, 4, 8}, {8, 8, 4, Elem::f64, Elem::f64, 1, 1, 2},
      {16, 16, 16, Elem::s8, Elem::s32, 2, 2, 8},  {8, 32, 16, Elem::u8, Elem::s32, 1, 4, 8},
      {32, 8, 16, Elem::s8, Elem::s32, 4, 1, 8},   {8, 8, 32, Elem::s4, Elem::s32, 1, 1, 2},
      {8, 8, 128, Elem::b1, Elem::s32, 1, 1, 2},
  };
  for (const Fragments &row : rows) {
    const MatrixInstruction *found =
        findInstruction(wmmaInstructions(), row.m, row.n, row.k, row.type, row.accumulator);
    ASSERT_TRUE(found) << row.m << " " << nameOf(row.type).str();
    EXPECT_EQ(wmmaOperandRegisters(*found, true), row.a) << row.m << nameOf(row.type).str();
    EXPECT_EQ(wmmaOperandRegisters(*found, false), row.b) << row.m << nameOf(row.type).str();
    EXPECT_EQ(wmmaAccumulatorRegisters(*found), row.d) << row.m << nameOf(row.type).str();
    EXPECT_FALSE(found->isQuad());
  }
}

/// 9.7.14.4.2: a fragment of A of f16 has 32 bytes, so its rows start at multiples of 32.
TEST(WmmaInstruction, RowsStartAtMultiplesOfTheFragment) {
  EXPECT_EQ(wmmaOperandAlignment(*findInstruction(wmmaInstructions(), 16, 16, 16, Elem::f16, Elem::f32), true), 32);
  EXPECT_EQ(wmmaOperandAlignment(*findInstruction(wmmaInstructions(), 16, 16, 16, Elem::bf16, Elem::f32), true), 16);
  EXPECT_EQ(wmmaOperandAlignment(*findInstruction(wmmaInstructions(), 8, 8, 4, Elem::f64, Elem::f64), false), 8);
}

TEST(WmmaInstruction, NoF16IsEightDeep) {
  EXPECT_FALSE(findInstruction(wmmaInstructions(), 16, 16, 8, Elem::f16, Elem::f32));
  EXPECT_FALSE(findInstruction(wmmaInstructions(), 16, 16, 16, Elem::tf32, Elem::f32));
  EXPECT_FALSE(findInstruction(wmmaInstructions(), 16, 8, 16, Elem::f16, Elem::f32));
}
} // namespace
