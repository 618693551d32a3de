// Integers, packed elements, tf32 and f64: numbers by hand, and a naive loop over raw bytes that shares no conversion
// with the harness.
#include "Naive.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

namespace {
/// Element `index` of a packed or 8-bit matrix, from its bytes.
int64_t element(const HostMatrix &matrix, int64_t index) {
  auto byte = [&](int64_t at) { return std::to_integer<unsigned>(matrix.data[at]); };
  switch (matrix.type) {
  case Elem::s8:
    return static_cast<int8_t>(byte(index));
  case Elem::u8:
    return byte(index);
  case Elem::u4:
    return byte(index / 2) >> index % 2 * 4 & 15;
  case Elem::s4: {
    unsigned nibble = byte(index / 2) >> index % 2 * 4 & 15;
    return nibble < 8 ? int64_t(nibble) : int64_t(nibble) - 16;
  }
  default:
    return byte(index / 8) >> index % 8 & 1;
  }
}

ptx::LaunchInfo infoOf(Elem input, Elem sum, ptx::BitProduct bits = ptx::BitProduct::none) {
  ptx::LaunchInfo info = naive::info(input, sum);
  info.accumulator = sum;
  info.bits = bits;
  return info;
}

GemmProblem make(const ptx::LaunchInfo &info, int64_t m, int64_t n, int64_t k, double alpha = 1, double beta = 0) {
  ProblemOptions options = naive::sizes(m, n, k);
  options.alpha = alpha;
  options.beta = beta;
  return naive::problem(info, options);
}

/// D by 32-bit arithmetic that wraps.
HostMatrix integerResult(const GemmProblem &problem) {
  HostMatrix d = problem.d;
  for (int64_t i = 0; i < d.rows; ++i)
    for (int64_t j = 0; j < d.cols; ++j) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < problem.args.k; ++k) {
        int64_t x = element(problem.a, i * problem.args.lda + k), y = element(problem.b, j * problem.args.ldb + k);
        sum += static_cast<uint32_t>(problem.bits == ptx::BitProduct::xor_ ? x ^ y : x * y);
      }
      int32_t c = 0;
      if (problem.readsC())
        std::memcpy(&c, problem.c.data.data() + (i * problem.args.ldc + j) * 4, 4);
      uint32_t value = static_cast<uint32_t>(static_cast<int32_t>(problem.args.alpha)) * sum +
                       static_cast<uint32_t>(static_cast<int32_t>(problem.args.beta)) * static_cast<uint32_t>(c);
      std::memcpy(d.data.data() + (i * problem.args.ldd + j) * 4, &value, 4);
    }
  return d;
}

struct Case {
  Elem input;
  ptx::BitProduct bits = ptx::BitProduct::none;
};
const Case integers[] = {{Elem::s8},
                         {Elem::u8},
                         {Elem::s4},
                         {Elem::u4},
                         {Elem::b1, ptx::BitProduct::and_},
                         {Elem::b1, ptx::BitProduct::xor_}};
} // namespace

TEST(Types, NumbersByHand) {
  EXPECT_EQ(decode(Elem::s8, 0x80), -128);
  EXPECT_EQ(decode(Elem::u8, 0x80), 128);
  EXPECT_EQ(decode(Elem::s4, 0x9), -7);
  EXPECT_EQ(decode(Elem::u4, 0x9), 9);
  EXPECT_EQ(decode(Elem::b1, 1), 1);
  EXPECT_EQ(decode(Elem::s32, 0xffffffff), -1);
  EXPECT_EQ(encode(Elem::s4, -8), 8u);
  EXPECT_EQ(encode(Elem::s32, 4294967295.0), 0xffffffffu); // wraps
  EXPECT_EQ(lowestOf(Elem::s8), -128);
  EXPECT_EQ(highestOf(Elem::u4), 15);
  // tf32: the low 13 bits are in memory and mean nothing.
  EXPECT_EQ(encode(Elem::tf32, 1.0 + 0x1p-20), 0x3f800008u);
  EXPECT_EQ(decode(Elem::tf32, 0x3f800008), 1.0);
  EXPECT_EQ(decode(Elem::tf32, 0x3f802000), 1.0 + 0x1p-10);
  EXPECT_TRUE(std::isnan(decode(Elem::tf32, encode(Elem::tf32, NAN))));
  EXPECT_EQ(decode(Elem::f64, std::bit_cast<uint64_t>(0.1)), 0.1);
  EXPECT_EQ(encode(Elem::f64, -0.0), uint64_t(1) << 63);
  EXPECT_TRUE(std::isnan(decode(Elem::f64, poisonOf(Elem::f64))));
}

// The first element of a byte lies in its low bits; neighbours stay as they are.
TEST(Types, PackedElements) {
  HostMatrix matrix{"a", Elem::s4, Order::row, 2, 4, 6, std::vector<std::byte>(6)};
  matrix.setBits(0, 0, 1);
  matrix.setBits(0, 1, 0xf);
  matrix.setBits(1, 3, 7);
  EXPECT_EQ(std::to_integer<int>(matrix.data[0]), 0xf1);
  EXPECT_EQ(std::to_integer<int>(matrix.data[4]), 0x70);
  EXPECT_EQ(matrix.at(0, 1), -1);
  matrix.setBits(0, 1, 0);
  EXPECT_EQ(std::to_integer<int>(matrix.data[0]), 0x01);
  EXPECT_EQ(*matrixBytes(Elem::b1, Order::row, 3, 9, 16), 6u); // 41 bits
}

TEST(Types, IntegersAreExactAndNothingElseIs) {
  for (const Case &c : integers)
    for (double beta : {0.0, -3.0}) {
      SCOPED_TRACE(nameOf(c.input).str());
      GemmProblem problem = make(infoOf(c.input, Elem::s32, c.bits), 13, 9, 48, 2, beta);
      ASSERT_TRUE(problem.exact);
      Reference reference(problem, 1);
      HostMatrix right = integerResult(problem);
      EXPECT_TRUE(verifyPlain(reference, right).ok) << verifyPlain(reference, right).str();
      EXPECT_TRUE(verifyLarge(reference, right).ok) << verifyLarge(reference, right).str();
      HostMatrix wrong = right;
      wrong.setBits(5, 3, wrong.bits(5, 3) + 1);
      EXPECT_EQ(verifyPlain(reference, wrong).bad, 1u);
      EXPECT_FALSE(verifyLarge(reference, wrong).ok);
    }
}

// 65536 times a sum beyond 2^16 leaves the low bits only.
TEST(Types, SumsWrap) {
  GemmProblem problem = make(infoOf(Elem::u8, Elem::s32), 5, 4, 512, 65536, 0);
  Reference reference(problem, 1);
  EXPECT_TRUE(verifyPlain(reference, integerResult(problem)).ok);
  EXPECT_TRUE(verifyLarge(reference, integerResult(problem)).ok);
}

TEST(Types, DoubleIsBoundedTightly) {
  ProblemOptions options = naive::sizes(6, 5, 50, InputKind::normal);
  GemmProblem problem = naive::problem(infoOf(Elem::f64, Elem::f64), options);
  HostMatrix d = problem.d;
  auto at = [](const HostMatrix &matrix, int64_t index) {
    double value;
    std::memcpy(&value, matrix.data.data() + 8 * index, 8);
    return value;
  };
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      double sum = 0; // from the other end
      for (int64_t k = 50; k-- > 0;)
        sum = std::fma(at(problem.a, i * problem.args.lda + k), at(problem.b, j * problem.args.ldb + k), sum);
      std::memcpy(d.data.data() + 8 * (i * problem.args.ldd + j), &sum, 8);
    }
  Reference reference(problem, 1);
  EXPECT_TRUE(verifyPlain(reference, d).ok) << verifyPlain(reference, d).str();
  EXPECT_TRUE(verifyLarge(reference, d).ok) << verifyLarge(reference, d).str();
  d.setBits(2, 2, encode(Elem::f64, d.at(2, 2) + 1e-10)); // an error that f32 would not see
  EXPECT_FALSE(verifyPlain(reference, d).ok);
}
