// Moves and conversions against C++ casts and hand-worked patterns.
#include "core_harness.h"
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

namespace gemmc::emu::test {
namespace {
const std::vector<uint64_t> integers = {0,
                                        1,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0x100,
                                        0x7fff,
                                        0x8000,
                                        0xffff,
                                        0x10000,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x1000001,
                                        0x123456789abcdef0,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        0xffffffffffffff80,
                                        0xffffffffffffffff};

void check(const std::string &code, unsigned outBits, unsigned inBits, const std::vector<uint64_t> &inputs,
           const std::function<uint64_t(uint64_t)> &expected) {
  LaneTest test;
  test.a = inputs;
  auto got = test.run(code, outBits, inBits);
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint64_t want = expected(inputs[i]);
    if (outBits < 64)
      want &= (uint64_t(1) << outBits) - 1;
    EXPECT_EQ(got[i], want) << code << std::hex << " of " << inputs[i];
  }
}
uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }
std::vector<uint64_t> floats(std::initializer_list<float> values) {
  std::vector<uint64_t> list;
  for (float value : values)
    list.push_back(bits(value));
  return list;
}
const std::vector<uint64_t> someFloats =
    floats({0,        -0.0f,         0.5f, -0.5f, 1.5f,  2.5f,  -1.5f,  -2.7f,    127.5f,    300, -300,
            65535.5f, 2147483520.0f, 3e9f, -3e9f, 1e19f, 2e19f, -1e19f, INFINITY, -INFINITY, NAN, 1e-40f});
template <typename T> uint64_t clampTo(double value) {
  if (value != value)
    return sizeof(T) == 8 ? uint64_t(1) << 63 : 0;
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return static_cast<uint64_t>(std::numeric_limits<T>::min());
  return static_cast<uint64_t>(static_cast<T>(value));
}
} // namespace

TEST(EmuConvert, IntegerWidths) {
  check("cvt.u64.u32 %d, %a;", 64, 32, integers, [](uint64_t a) { return uint32_t(a); });
  check("cvt.s64.s32 %d, %a;", 64, 32, integers, [](uint64_t a) { return int64_t(int32_t(a)); });
  check("cvt.u32.u64 %d, %a;", 32, 64, integers, [](uint64_t a) { return a; });
  check("cvt.s32.s16 %d, %a;", 32, 16, integers, [](uint64_t a) { return int64_t(int16_t(a)); });
  check("cvt.u32.u16 %d, %a;", 32, 16, integers, [](uint64_t a) { return uint16_t(a); });
  check("cvt.u16.u32 %d, %a;", 16, 32, integers, [](uint64_t a) { return a; });
  check("cvt.s32.s8 %d, %a;", 32, 32, integers, [](uint64_t a) { return int64_t(int8_t(a)); });
  check("cvt.u32.u8 %d, %a;", 32, 16, integers, [](uint64_t a) { return uint8_t(a); });
  check("cvt.s8.s32 %d, %a;", 32, 32, integers, [](uint64_t a) { return int64_t(int8_t(a)); });
}

TEST(EmuConvert, IntegerSaturation) {
  check("cvt.sat.s16.s32 %d, %a;", 16, 32, integers,
        [](uint64_t a) { return std::clamp<int64_t>(int32_t(a), INT16_MIN, INT16_MAX); });
  check("cvt.sat.u8.s32 %d, %a;", 32, 32, integers, [](uint64_t a) { return std::clamp<int64_t>(int32_t(a), 0, 255); });
  check("cvt.sat.u32.s64 %d, %a;", 32, 64, integers,
        [](uint64_t a) { return std::clamp<int64_t>(int64_t(a), 0, UINT32_MAX); });
  check("cvt.sat.s32.u32 %d, %a;", 32, 32, integers,
        [](uint64_t a) { return std::min<uint64_t>(uint32_t(a), INT32_MAX); });
}

TEST(EmuConvert, FloatToInteger) {
  check("cvt.rzi.s32.f32 %d, %a;", 32, 32, someFloats, [](uint64_t a) { return clampTo<int32_t>(std::trunc(f32(a))); });
  check("cvt.rni.s32.f32 %d, %a;", 32, 32, someFloats,
        [](uint64_t a) { return clampTo<int32_t>(std::nearbyint(f32(a))); });
  check("cvt.rmi.u32.f32 %d, %a;", 32, 32, someFloats,
        [](uint64_t a) { return clampTo<uint32_t>(std::floor(f32(a))); });
  check("cvt.rpi.s16.f32 %d, %a;", 16, 32, someFloats, [](uint64_t a) { return clampTo<int16_t>(std::ceil(f32(a))); });
  check("cvt.rzi.u64.f32 %d, %a;", 64, 32, someFloats,
        [](uint64_t a) { return clampTo<uint64_t>(std::trunc(f32(a))); });
  check("cvt.rzi.s64.f32 %d, %a;", 64, 32, someFloats, [](uint64_t a) { return clampTo<int64_t>(std::trunc(f32(a))); });
  check("cvt.rni.f32.f32 %d, %a;", 32, 32, someFloats, [](uint64_t a) {
    float value = std::nearbyint(f32(a));
    return value != value ? 0x7fffffff : bits(value);
  });
}

TEST(EmuConvert, IntegerToFloat) {
  check("cvt.rn.f32.s32 %d, %a;", 32, 32, integers, [](uint64_t a) { return bits(float(int32_t(a))); });
  check("cvt.rn.f32.u32 %d, %a;", 32, 32, integers, [](uint64_t a) { return bits(float(uint32_t(a))); });
  check("cvt.rn.f32.u64 %d, %a;", 32, 64, integers, [](uint64_t a) { return bits(float(a)); });
  check("cvt.rn.f64.s64 %d, %a;", 64, 64, integers, [](uint64_t a) { return bits(double(int64_t(a))); });
  check("cvt.rn.f32.u8 %d, %a;", 32, 16, integers, [](uint64_t a) { return bits(float(uint8_t(a))); });
  // 2^24 + 1 lies between two floats.
  check("cvt.rz.f32.u32 %d, %a;", 32, 32, {0x1000001}, [](uint64_t) { return bits(16777216.0f); });
  check("cvt.rp.f32.u32 %d, %a;", 32, 32, {0x1000001}, [](uint64_t) { return bits(16777218.0f); });
  check("cvt.rn.f16.u32 %d, %a;", 16, 32, {2049}, [](uint64_t) { return 0x6800; }); // 2048: even
  check("cvt.rn.f16.s32 %d, %a;", 16, 32, {0xffffffff}, [](uint64_t) { return 0xbc00; });
}

TEST(EmuConvert, FloatWidths) {
  check("cvt.f64.f32 %d, %a;", 64, 32, floats({0.1f, -3e38f, 1e-40f}), [](uint64_t a) { return bits(double(f32(a))); });
  check("cvt.rn.f32.f64 %d, %a;", 32, 64, {bits(0.1), bits(1e-46), bits(1e300)},
        [](uint64_t a) { return bits(float(std::bit_cast<double>(a))); });
  check("cvt.ftz.f32.f32 %d, %a;", 32, 32, floats({1e-40f, -1e-40f, 2}),
        [](uint64_t a) { return std::fabs(f32(a)) < 1e-38f ? a & 0x80000000 : a; });
  check("cvt.sat.f32.f32 %d, %a;", 32, 32, floats({-1, 0.25f, 7, NAN}),
        [](uint64_t a) { return bits(f32(a) > 0 ? std::min(f32(a), 1.0f) : 0.0f); });
  // 1 + 2^-11: a tie between 1 and 1 + 2^-10.
  const std::vector<uint64_t> ties = floats({1.00048828125f, 1.0004884f, 65520.0f, -65519.0f, 1e-8f, NAN});
  const std::vector<uint64_t> nearest = {0x3c00, 0x3c01, 0x7c00, 0xfbff, 0x0000, 0x7fff};
  const std::vector<uint64_t> toZero = {0x3c00, 0x3c00, 0x7bff, 0xfbff, 0x0000, 0x7fff};
  auto from = [&](const std::vector<uint64_t> &table) {
    return [&](uint64_t a) { return table[std::find(ties.begin(), ties.end(), a) - ties.begin()]; };
  };
  check("cvt.rn.f16.f32 %d, %a;", 16, 32, ties, from(nearest));
  check("cvt.rz.f16.f32 %d, %a;", 16, 32, ties, from(toZero));
  check("cvt.f32.f16 %d, %a;", 32, 16, {0x3c01, 0x0001, 0xfc00, 0x8000}, [](uint64_t a) {
    return a == 0x3c01 ? bits(1.0009765625f) : a == 1 ? bits(0x1p-24f) : a == 0x8000 ? bits(-0.0f) : bits(-INFINITY);
  });
  check("cvt.f32.bf16 %d, %a;", 32, 16, {0x3f81, 0x0001, 0xff80}, [](uint64_t a) { return a << 16; });
  check("cvt.rn.bf16.f32 %d, %a;", 16, 32, {0x3f808000, 0x3f818000, 0x3f808001}, [](uint64_t a) {
    return a == 0x3f808000 ? 0x3f80 : a == 0x3f818000 ? 0x3f82 : 0x3f81;
  });
}

TEST(EmuConvert, Packed) {
  LaneTest test;
  test.a = {bits(1.5f)}, test.b = {bits(-2.0f)};
  EXPECT_EQ(test.run("cvt.rn.f16x2.f32 %d, %a, %b;", 32, 32)[0], 0x3e00c000u);
  EXPECT_EQ(test.run("cvt.rn.bf16x2.f32 %d, %a, %b;", 32, 32)[0], 0x3fc0c000u);
  EXPECT_EQ(test.run("cvt.rn.relu.bf16x2.f32 %d, %a, %b;", 32, 32)[0], 0x3fc00000u);
  EXPECT_EQ(test.run("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", 16, 32)[0], 0x3cc0u);
  EXPECT_EQ(test.run("cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", 16, 32)[0], 0x3ec0u);
  test.a = {bits(1e6f)}, test.b = {bits(-1e6f)};
  EXPECT_EQ(test.run("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", 16, 32)[0], 0x7efeu); // 448
  test.a = {0x3e00c000};
  EXPECT_EQ(test.run("cvt.rn.satfinite.e4m3x2.f16x2 %d, %a;", 16, 32)[0], 0x3cc0u);
  test.a = {0x3cc0};
  EXPECT_EQ(test.run("cvt.rn.f16x2.e4m3x2 %d, %a;", 32, 16)[0], 0x3e00c000u);
}

TEST(EmuConvert, Tf32) {
  check("cvt.rna.tf32.f32 %d, %a;", 32, 32, {0x3f800fff, 0x3f801000, 0xbf801000}, [](uint64_t a) {
    return a == 0x3f800fff ? 0x3f800000u : a == 0x3f801000 ? 0x3f802000u : 0xbf802000u;
  });
  check("cvt.rn.tf32.f32 %d, %a;", 32, 32, {0x3f801000, 0x3f803000}, // ties to even
        [](uint64_t a) { return a == 0x3f801000 ? 0x3f800000u : 0x3f804000u; });
}

// NaN on an H200 (gemmc-microtests, seed 1).
TEST(EmuConvert, NaNAsOnTheCard) {
  struct {
    const char *code;
    unsigned outBits, inBits;
    uint64_t a, d;
  } const cases[] = {
      {"cvt.rna.tf32.f32", 32, 32, 0xffc6008c, 0xffc60000},
      {"cvt.rna.tf32.f32", 32, 32, 0x7f86055a, 0x7f860000},
      {"cvt.rna.satfinite.tf32.f32", 32, 32, 0xffc6008c, 0xffc5e000},
      {"cvt.rn.tf32.f32", 32, 32, 0xffc6008c, 0x7fffe000},
      {"cvt.rn.relu.tf32.f32", 32, 32, 0xffc6008c, 0x7fffe000},
      {"cvt.f32.bf16", 32, 16, 0xff9b, 0xff9b0000},
      {"cvt.f64.f16", 64, 16, 0x7e2b, 0x7ff8ac0000000000},
      {"cvt.f64.f16", 64, 16, 0x7d24, 0x7ffc900000000000},
      {"cvt.ftz.f64.f32", 64, 32, 0xfff2ad56, 0x7fffffffe0000000},
      {"cvt.rn.bf16.f64", 16, 64, 0xfff598ad4e1224ab, 0xffec},
      {"cvt.rn.f16.f64", 16, 64, 0x7ff023665cc1b78c, 0x7e08},
      {"cvt.rz.ftz.f32.f64", 32, 64, 0x7ff1865eeda324f4, 0x7fcc32f7},
      {"cvt.rn.f32.f64", 32, 64, 0xfff13881491a39db, 0xffc9c40a},
      {"cvt.rzi.f64.f64", 64, 64, 0xfff0334c6fd2f462, 0xfff8334c6fd2f462},
  };
  for (const auto &item : cases)
    check(std::string(item.code) + " %d, %a;", item.outBits, item.inBits, {item.a}, [&](uint64_t) { return item.d; });
}
// f16 from f32 has no instruction that flushes; f64 to f32 flushes what rounds below 2^-126 without subnormal numbers.
TEST(EmuConvert, FlushAsOnTheCard) {
  check("cvt.rm.ftz.f16.f32 %d, %a;", 16, 32, {0x80560607, 0x80000001}, [](uint64_t) { return 0x8001; });
  check("cvt.rp.ftz.f16.f32 %d, %a;", 16, 32, {0x007fffff}, [](uint64_t) { return 0x0001; });
  for (auto [code, limit] : {std::pair("cvt.rn.ftz.f32.f64", 0x380ffffff0000000), // the thresholds in ptxas' code
                             std::pair("cvt.rp.ftz.f32.f64", 0x380fffffe0000001)})
    check(std::string(code) + " %d, %a;", 32, 64, {uint64_t(limit) - 1, uint64_t(limit)},
          [limit = limit](uint64_t a) { return a < uint64_t(limit) ? 0u : 0x00800000u; });
}

TEST(EmuConvert, MovesAndSelections) {
  LaneTest test;
  test.a = {0x1122334455667788}, test.b = {0x99aabbccddeeff00}, test.c = {1};
  EXPECT_EQ(test.run("mov.b64 {%e, %f}, %a;\nmov.b64 %d, {%f, %e};", 64, 64)[0], 0x5566778811223344u);
  EXPECT_EQ(test.run("mov.b64 {%e, _}, %a;\nmov.u32 %d, %e;", 32, 64)[0], 0x55667788u);
  EXPECT_EQ(test.run("mov.u64 %d, 0xfedcba9876543210;", 64, 64)[0], 0xfedcba9876543210u);
  EXPECT_EQ(test.run("mov.f32 %d, 0f40490FDB;", 32, 64)[0], 0x40490fdbu);
  EXPECT_EQ(test.run("mov.f64 %d, 0d400921FB54442D18;", 64, 64)[0], 0x400921fb54442d18u);
  EXPECT_EQ(test.run("mov.u32 %d, WARP_SZ;", 32, 64)[0], 32u);
  EXPECT_EQ(test.run("selp.b64 %d, %a, %b, %c;", 64, 64, 64, 1)[0], 0x1122334455667788u);
  EXPECT_EQ(test.run("not.pred %p, %c;\nselp.b64 %d, %a, %b, %p;", 64, 64, 64, 1)[0], 0x99aabbccddeeff00u);
  EXPECT_EQ(test.run("mov.pred %p, %c;\nselp.u32 %d, 3, 4, %p;", 32, 64, 64, 1)[0], 3u);
  EXPECT_EQ(test.run("set.lt.u32.u64 %d, %a, %b;", 32, 64, 64)[0], 0xffffffffu);
  EXPECT_EQ(test.run("set.lt.s32.s64 %d, %a, %b;", 32, 64, 64)[0], 0u);
  EXPECT_EQ(
      test.run("setp.lt.and.u64 %p|%q, %a, %b, %c;\nselp.b32 %e, 2, 0, %q;\nselp.b32 %d, 1, %e, %p;", 32, 64, 64, 1)[0],
      1u);
  EXPECT_EQ(test.run("createpolicy.fractional.L2::evict_first.b64 %x;\nmov.u32 %d, 1;", 32, 64)[0], 1u);
}

TEST(EmuConvert, PackedComparison) {
  LaneTest test;
  test.a = {0x3c004000}, test.b = {0x40003c00};
  EXPECT_EQ(test.run("setp.lt.f16x2 %p|%q, %a, %b;\nselp.b32 %e, 1, 0, %p;\nselp.b32 %f, 2, 0, %q;\nor.b32 %d, %e, %f;",
                     32, 32)[0],
            2u);
}

} // namespace gemmc::emu::test
