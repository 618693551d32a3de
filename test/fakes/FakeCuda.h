/// A libcuda and libcublasLt in one shared object, so that driver paths run without a GPU: device memory is host
/// memory, a launch calls a hook of the test, time stands still but for launches. Everything of note is recorded.
#pragma once
#include "gemmc/Runtime/CudaApi.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

struct FakeLaunch {
  gemmc::cuda::LaunchConfig config;
  std::vector<gemmc::cuda::LaunchAttribute> attributes;
  std::string kernel;
  bool graph = false; ///< From a graph: config has its kernel's numbers and the stream of the graph's launch.
  int edge = -1;      ///< To what is in front of it in its graph: 0 waits for its end, 1 is programmatic; -1: none.
};
struct FakeMap {
  int type, rank, interleave, swizzle, promotion, oobFill;
  uint64_t address;
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box, elementStrides;
};
struct FakeMatmul {
  int compute, scaleType;
  int32_t transA, transB;
  struct Layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch = 1;
    int64_t batchStride = 0;
  } a, b, c, d;
  uint64_t aAddress, bAddress, cAddress, dAddress;
  std::vector<unsigned char> alpha, beta; ///< 2 or 4 bytes, as the scale type says.
  int algorithm;
  int8_t fastAccumulation;
};

struct FakeCuda {
  // Behaviour.
  std::map<std::string, int> failing; ///< Function -> code it returns instead of working.
  bool failsOnce = false;             ///< What fails works from then on.
  int devices = 1;
  std::map<int, int> attributes{{13, 1980000}, {16, 132}, {38, 50 << 20}, {75, 9}, {76, 0}, {97, 232448}};
  std::string name = "Fake H200";
  std::string jitLog;
  bool currentContext = false; ///< The caller has one already.
  std::function<void(const FakeLaunch &, void **params)> onLaunch;
  std::function<void(gemmc::cuda::Stream)> onGraph; ///< Before a graph is launched; other threads are not held up.
  std::function<void(const void *image)> onLoad;    ///< Of a module.
  /// Kernel -> bytes of each parameter, which a driver reads in the module: a graph keeps the parameters of these
  /// kernels. Of others only the time is known to it, and they are no nodes of a graph that is put together.
  std::map<std::string, std::vector<size_t>> paramBytes;
  bool endless = false; ///< Kernels do not end.
  double launchMicroseconds = 100;
  int activeClusters = 66;                                 ///< That the device can hold.
  std::vector<double> algorithmMicroseconds{130, 90, 110}; ///< cuBLASLt algorithms, in the heuristic's order.
  std::map<int, uint32_t> alignments; ///< That cuBLASLt was last told, by the preference's attribute.
  // What happened.
  std::vector<std::string> calls;
  std::vector<FakeLaunch> launches;
  std::vector<FakeMap> maps;
  int replaced = 0; ///< Addresses in maps.
  std::vector<FakeMatmul> matmuls;
  std::function<void(const FakeMatmul &)> onMatmul;
  std::map<std::string, int> functionAttributes; ///< "kernel:attribute" -> value.
  int graphsMade = 0;                            ///< Executable ones.
  int nodesSet = 0;                              ///< Parameters of their kernels.
  int raced = 0; ///< Calls for an executable graph while another was under way for it: not allowed.
  int allocations = 0, modules = 0, retained = 0, streams = 0, events = 0, graphs = 0, execs = 0, lookups = 0;
  int lifetime() const { return allocations + modules + retained + streams + events + graphs + execs; }
};

/// The one instance in the shared object; the test resets it with `*fakeCuda() = FakeCuda()`.
using FakeCudaAccessor = FakeCuda *(*)();
