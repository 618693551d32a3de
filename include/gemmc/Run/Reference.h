/// What D must be: a plain loop in double precision over the unpacked inputs, exact for integer inputs, and a bound on
/// what a kernel may differ by for others.
///
/// The bound is for inputs of random signs, as ours are. That of the worst case, n u / (1 - n u) of S below, accepts
/// anything: it is larger than such sums themselves from K = 512 in f16 and 65536 in f32. Inputs of others get it (f32:
/// n = K + 2, u = 2^-23; f16: n = ceil(K / 8) + 2, u = 2^-10, and K 2^-23 more). Of K products
///     |acc - sum| <= g * S,  S = sum |a||b|,  P = pi S / sqrt(K), twice what such a sum is large:
///     f32: g S = u P (K / 2 + 6 sqrt(K / 3)),  u = 2^-23: the tensor cores cut what they add, 4 to 16 products at a
///         time. The worst of 10^4 to 10^5 simulated sums of 16 to 65536 products, cut as on sm_80 and sm_90 or added
///         one by one, errs by 0.22 of it.
///     f16: u P 6 sqrt(n / 3),  u = 2^-11, n = ceil(K / 8), as the tensor cores add at least eight products before they
///         round to f16, and what f32 errs by. The worst of 4 10^4 to 10^6 simulated sums of 16 to 16384 errs by 0.52
///         (both 2026-11-27, normal random numbers, scripts that were not kept; test/unit/Run/SumsTest.cpp has some).
///     f64: g = n u / (1 - n u), of any order and signs: u = 2^-53, n = 2 (K + 2): the kernel's roundings and ours.
///     f32 of e4m3 and e5m2: the tensor cores cut each of 32 products and the sum so far to 13 bits of fraction of the
///         largest one: u P (n / 2 + 6 sqrt(32 n / 3)) + K u^2 S,  u = 2^-13, n = ceil(K / 32). The worst of 10^6
///         simulated sums of 32 to 16384 products errs by 0.27 of it; a step of 128 that is missing is beyond it for
///         most elements up to K = 4096, for some at K = 16384. Where sums of k elements are added in f32, K / k of
///         these, as errors of random signs add up, and what f32 errs by.
/// The epilogue (f64: 2^-51) adds 2^-22 (|alpha| (|sum| + g S) + |beta c|) for its f32 operations, the store 2^-p of
/// the magnitude (p = significant bits of D's type) and half a smallest subnormal.
#pragma once
#include "gemmc/Run/Problem.h"
#include <memory>
#include <mutex>

namespace gemmc::run {

/// What one element must be.
struct Expected {
  double value = 0; ///< May be NaN or infinite.
  double bound = 0; ///< Allowed difference, of a finite value before rounding to D's type is undone; infinite = any.
  bool unknown = false; ///< Infinity times a sum that may as well be 0 or of the other sign: any value is right.
};

class BlockSums;

class Reference {
public:
  explicit Reference(const GemmProblem &problem, unsigned threads = 0);
  ~Reference();

  /// Computes all of D, which `row` then looks up: for a small problem, while there is nothing else to do.
  void precompute();
  /// Elements [col, col + out.size()) of a row.
  void row(int64_t row, int64_t col, llvm::MutableArrayRef<Expected> out) const;
  /// Whether D may hold `bits` where `expected` is wanted: bit-exact (zeros of either sign are equal) when the problem
  /// is exact, else within the bound; NaN matches NaN, infinity the same infinity.
  bool accepts(const Expected &expected, uint64_t bits) const;

  const GemmProblem &problem() const { return prob; }
  unsigned threads() const { return threadCount; }
  // Unpacked inputs, row by row: A is m x depth, B is depth x n. Empty when they are not read. depth is k; the xor of
  // two bits is a (1 - b) + (1 - a) b, so A then is [A, 1 - A], B is [1 - B; B], and depth is 2 k.
  // Of a batch the rows of one product's matrix stand behind those of the one before; one that all share is there once.
  int64_t depth() const { return width; }
  int64_t depthBefore(int64_t row) const; ///< Rows of B in front of those that a row of D is multiplied with.
  int64_t depthOfAll() const { return width * prob.b.matrices; }
  llvm::ArrayRef<double> aRow(int64_t row) const;
  llvm::ArrayRef<double> bRow(int64_t row) const;
  const BlockSums &blockSums() const; ///< Of a problem with bounds; computed when it is first asked for.
  double accumulationFactor() const { return gamma; } ///< g of the header.
  double epilogueFactor() const { return epilogue; }  ///< 2^-22 or 2^-51 of the header.

private:
  void unpackDifference();
  const GemmProblem &prob;
  unsigned threadCount;
  std::vector<double> a, b;
  mutable std::once_flag summed;
  mutable std::unique_ptr<const BlockSums> ofBlocks;
  std::vector<Expected> all; ///< D row by row; empty: not precomputed.
  int64_t width = 0;
  FloatFormat format{}; ///< Of D, when it is no integer.
  double gamma = 0, epilogue = 0x1p-22;
};

} // namespace gemmc::run
