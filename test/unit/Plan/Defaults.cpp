// What the planner decides when only the problem is given.
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;

using Tile3 = std::array<int64_t, 3>;

TEST(PlanDefaults, LargeHopperProblem) {
  Plan plan = planOf(cube(4096));
  EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma);
  EXPECT_EQ(*plan.spec.copy, CopyKind::tma);
  EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative);
  EXPECT_EQ(*plan.spec.block, (Tile3{128, 256, 64}));
  EXPECT_EQ(*plan.spec.warp, (Tile3{64, 256, 64}));
  EXPECT_EQ(*plan.spec.cluster, (Tile3{2, 1, 1}));
  EXPECT_EQ(plan.threads, 384u);
  EXPECT_EQ(plan.consumerWarpgroups, 2u);
  EXPECT_EQ(plan.producerRegs, 40u);
  EXPECT_EQ(plan.consumerRegs, 232u);
  // 4 x (128 + 256) x 64 x 2 bytes fit in 232448, five do not.
  EXPECT_EQ(*plan.spec.stages, 4);
  EXPECT_EQ(*plan.spec.persistent, Persistence::on);
  EXPECT_EQ(requirementsOf(plan), (Texts{"a_ptr % 16 == 0", "b_ptr % 16 == 0", "d_ptr % 16 == 0"}));
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
TEST(PlanDefaults, Print) {
  for (Size size : {fixed(0), fixed(1), fixed(64), fixed(127), fixed(128), fixed(512), fixed(1024), fixed(2048),
                    fixed(3072), fixed(4096), fixed(8192), dynamic()})
    for (Target target : {Target::sm_80, Target::sm_86, Target::sm_90a}) {
      Spec spec = problem(size, size, size);
      spec.target = given(target);
      Plan p = planOf(spec);
      printf("%s %s: %s %s %s %ldx%ldx%ld warp %ldx%ld stages %ld cluster %ldx%ld threads %u shared %ld\n  %s\n",
             nameOf(target).str().c_str(), size.fixed ? std::to_string(*size.fixed).c_str() : "dyn",
             nameOf(*p.spec.instruction).str().c_str(), nameOf(*p.spec.copy).str().c_str(),
             nameOf(*p.spec.schedule).str().c_str(), p.blockM, p.blockN, p.blockK, p.warpM, p.warpN, *p.spec.stages,
             p.clusterM, p.clusterN, p.threads, p.sharedBytes, p.spec.block.reason.c_str());
    }
}
