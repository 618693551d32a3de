// Loading and launching through the (fake) driver: what the driver is told, and what its refusals become.
#include "gemmc/Runtime/GpuModule.h"
#include "ClusterGemm.h"
#include "Fake.h"

using namespace gemmc;
using namespace gemmc::clustergemm;
using ptx::LaunchInfo;

namespace {
class GpuModuleTest : public FakeTest {
protected:
  Outcome<std::shared_ptr<const GpuModule>> load(LaunchInfo info = clusterInfo(), const char *target = "sm_90a") {
    return GpuModule::load(device(), ptxText, std::move(info), target);
  }
};
} // namespace

TEST(TargetOf, ReadsTheDirective) {
  EXPECT_EQ(targetOf(ptxText), "sm_90a");
  EXPECT_EQ(targetOf("// .target sm_70\n  .target\tsm_80, debug\n"), "sm_80");
  EXPECT_EQ(targetOf(".target sm_86// x"), "sm_86");
  EXPECT_EQ(targetOf(".version 8.0\n"), "");
}

TEST_F(GpuModuleTest, ALaunchTellsTheDriverEverything) {
  auto module = load();
  ASSERT_TRUE(bool(module)) << module.failure().str();
  EXPECT_EQ(fake->functionAttributes["gemm:8"], 200000); // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  uint64_t d = 0;
  int32_t m = 0;
  float beta = 0;
  unsigned char map[128];
  fake->onLaunch = [&](const FakeLaunch &, void **params) {
    std::memcpy(map, params[0], 128);
    std::memcpy(&d, params[1], 8);
    std::memcpy(&m, params[2], 4);
    std::memcpy(&beta, params[3], 4);
  };
  auto stream = reinterpret_cast<cuda::Stream>(uintptr_t(0x5000));
  MaybeFailure failed = (*module)->launch(stream, goodArgs());
  ASSERT_FALSE(failed) << failed->str();
  ASSERT_EQ(fake->launches.size(), 1u);
  const FakeLaunch &launch = fake->launches[0];
  EXPECT_EQ(launch.kernel, "gemm");
  EXPECT_EQ(launch.config.gridX, 4u);
  EXPECT_EQ(launch.config.gridY, 1u);
  EXPECT_EQ(launch.config.gridZ, 3u);
  EXPECT_EQ(launch.config.blockX, 384u);
  EXPECT_EQ(launch.config.sharedBytes, 200000u);
  EXPECT_EQ(launch.config.stream, stream);
  ASSERT_EQ(launch.attributes.size(), 1u);
  EXPECT_EQ(launch.attributes[0].id, 4); // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  EXPECT_EQ(launch.attributes[0].value.clusterDim.x, 2u);
  EXPECT_EQ(launch.attributes[0].value.clusterDim.y, 1u);
  EXPECT_EQ(launch.attributes[0].value.clusterDim.z, 1u);
  EXPECT_EQ(d, 0x400000u);
  EXPECT_EQ(m, 200);
  EXPECT_EQ(beta, 0.5f);
  EXPECT_EQ(map[0], 0x4d); // what the driver wrote
  EXPECT_EQ(map[127], 0x4d);

  ASSERT_EQ(fake->maps.size(), 1u);
  const FakeMap &seen = fake->maps[0];
  EXPECT_EQ(seen.type, 9);    // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(seen.swizzle, 3); // CU_TENSOR_MAP_SWIZZLE_128B
  EXPECT_EQ(seen.interleave, 0);
  EXPECT_EQ(seen.promotion, 2); // CU_TENSOR_MAP_L2_PROMOTION_L2_128B: no line that nobody asked for
  EXPECT_EQ(seen.oobFill, 0);   // zeros
  EXPECT_EQ(seen.address, 0x100000u);
  EXPECT_EQ(seen.dims, (std::vector<uint64_t>{64, 200}));
  EXPECT_EQ(seen.strides, (std::vector<uint64_t>{128}));
  EXPECT_EQ(seen.box, (std::vector<uint32_t>{64, 128}));
  EXPECT_EQ(seen.elementStrides, (std::vector<uint32_t>{1, 1}));
}

TEST_F(GpuModuleTest, ALaunchNeitherAllocatesNorWaits) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  fake->calls.clear();
  ASSERT_FALSE((*module)->launch(nullptr, goodArgs()));
  for (const char *forbidden : {"cuMemAlloc_v2", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpyHtoDAsync_v2"})
    EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), forbidden), 0) << forbidden;
}

TEST_F(GpuModuleTest, NoClusterNoAttribute) {
  LaunchInfo info = clusterInfo();
  info.kernels[0].cluster = {1, 1, 1};
  auto module = load(info);
  ASSERT_TRUE(bool(module));
  ASSERT_FALSE((*module)->launch(nullptr, goodArgs()));
  EXPECT_EQ(fake->launches[0].config.numAttributes, 0u);
  EXPECT_EQ(fake->launches[0].config.attributes, nullptr);
}

TEST_F(GpuModuleTest, ClustersOfMoreThanEightAreAllowedExplicitly) {
  LaunchInfo info = clusterInfo();
  info.kernels[0].cluster = {16, 1, 1};
  ASSERT_TRUE(bool(load(info)));
  EXPECT_EQ(fake->functionAttributes["gemm:14"], 1); // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
}

TEST_F(GpuModuleTest, AllKernelsRunInOrder) {
  LaunchInfo info = clusterInfo();
  info.kernels.push_back(info.kernels[0]);
  info.kernels[1].name = "reduce";
  auto module = load(info);
  ASSERT_TRUE(bool(module));
  ASSERT_FALSE((*module)->launch(nullptr, goodArgs()));
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[0].kernel, "gemm");
  EXPECT_EQ(fake->launches[1].kernel, "reduce");
}

TEST_F(GpuModuleTest, AnEmptyResultLaunchesNothing) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  LaunchArgs args = goodArgs();
  args.m = 0;
  args.a = args.d = 0;
  ASSERT_FALSE((*module)->launch(nullptr, args));
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(GpuModuleTest, AnUnmetRequirementIsNamed) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  LaunchArgs args = goodArgs();
  args.a += 8;
  ASSERT_NE((*module)->unmet(args), nullptr);
  MaybeFailure failed = (*module)->launch(nullptr, args);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_requirement);
  EXPECT_NE(failed->str().find("`a_ptr % 16 == 0`"), std::string::npos);
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(GpuModuleTest, ANullOperandThatIsNotReadStillGetsAMap) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  LaunchArgs args = goodArgs();
  args.alpha = 0;
  args.a = args.b = 0;
  ASSERT_FALSE((*module)->launch(nullptr, args));
  EXPECT_NE(fake->maps[0].address, 0u);
}

TEST_F(GpuModuleTest, RejectedPtxCarriesTheLog) {
  fake->failing["cuModuleLoadDataEx"] = cuda::invalidPtx;
  fake->jitLog = "ptxas application ptx input, line 9; fatal : Parsing error\n";
  auto module = load();
  ASSERT_FALSE(module);
  EXPECT_EQ(module.failure().id, Diag::ptx_rejected);
  EXPECT_NE(module.failure().str().find("`gemm`: CUDA_ERROR_INVALID_PTX (218)"), std::string::npos);
  EXPECT_NE(module.failure().str().find("line 9; fatal"), std::string::npos);
}

TEST_F(GpuModuleTest, TheWrongDeviceIsRefusedBeforeLoading) {
  fake->attributes[75] = 8;
  auto module = load();
  ASSERT_FALSE(module);
  EXPECT_EQ(module.failure().id, Diag::device_target);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "cuModuleLoadDataEx"), 0);
}

TEST_F(GpuModuleTest, TooMuchSharedMemoryIsArithmetic) {
  LaunchInfo info = clusterInfo();
  info.kernels[0].dynamicShared = 232449;
  auto module = load(info);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.failure().str(),
            "kernel `gemm` needs 232449 bytes of shared memory; `Fake H200` gives a block 232448");
}

TEST_F(GpuModuleTest, ARefusedTensorMapShowsItsArguments) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  fake->failing["cuTensorMapEncodeTiled"] = 1;
  MaybeFailure failed = (*module)->launch(nullptr, goodArgs());
  ASSERT_TRUE(failed);
  EXPECT_NE(failed->str().find("encoding tensor map `a_map` failed: CUDA_ERROR_INVALID_VALUE (1)"), std::string::npos);
  EXPECT_NE(failed->str().find("extents [64, 200], strides in bytes [128], box [64, 128], swizzle 128B"),
            std::string::npos)
      << failed->str();
}

TEST_F(GpuModuleTest, AFailedLaunchNamesTheKernel) {
  auto module = load();
  ASSERT_TRUE(bool(module));
  fake->failing["cuLaunchKernelEx"] = cuda::outOfResources;
  MaybeFailure failed = (*module)->launch(nullptr, goodArgs());
  ASSERT_TRUE(failed);
  EXPECT_NE(failed->str().find("launching kernel `gemm` failed"), std::string::npos);
  EXPECT_EQ(failed->code, 701);
}

TEST_F(GpuModuleTest, APersistentGridIsNoLargerThanTheClustersThatFit) {
  LaunchInfo info = clusterInfo();
  info.kernels[0].cluster = {4, 1, 1};
  info.kernels[0].grid = {minOf(Expr(1000), Expr::var("sms") / Expr(4)) * Expr(4), Expr(1), Expr(1)};
  for (auto [fit, ctas] : {std::pair{31, 124u}, {33, 132u}, {40, 132u}}) {
    fake->activeClusters = fit;
    fake->launches.clear();
    auto module = load(info);
    ASSERT_TRUE(bool(module)) << module.failure().str();
    MaybeFailure failed = (*module)->launch(nullptr, goodArgs());
    ASSERT_FALSE(failed) << failed->str();
    EXPECT_EQ(fake->launches.at(0).config.gridX, ctas);
  }
}

namespace {
/// Launches that prepare nothing: what the kernel gets must be what a module gives that has launched nothing before.
/// Each with a driver that makes graphs of them (see LaunchGraphsTest.cpp), and with one that does not.
class ReplayTest : public GpuModuleTest, public ::testing::WithParamInterface<bool> {
protected:
  void SetUp() override {
    GpuModuleTest::SetUp();
    if (GetParam())
      fake->paramBytes["gemm"] = paramBytes;
    fake->onLaunch = [this](const FakeLaunch &, void **params) { seen = Seen(params); };
  }
  void TearDown() override {
    module.reset();
    GpuModuleTest::TearDown();
  }
  void open() {
    auto loaded = load(info);
    ASSERT_TRUE(bool(loaded)) << loaded.failure().str();
    module = *loaded;
  }
  /// Launches, and says how many maps were encoded for that.
  int encoded(const LaunchArgs &args) {
    seen = Seen();
    fake->maps.clear(), fake->launches.clear();
    MaybeFailure failed = module->launch(nullptr, args);
    EXPECT_FALSE(failed) << failed->str();
    Seen here = seen;
    std::vector<FakeLaunch> launches = fake->launches;
    int count = int(fake->maps.size());
    auto other = load(info);
    EXPECT_TRUE(bool(other));
    fake->launches.clear();
    EXPECT_FALSE((*other)->launch(nullptr, args));
    EXPECT_EQ(here, seen);
    EXPECT_EQ(launches.size(), fake->launches.size());
    for (size_t i = 0; i < std::min(launches.size(), fake->launches.size()); ++i) {
      EXPECT_EQ(launches[i].config.gridX, fake->launches[i].config.gridX);
      EXPECT_EQ(launches[i].kernel, fake->launches[i].kernel);
      EXPECT_EQ(launches[i].attributes.size(), fake->launches[i].attributes.size());
    }
    return count;
  }
  std::shared_ptr<const GpuModule> module;
  LaunchInfo info = clusterInfo();
  Seen seen;
};
} // namespace

TEST_P(ReplayTest, OtherAddressesAreWrittenIntoTheMapsAtHand) {
  open();
  LaunchArgs args = goodArgs();
  EXPECT_FALSE(module->prepared(args));
  EXPECT_EQ(encoded(args), 1);
  EXPECT_TRUE(module->prepared(args));
  EXPECT_EQ(encoded(args), 0);
  EXPECT_EQ(fake->replaced, 0);
  args.a += 0x1000, args.d += 0x2000;
  EXPECT_EQ(encoded(args), 0);
  EXPECT_EQ(fake->replaced, 1);
  EXPECT_EQ(seen.mapped, args.a);
  EXPECT_EQ(seen.d, args.d);
}

TEST_P(ReplayTest, AllElseIsPreparedAnew) {
  open();
  EXPECT_EQ(encoded(goodArgs()), 1);
  std::vector<std::function<void(LaunchArgs &)>> changes = {
      [](LaunchArgs &args) { args.m = 201; },
      [](LaunchArgs &args) { args.beta = -0.0f; },
      [](LaunchArgs &args) { args.beta = 0; },
      [](LaunchArgs &args) { args.alpha = 2; },
      [](LaunchArgs &args) { args.a += 16; },
      [](LaunchArgs &args) { args.d += 4; },
      [](LaunchArgs &args) { args.c = args.d; },
      [](LaunchArgs &args) { args.workspaceBytes = 5; },
      [](LaunchArgs &args) { args.alpha = 0, args.a = args.b = 0; }};
  for (const auto &change : changes) {
    LaunchArgs args = goodArgs();
    change(args);
    EXPECT_EQ(encoded(args), 1);
    EXPECT_EQ(encoded(args), 0);
  }
  LaunchArgs moved = goodArgs(); // a null operand's map follows D
  moved.alpha = 0, moved.a = moved.b = 0, moved.d += 0x10000;
  EXPECT_EQ(encoded(moved), 0);
}

TEST_P(ReplayTest, WhatIsWrongIsStillSaid) {
  open();
  EXPECT_EQ(encoded(goodArgs()), 1);
  auto failure = [&](auto change) {
    LaunchArgs args = goodArgs();
    change(args);
    MaybeFailure failed = module->launch(nullptr, args);
    return failed ? failed->id : Diag::launch_ld;
  };
  fake->launches.clear();
  EXPECT_EQ(failure([](LaunchArgs &args) { args.a += 8; }), Diag::launch_requirement);
  EXPECT_EQ(failure([](LaunchArgs &args) { args.a += 1; }), Diag::launch_misaligned);
  EXPECT_EQ(failure([](LaunchArgs &args) { args.a = args.d; }), Diag::launch_overlap);
  EXPECT_EQ(failure([](LaunchArgs &args) { args.b = args.d - 256; }), Diag::launch_overlap);
  EXPECT_EQ(failure([](LaunchArgs &args) { args.c = args.d + 256; }), Diag::launch_overlap);
  EXPECT_EQ(failure([](LaunchArgs &args) { args.d = 0; }), Diag::launch_null);
  EXPECT_TRUE(fake->launches.empty());
}

TEST_P(ReplayTest, ARefusedAddressIsPreparedAnew) {
  open();
  EXPECT_EQ(encoded(goodArgs()), 1);
  fake->failing["cuTensorMapReplaceAddress"] = 1;
  LaunchArgs args = goodArgs();
  args.a += 0x1000;
  EXPECT_EQ(encoded(args), 1);
}

TEST_P(ReplayTest, TheOldestOfManyIsForgotten) {
  open();
  for (int64_t m = 1; m <= 9; ++m) {
    LaunchArgs args = goodArgs();
    args.m = m;
    EXPECT_EQ(encoded(args), 1);
  }
  for (int64_t m = 2; m <= 9; ++m) {
    LaunchArgs args = goodArgs();
    args.m = m;
    EXPECT_EQ(encoded(args), 0);
  }
  LaunchArgs args = goodArgs();
  args.m = 1;
  EXPECT_EQ(encoded(args), 1);
}

TEST_P(ReplayTest, AnExpressionOfAWholeAddressIsNeverReplayed) {
  info.requirements = {less(Expr::var("a_ptr"), Expr::var("b_ptr"))};
  open();
  EXPECT_EQ(encoded(goodArgs()), 1);
  EXPECT_EQ(encoded(goodArgs()), 1);
  info.requirements = {equal(Expr::var("a_ptr") % Expr(512), Expr(0))};
  open();
  EXPECT_EQ(encoded(goodArgs()), 1);
  EXPECT_EQ(encoded(goodArgs()), 1);
}

TEST_P(ReplayTest, AnEmptyGridStaysEmpty) {
  info.kernels.push_back(info.kernels[0]);
  info.kernels[0].grid[0] = Expr::var("m") - Expr(200);
  open();
  encoded(goodArgs());
  encoded(goodArgs());
  EXPECT_EQ(fake->launches.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Graphs, ReplayTest, ::testing::Bool());
