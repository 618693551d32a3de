// The library's face, over the fake driver.
#include "Fake.h"
#include "Tune/Temporary.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Tune/Database.h"
#include "gemmc/gemmc.h"
#include <thread>

using namespace gemmc;

namespace {
constexpr const char *spec = "target: sm_90a\n"
                             "problem: {m: dynamic, n: dynamic, k: dynamic}\n"
                             "typical: {m: 4096, n: 4096, k: 4096}\n"
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

// With a workspace the operands are copied to rows that TMA reads: two kernels. With too little, as without.
TEST_F(GemmTest, TheCopyingFallbackTakesAWorkspace) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  GemmArgs odd = args(256, 256, 255);
  auto bytes = (*gemm)->workspaceBytes(odd);
  ASSERT_TRUE(bool(bytes)) << bytes.failure().str();
  EXPECT_EQ(*bytes, 2u * 256 * 256 * 2); // rows of 255 elements take 512 bytes
  odd.workspace = 0x7000000;
  odd.workspaceBytes = *bytes - 1;
  ASSERT_FALSE((*gemm)->launch(nullptr, odd));
  EXPECT_EQ(fake->launches.size(), 1u);
  odd.workspaceBytes = *bytes;
  ASSERT_FALSE((*gemm)->launch(nullptr, odd));
  ASSERT_EQ(fake->launches.size(), 3u);
  // Both kernels overlap what is in front of them (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION is 6).
  for (unsigned i : {1u, 2u}) {
    ASSERT_FALSE(fake->launches[i].attributes.empty());
    EXPECT_EQ(fake->launches[i].attributes.back().id, 6);
    EXPECT_EQ(fake->launches[i].attributes.back().value.programmaticSerialization, 1);
  }
  EXPECT_TRUE(fake->launches[0].attributes.empty());
}

// A launch that is at hand decides nothing; other sizes still find their kernel.
TEST_F(GemmTest, EachLaunchFindsItsKernelAgain) {
  auto gemm = create();
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  std::vector<std::string> kernels[2];
  for (auto &round : kernels) {
    fake->launches.clear();
    for (int64_t k : {256, 255, 256, 248, 255})
      ASSERT_FALSE((*gemm)->launch(nullptr, args(256, 256, k)));
    GemmArgs misaligned = args(256, 256, 256);
    misaligned.a += 2;
    ASSERT_FALSE((*gemm)->launch(nullptr, misaligned));
    for (const FakeLaunch &launch : fake->launches)
      round.push_back(launch.kernel + " " + std::to_string(launch.config.sharedBytes));
  }
  EXPECT_EQ(kernels[0], kernels[1]);
  EXPECT_EQ(kernels[0].size(), 6u);
  EXPECT_EQ(kernels[0][0], kernels[0][2]);
  EXPECT_NE(kernels[0][0], kernels[0][1]);
  EXPECT_EQ(kernels[0][1], kernels[0][5]);
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

/// m alone is given at launch.
constexpr const char *rowsAtLaunch = "problem: {m: dynamic, n: 4096, k: 4096}\n"
                                     "b: {layout: col}\n";

// m of 64 and of 4096 have kernels of their own, which all sizes of a range share.
TEST_F(GemmTest, RangesOfSizesHaveTheirOwnKernels) {
  auto gemm = create(rowsAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  auto launch = [&](int64_t m) {
    MaybeFailure failed = (*gemm)->launch(nullptr, args(m, 4096, 4096));
    EXPECT_FALSE(failed) << failed->str();
    return fake->launches.back().config.sharedBytes;
  };
  EXPECT_EQ(fake->modules, 1); // the one for m of 4096
  auto of64 = launch(64);
  EXPECT_EQ(fake->modules, 2);
  EXPECT_EQ(launch(57), of64);
  EXPECT_EQ(fake->modules, 2);
  auto of4096 = launch(4096);
  EXPECT_EQ(launch(3841), of4096);
  EXPECT_EQ(fake->modules, 2);
  EXPECT_NE(of64, of4096);
  EXPECT_EQ(launch(64), of64);
  EXPECT_EQ(fake->launches.size(), 5u);
  ASSERT_FALSE((*gemm)->prepare(args(490, 4096, 4096)));
  EXPECT_EQ(fake->modules, 3);
  launch(512);
  EXPECT_EQ(fake->modules, 3);
  launch(16384);
  const int all = fake->modules;
  launch(20000);
  EXPECT_EQ(fake->modules, all);
}

// One row is a vector, and has a kernel that two rows cannot have.
TEST_F(GemmTest, OneRowIsAVector) {
  for (const char *layout : {"row", "col"}) { // of A, whose pitch is given at launch where that is what a column takes
    auto gemm = create(std::string(rowsAtLaunch) + "a: {layout: " + layout + "}\n");
    ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
    auto launch = [&](int64_t m, int64_t lda) {
      GemmArgs some = args(m, 4096, 4096);
      some.lda = lda;
      MaybeFailure failed = (*gemm)->launch(nullptr, some);
      EXPECT_FALSE(failed) << failed->str();
      return fake->launches.back().config.sharedBytes;
    };
    const bool rows = llvm::StringRef(layout) == "row";
    const unsigned ofVector = launch(1, rows ? 4096 : 8), ofTwo = launch(2, rows ? 4096 : 8);
    EXPECT_LT(ofVector, 4096u); // no tiles
    EXPECT_GT(ofTwo, 65536u);
    EXPECT_EQ(launch(8, rows ? 4096 : 8), ofTwo);
    EXPECT_EQ(launch(1, rows ? 4096 : 24), ofVector);
  }
  // Where k comes at launch, too, there is no such kernel.
  auto gemm = create("problem: {m: dynamic, n: 4096, k: dynamic}\nb: {layout: col}\n");
  ASSERT_TRUE(bool(gemm));
  ASSERT_FALSE((*gemm)->launch(nullptr, args(1, 4096, 4096)));
  EXPECT_GT(fake->launches.back().config.sharedBytes, 4096u);
}

TEST_F(GemmTest, ATypicalSizeIsPlannedForAlone) {
  auto gemm = create(std::string(rowsAtLaunch) + "typical: {m: 64}\n");
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  for (int64_t m : {1, 64, 4096, 20000})
    ASSERT_FALSE((*gemm)->launch(nullptr, args(m, 4096, 4096)));
  EXPECT_EQ(fake->modules, 1);
  auto fixed = create("problem: {m: 64, n: 4096, k: 4096}\nb: {layout: col}\n");
  ASSERT_TRUE(bool(fixed));
  EXPECT_EQ((*gemm)->info().kernels.back().dynamicShared, (*fixed)->info().kernels.back().dynamicShared);
}

constexpr const char *allAtLaunch = "problem: {m: dynamic, n: dynamic, k: dynamic}\n"
                                    "b: {layout: col}\n";

// Memory that lacked comes back: the range has its kernel then, also where another one has launched the same before.
TEST_F(GemmTest, ALoadThatFailedIsTriedAgain) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  const GemmArgs some = args(64, 512, 512);
  auto launch = [&] {
    MaybeFailure failed = (*gemm)->launch(nullptr, some);
    EXPECT_FALSE(failed) << failed->str();
    return fake->launches.back().config.sharedBytes;
  };
  auto loads = [&] { return llvm::count(fake->calls, "cuModuleLoadDataEx"); };
  fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
  const std::string why = (*gemm)->fallbackReason(some);
  EXPECT_NE(why.find("OUT_OF_MEMORY"), std::string::npos) << why;
  const auto before = loads();
  const auto ofBase = launch();
  EXPECT_EQ(loads(), before + 1);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(launch(), ofBase);
  EXPECT_LE(loads(), before + 8); // each try may take tenths of a second
  EXPECT_EQ(fake->modules, 1);
  fake->failing.clear();
  EXPECT_FALSE((*gemm)->prepare(some)); // does not wait for its turn
  EXPECT_EQ(fake->modules, 2);
  EXPECT_NE(launch(), ofBase);
  EXPECT_EQ((*gemm)->fallbackReason(some), "");
}

TEST_F(GemmTest, TheNextLaunchTriesAgain) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
  fake->failsOnce = true;
  ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  EXPECT_EQ(fake->modules, 1);
  ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  EXPECT_EQ(fake->modules, 2);
  EXPECT_NE(fake->launches[0].config.sharedBytes, fake->launches[1].config.sharedBytes);
}

// What no later load can make good is not tried again.
TEST_F(GemmTest, ARefusedKernelIsNotLoadedAgain) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  fake->failing["cuModuleLoadDataEx"] = cuda::invalidPtx;
  ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  fake->failing.clear();
  for (int i = 0; i < 4; ++i)
    ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  EXPECT_EQ(fake->modules, 1);
  EXPECT_NE((*gemm)->fallbackReason(args(64, 512, 512)), "");
}

// Kernels that need not be there give way to the one behind them, which is right for all.
TEST_F(GemmTest, AKernelThatCannotBeLoadedGivesWay) {
  for (const char *text : {"problem: {m: 16, n: 16, k: 200000}\nb: {layout: col}\n",         // bare
                           "problem: {m: 2048, n: 2048, k: dynamic}\nb: {layout: col}\n"}) { // repack
    auto gemm = create(text);
    ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
    const int before = fake->modules;
    const bool deep = (*gemm)->info().k.isConst();
    GemmArgs some = deep ? args(16, 16, 200000) : args(2048, 2048, 4095);
    if (!deep)
      some.workspace = 0x7000000, some.workspaceBytes = 64 << 20;
    fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
    fake->failsOnce = true;
    for (int i = 1; i <= 3; ++i) {
      fake->launches.clear();
      MaybeFailure failed = (*gemm)->launch(nullptr, some);
      ASSERT_FALSE(failed) << text << failed->str();
      EXPECT_EQ(fake->modules, before + std::min(i, 2)) << text;    // the one behind it, then itself
      EXPECT_EQ(fake->launches.size() > 1, !deep && i > 1) << text; // copies
    }
    fake->failsOnce = false;
    fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
    auto other = create(text);
    EXPECT_FALSE(other); // the first one must be there
    fake->failing.clear();
  }
}

TEST_F(GemmTest, TheFallbacksAreLoadedOnceThereIsMemory) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
  MaybeFailure failed = (*gemm)->prepareFallback();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code, cuda::outOfMemory);
  EXPECT_TRUE((*gemm)->launch(nullptr, args(256, 255, 255))); // there is none
  fake->failing.clear();
  EXPECT_FALSE((*gemm)->prepareFallback());
  const int all = fake->modules;
  EXPECT_GT(all, 1);
  EXPECT_FALSE((*gemm)->prepareFallback());
  EXPECT_EQ(fake->modules, all);
}

// Another kernel has been in the workspace meanwhile: that it is ready does not count any more.
TEST_F(GemmTest, AWorkspaceOfAStandInIsNotReady) {
  constexpr const char *counted = "problem: {m: 8000, n: 4008, k: dynamic}\nb: {layout: col}\n"
                                  "typical: {k: 40}\n";
  auto gemm = create(counted);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  GemmArgs odd = args(8000, 4008, 39);
  odd.workspace = 0x7000000, odd.workspaceBytes = 256 << 20;
  auto launched = [&] {
    fake->launches.clear();
    MaybeFailure failed = (*gemm)->launch(nullptr, odd);
    EXPECT_FALSE(failed) << failed->str();
    return fake->launches.size();
  };
  fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
  fake->failsOnce = true;
  EXPECT_EQ(launched(), 1u);
  const size_t all = launched();
  odd.workspaceReady = true;
  EXPECT_EQ(launched(), all);
  auto other = create(counted); // where nothing has failed it counts
  ASSERT_TRUE(bool(other));
  gemm = other;
  odd.workspaceReady = false;
  EXPECT_EQ(launched(), all);
  odd.workspaceReady = true;
  EXPECT_LT(launched(), all);
}

// Launches that may not load: 900 within a capture, with a driver that cannot be asked for an exception.
TEST_F(GemmTest, ACaptureThatForbidsALoadIsForgotten) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  fake->failing["cuModuleLoadDataEx"] = cuda::captureUnsupported;
  ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  fake->failing.clear();
  ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 512, 512)));
  EXPECT_EQ(fake->modules, 2);
}

// Threads come while the load fails, then works: each launch is right, the kernel is loaded once.
TEST_F(GemmTest, ThreadsShareAFailedLoad) {
  auto gemm = create(allAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  fake->failing["cuModuleLoadDataEx"] = cuda::outOfMemory;
  fake->failsOnce = true;
  std::atomic<int> failures{0};
  std::mutex oneByOne; // of the launches themselves: the fake's records
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 8; ++j) {
        failures += bool((*gemm)->prepare(args(64, 512, 512)));
        std::lock_guard lock(oneByOne);
        failures += bool((*gemm)->launch(nullptr, args(64, 512, 512)));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake->modules, 2);
}

// The same answer before and after the launch that compiles the range's kernel.
TEST_F(GemmTest, TheReasonDoesNotDependOnWhoAskedFirst) {
  auto gemm = create("problem: {m: dynamic, n: dynamic, k: dynamic}\n");
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  GemmArgs narrow = args(8, 12, 4096);
  narrow.ldb = narrow.ldc = narrow.ldd = 16;
  const std::string before = (*gemm)->fallbackReason(narrow);
  ASSERT_FALSE((*gemm)->launch(nullptr, narrow));
  EXPECT_EQ((*gemm)->fallbackReason(narrow), before);
  GemmArgs negative = args(8, 16, -1);
  negative.ldb = 16;
  const std::string wrong = (*gemm)->fallbackReason(negative);
  MaybeFailure failed = (*gemm)->launch(nullptr, negative);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::launch_negative);
  EXPECT_EQ(wrong, failed->str());
  EXPECT_TRUE((*gemm)->prepare(negative));
  EXPECT_FALSE((*gemm)->workspaceBytes(negative));
}

// What a launch needs is compiled and loaded, and the capture goes on.
TEST_F(GemmTest, ACapturedStreamGetsItsKernelToo) {
  auto gemm = create(rowsAtLaunch);
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  auto opened = device();
  const cuda::DriverTable &api = opened->api();
  cuda::Stream stream = nullptr;
  ASSERT_EQ(api.streamCreate(&stream, 0), cuda::success);
  int modules = 1;
  for (int mode : {cuda::captureGlobal, cuda::captureThreadLocal, cuda::captureRelaxed}) {
    ASSERT_EQ(api.captureBegin(stream, mode), cuda::success);
    MaybeFailure failed = (*gemm)->launch(stream, args(64 * modules, 4096, 4096));
    EXPECT_FALSE(failed) << failed->str();
    cuda::Graph graph = nullptr;
    EXPECT_EQ(api.captureEnd(stream, &graph), cuda::success);
    if (graph)
      api.graphDestroy(graph);
    EXPECT_EQ(fake->modules, ++modules);
  }
  api.streamDestroy(stream);
}

// A kernel whose slices meet in memory needs some; without it the one for the typical sizes runs.
TEST_F(GemmTest, ARangeWithoutItsWorkspaceHasTheKernelOfTypicalSizes) {
  auto gemm = create("problem: {m: 16, n: 16, k: dynamic}\n"
                     "b: {layout: col}\n");
  ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
  GemmArgs deep = args(16, 16, 200000);
  auto bytes = (*gemm)->workspaceBytes(deep);
  ASSERT_TRUE(bool(bytes)) << bytes.failure().str();
  EXPECT_GT(*bytes, 0u);
  ASSERT_FALSE((*gemm)->launch(nullptr, deep));
  const unsigned without = fake->launches.back().config.gridX;
  deep.workspace = 0x7000000, deep.workspaceBytes = *bytes;
  ASSERT_FALSE((*gemm)->launch(nullptr, deep));
  EXPECT_NE(fake->launches.back().config.gridX, without);
}

// A kernel that needs a workspace gives way to one that needs none, however the sizes are known.
TEST_F(GemmTest, WithoutAWorkspaceAnotherKernelRuns) {
  struct Row {
    const char *text;
    int64_t m, n, k;
    bool wgmma; ///< TMA reads its operands without a copy.
  };
  const Row rows[] = {
      {"problem: {m: 16, n: 16, k: 200000}\nb: {layout: col}\n", 16, 16, 200000, true},      // slices meet there
      {"problem: {m: 8000, n: 4008, k: 40}\nb: {layout: col}\n", 8000, 4008, 40, true},      // tiles from a counter
      {"problem: {m: 2048, n: 2048, k: 2047}\nb: {layout: col}\n", 2048, 2048, 2047, false}, // copies
  };
  for (const Row &row : rows) {
    auto gemm = create(row.text);
    ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
    GemmArgs some = args(row.m, row.n, row.k);
    auto bytes = (*gemm)->workspaceBytes(some);
    ASSERT_TRUE(bool(bytes)) << bytes.failure().str();
    ASSERT_GT(*bytes, 0u) << row.text;
    const size_t before = fake->maps.size();
    MaybeFailure failed = (*gemm)->launch(nullptr, some);
    ASSERT_FALSE(failed) << row.text << failed->str();
    EXPECT_EQ(fake->maps.size() > before, row.wgmma) << row.text;
    EXPECT_EQ((*gemm)->fallbackReason(some), "workspaceBytes >= " + std::to_string(*bytes));
    some.workspace = 0x7000000, some.workspaceBytes = *bytes;
    ASSERT_FALSE((*gemm)->launch(nullptr, some));
    EXPECT_EQ((*gemm)->fallbackReason(some), "");
    EXPECT_EQ(*(*gemm)->workspaceBytes(some), *bytes);
  }
}

// As for everything else that plans: the database's answer for this device and problem, also of a range.
TEST_F(GemmTest, WhatWasMeasuredIsTaken) {
  Temporary folder;
  Gemm::Options options;
  options.driver = fakeLibrary;
  options.database = folder.file("tuning.db");
  Diags diags;
  auto measured = [&](const std::string &text, const char *choice) {
    auto spec = readSpec(diags.addSource("spec", text), {}, diags);
    tune::Tuned tuned;
    tuned.device = fake->name, tuned.problem = problemKey(*spec)->text(), tuned.choice = choice;
    tuned.sizes = "64x4096x4096", tuned.seconds = 10e-6, tuned.rounds = 11, tuned.date = "2026-11-26";
    auto database = tune::Database::open(options.database, tune::Database::Mode::write);
    ASSERT_TRUE(bool(database)) << database.failure().str();
    EXPECT_FALSE(database->store(tuned));
  };
  measured(rowsAtLaunch, "tile.block=[64,64,64] pipeline.stages=3");
  measured(std::string(rowsAtLaunch) + "typical: {m: 64}\n", "tile.block=[64,128,64] pipeline.stages=4");
  for (bool tuning : {true, false}) {
    options.tuning = tuning;
    auto gemm = Gemm::create(rowsAtLaunch, options);
    ASSERT_TRUE(bool(gemm)) << gemm.failure().str();
    constexpr unsigned most = 130000; // the model's kernels have as many stages as fit
    EXPECT_EQ((*gemm)->info().kernels.back().dynamicShared < most, tuning);
    ASSERT_FALSE((*gemm)->launch(nullptr, args(64, 4096, 4096)));
    EXPECT_EQ(fake->launches.back().config.sharedBytes < most, tuning);
  }
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
