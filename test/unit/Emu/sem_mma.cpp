// mma.sync and wmma with integers against a plain triple loop, fragments as the manual's formulas spell them.
#include "gemmc/Emu/Mma.h"
#include "gtest/gtest.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>

using namespace gemmc;
using namespace gemmc::emu::sem;
using ptx::Type;

namespace {

/// A warp's registers, 64 bits each so that they serve all types.
struct Regs {
  alignas(64) uint64_t rows[32][32] = {};
  uint32_t *at[32];
  Regs() {
    for (unsigned i = 0; i < 32; ++i)
      at[i] = reinterpret_cast<uint32_t *>(rows[i]);
  }
};

unsigned widthOf(Type type) {
  static const std::map<Type, unsigned> widths = {{Type::f16, 16}, {Type::bf16, 16}, {Type::e4m3, 8}, {Type::e5m2, 8},
                                                  {Type::s8, 8},   {Type::u8, 8},    {Type::s4, 4},   {Type::u4, 4},
                                                  {Type::b1, 1},   {Type::f64, 64}};
  auto found = widths.find(type);
  return found == widths.end() ? 32 : found->second;
}

/// Writes element i of a lane, counted from the low end of the first register.
void put(Regs &regs, Type type, unsigned lane, unsigned i, uint64_t bits) {
  unsigned width = widthOf(type);
  if (width == 64) {
    regs.rows[i][lane] = bits;
    return;
  }
  unsigned per = 32 / width;
  uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
  uint32_t &reg = regs.at[i / per][lane];
  reg = (reg & ~(mask << i % per * width)) | static_cast<uint32_t>(bits & mask) << i % per * width;
}
uint64_t get(const Regs &regs, Type type, unsigned lane, unsigned i) {
  unsigned width = widthOf(type);
  if (width == 64)
    return regs.rows[i][lane];
  unsigned per = 32 / width;
  return regs.at[i / per][lane] >> i % per * width & (width == 32 ? ~0u : (1u << width) - 1);
}

uint64_t toBits(Type type, int value) {
  if (type == Type::f64)
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  if (const Format *format = formatOf(type))
    return encode(*format, value);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}
double toValue(Type type, uint64_t bits) {
  if (type == Type::f64)
    return std::bit_cast<double>(bits);
  if (const Format *format = formatOf(type))
    return decode(*format, static_cast<uint32_t>(bits));
  return static_cast<int32_t>(bits);
}
int randomFactor(std::mt19937 &rng, Type type) {
  switch (type) {
  case Type::u8:
    return rng() % 256;
  case Type::s8:
    return static_cast<int>(rng() % 256) - 128;
  case Type::u4:
    return rng() % 16;
  case Type::s4:
    return static_cast<int>(rng() % 16) - 8;
  case Type::b1:
    return rng() % 2;
  default:
    return static_cast<int>(rng() % 9) - 4;
  }
}

using Matrix = std::vector<std::vector<int>>;
Matrix randomMatrix(std::mt19937 &rng, unsigned rows, unsigned columns, Type type) {
  Matrix matrix(rows, std::vector<int>(columns));
  for (auto &row : matrix)
    for (int &x : row)
      x = randomFactor(rng, type);
  return matrix;
}
Matrix product(const MmaForm &form, const Matrix &a, const Matrix &b, const Matrix &c) {
  Matrix d = c;
  for (unsigned i = 0; i < form.m; ++i)
    for (unsigned j = 0; j < form.n; ++j)
      for (unsigned k = 0; k < form.k; ++k)
        d[i][j] += form.a == Type::b1 ? (form.exclusive ? a[i][k] ^ b[k][j] : a[i][k] & b[k][j]) : a[i][k] * b[k][j];
  return d;
}

/// The element of a matrix that element i of a lane is: the formulas of 9.7.14.5.x, `g` groupID, `t` threadID_in_group.
using At = std::function<std::pair<unsigned, unsigned>(unsigned g, unsigned t, unsigned i)>;
struct Fragments {
  unsigned numA, numB, numC;
  At a, b, c;
};
#define AT(row, column) [](unsigned g, unsigned t, unsigned i) { return std::pair<unsigned, unsigned>(row, column); }
const At wideC = AT(i < 2 ? g : g + 8, t * 2 + (i & 1)), narrowC = AT(g, t * 2 + i);

const std::map<std::pair<std::string, unsigned>, Fragments> manual = {
    // mma.m8n8k4 f64 (.2), m8n8k16 s8 (.3), m8n8k32 s4 (.4), m8n8k128 b1 (.5)
    {{"m8k4", 64}, {1, 1, 2, AT(g, t), AT(t, g), narrowC}},
    {{"m8k16", 8}, {4, 4, 2, AT(g, t * 4 + i), AT(t * 4 + i, g), narrowC}},
    {{"m8k32", 4}, {8, 8, 2, AT(g, t * 8 + i), AT(t * 8 + i, g), narrowC}},
    {{"m8k128", 1}, {32, 32, 2, AT(g, t * 32 + i), AT(t * 32 + i, g), narrowC}},
    // m16n8k4 tf32, f64 (.6)
    {{"m16k4", 32}, {2, 1, 4, AT(i == 0 ? g : g + 8, t), AT(t, g), wideC}},
    {{"m16k4", 64}, {2, 1, 4, AT(i == 0 ? g : g + 8, t), AT(t, g), wideC}},
    // m16n8k8 f16, tf32, f64 (.7)
    {{"m16k8", 16}, {4, 2, 4, AT(i < 2 ? g : g + 8, t * 2 + (i & 1)), AT(t * 2 + i, g), wideC}},
    {{"m16k8", 32}, {4, 2, 4, AT(i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4), AT(i == 0 ? t : t + 4, g), wideC}},
    {{"m16k8", 64}, {4, 2, 4, AT(i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4), AT(i == 0 ? t : t + 4, g), wideC}},
    // m16n8k16 f16, f64 (.8), s8 and fp8 (.9)
    {{"m16k16", 16},
     {8, 4, 4, AT(i < 2 || (i >= 4 && i < 6) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8),
      AT(i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g), wideC}},
    {{"m16k16", 64},
     {8, 4, 4, AT(i % 2 == 0 ? g : g + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t), AT(t + i * 4, g), wideC}},
    {{"m16k16", 8}, {8, 4, 4, AT(i < 4 ? g : g + 8, t * 4 + (i & 3)), AT(t * 4 + i, g), wideC}},
    // m16n8k32 s4, s8 and fp8 (.10)
    {{"m16k32", 4}, {16, 8, 4, AT(i < 8 ? g : g + 8, t * 8 + (i & 7)), AT(t * 8 + (i & 7), g), wideC}},
    {{"m16k32", 8},
     {16, 8, 4, AT(i < 4 || (i >= 8 && i < 12) ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16),
      AT(i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g), wideC}},
    // m16n8k64 s4 (.11), m16n8k128 and k256 b1 (.12, .13)
    {{"m16k64", 4},
     {32, 16, 4, AT(i < 8 || (i >= 16 && i < 24) ? g : g + 8, i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32),
      AT(i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32, g), wideC}},
    {{"m16k128", 1}, {64, 32, 4, AT(i < 32 ? g : g + 8, t * 32 + (i & 31)), AT(t * 32 + i, g), wideC}},
    {{"m16k256", 1},
     {128, 64, 4, AT(i < 32 || (i >= 64 && i < 96) ? g : g + 8, i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128),
      AT(i < 32 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128, g), wideC}},
};

struct Row {
  unsigned m, k;
  std::vector<Type> factors, accumulators;
};
const Row rows[] = {{8, 4, {Type::f64}, {Type::f64}},
                    {16, 4, {Type::f64}, {Type::f64}},
                    {16, 8, {Type::f64}, {Type::f64}},
                    {16, 16, {Type::f64}, {Type::f64}},
                    {16, 4, {Type::tf32}, {Type::f32}},
                    {16, 8, {Type::tf32}, {Type::f32}},
                    {16, 8, {Type::f16}, {Type::f16, Type::f32}},
                    {16, 16, {Type::f16}, {Type::f16, Type::f32}},
                    {16, 8, {Type::bf16}, {Type::f32}},
                    {16, 16, {Type::bf16}, {Type::f32}},
                    {16, 16, {Type::e4m3, Type::e5m2}, {Type::f16, Type::f32}},
                    {16, 32, {Type::e4m3, Type::e5m2}, {Type::f16, Type::f32}},
                    {8, 16, {Type::s8, Type::u8}, {Type::s32}},
                    {16, 16, {Type::s8, Type::u8}, {Type::s32}},
                    {16, 32, {Type::s8, Type::u8}, {Type::s32}},
                    {8, 32, {Type::s4, Type::u4}, {Type::s32}},
                    {16, 32, {Type::s4, Type::u4}, {Type::s32}},
                    {16, 64, {Type::s4, Type::u4}, {Type::s32}},
                    {8, 128, {Type::b1}, {Type::s32}},
                    {16, 128, {Type::b1}, {Type::s32}},
                    {16, 256, {Type::b1}, {Type::s32}}};

template <typename Run> void eachForm(Run run) {
  for (const Row &row : rows)
    for (Type a : row.factors)
      for (Type b : row.factors)
        for (Type acc : row.accumulators)
          for (bool exclusive : {false, true}) {
            if (exclusive && a != Type::b1)
              continue;
            MmaForm form{row.m, 8, row.k, a, b, acc, acc};
            form.exclusive = exclusive;
            run(form);
          }
}

} // namespace

TEST(SemMma, EveryShapeAgainstATripleLoop) {
  std::mt19937 rng(21);
  unsigned forms = 0;
  eachForm([&](MmaForm form) {
    ASSERT_TRUE(isMma(form));
    ++forms;
    std::string shape = "m" + std::to_string(form.m) + "k" + std::to_string(form.k);
    const Fragments &f = manual.at({shape, widthOf(form.a)});
    for (Chip chip : {Chip::ampere, Chip::ada, Chip::hopper}) {
      form.chip = chip;
      Matrix a = randomMatrix(rng, form.m, form.k, form.a), b = randomMatrix(rng, form.k, 8, form.b),
             c = randomMatrix(rng, form.m, 8, form.c), want = product(form, a, b, c);
      Regs ra, rb, rc, rd;
      for (unsigned lane = 0; lane < 32; ++lane) {
        auto fill = [&](Regs &regs, Type type, unsigned count, const At &at, const Matrix &from) {
          for (unsigned i = 0; i < count; ++i) {
            auto [r, col] = at(lane / 4, lane % 4, i);
            put(regs, type, lane, i, toBits(type, from[r][col]));
          }
        };
        fill(ra, form.a, f.numA, f.a, a);
        fill(rb, form.b, f.numB, f.b, b);
        fill(rc, form.c, f.numC, f.c, c);
      }
      mma(form, ra.at, rb.at, rc.at, rd.at);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < f.numC; ++i) {
          auto [r, col] = f.c(lane / 4, lane % 4, i);
          ASSERT_EQ(toValue(form.d, get(rd, form.d, lane, i)), want[r][col]) << shape << " type " << int(form.a);
        }
      unsigned registers = f.numA * std::min(widthOf(form.a), 32u) / 32;
      EXPECT_EQ(mmaRegs(form, Role::a), registers) << shape;
    }
  });
  EXPECT_EQ(forms, 4u + 2 + 4 + 2 + 16 + 12 + 12 + 6); // f64, tf32, f16, bf16, fp8, int8, int4, b1
}

// Four independent products; all layouts; c and d of different types.
TEST(SemMma, QuadShape) {
  std::mt19937 rng(22);
  for (Order aOrder : {Order::row, Order::col})
    for (Order bOrder : {Order::row, Order::col})
      for (auto [cType, dType] : {std::pair{Type::f16, Type::f16}, {Type::f16, Type::f32}, {Type::f32, Type::f32}}) {
        MmaForm form{8, 8, 4, Type::f16, Type::f16, cType, dType, aOrder, bOrder};
        ASSERT_TRUE(isMma(form));
        Regs ra, rb, rc, rd;
        Matrix want[4];
        auto rowOfF32 = [](unsigned lane, unsigned i) { return (lane & 1) + (i & 2) + (lane < 16 ? 0 : 4); };
        auto columnOfF32 = [](unsigned lane, unsigned i) { return (i & 4) + (lane & 2) + (i & 1); };
        for (unsigned q = 0; q < 4; ++q) {
          Matrix a = randomMatrix(rng, 8, 4, Type::f16), b = randomMatrix(rng, 4, 8, Type::f16),
                 c = randomMatrix(rng, 8, 8, Type::f16);
          want[q] = product(form, a, b, c);
          for (unsigned lane :
               {4 * q, 4 * q + 1, 4 * q + 2, 4 * q + 3, 4 * q + 16, 4 * q + 17, 4 * q + 18, 4 * q + 19}) {
            unsigned own = lane < 16 ? lane % 4 : lane % 4 + 4, high = lane < 16 ? 0 : 4;
            for (unsigned i = 0; i < 4; ++i) {
              put(ra, Type::f16, lane, i, toBits(Type::f16, aOrder == Order::row ? a[own][i] : a[i + high][lane % 4]));
              put(rb, Type::f16, lane, i, toBits(Type::f16, bOrder == Order::col ? b[i][own] : b[lane % 4][i + high]));
            }
            for (unsigned i = 0; i < 8; ++i)
              put(rc, cType, lane, i,
                  toBits(cType, cType == Type::f16 ? c[own][i] : c[rowOfF32(lane, i)][columnOfF32(lane, i)]));
          }
        }
        mma(form, ra.at, rb.at, rc.at, rd.at);
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned i = 0; i < 8; ++i) {
            unsigned q = lane % 16 / 4, own = lane < 16 ? lane % 4 : lane % 4 + 4;
            int expected = dType == Type::f16 ? want[q][own][i] : want[q][rowOfF32(lane, i)][columnOfF32(lane, i)];
            ASSERT_EQ(toValue(dType, get(rd, dType, lane, i)), expected) << lane << " " << i;
          }
      }
}

TEST(SemMma, DestinationMayBeASource) {
  std::mt19937 rng(23);
  MmaForm form;
  Regs a, b, c, d;
  for (Regs *regs : {&a, &b})
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned lane = 0; lane < 32; ++lane)
        regs->at[r][lane] = 0x3c003c00 + (rng() & 0x00ff00ff);
  mma(form, a.at, b.at, c.at, d.at);
  mma(form, a.at, b.at, c.at, a.at); // d = a's registers
  for (unsigned r = 0; r < 4; ++r)
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(a.at[r][lane], d.at[r][lane]);
}

TEST(SemMma, F64Rounds) {
  MmaForm form{8, 8, 4, Type::f64, Type::f64, Type::f64, Type::f64};
  Regs a, b, c, d;
  a.rows[0][0] = toBits(Type::f64, 1); // row 0, k 0
  b.rows[0][0] = std::bit_cast<uint64_t>(0x1p-60);
  c.rows[0][0] = toBits(Type::f64, 1);
  for (auto [round, want] :
       {std::pair{Round::nearest, 1.0}, {Round::zero, 1.0}, {Round::down, 1.0}, {Round::up, 1 + 0x1p-52}}) {
    form.round = round;
    mma(form, a.at, b.at, c.at, d.at);
    EXPECT_EQ(toValue(Type::f64, d.rows[0][0]), want);
  }
}

TEST(SemMma, IntegersSaturateOrWrap) {
  MmaForm form{8, 8, 16, Type::u8, Type::u8, Type::s32, Type::s32};
  Regs a, b, c, d;
  for (unsigned lane = 0; lane < 32; ++lane) {
    a.at[0][lane] = b.at[0][lane] = 0x01010101;
    c.at[0][lane] = 0x7ffffffc;
  }
  mma(form, a.at, b.at, c.at, d.at);
  EXPECT_EQ(d.at[0][5], 0x8000000cu);
  form.satfinite = true;
  mma(form, a.at, b.at, c.at, d.at);
  EXPECT_EQ(d.at[0][5], 0x7fffffffu);
}

TEST(SemMma, WrongFormsAreRefused) {
  EXPECT_FALSE(isMma({16, 8, 4, Type::f16, Type::f16, Type::f32, Type::f32}));
  EXPECT_FALSE(isMma({16, 8, 16, Type::f16, Type::f16, Type::f16, Type::f32}));
  EXPECT_FALSE(isMma({16, 8, 16, Type::bf16, Type::bf16, Type::f16, Type::f16}));
  EXPECT_FALSE(isMma({16, 8, 16, Type::f16, Type::bf16, Type::f32, Type::f32}));
  EXPECT_FALSE(isMma({16, 8, 16, Type::f16, Type::f16, Type::f32, Type::f32, Order::col}));
  EXPECT_FALSE(isMma({8, 8, 4, Type::f16, Type::f16, Type::f32, Type::f16}));
  EXPECT_FALSE(isMma({8, 8, 32, Type::s8, Type::s8, Type::s32, Type::s32}));
}

// Load, multiply, store: the whole way, since fragments are opaque.
TEST(SemMma, WmmaAgainstATripleLoop) {
  struct WmmaRow {
    std::vector<Type> factors, accumulators;
    std::vector<std::array<unsigned, 3>> shapes;
    bool anyLayout;
  };
  const std::vector<std::array<unsigned, 3>> sixteen = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}};
  const WmmaRow table[] = {
      {{Type::f16}, {Type::f16, Type::f32}, sixteen, true}, {{Type::bf16}, {Type::f32}, sixteen, true},
      {{Type::s8, Type::u8}, {Type::s32}, sixteen, true},   {{Type::tf32}, {Type::f32}, {{16, 16, 8}}, true},
      {{Type::f64}, {Type::f64}, {{8, 8, 4}}, true},        {{Type::s4, Type::u4}, {Type::s32}, {{8, 8, 32}}, false},
      {{Type::b1}, {Type::s32}, {{8, 8, 128}}, false}};
  std::mt19937 rng(24);
  for (const WmmaRow &row : table)
    for (Type type : row.factors)
      for (Type cType : row.accumulators)
        for (Type dType : row.accumulators)
          for (auto [m, n, k] : row.shapes)
            for (unsigned layouts = 0; layouts < 16; ++layouts) {
              auto order = [&](unsigned bit) { return layouts >> bit & 1 ? Order::col : Order::row; };
              MmaForm form{m, n, k, type, type, cType, dType, order(0), order(1)};
              if (!row.anyLayout && (layouts & 3) != 2) {
                ASSERT_FALSE(isWmma(form));
                continue;
              }
              ASSERT_TRUE(isWmma(form));
              Matrix a = randomMatrix(rng, m, k, type), b = randomMatrix(rng, k, n, type),
                     c = randomMatrix(rng, m, n, cType), want = product(form, a, b, c);
              Regs ra, rb, rc, rd;
              auto load = [&](Role role, Type elem, Order order, const Matrix &from, Regs &regs) {
                WmmaLines lines = wmmaLines(form, role, order);
                unsigned length = wmmaDefaultStride(form, role, order), width = widthOf(elem);
                ASSERT_EQ(lines.bytes, length * width / 8);
                std::vector<std::byte> memory(lines.count * (lines.bytes + 32));
                std::vector<const std::byte *> pointers;
                for (unsigned line = 0; line < lines.count; ++line) {
                  std::byte *start = &memory[line * (lines.bytes + 32)];
                  pointers.push_back(start);
                  for (unsigned i = 0; i < length; ++i) {
                    uint64_t bits = toBits(elem, order == Order::row ? from[line][i] : from[i][line]);
                    for (unsigned bit = 0; bit < width; ++bit)
                      start[(i * width + bit) / 8] |= std::byte((bits >> bit & 1) << (i * width + bit) % 8);
                  }
                }
                wmmaLoad(form, role, order, pointers.data(), regs.at);
              };
              load(Role::a, type, form.aOrder, a, ra);
              load(Role::b, type, form.bOrder, b, rb);
              load(Role::c, cType, order(2), c, rc);
              wmma(form, ra.at, rb.at, rc.at, rd.at);
              Order out = order(3);
              WmmaLines lines = wmmaLines(form, Role::d, out);
              std::vector<std::byte> memory(lines.count * lines.bytes);
              std::vector<std::byte *> pointers;
              for (unsigned line = 0; line < lines.count; ++line)
                pointers.push_back(&memory[line * lines.bytes]);
              wmmaStore(form, out, rd.at, pointers.data());
              unsigned bytes = widthOf(dType) / 8;
              for (unsigned i = 0; i < m; ++i)
                for (unsigned j = 0; j < n; ++j) {
                  uint64_t bits = 0;
                  std::memcpy(&bits, &memory[(out == Order::row ? i * n + j : j * m + i) * bytes], bytes);
                  ASSERT_EQ(toValue(dType, bits), want[i][j]) << int(type) << " " << m << "x" << n << " " << layouts;
                }
            }
}

// The manual's table of fragment sizes (9.7.14.4.1).
TEST(SemMma, WmmaRegisters) {
  auto count = [](unsigned m, unsigned n, unsigned k, Type type, Type acc, Role role) {
    return wmmaRegs({m, n, k, type, type, acc, acc}, role);
  };
  EXPECT_EQ(count(16, 16, 16, Type::f16, Type::f16, Role::a), 8u);
  EXPECT_EQ(count(8, 32, 16, Type::f16, Type::f16, Role::a), 8u);
  EXPECT_EQ(count(16, 16, 16, Type::f16, Type::f16, Role::d), 4u);
  EXPECT_EQ(count(16, 16, 16, Type::f16, Type::f32, Role::c), 8u);
  EXPECT_EQ(count(8, 32, 16, Type::bf16, Type::f32, Role::a), 2u);
  EXPECT_EQ(count(8, 32, 16, Type::bf16, Type::f32, Role::b), 8u);
  EXPECT_EQ(count(16, 16, 16, Type::s8, Type::s32, Role::a), 2u);
  EXPECT_EQ(count(32, 8, 16, Type::u8, Type::s32, Role::b), 1u);
  EXPECT_EQ(count(16, 16, 8, Type::tf32, Type::f32, Role::b), 4u);
  EXPECT_EQ(count(8, 8, 4, Type::f64, Type::f64, Role::a), 1u);
  EXPECT_EQ(count(8, 8, 32, Type::s4, Type::s32, Role::a), 1u);
  EXPECT_EQ(count(8, 8, 128, Type::b1, Type::s32, Role::d), 2u);
}

// Fragments of f16 have room for two copies of the matrix; no register stays unset.
TEST(SemMma, WmmaFillsAllRegisters) {
  MmaForm form{16, 16, 16};
  std::vector<uint16_t> ones(16, 0x3c00);
  std::vector<const std::byte *> lines(16, reinterpret_cast<const std::byte *>(ones.data()));
  Regs regs;
  wmmaLoad(form, Role::b, Order::row, lines.data(), regs.at);
  for (unsigned r = 0; r < 8; ++r)
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(regs.at[r][lane], 0x3c003c00u);
}
