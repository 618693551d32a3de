// Our declarations of the CUDA ABI against numbers of the manuals, and against the real headers where there are some.
#include "gemmc/Runtime/CudaApi.h"
#include <cstddef>
#include <gtest/gtest.h>

// The CUDA Toolkit's usual place; the build itself never looks there.
#if __has_include("/usr/local/cuda/include/cuda.h") && __has_include("/usr/local/cuda/include/cublasLt.h")
#define HAVE_CUDA 1
#include "/usr/local/cuda/include/cuda.h"
#endif

using namespace gemmc;

TEST(Abi, LaunchConfigHasTheLayoutOfTheManual) {
  // Seven 32-bit numbers, a gap, two pointers, a number (CUlaunchConfig).
  EXPECT_EQ(offsetof(cuda::LaunchConfig, sharedBytes), 24u);
  EXPECT_EQ(offsetof(cuda::LaunchConfig, stream), 32u);
  EXPECT_EQ(offsetof(cuda::LaunchConfig, attributes), 40u);
  EXPECT_EQ(offsetof(cuda::LaunchConfig, numAttributes), 48u);
  // An attribute is a number, padded to 8 bytes, and 64 bytes of value.
  EXPECT_EQ(offsetof(cuda::LaunchAttribute, value), 8u);
  EXPECT_EQ(sizeof(cuda::LaunchAttribute), 72u);
  EXPECT_EQ(sizeof(cuda::TensorMap), 128u);
  EXPECT_EQ(alignof(cuda::TensorMap), 64u);
  // CUDA_KERNEL_NODE_PARAMS_v2: a pointer, seven 32-bit numbers, a gap, four pointers.
  EXPECT_EQ(offsetof(cuda::KernelNodeParams, sharedBytes), 32u);
  EXPECT_EQ(offsetof(cuda::KernelNodeParams, params), 40u);
  EXPECT_EQ(sizeof(cuda::KernelNodeParams), 72u);
  EXPECT_EQ(sizeof(cuda::GraphEdge), 8u);
  // cublasLtMatmulHeuristicResult_t: 64 + 8 + 4 + 4 + 16 bytes.
  EXPECT_EQ(sizeof(cuda::LtHeuristic), 96u);
  EXPECT_EQ(offsetof(cuda::LtHeuristic, state), 72u);
}

#ifdef HAVE_CUDA
TEST(Abi, AgreesWithCudaHeader) {
  static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
  static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
  static_assert(sizeof(cuda::TensorMap) == sizeof(CUtensorMap));
  static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  static_assert(offsetof(cuda::LaunchConfig, numAttributes) == offsetof(CUlaunchConfig, numAttrs));
  static_assert(sizeof(cuda::KernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS));
  static_assert(offsetof(cuda::KernelNodeParams, gridX) == offsetof(CUDA_KERNEL_NODE_PARAMS, gridDimX));
  static_assert(offsetof(cuda::KernelNodeParams, blockX) == offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimX));
  static_assert(offsetof(cuda::KernelNodeParams, sharedBytes) == offsetof(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes));
  static_assert(offsetof(cuda::KernelNodeParams, params) == offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
  static_assert(offsetof(cuda::KernelNodeParams, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS, extra));
  static_assert(offsetof(cuda::KernelNodeParams, kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
  static_assert(offsetof(cuda::KernelNodeParams, context) == offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
  static_assert(sizeof(cuda::GraphEdge) == sizeof(CUgraphEdgeData));
  static_assert(offsetof(cuda::GraphEdge, fromPort) == offsetof(CUgraphEdgeData, from_port));
  static_assert(offsetof(cuda::GraphEdge, toPort) == offsetof(CUgraphEdgeData, to_port));
  static_assert(offsetof(cuda::GraphEdge, type) == offsetof(CUgraphEdgeData, type));
  static_assert(int(cuda::portProgrammatic) == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  static_assert(int(cuda::edgeProgrammatic) == int(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC));
  static_assert(int(cuda::captureNone) == int(CU_STREAM_CAPTURE_STATUS_NONE));
  static_assert(int(cuda::captureActive) == int(CU_STREAM_CAPTURE_STATUS_ACTIVE));
  static_assert(int(cuda::captureInvalidated) == int(CU_STREAM_CAPTURE_STATUS_INVALIDATED));
  static_assert(int(cuda::captureUnsupported) == int(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  static_assert(int(cuda::captureInvalid) == int(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD), cuda::perThreadStream);
  static_assert(int(cuda::clusterDimension) == int(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
  static_assert(int(cuda::programmaticStreamSerialization) ==
                int(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
  static_assert(int(cuda::clockRateKHz) == int(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  static_assert(int(cuda::multiprocessorCount) == int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  static_assert(int(cuda::l2CacheSize) == int(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  static_assert(int(cuda::computeCapabilityMajor) == int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  static_assert(int(cuda::computeCapabilityMinor) == int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  static_assert(int(cuda::maxSharedPerBlockOptIn) == int(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  static_assert(int(cuda::maxDynamicShared) == int(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  static_assert(int(cuda::nonPortableCluster) == int(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
  static_assert(int(cuda::numRegs) == int(CU_FUNC_ATTRIBUTE_NUM_REGS));
  static_assert(int(cuda::localSizeBytes) == int(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  static_assert(int(cuda::errorLog) == int(CU_JIT_ERROR_LOG_BUFFER));
  static_assert(int(cuda::errorLogBytes) == int(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES));
  static_assert(int(cuda::infoLog) == int(CU_JIT_INFO_LOG_BUFFER));
  static_assert(int(cuda::mapU8) == int(CU_TENSOR_MAP_DATA_TYPE_UINT8));
  static_assert(int(cuda::mapS32) == int(CU_TENSOR_MAP_DATA_TYPE_INT32));
  static_assert(int(cuda::mapF16) == int(CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
  static_assert(int(cuda::mapF32) == int(CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
  static_assert(int(cuda::mapF64) == int(CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
  static_assert(int(cuda::mapBF16) == int(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
  static_assert(int(cuda::mapTF32) == int(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
  static_assert(int(cuda::promote128B) == int(CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
  static_assert(int(cuda::promote256B) == int(CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
  static_assert(int(cuda::captureGlobal) == int(CU_STREAM_CAPTURE_MODE_GLOBAL));
  static_assert(int(cuda::captureRelaxed) == int(CU_STREAM_CAPTURE_MODE_RELAXED));
  static_assert(int(cuda::captureThreadLocal) == int(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  static_assert(int(cuda::nonBlocking) == int(CU_STREAM_NON_BLOCKING));
  static_assert(int(cuda::illegalAddress) == int(CUDA_ERROR_ILLEGAL_ADDRESS));
  static_assert(int(cuda::launchTimeout) == int(CUDA_ERROR_LAUNCH_TIMEOUT));
  static_assert(int(cuda::illegalInstruction) == int(CUDA_ERROR_ILLEGAL_INSTRUCTION));
  static_assert(int(cuda::misalignedAddress) == int(CUDA_ERROR_MISALIGNED_ADDRESS));
  static_assert(int(cuda::launchFailed) == int(CUDA_ERROR_LAUNCH_FAILED));
  static_assert(int(cuda::outOfResources) == int(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
  static_assert(int(cuda::unsupportedPtxVersion) == int(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
  static_assert(int(cuda::invalidPtx) == int(CUDA_ERROR_INVALID_PTX));
  static_assert(int(cuda::noBinaryForGpu) == int(CUDA_ERROR_NO_BINARY_FOR_GPU));
}

// The functions' parameters: ours must be callable as theirs, so their sizes must agree one by one.
template <typename... Ours, typename... Theirs>
constexpr bool sameSizes(cuda::Result (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return ((sizeof(Ours) == sizeof(Theirs)) && ...);
}
#define SAME(Member, Function)                                                                                         \
  static_assert(sameSizes(decltype(cuda::DriverTable::Member)(nullptr), decltype (&Function)(nullptr)))
SAME(deviceName, cuDeviceGetName);
SAME(deviceAttribute, cuDeviceGetAttribute);
SAME(primaryRetain, cuDevicePrimaryCtxRetain);
SAME(primaryRelease, cuDevicePrimaryCtxRelease);
SAME(moduleLoad, cuModuleLoadDataEx);
SAME(moduleFunction, cuModuleGetFunction);
SAME(functionSet, cuFuncSetAttribute);
SAME(launch, cuLaunchKernelEx);
SAME(activeClusters, cuOccupancyMaxActiveClusters);
SAME(encodeTiled, cuTensorMapEncodeTiled);
SAME(memAlloc, cuMemAlloc);
SAME(copyToDevice, cuMemcpyHtoDAsync);
SAME(copyToHost, cuMemcpyDtoHAsync);
SAME(copyOnDevice, cuMemcpyDtoDAsync);
SAME(memset16, cuMemsetD16Async);
SAME(streamCreate, cuStreamCreate);
SAME(eventRecord, cuEventRecord);
SAME(eventElapsed, cuEventElapsedTime);
SAME(captureBegin, cuStreamBeginCapture);
SAME(captureEnd, cuStreamEndCapture);
SAME(graphInstantiate, cuGraphInstantiateWithFlags);
SAME(graphLaunch, cuGraphLaunch);
SAME(streamIsCapturing, cuStreamIsCapturing);
SAME(captureMode, cuThreadExchangeStreamCaptureMode);
SAME(graphCreate, cuGraphCreate);
SAME(graphAddKernel, cuGraphAddKernelNode);
SAME(graphKernelSet, cuGraphKernelNodeSetAttribute);
#if CUDA_VERSION >= 13000 // before, the plain name is the old function's
SAME(graphAddEdges, cuGraphAddDependencies);
#endif
SAME(graphExecKernelSet, cuGraphExecKernelNodeSetParams);
#endif
