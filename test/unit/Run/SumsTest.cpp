// Sums in f16 and f32 of many products: what their rounding loses is accepted, what a wrong kernel loses is not.
#include "Naive.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

namespace {
constexpr int64_t rows = 8, columns = 7, step = 64;

/// `together` products at a time, added exactly and rounded by the compiler's own types.
double roundedSum(const GemmProblem &problem, int64_t i, int64_t j, int64_t together) {
  double sum = 0;
  for (int64_t start = 0; start < problem.args.k; start += together) {
    for (int64_t k = start; k < std::min(start + together, problem.args.k); ++k)
      sum += problem.a.at(i, k) * problem.b.at(k, j);
    sum = problem.accumulator == Elem::f16 ? double(_Float16(sum)) : double(float(sum));
  }
  return sum;
}

double stepSum(const GemmProblem &problem, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < step; ++k)
    sum += problem.a.at(i, k) * problem.b.at(k, j);
  return sum;
}

GemmProblem problemOf(Elem accumulator, int64_t k) {
  ptx::LaunchInfo info = naive::info(Elem::f16, accumulator == Elem::f16 ? Elem::f16 : Elem::f32);
  info.accumulator = accumulator;
  return naive::problem(info, naive::sizes(rows, columns, k, InputKind::normal));
}
} // namespace

TEST(Sums, WhatRoundingLosesIsAccepted) {
  for (Elem accumulator : {Elem::f16, Elem::f32})
    for (int64_t k : {1, 8, 100, 1024, 4096, 16384})
      for (int64_t together : {1, 8, 16}) {
        if (accumulator == Elem::f16 && together < 8)
          continue; // no tensor core does
        SCOPED_TRACE(testing::Message() << nameOf(accumulator).str() << ", k = " << k << ", " << together);
        GemmProblem problem = problemOf(accumulator, k);
        HostMatrix d =
            naive::resultOf(problem, [&](int64_t i, int64_t j) { return roundedSum(problem, i, j, together); });
        Reference reference(problem, 1);
        EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
        EXPECT_TRUE(verifyLarge(reference, d).ok) << verifyLarge(reference, d).str();
      }
}

TEST(Sums, AStepOfKTooFewIsNot) {
  for (Elem accumulator : {Elem::f16, Elem::f32})
    for (int64_t k : {128, 1024, 4096, 16384}) {
      if (accumulator == Elem::f16 && k > 4096)
        continue; // 64 of 16384 products are less than what such sums may lose
      SCOPED_TRACE(testing::Message() << nameOf(accumulator).str() << ", k = " << k);
      GemmProblem problem = problemOf(accumulator, k);
      HostMatrix d = naive::resultOf(
          problem, [&](int64_t i, int64_t j) { return roundedSum(problem, i, j, 16) - stepSum(problem, i, j); });
      Reference reference(problem, 1);
      EXPECT_GT(verifyPlain(reference, d).bad, uint64_t(rows * columns / 4));
      EXPECT_FALSE(verifyLarge(reference, d).ok);
      problem.randomSigns = false; // the worst case accepts more: all of that in f16
      if (accumulator == Elem::f16 && k > 128) {
        EXPECT_TRUE(verifyPlain(Reference(problem, 1), d).ok);
      }
    }
}
