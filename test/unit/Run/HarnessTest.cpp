// One run from request to report, on a host executor: what is uploaded, launched, sampled, fallen back to, reported.
#include "Naive.h"
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::run;
using naive::HostExecutor;

namespace {
std::optional<Code> noFallback(Fallback) {
  ADD_FAILURE() << "no fallback is needed";
  return std::nullopt;
}
RunRequest request(int64_t m, int64_t n, int64_t k) {
  RunRequest request;
  request.problem = naive::sizes(m, n, k);
  return request;
}
std::string table(const RunReport &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  report.printTable(os);
  return text;
}
} // namespace

TEST(Harness, ARightKernelIsVerified) {
  HostExecutor executor;
  auto report = runGemm(naive::code(), noFallback, request(33, 20, 17), executor);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_TRUE(report->ok()) << report->verification.str();
  EXPECT_TRUE(report->launched);
  EXPECT_EQ(report->fallback, "");
  EXPECT_NE(table(*report).find("33 x 20 x 17"), std::string::npos);
  EXPECT_NE(table(*report).find("verified  yes: all 660 elements bit-exact"), std::string::npos) << table(*report);
}

TEST(Harness, AWrongElementIsNot) {
  HostExecutor executor;
  executor.after = [](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.d)[5] ^= 1; };
  auto report = runGemm(naive::code(), noFallback, request(33, 20, 17), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_FALSE(report->ok());
  EXPECT_NE(table(*report).find("verified  no"), std::string::npos);
  EXPECT_NE(table(*report).find("first d[0, 5]"), std::string::npos) << table(*report);
}

TEST(Harness, AWriteIntoThePaddingIsAViolation) {
  HostExecutor executor;
  RunRequest wanted = request(4, 5, 6);
  wanted.problem.ldd = 8;
  executor.after = [](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.d)[6] = 0; };
  auto report = runGemm(naive::code(), noFallback, wanted, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_FALSE(report->ok());
  ASSERT_TRUE(report->verification.guard);
  EXPECT_EQ(report->verification.guard->buffer, "d");
}

TEST(Harness, AWriteIntoAnInputIsAViolation) {
  HostExecutor executor;
  executor.after = [](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.b)[3] ^= 1; };
  auto report = runGemm(naive::code(), noFallback, request(4, 5, 6), executor);
  ASSERT_TRUE(bool(report));
  ASSERT_TRUE(report->verification.guard);
  EXPECT_EQ(report->verification.guard->buffer, "b");
  EXPECT_EQ(report->verification.guard->offset, 6);
}

TEST(Harness, WhatMustNotBeReadIsANullPointer) {
  HostExecutor executor;
  RunRequest wanted = request(4, 5, 6);
  ASSERT_TRUE(runGemm(naive::code(), noFallback, wanted, executor)->ok());
  EXPECT_EQ(executor.launched.back().c, 0u);
  EXPECT_NE(executor.launched.back().a, 0u);
  wanted.problem.alpha = 0;
  wanted.problem.beta = 2;
  ASSERT_TRUE(runGemm(naive::code(), noFallback, wanted, executor)->ok());
  EXPECT_EQ(executor.launched.back().a, 0u);
  EXPECT_EQ(executor.launched.back().b, 0u);
  EXPECT_NE(executor.launched.back().c, 0u);
  wanted = request(4, 5, 0); // K = 0
  ASSERT_TRUE(runGemm(naive::code(), noFallback, wanted, executor)->ok());
  EXPECT_EQ(executor.launched.back().a, 0u);
}

TEST(Harness, InPlaceSharesTheAddress) {
  HostExecutor executor;
  RunRequest wanted = request(9, 5, 6);
  wanted.problem.beta = 3;
  wanted.problem.inPlace = true;
  auto report = runGemm(naive::code(), noFallback, wanted, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_TRUE(report->ok()) << report->verification.str();
  EXPECT_EQ(executor.launched.back().c, executor.launched.back().d);
}

TEST(Harness, MisalignmentReachesTheKernel) {
  HostExecutor executor;
  RunRequest wanted = request(9, 5, 6);
  wanted.problem.misalign = 2;
  ASSERT_TRUE(runGemm(naive::code(), noFallback, wanted, executor)->ok());
  EXPECT_EQ(executor.launched.back().a % 256, 2u);
  EXPECT_EQ(executor.launched.back().d % 256, 2u);
}

TEST(Harness, AnEmptyResultLaunchesNothing) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}}) {
    HostExecutor executor;
    auto report = runGemm(naive::code(), noFallback, request(m, n, 6), executor);
    ASSERT_TRUE(bool(report));
    EXPECT_TRUE(report->ok());
    EXPECT_FALSE(report->launched);
    EXPECT_TRUE(executor.launched.empty());
    EXPECT_NE(table(*report).find("nothing to launch"), std::string::npos);
  }
}

TEST(Harness, AnUnmetRequirementTakesTheFallbackAndSaysSo) {
  HostExecutor executor;
  Code first = naive::code(), second = naive::code();
  first.info.requirements = {equal(Expr::var("lda") % Expr(8), Expr(0))};
  second.info.kernels[0].name = "slow";
  int compiled = 0;
  auto fallback = [&](Fallback kind) -> std::optional<Code> {
    ++compiled;
    return kind == Fallback::plain ? std::optional(second) : std::nullopt;
  };
  auto report = runGemm(first, fallback, request(9, 5, 16), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(compiled, 0);
  report = runGemm(first, fallback, request(9, 5, 17), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(compiled, 2); // there is no copying one
  EXPECT_EQ(report->fallback, "lda % 8 == 0");
  EXPECT_EQ(report->info.kernels[0].name, "slow");
  EXPECT_NE(table(*report).find("fallback, because `lda % 8 == 0` does not hold"), std::string::npos);
  second = first;
  report = runGemm(first, fallback, request(9, 5, 17), executor);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::launch_requirement);
}

// The copying fallback is taken where what it requires holds, else the plain one.
TEST(Harness, FallbacksAreTriedInTheirOrder) {
  HostExecutor executor;
  Code first = naive::code();
  first.info.requirements = {equal(Expr::var("lda") % Expr(8), Expr(0))};
  auto fallback = [&](Fallback kind) -> std::optional<Code> {
    Code code = naive::code();
    code.info.kernels[0].name = kind == Fallback::repack ? "copies" : "slow";
    if (kind == Fallback::repack)
      code.info.requirements = {less(Expr(8), Expr::var("n"))};
    return code;
  };
  auto report = runGemm(first, fallback, request(9, 5, 17), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->info.kernels[0].name, "slow");
  report = runGemm(first, fallback, request(9, 10, 17), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->info.kernels[0].name, "copies");
}

TEST(Harness, FindingsOfTheEmulatorAreNoSuccess) {
  HostExecutor executor;
  executor.outcome.findings = {"ptx:12: error [mem] store outside every allocation"};
  auto report = runGemm(naive::code(), noFallback, request(9, 5, 6), executor);
  ASSERT_TRUE(bool(report));
  EXPECT_FALSE(report->ok());
  EXPECT_NE(table(*report).find("ptx:12"), std::string::npos);
  executor.outcome.incomplete = true;
  report = runGemm(naive::code(), noFallback, request(9, 5, 6), executor);
  EXPECT_NE(report->verification.str().find("incomplete"), std::string::npos);
}

TEST(Harness, ASampleIsAskedForAndItsTilesAreChecked) {
  HostExecutor executor;
  executor.outcome.sampled = true;
  executor.outcome.clustersRun = 2;
  executor.outcome.clustersTotal = 6;
  executor.work = [](const Code &code, const LaunchArgs &args) { // two of the 32 x 32 tiles
    for (auto [row, col] : {std::pair<int64_t, int64_t>{0, 0}, {32, 32}}) {
      LaunchArgs part = args;
      part.m = part.n = 32;
      part.a += row * args.lda * 2;
      part.b += col * args.ldb * 2;
      part.d += (row * args.ldd + col) * 2;
      naive::gemm(code.info, part);
    }
  };
  RunRequest wanted = request(64, 96, 40);
  wanted.ctas = 2;
  auto report = runGemm(naive::code(), noFallback, wanted, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(executor.choices.back().sampleClusters, 2u);
  EXPECT_TRUE(report->ok()) << report->verification.str();
  EXPECT_NE(table(*report).find("2 sampled tiles"), std::string::npos);
  executor.outcome.clustersRun = 3; // one tile is missing
  EXPECT_FALSE(runGemm(naive::code(), noFallback, wanted, executor)->ok());
}

TEST(Harness, LargeProblemsAreSampledOnTheEmulatorOnly) {
  HostExecutor executor;
  executor.work = [](const Code &, const LaunchArgs &) {};
  RunRequest wanted = request(1024, 1024, 1024); // 2.1 GFLOP
  auto report = runGemm(naive::code(), noFallback, wanted, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_GT(executor.choices.back().sampleClusters, 0u);
  ASSERT_FALSE(report->remarks.empty());
  EXPECT_NE(report->remarks.back().find("sample"), std::string::npos);
}

TEST(Harness, ChosenSizesAreTold) {
  HostExecutor executor;
  RunRequest wanted;
  wanted.problem.n = 8;
  wanted.problem.defaultSize = 40;
  auto report = runGemm(naive::code(), noFallback, wanted, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->remarks, (std::vector<std::string>{"dynamic sizes not given: m = 40, k = 40 taken"}));
}

TEST(Harness, WorkspaceIsProvided) {
  HostExecutor executor;
  Code code = naive::code();
  code.info.workspace = Expr::var("m") * Expr(4);
  auto report = runGemm(code, noFallback, request(9, 5, 6), executor);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(executor.launched.back().workspaceBytes, 36u);
  EXPECT_EQ(executor.launched.back().workspace % 256, 0u);
  code.info.workspace = Expr::var("m") * Expr(int64_t(1) << 50);
  EXPECT_EQ(runGemm(code, noFallback, request(9, 5, 6), executor).failure().id, Diag::run_too_large);
  code.info.workspace = Expr::var("nothing");
  EXPECT_EQ(runGemm(code, noFallback, request(9, 5, 6), executor).failure().id, Diag::launch_no_value);
}

TEST(Harness, RepeatedRunsEndWithTheFirstThatIsNotRight) {
  HostExecutor executor;
  RunRequest wanted = request(9, 5, 6);
  auto report = runRepeatedly(naive::code(), noFallback, wanted, 4, executor);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->runs, 4u);
  wanted.problem.seed += 3;
  EXPECT_EQ(runGemm(naive::code(), noFallback, wanted, executor)->dHash, report->dHash); // each has its own inputs

  unsigned launches = 0;
  executor.after = [&](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.d)[5] ^= ++launches == 3; };
  report = runRepeatedly(naive::code(), noFallback, wanted, 20, executor);
  ASSERT_TRUE(bool(report));
  EXPECT_FALSE(report->ok());
  EXPECT_EQ(report->runs, 3u);
  EXPECT_EQ(launches, 3u);
}

// What was made while the device was opened is used once: a repeated run has another seed.
TEST(Harness, InputsMadeBeforeGiveTheSameReport) {
  for (InputKind kind : {InputKind::integer, InputKind::normal, InputKind::special})
    for (bool wrong : {false, true}) {
      RunRequest wanted = request(33, 20, 17);
      wanted.problem.kind = kind;
      wanted.problem.beta = 1;
      RunRequest early = wanted;
      auto inputs = makeInputs(naive::code().info, wanted);
      ASSERT_TRUE(bool(inputs));
      EXPECT_TRUE((*inputs)->reference);
      early.inputs = *inputs;
      std::vector<std::string> texts;
      for (const RunRequest &one : {wanted, early}) {
        HostExecutor executor;
        if (wrong)
          executor.after = [](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.d)[100] ^= 0x4000; };
        auto report = runRepeatedly(naive::code(), noFallback, one, 2, executor);
        ASSERT_TRUE(bool(report)) << report.failure().str();
        EXPECT_EQ(report->ok(), !wrong);
        EXPECT_EQ(report->runs, wrong ? 1u : 2u);
        texts.push_back(report->verification.str() + std::to_string(report->dHash));
      }
      EXPECT_EQ(texts[0], texts[1]);
    }
}

TEST(Harness, OnlySmallReferencesAreMadeBefore) {
  auto deep = makeInputs(naive::code().info, request(8, 8, 5000000));
  ASSERT_TRUE(bool(deep));
  EXPECT_FALSE((*deep)->reference);
  auto wide = makeInputs(naive::code().info, request(2500, 2500, 1));
  ASSERT_TRUE(bool(wide));
  EXPECT_FALSE((*wide)->reference);
  EXPECT_FALSE(makeInputs(naive::code().info, request(-1, 8, 8)));
}

TEST(Harness, TheReportIsJsonToo) {
  HostExecutor executor;
  auto report = runGemm(naive::code(), noFallback, request(9, 5, 6), executor);
  std::string text;
  llvm::raw_string_ostream os(text);
  report->printJson(os);
  EXPECT_NE(text.find("\"verified\": true"), std::string::npos) << text;
  EXPECT_NE(text.find("\"m\": 9"), std::string::npos);
}
