/// From a LaunchInfo and the arguments of one GEMM to what a launch needs in numbers: grid, tensor maps, parameter
/// block. Shared by the GPU and by the emulator, so that both run exactly the same launch.
#pragma once
#include "gemmc/PTX/LaunchInfo.h"
#include "gemmc/Runtime/Failure.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace gemmc {

/// The arguments of one GEMM: D = alpha * A * B + beta * C, or of a batch of them.
struct LaunchArgs {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0; ///< Elements.
  int64_t batch = 1;                          ///< Products.
  /// Elements from one product's matrix to the next one's; 0 (not of D): all have the same. Of one product not read.
  int64_t strideA = 0, strideB = 0, strideC = 0, strideD = 0;
  uint64_t a = 0, b = 0, c = 0, d = 0; ///< Device addresses. Null is fine for what is not read (see checkArgs).
  double alpha = 1, beta = 0;          ///< See `factorBeside`.
  uint64_t workspace = 0;              ///< Device address, a multiple of 256.
  uint64_t workspaceBytes = 0;
  /// The workspace is as the last launch of the same kernels left it: those that only ready it are left out.
  bool workspaceReady = false;

  /// Whether a pass over K happens at all. Else A and B are not read, and D = beta * C whatever alpha is.
  bool readsInputs() const { return alpha != 0 && k != 0; }
  /// Whether D has no element: nothing is launched.
  bool empty() const { return m == 0 || n == 0 || batch == 0; }
};

/// alpha or beta as a kernel with sums of that type has it: f32, beside f64 as it is.
inline double factorBeside(Elem sums, double given) { return sums == Elem::f64 ? given : static_cast<float>(given); }

/// The value of a launch variable (see LaunchInfo.h); nullopt for an unknown name.
std::optional<int64_t> launchVariable(const LaunchArgs &args, int64_t sms, llvm::StringRef name);

/// Bytes from the first to behind the last element of a matrix of rows x cols; nullopt when 64 bits overflow.
std::optional<uint64_t> matrixBytes(Elem type, Order order, int64_t rows, int64_t cols, int64_t ld);
/// ... of as many matrices, `stride` elements apart.
std::optional<uint64_t> matrixBytes(Elem type, Order order, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                                    int64_t stride);

/// The part of checkArgs before pointers: sizes, scales, leading dimensions.
MaybeFailure checkShape(const ptx::LaunchInfo &info, const LaunchArgs &args);
/// checkShape, then (unless D is empty) pointers: a needed one that is null, one that is not aligned to its element, D
/// overlapping an operand (C exactly in place of D is fine), too little workspace. A and B are not needed when alpha or
/// k is 0, C not when beta is 0.
MaybeFailure checkArgs(const ptx::LaunchInfo &info, const LaunchArgs &args, int64_t sms);

/// The first requirement that does not hold; nullptr = all hold. One that has no value does not hold.
const Expr *firstUnmet(const ptx::LaunchInfo &info, const LaunchArgs &args, int64_t sms);

/// Arguments of cuTensorMapEncodeTiled with values.
struct TensorMapArgs {
  Elem type = Elem::f16;
  uint64_t address = 0;
  llvm::SmallVector<uint64_t, 5> dims, strides; ///< Elements, innermost first; bytes, of dimensions 1...
  llvm::SmallVector<uint32_t, 5> box;
  ptx::TmaSwizzle swizzle = ptx::TmaSwizzle::none;
};
/// Writes the 128 bytes of a tensor map to `out` (aligned to 64).
using MapEncoder = llvm::function_ref<MaybeFailure(llvm::StringRef name, const TensorMapArgs &map, std::byte *out)>;

/// One kernel's launch in numbers. Parameters lie as the entry declares them: in order, each naturally aligned, tensor
/// maps 128 bytes at a multiple of 64.
struct PreparedKernel {
  static constexpr unsigned maxParamBytes = 8192; ///< PTX ISA 11.2.1: since 8.1 a kernel may have 32764.
  std::array<uint32_t, 3> grid{};
  bool empty = false; ///< A grid extent is 0: nothing to launch.
  unsigned paramBytes = 0;
  llvm::SmallVector<uint16_t, 16> offsets; ///< Of each parameter.
  alignas(64) std::array<std::byte, maxParamBytes> params;
};
MaybeFailure prepareKernel(const ptx::KernelInfo &kernel, const LaunchArgs &args, int64_t sms, MapEncoder encode,
                           PreparedKernel &out);

/// Bytes of workspace that a launch needs; nullopt when it has no value.
std::optional<uint64_t> workspaceBytes(const ptx::LaunchInfo &info, const LaunchArgs &args, int64_t sms);

} // namespace gemmc
