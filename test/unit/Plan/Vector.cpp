// A matrix by a vector: which cut, and whether multiply-adds or tensor cores.
#include "Specs.h"
#include "gemmc/Plan/Analysis.h"
#include "gtest/gtest.h"

using namespace gemmc;
using namespace gemmc::test;

namespace {
/// 1 x n by k x n, in lines of k or rows of n.
Spec vectorBy(int64_t n, int64_t k, Elem type, Order b) {
  Spec spec = problem(fixed(1), fixed(n), fixed(k));
  spec.a.type = given(type), spec.b.layout = given(b);
  return spec;
}
Spec withFma(Spec spec) {
  spec.instruction = given(Instruction::fma);
  return spec;
}
} // namespace

/// Races of an H200 (2026-11-30, docs/hopper-shapes.md, *A matrix by a vector*): which of both was faster by 5% and
/// more.
TEST(PlanVector, WhatIsFaster) {
  struct Row {
    int64_t n, k;
    Elem type;
    Order b;
    bool vector;
  };
  const Row rows[] = {
      {4096, 4096, Elem::bf16, Order::col, true},   // 8.8 us, 12.2 by cuBLASLt
      {11008, 13824, Elem::f16, Order::col, true},  // 68.4, 78.7 by wgmma
      {4095, 4097, Elem::tf32, Order::col, true},   // 17.1, 31.7
      {10001, 301, Elem::tf32, Order::col, true},   // 4.1, 10.1
      {523, 15943, Elem::bf16, Order::col, true},   // 7.2, 10.4
      {1560, 622, Elem::bf16, Order::col, true},    // 1.8, 4.6
      {494, 668, Elem::bf16, Order::row, true},     // 1.8, 2.6
      {4096, 4096, Elem::f64, Order::col, true},    // 30.3, 32.3 by cuBLASLt
      {5120, 5760, Elem::bf16, Order::row, false},  // 16.1, 15.0 by wgmma
      {848, 4320, Elem::bf16, Order::row, false},   // 5.1, 3.8
      {7297, 18868, Elem::bf16, Order::row, false}, // 98.6, 80.6
  };
  for (const Row &row : rows) {
    const Plan plan = planOf(vectorBy(row.n, row.k, row.type, row.b));
    EXPECT_EQ(*plan.spec.instruction == Instruction::fma, row.vector) << row.n << "x" << row.k;
    if (row.vector)
      EXPECT_FALSE(plan.spec.instruction.given);
  }
}

/// By hand: lines of 48 bf16 are six loads of 16 bytes, for which eight lanes are enough, and 16 are half idle.
TEST(PlanVector, LanesForShortLines) {
  const Plan plan = planOf(withFma(vectorBy(40000, 48, Elem::bf16, Order::col)));
  EXPECT_LE(plan.warpK, 128);
  EXPECT_GE(plan.warpM, 2); // rows beside each other in a warp
  EXPECT_EQ(plan.copyBytesA, 16u);
}

/// What a load takes: whole lines of it, from where all rows start.
TEST(PlanVector, BytesOfALoad) {
  struct Row {
    int64_t n, k, ld;
    unsigned align, bytes;
    Order b;
  };
  const Row rows[] = {
      {100, 128, 128, 16, 16, Order::col}, {100, 132, 132, 16, 8, Order::col},  {100, 130, 130, 16, 4, Order::col},
      {100, 129, 129, 16, 2, Order::col},  {100, 129, 136, 16, 2, Order::col}, // the rest of a line may be anything
      {100, 128, 128, 4, 4, Order::col},   {128, 100, 128, 16, 16, Order::row}, {100, 128, 104, 16, 8, Order::row}};
  for (const Row &row : rows) {
    Spec spec = vectorBy(row.n, row.k, Elem::bf16, row.b);
    spec.b.ld = given(fixed(row.ld)), spec.b.align = given(row.align);
    EXPECT_EQ(planOf(withFma(spec)).copyBytesA, row.bytes) << row.n << "x" << row.k << " ld " << row.ld;
  }
}

/// Every listed choice is a plan, and is the cut that it says.
TEST(PlanVector, ChoicesArePlans) {
  unsigned plans = 0;
  for (auto [n, k] : {std::pair<int64_t, int64_t>{250, 8000}, {4095, 300}, {1, 7}, {33, 100000}})
    for (Elem type : {Elem::f16, Elem::tf32, Elem::f64})
      for (Order b : {Order::row, Order::col}) {
        const Spec spec = withFma(vectorBy(n, k, type, b));
        Diags diags;
        const std::vector<Alternative> found = alternatives(spec, 0, diags);
        EXPECT_FALSE(found.empty());
        for (size_t i = 0; i < found.size(); i += 7) {
          Spec with = spec;
          ASSERT_TRUE(applyChoice(with, found[i].choice, diags));
          std::optional<Plan> plan = makePlan(with, diags);
          ASSERT_TRUE(plan) << found[i].choice;
          EXPECT_EQ(plan->blockN, 1);
          EXPECT_LE(plan->threads, 1024u);
          EXPECT_LE(plan->blockM, int64_t(plan->threads));
          ++plans;
        }
      }
  EXPECT_GT(plans, 500u);
}

/// A kernel for any m is none for one alone; nor is that of a batch whose vectors are one matrix.
TEST(PlanVector, OnlyOfKnownVectors) {
  Spec dynamic = vectorBy(4096, 4096, Elem::bf16, Order::col);
  dynamic.typicalM = given<int64_t>(1), dynamic.m = given(test::dynamic());
  EXPECT_EQ(*planOf(dynamic).spec.instruction, Instruction::wgmma);
  Spec folded = vectorBy(4096, 4096, Elem::bf16, Order::col);
  folded.batch = given(fixed(64)), folded.b.batchStride = given(fixed(0));
  EXPECT_EQ(*planOf(folded).spec.foldBatch, Persistence::on);
  EXPECT_EQ(*planOf(folded).spec.instruction, Instruction::wgmma);
  EXPECT_EQ(*planOf(withFma(folded)).spec.foldBatch, Persistence::off); // unless it is asked for
}

/// What the estimate says of measured kernels: within a fifth.
TEST(PlanVector, Estimates) {
  struct Row {
    int64_t n, k;
    Order b;
    double us;
  };
  const Row rows[] = {{13824, 14336, Order::col, 87.99}, {4096, 18432, Order::col, 34.81},
                      {13824, 3584, Order::col, 23.2},   {5760, 10240, Order::row, 28.76},
                      {28672, 2048, Order::row, 29.3},   {33472, 216, Order::row, 4.88},
                      {1368, 280, Order::col, 1.30}};
  for (const Row &row : rows) {
    const Analysis analysis = analyse(planOf(withFma(vectorBy(row.n, row.k, Elem::bf16, row.b))), 0);
    EXPECT_NEAR(analysis.seconds * 1e6 / row.us, 1, 0.2) << row.n << "x" << row.k;
    EXPECT_STREQ(analysis.bound, row.us > 2 ? "memory" : "the launch");
  }
}
