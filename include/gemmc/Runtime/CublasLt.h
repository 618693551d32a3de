/// cuBLASLt, loaded at run time: the reference to measure against.
///
/// It speaks column-major. A row-major D is computed as D^T = B^T A^T: operands exchanged, a row-major matrix read as
/// the column-major transpose that it is in memory; so no layout needs a copy or an order attribute.
#pragma once
#include "gemmc/PTX/LaunchInfo.h"
#include "gemmc/Runtime/Device.h"

namespace gemmc {

struct CublasOperand {
  Elem type = Elem::f16;
  Order order = Order::row;
  int64_t ld = 0, batchStride = 0; ///< Elements.
  uint64_t align = 16;             ///< Of the base pointer, bytes; bounds what the heuristic may choose.
};
/// D = alpha * A * B + beta * C; C has D's order.
struct CublasProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  CublasOperand a, b, c, d;
  Elem accumulator = Elem::f32;
  bool fast = true; ///< 8-bit floats: sums stay in the tensor cores.
  double alpha = 1, beta = 0;
};

class CublasLt {
public:
  static constexpr int wantedAlgorithms = 64;
  static constexpr uint64_t workspaceLimit = uint64_t(128) << 20;

  /// Tries libcublasLt.so.13, .12, and /usr/local/cuda/lib64, or only `library` when one is given.
  static Outcome<std::shared_ptr<const CublasLt>> load(std::shared_ptr<const Device> device,
                                                       llvm::StringRef library = "");
  ~CublasLt();
  const cuda::LtTable &api() const { return table; }
  uint64_t version() const { return versionNumber; }
  Failure failure(cuda::LtStatus status, const llvm::Twine &what) const;

private:
  friend class CublasMatmul;
  CublasLt() = default;
  std::shared_ptr<const Device> device;
  void *library = nullptr;
  cuda::LtTable table;
  cuda::LtHandle handle = nullptr;
  uint64_t versionNumber = 0;
};

/// One problem with all the algorithms that the heuristic offers for it, best guess first.
class CublasMatmul {
public:
  static Outcome<std::unique_ptr<CublasMatmul>> create(std::shared_ptr<const CublasLt> library,
                                                       const CublasProblem &problem);
  ~CublasMatmul();
  unsigned algorithms() const { return results.size(); }
  int algorithmId(unsigned index) const; ///< cuBLASLt's number of the kernel family.
  /// Enqueues algorithm `index`. `workspace` holds workspaceLimit bytes.
  MaybeFailure run(unsigned index, cuda::Stream stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                   uint64_t workspace) const;

private:
  CublasMatmul() = default;
  MaybeFailure describe();
  MaybeFailure search();
  std::shared_ptr<const CublasLt> lib;
  CublasProblem problem;
  bool swapped = false; ///< D is row-major: operands exchanged.
  cuda::LtMatmulDesc desc = nullptr;
  cuda::LtLayout first = nullptr, second = nullptr, c = nullptr, d = nullptr;
  std::vector<cuda::LtHeuristic> results;
};

} // namespace gemmc
