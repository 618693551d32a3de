// Loading the driver and opening a device: what goes wrong is a value that says what and why.
#include "Fake.h"
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
using LeaksAreWanted = __lsan::ScopedDisabler;
#define GEMMC_LEAKS_ARE_FOUND
#endif
#endif
#ifndef GEMMC_LEAKS_ARE_FOUND
struct LeaksAreWanted {};
#endif

using namespace gemmc;

TEST(NoDriver, AMissingLibrarySaysWhich) {
  auto driver = Driver::load("libcuda-that-is-not-there.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.failure().id, Diag::driver_missing);
  EXPECT_NE(driver.failure().str().find("libcuda-that-is-not-there.so.1"), std::string::npos);
}

TEST(NoDriver, ALibraryWithoutTheFunctionsIsNamed) {
  auto driver = Driver::load("libc.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.failure().id, Diag::driver_incomplete);
  EXPECT_NE(driver.failure().str().find("`cuInit`"), std::string::npos);
}

TEST(NoDriver, AFailureIsReportedWithItsHintsAsNotes) {
  Diags diags;
  Failure failure = Failure::make(Diag::device_too_old, "Old", 7, 5);
  failure.hint("buy another");
  failure.report(diags);
  ASSERT_EQ(diags.numErrors(), 1u);
  EXPECT_EQ(diags.all()[0].message, "`Old` has compute capability 7.5; gemmc needs 8.0 or newer");
  ASSERT_EQ(diags.all()[0].notes.size(), 1u);
  EXPECT_EQ(diags.all()[0].notes[0].id, Diag::runtime_hint);
  EXPECT_EQ(diags.all()[0].notes[0].message, "buy another");
  EXPECT_EQ(failure.str(), diags.all()[0].message + "; buy another");
}

// Each row of the table, filled by str() and by report(), gives the same text: str() has its own way with holes.
TEST(NoDriver, BothWaysToFillARowAgree) {
  Failure failures[] = {Failure::make(Diag::run_in_place),
                        Failure::make(Diag::cublas_missing, "x"),
                        Failure::make(Diag::launch_negative, "m", -1),
                        Failure::make(Diag::launch_fixed, "m", 2, 3),
                        Failure::make(Diag::driver_failed, "a", "b", 3, "d"),
                        Failure::make(Diag::device_target, "a", 1, 2, "c", "d"),
                        Failure::make(Diag::launch_ld, "lda", 1, "row", 2, 3, 4)};
  for (const Failure &failure : failures) {
    Diags diags;
    failure.report(diags);
    EXPECT_EQ(diags.all()[0].message, failure.str());
  }
}

class DriverTest : public FakeTest {};

TEST_F(DriverTest, OpensThePrimaryContextAndReadsTheDevice) {
  auto opened = device();
  EXPECT_EQ(opened->name, "Fake H200");
  EXPECT_EQ(opened->sms, 132u);
  EXPECT_EQ(opened->major, 9u);
  EXPECT_EQ(opened->sharedOptIn, 232448u);
  EXPECT_EQ(opened->l2Bytes, uint64_t(50) << 20);
  EXPECT_EQ(fake->retained, 1);
}

TEST_F(DriverTest, TakesTheCurrentContextWhenThereIsOne) {
  fake->currentContext = true;
  auto opened = device();
  EXPECT_EQ(fake->retained, 0);
  {
    Device::Scope scope(*opened);
  }
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "cuCtxPushCurrent_v2"), 0);
}

TEST_F(DriverTest, AScopeMakesTheContextCurrentAndLeavesAgain) {
  auto opened = device();
  {
    Device::Scope outer(*opened);
    Device::Scope inner(*opened); // already current: nothing to push
  }
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "cuCtxPushCurrent_v2"), 1);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "cuCtxPopCurrent_v2"), 1);
}

TEST_F(DriverTest, NoDeviceIsAReason) {
  fake->devices = 0;
  auto opened = Device::open(driver());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.failure().id, Diag::device_missing);
}

TEST_F(DriverTest, CuInitWithoutADeviceIsAReason) {
  fake->failing["cuInit"] = cuda::noDevice;
  auto loaded = Driver::load(fakeLibrary);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.failure().id, Diag::driver_failed);
  EXPECT_NE(loaded.failure().str().find("CUDA_ERROR_NO_DEVICE (100)"), std::string::npos);
  EXPECT_NE(loaded.failure().str().find("nvidia-smi"), std::string::npos);
}

TEST_F(DriverTest, AnOldDeviceIsRefused) {
  fake->attributes[75] = 7;
  fake->attributes[76] = 5;
  auto opened = Device::open(driver());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.failure().id, Diag::device_too_old);
  EXPECT_NE(opened.failure().str().find("7.5"), std::string::npos);
}

TEST_F(DriverTest, TargetsThatRunAndTargetsThatDoNot) {
  auto hopper = device();
  EXPECT_FALSE(hopper->supports("sm_80"));
  EXPECT_FALSE(hopper->supports("sm_90"));
  EXPECT_FALSE(hopper->supports("sm_90a"));
  fake->attributes[75] = 10;
  auto blackwell = device();
  EXPECT_FALSE(blackwell->supports("sm_80"));
  MaybeFailure specific = blackwell->supports("sm_90a"); // `a` code runs on exactly that architecture
  ASSERT_TRUE(specific);
  EXPECT_EQ(specific->id, Diag::device_target);
  EXPECT_NE(specific->str().find("exactly 9.0"), std::string::npos);
  EXPECT_TRUE(blackwell->supports("sm_nonsense"));
  EXPECT_TRUE(blackwell->supports(""));
}

TEST_F(DriverTest, StickyErrorsSayThatTheContextIsDead) {
  auto loaded = driver();
  for (int code : {700, 702, 715, 716, 719}) {
    Failure failure = loaded->failure(code, "running kernel `k`");
    EXPECT_EQ(failure.id, Diag::driver_context_dead) << code;
    EXPECT_TRUE(failure.contextDead);
    EXPECT_EQ(failure.code, code);
    EXPECT_NE(failure.str().find("context is dead"), std::string::npos);
    EXPECT_FALSE(failure.hints.empty());
  }
  Failure plain = loaded->failure(2, "allocating");
  EXPECT_EQ(plain.id, Diag::driver_failed);
  EXPECT_FALSE(plain.contextDead);
  EXPECT_NE(plain.str().find("allocating failed: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory"), std::string::npos);
  EXPECT_NE(loaded->failure(4711, "x").str().find("unknown error (4711)"), std::string::npos);
}

TEST_F(DriverTest, MemoryIsFreedAndItsFailureNamesTheBuffer) {
  auto opened = device();
  {
    auto memory = DeviceMemory::allocate(opened, 1000, "a");
    ASSERT_TRUE(bool(memory));
    EXPECT_EQ(fake->allocations, 1);
    DeviceMemory moved = std::move(*memory);
    EXPECT_EQ(moved.bytes(), 1000u);
  }
  EXPECT_EQ(fake->allocations, 0);
  fake->failing["cuMemAlloc_v2"] = cuda::outOfMemory;
  auto memory = DeviceMemory::allocate(opened, 1000, "a");
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.failure().str().find("allocating 1000 bytes for a"), std::string::npos);
}

TEST_F(DriverTest, TheTimerMeasuresBetweenItsEvents) {
  auto stream = DeviceStream::create(device());
  ASSERT_TRUE(bool(stream));
  ASSERT_FALSE(stream->startTimer());
  auto time = stream->stopTimer("waiting");
  ASSERT_TRUE(bool(time));
  EXPECT_EQ(*time, 0.0);
  fake->failing["cuStreamSynchronize"] = cuda::illegalAddress;
  auto failed = stream->stopTimer("running kernel `k`");
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.failure().contextDead);
}

/// A device whose kernels get 30 ms.
class PatienceTest : public DriverTest {
protected:
  void SetUp() override {
    DriverTest::SetUp();
    auto found = Device::open(driver(), 0, 0.03);
    ASSERT_TRUE(bool(found));
    opened = *found;
  }
  void TearDown() override {
    opened.reset();
    DriverTest::TearDown();
  }
  std::shared_ptr<const Device> opened;
};

TEST_F(PatienceTest, WhatEndsIsWaitedFor) {
  auto stream = DeviceStream::create(opened);
  ASSERT_TRUE(bool(stream));
  EXPECT_FALSE(stream->synchronize("running kernel `k`"));
  fake->failing["cuStreamQuery"] = cuda::illegalAddress;
  auto failed = stream->synchronize("running kernel `k`");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::driver_context_dead);
  EXPECT_FALSE(opened->driver().gaveUp());
}

// cuMemFree and the like wait for the kernel: the fake driver aborts where a real one would never return.
TEST_F(PatienceTest, NothingIsFreedBehindAKernelThatDoesNotEnd) {
  {
    [[maybe_unused]] LeaksAreWanted quiet;
    auto stream = DeviceStream::create(opened);
    ASSERT_TRUE(bool(stream));
    auto memory = DeviceMemory::allocate(opened, 1000, "a");
    ASSERT_TRUE(bool(memory));
    fake->endless = true;
    fake->launches.emplace_back();
    for (auto wait :
         {+[](const DeviceStream &on) { return on.synchronize("running kernel `k`"); },
          +[](const DeviceStream &on) -> MaybeFailure { return on.stopTimer("running kernel `k`").failure(); },
          +[](const DeviceStream &on) -> MaybeFailure {
            return on.timeEach(2, [] { return MaybeFailure(); }, "running kernel `k`").failure();
          }}) {
      MaybeFailure failed = wait(*stream);
      ASSERT_TRUE(failed);
      EXPECT_EQ(failed->id, Diag::device_endless);
      EXPECT_TRUE(failed->contextDead);
      EXPECT_NE(failed->str().find("running kernel `k`: no end after 0.03 seconds"), std::string::npos)
          << failed->str();
    }
    EXPECT_TRUE(opened->driver().gaveUp());
  }
  opened.reset();
  EXPECT_EQ(fake->allocations, 1);
  EXPECT_EQ(fake->retained, 1);
  *fake = FakeCuda();
}
