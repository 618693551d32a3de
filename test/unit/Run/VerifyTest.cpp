// The reference and the ways to compare with it, against a naive loop in float, and against corruption.
#include "Naive.h"
#include "Pace.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

namespace {
/// Adds `delta` to an element of D.
void spoil(HostMatrix &d, int64_t row, int64_t col, double delta) {
  d.setBits(row, col, encode(d.type, d.at(row, col) + delta));
}
} // namespace

// Types, layouts, scales: the naive loop is right, one unit in one element is not.
TEST(Verify, AcceptsTheNaiveLoopAndNothingElse) {
  for (Elem input : {Elem::f16, Elem::bf16})
    for (Elem output : {Elem::f16, Elem::bf16, Elem::f32})
      for (Order a : {Order::row, Order::col})
        for (Order b : {Order::row, Order::col})
          for (Order d : {Order::row, Order::col})
            for (double beta : {0.0, -1.5}) {
              ptx::LaunchInfo info = naive::info(input, output, a, b, d);
              ProblemOptions options = naive::sizes(17, 23, 40);
              options.ldd = 29;
              options.alpha = 0.5;
              options.beta = beta;
              GemmProblem problem = naive::problem(info, options);
              ASSERT_TRUE(problem.exact);
              Reference reference(problem, 1);
              HostMatrix right = naive::result(info, problem);
              EXPECT_TRUE(verifyPlain(reference, right).ok) << verifyPlain(reference, right).str();
              HostMatrix wrong = right;
              wrong.setBits(11, 7, wrong.bits(11, 7) ^ 1);
              Verification result = verifyPlain(reference, wrong);
              EXPECT_FALSE(result.ok);
              EXPECT_EQ(result.bad, 1u);
              ASSERT_TRUE(result.first);
              EXPECT_EQ(result.first->row, 11);
              EXPECT_EQ(result.first->col, 7);
            }
}

namespace {
/// Three products: one B for all, A apart, C and D in each other's rows (or columns).
std::pair<ptx::LaunchInfo, ProblemOptions> batch(Order d, InputKind kind) {
  ptx::LaunchInfo info = naive::info(Elem::f16, Elem::f16, Order::row, Order::col, d);
  info.batch = Expr::var("batch");
  info.a.batchStride = Expr::var("stride_a"), info.b.batchStride = Expr::var("stride_b");
  info.c.batchStride = Expr::var("stride_c"), info.d.batchStride = Expr::var("stride_d");
  ProblemOptions options = naive::sizes(17, 23, 40, kind);
  options.batch = 3;
  options.strideA = 17 * 40 + 8, options.strideB = 0;
  options.strideC = options.strideD = 25;
  options.ldc = options.ldd = 75;
  options.alpha = 0.5, options.beta = -1.5;
  return {info, options};
}
} // namespace

// The naive loop finds the matrices by their addresses, the reference by their rows.
TEST(Verify, ABatchIsAllOfItsProducts) {
  for (Order order : {Order::row, Order::col})
    for (InputKind kind : {InputKind::integer, InputKind::normal}) {
      auto [info, options] = batch(order, kind);
      GemmProblem problem = naive::problem(info, options);
      EXPECT_EQ(problem.d.rows, 3 * 17);
      Reference reference(problem, 1);
      HostMatrix right = naive::result(info, problem);
      EXPECT_TRUE(verifyPlain(reference, right).ok) << verifyPlain(reference, right).str();
      EXPECT_TRUE(verifyLarge(reference, right).ok) << verifyLarge(reference, right).str();
      EXPECT_FALSE(checkPadding(problem.d, right));
      HostMatrix wrong = right; // the second product's element (4, 7), through memory
      const int64_t at = 25 + (order == Order::row ? 4 * 75 + 7 : 7 * 75 + 4);
      wrong.setBitsAt(at, encode(Elem::f16, decode(Elem::f16, wrong.bitsAt(at)) + 64));
      Verification result = verifyPlain(reference, wrong);
      EXPECT_EQ(result.bad, 1u);
      EXPECT_NE(result.str().find("first d[1][4, 7] = "), std::string::npos) << result.str();
      EXPECT_FALSE(verifyLarge(reference, wrong).ok);
    }
}

TEST(Verify, BetweenTheMatricesOfABatchNothingIsWritten) {
  auto [info, options] = batch(Order::row, InputKind::integer);
  GemmProblem problem = naive::problem(info, options);
  for (int64_t gap : {23, 24, 48, 49, 73, 74}) { // 0 to 22, 25 to 47, 50 to 72 are elements
    HostMatrix after = problem.d;
    after.setBitsAt(75 + gap, 0);
    auto violation = checkPadding(problem.d, after);
    ASSERT_TRUE(violation) << gap;
    EXPECT_EQ(violation->offset, 2 * (75 + gap));
  }
  HostMatrix after = problem.d;
  for (int64_t element : {0, 22, 25, 47, 50, 72})
    after.setBitsAt(75 + element, 0);
  EXPECT_FALSE(checkPadding(problem.d, after));
}

TEST(Verify, RandomInputsAreWithinTheBoundAndGrossErrorsOutside) {
  for (Elem accumulator : {Elem::f32, Elem::f16}) {
    ptx::LaunchInfo info = naive::info(Elem::f16, Elem::f16);
    info.accumulator = accumulator;
    ProblemOptions options = naive::sizes(40, 30, 100, InputKind::normal);
    options.alpha = 0.3;
    options.beta = 0.7;
    GemmProblem problem = naive::problem(info, options);
    Reference reference(problem);
    HostMatrix d = naive::result(info, problem);
    EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
    spoil(d, 3, 4, accumulator == Elem::f32 ? 0.1 : 3);
    EXPECT_FALSE(verifyPlain(reference, d).ok);
  }
}

// The bound must hold for the worst accumulator that it speaks of: f32 with truncation after every addition.
TEST(Verify, TheBoundCoversTruncation) {
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::f32);
  GemmProblem problem = naive::problem(info, naive::sizes(16, 16, 500, InputKind::normal));
  HostMatrix d = problem.d;
  double largest = 0;
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j) {
      double sum = 0, exact = 0;
      for (int64_t k = 0; k < 500; ++k) {
        double product = problem.a.at(i, k) * problem.b.at(k, j);
        exact += product;
        sum += product;
        int exponent = sum == 0 ? 0 : std::ilogb(sum);
        sum = std::ldexp(std::trunc(std::ldexp(sum, 23 - exponent)), exponent - 23);
      }
      largest = std::max(largest, std::fabs(sum - exact));
      d.setBits(i, j, encode(Elem::f32, sum));
    }
  EXPECT_GT(largest, 0);
  EXPECT_TRUE(verifyPlain(Reference(problem), d).ok);
}

TEST(Verify, SpecialValuesArePropagatedByTheLoop) {
  ptx::LaunchInfo info = naive::info(Elem::f16, Elem::f32);
  GemmProblem problem = naive::problem(info, naive::sizes(60, 60, 60, InputKind::special));
  Reference reference(problem);
  HostMatrix right = naive::result(info, problem);
  Verification result = verifyPlain(reference, right);
  EXPECT_TRUE(result.ok) << result.str();
  int nans = 0, finite = 0;
  std::optional<std::pair<int64_t, int64_t>> nan, infinite;
  for (int64_t i = 0; i < 60; ++i)
    for (int64_t j = 0; j < 60; ++j) {
      double value = right.at(i, j);
      nans += std::isnan(value);
      finite += std::isfinite(value);
      if (std::isnan(value))
        nan = {i, j};
      if (std::isinf(value))
        infinite = {i, j};
    }
  EXPECT_GT(nans, 60);
  EXPECT_GT(finite, 1000);
  // A NaN swallowed, an infinity of the wrong sign, a NaN out of nothing.
  HostMatrix wrong = right;
  ASSERT_TRUE(nan);
  wrong.setBits(nan->first, nan->second, encode(Elem::f32, 1));
  EXPECT_FALSE(verifyPlain(reference, wrong).ok);
  wrong = right;
  ASSERT_TRUE(infinite);
  wrong.setBits(infinite->first, infinite->second, wrong.bits(infinite->first, infinite->second) ^ 0x80000000u);
  EXPECT_FALSE(verifyPlain(reference, wrong).ok);
}

TEST(Verify, UnwrittenElementsAreWrongEvenWhereNanIsRight) {
  ptx::LaunchInfo info = naive::info();
  GemmProblem problem = naive::problem(info, naive::sizes(8, 8, 8));
  problem.a.setBits(0, 0, 0x7fff);
  HostMatrix d = naive::result(info, problem);
  d.setBits(0, 3, 0x7fff); // any NaN will do
  EXPECT_TRUE(verifyPlain(Reference(problem), d).ok);
  d.setBits(0, 3, poison);
  EXPECT_FALSE(verifyPlain(Reference(problem), d).ok);
}

TEST(Verify, AlphaAndBetaZeroGivePlusZero) {
  ptx::LaunchInfo info = naive::info();
  ProblemOptions options = naive::sizes(4, 4, 4);
  options.alpha = 0;
  GemmProblem problem = naive::problem(info, options);
  HostMatrix d = problem.d;
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 4; ++j)
      d.setBits(i, j, 0);
  EXPECT_TRUE(verifyPlain(Reference(problem), d).ok);
  d.setBits(1, 1, 0x8000);
  EXPECT_FALSE(verifyPlain(Reference(problem), d).ok);
}

TEST(Verify, InfinityTimesACertainSumHasItsSign) {
  ptx::LaunchInfo info = naive::info(Elem::f16, Elem::f32);
  info.alpha.reset();
  ProblemOptions options = naive::sizes(20, 20, 100, InputKind::normal);
  options.alpha = std::numeric_limits<float>::infinity();
  GemmProblem problem = naive::problem(info, options);
  Reference reference(problem, 1);
  HostMatrix d = naive::result(info, problem);
  EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
  ASSERT_TRUE(std::isinf(d.at(3, 4)));
  d.setBits(3, 4, encode(d.type, -d.at(3, 4)));
  EXPECT_EQ(verifyPlain(reference, d).bad, 1u);
}

TEST(Verify, OverflowToInfinityIsRoundingToo) {
  ptx::LaunchInfo info = naive::info(Elem::f16, Elem::f16);
  ProblemOptions options = naive::sizes(2, 2, 1000);
  options.alpha = 64; // 64 * 16 * 1000 is beyond 65504
  GemmProblem problem = naive::problem(info, options);
  ASSERT_TRUE(problem.exact);
  HostMatrix d = naive::result(info, problem);
  EXPECT_TRUE(verifyPlain(Reference(problem), d).ok);
}

// Freivalds' check sees one unit in one element of 2^20.
TEST(VerifyLarge, OneWrongElementIsFoundAndNamed) {
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::bf16);
  ProblemOptions options = naive::sizes(260, 270, 1000);
  options.alpha = -0.5;
  options.beta = 2;
  GemmProblem problem = naive::problem(info, options);
  ASSERT_TRUE(problem.exactResult);
  Reference reference(problem);
  HostMatrix d = naive::result(info, problem);
  Verification right = verifyLarge(reference, d);
  EXPECT_TRUE(right.ok) << right.str();
  for (auto [row, col] : {std::pair<int64_t, int64_t>{101, 203}, {0, 0}, {259, 269}}) {
    HostMatrix wrong = d;
    spoil(wrong, row, col, 1);
    ASSERT_NE(wrong.bits(row, col), d.bits(row, col));
    Verification result = verifyLarge(reference, wrong);
    EXPECT_FALSE(result.ok);
    ASSERT_TRUE(result.first) << result.str();
    EXPECT_EQ(result.first->row, row);
    EXPECT_EQ(result.first->col, col);
    EXPECT_NE(result.str().find("1 of 260 rows wrong"), std::string::npos) << result.str();
  }
}

TEST(VerifyLarge, ANanOrAnUnwrittenElementIsFound) {
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::f32);
  GemmProblem problem = naive::problem(info, naive::sizes(300, 300, gemmc::test::instrumented ? 200 : 800));
  Reference reference(problem);
  HostMatrix d = naive::result(info, problem);
  EXPECT_TRUE(verifyLarge(reference, d).ok);
  d.setBits(123, 45, poisonOf(Elem::f32));
  EXPECT_FALSE(verifyLarge(reference, d).ok);
}

TEST(VerifyLarge, AWrongTileOfRandomNumbersIsFound) {
  constexpr int64_t side = gemmc::test::instrumented ? 260 : 400;
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::bf16);
  GemmProblem problem = naive::problem(info, naive::sizes(side, side, 300, InputKind::normal));
  Reference reference(problem);
  HostMatrix d = naive::result(info, problem);
  Verification right = verifyLarge(reference, d);
  EXPECT_TRUE(right.ok) << right.str();
  // The last 16 of K are missing in one 64 x 64 tile.
  for (int64_t i = 64; i < 128; ++i)
    for (int64_t j = 192; j < 256; ++j) {
      double missing = 0;
      for (int64_t k = 284; k < 300; ++k)
        missing += problem.a.at(i, k) * problem.b.at(k, j);
      spoil(d, i, j, -missing);
    }
  EXPECT_FALSE(verifyLarge(reference, d).ok);
}

// The sums of blocks are kept: what one result is compared with, the next is, too.
TEST(VerifyLarge, TheSumsOfAReferenceJudgeEachResult) {
  ptx::LaunchInfo info = naive::info(Elem::bf16, Elem::f32);
  ProblemOptions options = naive::sizes(1201, 1190, gemmc::test::instrumented ? 10 : 40, InputKind::normal);
  options.alpha = -0.5;
  options.beta = 3;
  GemmProblem problem = naive::problem(info, options);
  Reference reference(problem);
  const HostMatrix d = naive::result(info, problem);
  for (int64_t row : {-1, 3, 801, -1, 1200}) {
    HostMatrix judged = d;
    if (row >= 0) // the last block, of 6 columns, without C
      for (int64_t col = 1184; col < 1190; ++col)
        spoil(judged, row, col, -3 * problem.c.at(row, col));
    Verification result = verifyLarge(reference, judged);
    EXPECT_EQ(result.ok, row < 0) << row << ": " << result.str();
    if (row >= 0) {
      ASSERT_TRUE(result.first) << result.str();
      EXPECT_EQ(result.first->row, row);
    }
  }
}

TEST(VerifyTiles, WrittenTilesAreCheckedAndCounted) {
  ptx::LaunchInfo info = naive::info();
  GemmProblem problem = naive::problem(info, naive::sizes(100, 90, 50));
  Reference reference(problem);
  HostMatrix full = naive::result(info, problem), d = problem.d;
  auto write = [&](int64_t row, int64_t col) { // a 32 x 16 tile
    for (int64_t i = row; i < std::min<int64_t>(row + 32, 100); ++i)
      for (int64_t j = col; j < std::min<int64_t>(col + 16, 90); ++j)
        d.setBits(i, j, full.bits(i, j));
  };
  write(0, 0);
  write(96, 80); // an edge tile of 4 x 10
  Verification result = verifyTiles(reference, d, 32, 16, 2, 4);
  EXPECT_TRUE(result.ok) << result.str();
  EXPECT_EQ(result.compared, 32u * 16 + 4 * 10);
  EXPECT_FALSE(verifyTiles(reference, d, 32, 16, 3, 4).ok) << "too few";
  EXPECT_FALSE(verifyTiles(reference, d, 32, 16, 1, 1).ok) << "too many";
  HostMatrix half = d;
  half.setBits(50, 50, 0);
  EXPECT_NE(verifyTiles(reference, half, 32, 16, 1, 9).str().find("written in part"), std::string::npos);
  HostMatrix wrong = d;
  wrong.setBits(5, 5, wrong.bits(5, 5) ^ 1);
  Verification bad = verifyTiles(reference, wrong, 32, 16, 2, 4);
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.first->row, 5);
}

TEST(Guards, PaddingAndInputs) {
  ProblemOptions options = naive::sizes(4, 5, 3);
  options.ldd = 8;
  GemmProblem problem = naive::problem(naive::info(), options);
  HostMatrix d = problem.d;
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 5; ++j)
      d.setBits(i, j, 0);
  EXPECT_FALSE(checkPadding(problem.d, d));
  d.data[(1 * 8 + 5) * 2] = std::byte(1);
  auto violation = checkPadding(problem.d, d);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->offset, (1 * 8 + 5) * 2);
  HostMatrix a = problem.a;
  EXPECT_FALSE(checkUnchanged(problem.a, a.data));
  a.data[7] ^= std::byte(1);
  ASSERT_TRUE(checkUnchanged(problem.a, a.data));
  EXPECT_EQ(checkUnchanged(problem.a, a.data)->offset, 7);
}
