// What the planner decides when only the problem is given.
#include "Describe.h"
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;

TEST(PlanDefaults, LargeHopperProblem) {
  Spec spec = cube(4096);
  spec.b.layout = given(Order::col);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma);
  EXPECT_EQ(*plan.spec.copy, CopyKind::tma);
  // Ping-pong 128x112 fills nine waves and takes 0.9% fewer clocks; 128x256 moves less, and so its clock is faster.
  EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative);
  EXPECT_EQ(*plan.spec.block, (Tile3{128, 256, 64}));
  EXPECT_EQ(*plan.spec.warp, (Tile3{128, 128, 64}));
  EXPECT_EQ(*plan.spec.cluster, (Tile3{1, 1, 1}));
  EXPECT_EQ(plan.threads, 384u);
  EXPECT_EQ(plan.consumerWarpgroups, 2u);
  EXPECT_EQ(plan.producerRegs, 40u);
  EXPECT_EQ(plan.consumerRegs, 232u);
  // 4 x (128 + 256) x 64 x 2 bytes fit in 232448 beside the store's buffers, five do not.
  EXPECT_EQ(*plan.spec.stages, 4);
  EXPECT_EQ(*plan.spec.persistent, Persistence::on);
  EXPECT_EQ(requirementsOf(plan), (Texts{"a_ptr % 16 == 0", "b_ptr % 16 == 0", "d_ptr % 16 == 0"}));
}

/// Each is what won on an H200, or within 2% of it (docs/hopper-clock.md, *Whose clock*).
TEST(PlanDefaults, TilesByShape) {
  struct Row {
    int64_t m, n, k;
    Schedule schedule;
    int64_t blockM, blockN;
  };
  const Row rows[] = {
      {2048, 7168, 4096, Schedule::pingpong, 128, 176}, {4096, 24576, 1536, Schedule::pingpong, 128, 176},
      {4096, 2112, 7168, Schedule::pingpong, 128, 176}, {512, 4096, 7168, Schedule::cooperative, 128, 128},
      {512, 512, 512, Schedule::cooperative, 64, 32},   {4096, 7168, 16384, Schedule::pingpong, 128, 176},
  };
  for (const Row &row : rows) {
    Spec spec = problem(fixed(row.m), fixed(row.n), fixed(row.k));
    spec.b.layout = given(Order::col);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.schedule, row.schedule) << row.m << "x" << row.n << "x" << row.k;
    const int64_t depth = row.blockM + row.blockN <= 96 ? 128 : 64; // a step of a small tile is short
    EXPECT_EQ(*plan.spec.block, (Tile3{row.blockM, row.blockN, depth})) << row.m << "x" << row.n << "x" << row.k;
  }
}

/// Rows of B that start inside a line of the L2 cost two: with n contiguous a tile is a whole number of lines wide, and
/// where the pitch leaves no choice it is large (4096^3 with A column, B row: 128x112 took 266 us, 128x128 208).
TEST(PlanDefaults, WholeLines) {
  Spec spec = cube(4096);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.block, (Tile3{128, 256, 64}));
  spec.n = given(fixed(4104));
  EXPECT_EQ((*planOf(spec).spec.block)[0], 256);
  spec.n = given(fixed(4096)), spec.k = given(fixed(4104)), spec.b.layout = given(Order::col);
  EXPECT_EQ(*planOf(spec).spec.cluster, (Tile3{2, 1, 1})); // rows of A and B start inside sectors of the L2
  spec.k = given(fixed(4112));
  EXPECT_EQ(*planOf(spec).spec.cluster, (Tile3{1, 1, 1}));
}

TEST(PlanDefaults, AmpereProblem) {
  Spec spec = cube(4096);
  spec.target = given(Target::sm_80);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.instruction, Instruction::mma);
  EXPECT_EQ(*plan.spec.copy, CopyKind::cp_async);
  EXPECT_EQ(*plan.spec.schedule, Schedule::pipelined);
  EXPECT_EQ(*plan.spec.swizzle, Swizzle::xor_);
  EXPECT_EQ(plan.warpM, 64);
  EXPECT_EQ(plan.warpN, 64);
  EXPECT_EQ(plan.copyBytesA, 16u);
}

TEST(PlanDefaults, DynamicProblemAsksForAlignmentAtLaunch) {
  Plan plan = planOf(dynamicProblem());
  EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma);
  Texts requirements = requirementsOf(plan);
  for (const char *needed : {"a_ptr % 16 == 0", "b_ptr % 16 == 0", "lda % 8 == 0", "ldb % 8 == 0", "0 < k"})
    EXPECT_TRUE(std::count(requirements.begin(), requirements.end(), needed)) << needed;
}

TEST(PlanDefaults, SmallProblemsGetSmallTiles) {
  // 512^3 in 128x256 tiles would keep 8 of 132 SMs busy.
  Plan plan = planOf(cube(512));
  EXPECT_LE(plan.blockM * plan.blockN, 64 * 128);
  EXPECT_EQ(*plan.spec.cluster, (Tile3{1, 1, 1}));
  Spec ampere = cube(512);
  ampere.target = given(Target::sm_80);
  EXPECT_LE(planOf(ampere).blockM * planOf(ampere).blockN, 64 * 128);
}

TEST(PlanDefaults, NarrowProductGetsANarrowTile) {
  Plan plan = planOf(problem(fixed(8192), fixed(24), fixed(4096)));
  EXPECT_EQ(plan.blockN, 24);
}

TEST(PlanDefaults, NoMoreStagesThanKSteps) {
  EXPECT_EQ(*planOf(problem(fixed(256), fixed(256), fixed(192))).spec.stages, 3);
  EXPECT_EQ(*planOf(problem(fixed(256), fixed(256), fixed(16))).spec.stages, 2);
}

TEST(PlanDefaults, OddPitchesTakeNarrowerCopies) {
  struct Row {
    int64_t k;
    CopyKind copy;
    unsigned bytes;
  };
  // Row pitches of A: 2 k bytes.
  for (Row row : {Row{64, CopyKind::tma, 16}, Row{68, CopyKind::cp_async, 8}, Row{34, CopyKind::cp_async, 4},
                  Row{33, CopyKind::ld, 2}}) {
    SCOPED_TRACE(row.k);
    Plan plan = planOf(problem(fixed(256), fixed(256), fixed(row.k)));
    EXPECT_EQ(*plan.spec.copy, row.copy);
    EXPECT_EQ(plan.copyBytesA, row.bytes);
    EXPECT_EQ(plan.copyBytesB, 16u);
    EXPECT_EQ(*plan.spec.stages == 1, row.copy == CopyKind::ld);
  }
}

TEST(PlanDefaults, NothingToReadTakesNoTensorMaps) {
  for (Spec spec : {cube(0), problem(fixed(64), fixed(64), fixed(0)), problem(fixed(0), fixed(64), fixed(64))})
    EXPECT_EQ(*planOf(spec).spec.instruction, Instruction::mma);
  Spec spec = cube(256);
  spec.alpha = given(Scale{0.0});
  EXPECT_EQ(*planOf(spec).spec.copy, CopyKind::ld);
  EXPECT_EQ(requirementsOf(planOf(spec)), Texts{"d_ptr % 16 == 0"}); // a and b may be null
}

TEST(PlanDefaults, WhatIsAskedForPicksTheFamily) {
  Spec padded = cube(256);
  padded.swizzle = given(Swizzle::padded);
  EXPECT_EQ(*planOf(padded).spec.instruction, Instruction::mma);
  Spec square = cube(256);
  square.block = given(Tile3{128, 128, 32}), square.warp = given(Tile3{64, 64, 32});
  EXPECT_EQ(*planOf(square).spec.instruction, Instruction::mma);
  Spec pingpong = cube(256);
  pingpong.schedule = given(Schedule::pingpong);
  Plan plan = planOf(pingpong);
  EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma);
  EXPECT_EQ(plan.warpM, plan.blockM);
  EXPECT_EQ(plan.warpN, plan.blockN);
  EXPECT_EQ(plan.threads, 384u);
  EXPECT_EQ(*plan.spec.persistent, Persistence::on);
}

TEST(PlanDefaults, TypesFollowEachOther) {
  Spec spec = cube(256);
  spec.b.type = given(Elem::f16);
  Plan plan = planOf(spec);
  EXPECT_EQ(plan.a.type, Elem::f16);
  EXPECT_EQ(plan.d.type, Elem::f16);
  EXPECT_EQ(*plan.spec.accumulator, Elem::f32);
  spec.d.type = given(Elem::f32);
  EXPECT_EQ(planOf(spec).c.type, Elem::f32);
}

TEST(PlanDefaults, EveryDecisionHasAReason) {
  for (Spec spec : {cube(4096), cube(65), dynamicProblem()}) {
    Plan plan = planOf(spec);
    forEachField(plan.spec, [](const auto &field) { EXPECT_NE(field.given, !field.reason.empty()); });
  }
}

TEST(PlanDefaults, SetmaxnregKeepsTheSumOfALaunch) {
  // 65536 registers: three warpgroups start with 168 each, four with 128.
  Spec spec = cube(4096);
  spec.block = given(Tile3{192, 128, 64});
  spec.warp = given(Tile3{64, 128, 64});
  Plan plan = planOf(spec);
  EXPECT_EQ(plan.consumerWarpgroups, 3u);
  EXPECT_EQ(plan.threads, 512u);
  EXPECT_EQ(plan.producerRegs + 3 * plan.consumerRegs, 4 * 128u);
  Plan two = planOf(cube(4096));
  EXPECT_EQ(two.producerRegs + 2 * two.consumerRegs, 3 * 168u);
}
