// What products take whose D the L2 does not hold and whose lines start inside its sectors, beside what they took on an
// H200 (2026-11-30, `utils/race-kernels run`, medians of 5 rounds).
#include "Specs.h"
#include "gemmc/Plan/Analysis.h"
#include <cmath>

using namespace gemmc;
using namespace gemmc::test;

namespace {
TEST(SectorTime, TilesTakeWhatTheyTook) {
  struct Row {
    std::array<int64_t, 3> sizes;
    const char *layouts; ///< Of A and B: `rc` is row, col.
    Elem type, result;
    int64_t batch;
    Tile3 block, warp;
    Schedule schedule;
    double us;
    double off = 0.04;
  };
  constexpr Elem f16 = Elem::f16, bf16 = Elem::bf16, f32 = Elem::f32, tf32 = Elem::tf32;
  constexpr Schedule cooperative = Schedule::cooperative, pingpong = Schedule::pingpong;
  const Row rows[] = {
      {{1804, 12052, 4}, "rc", tf32, f32, 1, {64, 224, 8}, {64, 224, 8}, pingpong, 32.64},           // memory
      {{5056, 7112, 8}, "cc", f16, f16, 1, {128, 128, 16}, {64, 128, 16}, cooperative, 27.73},       // sectors in parts
      {{13000, 1076, 72}, "rc", bf16, f32, 1, {128, 216, 64}, {64, 216, 64}, cooperative, 23.9},     // lines in parts
      {{8912, 5097, 64}, "rr", f16, f16, 1, {128, 128, 64}, {64, 128, 64}, cooperative, 51.02},      // words in parts
      {{11416, 6532, 184}, "rr", bf16, f32, 1, {256, 160, 64}, {128, 160, 64}, cooperative, 125.8},  // loads
      {{716, 52, 8}, "rc", tf32, f32, 342, {128, 128, 8}, {128, 128, 8}, cooperative, 24.5, 0.1},    // what hangs over
      {{296, 104, 8}, "cc", bf16, bf16, 919, {64, 64, 16}, {64, 64, 16}, pingpong, 33.3},            // the counter
      {{952, 136, 32}, "rc", f16, f16, 822, {128, 136, 32}, {64, 136, 32}, cooperative, 89.3, 0.06}, // whole lines
  };
  for (const Row &row : rows) {
    Spec spec = problem(row.sizes, row.layouts, row.type, row.batch);
    spec.d.type = given(row.result);
    spec.block = given(row.block), spec.warp = given(row.warp), spec.schedule = given(row.schedule);
    const Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.scheduler, Scheduler::dynamic);
    const Analysis analysis = analyse(plan);
    const double expected = analysis.bySectors / analysis.machine.clock * 1e6;
    EXPECT_NEAR(std::log(expected / row.us), 0, row.off)
        << row.sizes[0] << "x" << row.sizes[1] << "x" << row.sizes[2] << ": " << expected << " for " << row.us;
  }
}
} // namespace
