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

// 8-bit floats (PTX ISA 5.2.3): e5m2 is the upper byte of an f16; e4m3 has the bits of an f16, 2^8 smaller, where its
// exponent and three bits of fraction are that one's, but that 0x7f and 0xff are its only NaNs and it has no infinity.
namespace {
double fp8Value(Elem type, uint32_t bits) {
  if (type == Elem::e4m3 && (bits & 0x7f) == 0x7f)
    return NAN;
  const uint16_t wide = static_cast<uint16_t>(type == Elem::e5m2 ? bits << 8 : (bits & 0x80) << 8 | (bits & 0x7f) << 7);
  _Float16 half;
  std::memcpy(&half, &wide, 2);
  return static_cast<double>(half) * (type == Elem::e5m2 ? 1 : 256);
}
constexpr Elem fp8Types[] = {Elem::e4m3, Elem::e5m2};
uint32_t largestOf(Elem type) { return type == Elem::e4m3 ? 0x7e : 0x7b; }
} // namespace

TEST(Decode, EveryFp8AsItsDefinitionSays) {
  for (Elem type : fp8Types)
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const double ours = decode(type, bits), theirs = fp8Value(type, bits);
      if (std::isnan(theirs)) {
        EXPECT_TRUE(std::isnan(ours)) << nameOf(type).str() << " " << bits;
      } else {
        EXPECT_TRUE(ours == theirs && std::signbit(ours) == std::signbit(theirs)) << nameOf(type).str() << " " << bits;
      }
    }
  // Table of OCP's specification of 8-bit floats: largest, smallest normal and smallest number, one, NaN, infinity.
  EXPECT_EQ(decode(Elem::e4m3, 0x7e), 448);
  EXPECT_EQ(decode(Elem::e4m3, 0x08), 0x1p-6);
  EXPECT_EQ(decode(Elem::e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(decode(Elem::e4m3, 0xb8), -1);
  EXPECT_TRUE(std::isnan(decode(Elem::e4m3, 0xff)));
  EXPECT_EQ(decode(Elem::e5m2, 0x7b), 57344);
  EXPECT_EQ(decode(Elem::e5m2, 0x04), 0x1p-14);
  EXPECT_EQ(decode(Elem::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(decode(Elem::e5m2, 0xfc), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(decode(Elem::e5m2, 0x7d)));
  EXPECT_EQ(formatOf(Elem::e4m3)->maxFinite(), 448);
  EXPECT_EQ(formatOf(Elem::e5m2)->maxFinite(), 57344);
}

TEST(Encode, EveryFp8ComesBack) {
  for (Elem type : fp8Types)
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const double value = fp8Value(type, bits);
      EXPECT_EQ(encode(type, value), std::isnan(value) ? 0x7fu : bits) << nameOf(type).str();
    }
}

TEST(Encode, Fp8RoundsToNearestEven) {
  for (Elem type : fp8Types)
    for (uint32_t bits = 0; bits < largestOf(type); ++bits) {
      const double middle = (fp8Value(type, bits) + fp8Value(type, bits + 1)) / 2;
      EXPECT_EQ(encode(type, std::nextafter(middle, 0)), bits);
      EXPECT_EQ(encode(type, middle), bits + (bits & 1));
      EXPECT_EQ(encode(type, -middle), (bits + (bits & 1)) | 0x80);
      EXPECT_EQ(encode(type, std::nextafter(middle, HUGE_VAL)), bits + 1);
    }
  // Of all numbers the nearest one.
  Random random(3);
  for (Elem type : fp8Types)
    for (int i = 0; i < 2000; ++i) {
      const double value = std::ldexp(random.unit(), static_cast<int>(random.below(24)) - 16);
      double nearest = HUGE_VAL;
      for (uint32_t bits = 0; bits <= largestOf(type); ++bits)
        if (std::fabs(fp8Value(type, bits) - value) < std::fabs(nearest - value))
          nearest = fp8Value(type, bits);
      EXPECT_EQ(fp8Value(type, static_cast<uint32_t>(encode(type, value))), nearest) << value;
    }
}

// What is beyond the largest number by half a unit becomes a NaN, the only thing that is not finite, or infinity.
TEST(Encode, OverflowOfFp8) {
  EXPECT_EQ(encode(Elem::e4m3, 464), 0x7eu); // half way to 480: to even
  EXPECT_EQ(encode(Elem::e4m3, std::nextafter(464, 500)), 0x7fu);
  EXPECT_EQ(encode(Elem::e4m3, -465), 0xffu);
  EXPECT_EQ(encode(Elem::e4m3, 1e30), 0x7fu);
  EXPECT_EQ(encode(Elem::e4m3, HUGE_VAL), 0x7fu);
  EXPECT_EQ(encode(Elem::e4m3, NAN), 0x7fu);
  EXPECT_EQ(encode(Elem::e5m2, std::nextafter(61440, 0)), 0x7bu);
  EXPECT_EQ(encode(Elem::e5m2, 61440), 0x7cu); // half way to 2^16
  EXPECT_EQ(encode(Elem::e5m2, -1e30), 0xfcu);
  EXPECT_EQ(encode(Elem::e5m2, -HUGE_VAL), 0xfcu);
  EXPECT_EQ(encode(Elem::e5m2, NAN), 0x7fu);
  EXPECT_EQ(encode(Elem::e4m3, 0x1p-10), 0u); // half the smallest subnormal: to even
  EXPECT_EQ(encode(Elem::e4m3, -0x1.1p-10), 0x81u);
  EXPECT_EQ(encode(Elem::e5m2, 0x1p-17), 0u);
  EXPECT_EQ(encode(Elem::e5m2, 0x1.1p-17), 1u);
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
