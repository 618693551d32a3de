// What products take whose D the L2 does not hold, beside what they took on an H200 (2026-11-30, `gemmc bench SPEC
// --also`, medians of 5 rounds).
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
    bool turned = false;
  };
  constexpr Elem f16 = Elem::f16, bf16 = Elem::bf16, f32 = Elem::f32, tf32 = Elem::tf32;
  constexpr Schedule cooperative = Schedule::cooperative, pingpong = Schedule::pingpong;
  const Row rows[] = {
      {{1252, 14596, 68}, "cc", tf32, f32, 1, {192, 128, 32}, {192, 128, 32}, cooperative, 35.67, 0.06}, // boxes
      {{9904, 2808, 8}, "rr", f16, f16, 1, {128, 128, 16}, {128, 128, 16}, cooperative, 20.30},      // sectors in parts
      {{972, 460, 32}, "rc", tf32, f32, 77, {64, 128, 32}, {64, 128, 32}, pingpong, 48.76},          // ... in turns
      {{8912, 5097, 64}, "rr", f16, f16, 1, {128, 128, 64}, {64, 128, 64}, cooperative, 51.02},      // words in parts
      {{600, 896, 64}, "rr", bf16, f32, 61, {192, 96, 64}, {64, 96, 64}, cooperative, 43.43},        // the port
      {{7016, 10376, 168}, "rc", bf16, bf16, 1, {256, 128, 64}, {128, 128, 64}, cooperative, 89.15}, // lines asked
      {{9692, 3196, 12}, "rc", tf32, f32, 1, {128, 192, 16}, {128, 96, 16}, cooperative, 46.51},     // large tiles
      {{96, 944, 64}, "cc", bf16, bf16, 1192, {96, 192, 64}, {96, 64, 64}, cooperative, 100.4, 0.04, true}, // D^T
      {{296, 104, 8}, "cc", bf16, bf16, 919, {64, 64, 16}, {64, 64, 16}, pingpong, 33.3}, // the counter
  };
  for (const Row &row : rows) {
    Spec spec = problem(row.sizes, row.layouts, row.type, row.batch);
    spec.d.type = given(row.result);
    spec.block = given(row.block), spec.warp = given(row.warp), spec.schedule = given(row.schedule);
    spec.swapOperands = given(row.turned ? Persistence::on : Persistence::off);
    const Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.scheduler, Scheduler::dynamic);
    const Analysis analysis = analyse(plan);
    const double expected = analysis.bySectors / analysis.machine.clock * 1e6;
    EXPECT_NEAR(std::log(expected / row.us), 0, row.off)
        << row.sizes[0] << "x" << row.sizes[1] << "x" << row.sizes[2] << ": " << expected << " for " << row.us;
  }
}
} // namespace
