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

double expectedMicroseconds(const Measured &kernel) {
  Spec spec = problem({kernel.m, kernel.n, kernel.k}, kernel.layouts, kernel.type, kernel.batch);
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

TEST(MmaTime, FewTilesTakeWhatTheyTook) {
  constexpr double off = 0.04;
  const Measured kernels[] = {
      {12, 34, 50, "rc", {32, 32, 64}, {16, 16, 64}, 0, 1, 1.10, Elem::f16, 8},         // the launch
      {20, 56, 38, "rc", {32, 32, 64}, {16, 16, 64}, 0, 1, 1.92, Elem::f16, 64},        // the first bytes
      {190, 84, 34, "rr", {32, 16, 64}, {32, 16, 16}, 0, 1, 2.05, Elem::bf16, 8},       // ... of few
      {14, 384, 724, "cc", {16, 16, 64}, {16, 16, 32}, 0, 1, 3.61, Elem::f16},          // what a step waits
      {218, 159, 5215, "rc", {64, 32, 64}, {64, 32, 32}, 0, 6, 23.79, Elem::f16},       // ... for single elements
      {2, 2267, 5285, "rc", {16, 112, 64}, {16, 56, 64}, 0, 6, 27.62, Elem::s8},        // ... more than registers hold
      {116, 1044, 2716, "cr", {64, 64, 64}, {64, 64, 32}, 0, 3, 12.23, Elem::f16},      // products
      {132, 1980, 536, "cc", {64, 64, 64}, {32, 32, 64}, 0, 1, 5.05, Elem::f16},        // ... by warps that share them
      {280, 672, 5376, "cr", {32, 64, 64}, {32, 32, 32}, 0, 8, 25.01, Elem::s8},        // bytes across k
      {232, 8, 120, "cr", {64, 16, 128}, {32, 16, 64}, 0, 1, 44.81, Elem::s8, 2629},    // ... whose rows conflict
      {179, 473, 3849, "cc", {32, 64, 32}, {32, 32, 16}, 0, 8, 18.42, Elem::tf32},      // copies
      {22, 22, 398, "cc", {32, 32, 128}, {16, 32, 64}, 0, 1, 31.49, Elem::s8, 2356},    // ... of single elements
      {2468, 138, 162, "rc", {64, 64, 64}, {64, 64, 16}, 0, 1, 4.24, Elem::f16},        // sums of warps along k
      {132, 28, 36, "cr", {64, 32, 64}, {32, 32, 32}, 0, 1, 8.74, Elem::s8, 635},       // stores
      {44, 8, 60, "rr", {64, 16, 32}, {16, 16, 32}, 0, 1, 6.44, Elem::bf16, 1975},      // what the L2 sends
      {28, 448, 1692, "rc", {16, 32, 64}, {16, 32, 16}, 0, 3, 4.43, Elem::bf16},        // slices that meet
      {464, 128, 3540, "rr", {32, 64, 64}, {32, 16, 64}, 0, 8, 6.72, Elem::f16},        // ... by what they write
      {24, 113, 123, "rc", {32, 128, 16}, {32, 32, 16}, 0, 1, 52.37, Elem::tf32, 1960}, // memory
      {2852, 15292, 16, "cr", {64, 64, 16}, {32, 32, 16}, 0, 1, 63.4, Elem::tf32},      // lines of D that tiles cut
  };
  for (const Measured &kernel : kernels)
    EXPECT_NEAR(std::log(expectedMicroseconds(kernel) / kernel.us), 0, off)
        << textOf(kernel) << ": " << expectedMicroseconds(kernel) << " for " << kernel.us;
}
} // namespace
