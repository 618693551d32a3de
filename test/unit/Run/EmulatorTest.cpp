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
