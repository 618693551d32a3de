// Sums of 8-bit floats: what the tensor cores lose of them is accepted, what a wrong kernel loses is not.
#include "Naive.h"
#include "Pace.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

namespace {
constexpr int64_t rows = 8, columns = 7, together = 32, blockDepth = 128;
constexpr int fractionBits = 13;

double cutTo(double value, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(value, fractionBits - exponent)), exponent - fractionBits);
}

/// As docs/emulator.md, *Arithmetic*, has it: products of 32 elements of k and the sum so far, each cut towards zero
/// to 13 bits of fraction of the largest one, added exactly; the sum is cut to 13 bits of its own.
double tensorCoreSum(const GemmProblem &problem, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t start = 0; start < problem.args.k; start += together) {
    std::vector<double> terms{sum};
    for (int64_t k = start; k < std::min(start + together, problem.args.k); ++k)
      terms.push_back(problem.a.at(i, k) * problem.b.at(k, j));
    double largest = 0;
    for (double term : terms)
      largest = std::max(largest, std::fabs(term));
    if (largest == 0)
      continue;
    sum = 0;
    for (double term : terms)
      sum += cutTo(term, std::ilogb(largest));
    sum = sum == 0 ? 0 : cutTo(sum, std::ilogb(sum));
  }
  return sum;
}

double blockSum(const GemmProblem &problem, int64_t i, int64_t j, int64_t start) {
  double sum = 0;
  for (int64_t k = start; k < std::min(start + blockDepth, problem.args.k); ++k)
    sum += problem.a.at(i, k) * problem.b.at(k, j);
  return sum;
}

GemmProblem problemOf(Elem type, Elem output, int64_t k, InputKind kind, uint64_t seed = 1) {
  ProblemOptions options = naive::sizes(rows, columns, k, kind);
  options.seed = seed;
  return naive::problem(naive::info(type, output), options);
}

struct Case {
  Elem type;
  int64_t k;
};
/// But the deepest under sanitizers, which is most of the work.
std::vector<Case> cases(llvm::ArrayRef<int64_t> depths) {
  if (gemmc::test::instrumented)
    depths = depths.drop_back();
  std::vector<Case> all;
  for (Elem type : {Elem::e4m3, Elem::e5m2})
    for (int64_t k : depths)
      all.push_back({type, k});
  return all;
}
} // namespace

TEST(Fp8, WhatTheTensorCoresLoseIsAccepted) {
  for (const Case &c : cases({32, 64, 100, 256, 1024, 4096, 16384}))
    for (uint64_t seed : {1, 2}) {
      SCOPED_TRACE(testing::Message() << nameOf(c.type).str() << ", k = " << c.k << ", seed " << seed);
      GemmProblem problem = problemOf(c.type, Elem::f32, c.k, InputKind::normal, seed);
      Reference reference(problem, 1);
      double largest = 0;
      HostMatrix d = naive::resultOf(problem, [&](int64_t i, int64_t j) {
        double sum = tensorCoreSum(problem, i, j), exact = 0;
        for (int64_t k = 0; k < c.k; ++k)
          exact += problem.a.at(i, k) * problem.b.at(k, j);
        largest = std::max(largest, std::fabs(sum - exact));
        return sum;
      });
      EXPECT_TRUE(c.k < 64 || largest > 0x1p-10) << "nothing is lost";
      EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
      EXPECT_TRUE(verifyLarge(reference, d).ok) << verifyLarge(reference, d).str();
    }
}

TEST(Fp8, ABlockOfKTooFewOrTooManyIsNot) {
  for (const Case &c : cases({64, 128, 512, 1024, 4096, 16384}))
    for (double times : {-1.0, 1.0}) {
      SCOPED_TRACE(testing::Message() << nameOf(c.type).str() << ", k = " << c.k << ", " << times);
      GemmProblem problem = problemOf(c.type, Elem::bf16, c.k, InputKind::normal);
      const int64_t start = c.k / 2 / blockDepth * blockDepth;
      HostMatrix d = naive::resultOf(problem, [&](int64_t i, int64_t j) {
        return tensorCoreSum(problem, i, j) + times * blockSum(problem, i, j, start);
      });
      Reference reference(problem, 1);
      // 128 of 16384 products are hardly more than what the worst sum loses.
      EXPECT_GT(verifyPlain(reference, d).bad, uint64_t(c.k <= 4096 ? rows * columns / 2 : 0));
      EXPECT_FALSE(verifyLarge(reference, d).ok);
    }
}

// Integers are chosen such that 13 bits of fraction hold all sums of them: nothing is lost, and one unit is too many.
TEST(Fp8, IntegersAreExact) {
  for (const Case &c : cases({32, 100, 512, 3000, 16384})) {
    SCOPED_TRACE(testing::Message() << nameOf(c.type).str() << ", k = " << c.k);
    GemmProblem problem = problemOf(c.type, Elem::f32, c.k, InputKind::integer);
    ASSERT_TRUE(problem.exact);
    HostMatrix d = naive::resultOf(problem, [&](int64_t i, int64_t j) { return tensorCoreSum(problem, i, j); });
    Reference reference(problem, 1);
    EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
    for (int64_t i = 0; i < rows; ++i) {
      double magnitude = 0; // of any sum, in any order
      for (int64_t k = 0; k < c.k; ++k)
        magnitude += std::fabs(problem.a.at(i, k) * problem.b.at(k, 4));
      EXPECT_GT(magnitude, 8);
      EXPECT_LE(magnitude, 0x1p13);
    }
    d.setBits(3, 4, encode(Elem::f32, d.at(3, 4) + 1));
    EXPECT_EQ(verifyPlain(reference, d).bad, 1u);
  }
}
