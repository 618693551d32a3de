// How the planner cuts products with a short side for an H200: streams, either way round, launches, shifted lines.
#include "Cuts.h"

using namespace gemmc;
using namespace gemmc::test;

/// Each is what won on an H200, or within 4% of it, but for one (docs/hopper.md, *What brought how much*).
TEST(PlanCuts, SkinnyProducts) {
  struct Row {
    int64_t m, n, k;
    Tile3 block;
    int64_t slices;
    Persistence swapped;
    Trigger trigger;
    int64_t inFlight;
  };
  constexpr auto on = Persistence::on, off = Persistence::off;
  constexpr auto start = Trigger::start, sums = Trigger::sums, end = Trigger::end;
  const Row rows[] = {
      {1, 4096, 4096, {8, 64, 128}, 2, on, start, 1},
      {16, 4096, 4096, {16, 64, 128}, 2, on, start, 1},
      {64, 4096, 4096, {64, 32, 128}, 1, off, start, 1},
      {64, 2112, 7168, {64, 32, 128}, 2, off, start, 1},
      {48, 5120, 5120, {48, 64, 128}, 1, on, sums, 2}, // 80 CTAs leave SMs idle
      {26, 9216, 5120, {32, 128, 64}, 1, on, sums, 3},
      {96, 4096, 4096, {48, 64, 128}, 1, on, sums, 1},  // no rows outside, and two CTAs read the same rows of B
      {192, 5120, 5120, {64, 120, 64}, 1, off, end, 1}, // three of them
      {128, 8192, 8192, {64, 128, 64}, 1, off, end, 1},
      {16, 14336, 4096, {16, 128, 64}, 1, on, sums, 3},
      // Parts of a ragged side are equal, and columns; an eighth of the rows may be empty.
      {144, 4096, 4096, {72, 64, 64}, 1, on, end, 1},
      {112, 4096, 11008, {112, 64, 64}, 2, on, end, 1}, // long slices: their CTAs begin together
      // 40 tiles of 64 in three slices were more clusters than there is room for: 24.9 us, this 17.4 (64x40
      // whole 16.2).
      {128, 2560, 9216, {128, 96, 64}, 4, off, start, 1},
      {128, 1792, 7168, {128, 64, 64}, 4, off, start, 1},
      {200, 2048, 8192, {56, 64, 64}, 1, on, sums, 1},   // 128 CTAs, four of which read the same rows
      {104, 2048, 2048, {64, 32, 128}, 1, off, sums, 1}, // the short side wastes rows, and fills all SMs: 5.1 -> 4.7 us
      {256, 1024, 1024, {64, 32, 128}, 1, off, start, 1}, // 3 us: the launch counts
  };
  for (const Row &row : rows) {
    auto [spec, name] = kContiguous(row.m, row.n, row.k);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.block, row.block) << name;
    EXPECT_EQ(*plan.spec.splitSlices, row.slices) << name;
    EXPECT_EQ(*plan.spec.swapOperands, row.swapped) << name;
    EXPECT_EQ(*plan.spec.dependent, on) << name;
    EXPECT_EQ(*plan.spec.trigger, row.trigger) << name;
    EXPECT_EQ(*plan.spec.inFlight, row.inFlight) << name;
    EXPECT_EQ(*plan.spec.rasterOrder, RasterOrder::along_m) << name; // neighbours read the same rows of B
  }
}

/// A short side may be either side of the kernel: the long one's tiles come in other steps.
/// D^T won its race on an H200 by 6 to 17% where it is taken here.
TEST(PlanCuts, SkinnyProductsEitherWay) {
  struct Row {
    int64_t m, n, k;
    Order b;
    Persistence swapped;
  };
  constexpr auto on = Persistence::on, off = Persistence::off;
  const Row rows[] = {
      {12160, 192, 1856, Order::row, on}, {3328, 192, 3328, Order::row, on},  {6144, 192, 4096, Order::col, on},
      {2112, 64, 7168, Order::col, on},   {4096, 128, 7168, Order::col, off}, {8192, 64, 4096, Order::col, off},
      {4096, 256, 4096, Order::row, off}, {192, 6144, 4096, Order::col, off},
  };
  for (const Row &row : rows) {
    Spec spec = problem(fixed(row.m), fixed(row.n), fixed(row.k));
    spec.b.layout = given(row.b);
    EXPECT_EQ(*planOf(spec).spec.swapOperands, row.swapped) << row.m << "x" << row.n << "x" << row.k;
    // Who says which side is which is asked no more.
    spec.swapOperands = given(off);
    EXPECT_EQ(*planOf(spec).spec.swapOperands, off);
  }
  // With C nobody has measured it. D in columns: the other way is D itself.
  Spec spec = problem(fixed(6144), fixed(192), fixed(4096));
  spec.b.layout = given(Order::col), spec.d.type = given(Elem::bf16), spec.beta = given(Scale{1.0});
  EXPECT_EQ(*planOf(spec).spec.swapOperands, off);
  spec = problem(fixed(256), fixed(4384), fixed(7712));
  spec.a.layout = spec.b.layout = spec.d.layout = given(Order::col);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.swapOperands, off);
  EXPECT_EQ(plan.spec.swapOperands.reason.find("tiles of D itself fit better"), 0u) << plan.spec.swapOperands.reason;
}

/// A long operand whose m or n is contiguous comes in rows that start inside sectors where its pitch is 16 bytes: CTAs
/// that multiply them with other parts of the short one share them. Each was 12 to 49% faster on an H200 than what did
/// not (docs/hopper-shapes.md, *A short side that is contiguous*).
TEST(PlanCuts, LongOperandsInSplitRowsAreShared) {
  const Cut cuts[] = {
      {176, 3176, 10600, {176, 64, 64}, {1, 4, 2}, Order::col, Order::row},
      {160, 15896, 4968, {160, 128, 64}, {1, 2, 1}, Order::col, Order::row},
      {144, 3240, 7800, {144, 64, 64}, {1, 4, 2}, Order::col, Order::row},
      {4856, 216, 7704, {128, 216, 64}, {4, 1, 1}, Order::col, Order::row},
  };
  expectCuts(cuts);
}

/// Where the fastest cut of a stream does not fit the next one is taken; what TMA brings C for is not sliced.
TEST(PlanCuts, TheNextCutOfAStream) {
  Spec spec = problem(fixed(3528), fixed(152), fixed(9656)); // four slices of a wide tile leave no room for two stages
  spec.d.layout = given(Order::col);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.block, (Tile3{64, 152, 64}));
  EXPECT_EQ(*plan.spec.cluster, (Tile3{4, 1, 2}));
  spec = problem(fixed(10881), fixed(149), fixed(8336)); // the fastest cut has three stages
  spec.a.layout = given(Order::col), spec.a.ld = given(fixed(10888)), spec.b.ld = given(fixed(152));
  spec.d.layout = given(Order::col), spec.d.type = given(Elem::f32), spec.d.ld = given(fixed(10888));
  spec.swapOperands = given(Persistence::off);
  EXPECT_EQ(*planOf(spec).spec.stages, 3);
  spec.inFlight = given(int64_t(3));
  EXPECT_GT(*planOf(spec).spec.stages, 3);
  spec = problem(fixed(2112), fixed(64), fixed(7168));
  spec.b.layout = given(Order::col), spec.d.type = given(Elem::bf16), spec.beta = given(Scale{1.0});
  EXPECT_EQ(*planOf(spec).spec.splitSlices, 3);
  spec.loadC = given(StoreKind::tma);
  EXPECT_EQ(*planOf(spec).spec.splitSlices, 1);
}

/// A short side that is contiguous: whole lines of it, half lines, or all of it; CTAs share rows that start inside
/// sectors. Each is within 7% of the fastest of 4 to 54 cuts on an H200 (docs/hopper-shapes.md, *A short side that is
/// contiguous*).
TEST(PlanCuts, SkinnyProductsWhoseShortSideIsContiguous) {
  struct Row {
    int64_t m, n, k;
    Order b; ///< A is in column order where m is the short side.
    Tile3 block, cluster;
  };
  const Row rows[] = {
      {8, 7232, 1216, Order::row, {8, 64, 128}, {1, 4, 1}},    {24, 5568, 4480, Order::row, {24, 64, 128}, {1, 4, 1}},
      {48, 5824, 3840, Order::row, {48, 128, 64}, {1, 1, 2}},  {64, 8192, 8192, Order::col, {64, 64, 128}, {1, 1, 1}},
      {128, 8192, 8192, Order::col, {64, 128, 64}, {1, 1, 1}}, {128, 7488, 6912, Order::row, {64, 128, 64}, {1, 1, 1}},
      {14336, 32, 4096, Order::row, {128, 32, 64}, {1, 1, 1}}, {160, 3072, 3072, Order::row, {32, 128, 64}, {1, 1, 1}},
      {96, 4864, 1728, Order::row, {32, 128, 64}, {1, 1, 1}},  {160, 3328, 6656, Order::row, {160, 128, 64}, {1, 1, 4}},
  };
  for (const Row &row : rows) {
    Spec spec = problem(fixed(row.m), fixed(row.n), fixed(row.k));
    spec.a.layout = given(Order::col);
    spec.b.layout = given(row.b);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.block, row.block) << row.m << "x" << row.n << "x" << row.k;
    EXPECT_EQ(*plan.spec.cluster, row.cluster) << row.m << "x" << row.n << "x" << row.k;
  }
  // The long operand alone: tiles of whole lines.
  Spec spec = problem(fixed(128), fixed(2496), fixed(5312));
  spec.b.layout = given(Order::row);
  EXPECT_EQ((*planOf(spec).spec.block)[1] % 64, 0);
}

/// When the kernel behind is launched: each as measured on an H200, one to 34% before the other two
/// (docs/hopper-clock.md, *Launched together*).
TEST(PlanCuts, WhenTheNextKernelIsLaunched) {
  struct Row {
    int64_t m, n, k;
    Order a, b;
    Trigger trigger;
  };
  constexpr auto row = Order::row, col = Order::col;
  constexpr auto start = Trigger::start, sums = Trigger::sums, end = Trigger::end;
  const Row rows[] = {
      {256, 256, 256, row, col, start},   {16, 4096, 576, row, col, start}, // 17 and 13% faster than alone
      {1024, 1024, 192, row, col, start},                                   // four steps: sums +17%
      {128, 8192, 768, row, col, sums},                                     // start +9%
      {96, 5120, 2048, row, col, sums},                                     // start +17%, end +3%
      {8, 1536, 6144, row, col, sums},                                      // in slices; start +6%, end +5%
      {128, 5120, 8192, row, col, end},                                     // many steps: sums +4%, start +27%
      {48, 5824, 3840, col, row, end},                                      // m and n contiguous: sums +14%
  };
  for (const Row &each : rows) {
    auto [spec, name] = kContiguous(each.m, each.n, each.k);
    spec.a.layout = given(each.a), spec.b.layout = given(each.b);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.dependent, Persistence::on) << name;
    EXPECT_EQ(*plan.spec.trigger, each.trigger) << name;
  }
}

// Who says when the kernel behind is launched wants launches to overlap.
TEST(PlanCuts, ATriggerOverlaps) {
  Spec spec = problem(fixed(8192), fixed(8192), fixed(8192));
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::off);
  spec.trigger = given(Trigger::start);
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::off);
  spec.trigger = given(Trigger::end);
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::on);
}

// Tiles of too few stages are no candidates for who wants more of them under way.
TEST(PlanCuts, InFlightChoosesTheTile) {
  for (int64_t size : {2000, 9000, 12000}) {
    Spec spec = problem(fixed(size), fixed(size), fixed(size));
    spec.inFlight = given(int64_t(4));
    EXPECT_GT(*planOf(spec).spec.stages, 4) << size;
  }
}

// A deep product of one wave is walked by GPCs, and nobody takes turns with a single tile; behind a repack ping-pong
// does.
TEST(PlanCuts, OneWave) {
  Spec spec = problem(fixed(1024), fixed(1024), fixed(65536));
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative);
  EXPECT_EQ(*plan.spec.rasterGroup, 4);
  EXPECT_EQ(*planOf(problem(fixed(6001), fixed(6001), fixed(1001))).spec.schedule, Schedule::pingpong);
}

/// Which way the long operand takes where TMA cannot read it: the faster one of two that were measured
/// (docs/hopper-l2.md, *Lines that start anywhere*).
TEST(PlanCuts, LongOperandsAreShifted) {
  struct Row {
    int64_t m, n, k;
    Repack a, b;
    Order layoutA, layoutB;
  };
  constexpr Order row = Order::row, col = Order::col;
  const Row rows[] = {
      {16, 4095, 4095, Repack::on, Repack::inside, row, col},
      {65, 4095, 4095, Repack::on, Repack::inside, row, col},
      {128, 24575, 1535, Repack::on, Repack::inside, row, col},
      {64, 2111, 7167, Repack::on, Repack::inside, row, col},
      {224, 2055, 5127, Repack::on, Repack::inside, row, col},
      {4095, 16, 4095, Repack::inside, Repack::on, row, col},
      {16, 4095, 4096, Repack::off, Repack::off, row, col},
      {7, 1025, 513, Repack::inside, Repack::inside, row, col},
      {33, 1031, 517, Repack::inside, Repack::inside, row, col},
      {100, 2047, 1023, Repack::on, Repack::on, row, col},
      {2047, 2047, 2047, Repack::on, Repack::on, row, col},
      // Lines of k: rows of n, or columns of m.
      {8, 10239, 8191, Repack::on, Repack::inside, row, row},
      {128, 24575, 1535, Repack::on, Repack::inside, row, row},
      {255, 4095, 4095, Repack::on, Repack::inside, row, row},
      {32, 1535, 6143, Repack::on, Repack::inside, row, row},
      {100, 2047, 1023, Repack::on, Repack::on, row, row},
      {33, 1031, 517, Repack::inside, Repack::inside, row, row},
      {16, 4098, 4096, Repack::off, Repack::inside, row, row},
      {10239, 8, 8191, Repack::inside, Repack::off, col, row},
      {7167, 100, 4095, Repack::inside, Repack::on, col, row},
      {2047, 2047, 2047, Repack::on, Repack::on, col, row},
  };
  for (const Row &one : rows) {
    Spec spec = problem(fixed(one.m), fixed(one.n), fixed(one.k));
    spec.a.layout = given(one.layoutA), spec.b.layout = given(one.layoutB);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.a.repack, one.a) << one.m << "x" << one.n << "x" << one.k;
    EXPECT_EQ(*plan.spec.b.repack, one.b) << one.m << "x" << one.n << "x" << one.k;
  }
  // A first line that may start anywhere is not shifted.
  Spec spec = problem(fixed(64), fixed(4095), fixed(4095));
  spec.b.layout = given(Order::col), spec.b.align = given(2u);
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::on);
  spec.m = given(fixed(16)), spec.b.align = given(16u);
  EXPECT_EQ(requirementsOf(planOf(spec)), (Texts{"b_ptr % 16 == 0"}));
  spec.m = given(fixed(100)), spec.a.repack = given(Repack::inside); // the other one stays open
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::inside);
  // Both operands take part in the choice: none is shifted where the other one stays as it is, or for mma.
  spec.a.repack = given(Repack::off);
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::off);
  for (int64_t m : {1, 8, 64, 200})
    for (int64_t n : {1024, 1032, 2048, 4096, 8192})
      for (int64_t k : {514, 516, 524, 1026, 1028, 1036, 2050, 2052}) {
        Spec small = problem(fixed(m), fixed(n), fixed(k));
        small.b.layout = given(Order::col);
        Plan plan = planOf(small);
        EXPECT_EQ(*plan.spec.a.repack == Repack::off, *plan.spec.b.repack == Repack::off);
        EXPECT_EQ(*plan.spec.instruction == Instruction::wgmma, *plan.spec.b.repack != Repack::off);
      }
}

/// ... and those of a batch, beside copies that were measured (docs/hopper-l2.md, *Lines of a batch*).
TEST(PlanCuts, LinesOfABatchAreShifted) {
  struct Row {
    int64_t m, n, k, batch;
    Repack a, b;
    Order layoutA, layoutB;
  };
  constexpr Order row = Order::row, col = Order::col;
  const Row rows[] = {
      {1105, 64, 1105, 15, Repack::inside, Repack::off, row, row},
      {1274, 128, 1274, 41, Repack::inside, Repack::off, row, row},
      {333, 128, 333, 14, Repack::inside, Repack::off, row, row},
      {128, 1219, 490, 53, Repack::off, Repack::inside, col, row},
      {989, 238, 1730, 7, Repack::inside, Repack::on, col, col},
      {59, 18, 1471, 30, Repack::inside, Repack::inside, row, col},
      {334, 213, 146, 49, Repack::on, Repack::on, col, col},
      {120, 114, 223, 6, Repack::off, Repack::off, col, row}, // by mma
      {7, 96, 1316, 8, Repack::inside, Repack::off, row, row},
      {667, 716, 219, 23, Repack::on, Repack::on, col, row},
      {887, 1378, 566, 6, Repack::on, Repack::on, col, col},
  };
  for (const Row &one : rows) {
    Spec spec = problem(fixed(one.m), fixed(one.n), fixed(one.k));
    spec.batch = given(fixed(one.batch));
    spec.a.layout = given(one.layoutA), spec.b.layout = given(one.layoutB);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.a.repack, one.a) << one.m << "x" << one.n << "x" << one.k;
    EXPECT_EQ(*plan.spec.b.repack, one.b) << one.m << "x" << one.n << "x" << one.k;
  }
  // How far lines are off must be known, not of how many matrices.
  Spec spec = problem(fixed(1105), fixed(64), fixed(1105));
  spec.b.layout = given(Order::row), spec.batch = given(Size{});
  EXPECT_EQ(*planOf(spec).spec.a.repack, Repack::inside);
  EXPECT_TRUE(llvm::is_contained(requirementsOf(planOf(spec)), "batch <= 7035"));
  spec.a.batchStride = given(Size{});
  EXPECT_EQ(*planOf(spec).spec.a.repack, Repack::on);
}

/// C comes by TMA beside shifted lines, too: their tiles count where its buffers are fitted in.
TEST(PlanCuts, ShiftedLinesBesideC) {
  Spec spec = problem(fixed(8192), fixed(16), fixed(4095));
  spec.d.type = given(Elem::bf16), spec.beta = given(Scale{0.5});
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.a.repack, Repack::inside);
  EXPECT_EQ(*plan.spec.loadC, StoreKind::tma);
}

// The rows that one CTA reads, once, are not kept.
TEST(PlanCuts, RowsThatAreReadOnce) {
  auto cacheOfB = [](int64_t m, int64_t n, int64_t k) {
    Spec spec = problem(fixed(m), fixed(n), fixed(k));
    spec.b.layout = given(Order::col);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.a.cache, CachePolicy::normal);
    return *plan.spec.b.cache;
  };
  EXPECT_EQ(cacheOfB(64, 2112, 7168), CachePolicy::evict_first);
  EXPECT_EQ(cacheOfB(16, 4096, 4096), CachePolicy::evict_first);
  EXPECT_EQ(cacheOfB(128, 4096, 7168), CachePolicy::normal);  // two CTAs read them
  EXPECT_EQ(cacheOfB(128, 24576, 1536), CachePolicy::normal); // CTAs of several tiles
  EXPECT_EQ(cacheOfB(4096, 4096, 4096), CachePolicy::normal);
}

// What a spec says of the cut of a skinny product changes nothing else.
TEST(PlanCuts, SkinnyProductsWithAGivenTile) {
  for (auto [m, n, k] : {Tile3{200, 4096, 4096}, Tile3{64, 2112, 7168}, Tile3{128, 4096, 7168}}) {
    Spec spec = problem(fixed(m), fixed(n), fixed(k));
    spec.b.layout = given(Order::col);
    Plan chosen = planOf(spec);
    spec.swapOperands = given(*chosen.spec.swapOperands);
    spec.block = given(*chosen.spec.block);
    spec.cluster = given(*chosen.spec.cluster);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.stages, *chosen.spec.stages) << m;
    EXPECT_EQ(*plan.spec.store, *chosen.spec.store) << m;
    EXPECT_EQ(*plan.spec.rasterOrder, *chosen.spec.rasterOrder) << m;
    EXPECT_EQ(*plan.spec.splitSlices, *chosen.spec.splitSlices) << m;
    EXPECT_EQ(*plan.spec.dependent, *chosen.spec.dependent) << m;
    EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative) << m;
  }
}
