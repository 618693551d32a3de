// What a launch must fulfil: exactly the alignments that the plan's copies rely on, and what tensor maps need.
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;

namespace {
bool holds(const Plan &plan, const llvm::StringMap<int64_t> &launch) {
  for (const Expr &requirement : plan.requirements)
    if (requirement.eval(launch) != 1)
      return false;
  return true;
}
llvm::StringMap<int64_t> launch() {
  return {{"m", 100},   {"n", 200},      {"k", 300},      {"lda", 304}, {"ldb", 200},       {"ldc", 200},
          {"ldd", 200}, {"a_ptr", 4096}, {"b_ptr", 8192}, {"c_ptr", 0}, {"d_ptr", 1 << 20}, {"alpha_is_zero", 0}};
}
llvm::StringMap<int64_t> launchWith(llvm::StringRef name, int64_t value) {
  auto values = launch();
  values[name] = value;
  return values;
}
Spec open() {
  Spec spec = dynamicProblem();
  spec.alpha = given(Scale{});
  spec.beta = given(Scale{});
  return spec;
}
} // namespace

TEST(PlanRequirements, Tma) {
  Plan plan = planOf(open());
  ASSERT_EQ(*plan.spec.copy, CopyKind::tma);
  EXPECT_TRUE(holds(plan, launch()));
  EXPECT_FALSE(holds(plan, launchWith("k", 0)));
  EXPECT_FALSE(holds(plan, launchWith("alpha_is_zero", 1)));
  EXPECT_FALSE(holds(plan, launchWith("m", int64_t(1) << 31)));
  EXPECT_FALSE(holds(plan, launchWith("lda", int64_t(1) << 39)));
  for (const char *ld : {"lda", "ldb", "ldc", "ldd"})
    EXPECT_FALSE(holds(plan, launchWith(ld, 308))) << ld; // 616 bytes: no multiple of 16
  for (const char *pointer : {"a_ptr", "b_ptr", "c_ptr", "d_ptr"})
    EXPECT_FALSE(holds(plan, launchWith(pointer, 4096 + 8))) << pointer;
}

TEST(PlanRequirements, StreamKCountsItsSteps) {
  Spec spec = open();
  spec.schedule = given(Schedule::cooperative);
  spec.split = given(SplitMode::stream_k);
  spec.persistent = given(Persistence::on);
  spec.block = given(std::array<int64_t, 3>{128, 128, 64});
  spec.cluster = given(std::array<int64_t, 3>{1, 1, 1});
  Plan plan = planOf(spec);
  EXPECT_TRUE(holds(plan, launch()));
  auto large = launchWith("k", 64 << 10);
  large["m"] = 128 << 10, large["n"] = 128 << 4; // 2^24 steps
  EXPECT_TRUE(holds(plan, large));
  large["n"] = 128 << 11; // 2^31
  EXPECT_FALSE(holds(plan, large));
}

// A TMA store writes whole 16 bytes: rows of D must end there.
TEST(PlanRequirements, TmaStoreEndsRowsAt16Bytes) {
  Spec spec = open();
  spec.beta = given(Scale{0.0});
  Plan plan = planOf(spec);
  ASSERT_EQ(*plan.spec.store, StoreKind::tma);
  EXPECT_TRUE(holds(plan, launch()));
  EXPECT_FALSE(holds(plan, launchWith("n", 201)));
  EXPECT_TRUE(holds(plan, launchWith("m", 101)));
  spec.d.ld = given(Size{2008});
  spec.n = given(Size{2001});
  EXPECT_NE(*planOf(spec).spec.store, StoreKind::tma);
  spec.n = given(Size{2000});
  EXPECT_EQ(*planOf(spec).spec.store, StoreKind::tma);
}

TEST(PlanRequirements, CpAsyncRunsAnyK) {
  Spec spec = open();
  spec.target = given(Target::sm_80);
  Plan plan = planOf(spec);
  EXPECT_TRUE(holds(plan, launchWith("k", 0)));
  EXPECT_FALSE(holds(plan, launchWith("lda", 308)));
}

TEST(PlanRequirements, SmallerPromiseSmallerCondition) {
  Spec spec = open();
  spec.a.align = given(4u);
  spec.a.repack = given(Repack::off);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.copy, CopyKind::cp_async);
  EXPECT_EQ(plan.copyBytesA, 4u);
  EXPECT_TRUE(holds(plan, launchWith("a_ptr", 4096 + 4)));
  EXPECT_TRUE(holds(plan, launchWith("lda", 302)));
  EXPECT_FALSE(holds(plan, launchWith("lda", 301)));
  EXPECT_FALSE(holds(plan, launchWith("b_ptr", 4096 + 4)));
}

// A copy is aligned whatever it is made from; TMA's other conditions stay.
TEST(PlanRequirements, RepackedOperandsMayLieAnywhere) {
  Spec spec = open();
  spec.a.align = given(2u);
  Plan plan = planOf(spec);
  ASSERT_TRUE(plan.a.repacked);
  EXPECT_FALSE(plan.b.repacked);
  EXPECT_TRUE(holds(plan, launchWith("a_ptr", 4098)));
  EXPECT_TRUE(holds(plan, launchWith("lda", 301)));
  EXPECT_FALSE(holds(plan, launchWith("b_ptr", 4098)));
  EXPECT_FALSE(holds(plan, launchWith("ldb", 201)));
  EXPECT_FALSE(holds(plan, launchWith("k", 0)));
  EXPECT_FALSE(holds(plan, launchWith("alpha_is_zero", 1)));
}

TEST(PlanRequirements, UnreadCAsksNothing) {
  Spec spec = open();
  spec.beta = given(Scale{-0.0});
  EXPECT_TRUE(holds(planOf(spec), launchWith("c_ptr", 1)));
}

TEST(PlanRequirements, StaticLeadingDimensionsAreJudgedAtOnce) {
  Spec spec = open();
  spec.d.ld = given(Size{4097});
  spec.n = given(fixed(4096));
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma); // D's rows may start anywhere
  EXPECT_EQ(plan.d.align, 2u);
  EXPECT_TRUE(holds(plan, launchWith("d_ptr", 4098)));
}

TEST(PlanRequirements, FallbackAsksNothing) {
  Diags diags;
  std::optional<Plan> plan = makeFallbackPlan(open(), diags);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->requirements.empty());
  EXPECT_EQ(plan->blockM, 64);
  EXPECT_EQ(plan->blockN, 64);
  EXPECT_EQ(plan->blockK, 32);
  EXPECT_EQ(plan->copyBytesA, 2u);
  EXPECT_EQ(plan->a.ld.str(), "lda");
}

// What only the planned kernel can do is no reason to have no other.
TEST(PlanRequirements, FallbackOfAKernelThatOverlaps) {
  Spec spec = open();
  spec.dependent = given(Persistence::on);
  spec.prefetch = given(int64_t(4));
  spec.trigger = given(Trigger::sums);
  spec.inFlight = given(int64_t(2));
  ASSERT_EQ(*planOf(spec).spec.inFlight, 2);
  Diags diags;
  std::optional<Plan> plan = makeFallbackPlan(spec, diags);
  ASSERT_TRUE(plan);
  EXPECT_EQ(*plan->spec.prefetch, 0);
  EXPECT_EQ(*plan->spec.trigger, Trigger::sums);
  EXPECT_EQ(*plan->spec.inFlight, 1);
}
