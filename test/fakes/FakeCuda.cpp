#include "FakeShared.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <unistd.h>

using namespace gemmc::cuda;
using fake::enter, fake::everything, fake::state;

FakeCuda fake::state;
std::recursive_mutex fake::everything;

namespace {
double now = 0; // microseconds
thread_local Context current = nullptr;
thread_local std::vector<Context> pushed;
int contextStorage;

/// A kernel with its parameters, or anything else that takes time.
struct Node {
  FakeLaunch launch;
  bool hasParams = false;
  std::vector<std::vector<unsigned char>> params;
  double duration = 0;
};
struct Recorded {
  std::vector<std::shared_ptr<Node>> nodes; ///< Each behind the one in front of it.
};
struct Exec {
  std::vector<Node *> origins; ///< Of the graph that it was made from.
  std::vector<Node> nodes;
  std::atomic<bool> busy{false};
};
/// While it lives, its executable graph is in use by this thread.
struct Use {
  Exec &exec;
  bool alone = !exec.busy.exchange(true);
  ~Use() {
    if (alone)
      exec.busy = false;
  }
};
struct Capture {
  Recorded graph;
  int mode = 0;
  std::thread::id thread; ///< That began it.
  bool invalid = false;
};
std::map<Stream, Capture> captures;
thread_local int captureMode = captureGlobal; ///< Of calls that captures may forbid.
std::set<Node *> alive;                       ///< In graphs that were not destroyed.

/// Of a call that captures forbid: of this thread, unless they are relaxed, or in global mode of any. It fails, and
/// they are invalidated (seen of cuGraphInstantiate and cuGraphExecDestroy, driver 580).
int unsafeCall() {
  int code = 0;
  for (auto &[stream, capture] : captures) {
    bool ours = capture.thread == std::this_thread::get_id() && capture.mode != captureRelaxed;
    bool forbids =
        captureMode != captureRelaxed && (ours || (captureMode == captureGlobal && capture.mode == captureGlobal));
    if (forbids) {
      capture.invalid = true;
      code = captureUnsupported;
    }
  }
  return code;
}

/// A copy of the parameters, as a driver takes one; false when it does not know their sizes.
bool copyParams(Node &node, void **params) {
  auto found = state.paramBytes.find(node.launch.kernel);
  if (found == state.paramBytes.end())
    return false;
  node.params.clear();
  for (size_t i = 0; i < found->second.size(); ++i) {
    const auto *start = static_cast<const unsigned char *>(params[i]);
    node.params.emplace_back(start, start + found->second[i]);
  }
  return node.hasParams = true;
}

void run(const Node &node, Stream stream) {
  now += node.duration;
  if (node.launch.kernel.empty())
    return;
  FakeLaunch launch = node.launch;
  launch.config.stream = stream;
  state.launches.push_back(launch);
  std::vector<std::vector<unsigned char>> params = node.params;
  std::vector<void *> pointers;
  for (auto &param : params)
    pointers.push_back(param.data());
  if (state.onLaunch && node.hasParams)
    state.onLaunch(launch, pointers.data());
}

/// A capture takes what is enqueued on `stream`: then the code that the call returns, else -1.
int captured(Stream stream, Node node) {
  auto found = captures.find(stream);
  if (found == captures.end())
    return -1;
  Capture &capture = found->second;
  if (capture.invalid)
    return captureInvalid;
  if (!capture.graph.nodes.empty())
    node.launch.edge = std::max(node.launch.edge, 0);
  else
    node.launch.edge = -1;
  capture.graph.nodes.push_back(std::make_shared<Node>(std::move(node)));
  return 0;
}
/// A kernel does not end: the first one where a test says so, else the first behind so many that do.
bool isBusy() {
  static const char *ending = getenv("FAKE_CUDA_ENDLESS");
  return state.endless ? !state.launches.empty() : ending && state.launches.size() > strtoul(ending, nullptr, 10);
}
/// What frees waits for all kernels of the context.
void mustNotWait(const char *name) {
  if (!isBusy())
    return;
  fprintf(stderr, "%s waits for ever\n", name);
  abort();
}
} // namespace

int fake::enter(const char *name) {
  std::lock_guard lock(everything);
  state.calls.push_back(name);
  auto found = state.failing.find(name);
  if (found == state.failing.end())
    return 0;
  int code = found->second;
  if (state.failsOnce)
    state.failing.erase(found);
  return code;
}

int fake::passTime(Stream stream, double microseconds) {
  Node node;
  node.duration = microseconds;
  if (int code = captured(stream, node); code >= 0)
    return code;
  now += microseconds;
  return 0;
}

EXPORT FakeCuda *fakeCuda() { return &state; }

EXPORT Result cuInit(unsigned) {
  if (const char *milliseconds = getenv("FAKE_CUDA_START")) // a real one takes its time
    usleep(1000 * atoi(milliseconds));
  ENTER("cuInit");
  return 0;
}
EXPORT Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
EXPORT Result cuGetErrorName(Result code, const char **name) {
  static const std::map<int, const char *> names{
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},        {100, "CUDA_ERROR_NO_DEVICE"},
      {218, "CUDA_ERROR_INVALID_PTX"},        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},     {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
      {1, "CUDA_ERROR_INVALID_VALUE"}};
  auto found = names.find(code);
  if (found == names.end())
    return 1;
  *name = found->second;
  return 0;
}
EXPORT Result cuGetErrorString(Result code, const char **text) {
  *text = code == 2 ? "out of memory" : "something went wrong";
  return 0;
}
EXPORT Result cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount");
  *count = state.devices;
  return 0;
}
EXPORT Result cuDeviceGet(DeviceId *device, int ordinal) {
  *device = ordinal;
  return 0;
}
EXPORT Result cuDeviceGetName(char *name, int bytes, DeviceId) {
  const char *other = getenv("FAKE_CUDA_NAME");
  strncpy(name, other ? other : state.name.c_str(), bytes);
  return 0;
}
EXPORT Result cuDeviceGetAttribute(int *value, int attribute, DeviceId) {
  *value = state.attributes[attribute];
  return 0;
}
EXPORT Result cuDevicePrimaryCtxRetain(Context *context, DeviceId) {
  ENTER("cuDevicePrimaryCtxRetain");
  ++state.retained;
  *context = reinterpret_cast<Context>(&contextStorage);
  return 0;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(DeviceId) {
  mustNotWait("cuDevicePrimaryCtxRelease_v2");
  --state.retained;
  return 0;
}
EXPORT Result cuCtxGetCurrent(Context *context) {
  *context = state.currentContext ? reinterpret_cast<Context>(&contextStorage) : current;
  return 0;
}
EXPORT Result cuCtxGetDevice(DeviceId *device) {
  *device = 0;
  return 0;
}
EXPORT Result cuCtxPushCurrent_v2(Context context) {
  enter("cuCtxPushCurrent_v2");
  pushed.push_back(current);
  current = context;
  return 0;
}
EXPORT Result cuCtxPopCurrent_v2(Context *context) {
  enter("cuCtxPopCurrent_v2");
  *context = current;
  current = pushed.back();
  pushed.pop_back();
  return 0;
}
EXPORT Result cuCtxSynchronize() {
  ENTER("cuCtxSynchronize");
  return 0;
}
EXPORT Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count, int *options, void **values) {
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == errorLog)
      strcpy(static_cast<char *>(values[i]), state.jitLog.c_str());
  ENTER("cuModuleLoadDataEx");
  if (int code = unsafeCall())
    return code;
  ++state.modules;
  if (state.onLoad)
    state.onLoad(image);
  *module = reinterpret_cast<Module>(new int);
  return 0;
}
EXPORT Result cuModuleUnload(Module module) {
  mustNotWait("cuModuleUnload");
  enter("cuModuleUnload");
  --state.modules;
  delete reinterpret_cast<int *>(module);
  return 0;
}
EXPORT Result cuModuleGetFunction(Function *function, Module, const char *name) {
  ENTER("cuModuleGetFunction");
  static std::map<std::string, std::string> names; // a function handle is its name
  auto &held = names[name];
  held = name;
  *function = reinterpret_cast<Function>(&held);
  return 0;
}
EXPORT Result cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  state.functionAttributes[*reinterpret_cast<std::string *>(function) + ":" + std::to_string(attribute)] = value;
  return 0;
}
EXPORT Result cuFuncGetAttribute(int *value, int, Function) {
  *value = 128;
  return 0;
}
EXPORT Result cuLaunchKernelEx(const LaunchConfig *config, Function function, void **params, void **extra) {
  ENTER("cuLaunchKernelEx");
  if (extra)
    return 1;
  Node node;
  node.launch = {*config,
                 {config->attributes, config->attributes + config->numAttributes},
                 *reinterpret_cast<std::string *>(function)};
  node.duration = state.launchMicroseconds;
  if (captures.count(config->stream)) {
    copyParams(node, params);
    node.launch.graph = true;
    for (const LaunchAttribute &attribute : node.launch.attributes)
      if (attribute.id == programmaticStreamSerialization && attribute.value.programmaticSerialization)
        node.launch.edge = 1;
    return captured(config->stream, std::move(node));
  }
  state.launches.push_back(node.launch);
  if (state.onLaunch)
    state.onLaunch(node.launch, params);
  now += node.duration;
  return 0;
}
EXPORT Result cuOccupancyMaxActiveClusters(int *clusters, Function, const LaunchConfig *) {
  ENTER("cuOccupancyMaxActiveClusters");
  *clusters = state.activeClusters;
  return 0;
}
EXPORT Result cuTensorMapEncodeTiled(TensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                                     const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides,
                                     int interleave, int swizzle, int promotion, int oobFill) {
  ENTER("cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(map) % 64)
    return 1; // as the driver does
  state.maps.push_back(FakeMap{type,
                               static_cast<int>(rank),
                               interleave,
                               swizzle,
                               promotion,
                               oobFill,
                               reinterpret_cast<uint64_t>(address),
                               {dims, dims + rank},
                               {strides, strides + rank - 1},
                               {box, box + rank},
                               {elementStrides, elementStrides + rank}});
  memset(map->bytes, 0x4d, sizeof(map->bytes));
  memcpy(map->bytes + 64, &address, 8); // where a test can see it
  return 0;
}
EXPORT Result cuTensorMapReplaceAddress(TensorMap *map, void *address) {
  ENTER("cuTensorMapReplaceAddress");
  if (reinterpret_cast<uintptr_t>(map) % 64 || reinterpret_cast<uintptr_t>(address) % 16)
    return 1; // as the driver does
  ++state.replaced;
  memcpy(map->bytes + 64, &address, 8);
  return 0;
}
EXPORT Result cuMemAlloc_v2(DevicePtr *address, size_t bytes) {
  ENTER("cuMemAlloc_v2");
  ++state.allocations;
  *address = reinterpret_cast<DevicePtr>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}
EXPORT Result cuMemFree_v2(DevicePtr address) {
  mustNotWait("cuMemFree_v2");
  --state.allocations;
  free(reinterpret_cast<void *>(address));
  return 0;
}
EXPORT Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void *from, size_t bytes, Stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
EXPORT Result cuMemcpyDtoHAsync_v2(void *to, DevicePtr from, size_t bytes, Stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
EXPORT Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes, Stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return 0;
}
EXPORT Result cuMemsetD16Async(DevicePtr to, unsigned short value, size_t count, Stream) {
  ENTER("cuMemsetD16Async");
  std::fill_n(reinterpret_cast<unsigned short *>(to), count, value);
  return 0;
}
EXPORT Result cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate");
  ++state.streams;
  *stream = reinterpret_cast<Stream>(new int);
  return 0;
}
EXPORT Result cuStreamDestroy_v2(Stream stream) {
  mustNotWait("cuStreamDestroy_v2");
  --state.streams;
  delete reinterpret_cast<int *>(stream);
  return 0;
}
EXPORT Result cuStreamSynchronize(Stream) {
  mustNotWait("cuStreamSynchronize");
  ENTER("cuStreamSynchronize");
  return 0;
}
EXPORT Result cuStreamQuery(Stream) {
  ENTER("cuStreamQuery");
  return isBusy() ? notReady : 0;
}
EXPORT Result cuEventCreate(Event *event, unsigned) {
  ENTER("cuEventCreate");
  ++state.events;
  *event = reinterpret_cast<Event>(new double(0));
  return 0;
}
EXPORT Result cuEventDestroy_v2(Event event) {
  mustNotWait("cuEventDestroy_v2");
  --state.events;
  delete reinterpret_cast<double *>(event);
  return 0;
}
EXPORT Result cuEventRecord(Event event, Stream) {
  ENTER("cuEventRecord");
  *reinterpret_cast<double *>(event) = now;
  return 0;
}
EXPORT Result cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  ENTER("cuEventElapsedTime");
  *milliseconds = static_cast<float>((*reinterpret_cast<double *>(end) - *reinterpret_cast<double *>(start)) / 1000);
  return 0;
}
EXPORT Result cuStreamBeginCapture_v2(Stream stream, int mode) {
  ENTER("cuStreamBeginCapture_v2");
  if (!stream)
    return captureUnsupported; // as the driver does
  captures[stream].mode = mode;
  captures[stream].thread = std::this_thread::get_id();
  return 0;
}
EXPORT Result cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return 0;
}
EXPORT Result cuStreamEndCapture(Stream stream, Graph *graph) {
  ENTER("cuStreamEndCapture");
  *graph = nullptr;
  auto found = captures.find(stream);
  if (found == captures.end())
    return 1;
  Capture capture = std::move(found->second);
  captures.erase(found);
  if (capture.invalid)
    return captureInvalid;
  for (auto &node : capture.graph.nodes)
    alive.insert(node.get());
  ++state.graphs;
  *graph = reinterpret_cast<Graph>(new Recorded(std::move(capture.graph)));
  return 0;
}
EXPORT Result cuStreamIsCapturing(Stream stream, int *status) {
  ENTER("cuStreamIsCapturing");
  auto found = captures.find(stream);
  *status = found == captures.end() ? captureNone : found->second.invalid ? captureInvalidated : captureActive;
  return 0;
}
EXPORT Result cuGraphCreate(Graph *graph, unsigned flags) {
  ENTER("cuGraphCreate");
  if (flags)
    return 1;
  ++state.graphs;
  *graph = reinterpret_cast<Graph>(new Recorded);
  return 0;
}
static void setKernel(Node &node, const KernelNodeParams &params) {
  LaunchConfig &config = node.launch.config;
  config = LaunchConfig{params.gridX,  params.gridY,       params.gridZ, params.blockX, params.blockY,
                        params.blockZ, params.sharedBytes, nullptr,      nullptr,       0};
  node.launch.kernel = *reinterpret_cast<std::string *>(params.function);
}
EXPORT Result cuGraphAddKernelNode_v2(GraphNode *node, Graph graph, const GraphNode *, size_t dependencies,
                                      const KernelNodeParams *params) {
  ENTER("cuGraphAddKernelNode_v2");
  auto made = std::make_shared<Node>();
  setKernel(*made, *params);
  made->launch.graph = true;
  made->duration = state.launchMicroseconds;
  if (dependencies || params->extra || !copyParams(*made, params->params))
    return 1;
  alive.insert(made.get());
  *node = reinterpret_cast<GraphNode>(made.get());
  reinterpret_cast<Recorded *>(graph)->nodes.push_back(std::move(made));
  return 0;
}
EXPORT Result cuGraphKernelNodeSetAttribute(GraphNode node, int attribute, const void *value) {
  ENTER("cuGraphKernelNodeSetAttribute");
  LaunchAttribute set{};
  set.id = attribute;
  memcpy(&set.value, value, sizeof(set.value));
  reinterpret_cast<Node *>(node)->launch.attributes.push_back(set);
  return 0;
}
/// This fake's graphs are chains.
EXPORT Result cuGraphAddDependencies_v2(Graph graph, const GraphNode *from, const GraphNode *to, const GraphEdge *edges,
                                        size_t count) {
  ENTER("cuGraphAddDependencies_v2");
  auto &nodes = reinterpret_cast<Recorded *>(graph)->nodes;
  const GraphEdge &edge = *edges;
  bool known =
      (edge.fromPort == 0 && edge.type == 0) || (edge.fromPort == portProgrammatic && edge.type == edgeProgrammatic);
  for (size_t i = 1; i < nodes.size(); ++i)
    if (count == 1 && known && !edge.toPort && reinterpret_cast<Node *>(*from) == nodes[i - 1].get() &&
        reinterpret_cast<Node *>(*to) == nodes[i].get()) {
      nodes[i]->launch.edge = edge.type;
      return 0;
    }
  return 1;
}
EXPORT Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  if (int code = unsafeCall())
    return code;
  auto made = std::make_unique<Exec>();
  for (auto &node : reinterpret_cast<Recorded *>(graph)->nodes) {
    made->origins.push_back(node.get());
    made->nodes.push_back(*node);
  }
  ++state.execs, ++state.graphsMade;
  *exec = reinterpret_cast<GraphExec>(made.release());
  return 0;
}
EXPORT Result cuGraphExecKernelNodeSetParams_v2(GraphExec handle, GraphNode node, const KernelNodeParams *params) {
  Exec &exec = *reinterpret_cast<Exec *>(handle);
  Use use{exec};
  ENTER("cuGraphExecKernelNodeSetParams_v2");
  state.raced += !use.alone;
  auto *origin = reinterpret_cast<Node *>(node);
  if (!alive.count(origin))
    return 1;
  for (size_t i = 0; i < exec.origins.size(); ++i)
    if (exec.origins[i] == origin) {
      setKernel(exec.nodes[i], *params);
      if (params->extra || !copyParams(exec.nodes[i], params->params))
        return 1;
      ++state.nodesSet;
      lock.unlock();
      usleep(10); // others may come in between
      return 0;
    }
  return 1;
}
EXPORT Result cuGraphLaunch(GraphExec handle, Stream stream) {
  Exec &exec = *reinterpret_cast<Exec *>(handle);
  Use use{exec};
  if (state.onGraph)
    state.onGraph(stream);
  ENTER("cuGraphLaunch");
  state.raced += !use.alone;
  if (auto found = captures.find(stream); found != captures.end()) {
    found->second.invalid = true; // as the driver does
    return captureUnsupported;
  }
  for (const Node &node : exec.nodes)
    run(node, stream);
  return 0;
}
EXPORT Result cuGraphDestroy(Graph graph) {
  mustNotWait("cuGraphDestroy");
  enter("cuGraphDestroy");
  std::lock_guard lock(everything);
  auto *recorded = reinterpret_cast<Recorded *>(graph);
  for (auto &node : recorded->nodes)
    alive.erase(node.get());
  --state.graphs;
  delete recorded;
  return 0;
}
EXPORT Result cuGraphExecDestroy(GraphExec exec) {
  mustNotWait("cuGraphExecDestroy");
  enter("cuGraphExecDestroy");
  std::lock_guard lock(everything);
  if (int code = unsafeCall())
    return code;
  --state.execs;
  delete reinterpret_cast<Exec *>(exec);
  return 0;
}
