/// Compares a result with the reference, in the way that the problem's size allows.
#pragma once
#include "gemmc/Run/Reference.h"

namespace gemmc::run {

struct Mismatch {
  int64_t row = 0, col = 0;
  double expected = 0, got = 0;
  double bound = 0;               ///< 0 = bit-exact was demanded.
  bool unwritten = false;         ///< The element still holds the poison it started with.
  std::optional<int64_t> product; ///< Of a batch, whose D it is; `row` is one of that.
};

/// A place outside the result that was overwritten.
struct GuardViolation {
  std::string buffer;
  int64_t offset = 0; ///< Bytes from the buffer's first element.
};

struct Verification {
  bool ok = true;
  std::string how;       ///< "all 262144 elements, bit-exact".
  uint64_t compared = 0; ///< Elements compared one by one.
  uint64_t bad = 0;      ///< Of these.
  std::optional<Mismatch> first;
  std::optional<GuardViolation> guard;
  std::string problem;       ///< What else is wrong (a half written tile); empty = nothing.
  std::string wrong() const; ///< All that is, in one line.
  std::string str() const;   ///< One line: verified or not, and why.
};

/// Multiply-adds that the plain loop is used for; larger problems get Freivalds' check and samples.
constexpr double plainLimit = double(1 << 28);

/// Checks all of `d`, plainly or (many multiply-adds) by verifyLarge.
Verification verify(const Reference &reference, const HostMatrix &d);
/// Every element by the plain loop.
Verification verifyPlain(const Reference &reference, const HostMatrix &d);
/// Exact results: Freivalds' check modulo 2^64 with two random vectors, and 16 rows exactly. Others: rows and patches
/// within the bound, and sums over blocks of 32 columns with random signs within the sum of the bounds.
Verification verifyLarge(const Reference &reference, const HostMatrix &d);
/// After a sample of CTAs: `d` must consist of untouched and of wholly written tiles of tileM x tileN (or, when that
/// does not fit, tileN x tileM); the written ones, at least `minTiles` and at most `maxTiles`, are checked plainly.
Verification verifyTiles(const Reference &reference, const HostMatrix &d, int64_t tileM, int64_t tileN,
                         uint64_t minTiles, uint64_t maxTiles);

/// Changed bytes of `after` that are no elements of the matrix: the padding between an extent and the leading
/// dimension.
std::optional<GuardViolation> checkPadding(const HostMatrix &before, const HostMatrix &after);
/// Any changed byte of an input.
std::optional<GuardViolation> checkUnchanged(const HostMatrix &before, llvm::ArrayRef<std::byte> after);

} // namespace gemmc::run
