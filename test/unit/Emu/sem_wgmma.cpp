// wgmma: operands placed in shared memory by the manual's canonical layouts, products against a plain triple loop.
#include "gemmc/Emu/Numerics.h"
#include "gemmc/Emu/Wgmma.h"
#include "gtest/gtest.h"
#include <cstring>
#include <random>

using namespace gemmc::emu::sem;
using gemmc::ptx::Type;

namespace {

unsigned operandWidth(Type type) {
  return type == Type::tf32 ? 32 : type == Type::f16 || type == Type::bf16 ? 16 : type == Type::b1 ? 1 : 8;
}

uint32_t operandBits(Type type, int value) {
  const Format *format = formatOf(type);
  return format ? encode(*format, value) : static_cast<uint32_t>(value);
}

/// The table "canonical layouts": a shape and a stride for each of two nested dimensions, in elements, before
/// swizzling.
/// ((s0, s1, s2), (t0, t1)) : ((d0, d1, d2), (e0, e1)) maps (x, y) to the digits of x and y in those bases times
/// strides.
struct Canonical {
  unsigned xShape[2], xStride[3], yShape[1], yStride[2]; ///< The last digit of each is open-ended.
  unsigned at(unsigned x, unsigned y) const {
    unsigned offset = x % xShape[0] * xStride[0];
    x /= xShape[0];
    offset += x % xShape[1] * xStride[1] + x / xShape[1] * xStride[2];
    return offset + y % yShape[0] * yStride[0] + y / yShape[0] * yStride[1];
  }
};

struct Placement {
  bool mnMajor;
  unsigned mode;     ///< Descriptor encoding: 0 none, 1 128B, 2 64B, 3 32B.
  unsigned lbo, sbo; ///< Bytes.
  uint32_t start;
};

Canonical canonical(const Placement &p, unsigned bits) {
  unsigned T = 128 / bits, w = p.mode == 0 ? 1 : p.mode == 1 ? 8 : p.mode == 2 ? 4 : 2;
  unsigned LBO = p.lbo * 8 / bits, SBO = p.sbo * 8 / bits;
  if (p.mnMajor && p.mode == 0) // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
    return {{T, 1}, {1, T, SBO}, {8}, {T, LBO}};
  if (p.mnMajor) // ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO))
    return {{T, w}, {1, T, LBO}, {8}, {w * T, SBO}};
  if (p.mode == 0) // ((8,m),(T,2k)):((1T,SBO),(1,LBO))
    return {{8, ~0u}, {T, SBO, 0}, {T}, {1, LBO}};
  return {{8, ~0u}, {w * T, SBO, 0}, {T}, {1, T}}; // ((8,m),(T,2k)):((wT,SBO),(1,T))
}

/// Swizzle<B, 4, 3> on byte addresses: B bits from bit 7 are added without carry to those from bit 4.
uint32_t swizzle(unsigned mode, uint32_t address) {
  unsigned B = mode == 0 ? 0 : mode == 1 ? 3 : mode == 2 ? 2 : 1;
  for (unsigned bit = 0; bit < B; ++bit)
    if (address & 1u << (7 + bit))
      address ^= 1u << (4 + bit);
  return address;
}

uint64_t descriptorOf(const Placement &p) {
  auto field = [](uint32_t x) { return uint64_t((x & 0x3ffff) >> 4); };
  return field(p.start) | field(p.lbo) << 16 | field(p.sbo) << 32 | uint64_t(p.mode) << 62;
}

using Matrix = std::vector<std::vector<int>>; // [line][k]

void place(std::vector<std::byte> &shared, const Placement &p, Type type, const Matrix &lines) {
  unsigned bits = operandWidth(type);
  Canonical layout = canonical(p, bits);
  for (unsigned line = 0; line < lines.size(); ++line)
    for (unsigned k = 0; k < lines[line].size(); ++k) {
      unsigned element = layout.at(line, k);
      uint32_t address = swizzle(p.mode, p.start + element * bits / 8), value = operandBits(type, lines[line][k]);
      ASSERT_LT(address + 4, shared.size());
      if (bits == 1)
        shared[address] |= std::byte(value << element % 8);
      else
        std::memcpy(&shared[address], &value, bits / 8);
    }
}

Matrix randomLines(std::mt19937 &rng, unsigned lines, unsigned k, Type type) {
  Matrix matrix(lines, std::vector<int>(k));
  for (auto &line : matrix)
    for (int &x : line)
      x = type == Type::b1   ? rng() % 2
          : type == Type::u8 ? rng() % 256
          : type == Type::s8 ? static_cast<int>(rng() % 256) - 128
                             : static_cast<int>(rng() % 5) - 2;
  return matrix;
}

struct Warp {
  uint32_t rows[128][32] = {};
  uint32_t *regs[128];
  Warp() {
    for (unsigned i = 0; i < 128; ++i)
      regs[i] = rows[i];
  }
};

/// Rooms apart for the groups of eight lines, so that a wrong stride does not meet the right bytes.
Placement randomPlacement(std::mt19937 &rng, bool mnMajor, unsigned mode, unsigned lines, uint32_t start) {
  unsigned w = mode == 0 ? 1 : mode == 1 ? 8 : mode == 2 ? 4 : 2, atom = 128 * w; // bytes of eight rows
  Placement p{mnMajor, mode, 0, 0, start};
  if (!mnMajor) {
    p.sbo = atom * (mode == 0 ? 2 + rng() % 2 : 1 + rng() % 2);
    p.lbo = mode == 0 ? (rng() % 2 ? 128 : p.sbo * (lines / 8)) : 16;
  } else if (mode == 0) {
    p.sbo = 128 * (1 + rng() % 2);
    p.lbo = p.sbo * (lines / 8) + 128 * (rng() % 2);
  } else {
    unsigned blocks = (lines * 2 + 16 * w - 1) / (16 * w);
    if (rng() % 2) {
      p.lbo = atom, p.sbo = atom * blocks;
    } else {
      p.sbo = atom, p.lbo = atom * 2;
    }
  }
  return p;
}

/// Column and row of element i of a lane's D, of the warpgroup's 64 rows (figures 149, 151, 153, 155).
unsigned rowOfD(unsigned warp, unsigned lane, unsigned i) { return 16 * warp + lane / 4 + (i % 4 >= 2 ? 8 : 0); }
unsigned columnOfD(unsigned lane, unsigned i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

struct Types {
  Type a, b;
  std::vector<Type> d;
  unsigned k;
};
const Types table[] = {{Type::f16, Type::f16, {Type::f32, Type::f16}, 16},
                       {Type::bf16, Type::bf16, {Type::f32}, 16},
                       {Type::tf32, Type::tf32, {Type::f32}, 8},
                       {Type::e4m3, Type::e4m3, {Type::f32, Type::f16}, 32},
                       {Type::e4m3, Type::e5m2, {Type::f32}, 32},
                       {Type::e5m2, Type::e4m3, {Type::f32}, 32},
                       {Type::s8, Type::s8, {Type::s32}, 32},
                       {Type::u8, Type::s8, {Type::s32}, 32},
                       {Type::s8, Type::u8, {Type::s32}, 32},
                       {Type::b1, Type::b1, {Type::s32}, 256}};

int valueOfD(Type type, const Warp &warp, unsigned lane, unsigned i) {
  if (type == Type::s32)
    return static_cast<int32_t>(warp.rows[i][lane]);
  if (type == Type::f32)
    return static_cast<int>(std::bit_cast<float>(warp.rows[i][lane]));
  return static_cast<int>(f16ToF32(static_cast<uint16_t>(warp.rows[i / 2][lane] >> i % 2 * 16)));
}
void setD(Type type, Warp &warp, unsigned lane, unsigned i, int value) {
  if (type == Type::f16)
    warp.rows[i / 2][lane] |= uint32_t(f32ToF16(static_cast<float>(value))) << i % 2 * 16;
  else
    warp.rows[i][lane] = type == Type::s32 ? static_cast<uint32_t>(value) : std::bit_cast<uint32_t>(float(value));
}

/// Register r and place in it of element (row, k) of a warp's A.
void setA(Type type, Warp &warp, unsigned row, unsigned k, int value) {
  unsigned bits = operandWidth(type), e = 32 / bits; // e elements a register, 4e columns in a block of eight rows
  unsigned reg = row / 8 % 2 + 2 * (k / (4 * e)), lane = row % 8 * 4 + k % (4 * e) / e;
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  warp.rows[reg][lane] |= (operandBits(type, value) & mask) << k % e * bits;
}

void runCase(std::mt19937 &rng, const WgmmaForm &form, unsigned modeA, unsigned modeB, bool aInRegisters,
             bool accumulate) {
  SCOPED_TRACE("types " + std::to_string(int(form.a)) + " " + std::to_string(int(form.b)) + " n " +
               std::to_string(form.n) + " modes " + std::to_string(modeA) + " " + std::to_string(modeB) + " trans " +
               std::to_string(form.transA) + std::to_string(form.transB));
  ASSERT_TRUE(isWgmma(form));
  Matrix a = randomLines(rng, 64, form.k, form.a), b = randomLines(rng, form.n, form.k, form.b);
  std::vector<std::byte> shared(256 * 1024);
  Placement pa = randomPlacement(rng, form.transA, modeA, 64, 1024),
            pb = randomPlacement(rng, form.transB, modeB, form.n, 128 * 1024);
  place(shared, pa, form.a, a);
  place(shared, pb, form.b, b);
  WgmmaDescriptor da, db;
  ASSERT_FALSE(decodeDescriptor(descriptorOf(pa), da));
  ASSERT_FALSE(decodeDescriptor(descriptorOf(pb), db));
  WgmmaOperand operandB;
  ASSERT_FALSE(gatherShared(form, true, db, 0, form.n, shared, operandB));
  int signs = (form.negateA ? -1 : 1) * (form.negateB ? -1 : 1);
  for (unsigned w = 0; w < 4; ++w) {
    WgmmaOperand operandA;
    Warp d, regsA;
    if (aInRegisters) {
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned k = 0; k < form.k; ++k)
          setA(form.a, regsA, row, k, a[16 * w + row][k]);
      gatherRegisters(form, regsA.regs, operandA);
    } else {
      ASSERT_FALSE(gatherShared(form, false, da, 16 * w, 16, shared, operandA));
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < form.n / 2; ++i)
        setD(form.d, d, lane, i, int(lane + i) % 7 - 3);
    wgmma(form, operandA, operandB, accumulate, d.regs);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < form.n / 2; ++i) {
        unsigned row = rowOfD(w, lane, i), column = columnOfD(lane, i);
        int want = 0;
        for (unsigned k = 0; k < form.k; ++k)
          want += form.a == Type::b1 ? a[row][k] & b[column][k] : a[row][k] * b[column][k];
        want = signs * want + (accumulate ? int(lane + i) % 7 - 3 : 0);
        ASSERT_EQ(valueOfD(form.d, d, lane, i), want) << "row " << row << " column " << column;
      }
  }
}

} // namespace

TEST(SemWgmma, TypesLayoutsAndSwizzles) {
  std::mt19937 rng(31);
  for (const Types &row : table)
    for (Type d : row.d)
      for (unsigned modeA = 0; modeA < 4; ++modeA)
        for (unsigned modeB = 0; modeB < 4; ++modeB)
          for (unsigned trans = 0; trans < (operandWidth(row.a) == 16 ? 4 : 1); ++trans) {
            WgmmaForm form{16u << rng() % 3, row.k, row.a, row.b, d};
            form.transA = trans & 1;
            form.transB = trans & 2;
            if (formatOf(row.a)) {
              form.negateA = rng() % 3 == 0;
              form.negateB = rng() % 3 == 0;
            }
            ASSERT_NO_FATAL_FAILURE(runCase(rng, form, modeA, modeB, false, rng() % 2));
            if (!form.transA) {
              ASSERT_NO_FATAL_FAILURE(runCase(rng, form, modeA, modeB, true, rng() % 2));
            }
          }
}

TEST(SemWgmma, EveryN) {
  std::mt19937 rng(32);
  for (unsigned n = 8; n <= 256; n += 8) {
    ASSERT_NO_FATAL_FAILURE(runCase(rng, {n, 16, Type::f16, Type::f16, Type::f32}, 1, 1, false, true));
    WgmmaForm transposed{n, 16, Type::bf16, Type::bf16, Type::f32};
    transposed.transB = true;
    ASSERT_NO_FATAL_FAILURE(runCase(rng, transposed, 1, 0, false, true));
    WgmmaForm integers{n, 32, Type::s8, Type::u8, Type::s32};
    EXPECT_EQ(isWgmma(integers), n % 16 == 0 || n == 8 || n == 24) << n;
    if (isWgmma(integers)) {
      ASSERT_NO_FATAL_FAILURE(runCase(rng, integers, 1, 2, true, true));
    }
  }
}

// Steps along K inside of a 128-byte atom: the start address moves by 32 bytes, the pattern stays.
TEST(SemWgmma, AdvanceInsideTheAtom) {
  std::mt19937 rng(33);
  Matrix lines = randomLines(rng, 16, 64, Type::f16);
  std::vector<std::byte> shared(16 * 1024);
  // A TMA box of 64 f16 a row, 128-byte swizzle: row r of 128 bytes, chunk c at c ^ (r % 8).
  for (unsigned r = 0; r < 16; ++r)
    for (unsigned k = 0; k < 64; ++k) {
      uint16_t bits = f32ToF16(float(lines[r][k]));
      std::memcpy(&shared[2048 + r * 128 + ((k / 8) ^ (r % 8)) * 16 + k % 8 * 2], &bits, 2);
    }
  WgmmaForm form{16, 16, Type::f16, Type::f16, Type::f32};
  for (unsigned step = 0; step < 4; ++step) {
    WgmmaDescriptor descriptor;
    ASSERT_FALSE(decodeDescriptor(descriptorOf({false, 1, 16, 1024, 2048 + 32 * step}), descriptor));
    WgmmaOperand operand;
    ASSERT_FALSE(gatherShared(form, true, descriptor, 0, 16, shared, operand));
    for (unsigned r = 0; r < 16; ++r)
      for (unsigned k = 0; k < 16; ++k)
        ASSERT_EQ(operand.factors.values[r * 16 + k], lines[r][16 * step + k]);
    WgmmaExtent extent = operandExtent(form, true, descriptor, 0, 16);
    EXPECT_GE(extent.begin, 2048u);
    EXPECT_LE(extent.end, 4096u);
  }
}

// The manual's worked examples (figures 166 to 170): encodings of LBO and SBO, and elements of the exact layouts.
TEST(SemWgmma, ManualExamples) {
  auto at = [](unsigned mode, bool mnMajor, unsigned bits, unsigned lbo, unsigned sbo, unsigned line, unsigned k) {
    WgmmaDescriptor d;
    EXPECT_FALSE(decodeDescriptor(uint64_t(lbo) << 16 | uint64_t(sbo) << 32 | uint64_t(mode) << 62, d));
    return elementAddress(d, mnMajor, bits, line, k) * 8 / bits; // address 0 upwards: in elements
  };
  // K-major, none, tf32: ((8,2),(4,4)):((4,32),(1,64)); LBO 16, SBO 8
  EXPECT_EQ(at(0, false, 32, 16, 8, 9, 6), 4 + 32 + 2 + 64u);
  // K-major, 32B, tf32: ((8,2),(4,4)):((8,64),(1,4)); SBO 16; row 1 has address bits 7 clear
  EXPECT_EQ(at(3, false, 32, 1, 16, 9, 6), 8 + 64 + 2 + 4u);
  EXPECT_EQ(at(3, false, 32, 1, 16, 4, 0), 32 + 4u) << "row 4 is at byte 128: chunks 0 and 1 change places";
  // MN-major, none, bf16: ((8,1,2),(8,2)):((1,8,64),(8,128)); LBO 16, SBO 8
  EXPECT_EQ(at(0, true, 16, 16, 8, 11, 9), 3 + 64 + 8 + 128u);
  // MN-major, 32B, bf16: ((8,2,2),(8,2)):((1,8,128),(16,256)); LBO 16, SBO 32
  EXPECT_EQ(at(3, true, 16, 16, 32, 27, 9), 3 + 8 + 128 + 16 + 256u);
  // MN-major, 64B, bf16: ((8,4,2),(8,2)):((1,8,256),(32,512)); LBO 32, SBO 64; k 1 is at byte 64
  EXPECT_EQ(at(2, true, 16, 32, 64, 43, 9), 3 + 8 + 256 + 32 + 512u);
}

TEST(SemWgmma, Rules) {
  WgmmaDescriptor d;
  EXPECT_STREQ(decodeDescriptor(uint64_t(1) << 14, d).rule, "WG-12");
  EXPECT_STREQ(decodeDescriptor(uint64_t(1) << 48, d).rule, "WG-12");
  EXPECT_STREQ(decodeDescriptor(uint64_t(1) << 49 | uint64_t(1) << 62, d).rule, "unmodelled");
  ASSERT_FALSE(decodeDescriptor(0x3fffull, d));
  std::vector<std::byte> shared(4096);
  WgmmaOperand operand;
  WgmmaForm form;
  Broken broken = gatherShared(form, true, d, 0, 8, shared, operand);
  ASSERT_TRUE(broken);
  EXPECT_STREQ(broken.rule, "WG-10");
  EXPECT_EQ(broken.text, "element (0, 0) of B lies at 0x3fff0, beyond the 4096 bytes of shared memory");
}

TEST(SemWgmma, WrongFormsAreRefused) {
  WgmmaForm form;
  EXPECT_TRUE(isWgmma(form));
  for (unsigned n : {0, 4, 12, 264})
    EXPECT_FALSE(isWgmma({n, 16, Type::f16, Type::f16, Type::f32}));
  EXPECT_FALSE(isWgmma({8, 16, Type::bf16, Type::bf16, Type::f16}));
  EXPECT_FALSE(isWgmma({8, 8, Type::f16, Type::f16, Type::f32}));
  form = {8, 8, Type::tf32, Type::tf32, Type::f32};
  form.transB = true;
  EXPECT_FALSE(isWgmma(form));
}
