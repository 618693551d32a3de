// Launches again and again, as programs do, each of them checked: on several streams and the default one, with new
// addresses, into captures and beside them. What goes as an executable graph is counted in the driver's table.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <gemmc/gemmc.h>
#include <thread>

using namespace gemmc;

namespace {
constexpr int sets = 3; ///< Of buffers: A is set + 1 everywhere, B is 1.
constexpr unsigned short values[sets] = {0x3f80, 0x4000, 0x4040};
constexpr unsigned short poison = 0xffff;
constexpr uint64_t busyBytes = uint64_t(1) << 30; ///< To fill: some 0.3 ms.

struct Case {
  const char *name, *fields;
  int64_t m, n, k;
};
constexpr Case cases[] = {
    {"one kernel", "launch: {dependent: off}\n", 1000, 600, 128},
    {"one that overlaps", "launch: {dependent: on}\n", 512, 512, 512},
    {"rows copied in front", "launch: {dependent: off}\n", 1000, 600, 1001},
    {"rows copied in front, overlapping", "launch: {dependent: on}\n", 1000, 600, 1001},
    {"a counter of tiles",
     "tile: {block: [128, 40, 64], warp: [64, 40, 64]}\npipeline: {stages: 4, schedule: cooperative}\n"
     "raster: {scheduler: dynamic}\n",
     1160, 1360, 72},
    {"three kernels",
     "tile: {block: [64, 64, 64]}\npipeline: {stages: 4, schedule: pingpong}\nraster: {scheduler: dynamic}\n", 700, 600,
     101},
};

std::atomic<int> graphLaunches = 0;
cuda::Result (*realGraphLaunch)(cuda::GraphExec, cuda::Stream) = nullptr;
cuda::Result countedGraphLaunch(cuda::GraphExec exec, cuda::Stream stream) {
  ++graphLaunches;
  return realGraphLaunch(exec, stream);
}

int complaints = 0;
void expect(bool good, const char *where, const char *what) {
  complaints += !good;
  if (!good)
    std::printf("%s: %s\n", where, what);
}
[[noreturn]] void giveUp(const Failure &failure, int code) {
  std::fprintf(stderr, "%s\n", failure.str().c_str());
  std::exit(code);
}
template <typename T> T orGiveUp(Outcome<T> outcome, int code = 1) {
  if (!outcome)
    giveUp(outcome.failure(), code);
  return std::move(*outcome);
}

/// One case on the device: launches, and what must come of them.
class Trial {
public:
  Trial(std::shared_ptr<const Device> opened, const Case &one)
      : device(std::move(opened)), api(device->api()), what(one), first(stream()), second(stream()) {
    std::string spec =
        llvm::formatv("target: sm_90a\nproblem: {{m: {0}, n: {1}, k: {2}}\na: {{type: bf16, layout: row}\n"
                      "b: {{type: bf16, layout: col}\nd: {{type: f32}\naccumulator: f32\n{3}",
                      one.m, one.n, one.k, one.fields);
    auto gemm = orGiveUp(Gemm::create(spec));
    text = gemm->ptx();
    info = gemm->info();
    load();
    busy = memory(busyBytes);
    Device::Scope scope(*device);
    for (int set = 0; set < sets; ++set) {
      a[set] = memory(one.m * one.k * 2), b[set] = memory(one.n * one.k * 2), d[set] = memory(one.m * one.n * 4);
      api.memset16(a[set].address(), values[set], one.m * one.k, first.get());
      api.memset16(b[set].address(), values[0], one.n * one.k, first.get());
    }
    workspace = memory(workspaceBytes(info, args(0), device->sms).value_or(0));
    wait(first.get());
  }

  void run() {
    streams();
    readyWorkspace();
    inARow();
    for (int mode : {cuda::captureGlobal, cuda::captureThreadLocal, cuda::captureRelaxed})
      for (bool otherThread : {false, true})
        captures(mode, otherThread);
    hostTime();
  }

private:
  DeviceStream stream() const { return orGiveUp(DeviceStream::create(device)); }
  DeviceMemory memory(uint64_t bytes) const { return orGiveUp(DeviceMemory::allocate(device, bytes, "a test")); }
  /// A module that has launched nothing yet.
  void load() { module = orGiveUp(GpuModule::load(device, text, info, "sm_90a")); }
  void expect(bool good, const char *said) const { ::expect(good, what.name, said); }
  void wait(cuda::Stream where) const {
    Device::Scope scope(*device);
    if (auto failed = device->driver().check(api.streamSynchronize(where), what.name))
      giveUp(*failed, 1);
  }

  LaunchArgs args(int set) const {
    LaunchArgs out;
    out.m = what.m, out.n = what.n, out.k = what.k;
    out.lda = out.ldb = what.k;
    out.ldc = out.ldd = what.n;
    out.a = a[set].address(), out.b = b[set].address(), out.d = d[set].address();
    out.workspace = workspace.address(), out.workspaceBytes = workspace.bytes();
    return out;
  }
  /// Graphs that a launch takes when its stream has had one before.
  int graphsOf(bool ready) const {
    int kernels = 0;
    bool overlaps = false;
    for (const ptx::KernelInfo &kernel : info.kernels)
      if (!(kernel.readies && ready)) {
        ++kernels;
        overlaps = kernel.overlaps;
      }
    return kernels == 1 && overlaps ? 0 : 1;
  }
  void spoil(int set, cuda::Stream where) const {
    Device::Scope scope(*device);
    api.memset16(d[set].address(), poison, what.m * what.n * 2, where);
  }
  void launch(int set, cuda::Stream where, bool ready = false) const {
    LaunchArgs all = args(set);
    all.workspaceReady = ready;
    if (auto failed = module->launch(where, all))
      giveUp(*failed, 1);
  }
  void check(int set, cuda::Stream where, const char *said) const {
    std::vector<float> result(what.m * what.n);
    Device::Scope scope(*device);
    api.copyToHost(result.data(), d[set].address(), result.size() * 4, where);
    wait(where);
    for (float value : result)
      if (value != static_cast<float>(what.k * (set + 1)))
        return expect(false, said);
  }
  void checked(int set, cuda::Stream where, int graphs, const char *said, bool ready = false) const {
    spoil(set, where);
    int before = graphLaunches;
    launch(set, where, ready);
    expect(graphLaunches - before == graphs, "not the graphs that there should be");
    check(set, where, said);
  }

  void streams() {
    checked(0, first.get(), 0, "the first launch");
    for (int set : {0, 1, 2, 2, 0})
      checked(set, first.get(), graphsOf(false), "a launch with other addresses");
    for (int set : {1, 2})
      checked(set, nullptr, graphsOf(false), "a launch on the default stream");
    for (int set : {0, 1})
      checked(set, second.get(), graphsOf(false), "a launch on a second stream");
    for (int set : {2, 1})
      checked(set, first.get(), graphsOf(false), "a launch on the first stream again");
  }
  void readyWorkspace() {
    for (int set : {0, 1, 1, 2})
      checked(set, first.get(), graphsOf(true), "a launch with a workspace that is ready", true);
  }
  /// New addresses are for the launches behind, not for those that wait in the stream.
  void inARow() {
    for (int set = 0; set < sets; ++set)
      spoil(set, first.get());
    {
      Device::Scope scope(*device);
      for (int i = 0; i < 10; ++i)
        api.memset16(busy.address(), poison, busyBytes / 2, first.get());
    }
    for (int set = 0; set < sets; ++set)
      launch(set, first.get());
    for (int set = 0; set < sets; ++set)
      check(set, first.get(), "launches in a row");
  }
  /// `first` is captured; the graph of `second` is made and launched meanwhile.
  void captures(int mode, bool otherThread) {
    load();
    checked(0, second.get(), 0, "the first launch beside a capture");
    spoil(1, second.get());
    spoil(2, second.get());
    wait(second.get());
    int before = graphLaunches;
    cuda::Graph graph = nullptr;
    {
      Device::Scope scope(*device);
      expect(api.captureBegin(first.get(), mode) == cuda::success, "a capture does not begin");
      launch(1, first.get());
      expect(graphLaunches == before, "a graph went into a capture");
      auto beside = [&] {
        launch(0, second.get());
        launch(2, second.get());
      };
      otherThread ? std::thread(beside).join() : beside();
      expect(graphLaunches - before == 2 * graphsOf(false), "no graph beside a capture");
      cuda::Result ended = api.captureEnd(first.get(), &graph);
      expect(ended == cuda::success && graph, "a capture was invalidated");
    }
    check(2, second.get(), "a launch beside a capture");
    if (!graph)
      return;
    Device::Scope scope(*device);
    cuda::GraphExec exec = nullptr;
    expect(api.graphInstantiate(&exec, graph, 0) == cuda::success &&
               realGraphLaunch(exec, first.get()) == cuda::success,
           "what was captured does not run");
    check(1, first.get(), "a captured launch");
    api.graphExecDestroy(exec);
    api.graphDestroy(graph);
  }
  /// Of a launch among many, in microseconds: the median. Nobody is judged by it.
  double microseconds() {
    using Clock = std::chrono::steady_clock;
    std::vector<double> each;
    load();
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 200; ++i) {
        auto start = Clock::now();
        launch(i % sets, first.get());
        each.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      }
      wait(first.get());
    }
    std::nth_element(each.begin(), each.begin() + each.size() / 2, each.end());
    return each[each.size() / 2];
  }
  void hostTime() {
    auto &table = const_cast<cuda::DriverTable &>(api);
    double graphs = microseconds();
    std::swap(table.graphCreate, without); // a driver that has no such function
    double direct = microseconds();
    std::swap(table.graphCreate, without);
    std::printf("%s: %.2f us of the host a launch, %.2f without graphs\n", what.name, graphs, direct);
  }

  std::shared_ptr<const Device> device;
  const cuda::DriverTable &api;
  Case what;
  DeviceStream first, second;
  std::string text;
  ptx::LaunchInfo info;
  std::shared_ptr<const GpuModule> module;
  DeviceMemory a[sets], b[sets], d[sets], workspace, busy;
  decltype(cuda::DriverTable::graphCreate) without = nullptr;
};

/// A kernel for each range of m, compiled and loaded when a launch needs it, also into a capture and beside one.
void ranges(const std::shared_ptr<const Device> &device) {
  constexpr int64_t n = 520, k = 256, most = 4000;
  constexpr const char *name = "ranges of m";
  const cuda::DriverTable &api = device->api();
  auto gemm = orGiveUp(Gemm::create("problem: {m: dynamic, n: 520, k: 256}\nb: {layout: col}\nd: {type: f32}\n"));
  auto stream = orGiveUp(DeviceStream::create(device));
  auto memory = [&](uint64_t bytes) { return orGiveUp(DeviceMemory::allocate(device, bytes, "a test")); };
  auto a = memory(most * k * 2), b = memory(n * k * 2), d = memory(most * n * 4);
  Device::Scope scope(*device);
  api.memset16(a.address(), values[0], most * k, stream.get());
  api.memset16(b.address(), values[1], n * k, stream.get());
  auto launch = [&](int64_t m) {
    GemmArgs args;
    args.m = m, args.n = n, args.k = k;
    args.lda = args.ldb = k, args.ldc = args.ldd = n;
    args.a = a.address(), args.b = b.address(), args.d = d.address();
    if (auto failed = gemm->launch(stream.get(), args))
      giveUp(*failed, 1);
  };
  auto spoil = [&] { api.memset16(d.address(), poison, most * n * 2, stream.get()); };
  auto check = [&](int64_t m, const char *said) {
    std::vector<float> result(most * n);
    api.copyToHost(result.data(), d.address(), result.size() * 4, stream.get());
    expect(api.streamSynchronize(stream.get()) == cuda::success, name, "the stream failed");
    bool good = true;
    for (int64_t i = 0; i < most * n; ++i)
      good &= i < m * n ? result[i] == 2 * k : result[i] != result[i];
    expect(good, name, said);
  };
  for (int64_t m : {int64_t(1), int64_t(33), int64_t(200), int64_t(1000), most})
    for (int again = 0; again < 2; ++again) {
      spoil();
      launch(m);
      check(m, "a launch");
    }
  int64_t m = 300; // of a range that nobody has asked for
  for (int mode : {cuda::captureGlobal, cuda::captureThreadLocal, cuda::captureRelaxed})
    for (bool otherThread : {false, true}) {
      m += 200;
      spoil();
      expect(api.streamSynchronize(stream.get()) == cuda::success, name, "the stream failed");
      auto beside = orGiveUp(DeviceStream::create(device));
      cuda::Graph graph = nullptr;
      expect(api.captureBegin(otherThread ? beside.get() : stream.get(), mode) == cuda::success, name, "no capture");
      if (otherThread) // it compiles while this thread captures something else
        std::thread([&] {
          Device::Scope scope(*device);
          launch(m);
        }).join();
      else
        launch(m);
      cuda::Result ended = api.captureEnd(otherThread ? beside.get() : stream.get(), &graph);
      expect(ended == cuda::success && graph, name, "a capture was invalidated");
      cuda::GraphExec exec = nullptr;
      if (graph && !otherThread) {
        expect(api.graphInstantiate(&exec, graph, 0) == cuda::success &&
                   realGraphLaunch(exec, stream.get()) == cuda::success,
               name, "what was captured does not run");
        check(m, "a captured launch");
        api.graphExecDestroy(exec);
      } else {
        check(m, "a launch beside a capture");
      }
      if (graph)
        api.graphDestroy(graph);
    }
  std::printf("%s: done\n", name);
}

/// Kernels of 128 CTAs that wait for each other, on several streams at a time: each may keep from others the SMs that
/// these wait for (docs/hopper-l2.md, *Slices that share out the sum*).
void sharedSums(const std::shared_ptr<const Device> &device) {
  constexpr int streams = 4, launches = 500;
  constexpr int64_t m = 200, n = 208, k = 16384;
  constexpr unsigned short sum = 0x4680; // of k ones
  constexpr const char *name = "slices that share out the sum, on four streams";
  const cuda::DriverTable &api = device->api();
  auto gemm = orGiveUp(Gemm::create("problem: {m: 200, n: 208, k: 16384}\nb: {layout: col}\n"
                                    "tile: {block: [64, 104, 64]}\nsplit: {mode: split_k, slices: 16, owners: 13}\n"));
  auto memory = [&](uint64_t bytes) { return orGiveUp(DeviceMemory::allocate(device, bytes, "a test")); };
  auto a = memory(m * k * 2), b = memory(n * k * 2);
  GemmArgs args;
  args.m = m, args.n = n, args.k = k;
  args.lda = args.ldb = k, args.ldc = args.ldd = n;
  args.a = a.address(), args.b = b.address();
  struct Side {
    DeviceStream stream;
    DeviceMemory d, workspace;
  };
  std::vector<Side> sides;
  Device::Scope scope(*device);
  for (int i = 0; i < streams; ++i) {
    DeviceMemory d = memory(m * n * 2);
    args.d = d.address();
    const uint64_t bytes = orGiveUp(gemm->workspaceBytes(args));
    sides.push_back({orGiveUp(DeviceStream::create(device)), std::move(d), memory(std::max<uint64_t>(1, bytes))});
    expect(bytes > 0, name, "no slices meet in the workspace");
  }
  api.memset16(a.address(), values[0], m * k, sides[0].stream.get());
  api.memset16(b.address(), values[0], n * k, sides[0].stream.get());
  expect(api.streamSynchronize(sides[0].stream.get()) == cuda::success, name, "the stream failed");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i)
    for (Side &side : sides) {
      args.d = side.d.address(), args.workspace = side.workspace.address();
      args.workspaceBytes = side.workspace.bytes();
      if (i % 100 == 0)
        api.memset16(side.d.address(), poison, m * n, side.stream.get());
      if (auto failed = gemm->launch(side.stream.get(), args))
        giveUp(*failed, 1);
    }
  for (Side &side : sides)
    expect(api.streamSynchronize(side.stream.get()) == cuda::success, name, "the stream failed");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Side &side : sides) {
    std::vector<unsigned short> result(m * n);
    api.copyToHost(result.data(), side.d.address(), result.size() * 2, side.stream.get());
    expect(api.streamSynchronize(side.stream.get()) == cuda::success, name, "the stream failed");
    expect(std::all_of(result.begin(), result.end(), [](unsigned short value) { return value == sum; }), name,
           "a wrong sum");
  }
  std::printf("%s: %.1f us a launch\n", name, seconds * 1e6 / (streams * launches));
}
} // namespace

int main() {
  auto device = orGiveUp(openDevice(), 3);
  auto &table = const_cast<cuda::DriverTable &>(device->api());
  realGraphLaunch = table.graphLaunch;
  table.graphLaunch = countedGraphLaunch;
  for (const Case &one : cases)
    Trial(device, one).run();
  ranges(device);
  sharedSums(device);
  std::printf("%d complaints\n", complaints);
  return complaints ? 1 : 0;
}
