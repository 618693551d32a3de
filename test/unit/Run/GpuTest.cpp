// The GPU executor and the benchmark over the fake driver: memory is the host's, a launch runs the naive loop, time
// passes only in launches.
#include "Fake.h"
#include "Naive.h"
#include "gemmc/Run/SuiteReport.h"
#include <cmath>
#include <map>
#include <set>
#include <utility>

using namespace gemmc;
using namespace gemmc::run;

namespace {
/// A kernel whose parameters are everything the naive loop needs.
Code gpuCode() {
  Code code = naive::code();
  code.ptx = ".version 8.0\n.target sm_90a\n";
  ptx::KernelInfo &kernel = code.info.kernels[0];
  for (const char *name : {"a", "b", "c", "d"})
    kernel.params.push_back({ptx::ParamInfo::Pointer, name, ptx::Type::u64, name, 0});
  for (const char *name : {"m", "n", "k", "lda", "ldb", "ldc", "ldd"})
    kernel.params.push_back({ptx::ParamInfo::Int, name, ptx::Type::s64, "", Expr::var(name)});
  for (const char *name : {"alpha", "beta"})
    kernel.params.push_back({ptx::ParamInfo::Float, name, ptx::Type::f32, name, 0});
  return code;
}
LaunchArgs argsOf(void **params) {
  LaunchArgs args;
  uint64_t *addresses[] = {&args.a, &args.b, &args.c, &args.d};
  int64_t *numbers[] = {&args.m, &args.n, &args.k, &args.lda, &args.ldb, &args.ldc, &args.ldd};
  for (int i = 0; i < 4; ++i)
    std::memcpy(addresses[i], params[i], 8);
  for (int i = 0; i < 7; ++i)
    std::memcpy(numbers[i], params[4 + i], 8);
  float factors[2];
  for (int i = 0; i < 2; ++i)
    std::memcpy(&factors[i], params[11 + i], 4);
  args.alpha = factors[0], args.beta = factors[1];
  return args;
}
std::optional<Code> noOtherKernel(Fallback) { return std::nullopt; }

class GpuTest : public FakeTest {
protected:
  void SetUp() override {
    FakeTest::SetUp();
    for (const ptx::ParamInfo &param : code.info.kernels[0].params) // launches that are prepared go as graphs
      fake->paramBytes["gemm"].push_back(ptx::bitsOf(param.type) / 8);
    fake->onLaunch = [this](const FakeLaunch &, void **params) {
      LaunchArgs args = argsOf(params);
      naive::gemm(code.info, args);
      if (after)
        after(args);
    };
  }
  Outcome<RunReport> run(const ProblemOptions &options) {
    RunRequest request;
    request.problem = options;
    auto gpu = makeGpu(device());
    return runGemm(code, noOtherKernel, request, *gpu);
  }
  Code code = gpuCode();
  std::function<void(const LaunchArgs &)> after;
};
} // namespace

TEST_F(GpuTest, ARunIsVerifiedAndTimed) {
  ProblemOptions options = naive::sizes(20, 30, 40);
  options.beta = 1;
  options.misalign = 4;
  auto report = run(options);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_TRUE(report->ok()) << report->verification.str();
  EXPECT_EQ(report->where, "Fake H200");
  EXPECT_NEAR(report->launch.seconds, 100e-6, 1e-9);
  EXPECT_EQ(report->args.a % 256, 4u);
}

TEST_F(GpuTest, AWriteInFrontOfOrBehindABufferIsFound) {
  for (int64_t offset : {-1, 20 * 30}) {
    after = [&](const LaunchArgs &args) { reinterpret_cast<uint16_t *>(args.d)[offset] = 0; };
    auto report = run(naive::sizes(20, 30, 40));
    ASSERT_TRUE(bool(report));
    EXPECT_FALSE(report->ok());
    ASSERT_TRUE(report->verification.guard);
    EXPECT_EQ(report->verification.guard->buffer, "d");
    EXPECT_EQ(report->verification.guard->offset, offset * 2);
  }
}

TEST_F(GpuTest, ADeadContextIsAFailureWithTheKernelsName) {
  auto gpu = makeGpu(device());
  RunRequest request;
  request.problem = naive::sizes(4, 4, 4);
  after = [&](const LaunchArgs &) { fake->failing["cuStreamSynchronize"] = cuda::illegalAddress; };
  auto report = runGemm(code, noOtherKernel, request, *gpu);
  fake->failing.clear();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::driver_context_dead);
  EXPECT_NE(report.failure().str().find("running kernel `gemm`"), std::string::npos);
}

TEST_F(GpuTest, RepeatedRunsLoadTheKernelOnceAndMeasureNothing) {
  RunRequest request;
  request.problem = naive::sizes(20, 30, 40);
  auto gpu = makeGpu(device());
  auto report = runRepeatedly(code, noOtherKernel, request, 5, *gpu);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(fake->launches.size(), 5u);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "cuModuleLoadDataEx"), 1);
  EXPECT_EQ(report->launch.seconds, 0);
}

TEST_F(GpuTest, MachineCodeIsLoadedInPlaceOfThePtx) {
  code.cubin = "\x7f"
               "ELF of this kernel";
  std::string image;
  fake->onLoad = [&](const void *loaded) { image = static_cast<const char *>(loaded); };
  auto report = run(naive::sizes(20, 30, 40));
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(image, code.cubin);
}

TEST_F(GpuTest, OtherTargetsDoNotRunHere) {
  fake->attributes[75] = 8;
  auto report = run(naive::sizes(4, 4, 4));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::device_target);
}

namespace {
BenchRequest benchRequest(int64_t size) {
  BenchRequest request;
  request.problem = naive::sizes(size, size, size, InputKind::normal);
  request.warmUpSeconds = 0;
  request.rounds = 5;
  request.cublasLibrary = fakeLibrary;
  return request;
}
} // namespace

TEST(Bench, RotatingSetsExceedTheCache) {
  uint64_t mebi = uint64_t(1) << 20;
  EXPECT_EQ(rotatingSets(96 * mebi, 50 * mebi), 3u);
  EXPECT_EQ(rotatingSets(16 * mebi, 50 * mebi), 16u);  // 256 MiB
  EXPECT_EQ(rotatingSets(16 * mebi, 200 * mebi), 25u); // twice the cache
  EXPECT_EQ(rotatingSets(1, 50 * mebi), 1024u);
}

TEST(Bench, Medians) {
  EXPECT_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_EQ(medianOf({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(medianOf({}), 0);
}

TEST_F(GpuTest, BenchFindsTheBestAlgorithmAndTheRatio) {
  fake->onLaunch = nullptr;
  fake->algorithmMicroseconds = {130, 150, 90, 200, 110, 300};
  auto opened = device();
  auto report = runBench(Rival{"gemmc", code}, benchRequest(64), opened);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(report->batch, 1u); // 100 us are long enough
  EXPECT_EQ(report->algorithms, 6u);
  EXPECT_NEAR(report->ours.median, 100e-6, 1e-9);
  ASSERT_GE(report->cublas.size(), 4u);
  EXPECT_NEAR(report->cublas[0].median, 90e-6, 1e-9);
  EXPECT_EQ(report->cublas[0].name, "cuBLASLt algorithm 2 (family 62)");
  EXPECT_NEAR(*report->ratio(), 0.9, 1e-6);
  EXPECT_NEAR(*report->ratioToFirst(), 1.3, 1e-6);
  EXPECT_NEAR(report->ours.flops, 2.0 * 64 * 64 * 64 / 100e-6, 1e3);
  std::string text;
  llvm::raw_string_ostream os(text);
  report->printTable(os);
  EXPECT_NE(text.find("ratio to the best of 6 cuBLASLt algorithms: 0.900, to its first choice: 1.300"),
            std::string::npos)
      << text;
  report->printJson(os);
  EXPECT_NE(text.find("\"ratio\": 0.9"), std::string::npos) << text;
}

TEST_F(GpuTest, BenchRotatesItsBuffers) {
  fake->onLaunch = nullptr;
  std::set<uint64_t> inputs;
  fake->onLaunch = [&](const FakeLaunch &, void **params) { inputs.insert(argsOf(params).a); };
  auto opened = device();
  BenchRequest request = benchRequest(1024);
  request.versusCublas = false;
  auto report = runBench(Rival{"gemmc", code}, request, opened);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->sets, 43u); // 3 x 2 MiB + 256 bytes each (rounded up), 256 MiB in all
  EXPECT_EQ(inputs.size(), std::min<size_t>(report->sets, fake->launches.size()));
  EXPECT_FALSE(report->ratio());
}

TEST_F(GpuTest, ShortKernelsAreTimedInGraphs) {
  fake->onLaunch = nullptr;
  fake->launchMicroseconds = 4;
  fake->algorithmMicroseconds = {8, 2};
  auto opened = device();
  auto report = runBench(Rival{"gemmc", code}, benchRequest(64), opened);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(report->batch, 200u); // 1 ms would be 250: 200 are the most
  EXPECT_TRUE(report->graphs);
  EXPECT_NEAR(report->ours.median, 4e-6, 1e-9);
  EXPECT_NEAR(*report->ratio(), 0.5, 1e-6);
}

// The host must be done with a single launch before its first event is over: the launch in front of it still runs then.
TEST_F(GpuTest, SingleLaunchesFollowEachOther) {
  fake->onLaunch = nullptr;
  fake->algorithmMicroseconds = {130, 150};
  auto opened = device();
  BenchRequest request = benchRequest(64);
  auto report = runBench(Rival{"gemmc", code}, request, opened);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(report->batch, 1u);
  std::map<unsigned, unsigned> rows; // of events with nobody waiting in between: how often, by length
  unsigned row = 0;
  for (const std::string &call : fake->calls)
    if (call == "cuEventRecord")
      ++row;
    else if (call == "cuStreamSynchronize")
      ++rows[std::exchange(row, 0)];
  // Of a turn's five timings, behind a launch that is not told of; three contenders in five rounds.
  EXPECT_EQ(rows[request.turn.timings + 2], 15u + 1u); // and what chose the batch
  EXPECT_EQ(rows[1 + 2], 2u);                          // the brief timings of two algorithms
  EXPECT_EQ(rows[2 + 2], 2u);
  EXPECT_EQ(fake->events, 0) << "an event has stayed";
}

// In turns of a few launches everybody runs at the clock that all of them leave; in long ones each is alone with its
// own: launches back to back, and what was launched before the clock has settled is not timed.
TEST_F(GpuTest, LongTurns) {
  fake->onLaunch = nullptr;
  fake->paramBytes.clear(); // graphs are of batches only
  auto opened = device();
  BenchRequest request = benchRequest(64);
  request.versusCublas = false;
  request.rounds = 1;
  auto measure = [&](double microseconds, double turn) {
    fake->launchMicroseconds = microseconds;
    fake->calls.clear();
    request.turn.seconds = turn;
    auto report = runBench(Rival{"gemmc", code}, request, opened);
    EXPECT_TRUE(bool(report));
    EXPECT_EQ(report->turnSeconds, turn);
    EXPECT_NEAR(report->ours.median, microseconds * 1e-6, 1e-9);
    return std::pair(llvm::count(fake->calls, "cuGraphLaunch"), report->batch);
  };
  EXPECT_EQ(measure(6000, 0), std::pair(0l, 1u)); // one by one, no graph
  EXPECT_EQ(measure(190, 0), std::pair(0l, 1u));
  // Batches of 12 ms: one for the host's cost, two until 20 ms have passed, and five that are timed; one less if
  // nothing had to settle.
  EXPECT_EQ(measure(6000, 0.04), std::pair(8l, 2u));
  EXPECT_EQ(measure(6000, 0.11), std::pair(11l, 2u)); // five and five are as long as the turn
  EXPECT_EQ(measure(190, 0.11).second, 11u);          // 2 ms, not less
  EXPECT_EQ(measure(4, 0.11).second, 500u);
}

// A timer that says nothing ends a turn all the same.
TEST_F(GpuTest, TurnsEnd) {
  fake->onLaunch = nullptr;
  fake->launchMicroseconds = 0;
  auto opened = device();
  BenchRequest request = benchRequest(64);
  request.versusCublas = false;
  request.rounds = 1;
  request.turn.seconds = 0.01;
  EXPECT_TRUE(bool(runBench(Rival{"gemmc", code}, request, opened)));
}

TEST_F(GpuTest, OnlyWhoMultipliesTheSameMatricesMayRace) {
  auto opened = device();
  Code other = code;
  other.info.d.type = other.info.d.type == Elem::f32 ? Elem::f16 : Elem::f32;
  Rival rivals[] = {{"gemmc", code}, {"wide", other}};
  auto report = runBench(rivals, benchRequest(64), opened);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::bench_other_problem);
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(GpuTest, WhatIsOptionalRacesWhereItRuns) {
  fake->onLaunch = nullptr;
  auto opened = device();
  Code picky = code;
  picky.info.requirements = {less(Expr(4096), Expr::var("n"))};
  std::vector<Rival> rivals{{"gemmc", code}, {"picky", picky, true}, {"other", code, true}};
  auto report = runBench(rivals, benchRequest(64), opened);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  ASSERT_EQ(report->also.size(), 1u);
  EXPECT_EQ(report->also[0].name, "other");
  EXPECT_EQ(report->remark(), "1 of 2 alternatives do not run here");
  rivals[1].optional = false;
  report = runBench(rivals, benchRequest(64), opened);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::launch_requirement);
}

TEST_F(GpuTest, ASuiteSaysHowFarBehindTheFastestOfOursItIs) {
  BenchReport report;
  report.ours = {"gemmc", 12e-6, 12e-6, 12e-6, 0};
  report.cublas.push_back({"cuBLASLt", 15e-6, 15e-6, 15e-6, 0});
  EXPECT_FALSE(report.ofFastest());
  report.also = {{"slow", 13e-6, 13e-6, 13e-6, 0}, {"fast", 10e-6, 10e-6, 10e-6, 0}};
  EXPECT_EQ(report.fastest().name, "fast");
  EXPECT_DOUBLE_EQ(*report.ofFastest(), 1.2);
  SuiteReport suite;
  suite.entries.push_back({"one", "mid", report, "", 0});
  report.also.pop_back(); // ours is the fastest
  EXPECT_DOUBLE_EQ(*report.ofFastest(), 1);
  suite.entries.push_back({"two", "mid", report, "", 0});
  report.also.clear(); // counts in the ratio alone
  suite.entries.push_back({"three", "mid", report, "", 0});
  GroupMean mean = suite.means().front();
  EXPECT_EQ(mean.problems, 3u);
  EXPECT_EQ(mean.compared, 2u);
  EXPECT_NEAR(mean.ofFastest, std::sqrt(1.2), 1e-12);
  EXPECT_DOUBLE_EQ(mean.worstOfFastest, 1.2);
  std::string text;
  llvm::raw_string_ostream os(text);
  SuiteReport::printLine(os, suite.entries.front());
  EXPECT_NE(text.find("1.200 of the fastest of 3: fast\n"), std::string::npos) << text;
}

TEST_F(GpuTest, WithoutCublasTheBenchSaysWhy) {
  fake->onLaunch = nullptr;
  auto opened = device();
  BenchRequest request = benchRequest(64);
  request.cublasLibrary = "libcublasLt-that-is-not-there.so";
  auto report = runBench(Rival{"gemmc", code}, request, opened);
  ASSERT_TRUE(bool(report));
  EXPECT_TRUE(report->cublas.empty());
  EXPECT_NE(report->remark().find("not compared with cuBLASLt: no cuBLASLt here"), std::string::npos);
}

// Seconds of a device are dear: a slow algorithm is not timed to the end, and a slow kernel's host cost is not the
// median of a thousand launches. The first choice is timed all the same: there is a ratio to it.
TEST_F(GpuTest, WhatIsSlowIsMeasuredLessOften) {
  fake->onLaunch = nullptr;
  auto opened = device();
  auto matmuls = [&](std::vector<double> times) {
    fake->algorithmMicroseconds = std::move(times);
    fake->matmuls.clear();
    auto report = runBench(Rival{"gemmc", code}, benchRequest(64), opened);
    EXPECT_TRUE(bool(report));
    std::map<int, int> count;
    for (const FakeMatmul &matmul : fake->matmuls)
      ++count[matmul.algorithm];
    return std::pair(count, report->ratioToFirst().value_or(0));
  };
  auto [count, first] = matmuls({900, 100, 1000, 140});
  EXPECT_EQ(count[2], 2);
  EXPECT_GT(count[3], 4); // a finalist
  EXPECT_GT(count[0], 4);
  EXPECT_NEAR(first, 9, 1e-6);
  fake->launchMicroseconds = 6000;
  fake->launches.clear();
  BenchRequest request = benchRequest(64);
  request.versusCublas = false;
  ASSERT_TRUE(bool(runBench(Rival{"gemmc", code}, request, opened)));
  EXPECT_LT(fake->launches.size(), 100u);
}

TEST_F(GpuTest, CodeThatWasAssembledToSaveTimeMayFailToLoad) {
  code.cubin = "\x7f"
               "ELF of a newer Toolkit";
  for (bool ours : {true, false}) {
    code.assembled = ours;
    std::string image;
    fake->onLoad = [&](const void *loaded) { image = static_cast<const char *>(loaded); };
    fake->failing["cuModuleLoadDataEx"] = cuda::noBinaryForGpu;
    fake->failsOnce = true;
    auto report = run(naive::sizes(20, 30, 40));
    EXPECT_EQ(bool(report), ours);
    EXPECT_EQ(image, ours ? code.ptx : "");
  }
}

TEST_F(GpuTest, ABrokenAlgorithmIsNoCompetitor) {
  fake->onLaunch = nullptr;
  fake->failing["cublasLtMatmul"] = 13;
  auto opened = device();
  auto report = runBench(Rival{"gemmc", code}, benchRequest(64), opened);
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_TRUE(report->cublas.empty());
}

namespace {
/// An arena whose cuBLASLt multiplies, too: as our kernel has on the same set before it.
class VerifiedTest : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    after = [this](const LaunchArgs &args) { ours[args.d] = args; };
    fake->onMatmul = [this](const FakeMatmul &matmul) {
      auto found = ours.find(matmul.dAddress);
      if (found == ours.end() || matmul.algorithm == idle)
        return;
      naive::gemm(code.info, found->second);
      if (wrong.count(matmul.algorithm))
        reinterpret_cast<uint16_t *>(matmul.dAddress)[place] ^= 0x4000;
    };
    request = benchRequest(16);
    request.rounds = 1;
    request.verify = true;
  }
  Outcome<BenchReport> race(llvm::ArrayRef<Rival> rivals) {
    ours.clear();
    return runBench(rivals, request, device());
  }
  Outcome<BenchReport> race() { return race(Rival{"gemmc", code}); }
  std::vector<std::string> namesOf(llvm::ArrayRef<BenchEntry> entries) {
    std::vector<std::string> names;
    for (const BenchEntry &entry : entries)
      names.push_back(entry.name.substr(0, entry.name.find(" (")));
    return names;
  }
  BenchRequest request;
  std::map<uint64_t, LaunchArgs> ours; ///< By the address of D.
  std::set<int> wrong;
  int idle = -1;
  int64_t place = 5;
};
using Names = std::vector<std::string>;
} // namespace

TEST_F(VerifiedTest, AllResultsAreLookedAt) {
  auto report = race();
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(report->cublas.size(), 3u);
  EXPECT_EQ(report->verified, 4u);
  EXPECT_EQ(report->verification, "all 256 elements within the error bound");
  EXPECT_EQ(report->remark(), "");
  std::string text;
  llvm::raw_string_ostream os(text);
  report->printTable(os);
  EXPECT_NE(text.find("verified: 4 results each, all 256 elements"), std::string::npos) << text;
  report->printJson(os);
  EXPECT_NE(text.find("\"verified\": 4"), std::string::npos) << text;
  request.verify = false;
  report = race();
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->verified, 0u);
}

TEST_F(VerifiedTest, AWrongAlgorithmTakesNoPart) {
  wrong = {1}; // the fastest
  auto report = race();
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(namesOf(report->cublas), (Names{"cuBLASLt algorithm 2", "cuBLASLt algorithm 0"}));
  EXPECT_EQ(report->algorithms, 2u);
  EXPECT_NEAR(*report->ratio(), 1.1, 1e-6);
  EXPECT_TRUE(llvm::StringRef(report->remark())
                  .starts_with("cuBLASLt algorithm 1 (family 61) takes no part: 1 of 256 compared elements are wrong"))
      << report->remark();
  wrong = {0}; // its first choice
  report = race();
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->cublas.size(), 2u);
  EXPECT_FALSE(report->ratioToFirst());
  wrong = {}, idle = 2; // what our kernel has left in D is not its result
  report = race();
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(namesOf(report->cublas), (Names{"cuBLASLt algorithm 1", "cuBLASLt algorithm 0"}));
}

TEST_F(VerifiedTest, TheNextFastestTakesItsPlace) {
  fake->algorithmMicroseconds = {130, 40, 41, 42, 43, 50, 51, 52};
  wrong = {1, 2, 3, 4};
  auto report = race();
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(namesOf(report->cublas),
            (Names{"cuBLASLt algorithm 5", "cuBLASLt algorithm 6", "cuBLASLt algorithm 7", "cuBLASLt algorithm 0"}));
  EXPECT_NEAR(*report->ratio(), 0.5, 1e-6);
  fake->algorithmMicroseconds = {130, 5, 50, 52}; // a wrong one sets nobody's pace
  wrong = {1};
  report = race();
  ASSERT_TRUE(bool(report));
  EXPECT_NEAR(*report->ratio(), 0.5, 1e-6);
}

TEST_F(VerifiedTest, WhereNoneIsRightNobodyIsCompared) {
  wrong = {0, 1, 2};
  auto report = race();
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_FALSE(report->ratio());
  EXPECT_EQ(report->algorithms, 0u);
  EXPECT_EQ(report->verified, 1u);
  EXPECT_EQ(report->remarks.back(), "not compared with cuBLASLt: none of its algorithms takes part");
}

TEST_F(VerifiedTest, WhatLiesBetweenLinesIsLookedAtToo) {
  request.problem.ldd = 18;
  wrong = {2};
  place = 17;
  auto report = race();
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_NE(report->remark().find("`d` was overwritten outside its elements, at byte 35"), std::string::npos)
      << report->remark();
}

TEST_F(VerifiedTest, AWrongKernelEndsIt) {
  Rival other{"other", code};
  other.code.info.kernels[0].name = "other";
  fake->paramBytes["other"] = fake->paramBytes["gemm"];
  for (llvm::StringRef bad : {"gemm", "other"}) {
    fake->onLaunch = [&](const FakeLaunch &launch, void **params) {
      LaunchArgs args = argsOf(params);
      naive::gemm(code.info, args);
      if (launch.kernel == bad)
        reinterpret_cast<uint16_t *>(args.d)[7] ^= 0x4000;
    };
    auto report = race({Rival{"gemmc", code}, other});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.failure().id, Diag::bench_wrong);
    EXPECT_TRUE(llvm::StringRef(report.failure().str())
                    .starts_with(bad == "gemm" ? "`gemmc` is wrong, nothing" : "`other` is wrong, nothing"))
        << report.failure().str();
    request.verify = false; // nobody looks
    EXPECT_TRUE(bool(race({Rival{"gemmc", code}, other})));
    request.verify = true;
  }
}

TEST_F(VerifiedTest, WhoAddsUpOtherwiseIsNotCalledVerified) {
  Rival other{"other", code};
  other.code.info.accumulator = Elem::f16;
  auto report = race({Rival{"gemmc", code}, other});
  ASSERT_TRUE(bool(report)) << report.failure().str();
  EXPECT_EQ(report->verified, 4u);
  EXPECT_EQ(report->remark(), "`other` is not verified: it adds up otherwise than the first kernel");
}

TEST_F(VerifiedTest, ItStopsWhenItIsAskedTo) {
  request.stopped = [] { return true; };
  auto report = race();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failure().id, Diag::measuring_stopped);
}

TEST_F(GpuTest, WhatIsNegatedIsForCublasToo) {
  code.info.negated = true;
  auto report = runBench(Rival{"gemmc", code}, benchRequest(16), device());
  ASSERT_TRUE(bool(report)) << report.failure().str();
  ASSERT_FALSE(fake->matmuls.empty());
  float alpha = 0;
  std::memcpy(&alpha, fake->matmuls.back().alpha.data(), 4);
  EXPECT_EQ(alpha, -1);
}

namespace {
/// What the comparison of Repeat.cpp does.
void compareOnHost(void **params) {
  uint64_t values[4];
  for (int i = 0; i < 4; ++i)
    std::memcpy(&values[i], params[i], 8);
  auto [left, right, vectors, flag] = values;
  if (std::memcmp(reinterpret_cast<void *>(left), reinterpret_cast<void *>(right), vectors * 16) != 0)
    *reinterpret_cast<uint32_t *>(flag) |= 1;
}
} // namespace

TEST_F(GpuTest, StressedLaunchesMustHaveTheSameBits) {
  for (bool broken : {false, true}) {
    uint64_t launches = 0, mainD = 0;
    fake->onLaunch = [&](const FakeLaunch &launch, void **params) {
      if (launch.kernel == "compare")
        return compareOnHost(params);
      LaunchArgs args = argsOf(params);
      naive::gemm(code.info, args);
      mainD = mainD ? mainD : args.d;
      // Once in a while another result, as a race would give.
      if (broken && args.d == mainD && ++launches % 20 == 0)
        *reinterpret_cast<uint8_t *>(args.d) ^= 1;
    };
    RunRequest request;
    request.problem = ProblemOptions{};
    request.problem.defaultSize = 16;
    request.stress = 100;
    auto gpu = makeGpu(device());
    auto report = runGemm(code, noOtherKernel, request, *gpu);
    ASSERT_TRUE(report) << report.failure().str();
    EXPECT_EQ(report->launch.stressed, 100u);
    EXPECT_EQ(report->launch.different, broken ? 5u : 0u);
    EXPECT_EQ(report->ok(), !broken);
  }
}
