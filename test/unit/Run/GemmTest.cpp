// The library's face, over the fake driver.
#include "Fake.h"
#include "gemmc/gemmc.h"
#include <thread>

using namespace gemmc;

namespace {
constexpr const char *spec = "target: sm_90a\n"
                             "problem: {m: dynamic, n: dynamic, k: dynamic}\n"
                             "a: {type: bf16, layout: row}\n"
                             "b: {type: bf16, layout: col}\n"
                             "d: {type: bf16, layout: row}\n"
                             "accumulator: f32\n";

class GemmTest : public FakeTest {
protected:
  Outcome<std::shared_ptr<const Gemm>> create(std::string_view text = spec) {
    Gemm::Options options;
    options.driver = fakeLibrary;
    return Gemm::create(text, options);
  }
  static GemmArgs args(int64_t m, int64_t n, int64_t k) {
    GemmArgs args;
    args.m = m, args.n = n, args.k = k;
    args.lda = args.ldb = std::max<int64_t>(k, 1);
    args.ldc = args.ldd = n;
    args.a = 0x10000000, args.b = 0x20000000, args.d = 0x40000000;
    return args;
  }
};
} // namespace

TEST_F(GemmTest, CompilesLoadsAndLaunches) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  EXPECT_NE((*gemm)->ptx().find(".target sm_90a"), std::string::npos);
  auto stream = reinterpret_cast<void *>(uintptr_t(0x77));
  MaybeFailure failed = (*gemm)->launch(stream, args(256, 256, 256));
  ASSERT_FALSE(failed) << failed->str();
  ASSERT_EQ(fake->launches.size(), 1u);
  EXPECT_EQ(reinterpret_cast<void *>(fake->launches[0].config.stream), stream);
  EXPECT_EQ(fake->modules, 1);
  EXPECT_EQ((*gemm)->fallbackReason(args(256, 256, 256)), "");
}

TEST_F(GemmTest, TheFallbackIsCompiledOnceWhenItIsNeeded) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  EXPECT_NE((*gemm)->fallbackReason(args(256, 256, 255)), "");
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  std::mutex oneByOne; // the fake driver is no thread-safe one
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::lock_guard<std::mutex> lock(oneByOne);
      failures += bool((*gemm)->launch(nullptr, args(256, 256, 255)));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake->modules, 2);
  EXPECT_EQ(fake->launches.size(), 4u);
}

TEST_F(GemmTest, WrongArgumentsAreAFailureOfTheFirstKernel) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm));
  GemmArgs wrong = args(256, 256, 255);
  wrong.lda = 7;
  MaybeFailure failed = (*gemm)->launch(nullptr, wrong);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_ld);
  EXPECT_EQ(fake->modules, 1);
}

TEST_F(GemmTest, AnEmptyResultIsNoLaunch) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm));
  EXPECT_FALSE((*gemm)->launch(nullptr, args(0, 256, 255)));
  EXPECT_TRUE(fake->launches.empty());
  auto bytes = (*gemm)->workspaceBytes(args(256, 256, 256));
  ASSERT_TRUE(bool(bytes));
  EXPECT_EQ(*bytes, 0u);
}

TEST_F(GemmTest, ABadSpecIsAFailureWithAllMessages) {
  auto gemm = create("problem: {m: -4, n: 4, k: 4}\ntypo: 1\n");
  ASSERT_FALSE(gemm);
  EXPECT_EQ(gemm.failure().id, Diag::gemm_spec);
  EXPECT_NE(gemm.failure().str().find("gemm:1:"), std::string::npos) << gemm.failure().str();
  EXPECT_NE(gemm.failure().str().find("gemm:2:"), std::string::npos) << gemm.failure().str();
}

TEST(Gemm, WithoutADriverItSaysSo) {
  Gemm::Options options;
  options.driver = "libcuda-that-is-not-there.so";
  auto gemm = Gemm::create(spec, options);
  ASSERT_FALSE(gemm);
  EXPECT_EQ(gemm.failure().id, Diag::driver_missing);
}
