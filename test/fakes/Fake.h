/// Opens the fake driver for a test, fresh.
#pragma once
#include "FakeCuda.h"
#include "gemmc/Runtime/Device.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

inline constexpr const char *fakeLibrary = GEMMC_FAKES "/FakeCuda.so";

class FakeTest : public ::testing::Test {
protected:
  void SetUp() override {
    library = dlopen(fakeLibrary, RTLD_NOW | RTLD_LOCAL); // stays loaded between a test's own loads
    ASSERT_TRUE(library) << dlerror();
    fake = reinterpret_cast<FakeCudaAccessor>(dlsym(library, "fakeCuda"))();
    *fake = FakeCuda();
  }
  void TearDown() override {
    fake->onLaunch = nullptr, fake->onGraph = nullptr, fake->onMatmul = nullptr; // their code is ours
    EXPECT_EQ(fake->lifetime(), 0) << "something of the device was not freed";
    dlclose(library);
  }
  std::shared_ptr<const gemmc::Driver> driver() {
    auto loaded = gemmc::Driver::load(fakeLibrary);
    EXPECT_TRUE(bool(loaded));
    return *loaded;
  }
  std::shared_ptr<const gemmc::Device> device() {
    auto opened = gemmc::Device::open(driver());
    EXPECT_TRUE(bool(opened));
    return *opened;
  }
  FakeCuda *fake = nullptr;

private:
  void *library = nullptr;
};
