// How long mma kernels take of whose tiles the planner tries many: those of f64, and of all measured ones.
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

/// Clocks of mma of small tiles. Each step of k waits for its copies, for a barrier and for fragments, longer where it
/// loads rows that start anywhere element by element, as many at a time as registers hold: all CTAs of an SM wait
/// together, share its tensor cores, and issue their copies and what they read one by one in turns; the L2 sends so
/// many bytes, of rows that start inside lines whole ones; and no more comes than memory gives. Warps that share a
/// tile's k add their sums up; slices write their parts. What few bytes a product has come while the launch before it
/// ends. A fit to 2039 kernels of 433 products of f16, bf16, tf32, s8 and e4m3, 127 of them batches: 14% off, what it
/// likes best takes 2.3% longer than the best (H200, 2026-11-30, docs/hopper-types.md, *Few tiles of mma*).
ClocksOfMma clocksOfMeasuredTiles(const Premises &on, const Shape &shape, double tiles) {
  constexpr double launch = 1337, first = 1483, firstBytes = 453e3; // until the first of so many bytes come
  constexpr double waits = 189, waitsForElements = 542, atATime = 32, ofMma = 8.4; // for so many elements of a thread
  constexpr double ofCopy = 2.6, ofElement = 2.02, ofByte = 1.02;                  // of a warp: copied; read across k
  constexpr double ofSums = 18.6, ofStore = 1.18;                                  // of each that a thread has
  constexpr double fromL2 = 9000, memory = 2280, counted = 1757, readRate = 38, tensorCores = 4; // of an SM
  constexpr double rows = 16, columns = 8, depthBytes = 32, lanes = 32, narrowest = 4;           // of an mma; of a copy
  constexpr int64_t farthest = 64, whole = 512; // bytes of a row that others' lines add; rows that none do
  constexpr int64_t withoutConflicts = 64;      // bytes of a row of shared memory (SharedXor)
  constexpr double cutLines = 70;               // bytes that one that tiles cut is longer by, each time
  const Plan &plan = on.draft.plan;
  const double element = on.inputBits / 8.0, warps = double(shape.warps()), threads = lanes * warps;
  double acrossK = 0, copies = 0, elements = 0, sent = 0; // of a step: a lane reads; a thread copies; bytes
  auto add = [&](const Premises::Operand &operand, int64_t extent, int64_t ofWarp, unsigned bytes) {
    const double tile = double(extent * shape.k) * element;
    const double run = double(operand.kMajor ? shape.k : extent) * element;
    (bytes < narrowest ? elements : copies) += tile / bytes / threads;
    sent += tile * (operand.step >= lineBytes || run >= whole ? 1 : 1 + std::min(1.0, farthest / run));
    if (!operand.kMajor && on.inputBits == 8)
      acrossK += double(ofWarp * shape.warpK) / lanes * (run < withoutConflicts ? 2 : 1);
  };
  add(on.a, shape.m, shape.warpM, plan.copyBytesA);
  add(on.b, shape.n, shape.warpN, plan.copyBytesB);
  const double products =
      double(shape.warpM) / rows * (double(shape.warpN) / columns) * (double(shape.warpK) * element / depthBytes);
  const double parts = double(on.slicesInMemory), count = tiles * parts;
  const double ctas = std::ceil(count / on.draft.limits.sms);
  const double steps = std::ceil(std::ceil(double(on.k) / double(shape.k)) / parts);
  const double alone = waits + (elements > 0 ? waitsForElements * std::max(1.0, elements / atATime) : 0) +
                       ofMma * products * std::max(1.0, ctas * warps / tensorCores);
  const double ofWarp = ofCopy * copies + ofElement * elements + ofByte * acrossK;
  const double loop = steps * (alone + ctas * warps * ofWarp);
  const double m = double(on.m), n = double(on.n), k = double(on.k);
  const double line = double(shape.n) * bytesOf(*on.draft.spec().d.type); // of a tile of D
  const double cut = on.collectsSectors ? 1 + cutLines / line : 1;
  const double moved = double(on.batch) * (element * (m * k + k * n) + bytesOf(*on.draft.spec().d.type) * m * n * cut);
  const double sums = double(shape.m * shape.n) / threads;
  const double meeting = parts == 1 ? 0 : counted + 4.0 * double(shape.m * shape.n) * parts / readRate;
  const double ends = (double(shape.slices() - 1) * ofSums + ctas * warps * ofStore) * sums;
  return {atOnce<2>({loop, count * steps * sent / fromL2, moved / memory}),
          launch + first * std::min(1.0, moved / firstBytes) + meeting + ends};
}

} // namespace gemmc::plan
