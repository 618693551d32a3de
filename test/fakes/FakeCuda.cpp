#include "FakeCuda.h"
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

using namespace gemmc::cuda;

namespace {
FakeCuda state;
double now = 0; // microseconds
Context current = nullptr;
std::vector<Context> pushed;
int contextStorage;
struct Recorded {
  std::vector<double> durations;
};
Recorded *capturing = nullptr;

int enter(const char *name) {
  state.calls.push_back(name);
  auto found = state.failing.find(name);
  if (found == state.failing.end())
    return 0;
  int code = found->second;
  if (state.failsOnce)
    state.failing.erase(found);
  return code;
}
void spend(double microseconds) {
  if (capturing)
    capturing->durations.push_back(microseconds);
  else
    now += microseconds;
}
} // namespace

#define ENTER(name)                                                                                                    \
  if (int code = enter(name))                                                                                          \
  return code
#define EXPORT extern "C" __attribute__((visibility("default")))

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
  ++state.modules;
  if (state.onLoad)
    state.onLoad(image);
  *module = reinterpret_cast<Module>(new int);
  return 0;
}
EXPORT Result cuModuleUnload(Module module) {
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
  FakeLaunch launch{*config,
                    {config->attributes, config->attributes + config->numAttributes},
                    *reinterpret_cast<std::string *>(function)};
  state.launches.push_back(launch);
  if (state.onLaunch && !capturing)
    state.onLaunch(launch, params);
  spend(state.launchMicroseconds);
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
  for (size_t i = 0; i < count; ++i)
    memcpy(reinterpret_cast<char *>(to) + 2 * i, &value, 2);
  return 0;
}
EXPORT Result cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate");
  ++state.streams;
  *stream = reinterpret_cast<Stream>(new int);
  return 0;
}
EXPORT Result cuStreamDestroy_v2(Stream stream) {
  --state.streams;
  delete reinterpret_cast<int *>(stream);
  return 0;
}
EXPORT Result cuStreamSynchronize(Stream) {
  ENTER("cuStreamSynchronize");
  return 0;
}
EXPORT Result cuEventCreate(Event *event, unsigned) {
  ENTER("cuEventCreate");
  ++state.events;
  *event = reinterpret_cast<Event>(new double(0));
  return 0;
}
EXPORT Result cuEventDestroy_v2(Event event) {
  --state.events;
  delete reinterpret_cast<double *>(event);
  return 0;
}
EXPORT Result cuEventRecord(Event event, Stream) {
  ENTER("cuEventRecord");
  *reinterpret_cast<double *>(event) = now;
  return 0;
}
EXPORT Result cuEventSynchronize(Event) {
  ENTER("cuEventSynchronize");
  return 0;
}
EXPORT Result cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  ENTER("cuEventElapsedTime");
  *milliseconds = static_cast<float>((*reinterpret_cast<double *>(end) - *reinterpret_cast<double *>(start)) / 1000);
  return 0;
}
EXPORT Result cuStreamBeginCapture_v2(Stream, int) {
  ENTER("cuStreamBeginCapture_v2");
  capturing = new Recorded;
  return 0;
}
EXPORT Result cuStreamEndCapture(Stream, Graph *graph) {
  ENTER("cuStreamEndCapture");
  *graph = reinterpret_cast<Graph>(capturing);
  capturing = nullptr;
  return 0;
}
EXPORT Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  *exec = reinterpret_cast<GraphExec>(new Recorded(*reinterpret_cast<Recorded *>(graph)));
  return 0;
}
EXPORT Result cuGraphLaunch(GraphExec exec, Stream) {
  ENTER("cuGraphLaunch");
  for (double duration : reinterpret_cast<Recorded *>(exec)->durations)
    now += duration;
  return 0;
}
EXPORT Result cuGraphDestroy(Graph graph) {
  delete reinterpret_cast<Recorded *>(graph);
  return 0;
}
EXPORT Result cuGraphExecDestroy(GraphExec exec) {
  delete reinterpret_cast<Recorded *>(exec);
  return 0;
}

// cuBLASLt.
struct FakeDesc {
  int compute, scaleType;
  int32_t trans[2];
};

EXPORT size_t cublasLtGetVersion() { return 130001; }
EXPORT const char *cublasLtGetStatusName(LtStatus status) {
  return status == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OTHER";
}
EXPORT LtStatus cublasLtCreate(LtHandle *handle) {
  ENTER("cublasLtCreate");
  *handle = reinterpret_cast<LtHandle>(&state);
  return 0;
}
EXPORT LtStatus cublasLtDestroy(LtHandle) { return 0; }
EXPORT LtStatus cublasLtMatmulDescCreate(LtMatmulDesc *desc, int compute, int scaleType) {
  *desc = reinterpret_cast<LtMatmulDesc>(new FakeDesc{compute, scaleType, {0, 0}});
  return 0;
}
EXPORT LtStatus cublasLtMatmulDescDestroy(LtMatmulDesc desc) {
  delete reinterpret_cast<FakeDesc *>(desc);
  return 0;
}
EXPORT LtStatus cublasLtMatmulDescSetAttribute(LtMatmulDesc desc, int attribute, const void *value, size_t bytes) {
  if (bytes != 4 || (attribute != ltTransA && attribute != ltTransB))
    return 7;
  memcpy(&reinterpret_cast<FakeDesc *>(desc)->trans[attribute - ltTransA], value, 4);
  return 0;
}
EXPORT LtStatus cublasLtMatrixLayoutCreate(LtLayout *layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = reinterpret_cast<LtLayout>(new FakeMatmul::Layout{type, rows, cols, ld});
  return 0;
}
EXPORT LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete reinterpret_cast<FakeMatmul::Layout *>(layout);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceCreate(LtPreference *preference) {
  *preference = reinterpret_cast<LtPreference>(new int);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete reinterpret_cast<int *>(preference);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference, int attribute, const void *, size_t bytes) {
  return bytes == (attribute == ltMaxWorkspace ? 8 : 4) ? 0 : 7;
}
EXPORT LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmulDesc, LtLayout, LtLayout, LtLayout, LtLayout,
                                               LtPreference, int wanted, LtHeuristic *results, int *count) {
  ENTER("cublasLtMatmulAlgoGetHeuristic");
  *count = 0;
  for (size_t i = 0; i < state.algorithmMicroseconds.size() && *count < wanted; ++i) {
    results[i] = LtHeuristic{};
    results[i].algo.data[0] = i;
    ++*count;
  }
  return 0;
}
EXPORT LtStatus cublasLtMatmulAlgoConfigGetAttribute(const LtAlgo *algo, int, void *value, size_t, size_t *written) {
  int id = 60 + static_cast<int>(algo->data[0]);
  memcpy(value, &id, sizeof(id));
  *written = sizeof(id);
  return 0;
}
EXPORT LtStatus cublasLtMatmul(LtHandle, LtMatmulDesc desc, const void *alpha, const void *a, LtLayout aLayout,
                               const void *b, LtLayout bLayout, const void *beta, const void *c, LtLayout cLayout,
                               void *d, LtLayout dLayout, const LtAlgo *algo, void *, size_t, Stream) {
  ENTER("cublasLtMatmul");
  auto layout = [](LtLayout l) { return *reinterpret_cast<FakeMatmul::Layout *>(l); };
  auto address = [](const void *p) { return reinterpret_cast<uint64_t>(p); };
  auto bytes = [](const void *p, size_t n) {
    const auto *start = static_cast<const unsigned char *>(p);
    return std::vector<unsigned char>(start, start + n);
  };
  const FakeDesc &product = *reinterpret_cast<FakeDesc *>(desc);
  size_t scaleBytes = product.scaleType == ltF16 ? 2 : 4;
  int algorithm = static_cast<int>(algo->data[0]);
  state.matmuls.push_back(FakeMatmul{product.compute, product.scaleType, product.trans[0], product.trans[1],
                                     layout(aLayout), layout(bLayout), layout(cLayout), layout(dLayout), address(a),
                                     address(b), address(c), address(d), bytes(alpha, scaleBytes),
                                     bytes(beta, scaleBytes), algorithm});
  spend(state.algorithmMicroseconds[algorithm]);
  return 0;
}
