// Whole compilations, judged by their PTX: it reads back, verifies and prints the same; its header says what the launch
// information says; and it holds the instructions that the specs ask for, counted by hand.
#include "gemmc/Driver/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>
#include <gtest/gtest.h>

using namespace gemmc;

namespace {
struct Case {
  const char *name;
  std::string spec;
};

std::string hopper(llvm::StringRef sizes, llvm::StringRef types, llvm::StringRef rest) {
  return ("target: sm_90a\nproblem: {" + sizes + "}\n" + types + "\n" + rest + "\n").str();
}
std::string ampere(llvm::StringRef sizes, llvm::StringRef types, llvm::StringRef rest) {
  return ("target: sm_80\nproblem: {" + sizes + "}\n" + types + "\n" + rest + "\n").str();
}

constexpr const char *square = "m: 1024, n: 1024, k: 512", *dynamic = "m: dynamic, n: dynamic, k: dynamic";
constexpr const char *odd = "m: 127, n: 129, k: 65";

std::vector<Case> cases() {
  std::vector<Case> list;
  static std::deque<std::string> names;
  auto add = [&](std::string name, std::string spec) { list.push_back({names.emplace_back(name).c_str(), spec}); };
  for (llvm::StringRef a : {"row", "col"})
    for (llvm::StringRef b : {"row", "col"})
      for (llvm::StringRef type : {"f16", "bf16"}) {
        std::string types =
            ("a: {type: " + type + ", layout: " + a + "}\nb: {type: " + type + ", layout: " + b + "}").str();
        std::string suffix = (a + "_" + b + "_" + type).str();
        add("wgmma_" + suffix, hopper(square, types, "tile: {block: [128, 128, 64]}"));
        add("mma_" + suffix, ampere(square, types, "tile: {block: [128, 128, 32]}"));
      }
  for (llvm::StringRef schedule : {"pipelined", "cooperative", "pingpong"})
    add("schedule_" + schedule.str(),
        hopper(dynamic, "a: {type: bf16}",
               ("tile: {block: [128, 128, 64]}\npipeline: {stages: 4, schedule: " + schedule + "}").str()));
  for (llvm::StringRef cluster : {"[2, 1, 1]", "[1, 2, 1]", "[2, 2, 1]"})
    add("cluster_" + std::to_string(list.size()),
        hopper(square, "a: {type: bf16}", ("tile: {block: [128, 128, 64], cluster: " + cluster + "}").str()));
  for (llvm::StringRef copy : {"ld", "cp_async"})
    for (llvm::StringRef swizzle : {"none", "padded", "xor"})
      add(("copy_" + copy + "_" + swizzle).str(),
          // cp.async moves 4 bytes at least, so rows are that far apart.
          ampere("m: 126, n: 130, k: 66", "a: {type: f16}\nd: {type: f32}",
                 ("copy: " + copy + "\nswizzle: " + swizzle).str()));
  for (llvm::StringRef swizzle : {"none", "32B", "64B", "128B"})
    add("swizzle_" + swizzle.str(),
        hopper(square, "a: {type: f16}", ("swizzle: " + swizzle + "\ninstruction: wgmma").str()));
  add("scales", ampere(dynamic, "a: {type: f16}\nd: {type: f32}", "alpha: dynamic\nbeta: dynamic"));
  add("scales_wgmma", hopper(square, "a: {type: bf16}\nd: {type: f32, layout: col}", "alpha: 0.5\nbeta: dynamic"));
  add("largest", hopper(dynamic, "a: {type: bf16}", "tile: {block: [128, 256, 64]}"));
  add("half_sums", ampere(square, "a: {type: f16}", "accumulator: f16"));
  add("empty", ampere("m: 0, n: 16, k: 16", "a: {type: f16}", ""));
  return list;
}

/// The kernel's PTX, or a test failure with what was reported.
std::optional<Compiled> compile(llvm::StringRef text, std::string &lastTile) {
  Diags diags;
  auto spec = readSpec(diags.addSource("test.yaml", text), {}, diags, "gemm");
  CompileOptions options;
  options.verifyEach = true;
  options.afterPass = [&](llvm::StringRef pass, llvm::StringRef ir) {
    if (pass == "allocate-shared")
      lastTile = ir.str();
  };
  auto compiled = spec && !diags.hasErrors() ? compileSpec(*spec, diags, options) : std::nullopt;
  for (const Problem &problem : diags.all())
    if (problem.severity == Severity::error)
      ADD_FAILURE() << problem.message << "\n" << text.str();
  return compiled;
}
std::optional<Compiled> compile(llvm::StringRef text) {
  std::string ignored;
  return compile(text, ignored);
}

size_t count(const Compiled &compiled, llvm::StringRef what) { return llvm::StringRef(compiled.ptx).count(what); }

class Kernels : public testing::TestWithParam<Case> {};

TEST_P(Kernels, TextIsStableAndComplete) {
  auto compiled = compile(GetParam().spec);
  ASSERT_TRUE(compiled);
  Diags diags;
  llvm::StringRef text = diags.addSource("gemm.ptx", compiled->ptx);
  auto module = ptx::parse(text, diags);
  ASSERT_TRUE(module);
  EXPECT_TRUE(ptx::verifyProgram(*module, diags, text));
  EXPECT_EQ(ptx::print(*module), compiled->ptx);
  auto launch = ptx::fromHeader(*module, diags);
  ASSERT_TRUE(launch);
  EXPECT_EQ(ptx::toHeader(*launch), ptx::toHeader(compiled->launch));
  for (const Problem &problem : diags.all())
    ADD_FAILURE() << diags.place(problem.range.Start) << ": " << problem.message;

  const ptx::Function &function = module->functions.front();
  const ptx::KernelInfo &kernel = launch->kernels.front();
  EXPECT_EQ(function.name, kernel.name);
  EXPECT_EQ(function.reqntid[0], kernel.block[0]);
  ASSERT_EQ(function.params.size(), kernel.params.size());
  for (size_t i = 0; i < kernel.params.size(); ++i)
    EXPECT_EQ(function.params[i].name, kernel.params[i].name);
}

/// Nothing lies in local memory, and even the largest kernel is a text that a reader can scroll through.
TEST_P(Kernels, TextIsLean) {
  auto compiled = compile(GetParam().spec);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count(*compiled, ".local"), 0u);
  EXPECT_LT(compiled->ptx.size(), 200u << 10);
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(cases()),
                         [](const auto &info) { return std::string(info.param.name); });

/// A warp tile of 64 x 32, k-step 16: 4 ldmatrix.x4 of A, 2 of B and 4 x 4 mma a step. A k-tile has 2 steps; with two
/// fragment buffers the first step is also read in front of the loop.
TEST(Compile, MmaCounts) {
  std::string spec = ampere(square, "a: {type: f16, layout: row}\nb: {type: f16, layout: col}",
                            "tile: {block: [128, 64, 32], warp: [64, 32, 32]}\npipeline: {stages: 3}");
  auto compiled = compile(spec);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count(*compiled, "mma.sync.aligned.m16n8k16"), 2u * 4 * 4);
  EXPECT_EQ(count(*compiled, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), (2u + 1) * (4 + 2));
  EXPECT_EQ(count(*compiled, ".trans"), 0u); // both operands are k-major
}

/// A warpgroup tile of 64 x 128, k-tile 64: 4 wgmma, once for the first k-tile and once in the loop.
TEST(Compile, WgmmaCounts) {
  auto compiled = compile(hopper(square, "a: {type: bf16, layout: row}\nb: {type: bf16, layout: col}",
                                 "tile: {block: [128, 128, 64], warp: [64, 128, 64]}\n"
                                 "pipeline: {stages: 4, schedule: cooperative}"));
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count(*compiled, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"), 2u * 4);
  EXPECT_EQ(count(*compiled, "wgmma.commit_group"), 2u);
  EXPECT_EQ(count(*compiled, "setmaxnreg.dec"), 1u);
  EXPECT_EQ(count(*compiled, "setmaxnreg.inc"), 1u);
  EXPECT_EQ(compiled->launch.kernels.front().maps.size(), 3u) << "a, b and, for the store, d";
}

/// Sizes that are multiples of the tile need no look at the edges of D.
TEST(Compile, StaticMultiplesStoreWithoutGuards) {
  auto storeOf = [](llvm::StringRef ptx) { return ptx.split("D = alpha").second.split("tile_step").first; };
  auto even = compile(ampere(square, "a: {type: f16}", "tile: {block: [128, 128, 32]}"));
  auto ragged = compile(ampere(odd, "a: {type: f16}", "tile: {block: [128, 128, 32]}"));
  ASSERT_TRUE(even && ragged);
  EXPECT_FALSE(storeOf(even->ptx).contains("setp"));
  EXPECT_TRUE(storeOf(ragged->ptx).contains("setp"));
}

TEST(Compile, BetaDecidesWhetherCIsRead) {
  auto none = compile(ampere(square, "a: {type: f16}", "beta: 0"));
  auto always = compile(ampere(square, "a: {type: f16}", "beta: 2"));
  auto later = compile(ampere(square, "a: {type: f16}", "beta: dynamic"));
  ASSERT_TRUE(none && always && later);
  EXPECT_EQ(count(*none, "c_ptr"), 0u);
  EXPECT_GT(count(*always, "c_ptr"), 0u);
  EXPECT_EQ(count(*always, "beta_is_zero"), 0u);
  EXPECT_GT(count(*later, "beta is zero: C is not read"), 0u);
}

TEST(Compile, LargestStaysUnderAHundredKilobytes) {
  auto compiled = compile(hopper(square, "a: {type: bf16}", "tile: {block: [128, 256, 64]}"));
  ASSERT_TRUE(compiled);
  EXPECT_LT(compiled->ptx.size(), 100u * 1000);
}

/// The same plan gives the same bytes.
TEST(Compile, IsDeterministic) {
  std::string spec = hopper(dynamic, "a: {type: bf16}", "tile: {block: [128, 128, 64], cluster: [2, 1, 1]}");
  auto once = compile(spec), again = compile(spec);
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->ptx, again->ptx);
}

/// The shared memory of a launch is what the last pass has laid out.
TEST(Compile, SharedMemoryIsTheAllocation) {
  std::string tile;
  auto compiled = compile(hopper(square, "a: {type: bf16}",
                                 "tile: {block: [128, 128, 64]}\npipeline: {stages: 4}\nepilogue: {store: direct}"),
                          tile);
  ASSERT_TRUE(compiled);
  // 2 operands x 4 stages x 128 x 64 x 2 bytes, and 2 x 4 mbarriers of 8 bytes.
  EXPECT_EQ(compiled->launch.kernels.front().dynamicShared, 2u * 4 * 128 * 64 * 2 + 64);
  EXPECT_NE(tile.find("shared=131136"), std::string::npos);
}
} // namespace
