// Conversions against the compiler's own types, for every bit pattern; random numbers against their published stream.
#include "Naive.h"
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

TEST(Decode, EveryHalfAsTheCompilerSeesIt) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half[2] = {static_cast<uint16_t>(bits), 0};
    for (Elem type : {Elem::f16, Elem::bf16}) {
      double ours = decode(type, bits), theirs = naive::load(type, reinterpret_cast<std::byte *>(half));
      if (std::isnan(theirs)) {
        EXPECT_TRUE(std::isnan(ours)) << bits;
      } else {
        EXPECT_TRUE(ours == theirs && std::signbit(ours) == std::signbit(theirs)) << bits;
      }
    }
  }
}

TEST(Encode, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    for (Elem type : {Elem::f16, Elem::bf16}) {
      double value = decode(type, bits);
      EXPECT_TRUE(std::isnan(value) || encode(type, value) == bits) << bits;
    }
}

// Between each pair of neighbours: below, at, and above the middle.
TEST(Encode, RoundsToNearestEven) {
  for (Elem type : {Elem::f16, Elem::bf16})
    for (uint32_t bits = 0; bits < (type == Elem::f16 ? 0x7bffu : 0x7f7fu); ++bits) {
      double low = decode(type, bits), high = decode(type, bits + 1), middle = (low + high) / 2;
      EXPECT_EQ(encode(type, std::nextafter(middle, 0)), bits);
      EXPECT_EQ(encode(type, middle), bits + (bits & 1));
      EXPECT_EQ(encode(type, -middle), (bits + (bits & 1)) | 0x8000);
      EXPECT_EQ(encode(type, std::nextafter(middle, HUGE_VAL)), bits + 1);
    }
}

TEST(Encode, OverflowAndSpecials) {
  EXPECT_EQ(encode(Elem::f16, 65519.99), 0x7bffu);
  EXPECT_EQ(encode(Elem::f16, 65520), 0x7c00u); // half way to 2^16: to infinity
  EXPECT_EQ(encode(Elem::f16, -HUGE_VAL), 0xfc00u);
  EXPECT_EQ(encode(Elem::f16, NAN), 0x7fffu);
  EXPECT_EQ(encode(Elem::bf16, NAN), 0x7fffu);
  EXPECT_EQ(encode(Elem::f32, 1e300), 0x7f800000u);
  EXPECT_EQ(encode(Elem::f16, 0x1p-25), 0u); // half the smallest subnormal: to even
  EXPECT_EQ(encode(Elem::f16, 0x1.1p-25), 1u);
  EXPECT_EQ(encode(Elem::f16, -0.0), 0x8000u);
}

TEST(Encode, SinglePrecisionAsTheHardwareRounds) {
  Random random(5);
  for (int i = 0; i < 200000; ++i) {
    double value = std::ldexp(random.normal(), static_cast<int>(random.below(300)) - 170);
    float expected = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &expected, 4);
    ASSERT_EQ(encode(Elem::f32, value), bits) << value;
    ASSERT_EQ(decode(Elem::f32, bits), double(expected));
  }
}

TEST(Poison, IsANanInEveryType) {
  for (Elem type : {Elem::f16, Elem::bf16, Elem::f32})
    EXPECT_TRUE(std::isnan(decode(type, poisonOf(type))));
  EXPECT_NE(poison, 0x7fff); // the NaN that arithmetic gives
}

// The first outputs of xoshiro256++ for the state 1, 2, 3, 4 are known from its authors' program; splitmix64(0)
// likewise.
TEST(RandomNumbers, SplitmixSeedsTheState) {
  // splitmix64 from 0: e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
  uint64_t s0 = 0xe220a8397b1dcdaf, s3 = 0xf88bb8a8724c81ec, sum = s0 + s3;
  EXPECT_EQ(Random(0).next(), ((sum << 23) | (sum >> 41)) + s0);
}

TEST(RandomNumbers, NormalHasMeanZeroAndVarianceOne) {
  Random random(1);
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.03);
}

TEST(ParallelFor, EachIndexOnce) {
  for (unsigned threads : {0u, 1u, 3u}) {
    std::vector<std::atomic<int>> seen(1000);
    parallelFor(1000, threads, [&](int64_t i) { ++seen[i]; });
    for (auto &count : seen)
      EXPECT_EQ(count, 1);
  }
  parallelFor(0, 4, [](int64_t) { FAIL(); });
}
