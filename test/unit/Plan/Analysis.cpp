// What `analyse` says, against numbers counted by hand; and the canonical text of a problem.
#include "gemmc/Plan/Analysis.h"
#include "Specs.h"
#include "gemmc/Plan/Key.h"
#include <chrono>
#include <cmath>
#include <set>

using namespace gemmc;
using namespace gemmc::test;

namespace {
Spec tiled(Size m, Size n, Size k) {
  Spec spec = problem(m, n, k);
  spec.block = given<std::array<int64_t, 3>>({128, 256, 64});
  spec.warp = given<std::array<int64_t, 3>>({64, 256, 64});
  spec.schedule = given(Schedule::cooperative);
  return spec;
}
} // namespace

TEST(Analysis, CountsByHand) {
  Analysis a = analyse(planOf(tiled(fixed(4096), fixed(4096), fixed(4096))));
  double mega = 1 << 20;
  EXPECT_EQ(a.flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_EQ(a.bytes, 3 * 32 * mega); // A, B and D of bf16
  EXPECT_NEAR(a.intensity(), 2.0 * 4096 / 6, 1e-9);
  EXPECT_NEAR(a.tensorFloor, 138.97e-6, 0.01e-6);
  EXPECT_NEAR(a.memoryFloor, 23.41e-6, 0.01e-6);
  EXPECT_NEAR(a.poweredFloor, a.tensorFloor / 0.74, 1e-12);
  EXPECT_EQ(a.tiles, 32 * 16);
  EXPECT_EQ(a.slots, 132);
  EXPECT_EQ(a.waves, 4);
  EXPECT_NEAR(a.lastWave, (512 - 3 * 132) / 132.0, 1e-12);
  EXPECT_EQ(a.tileUse, 1);
  EXPECT_EQ(a.stageBytes, (128 + 256) * 64 * 2);
  EXPECT_EQ(a.tileWritten, (128 + 256) * 4096 * 2.0);
  EXPECT_EQ(a.tileL2Bytes, (128 + 256) * 4096 * 2.0 + 128 * 256 * 2.0);
  EXPECT_EQ(a.l2Bytes, 512 * a.tileL2Bytes);
  // Two warpgroups of 64 rows: each instruction reads 64 rows of A and all columns of B.
  EXPECT_EQ(a.tileRead, 2 * (64 + 256) * 4096 * 2.0);
  EXPECT_GE(a.hbmBytes, a.bytes);
  EXPECT_LE(a.hbmBytes, a.l2Bytes);
  EXPECT_NEAR(a.mainPart + a.idlePart + a.aroundPart, a.clocks, 1e-6 * a.clocks);
  EXPECT_GE(a.seconds, a.floor());
  EXPECT_STREQ(a.bound, "power");
  // 203.4 to 209.6 us in turns of 0.1 to 0.4 s on four cards (docs/hopper-clock.md, *Whose clock*).
  EXPECT_NEAR(a.seconds, 206.5e-6, 0.03 * 206.5e-6);
  EXPECT_EQ(a.seconds, a.atPowerLimit);
  EXPECT_EQ(a.assumed, "");
}

TEST(Analysis, EdgesAndSizesOfALaunch) {
  Analysis a = analyse(planOf(tiled(fixed(100), fixed(300), fixed(64))));
  EXPECT_EQ(a.tiles, 2);
  EXPECT_NEAR(a.tileUse, 100 * 300 / (2.0 * 128 * 256), 1e-12);
  EXPECT_EQ(a.waves, 1);
  EXPECT_STREQ(a.bound, "starts and ends");
  EXPECT_EQ(a.atPowerLimit, 0); // nobody has measured what the limit makes of so little
  EXPECT_STREQ(analyse(planOf(tiled(fixed(512), fixed(512), fixed(1024)))).bound, "SMs without a tile"); // 8 tiles
  Analysis dynamicSizes = analyse(planOf(dynamicProblem()));
  EXPECT_EQ(dynamicSizes.assumed, "m taken as 4096, n as 4096, k as 4096");
  EXPECT_EQ(dynamicSizes.m, 4096);
}

TEST(Analysis, NothingToDo) {
  for (Target target : {Target::sm_80, Target::sm_90a})
    for (const auto &[m, n] : {std::pair<int64_t, int64_t>{0, 64}, {64, 0}, {0, 8192}, {16, 0}}) {
      Spec spec = problem(fixed(m), fixed(n), fixed(512));
      spec.target = given(target);
      Analysis a = analyse(planOf(spec));
      EXPECT_EQ(a.tiles, 0);
      for (double number : {a.clocks, a.seconds, a.mainPart, a.idlePart, a.aroundPart})
        EXPECT_TRUE(std::isfinite(number)) << m << "x" << n;
      for (const Alternative &other : a.next)
        EXPECT_TRUE(std::isfinite(other.cost)) << m << "x" << n;
    }
}

TEST(Analysis, SkinnyProductsAreBoundByMemory) {
  Analysis a = analyse(planOf(problem(fixed(16), fixed(65536), fixed(16384))));
  EXPECT_STREQ(a.bound, "memory");
  EXPECT_NEAR(a.seconds, a.memoryFloor, a.memoryFloor * 0.25);
}

/// What streams, by the estimate that chose it, as measured (docs/hopper.md, *Where it stands*; docs/hopper-shapes.md,
/// *A short side that is contiguous*).
TEST(Analysis, StreamsByTheirOwnEstimate) {
  struct Row {
    int64_t m, n, k;
    Order a, b;
    double us;
    const char *bound;
  };
  const Order row = Order::row, col = Order::col;
  const Row rows[] = {
      {16, 4096, 4096, row, col, 9.5, "memory"},   {64, 4096, 4096, row, col, 10.0, "memory"},
      {128, 4096, 7168, row, col, 18.0, "memory"}, {256, 7168, 2048, row, col, 13.6, "tensor cores"},
      {160, 3072, 3072, col, row, 9.3, "the L2"},  {3200, 160, 2016, col, row, 7.3, "the L2"},
  };
  for (const Row &each : rows) {
    Spec spec = problem(fixed(each.m), fixed(each.n), fixed(each.k));
    spec.a.layout = given(each.a), spec.b.layout = given(each.b);
    Analysis a = analyse(planOf(spec));
    const std::string name = std::to_string(each.m) + "x" + std::to_string(each.n) + "x" + std::to_string(each.k);
    EXPECT_NEAR(a.seconds, each.us * 1e-6, 0.12 * each.us * 1e-6) << name;
    EXPECT_STREQ(a.bound, each.bound) << name;
    EXPECT_NEAR(a.mainPart + a.idlePart + a.aroundPart, a.clocks, 1e-6 * a.clocks) << name;
  }
}

TEST(Analysis, EveryKindOfKernel) {
  for (Target target : {Target::sm_80, Target::sm_86, Target::sm_89, Target::sm_90a})
    for (Elem type : {Elem::f16, Elem::f64, Elem::s8, Elem::b1}) {
      Spec spec = cube(1024);
      spec.target = given(target);
      spec.a.type = given(type);
      for (Order order : {Order::row, Order::col}) {
        spec.d.layout = given(order);
        Analysis a = analyse(planOf(spec));
        EXPECT_GT(a.clocks, 0);
        EXPECT_GT(a.seconds, 0);
        EXPECT_GE(a.seconds, a.memoryFloor);
        EXPECT_GE(a.idlePart, -1e-9 * a.clocks);
        EXPECT_LE(a.mainPart, a.clocks * (1 + 1e-9));
        EXPECT_GT(a.lastWave, 0);
        EXPECT_LE(a.lastWave, 1);
      }
    }
}

TEST(Analysis, TheAlternativesAreOthersAndSlower) {
  Plan plan = planOf(cube(4096));
  Analysis a = analyse(plan, 5);
  ASSERT_EQ(a.next.size(), 5u);
  std::set<std::string> seen;
  for (const Alternative &other : a.next) {
    EXPECT_GE(other.cost, a.clocks * 0.999);
    EXPECT_TRUE(seen.insert(other.choice).second);
    Diags diags;
    Spec spec = cube(4096);
    ASSERT_TRUE(applyChoice(spec, other.choice, diags));
    Plan its = planOf(spec);
    EXPECT_FALSE(its.blockM == plan.blockM && its.blockN == plan.blockN && its.warpM == plan.warpM &&
                 its.warpN == plan.warpN && *its.spec.schedule == *plan.spec.schedule && its.swapped == plan.swapped)
        << other.choice;
  }
}

/// Of a skinny product the cuts that stream it come first, slices of k among them; none is there twice.
TEST(Analysis, TheAlternativesOfAStream) {
  for (auto [m, n, k] : {Tile3{64, 2112, 7168}, Tile3{128, 4096, 7168}, Tile3{16, 4096, 4096}, Tile3{48, 2056, 8200}}) {
    Spec open = problem(fixed(m), fixed(n), fixed(k));
    open.b.layout = given(Order::col);
    Diags diags;
    auto all = alternatives(open, 24, diags);
    ASSERT_GE(all.size(), m == 16 ? 16u : 24u); // 16 rows have few tiles
    ASSERT_LE(all.size(), 24u);
    std::set<std::tuple<Tile3, Tile3, Tile3, Schedule, Persistence>> kernels;
    std::set<int64_t> slices;
    for (size_t i = 0; i < all.size(); ++i) {
      Spec spec = open;
      ASSERT_TRUE(applyChoice(spec, all[i].choice, diags));
      const Spec its = planOf(spec).spec;
      EXPECT_TRUE(kernels.insert({*its.block, *its.warp, *its.cluster, *its.schedule, *its.swapOperands}).second)
          << all[i].choice;
      if (i < 12)
        slices.insert(*its.splitSlices);
      else
        EXPECT_EQ(*its.splitSlices, 1) << all[i].choice;
    }
    EXPECT_TRUE(slices.size() > 1 && slices.contains(2)) << m;
    Analysis a = analyse(planOf(open), 5);
    ASSERT_EQ(a.next.size(), 5u);
    for (const Alternative &other : a.next)
      EXPECT_GE(other.cost, a.clocks * 0.999) << other.choice;
  }
}

/// The ranking takes well under a millisecond; the bound holds on a slow and busy machine.
TEST(Analysis, RankingIsQuick) {
  Spec spec = cube(4096);
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    auto start = std::chrono::steady_clock::now();
    Diags diags;
    EXPECT_FALSE(alternatives(spec, 6, diags).empty());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 20e-3);
}

TEST(Key, IsCanonical) {
  Spec spec = cube(4096);
  EXPECT_EQ(problemKey(spec)->text(), "sm_90a 4096x4096x4096 a=bf16:row:4096:16 b=bf16:row:4096:16 "
                                      "d=bf16:row:4096:16 sums=f32 alpha=1 beta=0");
  Spec written = spec;
  written.target = given(Target::sm_90a);
  written.a.align = given(128u);
  written.beta = given(Scale{-0.0});
  written.name = given<std::string>("x");
  EXPECT_EQ(problemKey(written)->text(), problemKey(spec)->text());
  written.block = given<std::array<int64_t, 3>>({128, 256, 64});
  EXPECT_EQ(problemKey(written)->problem, problemKey(spec)->problem);
  EXPECT_EQ(problemKey(written)->given, "tile.block=[128,256,64]");
  EXPECT_EQ(problemKey(written)->text(), problemKey(spec)->text() + " with tile.block=[128,256,64]");
}

TEST(Key, EveryPartOfAProblemCounts) {
  std::vector<Spec> specs(1, cube(512));
  auto add = [&](auto &&change) { change(specs.emplace_back(cube(512))); };
  add([](Spec &s) { s.m = given(fixed(513)); });
  add([](Spec &s) { s.n = given(fixed(513)); });
  add([](Spec &s) { s.k = given(dynamic()); });
  add([](Spec &s) { s.target = given(Target::sm_80); });
  add([](Spec &s) { s.a.type = given(Elem::f16); });
  add([](Spec &s) { s.a.type = given(Elem::f16), s.accumulator = given(Elem::f16); });
  add([](Spec &s) { s.a.layout = given(Order::col); });
  add([](Spec &s) { s.b.layout = given(Order::col); });
  add([](Spec &s) { s.d.layout = given(Order::col); });
  add([](Spec &s) { s.d.type = given(Elem::f32); });
  add([](Spec &s) { s.a.ld = given(fixed(1024)); });
  add([](Spec &s) { s.b.ld = given(fixed(1024)); });
  add([](Spec &s) { s.d.align = given(8u); });
  add([](Spec &s) { s.alpha = given(Scale{2.0}); });
  add([](Spec &s) { s.alpha = given(Scale{}); });
  add([](Spec &s) { s.beta = given(Scale{1.0}); });
  add([](Spec &s) { s.beta = given(Scale{0.5}); });
  add([](Spec &s) { s.beta = given(Scale{1.0}), s.c.type = given(Elem::f32); });
  add([](Spec &s) { s.a.negate = given(Persistence::on); });
  add([](Spec &s) { s.a.type = given(Elem::b1); });
  add([](Spec &s) { s.a.type = given(Elem::b1), s.bitOperation = given(BitOperation::xor_); });
  std::set<std::string> keys;
  for (const Spec &spec : specs) {
    auto key = problemKey(spec);
    ASSERT_TRUE(key);
    EXPECT_TRUE(keys.insert(key->text()).second) << key->text();
  }
  // What is not read, and other values of a factor that is there, make no difference.
  Spec unread = cube(512), scaled = cube(512);
  unread.c.ld = given(fixed(2048));
  EXPECT_TRUE(keys.contains(problemKey(unread)->text()));
  scaled.alpha = given(Scale{3.0});
  EXPECT_TRUE(keys.contains(problemKey(scaled)->text()));
}

TEST(Key, AWrongProblemHasNone) {
  Spec spec = cube(512);
  spec.a.ld = given(fixed(5));
  EXPECT_FALSE(problemKey(spec));
}
