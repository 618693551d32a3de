// How long the main loop takes a k column of a tile: the tensor cores, shared memory's port, and the lines that come
// from the L2.
#include "Clock.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {
namespace {
// Lines of one SM's tiles, on a busy card, in bytes a clock. Where m or n is contiguous all constants are a fit to 248
// races of 3 to 16 tiles and clusters each, of products of 384 to 7264 rows and columns with pitches of 16 to 128 bytes
// (H200, 2026-11-23): its choice is 1.8% slower than the best of them on average. What the L2 sends and what arrives
// are told apart by clusters of eight, as are the constants of rows that start inside sectors below: with them 378
// races of 2 to 40 kernels at pitches of 16 to 128 bytes (H100, rates of the L2 at 5/6; 2026-11-25, docs/hopper-l2.md,
// *Eights*). `lineRate`, `Fit::received`, `insideAlongK` and the share of slices inside sectors are of 1953 kernels for
// 213 products at pitches of 16 bytes and more (H200, 2026-11-26, *Seen on an H200*).
constexpr double lineRate = 90;        ///< Both operands with k contiguous.
constexpr double receivedBeside = 1.1; ///< Lines of an operand with k contiguous, where the other one's are not.
/// Cooperative warpgroups, and three of them on one tile; where k is contiguous in both operands three are as fast as
/// two. 46, 198 and 23 races (H200, 2026-11-24, docs/hopper-shapes.md, *The model*): 2.3, 1.5 and 0.5% behind the best.
constexpr double notInTurns = 1.03, threeWarpgroups = 1.02;
// Where rows start inside sectors, here and in splitClocks: a fit to 164 races of 4 to 20 kernels, of products of 400
// to 5800 rows and columns in all layouts (H200, 2026-11-24): its choice is 1.5% slower than the best on average, 1.7%
// of products left out of the fit.
constexpr double sentInsideSectors = 1.4, receivedInsideSectors = 1.2; ///< Lines of such rows.
/// The same where k is contiguous in this operand and not in the other one.
constexpr double insideAlongK = 2.5;
/// What CTAs that share tiles of whole products wait for each other: four in a row gain most, each of 2 x 2 waits for
/// two others' parts of both operands. With `insideAlongK`, and fours of short sides, what is estimated to be fastest
/// of 2073 kernels of 137 products (H200, 2026-11-26, docs/hopper-l2.md, *Fours in a row*) is 2.6% slower than the best
/// of each, and 3.2% before; over the products of the fits before it stays what it was.
double companyCost(const Premises &on, const Shape &shape) {
  constexpr double squares = 1.07, eightsOutside = 1.07;
  const int64_t ctas = shape.clusterM * shape.clusterN;
  if (ctas > 4)
    return on.insideSectors() ? 1 : eightsOutside;
  if (on.alongK())
    return 1;
  return ctas == 1 ? 1 : ctas == 2 ? on.fit.pairs : shape.clusterM == 2 ? squares : on.fit.inARow;
}
/// What a row that reaches into a second line of the L2 costs more, where k is contiguous: the next box takes the rest
/// of that line, but CTAs out of step ask for it again.
constexpr double secondLine = 0.7;
/// While one wave leaves SMs idle, the L2 sends the others more: the power of the part that is not.
constexpr double roomOfFew = 0.31;

// Tiles of all multiples of 8 columns: a fit to 246 races of 5 to 14 kernels, of products of 256 to 7360 rows and
// columns in all layouts, and a look at 96 more (H200, 2026-11-23, docs/hopper-l2.md, *Tiles in steps of 8*): what the
// planner takes is 1.9% slower than the best of all 342 on average.
constexpr double portOfSplit = 0.95; ///< Where rows start inside sectors, beside tensor cores that wait (`slowed`).

constexpr int64_t manyStages = 12; ///< Bring lines of small tiles sooner.

/// What lines of few small tiles take of that: steps of 128, or many stages, bring them sooner.
constexpr double leastLineShare = 80.0 / 100; // of lines at a rate of 80; not fitted again
double lineShare(const Premises &on, const Shape &shape) {
  constexpr double ofMany = 80.0 / 95;
  if (shape.clusterK > 1 || !isSmall(on.draft, shape.m + shape.n))
    return 1;
  return shape.k == 128 ? leastLineShare : shape.stages >= manyStages ? ofMany : 1;
}

/// Clocks that a step of 64 takes at least: of small tiles with eight stages fewer lines come no sooner. More products
/// under way make it worse: nine aligned products in tiles of 64x64 and 64x80, `pipeline.in_flight` of 2 6%, of 3 15%.
/// Not of rows that start inside sectors with k contiguous in both operands, which splitClocks knows.
double leastStep(const Premises &on, const Shape &shape) {
  constexpr double usual = 215, insideSectors = 350;
  if (on.streamed || shape.clusterK > 1 || shape.k != 64 || shape.stages >= manyStages)
    return 0;
  return on.insideSectors() ? insideSectors : usual;
}

// Slices of k: fewer CTAs ask for the same lines at the same time, unless they share tiles. A fit to 69 races of 14 to
// 27 tiles, clusters and slices each, of products of 256 to 2048 rows and columns, k of 512 to 15616 (H200,
// 2026-11-23); with 12 of them at pitches of 16 bytes. Its choice is 2.1% slower than the best on average.
constexpr double slicedLineRate = 56.4, slicedReceivedRate = 102; ///< Both operands with k contiguous.
/// What lines take of slices elsewhere: of what the L2 sends, and of what arrives.
struct SlicedLines {
  double sent, received;
};
constexpr SlicedLines slicedLines{1.15, 1}, slicedInsideSectors{1, 0.85};

/// For each k of a tile: bytes of whole lines, or the clocks that they take.
struct Lines {
  double sent, received;
};

/// What rows of an operand with k contiguous cost, where they do not start inside sectors.
double costOfRows(const Premises::Operand &operand) { return 1 + secondLine * (1 - double(operand.step) / lineBytes); }

/// Of the tile of one operand, `extent` long across k, where m or n is contiguous in one of both. Rows of a TMA box
/// that start inside a line cost two, whatever they take of each.
Lines linesOf(const Premises &on, const Premises::Operand &operand, int64_t extent) {
  const int64_t bytes = extent * on.inputBits / 8;
  if (operand.kMajor) {
    const double lines = double(bytes) * (operand.insideSectors ? insideAlongK : costOfRows(operand));
    return {lines, lines * receivedBeside};
  }
  int64_t step = int64_t(llvm::MinAlign(uint64_t(operand.step), uint64_t(bytes)));
  double lines = double(llvm::alignTo(bytes, lineBytes)) * (2 - double(step) / lineBytes);
  bool inside = step < sectorBytes;
  return {lines * (inside ? sentInsideSectors : 1), lines * (inside ? receivedInsideSectors : 1)};
}

/// Clocks that lines take of a k column of a tile where k is contiguous in both operands. `share`: `lineShare`.
double linesOfK(const Premises &on, const Shape &shape, double share) {
  const double bytes = on.inputBits / 8.0;
  const double ofA = double(shape.m) * costOfRows(on.a) * bytes, ofB = double(shape.n) * costOfRows(on.b) * bytes;
  const double lines = ofA / shape.clusterN + ofB / shape.clusterM;
  if (on.slicesOf(shape) > 1)
    return std::max(lines / slicedLineRate, double(shape.m + shape.n) * bytes / slicedReceivedRate);
  return std::max(lines * share / lineRate, (ofA + ofB) / on.fit.received);
}

/// The same where m or n is contiguous in one of both: what the L2 sends, and what arrives. `filled`: the part of the
/// SMs that one wave keeps busy.
Lines linesElsewhere(const Premises &on, const Shape &shape, double filled, bool oneWave) {
  const Lines a = linesOf(on, on.a, shape.m), b = linesOf(on, on.b, shape.n);
  const SlicedLines share = on.slicesOf(shape) == 1 ? SlicedLines{1, 1}
                            : on.insideSectors()    ? slicedInsideSectors
                                                    : slicedLines;
  const double sent =
      (a.sent / shape.clusterN + b.sent / shape.clusterM) * (filled < 1 ? std::pow(filled, roomOfFew) : 1);
  const bool together = shape.clusterM * shape.clusterN * on.slicesOf(shape) > 1;
  const double rate = oneWave && together ? on.fit.sentTogether : on.fit.sent;
  return {share.sent * sent / rate, share.received * (a.received + b.received) / on.fit.received};
}

/// Clocks of one k of a tile whose products, and what they read of shared memory, take `busy`: with the lines that it
/// takes, and as warpgroups and clusters are.
double withLines(const Premises &on, const Shape &shape, double busy, double filled, bool oneWave) {
  const Lines lines = linesElsewhere(on, shape, filled, oneWave);
  busy = atOnce<10>({busy, lines.sent, lines.received});
  busy *= shape.schedule == Schedule::pingpong ? 1 : notInTurns;
  busy *= shape.warps() == 3 && !on.fewStepsAreKnown ? threeWarpgroups : 1;
  return busy * (on.slicesOf(shape) > 1 ? 1 : companyCost(on, shape));
}

/// Clocks for which rows that start inside sectors keep the L2 busy, for each k of a wave of tiles (of each slice of
/// them): it answers some 53 requests in a clock, and such rows are two. Rows beyond the edges are not read; fewer SMs
/// get no fewer rows.
double requestClocks(const Premises &on, const Shape &shape, double waves) {
  constexpr double rate = 4250; ///< Bytes of such rows.
  auto clusters = [](int64_t extent, int64_t tile, int64_t ctas) {
    return double(llvm::divideCeil(llvm::divideCeil(extent, tile), ctas));
  };
  double bytes = on.inputBits / 8.0;
  const double batch = double(on.batch);
  double rowsOfA = batch * double(on.m) * clusters(on.n, shape.n, shape.clusterN);
  double rowsOfB = batch * double(on.n) * clusters(on.m, shape.m, shape.clusterM);
  // Whose shares a fit says, with what splitClocks has.
  int64_t ctas = shape.clusterM * shape.clusterN;
  double sharing = ctas == 1 ? 1.1 : ctas == 2 ? 0.89 : ctas <= 4 ? 0.87 : 1;
  // Long products slow the SMs' clock down, at the power limit, and not the L2's.
  constexpr double slower = 0.8;
  double clock = (on.atPowerLimit ? slower : 1) * double(on.slicesOf(shape) * on.slicesInMemory);
  return splitBytes(on.a.splitsSectors(), on.b.splitsSectors(), rowsOfA * bytes, rowsOfB * bytes) * sharing / rate *
         clock / waves;
}

/// What such rows and the tensor cores need, for each k, where k is contiguous in both operands: each by itself.
struct Split {
  double products, requests, arrivals; ///< Clocks; the tensor cores', the L2's, and until they have come.
};
Split splitOf(const Premises &on, const Shape &shape, double products, double requests) {
  constexpr double received = 78; ///< Bytes of such rows in a clock, by each SM.
  constexpr double slowed = 1.33; // the tensor cores, which wait for one or the other now and then
  const double bytes = on.inputBits / 8.0;
  const double arriving =
      splitBytes(on.a.splitsSectors(), on.b.splitsSectors(), double(shape.m) * bytes, double(shape.n) * bytes);
  return {products * slowed, requests, arriving / received};
}
constexpr double aloneOfSplit = 0.98; ///< One warpgroup waits for no other one.

/// ... and together.
double splitClocks(const Premises &on, const Shape &shape, double products, double requests) {
  const Split each = splitOf(on, shape, products, requests);
  // Three stages do not go with clusters of four: of more CTAs all must be done with one before it is filled again.
  double tight = shape.clusterM * shape.clusterN > 2 && shape.stages < 4 ? 2.4 : 1;
  tight *= shape.warps() == 1 ? aloneOfSplit : 1;
  return tight * atOnce<3>({each.products, each.requests, each.arrivals});
}

/// Three stages or less do not cover what operands come late by: `each` is what that takes, beside four.
double tooFew(const Shape &shape, double each) {
  constexpr int64_t enough = 4;
  return shape.stages < enough ? each : 1;
}

/// What less than five stages add, for each that is missing: of what comes late they cover less.
double shallow(const Shape &shape, double each) {
  constexpr int64_t fullStages = 5;
  return 1 + each * double(std::max<int64_t>(0, fullStages - shape.stages));
}

/// Clocks that a warpgroup takes for a k column of its tile, where it waits for each stage's products and adds them up:
/// beside another one of 64 rows or more that is hidden (fp8, 17 products in seven kernels each; H100, 2026-11-26,
/// docs/hopper-types.md).
double promotedClocks(const Premises &on, const Shape &shape, double products) {
  constexpr double waiting = 225; // from a stage's last product to the next one's first
  const unsigned sums = accumulatorRegisters(on.draft, shape) / 2;
  return products / double(shape.warps()) + (waiting + sums) / double(shape.k);
}

/// Clocks of one k of a tile whose A lanes load into registers, a half of a stage while the other one is multiplied:
/// whatever a warpgroup multiplies, it does not come around faster, and who multiplies for less than that leaves it to
/// others to fill the time, which they do not quite. A fit to 24 products of tf32, 15 tiles each (H200, 2026-11-26).
double heldClocks(const Premises &on, const Shape &shape, double busy, double products) {
  constexpr double notFilled = 1.08;
  const double least = leastOfHeld(on.draft, shape.k, shape.warpM) / double(shape.k);
  const bool others = shape.warps() > 1 && products / double(shape.warps()) < least;
  return atOnce<8>({busy, least}) * (others ? notFilled : 1);
}

} // namespace

double leastOfHeld(const Draft &draft, int64_t k, int64_t rows) {
  constexpr double around = 60, load = 64; // of each half of a stage; of 64 rows of a step
  return 2 * around + load * double(k) / double(draft.elementsIn(wgmmaDepthBytes)) * double(rows) / 64;
}

double columnClocks(const Premises &on, const Shape &shape, double waves, double filled) {
  double bytes = on.inputBits / 8.0;
  double products = double(shape.m) * shape.n / on.rates.products;
  if (on.promotes)
    products = std::max(products, promotedClocks(on, shape, products));
  // wgmma reads 64 rows of A and all columns of B for each 64 x warpN product; mma loads both into registers per warp.
  double rowsRead = on.wgmma ? 64 : shape.warpM;
  double pieces = double(shape.m) / rowsRead * (double(shape.n) / shape.warpN);
  double shared = pieces * (rowsRead + shape.warpN) * bytes / on.rates.sharedBytes;
  const double written = double(shape.m + shape.n) * bytes / on.rates.sharedBytes;
  const double port = on.wgmma ? portRead * shared + portWritten * written : shared;
  const double requests = on.wgmma && on.fit.requests ? requestClocks(on, shape, waves) : 0;
  // Of equals the one that reads less of shared memory, and then whose warpgroups multiply 128 rows.
  if (requests > 0 && !on.streamed && on.alongK())
    return splitClocks(on, shape, std::max(products, portOfSplit * port), requests) * shallow(shape, 0.025) *
               tooFew(shape, 1.05) * (shape.warpM == 64 ? 1.002 : 1) +
           shared / 50;
  double l2 = (double(shape.m) / shape.clusterN + double(shape.n) / shape.clusterM) * bytes / on.rates.l2Bytes;
  double busy = std::max({products, port, l2});
  if (!on.wgmma)
    return busy + l2 / 8; // bytes moved cost power, and so clocks, even where they are hidden
  if (on.alongK()) {
    busy = std::max({busy, linesOfK(on, shape, lineShare(on, shape)), requests});
    // Warpgroups that multiply 64 rows alternate with each other for the tensor cores less smoothly than those of 128.
    busy *= shape.warpM == 64 && !on.holdsA ? 1.0135 : 1;
    busy *= shape.schedule == Schedule::pingpong ? 1 : 1.01;
    busy *= on.slicesOf(shape) > 1 ? 1 : companyCost(on, shape);
  } else {
    busy = std::max(withLines(on, shape, busy, filled, waves == 1), requests);
  }
  constexpr double clocksOfNanosecond = 1.755;
  if (on.shifts)
    busy = std::max(busy, double(on.draft.shiftedExtent(shape.m, shape.n)) * bytes * clocksOfNanosecond / shiftRate);
  busy = std::max(busy, leastStep(on, shape) / double(shape.k)) * shallow(shape, 0.006) *
         tooFew(shape, on.insideSectors() ? 1.06 : 1.03);
  if (on.holdsA)
    busy = heldClocks(on, shape, busy, products);
  // What is not the slowest is not quite hidden either.
  return busy + l2 / 5 + shared / 10 + std::min(requests, products) / 5;
}

// What columnClocks has of the block tile and the cluster, in its order, as if warpgroups and stages were at their
// best.
double leastColumnClocks(const Premises &on, const Shape &shape, double waves, double filled) {
  const double products = double(shape.m) * double(shape.n) / on.rates.products;
  const double requests = on.alongK() && on.insideSectors() ? requestClocks(on, shape, waves) : 0;
  if (requests > 0 && !on.streamed) {
    const Split each = splitOf(on, shape, products, requests);
    return aloneOfSplit * std::max({each.products, each.requests, each.arrivals});
  }
  const bool sliced = on.slicesOf(shape) > 1;
  double busy = products;
  if (on.alongK()) {
    busy = std::max(busy, linesOfK(on, shape, leastLineShare));
  } else {
    const Lines lines = linesElsewhere(on, shape, filled, waves == 1);
    busy = std::max({busy, lines.sent, lines.received});
    busy *= shape.schedule == Schedule::pingpong ? 1 : notInTurns;
  }
  return busy * (sliced ? 1 : companyCost(on, shape));
}

} // namespace gemmc::plan
