// Floating-point instructions against the host's arithmetic, on edge values.
#include "core_harness.h"
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>

namespace gemmc::emu::test {
namespace {

uint32_t bitsOf(float value) { return value != value ? 0x7fffffff : std::bit_cast<uint32_t>(value); }

const std::vector<uint64_t> edges32 = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
                                       0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0x40490fdb, 0xc2f6e979,
                                       0x4b000001, 0x4f000000, 0x5f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0x33800001, 0x3eaaaaab};

/// Three inputs from `edges`, all pairs, the third taking turns.
LaneTest pairsOf(const std::vector<uint64_t> &edges) {
  LaneTest test;
  for (size_t i = 0; i < edges.size(); ++i)
    for (size_t j = 0; j < edges.size(); ++j) {
      test.a.push_back(edges[i]);
      test.b.push_back(edges[j]);
      test.c.push_back(edges[(i * 5 + j) % edges.size()]);
    }
  return test;
}
void check32(const std::string &code, const std::function<uint32_t(float, float, float)> &expected) {
  LaneTest test = pairsOf(edges32);
  auto got = test.run(code, 32, 32, 32, 32);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], expected(f32(test.a[i]), f32(test.b[i]), f32(test.c[i])))
        << code << std::hex << " a=" << test.a[i] << " b=" << test.b[i] << " c=" << test.c[i];
}
/// The host's result in a rounding mode; `volatile` keeps the compiler from computing it elsewhere.
uint32_t rounded(int mode, float a, float b, const std::function<float(volatile float &, volatile float &)> &op) {
  volatile float x = a, y = b;
  std::fesetround(mode);
  volatile float result = op(x, y);
  std::fesetround(FE_TONEAREST);
  return bitsOf(result);
}
float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }
float saturate(float value) { return value > 0 ? std::min(value, 1.0f) : 0.0f; }
} // namespace

TEST(EmuFloat, Arithmetic) {
  check32("add.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(a + b); });
  check32("sub.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(a - b); });
  check32("mul.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(a * b); });
  check32("div.rn.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(a / b); });
  check32("fma.rn.f32 %d, %a, %b, %c;", [](float a, float b, float c) { return bitsOf(std::fma(a, b, c)); });
  check32("mad.rn.f32 %d, %a, %b, %c;", [](float a, float b, float c) { return bitsOf(std::fma(a, b, c)); });
  check32("sqrt.rn.f32 %d, %a;", [](float a, float, float) { return bitsOf(std::sqrt(a)); });
  check32("rcp.rn.f32 %d, %a;", [](float a, float, float) { return bitsOf(1 / a); });
}

TEST(EmuFloat, Modifiers) {
  check32("add.ftz.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(flush(flush(a) + flush(b))); });
  check32("mul.sat.f32 %d, %a, %b;", [](float a, float b, float) { return bitsOf(saturate(a * b)); });
  check32("fma.rn.ftz.sat.f32 %d, %a, %b, %c;",
          [](float a, float b, float c) { return bitsOf(flush(saturate(std::fma(flush(a), flush(b), flush(c))))); });
}

TEST(EmuFloat, DirectedRounding) {
  const std::pair<const char *, int> modes[] = {{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (auto [name, mode] : modes) {
    check32(std::string("add.") + name + ".f32 %d, %a, %b;", [mode = mode](float a, float b, float) {
      return rounded(mode, a, b, [](volatile float &x, volatile float &y) { return x + y; });
    });
    check32(std::string("mul.") + name + ".f32 %d, %a, %b;", [mode = mode](float a, float b, float) {
      return rounded(mode, a, b, [](volatile float &x, volatile float &y) { return x * y; });
    });
  }
}

TEST(EmuFloat, SignsAndExtremes) {
  auto extreme = [](bool max, bool keepNaN) {
    return [=](float a, float b, float) -> uint32_t {
      if ((std::isnan(a) && std::isnan(b)) || (keepNaN && (std::isnan(a) || std::isnan(b))))
        return 0x7fffffff;
      if (std::isnan(a) || std::isnan(b))
        return std::bit_cast<uint32_t>(std::isnan(a) ? b : a);
      bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
      return std::bit_cast<uint32_t>(less != max ? a : b);
    };
  };
  check32("min.f32 %d, %a, %b;", extreme(false, false));
  check32("max.f32 %d, %a, %b;", extreme(true, false));
  check32("max.NaN.f32 %d, %a, %b;", extreme(true, true));
  check32("neg.f32 %d, %a;", [](float a, float, float) { return bitsOf(-a); });
  check32("abs.f32 %d, %a;", [](float a, float, float) { return bitsOf(std::fabs(a)); });
  check32("copysign.f32 %d, %a, %b;", [](float a, float b, float) {
    return (std::bit_cast<uint32_t>(b) & 0x7fffffff) | (std::bit_cast<uint32_t>(a) & 0x80000000);
  });
  check32("min.xorsign.abs.f32 %d, %a, %b;", [](float a, float b, float) -> uint32_t {
    if (std::isnan(a) && std::isnan(b))
      return 0x7fffffff;
    uint32_t sign = (std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b)) & 0x80000000;
    return std::bit_cast<uint32_t>(std::fmin(std::fabs(a), std::fabs(b))) | sign;
  });
}

TEST(EmuFloat, Approximations) { // to 2^-10 of the host's functions, on values where those are meant
  const std::pair<const char *, double (*)(double)> functions[] = {
      {"ex2.approx.f32", [](double x) { return std::exp2(x); }},
      {"lg2.approx.f32", [](double x) { return std::log2(x); }},
      {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }},
      {"rcp.approx.ftz.f32", [](double x) { return 1 / x; }},
      {"sqrt.approx.f32", [](double x) { return std::sqrt(x); }},
      {"tanh.approx.f32", [](double x) { return std::tanh(x); }},
      {"sin.approx.f32", [](double x) { return std::sin(x); }},
      {"cos.approx.f32", [](double x) { return std::cos(x); }}};
  for (auto [name, function] : functions) {
    LaneTest test;
    for (float value : {0.25f, 0.7f, 1.0f, 1.3f, 2.5f, 3.0f})
      test.a.push_back(std::bit_cast<uint32_t>(value));
    auto got = test.run(std::string(name) + " %d, %a;", 32, 32);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(f32(got[i]), function(f32(test.a[i])), 1.0 / 1024) << name << " of " << f32(test.a[i]);
  }
}

TEST(EmuFloat, Double) {
  LaneTest test;
  for (double a : {0.0, -1.5, 3e300, 1e-310, 7.0, double(INFINITY)})
    for (double b : {2.0, -0.0, 3e300, 1e-310, 0.1})
      test.a.push_back(std::bit_cast<uint64_t>(a)), test.b.push_back(std::bit_cast<uint64_t>(b)),
          test.c.push_back(std::bit_cast<uint64_t>(a + b));
  auto check = [&](const std::string &code, const std::function<double(double, double, double)> &expected) {
    auto got = test.run(code, 64, 64, 64, 64);
    for (size_t i = 0; i < got.size(); ++i) {
      double want = expected(std::bit_cast<double>(test.a[i]), std::bit_cast<double>(test.b[i]),
                             std::bit_cast<double>(test.c[i]));
      double have = std::bit_cast<double>(got[i]);
      ASSERT_TRUE(want == have || (want != want && have != have)) << code << " " << want << " " << have;
    }
  };
  check("add.f64 %d, %a, %b;", [](double a, double b, double) { return a + b; });
  check("sub.f64 %d, %a, %b;", [](double a, double b, double) { return a - b; });
  check("mul.f64 %d, %a, %b;", [](double a, double b, double) { return a * b; });
  check("fma.rn.f64 %d, %a, %b, %c;", [](double a, double b, double c) { return std::fma(a, b, c); });
  check("div.rn.f64 %d, %a, %b;", [](double a, double b, double) { return a / b; });
  check("max.f64 %d, %a, %b;", [](double a, double b, double) { return std::fmax(a, b); });
}

// Exact results of half arithmetic come from double: all operands here have exact sums, products and fused results in
// double, so that rounding the double once (by the table of all values) is the definition.
namespace {
double halfValue(uint32_t bits) {
  int e = bits >> 10 & 31;
  double size = e == 31 ? (bits & 1023 ? NAN : INFINITY) : std::ldexp((bits & 1023) + (e ? 1024 : 0), (e ? e : 1) - 25);
  return bits & 0x8000 ? -size : size;
}
/// Nearest f16, ties to even, by search among all of them.
uint16_t nearestHalf(double value) {
  if (value != value)
    return 0x7fff;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double size = std::fabs(value);
  if (size >= 65520)
    return sign | 0x7c00;
  uint16_t below = 0;
  for (unsigned step = 0x4000; step; step >>= 1)
    if (below + step < 0x7c00 && halfValue(below + step) <= size)
      below += step;
  double low = halfValue(below), high = below + 1 == 0x7c00 ? 65536 : halfValue(below + 1);
  bool up = size - low > high - size || (size - low == high - size && (below & 1));
  return sign | (below + up);
}
const std::vector<uint64_t> edges16 = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x3c01,
                                       0x3555, 0x4248, 0x6400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
} // namespace

TEST(EmuFloat, Half) {
  LaneTest test = pairsOf(edges16);
  auto check = [&](const std::string &code, const std::function<double(double, double, double)> &exact) {
    auto got = test.run(code, 16, 16, 16, 16);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], nearestHalf(exact(halfValue(test.a[i]), halfValue(test.b[i]), halfValue(test.c[i]))))
          << code << std::hex << " a=" << test.a[i] << " b=" << test.b[i] << " c=" << test.c[i];
  };
  check("add.f16 %d, %a, %b;", [](double a, double b, double) { return a + b; });
  check("sub.f16 %d, %a, %b;", [](double a, double b, double) { return a - b; });
  check("mul.f16 %d, %a, %b;", [](double a, double b, double) { return a * b; });
  check("fma.rn.f16 %d, %a, %b, %c;", [](double a, double b, double c) { return a * b + c; });
  check("fma.rn.relu.f16 %d, %a, %b, %c;", [](double a, double b, double c) {
    double r = a * b + c;
    return r <= 0 ? 0 : r;
  });
}

// Results of an H200 (gemmc-microtests, seed 1): a NaN's way, and what `.ftz` flushes.
TEST(EmuFloat, AsOnTheCard) {
  struct {
    const char *code;
    unsigned bits;
    uint64_t a, b, c, d;
  } const cases[] = {
      {"neg.f32 %d, %a;", 32, 0xffeefd68, 0, 0, 0x7fffffff},
      {"abs.ftz.f32 %d, %a;", 32, 0xffeefd68, 0, 0, 0x7fffffff},
      {"neg.f16 %d, %a;", 16, 0xfec4, 0, 0, 0x7fff},
      {"neg.f16x2 %d, %a;", 32, 0x7ef3947b, 0, 0, 0x7fff147b},
      {"abs.bf16x2 %d, %a;", 32, 0x7fd53eec, 0, 0, 0x7fff3eec},
      {"neg.f64 %d, %a;", 64, 0xfff28d5490ec586d, 0, 0, 0xfffa8d5490ec586d},
      {"abs.f64 %d, %a;", 64, 0xfffa0245ffdd64da, 0, 0, 0xfffa0245ffdd64da},
      {"add.f64 %d, %a, %b;", 64, 0x7ff3db9b3700ce38, 0xfff3db9b3700ce3a, 0, 0xfffbdb9b3700ce3a},
      {"min.f64 %d, %a, %b;", 64, 0x7ff5dbec34ada5b2, 0x7ff5dbec34ada5b0, 0, 0x7ffddbec34ada5b0},
      {"fma.rn.f64 %d, %a, %b, %c;", 64, 0xfff26f8aae26aae2, 0xe6928200e278ca3f, 0x7ff26f8aae26aae1,
       0x7ffa6f8aae26aae1},
      {"mul.ftz.f32 %d, %a, %b;", 32, 0x3f7fffff, 0x00800000, 0, 0},
      {"mul.rp.ftz.f32 %d, %a, %b;", 32, 0x3f7fffff, 0x00800000, 0, 0},
      {"mad.rm.ftz.f32 %d, %a, %b, %c;", 32, 0x00800000, 0x34b00fff, 0x80800002, 0x80000000},
      {"fma.rn.ftz.f32 %d, %a, %b, %c;", 32, 0xbf7fffff, 0x00800000, 0, 0x80000000},
      {"div.rm.ftz.f32 %d, %a, %b;", 32, 0x9affffff, 0x5a000000, 0, 0x80000000},
      {"mul.ftz.f16 %d, %a, %b;", 16, 0x8c00, 0x33ff, 0, 0x8000},
      {"fma.rn.ftz.sat.f16x2 %d, %a, %b, %c;", 32, 0x9fffdfff, 0xa000dffd, 0x80f9ba92, 0x00003c00},
      {"fma.rn.relu.bf16 %d, %a, %b, %c;", 16, 0x0000, 0x9c57, 0x8000, 0x0000},
      {"set.eq.f32.f32 %d, %a, %b;", 32, 0x593d6444, 0x593d6444, 0, 0x3f800000},
      {"rem.s32 %d, %a, %b;", 32, 0xaa54d6c5, 0, 0, 0xffffffff},
  };
  for (const auto &item : cases) {
    LaneTest test;
    test.a = {item.a}, test.b = {item.b}, test.c = {item.c};
    EXPECT_EQ(test.run(item.code, item.bits, item.bits, item.bits, item.bits)[0], item.d) << item.code;
  }
}

TEST(EmuFloat, HalfFusedRoundsOnce) {
  // 1 + 2^-11 is a tie in f16; the product's tiny rest decides. In f32 the rest would be lost.
  LaneTest test;
  test.a = {0x0001, 0x8001}, test.b = {0x0001, 0x0001}, test.c = {0x3c00, 0x3c00};
  auto got = test.run("mov.b16 %c, 0x3c01;\nmov.b16 %b, 0x0001;\nfma.rn.f16 %d, %a, %b, %c;", 16, 16, 16, 16);
  EXPECT_EQ(got, (std::vector<uint64_t>{0x3c01, 0x3c01}));
}

TEST(EmuFloat, PackedHalves) {
  LaneTest test;
  test.a = {0x3c004000}, test.b = {0x40004200}, test.c = {0xbc003c00};
  EXPECT_EQ(test.run("add.f16x2 %d, %a, %b;", 32, 32)[0], 0x42004500u);        // 1+2, 2+3
  EXPECT_EQ(test.run("fma.rn.f16x2 %d, %a, %b, %c;", 32, 32)[0], 0x3c004700u); // 1*2-1, 2*3+1
  EXPECT_EQ(test.run("max.f16x2 %d, %a, %c;", 32, 32)[0], 0x3c004000u);
  EXPECT_EQ(test.run("neg.f16x2 %d, %a;", 32, 32)[0], 0xbc00c000u);
  test.a = {0x3f804000}, test.b = {0x40004040}, test.c = {0xbf803f80};
  EXPECT_EQ(test.run("add.bf16x2 %d, %a, %b;", 32, 32)[0], 0x404040a0u);
  EXPECT_EQ(test.run("fma.rn.bf16x2 %d, %a, %b, %c;", 32, 32)[0], 0x3f8040e0u);
  test.a = {0x3f81}, test.b = {0x3f81};
  EXPECT_EQ(test.run("mul.bf16 %d, %a, %b;", 16, 16, 16, 16)[0], 0x3f82u); // 1.0078125^2 = 1.0156860...
}

TEST(EmuFloat, Comparisons) {
  struct Relation {
    const char *name;
    bool (*holds)(double, double);
  };
  auto unordered = [](double a, double b) { return a != a || b != b; };
  (void)unordered;
  const Relation relations[] = {{"eq", [](double a, double b) { return a == b; }},
                                {"ne", [](double a, double b) { return a < b || a > b; }},
                                {"lt", [](double a, double b) { return a < b; }},
                                {"le", [](double a, double b) { return a <= b; }},
                                {"gt", [](double a, double b) { return a > b; }},
                                {"ge", [](double a, double b) { return a >= b; }},
                                {"equ", [](double a, double b) { return !(a < b || a > b); }},
                                {"neu", [](double a, double b) { return a != b; }},
                                {"ltu", [](double a, double b) { return !(a >= b); }},
                                {"leu", [](double a, double b) { return !(a > b); }},
                                {"gtu", [](double a, double b) { return !(a <= b); }},
                                {"geu", [](double a, double b) { return !(a < b); }},
                                {"num", [](double a, double b) { return a == a && b == b; }},
                                {"nan", [](double a, double b) { return a != a || b != b; }}};
  LaneTest test = pairsOf(edges32), half = pairsOf(edges16);
  for (const Relation &relation : relations) {
    auto got = test.run(std::string("setp.") + relation.name + ".f32 %d, %a, %b;", 1, 32);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], relation.holds(f32(test.a[i]), f32(test.b[i]))) << relation.name;
    got = half.run(std::string("setp.") + relation.name + ".f16 %d, %a, %b;", 1, 16, 16, 16);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], relation.holds(halfValue(half.a[i]), halfValue(half.b[i]))) << relation.name;
  }
}

TEST(EmuFloat, Testp) {
  const std::pair<const char *, std::function<bool(float)>> properties[] = {
      {"finite", [](float x) { return std::isfinite(x); }},
      {"infinite", [](float x) { return std::isinf(x); }},
      {"number", [](float x) { return !std::isnan(x); }},
      {"notanumber", [](float x) { return std::isnan(x); }},
      {"normal", [](float x) { return std::isnormal(x) || x == 0; }},
      {"subnormal", [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; }}};
  for (const auto &[name, holds] : properties) {
    LaneTest test;
    test.a = edges32;
    auto got = test.run(std::string("testp.") + name + ".f32 %d, %a;", 1, 32);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], holds(f32(test.a[i]))) << name << std::hex << test.a[i];
  }
}

} // namespace gemmc::emu::test
