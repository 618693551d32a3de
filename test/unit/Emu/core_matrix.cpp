// Matrix instructions from PTX: operands, registers and memory reach the right function. The arithmetic itself has
// tests of its own; here the fragments follow the manual's pictures and the values are small integers, exact in any
// order.
#include "core_harness.h"
#include <bit>
#include <numeric>

namespace gemmc::emu::test {
namespace {
std::string regList(const std::string &stem, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", %" : "%") + stem + std::to_string(i);
  return text + "}";
}
uint16_t half(int value) { // small integers
  if (!value)
    return 0;
  int size = std::abs(value), e = 31 - __builtin_clz(size);
  return (value < 0 ? 0x8000 : 0) | (e + 15) << 10 | (size << (10 - e) & 0x3ff);
}
float f32(uint32_t bits) { return std::bit_cast<float>(bits); }
int entryA(unsigned row, unsigned k) { return int(row * 3 + k * 5) % 7 - 3; }
int entryB(unsigned k, unsigned col) { return int(k * 2 + col * 3) % 5 - 2; }
int product(unsigned row, unsigned col, unsigned depth) {
  int sum = 0;
  for (unsigned k = 0; k < depth; ++k)
    sum += entryA(row, k) * entryB(k, col);
  return sum;
}
const std::string matrixRegs =
    ".reg .b32 %r, %a, %b, %s, %i, %x<8>, %y<4>;\n.reg .f32 %d<8>;\n.reg .b64 %w, %in;\n.reg .pred %p;\n"
    ".shared .align 1024 .b8 s[16384];\n";
/// Copies `words` words from `in` to shared memory, with one warp.
std::string fill(unsigned words) {
  return R"(
mov.u32 %s, s;
mov.u32 %i, %t;
filling:
shl.b32 %a, %i, 2;
cvt.u64.u32 %w, %a;
add.u64 %w, %w, %in;
ld.global.b32 %r, [%w];
add.u32 %a, %a, %s;
st.shared.b32 [%a], %r;
add.u32 %i, %i, %t2;
setp.lt.u32 %p, %i, )" +
         std::to_string(words) + R"(;
@%p bra filling;
fence.proxy.async;
bar.sync 0;
)";
}
struct MatrixTrial : Trial {
  uint64_t out = 0;
  std::vector<uint32_t> go(const std::vector<uint16_t> &input, const std::string &code, size_t outWords,
                           const std::string &more = "") {
    out = buffer(std::vector<uint32_t>(outWords));
    uint64_t in = buffer(input);
    param(out);
    param(in);
    module(".visible .entry k(.param .u64 out, .param .u64 in) {\n.reg .b64 %out;\n.reg .b32 %t, %t2;\n" + matrixRegs +
           more + "ld.param.u64 %out, [out];\nld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\nmov.u32 %t2, %ntid.x;\n" +
           fill(input.size() / 2) + code + "\nret;\n}\n");
    EXPECT_EQ(result.verdict, Verdict::clean) << text();
    return read<uint32_t>(out, outWords);
  }
};
/// Each lane stores `count` registers behind each other.
std::string storeAll(const std::string &stem, unsigned count) {
  std::string code = "mul.wide.u32 %w, %t, " + std::to_string(4 * count) + ";\nadd.u64 %w, %w, %out;\n";
  for (unsigned i = 0; i < count; ++i)
    code += "st.global.b32 [%w+" + std::to_string(4 * i) + "], %" + stem + std::to_string(i) + ";\n";
  return code;
}
std::vector<uint16_t> numbers(size_t count) {
  std::vector<uint16_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}
} // namespace

TEST(EmuMatrix, LdmatrixAndStmatrix) {
  // Four 8x8 matrices of numbers; lane l of matrix m holds elements (l / 4, 2 * (l % 4)) and the next.
  const std::string rows = "shl.b32 %a, %t, 4;\nadd.u32 %a, %a, %s;\n";
  for (bool trans : {false, true}) {
    MatrixTrial r;
    auto got = r.go(numbers(256),
                    rows + "ldmatrix.sync.aligned.m8n8.x4" + (trans ? ".trans" : "") +
                        ".shared.b16 {%x0, %x1, %x2, %x3}, [%a];\n" + storeAll("x", 4),
                    128);
    EXPECT_EQ(r.result.stats.loads.bankConflicts, 0u);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned m = 0; m < 4; ++m) {
        unsigned row = l / 4, col = 2 * (l % 4);
        unsigned first = trans ? 8 * col + row : 8 * row + col, second = trans ? first + 8 : first + 1;
        EXPECT_EQ(got[4 * l + m], (64 * m + first) | (64 * m + second) << 16);
      }
  }
  MatrixTrial r; // there and back, transposed: x.trans of each matrix
  auto got = r.go(numbers(256),
                  rows +
                      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%x0, %x1}, [%a];\n"
                      "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%a+1024], {%x0, %x1};\n"
                      "movmatrix.sync.aligned.m8n8.trans.b16 %x3, %x1;\n"
                      "mad.lo.u32 %a, %t, 4, %s;\nld.shared.b32 %x0, [%a+1024];\n"
                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x1}, [%s];\nmov.b32 %x2, 0;\n" +
                      storeAll("x", 4),
                  128);
  EXPECT_EQ(got[4 * 5], (8 * 2 + 1) | (8 * 3 + 1) << 16); // row 1 of the transposed: elements (2,1), (3,1)
  EXPECT_EQ(got[4 * 5 + 3], (64 + 8 * 2 + 1) | (64 + 8 * 3 + 1) << 16);
}

TEST(EmuMatrix, WmmaConflicts) {
  // Extra wavefronts of one access at a pitch. ncu counts the same for these shapes (docs/ladder.md, rungs 10 and 13).
  auto conflicts = [](const std::string &access) {
    MatrixTrial r;
    r.go(numbers(256), access, 1);
    return std::pair(r.result.stats.loads.bankConflicts, r.result.stats.stores.bankConflicts);
  };
  auto load = [&](const std::string &what, unsigned count, unsigned pitch) {
    return conflicts("wmma.load." + what + " " + regList("x", count) + ", [%s], " + std::to_string(pitch) + ";\n")
        .first;
  };
  auto store = [&](const std::string &shape, unsigned pitch) {
    return conflicts("wmma.store.d.sync.aligned.row." + shape + ".shared.f32 [%s], " + regList("d", 8) + ", " +
                     std::to_string(pitch) + ";\n")
        .second;
  };
  EXPECT_EQ(load("a.sync.aligned.row.m16n16k16.shared.f16", 8, 64), 28u); // four 8x8 matrices, eight rows in one bank
  EXPECT_EQ(load("a.sync.aligned.row.m16n16k16.shared.f16", 8, 72), 0u);
  EXPECT_EQ(load("a.sync.aligned.row.m16n16k8.shared.tf32", 4, 36), 0u);
  EXPECT_EQ(load("a.sync.aligned.row.m16n16k8.shared.tf32", 4, 32), 28u);
  EXPECT_EQ(load("b.sync.aligned.col.m32n8k16.shared.u8", 1, 80), 0u);
  EXPECT_EQ(load("a.sync.aligned.col.m32n8k16.shared.u8", 4, 80), 16u); // bytes across k: 16 loads of 4 lines
  EXPECT_EQ(store("m16n16k16", 72), 0u);
  EXPECT_EQ(store("m16n16k16", 64), 24u); // eight phases of four rows in the same banks
  EXPECT_EQ(store("m8n32k16", 72), 8u);   // the transpose of m32n8: rows 0, 2, 4, 6 in one access
}

TEST(EmuMatrix, LdmatrixConflictsAndMistakes) {
  MatrixTrial r;
  r.go(numbers(256), "shl.b32 %a, %t, 7;\nadd.u32 %a, %a, %s;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x0}, [%a];\n",
       1);
  EXPECT_EQ(r.result.stats.loads.bankConflicts, 7u); // eight rows, all in the same banks
  Trial bad;
  bad.param(bad.buffer(std::vector<uint32_t>(1)));
  bad.body(matrixRegs, "mov.u32 %s, s;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x0}, [%s+8];\n");
  ASSERT_FALSE(bad.result.findings.empty());
  EXPECT_EQ(bad.result.findings[0].code, "MM-2");
}

TEST(EmuMatrix, MmaF16) { // 9.7.14.5.8: fragments of m16n8k16
  MatrixTrial r;
  std::vector<uint16_t> input;
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned i = 0; i < 8; ++i)
      input.push_back(half(entryA(l / 4 + (i / 2 % 2) * 8, 2 * (l % 4) + i % 2 + i / 4 * 8)));
    for (unsigned i = 0; i < 4; ++i)
      input.push_back(half(entryB(2 * (l % 4) + i % 2 + i / 2 * 8, l / 4)));
  }
  auto got = r.go(input, R"(
mad.lo.u32 %a, %t, 24, %s;
ld.shared.v2.b32 {%x0, %x1}, [%a];
ld.shared.v2.b32 {%x2, %x3}, [%a+8];
ld.shared.v2.b32 {%y0, %y1}, [%a+16];
mov.f32 %d0, 0f3F800000;
mov.f32 %d1, %d0;
mov.f32 %d2, %d0;
mov.f32 %d3, %d0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%x0, %x1, %x2, %x3}, {%y0, %y1}, {%d0, %d1, %d2, %d3};
)" + storeAll("d", 4),
                  128);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(f32(got[4 * l + i]), 1 + product(l / 4 + i / 2 * 8, 2 * (l % 4) + i % 2, 16));
}

TEST(EmuMatrix, MmaNeedsTheWholeWarp) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.body(matrixRegs,
         "setp.lt.u32 %p, %t, 9;\n@%p mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, "
         "{%x0, %x1, %x2, %x3}, {%y0, %y1}, {%d0, %d1, %d2, %d3};\n");
  ASSERT_FALSE(r.result.findings.empty());
  EXPECT_EQ(r.result.findings[0].code, "MM-1");
}

TEST(EmuMatrix, Wmma) {
  MatrixTrial r;
  std::vector<uint16_t> input; // A row-major 16x16, then B column-major with a stride of 24
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      input.push_back(half(entryA(row, k)));
  for (unsigned col = 0; col < 16; ++col)
    for (unsigned k = 0; k < 24; ++k)
      input.push_back(half(k < 16 ? entryB(k, col) : 7));
  std::string a = regList("a_", 8), b = regList("b_", 8), c = regList("c_", 8);
  auto got = r.go(input,
                  "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + a + ", [%s];\n" +
                      "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 " + b + ", [%s+512], 24;\n" +
                      "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + c + ", [%out], 20;\n" +
                      "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 " + c + ", " + a + ", " + b + ", " + c + ";\n" +
                      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%out], " + c + ", 20;\n",
                  320, ".reg .b32 %a_<8>, %b_<8>;\n.reg .f32 %c_<8>;\n");
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned col = 0; col < 16; ++col)
      EXPECT_EQ(f32(got[20 * row + col]), product(row, col, 16));
}

namespace {
/// A 64x16 and B 16x8, both K-major without swizzle: 8x8 cores of 128 bytes, cores along K adjacent (LBO 128), groups
/// of eight rows 256 bytes apart (SBO 256).
std::vector<uint16_t> wgmmaInput() {
  std::vector<uint16_t> input((64 + 8) * 16);
  auto at = [](unsigned line, unsigned k) { return line / 8 * 128 + k / 8 * 64 + line % 8 * 8 + k % 8; };
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned k = 0; k < 16; ++k)
      input[at(row, k)] = half(entryA(row, k));
  for (unsigned col = 0; col < 8; ++col)
    for (unsigned k = 0; k < 16; ++k)
      input[1024 + at(col, k)] = half(entryB(k, col));
  return input;
}
const std::string descriptors = R"(
shr.u32 %a, %s, 4;
cvt.u64.u32 %da, %a;
or.b64 %da, %da, 0x0000001000080000;
add.u64 %db, %da, 128;
mov.f32 %d0, 0f3F800000;
mov.f32 %d1, %d0;
mov.f32 %d2, %d0;
mov.f32 %d3, %d0;
wgmma.fence.sync.aligned;
)";
const std::string wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, ";
const std::string finish = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
const std::string moreRegs = ".reg .b64 %da, %db;\n";
} // namespace

TEST(EmuMatrix, WgmmaFromSharedMemory) {
  MatrixTrial r;
  r.params.block = {128, 1, 1};
  auto got = r.go(wgmmaInput(),
                  descriptors + wgmma + "%da, %db, 1, 1, 1, 0, 0;\n" + wgmma + "%da, %db, 1, -1, 1, 0, 0;\n" + wgmma +
                      "%da, %db, 1, 1, 1, 0, 0;\n" + finish + storeAll("d", 4),
                  512, moreRegs);
  for (unsigned t = 0; t < 128; ++t)
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(f32(got[4 * t + i]), 1 + product(t / 32 * 16 + t % 32 / 4 + i / 2 * 8, 2 * (t % 4) + i % 2, 16));
}

TEST(EmuMatrix, WgmmaFromRegisters) {
  MatrixTrial r;
  r.params.block = {128, 1, 1};
  // A's fragment of each lane, by ldmatrix-like loads: row l / 4, elements 2 (l % 4).
  std::string code = R"(
shr.u32 %a, %t, 5;
shl.b32 %a, %a, 1;
and.b32 %i, %t, 31;
shr.u32 %b, %i, 2;
and.b32 %i, %i, 3;
shl.b32 %a, %a, 8;
mad.lo.u32 %a, %b, 16, %a;
mad.lo.u32 %a, %i, 4, %a;
add.u32 %a, %a, %s;
ld.shared.b32 %x0, [%a];
ld.shared.b32 %x1, [%a+256];
ld.shared.b32 %x2, [%a+128];
ld.shared.b32 %x3, [%a+384];
)";
  auto got = r.go(wgmmaInput(),
                  code + descriptors + "setp.ne.u32 %p, %t, %t;\n" + wgmma +
                      "{%x0, %x1, %x2, %x3}, %db, %p, 1, 1, 0;\n" + finish + storeAll("d", 4),
                  512, moreRegs);
  for (unsigned t = 0; t < 128; ++t) // scale-d false: the ones in D do not count
    EXPECT_EQ(f32(got[4 * t + 2]), product(t / 32 * 16 + t % 32 / 4 + 8, 2 * (t % 4), 16));
}

TEST(EmuMatrix, WgmmaWithoutAWaitIsNotThere) {
  MatrixTrial r;
  r.params.block = {128, 1, 1};
  auto got = r.go(wgmmaInput(),
                  descriptors + wgmma +
                      "%da, %db, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"
                      "wgmma.wait_group.sync.aligned 1;\n" +
                      storeAll("d", 1) + "wgmma.wait_group.sync.aligned 0;\n",
                  128, moreRegs);
  EXPECT_EQ(f32(got[0]), 1);
}

TEST(EmuMatrix, WgmmaMistakes) {
  auto code = [](const std::string &text, unsigned threads = 128) {
    Trial r;
    r.param(r.buffer(std::vector<uint32_t>(1)));
    r.params.block = {threads, 1, 1};
    r.body(matrixRegs + moreRegs, "mov.u32 %s, s;\n" + descriptors + text);
    return r.result.findings.empty() ? "clean" : r.result.findings[0].code;
  };
  EXPECT_EQ(code(wgmma + "%da, %db, 1, 1, 1, 0, 0;\n"), "WG-8");
  EXPECT_EQ(code("cvt.u64.u32 %da, %t;\n" + wgmma + "%da, %db, 1, 1, 1, 0, 0;\n" + finish), "WG-5");
  EXPECT_EQ(code("or.b64 %da, %da, 0x3fff;\n" + wgmma + "%da, %db, 1, 1, 1, 0, 0;\n" + finish), "WG-10");
  EXPECT_EQ(code(wgmma + "%da, %db, 1, 1, 1, 0, 0;\n" + finish, 64), "WG-11");
}

// Each row with its types and shapes: A and B hold one value everywhere, so that every element of D is c + K a b,
// wherever it lies.
namespace {
struct Uniform {
  const char *mnemonic;
  unsigned a, b, c; ///< Registers of the fragments; 0 for a: from shared memory.
  uint64_t aBits, bBits, cBits, dBits;
  const char *registers = ".b32";
  const char *behind = "";
};
std::string moves(const std::string &stem, unsigned count, uint64_t bits, const std::string &type) {
  std::string code;
  for (unsigned i = 0; i < count; ++i)
    code += "mov" + type + " %" + stem + std::to_string(i) + ", " + std::to_string(bits) + ";\n";
  return code;
}
std::string fragments(const Uniform &one) {
  std::string type = one.registers;
  return ".reg " + type + " %fa<8>, %fb<8>, %fc<8>;\n.reg .b64 %da, %db;\n";
}
/// The registers of D, of all lanes.
void expectUniform(Trial &r, const Uniform &one, const std::string &code) {
  bool wide = std::string(one.registers) == ".b64";
  unsigned bytes = wide ? 8 : 4, threads = r.params.block[0];
  uint64_t out = r.buffer(std::vector<uint64_t>(threads * 8));
  r.param(out);
  std::string store = "mul.wide.u32 %w, %t, " + std::to_string(bytes * one.c) + ";\nadd.u64 %w, %w, %out;\n";
  for (unsigned i = 0; i < one.c; ++i)
    store += "st.global" + std::string(one.registers) + " [%w+" + std::to_string(bytes * i) + "], %fc" +
             std::to_string(i) + ";\n";
  r.body(matrixRegs + fragments(one), code + store);
  ASSERT_EQ(r.result.verdict, Verdict::clean) << one.mnemonic << "\n" << r.text();
  for (unsigned i = 0; i < threads * one.c; ++i)
    ASSERT_EQ(wide ? r.read<uint64_t>(out, i + 1)[i] : r.read<uint32_t>(out, i + 1)[i], one.dBits)
        << one.mnemonic << " " << i;
}
constexpr uint64_t one32 = 0x3f800000, two64 = 0x4000000000000000, three64 = 0x4008000000000000;
uint64_t plusOne(unsigned product) { return std::bit_cast<uint32_t>(1.0f + product); }
uint64_t plusOne64(unsigned product) { return std::bit_cast<uint64_t>(1.0 + product); }
} // namespace

TEST(EmuMatrix, EveryMma) {
  const Uniform rows[] = {
      {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 2, 2, 8, 0x40004000, 0x42004200, one32, plusOne(24)},
      {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, 0x40004000, 0x42004200, 0x3c003c00, 0x52205220},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, 0x40004000, 0x40404040, one32, plusOne(96)},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, 0x40000000, 0x40400000, one32, plusOne(48)},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 1, 1, 2, two64, three64, 0x3ff0000000000000, plusOne64(24),
       ".b64"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", 4, 2, 4, 0xfefefefe, 0x03030303, 1, uint32_t(-191)},
      {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", 4, 2, 4, 0xfefefefe, 0x03030303, 0x80000000,
       0x80000000},
      {"mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32", 4, 2, 4, 0xeeeeeeee, 0x33333333, 1, uint32_t(-383)},
      {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 2, 4, 0xffffffff, 0x0f0f0f0f, 1, 129},
      {"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc", 2, 1, 4, 0xffffffff, 0x0f0f0f0f, 1, 65},
      {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4, 0x40404040, 0x42424242, one32, plusOne(192)},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16", 8, 8, 4, 0x40004000, 0x42004200, 0x3c003c00, 0x56105610},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", 4, 4, 8, 0x40004000, 0x40404040, one32,
       plusOne(96)},
      {"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", 4, 4, 8, 0x40000000, 0x40400000, one32, plusOne(48)},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64", 1, 1, 2, two64, three64, 0x3ff0000000000000,
       plusOne64(24), ".b64"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", 2, 2, 8, 0xfefefefe, 0x03030303, 1, uint32_t(-95)},
      {"wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32", 1, 1, 2, 0x22222222, 0x33333333, 1, 193},
      {"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", 1, 1, 2, 0xffffffff, 0, 1, 129}};
  for (const Uniform &one : rows) {
    Trial r;
    std::string type = one.registers;
    std::string c = regList("fc", one.c);
    expectUniform(r, one,
                  moves("fa", one.a, one.aBits, type) + moves("fb", one.b, one.bBits, type) +
                      moves("fc", one.c, one.cBits, type) + one.mnemonic + " " + c + ", " + regList("fa", one.a) +
                      ", " + regList("fb", one.b) + ", " + c + ";\n");
  }
}

TEST(EmuMatrix, EveryWgmma) {
  const Uniform rows[] = {
      {"m64n8k16.f32.bf16.bf16", 0, 0, 4, 0x40004000, 0x40404040, one32, plusOne(96), ".b32", ", 1, 1, 0, 0"},
      {"m64n8k16.f32.bf16.bf16", 4, 0, 4, 0x40004000, 0x40404040, one32, plusOne(96), ".b32", ", 1, 1, 0"},
      {"m64n8k16.f16.f16.f16", 0, 0, 2, 0x40004000, 0x42004200, 0x3c003c00, 0x56105610, ".b32", ", 1, 1, 0, 0"},
      {"m64n8k8.f32.tf32.tf32", 0, 0, 4, 0x40000000, 0x40400000, one32, plusOne(48), ".b32", ", 1, 1"},
      {"m64n8k8.f32.tf32.tf32", 4, 0, 4, 0x40000000, 0x40400000, one32, plusOne(48), ".b32", ", 1, 1"},
      {"m64n8k32.f32.e4m3.e5m2", 0, 0, 4, 0x40404040, 0x42424242, one32, plusOne(192), ".b32", ", 1, 1"},
      {"m64n8k32.f32.e4m3.e5m2", 4, 0, 4, 0x40404040, 0x42424242, one32, plusOne(192), ".b32", ", 1, 1"},
      {"m64n8k32.s32.s8.u8", 0, 0, 4, 0xfefefefe, 0x03030303, 1, uint32_t(-191)},
      {"m64n8k32.s32.s8.u8", 4, 0, 4, 0xfefefefe, 0x03030303, 1, uint32_t(-191)},
      {"m64n8k256.s32.b1.b1.and.popc", 0, 0, 4, 0xffffffff, 0x0f0f0f0f, 1, 129},
      {"m64n8k256.s32.b1.b1.and.popc", 4, 0, 4, 0xffffffff, 0x0f0f0f0f, 1, 129}};
  for (const Uniform &one : rows) {
    Trial r;
    r.params.block = {128, 1, 1};
    // A in the first 4 KiB of shared memory, B in the second; the descriptors walk within them.
    std::string code = "mov.u32 %s, s;\nmad.lo.u32 %a, %t, 32, %s;\nmov.b32 %x0, " + std::to_string(one.aBits) +
                       ";\nmov.b32 %x1, " + std::to_string(one.bBits) + ";\n";
    for (unsigned i = 0; i < 32; i += 4)
      code += "st.shared.b32 [%a+" + std::to_string(i) + "], %x0;\nst.shared.b32 [%a+" + std::to_string(4096 + i) +
              "], %x1;\n";
    code += "fence.proxy.async;\nbar.sync 0;\n" + descriptors.substr(0, descriptors.find("add.u64")) +
            "add.u64 %db, %da, 256;\n" + moves("fa", one.a, one.aBits, ".b32") + moves("fc", one.c, one.cBits, ".b32") +
            "wgmma.fence.sync.aligned;\n" + "wgmma.mma_async.sync.aligned." + one.mnemonic + " " +
            regList("fc", one.c) + ", " + (one.a ? regList("fa", one.a) : "%da") + ", %db, 1" + one.behind + ";\n" +
            finish;
    expectUniform(r, one, code);
  }
}

} // namespace gemmc::emu::test
