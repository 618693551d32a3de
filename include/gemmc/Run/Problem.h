/// A concrete GEMM on the host: sizes, scales, and matrices filled from a seed.
///
/// Memory between an extent and its leading dimension is poison (NaN), in the inputs to show a read beyond an extent
/// and in D to show a write there. D starts as poison throughout, so that what a kernel wrote is what has changed.
#pragma once
#include "gemmc/PTX/LaunchInfo.h"
#include "gemmc/Run/Numbers.h"
#include "gemmc/Runtime/Launch.h"
#include "llvm/ADT/ArrayRef.h"

namespace gemmc {
struct Spec;
}

namespace gemmc::run {

/// A matrix in memory, its bytes exactly those from the first to behind the last element. Of a batch all matrices, the
/// rows of the second one behind those of the first.
struct HostMatrix {
  std::string name;
  Elem type = Elem::f16;
  Order order = Order::row;
  int64_t rows = 0, cols = 0, ld = 0;
  std::vector<std::byte> data;
  int64_t matrices = 1, stride = 0; ///< Of a batch; elements from one to the next.

  int64_t rowsOfOne() const { return matrices ? rows / matrices : 0; }
  int64_t offset(int64_t row, int64_t col) const {
    int64_t start = 0;
    if (matrices > 1)
      start = row / rowsOfOne() * stride, row %= rowsOfOne();
    return start + (order == Order::row ? row * ld + col : col * ld + row);
  }
  /// Lines of adjacent elements, of all matrices, and where one begins.
  int64_t lines() const { return order == Order::row ? rows : cols * matrices; }
  int64_t length() const { return order == Order::row ? cols : rowsOfOne(); }
  int64_t startOfLine(int64_t line) const {
    return order == Order::row ? offset(line, 0) : line / cols * stride + line % cols * ld;
  }
  uint64_t bits(int64_t row, int64_t col) const { return bitsAt(offset(row, col)); }
  uint64_t bitsAt(int64_t element) const;
  void setBits(int64_t row, int64_t col, uint64_t bits) { setBitsAt(offset(row, col), bits); }
  void setBitsAt(int64_t element, uint64_t bits);
  double at(int64_t row, int64_t col) const { return decode(type, bits(row, col)); }
  /// Fills everything with poison.
  void fillPoison();
};

/// normal: standard normal numbers. integer: small integers such that every partial sum is exact in the accumulator,
/// whatever the order (see exactLimit); integer types: all their values, for each kind. special: normal, sprinkled with
/// NaN, infinities, subnormals and -0.
enum class InputKind : uint8_t { normal, integer, special };
llvm::StringRef nameOf(InputKind kind);

struct ProblemOptions {
  std::optional<int64_t> m, n, k, batch;
  std::optional<int64_t> lda, ldb, ldc, ldd;
  std::optional<int64_t> strideA, strideB, strideC, strideD;
  std::optional<double> alpha, beta;
  uint64_t seed = 1;
  InputKind kind = InputKind::integer;
  int64_t defaultSize = 512; ///< Of a dynamic size that is not given.
  uint64_t misalign = 0;     ///< Bytes that all base addresses lie behind a multiple of 256.
  bool inPlace = false;      ///< C and D share memory.
  uint64_t maxBytes = uint64_t(32) << 30;
};

/// Gives dynamic sizes of `spec` that are not given here what is typical for them.
void takeTypicalSizes(ProblemOptions &options, const Spec &spec);

struct GemmProblem {
  ProblemOptions options;
  LaunchArgs args; ///< All but the addresses.
  Elem accumulator = Elem::f32;
  ptx::BitProduct bits = ptx::BitProduct::none; ///< b1.
  int64_t promoted = 0;                         ///< 8-bit floats: k after which sums go on in f32; 0: never.
  bool negated = false;                         ///< D = alpha * -(A * B) + beta * C.
  HostMatrix a, b, c, d;                        ///< `d` is the initial state; c is empty when beta is 0.
  /// Every way to compute gives the same D: integers within the accumulator's exact range. D is then rounded once, or
  /// (s32) keeps its low 32 bits.
  bool exact = false;
  /// Of the inputs: sums of K products grow as the root of K, and so does what rounding takes of them.
  bool randomSigns = true;
  /// exact, and D holds the result without rounding.
  bool exactResult = false;
  /// alpha, beta and D are multiples of 2^-scaleBits when exact.
  int scaleBits = 0;
  bool readsInputs() const { return args.readsInputs(); }
  bool readsC() const { return args.beta != 0; }
  double macs() const { return double(rows()) * double(args.n) * double(args.k); }
  int64_t rows() const { return args.n == 0 ? 0 : args.m * args.batch; } ///< Of D, of all products.
  /// That of C which is added to a row of D.
  int64_t rowOfC(int64_t row) const { return c.matrices == 1 ? row % args.m : row; }
};

/// Makes the problem that `info`'s kernels compute. Failures: those of checkShape, run_type, run_too_large,
/// run_misalign, run_in_place.
Outcome<GemmProblem> makeProblem(const ptx::LaunchInfo &info, const ProblemOptions &options);

/// Integers up to this magnitude are exact in `type`: 2^p.
int64_t exactLimit(Elem type);

} // namespace gemmc::run
