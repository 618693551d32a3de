// The short operand of a stream where its short side is contiguous (A in column order beside few rows, say): each k is
// a row of a few bytes, which all CTAs ask the L2 for at the same time. What that costs depends on where rows lie in
// lines of the L2, not on how many bytes they have: 8, 16, 32 and 64 columns of two bytes fill a line evenly and cost
// next to nothing, 24 and 40 start inside sectors and take twice the time of the weights (H200, 2026-11-23,
// docs/hopper.md, *A short side that is contiguous*).
#include "Draft.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace gemmc::plan {
namespace {
/// Rows of boxes that all SMs together get in a nanosecond, less than a line each; where they reach into a second line;
/// where they start inside sectors. These, and those of short rows in Skinny.cpp, are a fit to 27 products of 8 to 256
/// rows or columns in 40 to 54 cuts each: what it chooses is 2.9% slower than the best of them on average, 10% at
/// worst.
constexpr double narrowRate = 60, straddlingRate = 50, splitRate = 25;
constexpr int64_t boxElements = 64; ///< At most, of a row: 128 bytes.

/// Nanoseconds for one row of a box of `bytes`; all rows start at multiples of `step` within a line.
double rowNanoseconds(int64_t bytes, int64_t step) {
  if (bytes > step)
    return 1 / (step < sectorBytes ? splitRate : straddlingRate);
  return bytes < lineBytes ? 1 / narrowRate : 0;
}
} // namespace

bool shortSideContiguous(const Draft &draft, bool longIsM) { return longIsM ? !draft.kMajorB() : !draft.kMajorA(); }

bool shortRowsSplit(const Draft &draft, bool longIsM) {
  return shortSideContiguous(draft, longIsM) &&
         rowStep(draft, longIsM ? draft.kernelB() : draft.kernelA()) < sectorBytes;
}

double shortRowsNanoseconds(const Draft &draft, bool longIsM, int64_t tile) {
  if (!shortSideContiguous(draft, longIsM))
    return 0;
  const OperandSpec &operand = longIsM ? draft.kernelB() : draft.kernelA();
  const int64_t extent = longIsM ? *draft.extentN() : *draft.extentM(), bytes = draft.inputBits() / 8;
  double sum = 0;
  for (int64_t first = 0; first < extent; first += tile)
    for (int64_t at = first, end = std::min(extent, first + tile); at < end; at += boxElements)
      sum += rowNanoseconds(std::min(boxElements, end - at) * bytes, std::gcd(rowStep(draft, operand), at * bytes));
  return sum * double(*draft.extentK());
}

} // namespace gemmc::plan
