/// The few types, numbers and functions of the CUDA driver API and of cuBLASLt that gemmc uses, declared here so that
/// no CUDA header is needed to build; both libraries are loaded at run time. Layouts and values are those of cuda.h and
/// cublasLt.h 12 and 13; a unit test compares them with the real headers where a Toolkit is installed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gemmc::cuda {

using Result = int; ///< CUresult; 0 = success.
using DeviceId = int;
using DevicePtr = uint64_t;
using Context = struct ContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Stream = struct StreamTag *; ///< Null = the default stream. See also perThreadStream.
using Event = struct EventTag *;
using Graph = struct GraphTag *;
using GraphNode = struct GraphNodeTag *;
using GraphExec = struct GraphExecTag *;

enum : Result {
  success = 0,
  outOfMemory = 2,
  noDevice = 100,
  noBinaryForGpu = 209,
  invalidPtx = 218,
  unsupportedPtxVersion = 222,
  notReady = 600,
  illegalAddress = 700,
  outOfResources = 701,
  launchTimeout = 702,
  illegalInstruction = 715,
  misalignedAddress = 716,
  launchFailed = 719,
  captureUnsupported = 900,
  captureInvalid = 901,
};

enum DeviceAttribute : int {
  clockRateKHz = 13,
  multiprocessorCount = 16,
  l2CacheSize = 38,
  computeCapabilityMajor = 75,
  computeCapabilityMinor = 76,
  maxSharedPerBlockOptIn = 97,
};
enum FunctionAttribute : int { localSizeBytes = 3, numRegs = 4, maxDynamicShared = 8, nonPortableCluster = 14 };
enum JitOption : int { infoLog = 3, infoLogBytes = 4, errorLog = 5, errorLogBytes = 6 };
enum StreamFlags : unsigned { nonBlocking = 1 };
enum CaptureMode : int { captureGlobal = 0, captureThreadLocal = 1, captureRelaxed = 2 };
enum CaptureStatus : int { captureNone = 0, captureActive = 1, captureInvalidated = 2 };
constexpr uintptr_t perThreadStream = 2; ///< A handle that is another stream in each thread.

/// CUtensorMap: opaque, passed by value to kernels.
struct alignas(64) TensorMap {
  std::byte bytes[128];
};
/// CUtensorMapDataType.
enum TensorType : int {
  mapU8 = 0,
  mapU16 = 1,
  mapU32 = 2,
  mapS32 = 3,
  mapF16 = 6,
  mapF32 = 7,
  mapF64 = 8,
  mapBF16 = 9,
  mapTF32 = 11
};
enum TensorPromotion : int { promoteNone = 0, promote64B = 1, promote128B = 2, promote256B = 3 };

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticSerialization; ///< 1: may start before the kernel in front has ended.
  } value;
};
enum LaunchAttributeId : int { clusterDimension = 4, programmaticStreamSerialization = 6 };

struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNodeParams {
  Function function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **params;
  void **extra;
  void *kernel; ///< CUkernel: only where `function` is null.
  Context context;
};
/// CUgraphEdgeData: all zeros is an edge that waits for the end of the node in front.
struct GraphEdge {
  uint8_t fromPort, toPort, type, reserved[5];
};
enum GraphPort : uint8_t { portProgrammatic = 1 };
enum GraphEdgeType : uint8_t { edgeProgrammatic = 1 };

/// One pointer for each row of CudaFunctions.def; an optional one may be null.
struct DriverTable {
#define GEMMC_CUDA(Member, Symbol, Need, Params) Result(*Member) Params = nullptr;
#include "gemmc/Runtime/CudaFunctions.def"
#undef GEMMC_CUDA
};

// cuBLASLt.
using LtStatus = int; ///< cublasStatus_t; 0 = success.
using LtHandle = struct LtHandleTag *;
using LtMatmulDesc = struct LtMatmulDescTag *;
using LtLayout = struct LtLayoutTag *;
using LtPreference = struct LtPreferenceTag *;

enum : LtStatus { ltNotSupported = 15 };
enum LtDataType : int { ltF32 = 0, ltF64 = 1, ltF16 = 2, ltS8 = 3, ltS32 = 10, ltBF16 = 14, ltE4M3 = 28, ltE5M2 = 29 };
enum LtCompute : int { ltCompute16F = 64, ltCompute32F = 68, ltCompute64F = 70, ltCompute32I = 72, ltComputeTF32 = 77 };
enum LtOperation : int32_t { ltN = 0, ltT = 1 };
enum LtDescAttribute : int { ltTransA = 3, ltTransB = 4, ltFastAccumulation = 25 };
enum LtLayoutAttribute : int { ltBatchCount = 5, ltBatchStride = 6 };
enum LtPreferenceAttribute : int { ltMaxWorkspace = 1, ltAlignA = 5, ltAlignB = 6, ltAlignC = 7, ltAlignD = 8 };
enum LtConfigAttribute : int { ltAlgoId = 0 };

struct LtAlgo {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgo algo;
  size_t workspace;
  LtStatus state;
  float waves;
  int reserved[4];
};

struct LtTable {
#define GEMMC_CUBLASLT(Member, Symbol, Params) LtStatus(*Member) Params = nullptr;
#include "gemmc/Runtime/CudaFunctions.def"
#undef GEMMC_CUBLASLT
  size_t (*getVersion)() = nullptr;                 ///< cublasLtGetVersion
  const char *(*getStatusName)(LtStatus) = nullptr; ///< cublasLtGetStatusName
};

} // namespace gemmc::cuda
