// The arithmetic of the matrix units: against a model in wide integers, and against cases worked out by hand.
#include "gemmc/Emu/Numerics.h"
#include "gemmc/Emu/TensorCore.h"
#include "gtest/gtest.h"
#include <array>
#include <cmath>
#include <random>

using namespace gemmc::emu::sem;
using gemmc::ptx::Type;

namespace {

/// A finite value as an integer times 2^exponent, taken from its bits; `top` is the exponent that alignment looks at.
struct Exact {
  __int128 digits;
  int exponent, top;
};
Exact exactOf(Type type, uint32_t bits) {
  int e = 8, m = 23;
  if (type == Type::f16)
    e = 5, m = 10;
  else if (type == Type::bf16)
    e = 8, m = 7;
  else if (type == Type::e4m3)
    e = 4, m = 3;
  else if (type == Type::e5m2)
    e = 5, m = 2;
  else if (type == Type::tf32)
    bits &= ~0x1fffu;
  int bias = (1 << (e - 1)) - 1, field = bits >> m & ((1 << e) - 1);
  __int128 digits = bits & ((1u << m) - 1);
  if (field)
    digits |= 1 << m;
  int top = digits ? std::max(field, 1) - bias : -126;
  if (bits >> (e + m) & 1)
    digits = -digits;
  return {digits, std::max(field, 1) - bias - m, top};
}

/// digits * 2^(exponent + up), cut towards zero.
__int128 cut(__int128 digits, int up) {
  if (up >= 0)
    return digits << up; // the callers stay below 2^127
  if (up <= -127)
    return 0;
  return digits < 0 ? -(-digits >> -up) : digits >> -up;
}

/// One fused sum, all in integers; only for finite values.
uint32_t modelDot(const DotModel &model, Type type, const std::vector<uint32_t> &a, const std::vector<uint32_t> &b,
                  uint32_t c) {
  std::vector<Exact> terms{exactOf(model.f16Result ? Type::f16 : Type::f32, c)};
  for (size_t i = 0; i < a.size(); ++i) {
    Exact x = exactOf(type, a[i]), y = exactOf(type, b[i]);
    if (x.digits && y.digits)
      terms.push_back({x.digits * y.digits, x.exponent + y.exponent, x.top + y.top});
  }
  int largest = model.smallest;
  for (const Exact &term : terms)
    largest = std::max(largest, term.top);
  int unit = largest - static_cast<int>(model.fraction);
  __int128 sum = 0;
  for (const Exact &term : terms)
    if (term.digits)
      sum += cut(term.digits, term.exponent - unit);
  if (sum == 0)
    return 0;
  bool negative = sum < 0;
  unsigned __int128 size = negative ? -sum : sum;
  int high = 127;
  while (!(size >> high & 1))
    --high;
  int top = high + unit, m = model.f16Result ? 10 : static_cast<int>(model.resultFraction);
  int smallest = model.f16Result ? -14 : -126, step = std::max(top, smallest) - m;
  unsigned __int128 digits;
  if (step <= unit) {
    digits = size << (unit - step);
  } else {
    int down = step - unit;
    digits = down > 126 ? 0 : size >> down;
    unsigned __int128 rest = down > 126 ? size : size - (digits << down);
    unsigned __int128 half =
        down > 126 ? ~static_cast<unsigned __int128>(0) : static_cast<unsigned __int128>(1) << (down - 1);
    if (model.f16Result && (rest > half || (rest == half && (digits & 1))))
      ++digits;
  }
  double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(digits)), step);
  if (digits == 0)
    return 0;
  value = negative ? -value : value;
  if (!model.f16Result)
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode(formatF16, value);
}

uint32_t randomBits(std::mt19937 &rng, Type type, unsigned style) {
  auto value = [&]() -> double {
    switch (style % 5) {
    case 0: // like a matrix of a network
      return std::normal_distribution<double>()(rng);
    case 1: // integers
      return static_cast<int>(rng() % 17) - 8;
    case 2: // all magnitudes, subnormal ones too
      return std::ldexp(1.0 + (rng() % 1024) / 1024.0, static_cast<int>(rng() % 30) - 17) * (rng() % 2 ? 1 : -1);
    case 3: // many zeros
      return rng() % 3 ? 0.0 : static_cast<int>(rng() % 5) - 2;
    default: // near each other, so that sums cancel
      return (1.0 + (rng() % 8) / 1024.0) * (rng() % 2 ? 1 : -1);
    }
  }();
  if (style == 7 && (type == Type::bf16 || type == Type::tf32)) // the far ends of the exponent range
    value = std::ldexp(value, static_cast<int>(rng() % 250) - 140);
  if (style == 8 && (type == Type::bf16 || type == Type::tf32)) // both sides of what f32 products can hold
    value = std::ldexp(value, static_cast<int>(rng() % 144) - 72);
  uint32_t bits = encode(*formatOf(type), value, {Round::nearest, true});
  return type == Type::tf32 ? bits | (rng() & 0x1fff) : bits; // the low 13 bits are ignored
}

Factors factorsOf(Type type, const std::vector<std::vector<uint32_t>> &lines) {
  Factors factors;
  factors.resize(lines.size(), lines[0].size());
  for (unsigned line = 0; line < lines.size(); ++line)
    for (unsigned i = 0; i < lines[line].size(); ++i)
      factors.fill(line, i, 1, type, &lines[line][i]); // little endian: the low bytes come first
  factors.finish();
  return factors;
}

struct Config {
  Chip chip;
  bool wgmma;
  Type a, d;
  unsigned k;
};
const Config configs[] = {
    {Chip::hopper, true, Type::f16, Type::f32, 16},   {Chip::hopper, true, Type::f16, Type::f16, 16},
    {Chip::hopper, true, Type::bf16, Type::f32, 16},  {Chip::hopper, true, Type::tf32, Type::f32, 8},
    {Chip::hopper, true, Type::e4m3, Type::f32, 32},  {Chip::hopper, true, Type::e5m2, Type::f16, 32},
    {Chip::hopper, false, Type::e4m3, Type::f32, 32}, {Chip::hopper, false, Type::f16, Type::f32, 8},
    {Chip::ampere, false, Type::f16, Type::f32, 16},  {Chip::ampere, false, Type::f16, Type::f16, 16},
    {Chip::ampere, false, Type::bf16, Type::f32, 16}, {Chip::ampere, false, Type::tf32, Type::f32, 8},
    {Chip::ada, false, Type::e4m3, Type::f32, 32},    {Chip::ada, false, Type::e5m2, Type::f16, 32},
    {Chip::ada, false, Type::f16, Type::f32, 16},     {Chip::hopper, false, Type::tf32, Type::f32, 4}};

} // namespace

TEST(SemTensorCore, AgreesWithWideIntegers) {
  std::mt19937 rng(7);
  for (const Config &config : configs) {
    DotModel model = dotModel(config.chip, config.wgmma, config.a, config.d, config.k);
    for (unsigned style = 0; style < 9; ++style)
      for (unsigned repeat = 0; repeat < 6; ++repeat) {
        unsigned rows = 5, columns = 13; // not a multiple of any vector width
        std::vector<std::vector<uint32_t>> a(rows), b(columns);
        for (auto *side : {&a, &b})
          for (auto &line : *side)
            for (unsigned i = 0; i < config.k; ++i)
              line.push_back(randomBits(rng, config.a, style));
        Factors fa = factorsOf(config.a, a), fb = factorsOf(config.a, b);
        std::vector<uint32_t> acc(rows * columns);
        for (uint32_t &c : acc)
          c = rng() % 4 == 0 ? 0 : randomBits(rng, config.d, rng() % 3 ? style : 2);
        std::vector<uint32_t> before = acc;
        fusedDots(model, fa, fb, acc.data(), columns);
        for (unsigned r = 0; r < rows; ++r)
          for (unsigned n = 0; n < columns; ++n) {
            uint32_t want = before[r * columns + n];
            for (unsigned k = 0; k < config.k && std::isfinite(decode(*formatOf(config.d), want)); k += model.step) {
              std::vector<uint32_t> x(a[r].begin() + k, a[r].begin() + k + model.step),
                  y(b[n].begin() + k, b[n].begin() + k + model.step);
              want = modelDot(model, config.a, x, y, want);
            }
            uint32_t literal = fusedDot(model, fa, r, fb, n, before[r * columns + n]);
            ASSERT_EQ(literal, want) << int(config.a) << " style " << style << " c " << before[r * columns + n];
            ASSERT_EQ(acc[r * columns + n], want) << int(config.a) << " style " << style;
          }
      }
  }
}

namespace {

/// d = c + sum a[i] * b[i] for a few f32 values that the type holds exactly; the rest of K is zero.
float dot(const Config &config, std::vector<float> a, std::vector<float> b, float c) {
  a.resize(config.k);
  b.resize(config.k);
  auto line = [&](const std::vector<float> &values) {
    std::vector<uint32_t> bits;
    for (float value : values)
      bits.push_back(encode(*formatOf(config.a), value));
    return factorsOf(config.a, {bits});
  };
  const Format &out = *formatOf(config.d);
  uint32_t acc = encode(out, c);
  fusedDots(dotModel(config.chip, config.wgmma, config.a, config.d, config.k), line(a), line(b), &acc, 1);
  if (std::isnan(decode(out, acc))) {
    EXPECT_EQ(acc, config.d == Type::f16 ? 0x7fffu : 0x7fffffffu);
  }
  return static_cast<float>(decode(out, acc));
}
const Config &hopper = configs[0], &hopperF16 = configs[1], &hopperBf16 = configs[2], &hopperFp8 = configs[4],
             &ampere = configs[8];

} // namespace

// The table at the head of TensorCore.h.
TEST(SemTensorCore, Models) {
  auto model = [](Chip chip, bool wgmma, Type a, unsigned k) {
    DotModel m = dotModel(chip, wgmma, a, Type::f32, k);
    return std::array<unsigned, 3>{m.fraction, m.resultFraction, m.step};
  };
  using Numbers = std::array<unsigned, 3>;
  for (Type half : {Type::f16, Type::bf16}) {
    EXPECT_EQ(model(Chip::ampere, false, half, 16), (Numbers{24, 23, 8}));
    EXPECT_EQ(model(Chip::ampere, false, half, 8), (Numbers{24, 23, 8}));
    EXPECT_EQ(model(Chip::ada, false, half, 16), (Numbers{24, 23, 8}));
    EXPECT_EQ(model(Chip::hopper, false, half, 16), (Numbers{25, 23, 16}));
    EXPECT_EQ(model(Chip::hopper, true, half, 16), (Numbers{25, 23, 16}));
  }
  EXPECT_EQ(model(Chip::ampere, false, Type::tf32, 8), (Numbers{24, 23, 4}));
  EXPECT_EQ(model(Chip::hopper, true, Type::tf32, 8), (Numbers{25, 23, 8}));
  for (Type fp8 : {Type::e4m3, Type::e5m2}) {
    EXPECT_EQ(model(Chip::ada, false, fp8, 32), (Numbers{13, 13, 16}));
    EXPECT_EQ(model(Chip::hopper, false, fp8, 32), (Numbers{25, 23, 32}));
    EXPECT_EQ(model(Chip::hopper, true, fp8, 32), (Numbers{13, 13, 32}));
  }
  EXPECT_EQ(chipOf(80), Chip::ampere);
  EXPECT_EQ(chipOf(86), Chip::ampere);
  EXPECT_EQ(chipOf(89), Chip::ada);
  EXPECT_EQ(chipOf(90), Chip::hopper);
}

// A product of zero has no exponent, however large the other factor is: c stays whole.
TEST(SemTensorCore, ZerosHaveNoExponent) {
  EXPECT_EQ(dot(hopperBf16, {0}, {0x1p127f}, 0x1p-25f), 0x1p-25f);
  EXPECT_EQ(dot(hopperBf16, {0, 0}, {0x1p127f, 1}, 0x1.fffffep-126f), 0x1.fffffep-126f);
  EXPECT_EQ(dot(hopper, {0}, {65504}, 0x1p-149f), 0x1p-149f);
}

namespace {
uint32_t dotOfBits(const Config &config, const std::vector<uint32_t> &a, const std::vector<uint32_t> &b, uint32_t c) {
  fusedDots(dotModel(config.chip, config.wgmma, config.a, config.d, config.k), factorsOf(config.a, {a}),
            factorsOf(config.a, {b}), &c, 1);
  return c;
}
} // namespace

// What an H200 gave (gemmc-microtests, seed 1).
TEST(SemTensorCore, AsOnTheCard) {
  const Config f16{Chip::hopper, false, Type::f16, Type::f32, 8}, bf16{Chip::hopper, false, Type::bf16, Type::f32, 8},
      tf32{Chip::hopper, true, Type::tf32, Type::f32, 8};
  EXPECT_EQ(dotOfBits(f16, {0x0001, 0xa4d2, 0x307c, 0x8525, 0xada4, 0xf904, 0x3a79, 0x36e8},
                      {0, 0, 0, 0, 0, 0x8000, 0, 0}, 0x0154765e),
            0x0154765eu);
  EXPECT_EQ(dotOfBits(bf16, {0x3f80, 0x7f7f, 0x0000, 0x807f, 0xff7f, 0x007f, 0x3f80, 0x3f00},
                      {0x0000, 0x8000, 0x8000, 0, 0, 0, 0, 0x8000}, 0x007fffff),
            0x007fffffu);
  EXPECT_EQ(dotOfBits(tf32, {0, 0x40000000, 0xbf800000, 0x00800000, 0x807fe000, 0x80002000, 0x80000000, 0x807fe000},
                      {0x4c4e75a1, 0x8f8c831a, 0x894781c4, 0x1fac477a, 0x2bbe20b9, 0x33bff2fb, 0x526a3cd3, 0x1f95df01},
                      0),
            0x900c7ce2u);
  EXPECT_EQ(dotOfBits(tf32,
                      {0x7ac0b59c, 0xaf11a696, 0x67311008, 0x17dd85c5, 0x15acc146, 0x41723211, 0x3528a0eb, 0x006fdcb2},
                      {0x80000000, 0, 0, 0, 0, 0x80000000, 0x80000000, 0xbd000be6}, 0x082d03c0),
            0x082d03b9u);
}

// Largest exponent 0: bits below 2^-25 are lost on Hopper, below 2^-24 on Ampere.

// Subnormal results are cut, too, not rounded.
TEST(SemTensorCore, SubnormalResultsAsOnTheCard) {
  const Config bf16{Chip::hopper, false, Type::bf16, Type::f32, 8}, tf32{Chip::hopper, true, Type::tf32, Type::f32, 8};
  EXPECT_EQ(
      dotOfBits(tf32, {0x8014e0d3, 0x0015c233, 0x8103b0f7, 0x01ede09c, 0x81c60de7, 0x01e603c6, 0x816a6192, 0x8186bd18},
                {0x297a20ed, 0x3b22e379, 0x29049b7c, 0x2d76c03c, 0x3252beae, 0x15946b65, 0x9faa1d5a, 0x1e506a89}, 0),
      0x00000dd5u);
  EXPECT_EQ(dotOfBits(bf16, {0xbb08, 0x3b00, 0x3780, 0x3901, 0xb680, 0x3502, 0xbe20, 0x3881},
                      {0x017f, 0x0184, 0x8080, 0x01f2, 0x812f, 0x81f4, 0x806b, 0x8006}, 0),
            0x0010cf2cu);
}

// Of tf32 with K = 4, what lies more than 25 bits below 2^-133 is cut away, however small the largest term is.
TEST(SemTensorCore, SmallestAlignmentAsOnTheCard) {
  const Config quad{Chip::hopper, false, Type::tf32, Type::f32, 4};
  EXPECT_EQ(dotOfBits(quad, {0x80800000, 0x007fe000, 0x80000000, 0x807fe000},
                      {0x39ec27bc, 0x94ae5d0a, 0x84f3717e, 0xaf11c56d}, 0x80000000),
            0x80000ec2u);
}

TEST(SemTensorCore, AlignmentCutsTowardsZero) {
  EXPECT_EQ(dot(hopper, {1, 0x1p-12f}, {1, 0x1p-13f}, -1), 0x1p-25f);
  EXPECT_EQ(dot(hopper, {1, 0x1p-13f}, {1, 0x1p-13f}, -1), 0.0f);
  EXPECT_EQ(dot(hopper, {1, -0x1p-13f}, {1, 0x1p-13f}, -1), 0.0f);
  EXPECT_EQ(dot(ampere, {1, 0x1p-12f}, {1, 0x1p-12f}, -1), 0x1p-24f);
  EXPECT_EQ(dot(ampere, {1, 0x1p-12f}, {1, 0x1p-13f}, -1), 0.0f);
  // Two terms of 3 * 2^-26 keep 2^-25 each; exactly they would be 3 * 2^-25.
  EXPECT_EQ(dot(hopper, {1, 1.5f * 0x1p-12f, 1.5f * 0x1p-12f}, {1, 0x1p-13f, 0x1p-13f}, -1), 0x1p-24f);
}

// 1.5 * 1.5 = 2.25 is aligned by exponent 0, not 1.
TEST(SemTensorCore, ProductsAreNotNormalised) {
  EXPECT_EQ(dot(hopper, {1.5f, 0x1p-12f}, {1.5f, 0x1p-13f}, -2.25f), 0.0f); // c has exponent 1: cut at 2^-24
  EXPECT_EQ(dot(hopper, {1.5f, -1.5f, 0x1p-12f}, {1.5f, 1.5f, 0x1p-13f}, 0), 0x1p-25f);
}

TEST(SemTensorCore, ResultsAreCutToF32) {
  EXPECT_EQ(dot(hopper, {1, 0x1p-12f}, {1, 0x1p-12f}, 0), 1.0f);                   // 1 + 2^-24
  EXPECT_EQ(dot(hopper, {1, 1.5f * 0x1p-12f}, {1, 0x1p-11f}, 0), 1.0f + 0x1p-23f); // 1 + 1.5 * 2^-23
  EXPECT_EQ(dot(hopper, {-1, -1.5f * 0x1p-12f}, {1, 0x1p-11f}, 0), -1.0f - 0x1p-23f);
}

TEST(SemTensorCore, F16ResultsAreRoundedToEven) {
  EXPECT_EQ(dot(hopperF16, {1, 0x1p-11f}, {1, 1}, 0), 1.0f);
  EXPECT_EQ(dot(hopperF16, {1, 0x1p-11f, 0x1p-14f}, {1, 1, 1}, 0), 1.0f + 0x1p-10f);
  EXPECT_EQ(dot(hopperF16, {1, 0x1p-10f, 0x1p-11f}, {1, 1, 1}, 0), 1.0f + 0x1p-9f);
  EXPECT_EQ(dot(hopperF16, {65504, 16}, {1, 1}, 0), INFINITY);
  EXPECT_EQ(dot(hopperF16, {65504, 15}, {1, 1}, 0), 65504.0f);
}

// fp8 on wgmma keeps 13 bits, in the sum and in the result.
TEST(SemTensorCore, Fp8IsCoarse) {
  EXPECT_EQ(dot(hopperFp8, {1, 0x1p-6f}, {1, 0x1p-7f}, -1), 0x1p-13f);
  EXPECT_EQ(dot(hopperFp8, {1, 0x1p-7f}, {1, 0x1p-7f}, -1), 0.0f);
  EXPECT_EQ(dot(hopperFp8, {1}, {1}, 0x1p-14f), 1.0f);
  EXPECT_EQ(dot(hopperFp8, {0}, {0}, 1.0f + 0x1p-14f), 1.0f); // even c alone loses its low bits
}

TEST(SemTensorCore, SpecialValues) {
  for (const Config *config : {&hopper, &hopperBf16, &ampere}) {
    EXPECT_EQ(dot(*config, {INFINITY}, {2}, 1), INFINITY);
    EXPECT_EQ(dot(*config, {INFINITY}, {-2}, 1), -INFINITY);
    EXPECT_TRUE(std::isnan(dot(*config, {INFINITY}, {0}, 1)));
    EXPECT_TRUE(std::isnan(dot(*config, {INFINITY, 1}, {1, -INFINITY}, 1)));
    EXPECT_TRUE(std::isnan(dot(*config, {INFINITY}, {1}, -INFINITY)));
    EXPECT_TRUE(std::isnan(dot(*config, {NAN}, {1}, 1)));
    EXPECT_TRUE(std::isnan(dot(*config, {1}, {1}, NAN)));
    EXPECT_EQ(dot(*config, {1}, {1}, -INFINITY), -INFINITY);
  }
  EXPECT_EQ(dot(hopperBf16, {0x1p127f, 0x1p127f}, {1, 1}, 0), INFINITY);
  EXPECT_EQ(dot(hopperBf16, {0x1p127f, 0x1p127f}, {2, -2}, 3), 0.0f); // products of 2^128 cancel, and hide c
  EXPECT_EQ(dot(hopper, {0x1p-24f}, {0x1p-24f}, 0), 0x1p-48f);        // subnormal factors count
  EXPECT_EQ(dot(hopperBf16, {0x1p-100f}, {0x1p-40f}, 0), 0x1p-140f);  // and subnormal results
  for (int exponent = -149; exponent < 128; ++exponent)               // with nothing to add, c comes through
    EXPECT_EQ(dot(hopper, {0}, {0}, std::ldexp(1.0f, exponent)), std::ldexp(1.0f, exponent));
  EXPECT_FALSE(std::signbit(dot(hopper, {-1, 1}, {1, 1}, -0.0f)));
  EXPECT_FALSE(std::signbit(dot(hopper, {0}, {0}, -0.0f)));
}

// Partial sums below 2^24 come out exact, as a plain loop has them.
TEST(SemTensorCore, IntegersAreExact) {
  std::mt19937 rng(11);
  for (const Config *config : {&hopper, &hopperBf16, &ampere}) {
    std::vector<float> a(16), b(16);
    for (unsigned repeat = 0; repeat < 2000; ++repeat) {
      int sum = static_cast<int>(rng() % 2000001) - 1000000;
      float c = static_cast<float>(sum);
      for (unsigned i = 0; i < 16; ++i) {
        a[i] = static_cast<int>(rng() % 513) - 256;
        b[i] = static_cast<int>(rng() % 513) - 256;
        a[i] = std::trunc(a[i] / 2) * 2; // bf16 holds nine bits at most
        b[i] = std::trunc(b[i] / 2) * 2;
        sum += static_cast<int>(a[i]) * static_cast<int>(b[i]);
      }
      ASSERT_EQ(dot(*config, a, b, c), static_cast<float>(sum));
    }
  }
}

TEST(SemTensorCore, IntegerFactors) {
  int16_t a[] = {255, 255, 255, 255}, b[] = {127, 127, -128, 127, -128, -128, -128, -128};
  uint32_t acc[] = {5, static_cast<uint32_t>(INT32_MIN)};
  integerDots(a, 1, b, 2, 4, false, acc, 2);
  EXPECT_EQ(static_cast<int32_t>(acc[0]), 5 + 255 * (3 * 127 - 128));
  EXPECT_EQ(static_cast<int32_t>(acc[1]), INT32_MAX - 4 * 255 * 128 + 1); // wrapped
  acc[1] = static_cast<uint32_t>(INT32_MIN);
  integerDots(a, 1, b, 2, 4, true, acc, 2);
  EXPECT_EQ(static_cast<int32_t>(acc[1]), INT32_MIN);
  uint32_t x[] = {0xff00ff00, 1}, y[] = {0x0ff00ff0, 3}, count = 10;
  bitDots(x, 1, y, 1, 2, false, &count, 1);
  EXPECT_EQ(count, 10u + 8 + 1);
  count = ~0u;
  bitDots(x, 1, y, 1, 2, true, &count, 1);
  EXPECT_EQ(count, 16u); // 17 differing bits, wrapped around
}
