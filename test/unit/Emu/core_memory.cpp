// Loads, stores, atomics and address windows: what they do, and what is found when they are wrong.
#include "core_harness.h"

namespace gemmc::emu::test {
namespace {
/// Runs a body that must end in one finding, and returns it.
Finding onlyFinding(Trial &r, const std::string &regs, const std::string &code) {
  if (r.params.params.empty())
    r.param(r.buffer(std::vector<uint32_t>(64)));
  r.body(regs, code);
  EXPECT_EQ(r.result.verdict, Verdict::error);
  EXPECT_EQ(r.result.findings.size(), 1u) << r.text();
  return r.result.findings.empty() ? Finding() : r.result.findings[0];
}
/// Adds each thread's result, `%r`, to `out` as its own 32-bit word.
} // namespace

TEST(EmuMemory, VectorsAndWidths) {
  Trial r;
  uint64_t out = r.buffer(counting(64));
  r.param(out);
  r.params.block = {1, 1, 1};
  r.body(".reg .b32 %a, %b, %c, %d;\n.reg .b64 %x, %y;\n.reg .b16 %h;\n", R"(
ld.global.v4.b32 {%a, %b, %c, %d}, [%out+16];
st.global.v2.b32 [%out], {%d, %a};
ld.global.v2.b64 {%x, %y}, [%out+32];
st.global.b64 [%out+8], %y;
mov.b32 %a, 0x1234fedc;
st.global.b16 [%out+80], %a;
st.global.b8 [%out+84], %a;
ld.global.s16 %b, [%out+80];
ld.global.u16 %c, [%out+80];
st.global.v2.b32 [%out+88], {%b, %c};
ld.global.s8 %x, [%out+84];
st.global.b64 [%out+96], %x;
ld.global.s8 %h, [%out+84];
st.global.b16 [%out+104], %h;
)");
  auto got = r.read<uint32_t>(out, 32);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(got[0], 7u);
  EXPECT_EQ(got[1], 4u);
  EXPECT_EQ(got[2], 10u);
  EXPECT_EQ(got[3], 11u);
  EXPECT_EQ(got[20], 0x0000fedcu);
  EXPECT_EQ(got[21], 0x000000dcu);
  EXPECT_EQ(got[22], 0xfffffedcu);
  EXPECT_EQ(got[23], 0x0000fedcu);
  EXPECT_EQ(got[24], 0xffffffdcu);
  EXPECT_EQ(got[25], 0xffffffffu);
  EXPECT_EQ(got[26], 0x0000ffdcu);
}

TEST(EmuMemory, Registers128) {
  Trial r;
  uint64_t out = r.buffer(counting(16));
  r.param(out);
  r.params.block = {1, 1, 1};
  r.body(".reg .b128 %q, %s;\n.reg .b64 %x, %y;\n", R"(
ld.global.b128 %q, [%out];
mov.b128 {%x, %y}, %q;
mov.b128 %s, {%y, %x};
st.global.b128 [%out+16], %s;
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(r.read<uint32_t>(out, 8), (std::vector<uint32_t>{0, 1, 2, 3, 2, 3, 0, 1}));
}

TEST(EmuMemory, GenericAddressesReachAllWindows) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(64));
  r.param(out);
  r.body(".reg .b32 %r, %v;\n.reg .b64 %w, %g;\n.reg .pred %p, %q;\n.shared .b32 s[32];\n.local .b32 l[4];\n", R"(
mov.u64 %g, s;
cvta.shared.u64 %g, %g;
mul.wide.u32 %w, %t, 4;
add.u64 %w, %w, %g;
st.u32 [%w], %t;
ld.shared.u32 %r, [s+8];
isspacep.shared %p, %w;
isspacep.global %q, %out;
and.pred %p, %p, %q;
@!%p add.u32 %r, %r, 1000;
mov.u64 %g, l;
cvta.local.u64 %g, %g;
st.u32 [%g+4], %t;
ld.local.u32 %v, [l+4];
add.u32 %r, %r, %v;
ld.const.u32 %v, [c+4];
add.u32 %r, %r, %v;
mov.u64 %g, out;
cvta.param.u64 %g, %g;
ld.u64 %g, [%g];
setp.ne.u64 %p, %g, %out;
@%p add.u32 %r, %r, 1000;
)" + storeResult,
         ".const .align 4 .b32 c[2] = {7, 500};\n");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out, 32);
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], 2 + t + 500);
}

TEST(EmuMemory, DynamicSharedMemoryFollowsStatic) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(64));
  r.param(out);
  r.params.block = {1, 1, 1};
  r.params.dynamicShared = 256;
  r.body(".reg .b32 %a, %b;\n.shared .b8 first[100];\n", R"(
mov.u32 %a, first;
mov.u32 %b, dynamic;
st.shared.b32 [%b+252], %a;
sub.u32 %b, %b, %a;
st.global.v2.b32 [%out], {%b, %a};
)",
         ".extern .shared .align 128 .b8 dynamic[];\n");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out, 2);
  EXPECT_EQ(got[0], 128u);
  EXPECT_EQ(got[1] % 1024, 0u);
}

TEST(EmuMemory, GlobalVariablesKeepTheirValues) {
  const char *text = R"(.global .align 4 .b32 counter = 5;
.visible .entry k(.param .u64 out) {
.reg .b32 %a; .reg .b64 %out;
ld.param.u64 %out, [out];
atom.global.add.u32 %a, [counter], 1;
st.global.u32 [%out], %a;
ret;
})";
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(1));
  r.param(out);
  r.params.block = {32, 1, 1};
  r.module(text);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(r.read<uint32_t>(out, 1)[0], 36u); // the last of 32 lanes sees 5 + 31
}

TEST(EmuMemory, OutOfBoundsGlobal) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(30));
  r.param(out);
  Finding found = onlyFinding(r, ".reg .b64 %w;\n.reg .b32 %r;\n", "mov.u32 %r, %t;\n" + storeResult);
  EXPECT_EQ(found.code, "AD-3");
  EXPECT_EQ(found.thread, 30u);
  EXPECT_NE(found.message.find("120 bytes"), std::string::npos) << found.message;
  EXPECT_EQ(found.line, 20u); // the store
}

TEST(EmuMemory, StraddlingTheEnd) {
  Trial r;
  uint64_t out = r.memory.allocate(12);
  r.param(out);
  r.params.block = {1, 1, 1};
  Finding found = onlyFinding(r, ".reg .b64 %x;\n", "ld.global.b64 %x, [%out+8];\n");
  EXPECT_EQ(found.code, "AD-3");
}

TEST(EmuMemory, NullPointer) {
  Trial r;
  Finding found = onlyFinding(r, ".reg .b64 %x;\n.reg .b32 %y;\n", "mov.u64 %x, 0;\nld.global.b32 %y, [%x];\n");
  EXPECT_EQ(found.code, "AD-3");
}

TEST(EmuMemory, Misaligned) {
  Trial r;
  Finding found = onlyFinding(r, ".reg .b32 %a, %b, %c, %d;\n", "ld.global.v4.b32 {%a, %b, %c, %d}, [%out+8];\n");
  EXPECT_EQ(found.code, "AD-1");
  EXPECT_NE(found.message.find("not aligned to 16 bytes"), std::string::npos) << found.message;
}

TEST(EmuMemory, SharedOutOfBounds) {
  Trial r;
  Finding found = onlyFinding(r, ".shared .b32 s[4];\n", "st.shared.b32 [s+16], %t;\n");
  EXPECT_EQ(found.code, "AD-2");
  EXPECT_NE(found.message.find("16 bytes of shared memory"), std::string::npos) << found.message;
}

TEST(EmuMemory, SharedBelowTheWindow) {
  Trial r;
  onlyFinding(r, ".shared .b32 s[4];\n.reg .b32 %a;\n", "mov.u32 %a, 0;\nst.shared.b32 [%a], %t;\n");
}

TEST(EmuMemory, ParametersOutOfBounds) {
  Trial r;
  onlyFinding(r, ".reg .b64 %x;\n", "ld.param.u64 %x, [out+8];\n");
}

TEST(EmuMemory, Atomics) {
  struct Case {
    const char *op, *type;
    uint32_t start, operand, want; ///< After 32 lanes.
  };
  const Case cases[] = {{"add", "u32", 5, 3, 101}, {"min", "s32", 7, uint32_t(-2), uint32_t(-2)},
                        {"max", "u32", 7, 9, 9},   {"and", "b32", 0xff, 0x3c, 0x3c},
                        {"or", "b32", 1, 6, 7},    {"xor", "b32", 1, 6, 1},
                        {"exch", "b32", 1, 6, 6},  {"inc", "u32", 0, 9, 2},
                        {"dec", "u32", 3, 9, 1},   {"add", "f32", 0x3f800000, 0x3f000000, 0x41880000}};
  for (const Case &one : cases)
    for (bool red : {false, true}) {
      if (red && std::string(one.op) == "exch")
        continue;
      Trial r;
      uint64_t out = r.buffer(std::vector<uint32_t>{one.start});
      r.param(out);
      std::string operand = std::to_string(one.operand);
      r.body(".reg .b32 %o, %r;\n", "mov.b32 %o, " + operand + ";\n" + (red ? "red" : "atom") + ".global." + one.op +
                                        "." + one.type + (red ? " [%out], %o;\n" : " %r, [%out], %o;\n"));
      EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
      EXPECT_EQ(r.read<uint32_t>(out, 1)[0], one.want) << one.op << one.type;
    }
}

TEST(EmuMemory, CompareAndSwap) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(33));
  r.param(out);
  // Lane t turns t into t + 1: with lanes in order, all succeed.
  r.body(".reg .b32 %r, %n;\n.reg .b64 %w;\n",
         "add.u32 %n, %t, 1;\natom.global.cas.b32 %r, [%out], %t, %n;\nadd.u64 %out, %out, 4;\n" + storeResult);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out, 33);
  EXPECT_EQ(got[0], 32u);
  EXPECT_EQ(got[10], 9u);
}

TEST(EmuMemory, BankConflicts) {
  auto conflicts = [](const std::string &code) {
    Trial r;
    r.param(r.buffer(std::vector<uint32_t>(1)));
    r.body(".reg .b32 %a, %b, %c, %d, %s;\n.shared .align 16 .b8 s[8192];\n", "mov.u32 %s, s;\n" + code);
    EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
    return r.result.stats.loads.bankConflicts + r.result.stats.stores.bankConflicts;
  };
  auto at = [](unsigned stride, const std::string &access) {
    return "mul.lo.u32 %a, %t, " + std::to_string(stride) + ";\nadd.u32 %s, %s, %a;\n" + access;
  };
  EXPECT_EQ(conflicts(at(4, "ld.shared.b32 %b, [%s];")), 0u);
  EXPECT_EQ(conflicts(at(0, "ld.shared.b32 %b, [%s];")), 0u); // one word for all
  EXPECT_EQ(conflicts(at(8, "ld.shared.b32 %b, [%s];")), 1u);
  EXPECT_EQ(conflicts(at(128, "ld.shared.b32 %b, [%s];")), 31u);
  EXPECT_EQ(conflicts(at(8, "ld.shared.v2.b32 {%a, %b}, [%s];")), 0u);
  EXPECT_EQ(conflicts(at(16, "ld.shared.v4.b32 {%a, %b, %c, %d}, [%s];")), 0u);
  EXPECT_EQ(conflicts(at(32, "ld.shared.v4.b32 {%a, %b, %c, %d}, [%s];")), 4u); // each of four phases: 2-way
  EXPECT_EQ(conflicts(at(128, "st.shared.v4.b32 [%s], {%a, %b, %c, %d};")), 28u);
}

// Of 32 bytes, each once for a warp's instruction; what the instruction on one line cost is that line's.
TEST(EmuMemory, SectorsByLine) {
  auto stats = [](const std::string &code) {
    Trial r;
    r.param(r.buffer(std::vector<uint32_t>(4096)));
    r.body(".reg .b32 %a, %b, %c, %d, %e;\n.reg .b64 %w;\n.reg .pred %p;\n.shared .align 16 .b8 s[8192];\n",
           "setp.lt.u32 %p, %t, 16;\n" + code);
    EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
    return r.result.stats;
  };
  auto at = [](unsigned stride, const std::string &access) {
    return "mul.wide.u32 %w, %t, " + std::to_string(stride) + ";\nadd.u64 %out, %out, %w;\n" + access;
  };
  EXPECT_EQ(stats(at(4, "ld.global.b32 %a, [%out];")).loads.sectors, 4u);
  EXPECT_EQ(stats(at(4, "ld.global.b32 %a, [%out+16];")).loads.sectors, 5u);
  EXPECT_EQ(stats(at(0, "ld.global.b32 %a, [%out];")).loads.sectors, 1u);
  EXPECT_EQ(stats(at(64, "@%p ld.global.b32 %a, [%out];")).loads.sectors, 16u);
  EXPECT_EQ(stats(at(16, "st.global.v4.b32 [%out], {%t, %t, %t, %t};")).stores.sectors, 16u);
  auto parts = [&](unsigned stride, const std::string &store) { return stats(at(stride, store)).stores.parts; };
  EXPECT_EQ(parts(4, "st.global.b32 [%out], %t;"), 0u);
  EXPECT_EQ(parts(4, "st.global.b32 [%out+16], %t;"), 2u);
  EXPECT_EQ(parts(8, "st.global.b32 [%out], %t;"), 8u);
  EXPECT_EQ(parts(4, "@%p st.global.b32 [%out], %t;"), 0u);
  EXPECT_EQ(parts(16, "st.global.v4.b32 [%out+16], {%t, %t, %t, %t};"), 2u);
  EXPECT_EQ(parts(0, "st.global.b32 [%out], %t;"), 1u);
  EXPECT_EQ(stats(at(4, "ld.global.b32 %a, [%out+16];")).loads.parts, 0u);
  EXPECT_EQ(stats(at(4, "atom.global.add.u32 %a, [%out], 1;")).atomics.sectors, 4u);
  EXPECT_EQ(stats(at(32, "red.global.add.u32 [%out], 1;")).atomics.sectors, 32u);
  EXPECT_EQ(stats(at(32, "atom.global.cas.b32 %a, [%out], 0, 1;")).atomics.sectors, 32u);

  Stats both = stats(at(4, "ld.global.b32 %a, [%out];\nld.global.b32 %b, [%out+16];\nst.global.b32 [%out], %b;\n"));
  std::vector<uint64_t> lines;
  for (const Traffic &line : both.lines)
    if (line.sectors)
      lines.push_back(line.sectors);
  EXPECT_EQ(lines, (std::vector<uint64_t>{4, 5, 4}));
  EXPECT_EQ(both.loads.sectors, 9u);
  EXPECT_EQ(both.stores.sectors, 4u);
}

TEST(EmuMemory, PrefetchIsChecked) {
  Trial good;
  good.param(good.buffer(std::vector<uint32_t>(1)));
  EXPECT_EQ(good.body("", "prefetch.global.L2 [%out];").verdict, Verdict::clean) << good.text();
  Trial bad;
  EXPECT_EQ(onlyFinding(bad, "", "prefetch.global.L2 [%out+65536];").code, "AD-3");
}

} // namespace gemmc::emu::test
