// The fragment maps of the matrix instructions: each element has one holder, and a product whose fragments are filled
// by the maps comes out right on the emulator, whose own maps are written from the manual and share nothing with these.
#include "gemmc/Layout/MatrixInstruction.h"
#include "gemmc/Emu/Mma.h"
#include <bit>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace gemmc;
namespace sem = gemmc::emu::sem;

namespace {
constexpr unsigned lanes = 32;

struct Named {
  MatrixInstruction instruction;
  std::string name() const {
    return "m" + std::to_string(instruction.m) + "n" + std::to_string(instruction.n) + "k" +
           std::to_string(instruction.k) + "_" + nameOf(instruction.type).str() + "_" +
           nameOf(instruction.accumulator).str();
  }
};
std::vector<Named> allInstructions() {
  std::vector<Named> list;
  for (const MatrixInstruction &instruction : matrixInstructions())
    list.push_back({instruction});
  return list;
}
void PrintTo(const Named &named, std::ostream *os) { *os << named.name(); }

class Instructions : public testing::TestWithParam<Named> {};

TEST_P(Instructions, EachElementHasOneHolder) {
  const MatrixInstruction &row = GetParam().instruction;
  struct Extent {
    MatrixRole role;
    int64_t lines, depth, copies; ///< copies: m8n8k4 of f16 gives rows to two quads each.
  };
  int64_t copies = row.isQuad() ? 2 : 1;
  for (const Extent &extent :
       {Extent{MatrixRole::a, row.rows(), row.k, copies}, Extent{MatrixRole::b, row.columns(), row.k, copies},
        Extent{MatrixRole::accumulator, row.rows(), row.columns(), 1}}) {
    FragmentMap map = fragmentMap(row, extent.role);
    std::map<std::pair<int64_t, int64_t>, int64_t> holders;
    for (unsigned lane = 0; lane < lanes; ++lane)
      for (unsigned i = 0; i < map.elements(); ++i)
        ++holders[{map.lineOf(lane, i), map.depthOf(lane, i)}];
    EXPECT_EQ(int64_t(holders.size()), extent.lines * extent.depth);
    for (const auto &[place, count] : holders) {
      EXPECT_EQ(count, extent.copies) << place.first << ", " << place.second;
      EXPECT_TRUE(place.first >= 0 && place.first < extent.lines);
      EXPECT_TRUE(place.second >= 0 && place.second < extent.depth);
    }
  }
}

ptx::Type typeOf(Elem type) {
  switch (type) {
  case Elem::f16:
    return ptx::Type::f16;
  case Elem::bf16:
    return ptx::Type::bf16;
  case Elem::f32:
    return ptx::Type::f32;
  case Elem::tf32:
    return ptx::Type::tf32;
  case Elem::f64:
    return ptx::Type::f64;
  case Elem::e4m3:
    return ptx::Type::e4m3;
  case Elem::e5m2:
    return ptx::Type::e5m2;
  case Elem::s8:
    return ptx::Type::s8;
  case Elem::u8:
    return ptx::Type::u8;
  case Elem::s4:
    return ptx::Type::s4;
  case Elem::u4:
    return ptx::Type::u4;
  case Elem::b1:
    return ptx::Type::b1;
  default:
    return ptx::Type::s32;
  }
}

/// Bits of a small number that is not negative.
uint64_t bitsFor(Elem type, int value) {
  switch (type) {
  case Elem::f16: // 0 to 3, exactly
    return value == 0 ? 0 : value == 1 ? 0x3c00 : value == 2 ? 0x4000 : 0x4200;
  case Elem::bf16:
    return std::bit_cast<uint32_t>(float(value)) >> 16;
  case Elem::f32:
  case Elem::tf32:
    return std::bit_cast<uint32_t>(float(value));
  case Elem::e4m3: // 0, 1, 2, 3
    return value == 0 ? 0 : value == 1 ? 0x38 : value == 2 ? 0x40 : 0x44;
  case Elem::e5m2:
    return value == 0 ? 0 : value == 1 ? 0x3c : value == 2 ? 0x40 : 0x42;
  case Elem::f64:
    return std::bit_cast<uint64_t>(double(value));
  default:
    return uint64_t(value);
  }
}
double valueOf(Elem type, uint64_t bits) {
  switch (type) {
  case Elem::f16: // of whole numbers below 2048
    return bits == 0 ? 0 : std::ldexp(1024 + (bits & 1023), int(bits >> 10) - 25);
  case Elem::f32:
    return std::bit_cast<float>(uint32_t(bits));
  case Elem::f64:
    return std::bit_cast<double>(bits);
  default:
    return double(int32_t(bits));
  }
}

/// A warp's registers, 64 bits each so that they serve all types.
struct Regs {
  alignas(64) uint64_t rows[64][lanes] = {};
  uint32_t *at[64];
  Regs() {
    for (unsigned i = 0; i < 64; ++i)
      at[i] = reinterpret_cast<uint32_t *>(rows[i]);
  }
  void put(Elem type, unsigned perRegister, unsigned lane, unsigned i, uint64_t bits) {
    if (bitsOf(type) == 64)
      rows[i][lane] = bits;
    else
      at[i / perRegister][lane] |= uint32_t(bits) << i % perRegister * (32 / perRegister);
  }
  uint64_t get(Elem type, unsigned perRegister, unsigned lane, unsigned i) const {
    if (bitsOf(type) == 64)
      return rows[i][lane];
    uint32_t word = at[i / perRegister][lane] >> i % perRegister * (32 / perRegister);
    return perRegister == 1 ? word : word & ((1u << 32 / perRegister) - 1);
  }
};

TEST_P(Instructions, ProductOnTheEmulator) {
  const MatrixInstruction &row = GetParam().instruction;
  sem::MmaForm form;
  form.m = row.m, form.n = row.n, form.k = row.k;
  form.a = form.b = typeOf(row.type);
  form.c = form.d = typeOf(row.accumulator);
  ASSERT_TRUE(sem::isMma(form));
  std::mt19937 random(7);
  std::vector<std::vector<int>> a(row.rows(), std::vector<int>(row.k)), b(row.columns(), std::vector<int>(row.k));
  for (auto *matrix : {&a, &b})
    for (auto &line : *matrix)
      for (int &x : line)
        x = random() % (row.type == Elem::b1 ? 2 : 4);
  FragmentMap mapA = fragmentMap(row, MatrixRole::a), mapB = fragmentMap(row, MatrixRole::b),
              mapC = fragmentMap(row, MatrixRole::accumulator);
  EXPECT_EQ(mapA.registers.size(), sem::mmaRegs(form, sem::Role::a));
  EXPECT_EQ(mapB.registers.size(), sem::mmaRegs(form, sem::Role::b));
  EXPECT_EQ(mapC.registers.size(), sem::mmaRegs(form, sem::Role::d));
  Regs regsA, regsB, regsD;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned i = 0; i < mapA.elements(); ++i)
      regsA.put(row.type, mapA.perRegister, lane, i, bitsFor(row.type, a[mapA.lineOf(lane, i)][mapA.depthOf(lane, i)]));
    for (unsigned i = 0; i < mapB.elements(); ++i)
      regsB.put(row.type, mapB.perRegister, lane, i, bitsFor(row.type, b[mapB.lineOf(lane, i)][mapB.depthOf(lane, i)]));
  }
  sem::mma(form, regsA.at, regsB.at, regsD.at, regsD.at);
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < mapC.elements(); ++i) {
      int64_t line = mapC.lineOf(lane, i), column = mapC.depthOf(lane, i);
      double sum = 0;
      for (int64_t k = 0; k < row.k; ++k)
        sum += a[line][k] * b[column][k];
      EXPECT_EQ(valueOf(row.accumulator, regsD.get(row.accumulator, mapC.perRegister, lane, i)), sum)
          << line << ", " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Instructions, testing::ValuesIn(allInstructions()),
                         [](const auto &info) { return info.param.name(); });

// PTX ISA 9.7.14.5.14, the table of shapes and types: how many there are of each.
TEST(MatrixInstructions, ShapesOfTheManual) {
  std::map<std::string, int> count;
  for (const MatrixInstruction &row : matrixInstructions()) {
    ++count[(nameOf(row.type) + " " + nameOf(row.accumulator)).str()];
    EXPECT_EQ(findInstruction(matrixInstructions(), row.m, row.n, row.k, row.type, row.accumulator), &row);
  }
  std::map<std::string, int> manual = {{"f16 f32", 3}, {"f16 f16", 3},  {"bf16 f32", 2}, {"tf32 f32", 2},
                                       {"f64 f64", 4}, {"e4m3 f32", 2}, {"e5m2 f32", 2}, {"s8 s32", 3},
                                       {"u8 s32", 3},  {"s4 s32", 3},   {"u4 s32", 3},   {"b1 s32", 3}};
  EXPECT_EQ(count, manual);
  EXPECT_EQ(findInstruction(matrixInstructions(), 16, 8, 16, Elem::tf32, Elem::f32), nullptr);
}

// 9.7.14.5.15: ldmatrix hands out 32-bit words of rows; only with elements of 16 bits it transposes.
TEST(MatrixInstructions, Ldmatrix) {
  auto fits = [](int64_t m, int64_t k, Elem type, Elem sum, bool kMajor) {
    return fitsLdmatrix(*findInstruction(matrixInstructions(), m, 8, k, type, sum), kMajor);
  };
  EXPECT_TRUE(fits(16, 16, Elem::f16, Elem::f32, true));
  EXPECT_TRUE(fits(16, 16, Elem::f16, Elem::f32, false));
  EXPECT_TRUE(fits(16, 8, Elem::tf32, Elem::f32, true));
  EXPECT_FALSE(fits(16, 8, Elem::tf32, Elem::f32, false));
  EXPECT_FALSE(fits(16, 8, Elem::f64, Elem::f64, true));
  EXPECT_FALSE(fits(8, 4, Elem::f16, Elem::f32, true));
}
} // namespace
