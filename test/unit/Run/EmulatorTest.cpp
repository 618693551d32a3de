// The emulator as an executor: what it refuses before anything runs.
#include "Naive.h"
#include "gemmc/Driver/Compiler.h"
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;

TEST(EmulatorExecutor, PtxThatCannotBeReadIsAFailure) {
  Code code = naive::code();
  code.ptx = "this is not PTX";
  auto outcome = makeEmulator(1)->launch(code, LaunchArgs{}, LaunchChoice{});
  ASSERT_FALSE(bool(outcome));
  EXPECT_NE(outcome.failure().str().find("cannot be read back"), std::string::npos) << outcome.failure().str();
}

TEST(EmulatorExecutor, ATensorMapThatTheDriverWouldRefuseIsAFailure) {
  Diags diags;
  auto spec = readSpec(diags.addSource("tma.yaml", "target: sm_90a\nproblem: {m: 64, n: 64, k: 64}\n"), {}, diags);
  ASSERT_TRUE(spec);
  auto compiled = compileSpec(*spec, diags);
  ASSERT_TRUE(compiled);
  ASSERT_FALSE(compiled->launch.kernels[0].maps.empty());
  compiled->launch.kernels[0].maps[0].box[1] = 257; // boxDim is at most 256

  auto emulator = makeEmulator(1);
  std::vector<std::byte> matrix(64 * 64 * 2);
  LaunchArgs args;
  args.m = args.n = args.k = args.lda = args.ldb = args.ldc = args.ldd = 64;
  for (uint64_t *address : {&args.a, &args.b, &args.d}) {
    auto uploaded = emulator->upload("matrix", matrix, 0);
    ASSERT_TRUE(bool(uploaded));
    *address = *uploaded;
  }
  auto outcome = emulator->launch({compiled->ptx, compiled->launch}, args, LaunchChoice{});
  ASSERT_FALSE(bool(outcome));
  EXPECT_NE(outcome.failure().str().find("cuTensorMapEncodeTiled"), std::string::npos) << outcome.failure().str();
}

/// A kernel that takes tiles from a counter, or whose slices of k count themselves, leaves its counters as it found
/// them: a second launch does without the kernel that zeroes them, and computes everything again.
TEST(EmulatorExecutor, CountersComeBackByThemselves) {
  constexpr int64_t m = 200, n = 136, k = 192;
  constexpr unsigned tiles = 4 * 4, counterBytes = 4;
  for (const char *fields :
       {"raster: {scheduler: dynamic}\npipeline: {schedule: cooperative}",
        "raster: {scheduler: dynamic}\npipeline: {schedule: pingpong}", "split: {mode: split_k, slices: 3}",
        "split: {mode: split_k, slices: 2}\nraster: {persistent: off}", "split: {mode: stream_k}"}) {
    Diags diags;
    std::string yaml = "target: sm_90a\nproblem: {m: 200, n: 136, k: 192}\na: {type: bf16, layout: row}\n"
                       "b: {type: bf16, layout: col}\nd: {type: f32, layout: row}\ntile: {block: [64, 40, 64]}\n" +
                       std::string(fields) + "\n";
    auto spec = readSpec(diags.addSource("tiles.yaml", yaml), {}, diags);
    ASSERT_TRUE(spec);
    auto compiled = compileSpec(*spec, diags);
    ASSERT_TRUE(compiled);
    auto emulator = makeEmulator(2, {}, 3);
    LaunchArgs args;
    args.m = m, args.n = n, args.k = args.lda = args.ldb = k, args.ldc = args.ldd = n;
    auto upload = [&](llvm::StringRef name, const std::vector<std::byte> &bytes) {
      auto placed = emulator->upload(name, bytes, 0);
      EXPECT_TRUE(bool(placed));
      return placed ? *placed : 0;
    };
    auto ones = [](int64_t count) { // of bf16
      std::vector<std::byte> bytes(count * 2, std::byte(0x80));
      for (size_t i = 1; i < bytes.size(); i += 2)
        bytes[i] = std::byte(0x3f);
      return bytes;
    };
    args.a = upload("a", ones(m * k)), args.b = upload("b", ones(k * n));
    args.workspaceBytes = workspaceBytes(compiled->launch, args, 3).value_or(0);
    ASSERT_GE(args.workspaceBytes, 256u);
    args.workspace = upload("workspace", std::vector<std::byte>(args.workspaceBytes, std::byte(0xff)));
    for (int launch = 0; launch < 3; ++launch) {
      SCOPED_TRACE(testing::Message() << fields << ", launch " << launch);
      args.d = upload("d", std::vector<std::byte>(m * n * 4, std::byte(0xff)));
      args.workspaceReady = launch > 0;
      auto outcome = emulator->launch({compiled->ptx, compiled->launch}, args, LaunchChoice{});
      ASSERT_TRUE(bool(outcome)) << outcome.failure().str();
      EXPECT_TRUE(outcome->findings.empty());
      std::vector<std::byte> d(m * n * 4), workspace(args.workspaceBytes);
      std::optional<GuardViolation> violation;
      ASSERT_FALSE(emulator->download("d", d, violation));
      ASSERT_FALSE(emulator->download("workspace", workspace, violation));
      for (int64_t i = 0; i < m * n; ++i) {
        float value;
        std::memcpy(&value, &d[i * 4], 4);
        ASSERT_EQ(value, float(k)) << i / n << ", " << i % n;
      }
      const unsigned counters = llvm::StringRef(fields).contains("dynamic") ? 1 : tiles;
      for (unsigned i = 0; i < counters * counterBytes; ++i)
        EXPECT_EQ(workspace[i], std::byte(0));
    }
  }
}
