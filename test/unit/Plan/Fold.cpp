// Batches that are one product.
#include "Specs.h"
#include "gemmc/Plan/Analysis.h"
#include "gemmc/Plan/Key.h"

using namespace gemmc;
using namespace gemmc::test;

namespace {
/// `batch` products of m x n x k beside one B.
Spec besideOneB(int64_t m, int64_t n, int64_t k, int64_t batch) {
  Spec spec = problem(fixed(m), fixed(n), fixed(k));
  spec.b.layout = given(Order::col);
  spec.batch = given(fixed(batch));
  spec.b.batchStride = given(fixed(0));
  return spec;
}

Persistence folds(const Spec &spec) { return *planOf(spec).spec.foldBatch; }
} // namespace

/// It is planned as the one product, ranked, timed and measured as it, and its spec stays what it was.
TEST(PlanFold, ABatchThatIsOneProduct) {
  const Spec batch = besideOneB(16, 4096, 4096, 32);
  Spec one = problem(fixed(512), fixed(4096), fixed(4096));
  one.b.layout = given(Order::col);
  const Plan folded = planOf(batch), plan = planOf(one);
  EXPECT_EQ(*folded.spec.foldBatch, Persistence::on);
  EXPECT_EQ(folded.spec.foldBatch.reason, "32 products of 16 rows beside one b are one of 512");
  EXPECT_EQ(*folded.spec.m, fixed(16));
  EXPECT_EQ(*folded.spec.batch, fixed(32));
  EXPECT_EQ(*folded.spec.a.batchStride, fixed(16 * 4096));
  EXPECT_EQ(*folded.spec.block, *plan.spec.block);
  EXPECT_EQ(folded.m, Expr(512));
  EXPECT_EQ(folded.batch, Expr(1));
  EXPECT_EQ(folded.requirements, plan.requirements);

  EXPECT_EQ(problemKey(batch)->text(), problemKey(one)->text());
  EXPECT_DOUBLE_EQ(analyse(folded, 0).seconds, analyse(plan, 0).seconds);
  Diags diags;
  auto ways = alternatives(batch, 4, diags), its = alternatives(one, 4, diags);
  ASSERT_EQ(ways.size(), its.size());
  for (size_t i = 0; i < ways.size(); ++i)
    EXPECT_EQ(ways[i].choice, its[i].choice);
}

TEST(PlanFold, WhatIsNone) {
  EXPECT_EQ(folds(besideOneB(16, 256, 128, 4)), Persistence::on);
  auto with = [](auto change) {
    Spec spec = besideOneB(16, 256, 128, 4);
    change(spec);
    return folds(spec);
  };
  EXPECT_EQ(with([](Spec &spec) { spec.foldBatch = given(Persistence::off); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.b.batchStride = given(fixed(256 * 128)); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.a.batchStride = given(fixed(16 * 128 + 8)); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.d.batchStride = given(fixed(16 * 256 + 8)); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.c.batchStride = given(fixed(0)); }), Persistence::on); // which is not read
  EXPECT_EQ(with([](Spec &spec) {
              spec.c.batchStride = given(fixed(0));
              spec.beta = given(Scale{1.0});
            }),
            Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.batch = given(Size{}); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.m = given(Size{}); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.batch = given(fixed(0)); }), Persistence::off);
  EXPECT_EQ(with([](Spec &spec) { spec.batch = given(fixed(1)); }), Persistence::off);
  // Enough for tiles of their own, but where it is asked for; more than a tensor map counts.
  EXPECT_EQ(folds(besideOneB(63, 256, 128, 4)), Persistence::on);
  EXPECT_EQ(folds(besideOneB(64, 256, 128, 4)), Persistence::off);
  Spec spec = besideOneB(64, 256, 128, 4);
  spec.foldBatch = given(Persistence::on);
  EXPECT_EQ(planOf(spec).m, Expr(256));
  spec.m = given(fixed(int64_t(1) << 24)), spec.n = given(fixed(8)), spec.k = given(fixed(8));
  spec.batch = given(fixed(127));
  EXPECT_EQ(problemsOf(spec), std::vector<std::string>());
  spec.batch = given(fixed(128));
  EXPECT_EQ(problemsOf(spec), std::vector<std::string>{"plan_fold"});
}

/// All columns beside one A: end to end in column order, in each other's rows in row order.
TEST(PlanFold, Columns) {
  Spec spec = problem(fixed(256), fixed(16), fixed(128));
  spec.b.layout = given(Order::col);
  spec.batch = given(fixed(4));
  spec.a.batchStride = given(fixed(0));
  EXPECT_EQ(folds(spec), Persistence::off); // D lies end to end in rows
  spec.d.layout = given(Order::col);
  EXPECT_EQ(folds(spec), Persistence::on);
  spec.d.layout = given(Order::row), spec.d.ld = given(fixed(64)), spec.d.batchStride = given(fixed(16));
  EXPECT_EQ(folds(spec), Persistence::on);
  const Plan plan = planOf(spec);
  EXPECT_EQ(plan.swapped ? plan.m : plan.n, Expr(64));
  spec.b.layout = given(Order::row); // which B, end to end, is not
  EXPECT_EQ(folds(spec), Persistence::off);
  spec.b.ld = given(fixed(64)), spec.b.batchStride = given(fixed(16));
  EXPECT_EQ(folds(spec), Persistence::on);
  spec.b.ld = given(fixed(63));
  EXPECT_EQ(folds(spec), Persistence::off);
}
