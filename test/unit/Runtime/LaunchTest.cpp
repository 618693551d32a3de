// A launch in numbers: argument checks, requirements, grids, parameter blocks, tensor maps.
#include "gemmc/Runtime/Launch.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace gemmc;
using ptx::KernelInfo;
using ptx::LaunchInfo;
using ptx::ParamInfo;

namespace {
/// bf16, A row, B col, everything dynamic.
LaunchInfo dynamicInfo() {
  LaunchInfo info;
  info.m = Expr::var("m");
  info.n = Expr::var("n");
  info.k = Expr::var("k");
  info.a = {Elem::bf16, Order::row, Expr::var("lda")};
  info.b = {Elem::bf16, Order::col, Expr::var("ldb")};
  info.c = {Elem::bf16, Order::row, Expr::var("ldc")};
  info.d = {Elem::bf16, Order::row, Expr::var("ldd")};
  KernelInfo kernel;
  kernel.name = "gemm";
  info.kernels.push_back(kernel);
  return info;
}

/// 100 x 60 x 40 at distant addresses.
LaunchArgs plainArgs() {
  LaunchArgs args;
  args.m = 100, args.n = 60, args.k = 40;
  args.lda = 40, args.ldb = 40, args.ldc = 60, args.ldd = 60;
  args.a = 0x10000, args.b = 0x20000, args.c = 0x30000, args.d = 0x40000;
  return args;
}

MaybeFailure check(const LaunchArgs &args, const LaunchInfo &info = dynamicInfo()) {
  return checkArgs(info, args, 132);
}

#define EXPECT_FAILS(args, diag, text)                                                                                 \
  do {                                                                                                                 \
    MaybeFailure failed = check(args);                                                                                 \
    ASSERT_TRUE(failed);                                                                                               \
    EXPECT_EQ(failed->id, Diag::diag) << failed->str();                                                                \
    EXPECT_NE(failed->str().find(text), std::string::npos) << failed->str();                                           \
  } while (false)

MaybeFailure noMaps(llvm::StringRef, const TensorMapArgs &, std::byte *) {
  ADD_FAILURE() << "there is no tensor map";
  return std::nullopt;
}
} // namespace

TEST(CheckArgs, GoodOnesPass) { EXPECT_FALSE(check(plainArgs())); }

TEST(CheckArgs, NegativeSizes) {
  for (int64_t LaunchArgs::*size : {&LaunchArgs::m, &LaunchArgs::n, &LaunchArgs::k}) {
    LaunchArgs args = plainArgs();
    args.*size = -1;
    EXPECT_FAILS(args, launch_negative, "is -1");
  }
}

TEST(CheckArgs, ASizeThatIsCompiledIn) {
  LaunchInfo info = dynamicInfo();
  info.n = Expr(64);
  MaybeFailure failed = check(plainArgs(), info);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->str(), "`n` is 60; this kernel is compiled for 64; a kernel whose `problem.n` is dynamic takes any "
                           "(`--set=problem.n=dynamic`)");
}

TEST(CheckArgs, AScaleThatIsCompiledIn) {
  LaunchInfo info = dynamicInfo();
  info.alpha = 0.1; // as float it is another number than as double: that must not matter
  LaunchArgs args = plainArgs();
  args.alpha = 0.1f;
  EXPECT_FALSE(check(args, info));
  args.alpha = 0.5f;
  MaybeFailure failed = check(args, info);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_fixed);
  info.alpha = std::nullopt;
  info.beta = 0;
  args.beta = 1;
  EXPECT_TRUE(check(args, info));
}

TEST(CheckArgs, LeadingDimensions) {
  LaunchArgs args = plainArgs();
  args.lda = 39;
  EXPECT_FAILS(args, launch_ld, "`lda` is 39; a 100 x 40 matrix of layout row needs at least 40");
  args = plainArgs();
  args.ldb = 39; // column-major 40 x 60
  EXPECT_FAILS(args, launch_ld, "layout col");
}

TEST(CheckArgs, TheLeadingDimensionOfCCountsOnlyWithABeta) {
  LaunchArgs args = plainArgs();
  args.ldc = 0;
  EXPECT_FALSE(check(args));
  args.beta = 1;
  EXPECT_FAILS(args, launch_ld, "`ldc`");
}

TEST(CheckArgs, SizesBeyondTheAddressSpace) {
  LaunchArgs args = plainArgs();
  args.m = int64_t(1) << 40;
  args.ldd = int64_t(1) << 40;
  EXPECT_FAILS(args, launch_too_large, "`d`");
}

TEST(CheckArgs, NullPointersOnlyWhereNothingIsRead) {
  LaunchArgs args = plainArgs();
  args.c = 0; // beta is 0
  EXPECT_FALSE(check(args));
  args.beta = 1;
  EXPECT_FAILS(args, launch_null, "`c`");
  args = plainArgs();
  args.a = args.b = 0;
  EXPECT_FAILS(args, launch_null, "`a`");
  args.alpha = 0;
  EXPECT_FALSE(check(args));
  args.alpha = 1;
  args.k = 0;
  EXPECT_FALSE(check(args));
  args.d = 0;
  EXPECT_FAILS(args, launch_null, "`d`");
  args.m = 0; // an empty D: pointers are nobody's business
  EXPECT_FALSE(check(args));
}

TEST(CheckArgs, NegativeZeroBetaIsZero) {
  LaunchArgs args = plainArgs();
  args.c = 0;
  args.beta = -0.0f;
  EXPECT_FALSE(check(args));
}

TEST(CheckArgs, ElementAlignment) {
  LaunchArgs args = plainArgs();
  args.a += 1;
  EXPECT_FAILS(args, launch_misaligned, "`a`");
  args = plainArgs();
  args.a += 2;
  EXPECT_FALSE(check(args));
}

TEST(CheckArgs, OverlapWithInputs) {
  LaunchArgs args = plainArgs();
  args.d = args.a + 100 * 40 * 2 - 2; // the last element of A
  EXPECT_FAILS(args, launch_overlap, "`a`");
  args.d = args.a + 100 * 40 * 2; // just behind
  EXPECT_FALSE(check(args));
  args.d = args.b - 100 * 60 * 2 + 2;
  EXPECT_FAILS(args, launch_overlap, "`b`");
}

TEST(CheckArgs, DMayTakeThePlaceOfCExactly) {
  LaunchArgs args = plainArgs();
  args.beta = 1;
  args.d = args.c;
  EXPECT_FALSE(check(args));
  args.ldd = 61;
  EXPECT_FAILS(args, launch_overlap, "`c`");
  args.beta = 0; // C is not read, so it is not there
  EXPECT_FALSE(check(args));
}

TEST(CheckArgs, Workspace) {
  LaunchInfo info = dynamicInfo();
  info.workspace = Expr::var("m") * Expr::var("n") * Expr(4);
  LaunchArgs args = plainArgs();
  MaybeFailure failed = check(args, info);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_workspace);
  EXPECT_NE(failed->str().find("24000 bytes"), std::string::npos);
  args.workspace = 0x50000;
  args.workspaceBytes = 24000;
  EXPECT_FALSE(check(args, info));
  args.workspace += 128;
  EXPECT_TRUE(check(args, info));
}

TEST(Requirements, TheFirstThatDoesNotHoldIsNamed) {
  LaunchInfo info = dynamicInfo();
  info.requirements = {less(Expr(0), Expr::var("k")), equal(Expr::var("lda") % Expr(8), Expr(0)),
                       equal(Expr::var("a_ptr") % Expr(16), Expr(0))};
  LaunchArgs args = plainArgs();
  EXPECT_EQ(firstUnmet(info, args, 132), nullptr);
  args.lda = 41;
  ASSERT_EQ(firstUnmet(info, args, 132), &info.requirements[1]);
  args.lda = 48;
  args.a += 8;
  ASSERT_EQ(firstUnmet(info, args, 132), &info.requirements[2]);
  args.k = 0;
  ASSERT_EQ(firstUnmet(info, args, 132), &info.requirements[0]);
}

TEST(Requirements, OneWithoutAValueDoesNotHold) {
  LaunchInfo info = dynamicInfo();
  info.requirements = {Expr::var("k") / Expr::var("ldc")};
  LaunchArgs args = plainArgs();
  args.ldc = 0; // division by 0
  EXPECT_EQ(firstUnmet(info, args, 132), &info.requirements[0]);
}

TEST(Variables, AllAreKnown) {
  LaunchArgs args = plainArgs();
  args.alpha = 0;
  EXPECT_EQ(launchVariable(args, 132, "sms"), 132);
  EXPECT_EQ(launchVariable(args, 132, "ldd"), 60);
  EXPECT_EQ(launchVariable(args, 132, "d_ptr"), 0x40000);
  EXPECT_EQ(launchVariable(args, 132, "alpha_is_zero"), 1);
  EXPECT_EQ(launchVariable(args, 132, "beta_is_zero"), 1);
  EXPECT_EQ(launchVariable(args, 132, "gamma"), std::nullopt);
}

TEST(MatrixBytes, FromTheFirstToBehindTheLastElement) {
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 5, 8), (2 * 8 + 5) * 2u);
  EXPECT_EQ(matrixBytes(Elem::f16, Order::col, 3, 5, 8), (4 * 8 + 3) * 2u);
  EXPECT_EQ(matrixBytes(Elem::f32, Order::row, 0, 5, 8), 0u);
  EXPECT_EQ(matrixBytes(Elem::f32, Order::row, INT64_MAX, 1, 1), std::nullopt);
}

// Three matrices of 3 x 5, 100 elements apart: the last one ends at 2 * 100 + 2 * 8 + 5.
TEST(MatrixBytes, OfABatch) {
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 5, 8, 3, 100), (2 * 100 + 2 * 8 + 5) * 2u);
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 5, 8, 3, 0), (2 * 8 + 5) * 2u);
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 5, 8, 0, 100), 0u);
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 0, 8, 3, 100), 0u);
  EXPECT_EQ(matrixBytes(Elem::f16, Order::row, 3, 5, 8, INT64_C(1) << 40, INT64_C(1) << 40), std::nullopt);
}

namespace {
/// Four of plainArgs, end to end.
LaunchArgs goodBatch() {
  LaunchArgs args = plainArgs();
  args.batch = 4;
  args.strideA = 100 * 40, args.strideB = 40 * 60, args.strideC = args.strideD = 100 * 60;
  args.a = 0x100000, args.b = 0x200000, args.c = 0x300000, args.d = 0x400000;
  return args;
}
LaunchInfo batchInfo() {
  LaunchInfo info = dynamicInfo();
  info.batch = Expr::var("batch");
  info.a.batchStride = Expr::var("stride_a"), info.b.batchStride = Expr::var("stride_b");
  info.c.batchStride = Expr::var("stride_c"), info.d.batchStride = Expr::var("stride_d");
  return info;
}
#define EXPECT_BATCH_FAILS(args, info, diag, text)                                                                     \
  do {                                                                                                                 \
    MaybeFailure failed = check(args, info);                                                                           \
    ASSERT_TRUE(failed);                                                                                               \
    EXPECT_EQ(failed->id, Diag::diag) << failed->str();                                                                \
    EXPECT_NE(failed->str().find(text), std::string::npos) << failed->str();                                           \
  } while (false)
} // namespace

TEST(CheckBatch, StridesOfInputsMayBeAnything) {
  EXPECT_FALSE(check(goodBatch(), batchInfo()));
  LaunchArgs args = goodBatch();
  args.strideA = 0, args.strideB = 1, args.beta = 1, args.strideC = 0;
  EXPECT_FALSE(check(args, batchInfo()));
  args.batch = 0;
  EXPECT_FALSE(check(args, batchInfo()));
}

// The struct's defaults serve one product, whatever else is in its strides.
TEST(CheckBatch, OfOneProductNoStrideIsRead) {
  LaunchArgs args = goodBatch();
  args.batch = 1, args.strideA = args.strideB = args.strideC = args.strideD = -7, args.beta = 1;
  EXPECT_FALSE(check(args, batchInfo()));
  EXPECT_EQ(launchVariable(args, 132, "stride_a"), 0);
  args.batch = 2;
  EXPECT_EQ(launchVariable(args, 132, "stride_d"), -7);
}

TEST(CheckBatch, NegativeNumbers) {
  LaunchArgs args = goodBatch();
  args.batch = -1;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_negative, "`batch` is -1");
  args = goodBatch();
  args.strideB = -8;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_negative, "`stride_b` is -8");
  args = goodBatch();
  args.strideC = -8; // without beta nobody looks
  EXPECT_FALSE(check(args, batchInfo()));
}

TEST(CheckBatch, WhatIsCompiledIn) {
  EXPECT_BATCH_FAILS(goodBatch(), dynamicInfo(), launch_fixed, "`batch` is 4; this kernel is compiled for 1");
  LaunchInfo info = batchInfo();
  info.b.batchStride = 0;
  EXPECT_BATCH_FAILS(goodBatch(), info, launch_fixed, "`stride_b` is 2400; this kernel is compiled for 0");
}

// 100 lines of 60: behind each other from 6000 on; in rows of 240 four of them, 60 apart.
TEST(CheckBatch, MatricesOfDShareNoElement) {
  LaunchArgs args = goodBatch();
  args.strideD = 5999;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_batch_overlap, "`stride_d` is 5999");
  args.strideD = 0;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_batch_overlap, "of 100 lines of 60 elements, 60 apart");
  args.strideD = 60, args.ldd = 240;
  EXPECT_FALSE(check(args, batchInfo()));
  args.ldd = 239;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_batch_overlap, "239 apart");
  args.ldd = 240, args.strideD = 59;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_batch_overlap, "`stride_d` is 59");
  args.batch = 1;
  EXPECT_FALSE(check(args, batchInfo()));
}

TEST(CheckBatch, AllMatricesCountWhereDOverlapsAnOperand) {
  LaunchArgs args = goodBatch();
  args.a = args.d + 3 * 6000 * 2; // the fourth D
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_overlap, "`d` overlaps `a`");
  args = goodBatch();
  args.beta = 1, args.c = args.d;
  EXPECT_FALSE(check(args, batchInfo()));
  args.strideC = 7000;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_overlap, "`d` overlaps `c`");
}

TEST(CheckBatch, LargerThanAddresses) {
  LaunchArgs args = goodBatch();
  args.strideA = INT64_MAX / 4;
  EXPECT_BATCH_FAILS(args, batchInfo(), launch_batch_large, "`a` is larger");
}

// u64, s32, tensor map, f32, u64: 0, 8, 64, 192, 200 by the rules of natural alignment, worked out by hand.
TEST(Prepare, TheParameterBlockIsLaidOutAsTheEntryDeclaresIt) {
  KernelInfo kernel;
  kernel.name = "gemm";
  kernel.grid = {ceilDiv(Expr::var("m"), Expr(32)), ceilDiv(Expr::var("n"), Expr(32)), Expr(1)};
  kernel.maps.push_back({"a_map",
                         "a",
                         Elem::bf16,
                         {Expr::var("k"), Expr::var("m")},
                         {Expr::var("lda") * Expr(2)},
                         {64, 128},
                         ptx::TmaSwizzle::b128});
  kernel.params = {{ParamInfo::Pointer, "d", ptx::Type::u64, "d", 0},
                   {ParamInfo::Int, "ldd", ptx::Type::s32, "", Expr::var("ldd")},
                   {ParamInfo::TensorMap, "a_map", ptx::Type::b8, "a_map", 0},
                   {ParamInfo::Float, "alpha", ptx::Type::f32, "alpha", 0},
                   {ParamInfo::Int, "count", ptx::Type::u64, "", Expr::var("m") * Expr::var("n")}};
  LaunchArgs args = plainArgs();
  args.alpha = 1.5f;
  TensorMapArgs seen;
  auto encode = [&](llvm::StringRef name, const TensorMapArgs &map, std::byte *out) -> MaybeFailure {
    EXPECT_EQ(name, "a_map");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(out) % 64, 0u);
    seen = map;
    std::memset(out, 0xee, 128);
    return std::nullopt;
  };
  PreparedKernel prepared;
  ASSERT_FALSE(prepareKernel(kernel, args, 132, encode, prepared));
  EXPECT_EQ(prepared.grid, (std::array<uint32_t, 3>{4, 2, 1}));
  EXPECT_FALSE(prepared.empty);
  EXPECT_EQ(prepared.paramBytes, 208u);
  EXPECT_EQ(std::vector<uint16_t>(prepared.offsets.begin(), prepared.offsets.end()),
            (std::vector<uint16_t>{0, 8, 64, 192, 200}));

  std::vector<unsigned char> expected(208, 0);
  const unsigned char d[] = {0, 0, 4}, ldd[] = {60}, alpha[] = {0, 0, 0xc0, 0x3f}, count[] = {0x70, 0x17};
  std::memcpy(&expected[0], d, sizeof(d)); // 0x40000
  std::memcpy(&expected[8], ldd, sizeof(ldd));
  std::memset(&expected[64], 0xee, 128);
  std::memcpy(&expected[192], alpha, sizeof(alpha)); // 1.5f = 0x3fc00000
  std::memcpy(&expected[200], count, sizeof(count)); // 6000 = 0x1770
  EXPECT_EQ(std::memcmp(prepared.params.data(), expected.data(), expected.size()), 0);

  EXPECT_EQ(seen.address, 0x10000u);
  EXPECT_EQ(std::vector<uint64_t>(seen.dims.begin(), seen.dims.end()), (std::vector<uint64_t>{40, 100}));
  EXPECT_EQ(std::vector<uint64_t>(seen.strides.begin(), seen.strides.end()), (std::vector<uint64_t>{80}));
  EXPECT_EQ(std::vector<uint32_t>(seen.box.begin(), seen.box.end()), (std::vector<uint32_t>{64, 128}));
}

// What a tensor map describes lies so many bytes behind its buffer's start, and never behind the workspace's end.
TEST(Prepare, TensorMapsHaveOffsets) {
  KernelInfo kernel;
  kernel.name = "gemm";
  kernel.maps.push_back({"a_map",
                         "workspace",
                         Elem::bf16,
                         {Expr::var("k"), Expr::var("m")},
                         {Expr(128)},
                         {64, 128},
                         ptx::TmaSwizzle::b128,
                         Expr::var("m") * 256});
  kernel.params = {{ParamInfo::TensorMap, "a_map", ptx::Type::b8, "a_map", 0}};
  LaunchArgs args = plainArgs(); // m = 100
  args.workspace = 0x50000;
  args.workspaceBytes = 25600;
  uint64_t address = 0;
  auto encode = [&](llvm::StringRef, const TensorMapArgs &map, std::byte *) -> MaybeFailure {
    address = map.address;
    return std::nullopt;
  };
  PreparedKernel prepared;
  ASSERT_FALSE(prepareKernel(kernel, args, 132, encode, prepared));
  EXPECT_EQ(address, 0x50000u + 25600u);
  args.workspaceBytes = 25599;
  MaybeFailure failed = prepareKernel(kernel, args, 132, encode, prepared);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->str(), "`offset of tensor map a_map` of kernel `gemm` is 25600; allowed: 0 to 25599");
  kernel.maps[0].buffer = "a";
  ASSERT_FALSE(prepareKernel(kernel, args, 132, encode, prepared));
  EXPECT_EQ(address, args.a + 25600u);
  kernel.maps[0].offset = Expr(-1);
  EXPECT_TRUE(prepareKernel(kernel, args, 132, encode, prepared));
  kernel.maps[0].offset = Expr::var("m") * (int64_t(1) << 60);
  EXPECT_TRUE(prepareKernel(kernel, args, 132, encode, prepared)); // has no value
}

TEST(Prepare, AnEmptyGridIsNoLaunch) {
  KernelInfo kernel;
  kernel.grid[1] = Expr::var("n");
  LaunchArgs args;
  PreparedKernel prepared;
  ASSERT_FALSE(prepareKernel(kernel, args, 132, noMaps, prepared));
  EXPECT_TRUE(prepared.empty);
}

TEST(Prepare, ValuesOutOfRangeAreFailures) {
  auto fails = [](KernelInfo kernel, LaunchArgs args) {
    PreparedKernel prepared;
    MaybeFailure failed = prepareKernel(kernel, args, 132, noMaps, prepared);
    EXPECT_TRUE(failed);
    return failed ? failed->str() : "";
  };
  KernelInfo kernel;
  kernel.name = "gemm";
  LaunchArgs args = plainArgs();
  kernel.grid[1] = Expr(65536);
  EXPECT_EQ(fails(kernel, args), "`grid.y` of kernel `gemm` is 65536; allowed: 0 to 65535");
  kernel.grid[1] = Expr::var("unknown");
  EXPECT_EQ(fails(kernel, args), "`grid.y` of kernel `gemm` has no value here: `unknown`");
  kernel.grid[1] = Expr(1);
  kernel.params = {{ParamInfo::Int, "m", ptx::Type::s32, "", Expr::var("m")}};
  args.m = int64_t(1) << 31;
  EXPECT_EQ(fails(kernel, args), "`m` of kernel `gemm` is 2147483648; allowed: -2147483648 to 2147483647");
  kernel.params = {{ParamInfo::Int, "u", ptx::Type::u32, "", Expr(-1)}};
  EXPECT_EQ(fails(kernel, args), "`u` of kernel `gemm` is -1; allowed: 0 to 4294967295");
}

TEST(Prepare, SourcesThatDoNotExistAreFailures) {
  for (ParamInfo::Kind kind : {ParamInfo::Pointer, ParamInfo::Float, ParamInfo::TensorMap}) {
    KernelInfo kernel;
    kernel.name = "gemm";
    kernel.params = {{kind, "p", ptx::Type::u64, "nothing", 0}};
    PreparedKernel prepared;
    MaybeFailure failed = prepareKernel(kernel, plainArgs(), 132, noMaps, prepared);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->str(), "parameter `p` of kernel `gemm` names `nothing`, which does not exist");
  }
}

TEST(Prepare, TooManyParametersAreAFailureNotAnOverflow) {
  KernelInfo kernel;
  kernel.name = "gemm";
  kernel.params.assign(PreparedKernel::maxParamBytes / 8 + 1, {ParamInfo::Pointer, "p", ptx::Type::u64, "a", 0});
  PreparedKernel prepared;
  MaybeFailure failed = prepareKernel(kernel, plainArgs(), 132, noMaps, prepared);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_params);
  kernel.params.pop_back();
  EXPECT_FALSE(prepareKernel(kernel, plainArgs(), 132, noMaps, prepared));
}
