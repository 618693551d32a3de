// The small formats against their definition: value = (-1)^s * 2^(max(E,1) - bias) * (E > 0) + fraction / 2^m.
#include "gemmc/Emu/Numerics.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace gemmc::emu::sem;

namespace {

struct Kind {
  const char *name;
  Format format;
  uint32_t codes;   ///< Number of codes without sign.
  uint32_t largest; ///< Code of the largest finite value.
  uint32_t nan;     ///< Canonical.
  bool infinity;
};
const Kind kinds[] = {{"f16", formatF16, 1 << 15, 0x7bff, 0x7fff, true},
                      {"bf16", formatBf16, 1 << 15, 0x7f7f, 0x7fff, true},
                      {"e4m3", formatE4m3, 1 << 7, 0x7e, 0x7f, false},
                      {"e5m2", formatE5m2, 1 << 7, 0x7b, 0x7f, true},
                      {"tf32", formatTf32, 1 << 18, 0x7f7fe000 >> 13, 0x7fffe000, true}};

double valueOf(const Kind &kind, uint32_t code) {
  int m = kind.format.fraction, bias = (1 << (kind.format.exponent - 1)) - 1;
  int field = static_cast<int>(code >> m), fraction = static_cast<int>(code & ((1u << m) - 1));
  long double magnitude = (field ? 1.0L : 0.0L) + static_cast<long double>(fraction) / (1 << m);
  return static_cast<double>(magnitude * powl(2.0L, std::max(field, 1) - bias));
}
uint32_t bitsOf(const Kind &kind, uint32_t code, bool negative) {
  uint32_t sign = negative ? kind.codes : 0;
  return (code | sign) << kind.format.padding;
}

} // namespace

TEST(SemNumerics, DecodesEveryCode) {
  for (const Kind &kind : kinds)
    for (uint32_t code = 0; code < kind.codes; ++code)
      for (bool negative : {false, true}) {
        double got = decode(kind.format, bitsOf(kind, code, negative));
        if (code <= kind.largest) {
          double want = valueOf(kind, code);
          ASSERT_EQ(got, negative ? -want : want) << kind.name << " " << code;
          ASSERT_EQ(std::signbit(got), negative);
        } else if (kind.infinity && code == kind.largest + 1) {
          ASSERT_EQ(got, negative ? -INFINITY : INFINITY) << kind.name;
        } else {
          ASSERT_TRUE(std::isnan(got)) << kind.name << " " << code;
        }
      }
}

// Between each two neighbours: the ends, a point below the middle, the middle, a point above it.
TEST(SemNumerics, RoundsBetweenAllNeighbours) {
  for (const Kind &kind : kinds)
    for (uint32_t code = 0; code < kind.largest; code += kind.codes > 1 << 15 ? 13 : 1)
      for (int quarter = 0; quarter < 4; ++quarter)
        for (bool negative : {false, true}) {
          double low = valueOf(kind, code), high = valueOf(kind, code + 1);
          double value = low + (high - low) * quarter / 4; // exact: a few more bits than the format has
          auto check = [&](Round round, bool up) {
            uint32_t want = bitsOf(kind, code + (quarter && up), negative);
            ASSERT_EQ(encode(kind.format, negative ? -value : value, {round}), want)
                << kind.name << " " << code << " + " << quarter << "/4, mode " << int(round) << ", " << negative;
          };
          check(Round::nearest, quarter == 3 || (quarter == 2 && code % 2 == 1));
          check(Round::nearestAway, quarter >= 2);
          check(Round::zero, false);
          check(Round::down, negative);
          check(Round::up, !negative);
        }
}

TEST(SemNumerics, OverflowSaturationAndSpecials) {
  for (const Kind &kind : kinds) {
    double largest = valueOf(kind, kind.largest), step = largest - valueOf(kind, kind.largest - 1);
    uint32_t big = bitsOf(kind, kind.largest, false);
    uint32_t beyond = kind.infinity ? bitsOf(kind, kind.largest + 1, false) : kind.nan;
    EXPECT_EQ(encode(kind.format, largest + step / 4), big) << kind.name;
    EXPECT_EQ(encode(kind.format, largest + step * 3 / 4), beyond) << kind.name;
    EXPECT_EQ(encode(kind.format, largest * 4, {Round::zero}), big) << kind.name;
    EXPECT_EQ(encode(kind.format, largest * 4, {Round::down}), big) << kind.name;
    EXPECT_EQ(encode(kind.format, largest * 4, {Round::up}), beyond) << kind.name;
    EXPECT_EQ(encode(kind.format, INFINITY, {Round::zero}), beyond) << kind.name;
    EXPECT_EQ(encode(kind.format, INFINITY, {Round::nearest, true}), big) << kind.name;
    EXPECT_EQ(encode(kind.format, -INFINITY, {Round::nearest, true}), bitsOf(kind, kind.largest, true)) << kind.name;
    EXPECT_EQ(encode(kind.format, largest * 4, {Round::nearest, true}), big) << kind.name;
    EXPECT_EQ(encode(kind.format, -largest * 4, {Round::nearest, true, true}), 0u) << kind.name;
    EXPECT_EQ(encode(kind.format, -0.0, {Round::nearest, false, true}), 0u) << kind.name;
    EXPECT_EQ(encode(kind.format, -0.0), bitsOf(kind, 0, true)) << kind.name;
    for (bool relu : {false, true})
      EXPECT_EQ(encode(kind.format, -std::numeric_limits<double>::quiet_NaN(), {Round::nearest, true, relu}), kind.nan)
          << kind.name;
    double tiny = std::numeric_limits<double>::denorm_min();
    EXPECT_EQ(encode(kind.format, tiny), 0u) << kind.name;
    EXPECT_EQ(encode(kind.format, tiny, {Round::up}), bitsOf(kind, 1, false)) << kind.name;
    EXPECT_EQ(encode(kind.format, -tiny, {Round::down}), bitsOf(kind, 1, true)) << kind.name;
  }
}

TEST(SemNumerics, KnownValues) {
  EXPECT_EQ(f32ToF16(1.0f), 0x3c00);
  EXPECT_EQ(f32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(f32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f32ToBf16(3.0f), 0x4040);
  EXPECT_EQ(f32ToTf32(std::bit_cast<float>(0x3f801000u), {Round::nearestAway}), 0x3f802000u);
  EXPECT_EQ(f32ToTf32(std::bit_cast<float>(0x3f801000u)), 0x3f800000u);
  EXPECT_EQ(f32ToE4m3(448.0f), 0x7e);
  EXPECT_EQ(f32ToE4m3(1e9f), 0x7e);
  EXPECT_EQ(f32ToE5m2(57344.0f), 0x7b);
  EXPECT_EQ(f16ToF32(0x0001), 0x1p-24f);
  EXPECT_EQ(e4m3ToF16(0x7e), 0x5f00); // 448 = 1.75 * 2^8
  EXPECT_EQ(e5m2ToF16(0x01), 0x0100); // e5m2 is the upper half of f16
  EXPECT_EQ(e4m3ToF16(0xff), 0x7fff);
}
