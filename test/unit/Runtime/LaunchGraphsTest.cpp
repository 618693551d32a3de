// Launches as executable graphs: which ones, with which parameters, and what becomes of a driver's refusals.
#include "ClusterGemm.h"
#include "Fake.h"
#include "gemmc/Runtime/GpuModule.h"
#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

using namespace gemmc;
using namespace gemmc::clustergemm;
using ptx::LaunchInfo;

namespace {
cuda::Stream streamOf(uintptr_t number) { return reinterpret_cast<cuda::Stream>(number * 0x1000); }
const cuda::Stream stream = streamOf(5);

constexpr int places = 12, keptForStreams = 4; // LaunchGraphs.h

LaunchArgs movedArgs(uint64_t index) {
  LaunchArgs args = goodArgs();
  args.a += index * 0x100, args.d += index * 0x200000;
  return args;
}

class LaunchGraphsTest : public FakeTest {
protected:
  void SetUp() override {
    FakeTest::SetUp();
    for (const char *kernel : {"gemm", "repack", "clear"})
      fake->paramBytes[kernel] = paramBytes;
    fake->onLaunch = [this](const FakeLaunch &, void **params) { seen.push_back(Seen(params)); };
  }
  void TearDown() override {
    module.reset();
    FakeTest::TearDown();
  }
  /// Loads `info`; a kernel in front of its only one.
  void addInFront(const char *name) {
    info.kernels.insert(info.kernels.begin(), info.kernels[0]);
    info.kernels[0].name = name;
  }
  void open() {
    auto loaded = GpuModule::load(device(), ptxText, info, "sm_90a");
    ASSERT_TRUE(bool(loaded)) << loaded.failure().str();
    module = *loaded;
  }
  /// Launches, and says what the driver ran for that: "gemm" by itself, "+gemm" from a graph.
  std::string ran(const LaunchArgs &args, cuda::Stream where = stream) {
    fake->launches.clear(), seen.clear();
    MaybeFailure failed = module->launch(where, args);
    EXPECT_FALSE(failed) << failed->str();
    std::string out;
    for (const FakeLaunch &launch : fake->launches) {
      out += (out.empty() ? "" : " ") + std::string(launch.graph ? "+" : "") + launch.kernel;
      EXPECT_EQ(launch.config.stream, where);
    }
    for (const Seen &one : seen)
      EXPECT_EQ(std::pair(one.mapped, one.d), std::pair(args.a, args.d));
    EXPECT_EQ(seen.size(), fake->launches.size());
    return out;
  }
  long called(const char *name) { return llvm::count(fake->calls, name); }

  LaunchInfo info = clusterInfo();
  std::shared_ptr<const GpuModule> module;
  std::vector<Seen> seen;
};
} // namespace

TEST_F(LaunchGraphsTest, TheSecondLaunchMakesTheGraphAndLaterOnesLaunchIt) {
  open();
  EXPECT_EQ(ran(goodArgs()), "gemm");
  EXPECT_EQ(fake->graphsMade, 0);
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  EXPECT_EQ(fake->graphsMade, 1);
  EXPECT_EQ(called("cuLaunchKernelEx"), 1);
}

TEST_F(LaunchGraphsTest, AGraphTellsTheDriverWhatALaunchDoes) {
  open();
  EXPECT_EQ(ran(goodArgs()), "gemm");
  FakeLaunch direct = fake->launches.at(0);
  Seen directly = seen.at(0);
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  const FakeLaunch &launch = fake->launches.at(0);
  EXPECT_EQ(seen.at(0), directly);
  for (auto field :
       {&cuda::LaunchConfig::gridX, &cuda::LaunchConfig::gridY, &cuda::LaunchConfig::gridZ, &cuda::LaunchConfig::blockX,
        &cuda::LaunchConfig::blockY, &cuda::LaunchConfig::blockZ, &cuda::LaunchConfig::sharedBytes})
    EXPECT_EQ(launch.config.*field, direct.config.*field);
  ASSERT_EQ(launch.attributes.size(), 1u);
  EXPECT_EQ(launch.attributes[0].id, 4); // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  EXPECT_EQ(launch.attributes[0].value.clusterDim.x, 2u);
  EXPECT_EQ(launch.attributes[0].value.clusterDim.y, 1u);
  EXPECT_EQ(launch.attributes[0].value.clusterDim.z, 1u);
}

TEST_F(LaunchGraphsTest, OnlyNewAddressesAreSet) {
  open();
  ran(goodArgs());
  ran(movedArgs(1)); // the graph is made with them
  EXPECT_EQ(fake->nodesSet, 0);
  EXPECT_EQ(fake->replaced, 1);
  EXPECT_EQ(ran(movedArgs(2)), "+gemm");
  EXPECT_EQ(fake->nodesSet, 1);
  EXPECT_EQ(ran(movedArgs(2)), "+gemm");
  EXPECT_EQ(fake->nodesSet, 1);
  EXPECT_EQ(fake->replaced, 2);
  LaunchArgs args = movedArgs(2);
  args.d = goodArgs().d;
  EXPECT_EQ(ran(args), "+gemm"); // a pointer alone
  EXPECT_EQ(fake->nodesSet, 2);
  EXPECT_EQ(fake->replaced, 2);
  EXPECT_EQ(ran(goodArgs()), "+gemm"); // back to what the first one was prepared with
  EXPECT_EQ(fake->nodesSet, 3);
  EXPECT_EQ(fake->graphsMade, 1);
}

// A kernel whose parameters stay is not set again.
TEST_F(LaunchGraphsTest, OnlyTheNodesThatChangeAreSet) {
  addInFront("repack");
  info.kernels[1].maps[0].buffer = "b";
  info.kernels[1].params[1].source = "c";
  open();
  fake->onLaunch = nullptr;
  auto launch = [&](LaunchArgs args) { ASSERT_FALSE(module->launch(stream, args)); };
  launch(goodArgs());
  launch(goodArgs());
  launch(movedArgs(1)); // A and D are in the first kernel alone
  EXPECT_EQ(fake->nodesSet, 1);
  LaunchArgs args = movedArgs(1);
  args.b += 0x100;
  launch(args);
  EXPECT_EQ(fake->nodesSet, 2);
}

TEST_F(LaunchGraphsTest, EachStreamHasItsOwn) {
  open();
  ran(goodArgs());
  for (int round = 0; round < 3; ++round)
    for (cuda::Stream where : {stream, streamOf(6), cuda::Stream()})
      EXPECT_EQ(ran(goodArgs(), where), "+gemm");
  EXPECT_EQ(fake->graphsMade, 3);
  EXPECT_EQ(fake->execs, 3);
  EXPECT_EQ(fake->nodesSet, 0);
}

// Streams in turns, more than there are places, must not make graphs again and again; one that nobody launches on any
// more gives its place away.
TEST_F(LaunchGraphsTest, APlaceIsFreeWhenItsStreamIsIdle) {
  constexpr int one = places + 1;
  open();
  ran(goodArgs());
  for (int round = 0; round < 30; ++round)
    for (int number = 1; number <= one; ++number)
      EXPECT_EQ(ran(goodArgs(), streamOf(number)), number <= places ? "+gemm" : "gemm");
  EXPECT_EQ(fake->graphsMade, places);
  int others = 0;
  for (; fake->graphsMade == places && others < 1000; ++others)
    ran(goodArgs(), streamOf(others % 2 ? one : places));
  EXPECT_EQ(others, 64 + 2 - places) << "64, with those since the first stream's last one";
  EXPECT_EQ(fake->execs, places);
  for (int number = 2; number <= one; ++number) // the first one's place was taken
    EXPECT_EQ(ran(goodArgs(), streamOf(number)), "+gemm");
  EXPECT_EQ(fake->graphsMade, one);
}

// Buffers in turns: each has its graph from its third time on, and nothing is set any more.
TEST_F(LaunchGraphsTest, AddressesThatComeAgainHaveTheirOwn) {
  open();
  for (int round = 0; round < 3; ++round)
    for (int buffers = 0; buffers < 3; ++buffers)
      ran(movedArgs(buffers));
  EXPECT_EQ(fake->graphsMade, 3);
  fake->nodesSet = fake->replaced = 0;
  for (int round = 0; round < 5; ++round)
    for (int buffers = 0; buffers < 3; ++buffers)
      EXPECT_EQ(ran(movedArgs(buffers)), "+gemm");
  EXPECT_EQ(fake->nodesSet + fake->replaced, 0);
  EXPECT_EQ(fake->graphsMade, 3);
}

// Buffers that do not come again, or of which there are too many to keep, share the graph that was launched last; what
// the others have stays theirs. Places are left for other streams.
TEST_F(LaunchGraphsTest, ManyBuffersLeavePlacesToOtherStreams) {
  open();
  for (int buffers = 0; buffers < 100; ++buffers)
    ran(movedArgs(buffers));
  EXPECT_EQ(fake->graphsMade, 1);
  constexpr int most = places - keptForStreams, many = 16; // as many as are remembered
  for (int round = 0; round < 20; ++round)
    for (int buffers = 0; buffers < many; ++buffers)
      ran(movedArgs(buffers));
  EXPECT_EQ(fake->graphsMade, most);
  fake->nodesSet = 0;
  for (int buffers = 0; buffers < many; ++buffers)
    ran(movedArgs(buffers));
  EXPECT_EQ(fake->nodesSet, many - most) << "the others keep theirs";
  for (int number = 0; number < keptForStreams; ++number)
    EXPECT_EQ(ran(goodArgs(), streamOf(10 + number)), "+gemm");
  EXPECT_EQ(fake->graphsMade, places);
  EXPECT_EQ(ran(goodArgs(), streamOf(20)), "gemm");
}

// The stream that is another one in each thread: its graph would make the threads wait for each other.
TEST_F(LaunchGraphsTest, TheStreamOfEachThreadHasNone) {
  open();
  auto perThread = reinterpret_cast<cuda::Stream>(uintptr_t(2));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ran(goodArgs(), perThread), "gemm");
}

TEST_F(LaunchGraphsTest, ACaptureGetsEachKernelAndStaysValid) {
  open();
  for (int i = 0; i < 3; ++i)
    ran(goodArgs());
  const cuda::DriverTable &api = module->device().api();
  ASSERT_EQ(api.captureBegin(stream, cuda::captureThreadLocal), cuda::success);
  EXPECT_EQ(ran(movedArgs(1)), "");                 // nothing runs
  EXPECT_EQ(ran(goodArgs(), streamOf(6)), "+gemm"); // others go on
  cuda::Graph graph = nullptr;
  ASSERT_EQ(api.captureEnd(stream, &graph), cuda::success);
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  cuda::GraphExec exec = nullptr;
  ASSERT_EQ(api.graphInstantiate(&exec, graph, 0), cuda::success);
  seen.clear();
  ASSERT_EQ(api.graphLaunch(exec, stream), cuda::success);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].d, movedArgs(1).d);
  api.graphExecDestroy(exec);
  api.graphDestroy(graph);
}

// Graphs are made and ended beside captures of all modes, this thread's and others'.
TEST_F(LaunchGraphsTest, OtherCapturesStayValid) {
  for (int mode : {cuda::captureGlobal, cuda::captureThreadLocal, cuda::captureRelaxed})
    for (bool otherThread : {false, true}) {
      open();
      ran(goodArgs());
      const cuda::DriverTable &api = module->device().api();
      auto begin = [&] { EXPECT_EQ(api.captureBegin(stream, mode), cuda::success); };
      otherThread ? std::thread(begin).join() : begin();
      EXPECT_EQ(ran(goodArgs(), streamOf(6)), "+gemm");
      module.reset();
      cuda::Graph graph = nullptr;
      EXPECT_EQ(fake->execs, 0);
      auto whole = device();
      EXPECT_EQ(whole->api().captureEnd(stream, &graph), cuda::success);
      if (graph)
        whole->api().graphDestroy(graph);
      int now = cuda::captureRelaxed;
      whole->api().captureMode(&now);
      EXPECT_EQ(now, int(cuda::captureGlobal)); // as it was
      whole->api().captureMode(&now);
    }
}

// As for the default stream while a stream that waits for it is being captured.
TEST_F(LaunchGraphsTest, WhereTheDriverCannotSayThereIsNoGraph) {
  open();
  ran(goodArgs());
  fake->failing["cuStreamIsCapturing"] = 906; // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
  EXPECT_EQ(ran(goodArgs()), "gemm");
  fake->failing.clear();
  EXPECT_EQ(ran(goodArgs()), "+gemm");
}

TEST_F(LaunchGraphsTest, ASingleKernelThatOverlapsIsLaunchedByItself) {
  info.kernels[0].overlaps = 1;
  open();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran(goodArgs()), "gemm");
    EXPECT_EQ(fake->launches.at(0).attributes.size(), 2u);
  }
  EXPECT_EQ(fake->graphsMade, 0);
}

TEST_F(LaunchGraphsTest, TwoKernelsAreOneGraph) {
  for (unsigned first : {0, 1})
    for (unsigned second : {0, 1}) {
      info = clusterInfo();
      addInFront("repack");
      info.kernels[0].overlaps = first;
      info.kernels[1].overlaps = second;
      open();
      fake->calls.clear();
      EXPECT_EQ(ran(goodArgs()), "repack gemm");
      EXPECT_EQ(ran(goodArgs()), "+repack +gemm");
      EXPECT_EQ(fake->launches.at(0).edge, -1);
      EXPECT_EQ(fake->launches.at(1).edge, int(second)); // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC is 1
      EXPECT_EQ(ran(movedArgs(1)), "+repack +gemm");
      EXPECT_EQ(called("cuGraphLaunch"), 2);
    }
}

TEST_F(LaunchGraphsTest, WhatIsLeftOutMakesAnotherGraph) {
  addInFront("clear");
  info.kernels[0].readies = 1;
  open();
  LaunchArgs ready = goodArgs();
  ready.workspaceReady = true;
  EXPECT_EQ(ran(goodArgs()), "clear gemm");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ran(ready), "+gemm");
    EXPECT_EQ(ran(goodArgs()), "+clear +gemm");
  }
  EXPECT_EQ(fake->graphsMade, 2);
  info.kernels[1].overlaps = 1; // with it in front they are two, without one that overlaps
  open();
  EXPECT_EQ(ran(goodArgs()), "clear gemm");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ran(ready), "gemm");
    EXPECT_EQ(ran(goodArgs()), "+clear +gemm");
  }
}

TEST_F(LaunchGraphsTest, AReadyWorkspaceIsNothingToKernelsThatReadyNone) {
  open();
  LaunchArgs ready = goodArgs();
  ready.workspaceReady = true;
  for (int i = 0; i < 3; ++i) {
    ran(goodArgs());
    ran(ready);
  }
  EXPECT_EQ(fake->graphsMade, 1);
}

TEST_F(LaunchGraphsTest, EmptyKernelsAreInNoGraph) {
  addInFront("repack");
  info.kernels[0].grid[0] = Expr::var("m") - Expr(200);
  info.kernels[0].overlaps = 1;
  open();
  EXPECT_EQ(ran(goodArgs()), "gemm");
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  info.kernels[1].grid[0] = info.kernels[0].grid[0];
  open();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ran(goodArgs()), "");
  EXPECT_EQ(fake->graphsMade, 1);
}

TEST_F(LaunchGraphsTest, ADriverThatRefusesIsNotAskedAgain) {
  addInFront("repack");
  for (const char *function : {"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphKernelNodeSetAttribute",
                               "cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    open();
    EXPECT_EQ(ran(goodArgs()), "repack gemm");
    fake->failing[function] = 801; // CUDA_ERROR_NOT_SUPPORTED
    EXPECT_EQ(ran(movedArgs(1)), "repack gemm") << function;
    fake->failing.clear();
    EXPECT_EQ(ran(goodArgs()), "repack gemm") << function;
    EXPECT_EQ(fake->graphs + fake->execs, 0) << function;
  }
  for (const char *function : {"cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"}) {
    open();
    ran(goodArgs());
    EXPECT_EQ(ran(goodArgs()), "+repack +gemm");
    fake->failing[function] = 801;
    EXPECT_EQ(ran(movedArgs(1)), "repack gemm") << function;
    fake->failing.clear();
    EXPECT_EQ(ran(movedArgs(2)), "repack gemm") << function;
    EXPECT_EQ(fake->graphs + fake->execs, 0) << function;
  }
}

TEST_F(LaunchGraphsTest, ADeadContextIsToldByTheLaunch) {
  open();
  ran(goodArgs());
  ran(goodArgs());
  fake->failing["cuGraphLaunch"] = fake->failing["cuLaunchKernelEx"] = cuda::illegalAddress;
  MaybeFailure failed = module->launch(stream, goodArgs());
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, Diag::driver_context_dead);
  EXPECT_NE(failed->str().find("launching kernel `gemm`"), std::string::npos) << failed->str();
}

// Half of the new addresses may be in the parameters when the driver refuses one: the next launch has all of its own.
TEST_F(LaunchGraphsTest, ARefusedAddressLeavesTheGraphAsItWas) {
  std::swap(info.kernels[0].params[0], info.kernels[0].params[1]); // the pointer in front of the map
  fake->paramBytes["gemm"] = {8, 128, 4, 4};
  fake->onLaunch = [this](const FakeLaunch &, void **params) {
    void *inOrder[] = {params[1], params[0], params[2], params[3]};
    seen.push_back(Seen(inOrder));
  };
  open();
  ran(goodArgs());
  EXPECT_EQ(ran(goodArgs()), "+gemm");
  fake->failing["cuTensorMapReplaceAddress"] = 1;
  EXPECT_EQ(ran(movedArgs(1)), "gemm");
  fake->failing.clear();
  EXPECT_EQ(ran(movedArgs(1)), "+gemm"); // the map, too
  fake->failing["cuTensorMapReplaceAddress"] = 1;
  EXPECT_EQ(ran(movedArgs(2)), "gemm");
  fake->failing.clear();
  EXPECT_EQ(ran(movedArgs(1)), "+gemm");
  LaunchArgs args = goodArgs();
  args.d = movedArgs(1).d; // what was written before the refusal
  EXPECT_EQ(ran(args), "+gemm");
}

TEST_F(LaunchGraphsTest, AnOldDriverLaunchesEachByItself) {
  auto whole = device();
  const cuda::DriverTable table = whole->api();
  auto &api = const_cast<cuda::DriverTable &>(whole->api());
  auto open = [&] {
    auto loaded = GpuModule::load(whole, ptxText, info, "sm_90a");
    ASSERT_TRUE(bool(loaded));
    module = *loaded;
  };
  auto without = [&](auto member) {
    api.*member = nullptr;
    open();
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(ran(goodArgs()), "gemm");
    module.reset();
    api = table;
  };
  without(&cuda::DriverTable::streamIsCapturing);
  without(&cuda::DriverTable::captureMode);
  without(&cuda::DriverTable::graphCreate);
  without(&cuda::DriverTable::graphAddKernel);
  without(&cuda::DriverTable::graphKernelSet);
  without(&cuda::DriverTable::graphAddEdges);
  without(&cuda::DriverTable::graphInstantiate);
  without(&cuda::DriverTable::graphExecKernelSet);
  without(&cuda::DriverTable::graphLaunch);
  without(&cuda::DriverTable::graphExecDestroy);
  without(&cuda::DriverTable::graphDestroy);
  open();
  ran(goodArgs());
  EXPECT_EQ(ran(goodArgs()), "+gemm");
}

// All threads on two streams: nobody's addresses are lost, and no executable graph is used by two at once.
TEST_F(LaunchGraphsTest, ManyThreadsAtOnce) {
  addInFront("repack");
  open();
  ran(goodArgs());
  constexpr int threads = 4, each = 50;
  std::multiset<uint64_t> outputs; // the driver calls onLaunch one at a time
  fake->onLaunch = [&](const FakeLaunch &, void **params) { outputs.insert(Seen(params).d); };
  std::vector<std::thread> crowd;
  std::atomic<int> failures = 0;
  for (int thread = 0; thread < threads; ++thread)
    crowd.emplace_back([&, thread] {
      for (int i = 0; i < each; ++i)
        failures += bool(module->launch(streamOf(1 + thread % 2), movedArgs(1 + thread * each + i)));
    });
  for (std::thread &thread : crowd)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake->raced, 0);
  EXPECT_EQ(fake->graphsMade, 2);
  ASSERT_EQ(outputs.size(), size_t(2 * threads * each));
  for (int i = 1; i <= threads * each; ++i)
    EXPECT_EQ(outputs.count(movedArgs(i).d), 2u) << i;
}

// A launch waits while its stream is full: not those on other streams.
TEST_F(LaunchGraphsTest, AFullStreamHoldsNobodyElseUp) {
  open();
  for (int i = 0; i < 2; ++i)
    for (int number : {1, 2})
      ran(goodArgs(), streamOf(number));
  std::atomic<bool> full = false, space = false;
  auto within10Seconds = [](std::atomic<bool> &flag) {
    for (int i = 0; i < 10000 && !flag; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return flag.load();
  };
  fake->onGraph = [&](cuda::Stream where) {
    if (where != streamOf(1))
      return;
    full = true;
    within10Seconds(space);
  };
  std::atomic<bool> other = false;
  std::thread waits([&] { EXPECT_FALSE(module->launch(streamOf(1), goodArgs())); });
  EXPECT_TRUE(within10Seconds(full));
  std::thread goesOn([&] {
    EXPECT_FALSE(module->launch(streamOf(2), goodArgs()));
    other = !space;
  });
  EXPECT_TRUE(within10Seconds(other));
  space = true;
  waits.join();
  goesOn.join();
}

// Threads that come first to a stream, all at once: it has one graph.
TEST_F(LaunchGraphsTest, OneGraphForAllWhoComeAtOnce) {
  fake->onLaunch = nullptr;
  for (int round = 0; round < 50; ++round) {
    open();
    ASSERT_FALSE(module->launch(stream, goodArgs()));
    fake->graphsMade = 0;
    std::atomic<bool> go = false;
    std::vector<std::thread> crowd;
    for (int thread = 0; thread < 6; ++thread)
      crowd.emplace_back([&, thread] {
        while (!go)
          std::this_thread::yield();
        for (int number : {1, 2, 3, 4})
          EXPECT_FALSE(module->launch(streamOf(number), movedArgs(thread)));
      });
    go = true;
    for (std::thread &thread : crowd)
      thread.join();
    ASSERT_EQ(fake->graphsMade, 4);
  }
}

TEST_F(LaunchGraphsTest, GraphsEndWithTheirReplayAndBeforeTheirModule) {
  open();
  for (int64_t m = 1; m <= 20; ++m) {
    LaunchArgs args = goodArgs();
    args.m = m;
    for (int i = 0; i < 2; ++i)
      ran(args);
  }
  EXPECT_EQ(fake->graphsMade, 20);
  EXPECT_EQ(fake->execs, 8); // ReplayCache::capacity
  EXPECT_EQ(fake->graphs, 8);
  fake->calls.clear();
  module.reset();
  EXPECT_EQ(called("cuGraphExecDestroy"), 8);
  auto unload = llvm::find(fake->calls, "cuModuleUnload");
  ASSERT_NE(unload, fake->calls.end());
  EXPECT_EQ(std::count(unload, fake->calls.end(), "cuGraphExecDestroy"), 0);
  EXPECT_EQ(std::count(unload, fake->calls.end(), "cuGraphDestroy"), 0);
}
