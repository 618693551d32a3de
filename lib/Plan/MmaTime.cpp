// How long mma kernels take of whose tiles the planner tries many: those of f64, and of few tiles.
#include "Clock.h"
#include <algorithm>
#include <cmath>

namespace gemmc::plan {

int64_t residentCtas(const Premises &on, const Shape &shape) {
  if (on.wgmma)
    return 1; // one CTA takes the shared memory that there is
  int64_t byShared = on.draft.limits.sharedPerSM / (sharedBytes(on.draft, shape) + 1024);
  return std::max<int64_t>(1, std::min(ctasByRegisters(on.draft, shape), byShared));
}

/// Clocks of mma of f64, step by step: CTAs that an SM has two at a time each wait for copies, barrier and fragments,
/// and all of them share its tensor cores, longer where warps of few rows and columns, or of slices of k, read shared
/// memory more often. Copies take the SM's time, too: by the lines of the L2 that they touch, more by less than 16
/// bytes each. What the stages hold is on its way for a time; the L2 sends so many lines, fewer that start inside its
/// lines, and least of those that start inside its sectors; and no more comes than memory gives. Slices write their
/// parts, and the last one of a tile reads them. 1675 kernels of 147 products, of which it is 6% off (H200, 2026-11-30,
/// docs/hopper-types.md, *f64*).
ClocksOfMma clocksOfDoubles(const Premises &on, const Shape &shape, double tiles) {
  constexpr double launch = 2800, waits = 8, ofProducts = 5.2, unhidden = 0.865, port = 1.04, fourSlices = 1.2;
  constexpr double halfTheSums = 0.97, threeAtATime = 0.98; // m16n8k8; CTAs, who hide more of each other's waits
  constexpr double counted = 1780, readRate = 52, writeRate = 15;
  constexpr double ofLines = 0.37, ofNarrow = 3.2;
  constexpr double linesOfL2 = 54, inLines = 1.2, inSectors = 2.3;  // a clock; whole ones that one is worth
  constexpr double elementBytes = 8, memory = 2280, latency = 1400; // bytes a clock; clocks
  const double rows = 16, columns = 8, depthOfMma = 4;              // of an instruction
  const double warpM = double(shape.warpM), warpN = double(shape.warpN), block = double(shape.m) * double(shape.n);
  const double m = double(on.m), n = double(on.n), k = double(on.k), line = double(lineBytes);
  double copies = 0, sent = 0; // of a step
  auto addCopies = [&](const Premises::Operand &operand, int64_t extent, unsigned bytes) {
    const double lines = double(extent * shape.k) * elementBytes / line;
    copies += lines * (ofLines * (2 - double(operand.step) / line) + (bytes < 16 ? ofNarrow * line / bytes / 32 : 0));
    sent += lines * (operand.step >= lineBytes ? 1 : operand.insideSectors && bytes == 16 ? inSectors : inLines);
  };
  addCopies(on.a, shape.m, on.draft.plan.copyBytesA);
  addCopies(on.b, shape.n, on.draft.plan.copyBytesB);
  const double alone = waits + ofProducts * (warpM / rows) * (warpN / columns) * (double(shape.warpK) / depthOfMma);
  const double readPerProduct = (warpM + warpN) * elementBytes / (warpM * warpN);
  const int64_t atATime = residentCtas(on, shape);
  const double factor = (shape.slices() > 2 ? fourSlices : 1) *
                        (matrixOf(on.draft, shape).k > depthOfMma ? halfTheSums : 1) * (atATime > 2 ? threeAtATime : 1);
  const double together =
      block * double(shape.k) / productsOfDoubles(on.draft) * std::max(unhidden, port * readPerProduct) * factor +
      copies;
  const double parts = double(on.slicesInMemory), sms = on.draft.limits.sms;
  const double ctas = std::ceil(tiles * parts / sms), turns = std::ceil(ctas / double(std::min<int64_t>(2, atATime)));
  const double moved = elementBytes * double(on.batch) * (m * k + k * n + m * n);
  const double steps = std::ceil(std::ceil(k / double(shape.k)) / parts);
  const double loop = steps * (turns * alone + ctas * together);
  const double arrival = std::ceil(ctas / double(atATime)) * latency * std::max(0.0, steps / double(shape.stages) - 1);
  const double fromL2 = tiles * parts * steps * sent / linesOfL2;
  const double meeting =
      parts == 1 ? 0 : counted + elementBytes * block * (parts / readRate + tiles * parts / sms / writeRate);
  return {atOnce<8>({loop, arrival, fromL2, moved / memory}), launch + meeting};
}

/// Clocks of mma of few tiles and few k: each step waits for its copies, for a barrier and for fragments, and an SM
/// issues the instructions of all of its CTAs; warps that share a tile's k add their sums up. What is stored has no
/// weight that shows. 465 kernels of 30 products of f16, bf16, tf32 and s8, some of them batches: what it likes best
/// takes 3.4% longer than the best, 64x64 25% (H200, 2026-11-30, docs/hopper-types.md, *Few tiles of mma*).
ClocksOfMma clocksOfFewTiles(const Premises &on, const Shape &shape, double tiles) {
  constexpr double launch = 2100, waits = 120, ofMma = 2.7, ofCopy = 4.3, ofCta = 19; // of a warp's instruction
  constexpr double ofSlice = 48, ofSums = 19;                                         // of each that a thread has
  constexpr double rows = 16, columns = 8, depthBytes = 32;                           // of an mma
  const double element = on.inputBits / 8.0, threads = double(32 * shape.warps());
  const double products =
      double(shape.warpM) / rows * (double(shape.warpN) / columns) * (double(shape.warpK) * element / depthBytes);
  auto copies = [&](int64_t extent, unsigned bytes) { // of a thread
    return double(extent * shape.k) * element / bytes / threads;
  };
  const Plan &plan = on.draft.plan;
  const double ofStep =
      double(shape.warps()) *
      (ofMma * products + ofCopy * (copies(shape.m, plan.copyBytesA) + copies(shape.n, plan.copyBytesB)));
  const double ctas = std::ceil(tiles / on.draft.limits.sms), steps = std::ceil(double(on.k) / double(shape.k));
  const double rounds = std::ceil(ctas / double(std::min<int64_t>(4, residentCtas(on, shape))));
  const double meeting = double(shape.slices() - 1) * (ofSlice + ofSums * double(shape.m * shape.n) / threads);
  return {steps * (rounds * waits + ctas * ofStep), launch + rounds * meeting + ctas * ofCta};
}

} // namespace gemmc::plan
