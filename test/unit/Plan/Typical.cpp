// Ranges of sizes that are given at launch, and plans for what is typical.
#include "gemmc/Plan/Typical.h"
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;

TEST(PlanTypical, RangesAreEightOfAnOctave) {
  EXPECT_EQ(endOfRange(0), 8);
  EXPECT_EQ(endOfRange(1), 8);
  EXPECT_EQ(endOfRange(8), 8);
  EXPECT_EQ(endOfRange(9), 16);
  EXPECT_EQ(endOfRange(64), 64);
  EXPECT_EQ(endOfRange(65), 72);
  EXPECT_EQ(endOfRange(129), 144);
  EXPECT_EQ(endOfRange(4096), 4096);
  EXPECT_EQ(endOfRange(4097), 4608);
  EXPECT_EQ(endOfRange(16384), 16384);
  EXPECT_EQ(endOfRange(int64_t(1) << 40), 16384);
  EXPECT_EQ(endOfRangeOfK(65), 96);
  EXPECT_EQ(endOfRangeOfK(97), 128);
  EXPECT_EQ(endOfRangeOfK(int64_t(1) << 40), 262144);
  // An end is of its own range, nothing is beyond the end of its range, and they come in order.
  for (int64_t size = 1, last = 0; size <= 20000; ++size) {
    const int64_t end = endOfRange(size);
    EXPECT_EQ(endOfRange(end), end);
    EXPECT_GE(end, std::min<int64_t>(size, 16384));
    EXPECT_GE(end, last);
    EXPECT_LE(8 * end, std::max<int64_t>(9 * size, 8 * (size + 7)));
    last = end;
  }
}

TEST(PlanTypical, ThePlanIsThatOfTheSizes) {
  for (int64_t m : {16, 200, 1000}) {
    Spec spec = problem(dynamic(), fixed(4096), fixed(4096));
    spec.b.layout = given(Order::col);
    spec.typicalM = given(m);
    Plan plan = planOf(spec);
    EXPECT_TRUE(plan.spec.m.value.dynamic());
    EXPECT_FALSE(plan.spec.block.given);
    EXPECT_NE(plan.spec.block.reason.find("m taken as " + std::to_string(m)), std::string::npos);
    spec.m = given(fixed(m));
    Plan same = planOf(spec);
    EXPECT_EQ(*plan.spec.block, *same.spec.block);
    EXPECT_EQ(*plan.spec.cluster, *same.spec.cluster);
    EXPECT_EQ(*plan.spec.stages, *same.spec.stages);
    EXPECT_EQ(plan.swapped, same.swapped);
  }
}

TEST(PlanTypical, WhatIsGivenStays) {
  Spec spec = problem(dynamic(), fixed(4096), fixed(4096));
  spec.typicalM = given<int64_t>(64);
  spec.block = given(Tile3{128, 128, 64});
  EXPECT_EQ(*planOf(spec).spec.block, (Tile3{128, 128, 64}));
  spec.block = given(Tile3{100, 128, 64}); // its error is said once
  EXPECT_EQ(problemsOf(spec), problemsOf([&] {
              Spec fixedSize = spec;
              fixedSize.m = given(fixed(64));
              return fixedSize;
            }()));
}

TEST(PlanTypical, OtherRangesAreNamed) {
  Spec spec = problem(dynamic(), fixed(4096), dynamic());
  EXPECT_EQ(typicalFor(spec, {}), "");
  EXPECT_EQ(typicalFor(spec, {4000, 64, 4096}), "");
  EXPECT_EQ(typicalFor(spec, {64, 64, 100}), "--set typical.m=64 --set typical.k=100");
  EXPECT_EQ(assumedSizes(spec), "m taken as 4096, k as 4096");
}
