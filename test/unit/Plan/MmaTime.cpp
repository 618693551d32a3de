// What the estimates of mma expect, beside what kernels took on an H200 (2026-11-30, `utils/race-kernels run`, medians
// of 5 and 7 rounds): for each constant a kernel of which it is a large part, or two that it tells apart.
#include "Specs.h"
#include "gemmc/Plan/Analysis.h"
#include <cmath>

using namespace gemmc;
using namespace gemmc::test;

namespace {
struct Measured {
  int64_t m, n, k;
  const char *layouts; ///< Of A and B: `rc` is row, col.
  Tile3 block, warp;
  int64_t depth, slices; ///< k of the instruction; 0: the planner's.
  double us;
  Elem type = Elem::f64;
  int64_t batch = 1;
};

Order orderOf(char letter) { return letter == 'r' ? Order::row : Order::col; }

double expectedMicroseconds(const Measured &kernel) {
  Spec spec = problem(fixed(kernel.m), fixed(kernel.n), fixed(kernel.k));
  spec.a.type = given(kernel.type), spec.b.type = given(kernel.type);
  if (kernel.type == Elem::tf32)
    spec.d.type = given(Elem::f32);
  else if (kernel.type == Elem::s8)
    spec.d.type = given(Elem::s32);
  spec.a.layout = given(orderOf(kernel.layouts[0])), spec.b.layout = given(orderOf(kernel.layouts[1]));
  if (kernel.batch > 1)
    spec.batch = given(fixed(kernel.batch));
  spec.instruction = given(Instruction::mma);
  spec.block = given(kernel.block), spec.warp = given(kernel.warp);
  if (kernel.depth)
    spec.matrixShape = given(Tile3{16, 8, kernel.depth});
  if (kernel.slices > 1)
    spec.split = given(SplitMode::split_k), spec.splitSlices = given(kernel.slices);
  else
    spec.split = given(SplitMode::none);
  const Analysis analysis = analyse(planOf(spec));
  return analysis.clocks / analysis.machine.clock * 1e6;
}

std::string textOf(const Measured &kernel) {
  return std::to_string(kernel.m) + "x" + std::to_string(kernel.n) + "x" + std::to_string(kernel.k) + " in " +
         std::to_string(kernel.block[0]) + "x" + std::to_string(kernel.block[1]) + "x" +
         std::to_string(kernel.block[2]);
}

TEST(MmaTime, DoublesTakeWhatTheyTook) {
  constexpr double off = 0.04;
  const Measured kernels[] = {
      {276, 60, 48, "rr", {16, 16, 32}, {16, 16, 8}, 4, 1, 1.74},           // the launch
      {1376, 400, 304, "rc", {48, 32, 16}, {48, 32, 8}, 4, 1, 10.87},       // products of a warp
      {4096, 4096, 4096, "rc", {128, 64, 16}, {64, 32, 16}, 4, 1, 2641.31}, // those of an SM
      {4096, 4096, 4096, "rc", {64, 80, 16}, {32, 40, 16}, 8, 1, 2638.21},  // ... by half as many instructions
      {704, 3776, 3328, "cc", {64, 64, 16}, {32, 32, 16}, 4, 1, 345.73},    // ... of three CTAs
      {320, 3712, 576, "rc", {32, 32, 16}, {16, 16, 16}, 4, 1, 36.24},      // the port of shared memory
      {2352, 16, 3408, "rc", {48, 32, 32}, {48, 32, 8}, 4, 2, 21.94},       // four warps along k
      {16, 160, 336, "cc", {16, 16, 32}, {16, 16, 16}, 8, 6, 2.92},         // slices that meet
      {72, 16, 576, "rc", {32, 32, 16}, {16, 32, 8}, 4, 20, 4.82},          // many parts of one tile
      {2964, 3052, 1128, "rr", {96, 64, 16}, {48, 32, 16}, 8, 6, 543.26},   // parts of many tiles
      {292, 332, 1044, "rc", {32, 32, 32}, {16, 32, 16}, 8, 1, 9.18},       // lines
      {2836, 30, 1037, "rc", {32, 32, 16}, {16, 16, 16}, 8, 1, 13.25},      // copies of 8 bytes
      {683, 554, 831, "cr", {32, 32, 32}, {32, 16, 16}, 8, 1, 26.32},       // ... by which half of them come
      {2318, 66, 862, "rc", {32, 32, 16}, {16, 16, 16}, 8, 1, 19.71},       // rows inside sectors
      {254, 252, 3132, "rc", {16, 32, 32}, {16, 16, 16}, 8, 1, 17.65},      // rows inside lines
      {584, 152, 552, "rc", {16, 16, 16}, {16, 16, 8}, 4, 1, 6.95},         // what the L2 sends
      {16, 3496, 2056, "cr", {16, 16, 32}, {16, 16, 16}, 8, 1, 16.05},      // memory
      {16, 1552, 4992, "cr", {16, 16, 16}, {16, 16, 8}, 4, 1, 32.34},       // what stages are on their way for
  };
  for (const Measured &kernel : kernels)
    EXPECT_NEAR(std::log(expectedMicroseconds(kernel) / kernel.us), 0, off)
        << textOf(kernel) << ": " << expectedMicroseconds(kernel) << " for " << kernel.us;
}

/// Of few tiles the time of one product's kernels beside each other: what all of them share is 18% off.
TEST(MmaTime, FewTilesTakeWhatTheyTookBesideEachOther) {
  constexpr double off = 0.045;
  const std::pair<Measured, Measured> pairs[] = {
      {{203, 40, 73, "rc", {64, 64, 16}, {32, 32, 16}, 0, 1, 2.32, Elem::tf32},
       {203, 40, 73, "rc", {16, 16, 32}, {16, 16, 8}, 0, 1, 1.50, Elem::tf32}},
      {{8, 70, 103, "rc", {16, 128, 32}, {16, 32, 32}, 0, 1, 2.74, Elem::tf32, 8},
       {8, 70, 103, "rc", {16, 32, 32}, {16, 16, 16}, 0, 1, 1.77, Elem::tf32, 8}},
      {{36, 216, 248, "rc", {64, 64, 64}, {32, 32, 64}, 0, 1, 3.91, Elem::s8, 64},
       {36, 216, 248, "rc", {16, 16, 64}, {16, 16, 32}, 0, 1, 7.42, Elem::s8, 64}},
      {{72, 46, 213, "cr", {64, 64, 16}, {32, 32, 16}, 0, 1, 5.53, Elem::tf32, 33},
       {72, 46, 213, "cr", {16, 32, 16}, {16, 16, 8}, 0, 1, 4.76, Elem::tf32, 33}},
      {{14, 20, 34, "cr", {32, 32, 32}, {16, 16, 32}, 0, 1, 1.24, Elem::bf16, 33},
       {14, 20, 34, "cr", {32, 32, 64}, {32, 32, 16}, 0, 1, 1.47, Elem::bf16, 33}},
  };
  for (const auto &[one, other] : pairs)
    EXPECT_NEAR(std::log(expectedMicroseconds(one) / expectedMicroseconds(other)), std::log(one.us / other.us), off)
        << textOf(one) << " and " << textOf(other);
}
} // namespace
