// The operands of a stream in which m or n is contiguous. Of the short one (A in column order beside few rows, say)
// each k is a row of a few bytes, which all CTAs ask the L2 for at the same time. What that costs depends on where rows
// lie in lines of the L2, not on how many bytes they have: 8, 16, 32 and 64 columns of two bytes fill a line evenly and
// cost next to nothing, 24 and 40 start inside sectors and take twice the time of the weights. The long one comes in
// rows of 128 bytes, again for each tile of the short side; at pitches of 16 bytes they start inside sectors (H200,
// 2026-11-23, docs/hopper-shapes.md, *A short side that is contiguous*).
#include "Streams.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace gemmc::plan {
namespace {
/// Rows of boxes that all SMs together get in a nanosecond: of those that reach into a second line, and of those that
/// start inside sectors.
struct Rates {
  double straddling, split;
};
/// Of the short operand, which all CTAs ask for (of either where both sides are short: none such was measured for these
/// rates, and the races of *Few of both* were planned so); and of its rows of less than a line.
constexpr Rates together{38, 25};
constexpr double narrowRate = 80;
constexpr Rates apart{90, 50};      ///< Of the long one. These four are part of the last fit in StreamTime.cpp.
constexpr int64_t boxElements = 64; ///< At most, of a row: 128 bytes.

/// Nanoseconds for one row of a box of `bytes`; all rows start at multiples of `step` within a line.
double rowNanoseconds(int64_t bytes, int64_t step, const Rates &rates) {
  if (bytes > step)
    return 1 / (step < sectorBytes ? rates.split : rates.straddling);
  return bytes < lineBytes ? 1 / narrowRate : 0;
}

/// What the rows of all boxes of one k come to, tile by tile; `row` takes a row's bytes, and what it starts at a
/// multiple of within a line.
double sumOfRows(const Draft &draft, bool ofM, int64_t tile, llvm::function_ref<double(int64_t, int64_t)> row) {
  const OperandSpec &operand = ofM ? draft.kernelA() : draft.kernelB();
  const int64_t extent = ofM ? *draft.extentM() : *draft.extentN(), bytes = draft.inputBits() / 8;
  auto ofTile = [&](int64_t first) {
    double sum = 0;
    for (int64_t at = first, end = std::min(extent, first + tile); at < end; at += boxElements)
      sum += row(std::min(boxElements, end - at) * bytes, std::gcd(rowStep(draft, operand), at * bytes));
    return sum;
  };
  // After so many tiles the next one begins where the first one did in its line.
  const int64_t period = lineBytes / std::gcd(lineBytes, tile * bytes), rounds = extent / tile / period;
  double sum = 0;
  for (int64_t i = 0; rounds > 0 && i < period; ++i)
    sum += double(rounds) * ofTile(i * tile);
  for (int64_t first = rounds * period * tile; first < extent; first += tile)
    sum += ofTile(first);
  return sum;
}
} // namespace

bool isContiguous(const Draft &draft, bool ofM) { return ofM ? !draft.kMajorA() : !draft.kMajorB(); }

bool hasSplitRows(const Draft &draft, bool ofM) {
  return isContiguous(draft, ofM) && rowsStartInsideSectors(draft, ofM ? draft.kernelA() : draft.kernelB());
}

double rowsNanoseconds(const Draft &draft, bool ofM, int64_t tile) {
  if (!isContiguous(draft, ofM))
    return 0;
  const int64_t extent = ofM ? *draft.extentM() : *draft.extentN();
  const Rates &rates = isShort(extent, ofM ? *draft.extentN() : *draft.extentM()) ? together : apart;
  auto row = [&](int64_t bytes, int64_t step) { return rowNanoseconds(bytes, step, rates); };
  return sumOfRows(draft, ofM, tile, row) * double(*draft.extentK());
}

double linesOfTile(const Draft &draft, bool ofM, int64_t tile) {
  const int64_t extent = ofM ? *draft.extentM() : *draft.extentN();
  const double tiles = double(llvm::divideCeil(extent, tile));
  if (isContiguous(draft, ofM)) {
    auto lines = [](int64_t bytes, int64_t step) { return bytes > step ? 2.0 : 1.0; };
    return double(boxElements) * sumOfRows(draft, ofM, tile, lines) / tiles;
  }
  const bool whole = rowStep(draft, ofM ? draft.kernelA() : draft.kernelB()) == lineBytes;
  return double(extent) / tiles * (whole ? 1 : 2);
}

// Of boxes in which TMA brings a row of one line, and of two: what few CTAs took for a step of theirs.
double copiesOfTile(const Draft &draft, bool ofM, int64_t tile) {
  constexpr double ofRow = 0.55, ofSplitRow = 1.5;
  if (isContiguous(draft, ofM)) {
    const int64_t extent = ofM ? *draft.extentM() : *draft.extentN();
    auto row = [](int64_t bytes, int64_t step) { return bytes > step ? ofSplitRow : ofRow; };
    return double(boxElements) * sumOfRows(draft, ofM, tile, row) / double(llvm::divideCeil(extent, tile));
  }
  const double lines = linesOfTile(draft, ofM, tile);
  const bool whole = rowStep(draft, ofM ? draft.kernelA() : draft.kernelB()) == lineBytes;
  return whole ? lines * ofRow : lines / 2 * ofSplitRow;
}

} // namespace gemmc::plan
