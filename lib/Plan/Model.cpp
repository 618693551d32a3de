// The planner's clock: an estimate that ranks tile shapes. It knows four things, all per SM and clock:
//   - the tensor cores multiply at a fixed rate, less when a tile is too small to reuse what shared memory delivers;
//   - the tiles of A and B come through the L2, a cluster's shared ones once;
//   - the last wave is as long as a full one, however few tiles it has;
//   - each tile costs a start (latency until the first stage is there) and an end (the epilogue).
// The constants are of the order that measurements give; they rank shapes and promise no times.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace gemmc::plan {
namespace {
struct Rates {
  double products;    ///< Multiply-adds an SM does in a clock.
  double sharedBytes; ///< From shared memory to the tensor cores.
  double l2Bytes;     ///< From the L2 to one SM while all of them read.
};
Rates ratesOf(const Draft &draft) {
  if (draft.wgmma())
    return {2048, 128, 56};
  // The rate follows the width of the elements, but for f64.
  bool wide = *draft.spec().a.type == Elem::f64;
  double products = wide ? 64 : 1024 * 16.0 / draft.inputBits();
  switch (*draft.spec().target) {
  case Target::sm_86:
  case Target::sm_89:
    return {wide ? 2 : products / 2, 128, 32};
  default:
    return {products, 128, 44};
  }
}

/// Clocks until the first stage has arrived and the first product is under way.
constexpr double startClocks = 1000;
constexpr int64_t assumedSize = 4096; // of a dynamic extent

/// CTAs that one SM holds at a time.
int64_t residentCtas(const Draft &draft, const Shape &shape) {
  if (draft.wgmma())
    return 1; // one CTA takes the shared memory that there is
  int64_t byShared = draft.limits.sharedPerSM / (sharedBytes(draft, shape) + 1024);
  return std::clamp<int64_t>(std::min(ctasByRegisters(draft, shape), byShared), 1, 4);
}

/// Clocks that the multiplication of one k column of a block tile keeps the SM busy.
double columnClocks(const Draft &draft, const Shape &shape, const Rates &rates) {
  double bytes = draft.inputBits() / 8.0;
  double products = double(shape.m) * shape.n / rates.products;
  // wgmma reads 64 rows of A and all columns of B for each 64 x warpN product; mma loads both into registers per warp.
  double rowsRead = draft.wgmma() ? 64 : shape.warpM;
  double pieces = double(shape.m) / rowsRead * (double(shape.n) / shape.warpN);
  double shared = pieces * (rowsRead + shape.warpN) * bytes / rates.sharedBytes;
  double l2 = (double(shape.m) / shape.clusterN + double(shape.n) / shape.clusterM) * bytes / rates.l2Bytes;
  double busy = std::max({products, shared, l2});
  // Bytes moved cost power, and so clocks, even where they are hidden.
  return busy + l2 / 8;
}
} // namespace

Estimate estimate(const Draft &draft, const Shape &shape) {
  const Rates rates = ratesOf(draft);
  int64_t m = draft.extentM().value_or(assumedSize), n = draft.extentN().value_or(assumedSize);
  int64_t k = draft.extentK().value_or(assumedSize);
  auto tilesOf = [](int64_t extent, int64_t tile, int64_t cluster) {
    return (extent / tile + (extent % tile != 0) + cluster - 1) / cluster * cluster;
  };
  Estimate result;
  double tiles = double(tilesOf(m, shape.m, shape.clusterM)) * double(tilesOf(n, shape.n, shape.clusterN));
  result.tiles = int64_t(std::min(tiles, 9e15));
  result.ctasPerSM = residentCtas(draft, shape);
  double slots = double(draft.limits.sms) * double(result.ctasPerSM);
  double waves = std::max(1.0, std::ceil(tiles / slots));
  result.waves = int64_t(std::min(waves, 9e15));

  double depth = std::ceil(double(k) / double(shape.k)) * double(shape.k);
  double main = depth * columnClocks(draft, shape, rates);
  double store = double(shape.m) * shape.n * bytesOf(*draft.spec().d.type) / 24;
  // CTAs of one SM share its tensor cores but hide each other's starts and ends, as ping-pong warpgroups do.
  double together = std::min<double>(double(result.ctasPerSM), std::ceil(tiles / draft.limits.sms));
  bool hidden = together > 1 || shape.schedule == Schedule::pingpong;
  double few = !draft.wgmma() && shape.warps() * together < 4 ? 4.0 / (shape.warps() * together) : 1.0;
  result.clocks = waves * (main * together * few + (hidden ? 0.5 : 1) * (startClocks + store * together));
  return result;
}

} // namespace gemmc::plan
