// `gemmc tune` over the fake driver: the fastest kernel is found and stored whole, what is known is skipped, a stop
// keeps what is finished.
#include "gemmc/Tune/Session.h"
#include "Fake.h"
#include "Temporary.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Plan/Plan.h"
#include "gemmc/Tune/Entries.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace gemmc;
using namespace gemmc::tune;

namespace {
class SessionTest : public FakeTest {
protected:
  void SetUp() override {
    FakeTest::SetUp();
    setenv("GEMMC_PTXAS", "/dev/null/ptxas", 1); // none: the fake driver takes PTX (an empty name has one looked for)
    fake->name = "NVIDIA H200";
    request.tune.top = 3;
    request.tune.rounds = 3;
    request.tune.warmUpSeconds = request.tune.settleSeconds = request.tune.finalSeconds = 0;
    request.tune.cublasLibrary = fakeLibrary;
    auto opened = Database::open(folder.file("tuning.db"), Database::Mode::write);
    ASSERT_TRUE(bool(opened));
    database.emplace(std::move(*opened));
  }
  void TearDown() override {
    unsetenv("GEMMC_PTXAS");
    FakeTest::TearDown();
  }
  Job job(const std::string &name, const std::string &problem) {
    auto spec = readSpec(diags.addSource(name, "problem: " + problem + "\n"), {}, diags, name);
    EXPECT_TRUE(spec);
    return {name, std::move(*spec)};
  }
  Outcome<unsigned> run(llvm::ArrayRef<Job> jobs) {
    auto opened = device();
    return tuneAll(jobs, request, opened, &*database, [&](const JobResult &result) {
      states.push_back(result.state);
      lines.push_back(result.str());
    });
  }
  /// Reports that all was measured to take `microseconds`, without a device.
  void pretend(double microseconds) {
    request.tuner = [=, this](const Spec &spec, const TuneRequest &, auto device) -> Outcome<TuneReport> {
      if (*spec.name == "broken")
        return Failure::make(Diag::launch_requirement, "n % 8 == 0");
      TuneReport report;
      report.device = device->name;
      report.final.ours.median = microseconds * 1e-6;
      ++measured;
      return report;
    };
  }

  Temporary folder;
  std::optional<Database> database;
  SessionRequest request;
  Diags diags;
  std::vector<JobResult::State> states;
  std::vector<std::string> lines;
  unsigned measured = 0;
};
using States = std::vector<JobResult::State>;
} // namespace

TEST_F(SessionTest, TheFastestKernelIsFoundAndStoredWhole) {
  // The fake clock: a kernel takes as long as its number of threads says, so the one with the fewest wins.
  std::vector<unsigned> threads;
  fake->onLaunch = [&](const FakeLaunch &launch, void **) {
    fake->launchMicroseconds = 50 + launch.config.blockX / 8.0;
    threads.push_back(launch.config.blockX);
  };
  fake->algorithmMicroseconds = {130, 120};
  Job one = job("one", "{m: 512, n: 512, k: 512}");
  auto failures = run(one);
  ASSERT_TRUE(bool(failures)) << failures.failure().str();
  EXPECT_EQ(*failures, 0u);
  auto row = database->find("NVIDIA H200", problemKey(one.spec)->text());
  ASSERT_TRUE(row && *row);
  EXPECT_NE((*row)->choice.find("tile.block="), std::string::npos) << (*row)->choice;
  unsigned fewest = *std::min_element(threads.begin(), threads.end());
  EXPECT_NEAR((*row)->seconds, (50 + fewest / 8.0) * 1e-6, 1e-9);
  EXPECT_NEAR((*row)->cublasSeconds, 120e-6, 1e-9);
  EXPECT_EQ((*row)->sizes, "512x512x512");
  EXPECT_EQ((*row)->date, today());
  EXPECT_EQ(states, States{JobResult::measured});
  EXPECT_NE(lines[0].find("[1 of 1] one: "), std::string::npos) << lines[0];
  // The stored words make the kernel that was measured.
  Spec with = one.spec;
  ASSERT_TRUE(applyChoice(with, (*row)->choice, diags));
  auto plan = makePlan(with, diags);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->threads, fewest);
}

/// It is the one product's measurement, without the time that cuBLASLt took for the batch.
TEST_F(SessionTest, ABatchThatIsOneProduct) {
  fake->algorithmMicroseconds = {130, 120};
  Job batch = job("batch", "{m: 16, n: 512, k: 512, batch: 4}\nb: {batch_stride: 0}"),
      one = job("one", "{m: 64, n: 512, k: 512}");
  ASSERT_TRUE(bool(run(batch)));
  auto row = database->find("NVIDIA H200", problemKey(one.spec)->text());
  ASSERT_TRUE(row && *row);
  EXPECT_EQ((*row)->sizes, "64x512x512");
  EXPECT_EQ((*row)->cublasSeconds, 0);
  ASSERT_TRUE(bool(run({batch, one})));
  EXPECT_EQ(states, (States{JobResult::measured, JobResult::kept, JobResult::kept}));
}

TEST_F(SessionTest, NobodyLeavesWhileTheClockSettles) {
  // For its first tenth of a second the device is slow for the kernel with the fewest threads, which is the fastest
  // one.
  using Clock = std::chrono::steady_clock;
  constexpr auto slow = std::chrono::milliseconds(100);
  std::optional<Clock::time_point> begun;
  unsigned fewest = ~0u;
  fake->onLaunch = [&](const FakeLaunch &launch, void **) {
    if (!begun)
      begun = Clock::now();
    const unsigned threads = launch.config.blockX;
    fewest = std::min(fewest, threads);
    fake->launchMicroseconds = threads == fewest && Clock::now() < *begun + slow ? 1000 : 50 + threads / 8.0;
  };
  request.tune.settleSeconds = 0.2;
  Job one = job("one", "{m: 512, n: 512, k: 512}");
  ASSERT_TRUE(bool(run(one)));
  auto row = database->find("NVIDIA H200", problemKey(one.spec)->text());
  ASSERT_TRUE(row && *row);
  EXPECT_NEAR((*row)->seconds, (50 + fewest / 8.0) * 1e-6, 1e-9);
}

TEST_F(SessionTest, WhatIsKnownIsSkipped) {
  pretend(10);
  std::vector<Job> jobs{job("one", "{m: 64, n: 64, k: 64}"), job("two", "{m: 128, n: 64, k: 64}")};
  ASSERT_TRUE(bool(run(jobs)));
  jobs.push_back(job("three", "{m: 256, n: 64, k: 64}"));
  ASSERT_TRUE(bool(run(jobs)));
  EXPECT_EQ(states,
            (States{JobResult::measured, JobResult::measured, JobResult::kept, JobResult::kept, JobResult::measured}));
  EXPECT_EQ(measured, 3u);
  EXPECT_NE(lines[2].find("(kept, of " + today() + ")"), std::string::npos) << lines[2];
  request.again = true;
  ASSERT_TRUE(bool(run(jobs)));
  EXPECT_EQ(measured, 6u);
}

/// Batches and products without k, too, and all of them may be taken elsewhere.
TEST_F(SessionTest, WhateverWasMeasuredIsKeptAndTaken) {
  pretend(10);
  std::vector<Job> jobs{job("batch", "{m: 64, n: 64, k: 64, batch: 4}"), job("none", "{m: 64, n: 64, k: 0}"),
                        job("empty", "{m: 64, n: 0, k: 64}"), job("any", "{m: dynamic, n: 64, k: 64, batch: dynamic}"),
                        job("no products", "{m: 64, n: 64, k: 64, batch: 0}")};
  request.tune.problem.batch = 3;
  auto first = run(llvm::ArrayRef(jobs).slice(3, 1));
  ASSERT_TRUE(bool(first)) << first.failure().str();
  ASSERT_TRUE(bool(run(llvm::ArrayRef(jobs).slice(3, 1))));
  request.tune.problem.batch.reset();
  jobs.erase(jobs.begin() + 3);
  ASSERT_TRUE(bool(run(jobs)));
  ASSERT_TRUE(bool(run(jobs)));
  EXPECT_EQ(llvm::count(states, JobResult::kept), 5) << llvm::join(lines, "\n");
  std::string text = printEntries(*database->all());
  for (const char *sizes : {"sizes: 4 of 64x64x64,", "sizes: 64x64x0,", "sizes: 3 of 4096x64x64,"})
    EXPECT_NE(text.find(sizes), std::string::npos) << sizes;
  auto back = readEntries(diags.addSource("table", text), diags);
  for (const Problem &problem : diags.all())
    ADD_FAILURE() << problem.message;
  ASSERT_TRUE(back);
  EXPECT_EQ(back->size(), 5u);
  EXPECT_EQ(measured, 5u);
}

TEST_F(SessionTest, OldKernelsAndOtherSizesAreMeasuredAgain) {
  pretend(10);
  Job fixed = job("one", "{m: 64, n: 64, k: 64}");
  ASSERT_TRUE(bool(run(fixed)));
  auto row = database->find("NVIDIA H200", problemKey(fixed.spec)->text());
  Tuned old = **row;
  old.kernels = kernelVersion - 1;
  EXPECT_FALSE(database->store(old));
  ASSERT_TRUE(bool(run(fixed)));
  EXPECT_EQ(measured, 2u);
}

TEST_F(SessionTest, AProblemThatFailsDoesNotEndTheOthers) {
  pretend(10);
  std::vector<Job> jobs{job("broken", "{m: 64, n: 64, k: 64}"), job("two", "{m: 128, n: 64, k: 64}")};
  auto failures = run(jobs);
  ASSERT_TRUE(bool(failures));
  EXPECT_EQ(*failures, 1u);
  EXPECT_EQ(states, (States{JobResult::failed, JobResult::measured}));
  EXPECT_NE(lines[0].find("[1 of 2] broken: this kernel is right only where"), std::string::npos) << lines[0];
}

TEST_F(SessionTest, AStopKeepsWhatIsFinished) {
  pretend(10);
  unsigned asked = 0;
  request.tune.stopped = [&] { return ++asked > 1; };
  std::vector<Job> jobs{job("one", "{m: 64, n: 64, k: 64}"), job("two", "{m: 128, n: 64, k: 64}")};
  auto failures = run(jobs);
  ASSERT_FALSE(failures);
  EXPECT_EQ(failures.failure().id, Diag::measuring_stopped);
  EXPECT_EQ(database->all()->size(), 1u);
}

TEST_F(SessionTest, AStopEndsBetweenRounds) {
  unsigned asked = 0;
  for (unsigned last : {2u, 6u, 12u, 16u}) {
    asked = 0;
    request.tune.stopped = [&] { return ++asked > last; };
    Job one = job("one", "{m: 128, n: 128, k: 64}");
    auto failures = run(one);
    ASSERT_FALSE(failures) << last;
    EXPECT_EQ(failures.failure().id, Diag::measuring_stopped);
    EXPECT_EQ(asked, last + 1);
  }
  EXPECT_TRUE(database->all()->empty());
}
