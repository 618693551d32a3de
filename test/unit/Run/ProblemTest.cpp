// Inputs: shapes, poison around them, and what each kind promises.
#include "Naive.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

namespace {
Failure failureOf(const ptx::LaunchInfo &info, const ProblemOptions &options) {
  auto made = makeProblem(info, options);
  EXPECT_FALSE(made);
  return made ? Failure{} : made.failure();
}
/// The largest sum |a||b| of any element of D.
double largestMagnitude(const GemmProblem &problem) {
  double largest = 0;
  for (int64_t i = 0; i < problem.args.m; ++i)
    for (int64_t j = 0; j < problem.args.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < problem.args.k; ++k)
        sum += std::fabs(problem.a.at(i, k) * problem.b.at(k, j));
      largest = std::max(largest, sum);
    }
  return largest;
}
} // namespace

TEST(Problem, DynamicSizesTakeTheDefaultAndFixedOnesTheirs) {
  ptx::LaunchInfo info = naive::info();
  info.n = Expr(48);
  ProblemOptions options;
  options.k = 16;
  options.defaultSize = 96;
  GemmProblem problem = naive::problem(info, options);
  EXPECT_EQ(problem.args.m, 96);
  EXPECT_EQ(problem.args.n, 48);
  EXPECT_EQ(problem.args.k, 16);
  EXPECT_EQ(problem.args.lda, 16); // row: k
  EXPECT_EQ(problem.args.ldb, 16); // col: k
  EXPECT_EQ(problem.args.ldd, 48);
  options.n = 47;
  EXPECT_EQ(failureOf(info, options).id, Diag::launch_fixed);
}

TEST(Problem, PaddingIsPoisonAndElementsAreNot) {
  ProblemOptions options = naive::sizes(5, 4, 6);
  options.lda = 9;
  GemmProblem problem = naive::problem(naive::info(), options);
  ASSERT_EQ(problem.a.data.size(), (4 * 9 + 6) * 2u);
  for (int64_t element = 0; element < 4 * 9 + 6; ++element)
    EXPECT_EQ(problem.a.bitsAt(element) == poison, element % 9 >= 6) << element;
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(problem.d.bits(i, j), poison);
}

TEST(Problem, SameSeedSameNumbers) {
  ProblemOptions options = naive::sizes(20, 20, 20, InputKind::normal);
  GemmProblem first = naive::problem(naive::info(), options), second = naive::problem(naive::info(), options);
  EXPECT_EQ(first.a.data, second.a.data);
  EXPECT_NE(first.a.data, first.b.data);
  options.seed = 2;
  EXPECT_NE(naive::problem(naive::info(), options).a.data, first.a.data);
}

TEST(Problem, IntegersStayExactInF32) {
  GemmProblem problem = naive::problem(naive::info(), naive::sizes(8, 8, 3000));
  EXPECT_TRUE(problem.exact);
  EXPECT_LE(largestMagnitude(problem), 0x1p24);
  EXPECT_EQ(largestMagnitude(problem), std::trunc(largestMagnitude(problem)));
}

TEST(Problem, IntegersStayExactInF16) {
  ptx::LaunchInfo info = naive::info();
  info.accumulator = Elem::f16;
  for (int64_t k : {16, 200, 3000, 5000}) { // dense and wide, dense, sparse
    GemmProblem problem = naive::problem(info, naive::sizes(8, 8, k));
    EXPECT_TRUE(problem.exact);
    EXPECT_LE(largestMagnitude(problem), 2048) << k;
    EXPECT_GT(largestMagnitude(problem), k == 16 ? 60 : 500) << k; // and say something
  }
}

TEST(Problem, ScalesAreInTheBudget) {
  ptx::LaunchInfo info = naive::info();
  info.accumulator = Elem::f16;
  ProblemOptions options = naive::sizes(8, 8, 400);
  options.alpha = -2.5;
  options.beta = 0.25;
  GemmProblem problem = naive::problem(info, options);
  EXPECT_TRUE(problem.exact);
  EXPECT_EQ(problem.scaleBits, 2);
  double largestC = 0;
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      largestC = std::max(largestC, std::fabs(problem.c.at(i, j)));
  EXPECT_LE(4 * (2.5 * largestMagnitude(problem) + 0.25 * largestC), 2048); // in units of 1/4
  options.alpha = 0.3; // no multiple of anything short: no bit-exact promise
  EXPECT_FALSE(naive::problem(info, options).exact);
}

TEST(Problem, LargeOnesHaveAResultWithoutRounding) {
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::bf16);
  GemmProblem problem = naive::problem(info, naive::sizes(300, 300, 1000));
  EXPECT_TRUE(problem.exactResult);
  int64_t nonZero = 0;
  for (int64_t i = 0; i < 300; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 1000; ++k)
      sum += std::fabs(problem.a.at(i, k)) * 2;
    EXPECT_LE(sum, 256); // b is at most 2 in magnitude
    for (int64_t k = 500; k < 1000; ++k)
      nonZero += problem.a.at(i, k) != 0;
  }
  EXPECT_GT(nonZero, 300 * 20); // all of K takes part
  EXPECT_FALSE(naive::problem(info, naive::sizes(30, 30, 1000)).exactResult);
}

TEST(Problem, SpecialsAreThereAndFew) {
  GemmProblem problem = naive::problem(naive::info(), naive::sizes(96, 96, 96, InputKind::special));
  for (const HostMatrix *matrix : {&problem.a, &problem.b}) {
    int nan = 0, inf = 0, subnormal = 0, rows = 0;
    for (int64_t i = 0; i < 96; ++i) {
      bool dirty = false;
      for (int64_t j = 0; j < 96; ++j) {
        double value = matrix->at(i, j);
        nan += std::isnan(value);
        inf += std::isinf(value);
        subnormal += value != 0 && std::fabs(value) < 0x1p-14;
        dirty |= !std::isfinite(value);
      }
      rows += dirty;
    }
    EXPECT_GT(nan, 0);
    EXPECT_GT(inf, 1);
    EXPECT_GT(subnormal, 100);
    EXPECT_LT(rows, 24);
  }
}

TEST(Problem, HostileSizesAreRefusedBeforeAllocation) {
  ProblemOptions options = naive::sizes(int64_t(1) << 24, int64_t(1) << 24, 1);
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::run_too_large);
  options = naive::sizes(1, 1, 1);
  options.ldd = INT64_MAX; // one row: the leading dimension is never used
  EXPECT_TRUE(bool(makeProblem(naive::info(), options)));
  options = naive::sizes(3, 1, 1);
  options.ldd = INT64_MAX;
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::launch_too_large);
  options = naive::sizes(-3, 1, 1);
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::launch_negative);
  options = naive::sizes(3, 1, 5);
  options.lda = 4;
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::launch_ld);
}

TEST(Problem, WhatTheHarnessCannotDoIsSaid) {
  ProblemOptions options = naive::sizes(4, 4, 4);
  options.misalign = 3;
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::run_misalign);
  options.misalign = 2;
  EXPECT_EQ(failureOf(naive::info(Elem::f16, Elem::f32), options).id, Diag::run_misalign);
  options.misalign = 256;
  EXPECT_EQ(failureOf(naive::info(), options).id, Diag::run_misalign);
  options.misalign = 0;
  ptx::LaunchInfo odd = naive::info();
  odd.accumulator = Elem::bf16;
  EXPECT_EQ(failureOf(odd, options).id, Diag::run_type);
  options.inPlace = true;
  options.beta = 1;
  ptx::LaunchInfo info = naive::info();
  info.c.order = Order::col;
  EXPECT_EQ(failureOf(info, options).id, Diag::run_in_place);
}
