// The planner's clock: an estimate that ranks tile shapes. It knows four things, all per SM and clock, and what a long
// product moves, which costs power:
//   - the tensor cores multiply at a fixed rate, less when a tile is too small to reuse what shared memory delivers;
//   - the tiles of A and B come through the L2, a cluster's shared ones once;
//   - the last wave is as long as a full one, however few tiles it has;
//   - each tile costs a start (latency until the first stage is there) and an end (the epilogue), which ping-pong
//     warpgroups hide behind each other's main loops.
// The constants are of the order that measurements give; they rank shapes and promise no times.
#include "StoreTime.h"
#include "gemmc/Layout/SharedTile.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace gemmc::plan {
namespace {
struct Rates {
  double products;    ///< Multiply-adds an SM does in a clock.
  double sharedBytes; ///< From shared memory to the tensor cores.
  double l2Bytes;     ///< From the L2 to one SM while all of them read.
};
/// Multiply-adds of f64.
double productsOfDoubles(const Draft &draft) { return *draft.spec().target == Target::sm_90a ? 128 : 64; }

Rates ratesOf(const Draft &draft) {
  if (draft.wgmma())
    return {wgmmaProducts * 16.0 / draft.inputBits(), 128, 168};
  // The rate follows the width of the elements, but for f64.
  bool wide = *draft.spec().a.type == Elem::f64;
  double products = wide ? productsOfDoubles(draft) : 1024 * 16.0 / draft.inputBits();
  switch (*draft.spec().target) {
  case Target::sm_86:
  case Target::sm_89:
    return {wide ? 2 : products / 2, 128, 32};
  default:
    return {products, 128, 44};
  }
}

// The constants of wgmma are a fit to 34 races of 6 to 48 kernels on an H200 (2026-11-21, `gemmc tune`, shapes of 512^3
// to 8192x28672x8192): the first choice was 0.5% slower than the best of the race on average, 3.3% at worst. With what
// was added since it is 0.8% and 3.9% over the 16 of them that are kept (docs/hopper-shapes.md, *The model*).
/// Clocks from one tile's products to the next one's first, whose stages have come meanwhile; ping-pong: from one
/// warpgroup's main loop to the other's. 950 and 335 of that fit were too many: 125 races of 6 to 14 kernels, of
/// products of 320 to 29568 rows and columns (H200, 2026-11-23), have 1.0% behind their best in the place of 1.5.
double startClocks(const Draft &draft) { return draft.wgmma() ? 300 : 950; }
constexpr double turnClocks = 100;
/// What is left of a tile's start and end where half of it is stored while the other half multiplies
/// (`epilogue.overlap`): a fit to 19 races of 11 to 19 kernels, each in two regimes (H200, 2026-11-22,
/// docs/hopper-clock.md, *Half a tile at a time*).
constexpr double overlapLeaves = 0.65;
/// CTAs that one SM holds at a time.
int64_t residentCtas(const Draft &draft, const Shape &shape) {
  if (draft.wgmma())
    return 1; // one CTA takes the shared memory that there is
  int64_t byShared = draft.limits.sharedPerSM / (sharedBytes(draft, shape) + 1024);
  return std::clamp<int64_t>(std::min(ctasByRegisters(draft, shape), byShared), 1, 4);
}

// Lines of one SM's tiles, on a busy card, in bytes a clock. Where m or n is contiguous all constants are a fit to 248
// races of 3 to 16 tiles and clusters each, of products of 384 to 7264 rows and columns with pitches of 16 to 128 bytes
// (H200, 2026-11-23): its choice is 1.8% slower than the best of them on average. What the L2 sends and what arrives
// are told apart by clusters of eight, as are the constants of rows that start inside sectors below: with them 378
// races of 2 to 40 kernels at pitches of 16 to 128 bytes (H100, rates of the L2 at 5/6; 2026-11-25, docs/hopper-l2.md,
// *Eights*). `lineRate`, `receivedRate`, `insideAlongK` and the share of slices inside sectors are of 1953 kernels for
// 213 products at pitches of 16 bytes and more (H200, 2026-11-26, *Seen on an H200*).
constexpr double lineRate = 90;                       ///< Both operands with k contiguous.
constexpr double sentRate = 93.5, receivedRate = 130; ///< From the L2, once for a cluster; to each SM.
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
double companyCost(const Draft &draft, const Shape &shape) {
  constexpr double pairs = 1.03, squares = 1.07, eightsOutside = 1.07;
  const int64_t ctas = shape.clusterM * shape.clusterN;
  if (ctas > 4)
    return rowsStartInsideSectors(draft) ? 1 : eightsOutside;
  if (draft.kMajorA() && draft.kMajorB())
    return 1;
  return ctas == 2 ? pairs : ctas == 4 && shape.clusterM == 2 ? squares : 1;
}

// What follows is a fit to 108 races of 40 and 56 kernels, of random products of 264 to 9000 rows and columns at
// pitches of 16 bytes in all layouts (H100, whose L2 sends 5/6 of what an H200's does, 2026-11-25,
// docs/hopper-shapes.md, *Mid products of any size*): their choice is 4.7% slower than the best of them, 7.3% before.
/// Clocks by which CTAs that share tiles begin and end later than others, two or four and eight; those of slices are in
/// `meetingClocks`.
constexpr double togetherClocks = 950, eightTogetherClocks = 1500;
/// Eights whose estimate is no better than by this are left: an H200 gives them less than the H100s that they were
/// fitted to, whose L2 sends less (58 products whose plan they had changed, 2026-11-26, docs/hopper-shapes.md, *Seen on
/// an H200*).
constexpr double doubtOfEights = 1 / 0.94;
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
double lineShare(const Draft &draft, const Shape &shape) {
  constexpr double ofDeep = 80.0 / 100, ofMany = 80.0 / 95; // of lines at a rate of 80; not fitted again
  if (shape.clusterK > 1 || !isSmall(draft, shape.m + shape.n))
    return 1;
  return shape.k == 128 ? ofDeep : shape.stages >= manyStages ? ofMany : 1;
}

/// What the clock of products is multiplied by where CTAs of a cluster have unlike parts of a tile. When they took
/// turns that was measured (eight kernels, H100, 2026-11-25), and the races that fitted the clock had it. Without it 18
/// whole products took other tiles and 0.8% longer (H200, 2026-11-26).
constexpr double unlikeCost = 1.015;

/// Clocks that a step of 64 takes at least: of small tiles with eight stages fewer lines come no sooner. More products
/// under way make it worse: nine aligned products in tiles of 64x64 and 64x80, `pipeline.in_flight` of 2 6%, of 3 15%.
/// Not of rows that start inside sectors with k contiguous in both operands, which splitClocks knows.
double leastStep(const Draft &draft, const Shape &shape) {
  constexpr double usual = 215, insideSectors = 350;
  if (draft.stream || shape.clusterK > 1 || shape.k != 64 || shape.stages >= manyStages)
    return 0;
  return rowsStartInsideSectors(draft) ? insideSectors : usual;
}

/// Slices as this clock knows them; streams have a model of their own.
int64_t slicesOf(const Draft &draft, const Shape &shape) { return isSkinny(draft) ? 1 : shape.clusterK; }
// Slices of k: fewer CTAs ask for the same lines at the same time, unless they share tiles. A fit to 69 races of 14 to
// 27 tiles, clusters and slices each, of products of 256 to 2048 rows and columns, k of 512 to 15616 (H200,
// 2026-11-23); with 12 of them at pitches of 16 bytes. Its choice is 2.1% slower than the best on average.
/// Clocks until the slices of a tile have met, and bytes of sums that a CTA sends in a clock.
constexpr double meetingClocks = 1150, sumsRate = 6.9;
constexpr double slicedLineRate = 56.4, slicedReceivedRate = 102; ///< Both operands with k contiguous.
/// What lines take of slices elsewhere: of what the L2 sends, and of what arrives.
struct SlicedLines {
  double sent, received;
};
constexpr SlicedLines slicedLines{1.15, 1}, slicedInsideSectors{1, 0.85};

/// The k from which slices in clusters take longer: eleven products took 10 to 16% more than estimated where it is
/// 16384 and more, nothing where it is 8192 (H200, 2026-11-25).
constexpr double apartFrom = 8192;

/// Clocks until the last of them has added the sums of all: what they write, the counter, and what it reads of each
/// (bytes a clock). A fit to 250 kernels of 38 products (H200, 2026-11-25): beside 226 with slices in clusters
/// and whole tiles its choice is 1.4% slower than the best of them (4.9% before).
double memoryClocks(const Shape &shape, int64_t parts, double waves) {
  constexpr double counted = 2000, readRate = 30;
  if (parts == 1)
    return 0;
  // For each wave: a CTA comes last of one tile in `parts`, and of its last one.
  const double last = counted + 4.0 * double(shape.m * shape.n * parts) / readRate;
  return last * (1 + (waves - 1) / double(parts)) / waves;
}

bool linesAlongK(const Draft &draft) { return draft.kMajorA() && draft.kMajorB(); }

struct Lines {
  double sent, received; ///< Bytes of whole lines, for each k.
};

/// What rows of an operand with k contiguous cost, where they do not start inside sectors.
double costOfRows(const Draft &draft, const OperandSpec &operand) {
  return 1 + secondLine * (1 - double(rowStep(draft, operand)) / lineBytes);
}

/// Of the tile of one operand, `extent` long across k, where m or n is contiguous in one of both. Rows of a TMA box
/// that start inside a line cost two, whatever they take of each.
Lines linesOf(const Draft &draft, const OperandSpec &operand, bool kMajor, int64_t extent) {
  const int64_t bytes = extent * draft.inputBits() / 8;
  if (kMajor) {
    const double lines =
        double(bytes) * (rowsStartInsideSectors(draft, operand) ? insideAlongK : costOfRows(draft, operand));
    return {lines, lines * receivedBeside};
  }
  int64_t step = int64_t(llvm::MinAlign(uint64_t(rowStep(draft, operand)), uint64_t(bytes)));
  double lines = double(llvm::alignTo(bytes, lineBytes)) * (2 - double(step) / lineBytes);
  bool inside = step < sectorBytes;
  return {lines * (inside ? sentInsideSectors : 1), lines * (inside ? receivedInsideSectors : 1)};
}

/// Clocks of one k of a tile whose products, and what they read of shared memory, take `busy`: with the lines that it
/// takes, and as warpgroups and clusters are. `filled`: the part of the SMs that one wave keeps busy.
double withLines(const Draft &draft, const Shape &shape, double busy, double filled) {
  Lines a = linesOf(draft, draft.kernelA(), draft.kMajorA(), shape.m);
  Lines b = linesOf(draft, draft.kernelB(), draft.kMajorB(), shape.n);
  const bool sliced = slicesOf(draft, shape) > 1;
  const SlicedLines share = !sliced                         ? SlicedLines{1, 1}
                            : rowsStartInsideSectors(draft) ? slicedInsideSectors
                                                            : slicedLines;
  const double sent = (a.sent / shape.clusterN + b.sent / shape.clusterM) * std::pow(filled, roomOfFew);
  busy = atOnce<10>({busy, share.sent * sent / sentRate, share.received * (a.received + b.received) / receivedRate});
  busy *= shape.schedule == Schedule::pingpong ? 1 : notInTurns;
  busy *= shape.warps() == 3 && !fewStepsAreKnown(draft) ? threeWarpgroups : 1;
  return busy * (sliced ? 1 : companyCost(draft, shape));
}

bool splitsSectors(const Draft &draft, const OperandSpec &operand, bool kMajor) {
  return kMajor && rowsStartInsideSectors(draft, operand);
}

/// Whether the power limit sets the SMs' clock: products long enough (multiply-adds).
bool atPowerLimit(const Draft &draft) {
  constexpr double longProduct = 34e9;
  double m = double(draft.plannedM()), n = double(draft.plannedN());
  return m * n * double(draft.plannedK()) * double(draft.plannedBatch()) > longProduct;
}

/// Clocks for which rows that start inside sectors keep the L2 busy, for each k of a wave of tiles (of each slice of
/// them): it answers some 53 requests in a clock, and such rows are two. Rows beyond the edges are not read; fewer SMs
/// get no fewer rows.
double requestClocks(const Draft &draft, const Shape &shape, int64_t m, int64_t n, double waves) {
  constexpr double rate = 4250; ///< Bytes of such rows.
  auto clusters = [](int64_t extent, int64_t tile, int64_t ctas) {
    return double(llvm::divideCeil(llvm::divideCeil(extent, tile), ctas));
  };
  double bytes = draft.inputBits() / 8.0;
  const double batch = double(draft.plannedBatch());
  double rowsOfA = batch * double(m) * clusters(n, shape.n, shape.clusterN);
  double rowsOfB = batch * double(n) * clusters(m, shape.m, shape.clusterM);
  // Whose shares a fit says, with what splitClocks has.
  int64_t ctas = shape.clusterM * shape.clusterN;
  double sharing = ctas == 1 ? 1.1 : ctas == 2 ? 0.89 : ctas <= 4 ? 0.87 : 1;
  // Long products slow the SMs' clock down, at the power limit, and not the L2's.
  constexpr double slower = 0.8;
  double clock = (atPowerLimit(draft) ? slower : 1) * double(slicesOf(draft, shape) * draft.slicesInMemory());
  return splitBytes(draft, rowsOfA * bytes, rowsOfB * bytes) * sharing / rate * clock / waves;
}

/// What such rows and the tensor cores need together, for each k, where k is contiguous in both operands.
double splitClocks(const Draft &draft, const Shape &shape, double products, double requests) {
  constexpr double received = 78; ///< Bytes of such rows in a clock, by each SM.
  double bytes = draft.inputBits() / 8.0;
  double arrivals = splitBytes(draft, double(shape.m) * bytes, double(shape.n) * bytes) / received;
  constexpr double slowed = 1.33; // the tensor cores, which wait for one or the other now and then
  // Three stages do not go with clusters of four: of more CTAs all must be done with one before it is filled again.
  double tight = shape.clusterM * shape.clusterN > 2 && shape.stages < 4 ? 2.4 : 1;
  constexpr double alone = 0.98; // one warpgroup waits for no other one
  tight *= shape.warps() == 1 ? alone : 1;
  return tight * atOnce<3>({products * slowed, requests, arrivals});
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
double promotedClocks(const Draft &draft, const Shape &shape, double products) {
  constexpr double waiting = 225; // from a stage's last product to the next one's first
  const unsigned sums = accumulatorRegisters(draft, shape) / 2;
  return products / double(shape.warps()) + (waiting + sums) / double(shape.k);
}

/// Clocks of one k of a tile whose A lanes load into registers, a half of a stage while the other one is multiplied:
/// whatever a warpgroup multiplies, it does not come around faster, and who multiplies for less than that leaves it to
/// others to fill the time, which they do not quite. A fit to 24 products of tf32, 15 tiles each (H200, 2026-11-26).
double heldClocks(const Draft &draft, const Shape &shape, double busy, double products) {
  constexpr double notFilled = 1.08;
  const double least = leastOfHeld(draft, shape.k, shape.warpM) / double(shape.k);
  const bool others = shape.warps() > 1 && products / double(shape.warps()) < least;
  return atOnce<8>({busy, least}) * (others ? notFilled : 1);
}

/// Clocks that the multiplication of one k column of a block tile keeps the SM busy.
double columnClocks(const Draft &draft, const Shape &shape, const Rates &rates, int64_t m, int64_t n, double waves,
                    double filled) {
  double bytes = draft.inputBits() / 8.0;
  double products = double(shape.m) * shape.n / rates.products;
  if (draft.promotes())
    products = std::max(products, promotedClocks(draft, shape, products));
  // wgmma reads 64 rows of A and all columns of B for each 64 x warpN product; mma loads both into registers per warp.
  double rowsRead = draft.wgmma() ? 64 : shape.warpM;
  double pieces = double(shape.m) / rowsRead * (double(shape.n) / shape.warpN);
  double shared = pieces * (rowsRead + shape.warpN) * bytes / rates.sharedBytes;
  const double written = double(shape.m + shape.n) * bytes / rates.sharedBytes;
  const double port = draft.wgmma() ? portRead * shared + portWritten * written : shared;
  double requests = draft.wgmma() ? requestClocks(draft, shape, m, n, waves) : 0;
  // Of equals the one that reads less of shared memory, and then whose warpgroups multiply 128 rows.
  if (requests > 0 && !draft.stream && draft.kMajorA() && draft.kMajorB())
    return splitClocks(draft, shape, std::max(products, portOfSplit * port), requests) * shallow(shape, 0.025) *
               tooFew(shape, 1.05) * (shape.warpM == 64 ? 1.002 : 1) +
           shared / 50;
  double l2 = (double(shape.m) / shape.clusterN + double(shape.n) / shape.clusterM) * bytes / rates.l2Bytes;
  double busy = std::max({products, port, l2});
  if (!draft.wgmma())
    return busy + l2 / 8; // bytes moved cost power, and so clocks, even where they are hidden
  if (linesAlongK(draft)) {
    const double linesOfA = double(shape.m) * costOfRows(draft, draft.kernelA()) * bytes;
    const double linesOfB = double(shape.n) * costOfRows(draft, draft.kernelB()) * bytes;
    double lines = linesOfA / shape.clusterN + linesOfB / shape.clusterM;
    if (slicesOf(draft, shape) > 1)
      lines = std::max(lines / slicedLineRate, double(shape.m + shape.n) * bytes / slicedReceivedRate);
    else
      lines = std::max(lines * lineShare(draft, shape) / lineRate, (linesOfA + linesOfB) / receivedRate);
    busy = std::max({busy, lines, requests});
    // Warpgroups that multiply 64 rows alternate with each other for the tensor cores less smoothly than those of 128.
    busy *= shape.warpM == 64 && !draft.holdsA() ? 1.0135 : 1;
    busy *= shape.schedule == Schedule::pingpong ? 1 : 1.01;
    busy *= slicesOf(draft, shape) > 1 ? 1 : companyCost(draft, shape);
  } else {
    busy = std::max(withLines(draft, shape, busy, filled), requests);
  }
  constexpr double clocksOfNanosecond = 1.755;
  if (draft.shifts())
    busy = std::max(busy, double(draft.shiftedExtent(shape.m, shape.n)) * bytes * clocksOfNanosecond / shiftRate);
  busy = std::max(busy, leastStep(draft, shape) / double(shape.k)) * shallow(shape, 0.006) *
         tooFew(shape, rowsStartInsideSectors(draft) ? 1.06 : 1.03);
  if (draft.holdsA())
    busy = heldClocks(draft, shape, busy, products);
  // What is not the slowest is not quite hidden either.
  return busy + l2 / 5 + shared / 10 + std::min(requests, products) / 5;
}

/// What nobody has measured goes by clocks: streams, slices (but beside whole tiles, whose measure is theirs), other
/// types, pitches of 16 bytes.
bool energyIsKnown(const Draft &draft) {
  const Spec &s = draft.spec();
  return draft.wgmma() && !draft.stream && (*s.split == SplitMode::none || draft.way.slices > 1) &&
         draft.inputBits() == 16 && *s.accumulator == Elem::f32 && !rowsSplitSectors(draft);
}

/// What the energy of a product, relative to what its multiply-adds alone take, adds to its clocks. At the power limit
/// voltage follows the clock, and the time of a kernel that runs alone goes with the root of clocks x energy: over 513
/// kernels of 17 products (H200, 2026-11-22, turns of 0.06 to 0.2 s) clocks have the power 0.494, and a byte of memory
/// costs as much as 68 multiply-adds, a byte of the L2 nothing that shows. Kernels that take turns of a few launches
/// share their clock, and clocks alone count. With a third both are within 0.7% of the best on average
/// (docs/hopper-clock.md, *Whose clock*).
double powerShare(const Draft &draft, const Shape &shape, const Estimate &estimate, double slots) {
  constexpr double share = 1.0 / 3;
  double k = double(draft.plannedK());
  double area = double(draft.plannedM()) * double(draft.plannedN()) * double(draft.plannedBatch());
  const Spec &s = draft.spec();
  double group = double(s.rasterGroup.given ? *s.rasterGroup : squareGroup(slots, shape.m, shape.n));
  RasterOrder order = s.rasterOrder.given ? kernelView(draft, *s.rasterOrder) : RasterOrder::along_m;
  double result = bytesOf(*s.d.type) + (s.beta.value != Scale{0.0} ? bytesOf(*s.c.type) : 0);
  double bytes = double(estimate.waves) * waveBytes(draft, shape, slots, group, order) + area * result;
  double products = double(estimate.tiles) * double(shape.m) * double(shape.n) * k;
  return std::pow(energyOf(products, bytes) / (area * k), share);
}
} // namespace

double leastOfHeld(const Draft &draft, int64_t k, int64_t rows) {
  constexpr double around = 60, load = 64; // of each half of a stage; of 64 rows of a step
  return 2 * around + load * double(k) / double(draft.elementsIn(wgmmaDepthBytes)) * double(rows) / 64;
}

/// Of rows whose pitch is known. A stride that is given at launch is as its kind: whole lines.
static int64_t stepOfRows(const OperandSpec &operand, int64_t bits) {
  const uint64_t step = llvm::MinAlign(uint64_t(lineBytes), uint64_t(*operand.ld.value.fixed * bits / 8));
  return int64_t(llvm::MinAlign(step, uint64_t(operand.batchStride.value.fixed.value_or(0) * bits / 8)));
}

int64_t rowStep(const Draft &draft, const OperandSpec &operand) {
  if ((*operand.repack != Repack::off && !draft.turnsInside(operand)) || operand.ld.value.dynamic())
    return lineBytes;
  return stepOfRows(operand, draft.inputBits());
}

bool startsAt(const OperandSpec &operand, int64_t bytes) {
  return !operand.ld.value.dynamic() && stepOfRows(operand, bitsOf(*operand.type)) % bytes == 0;
}

bool hasUnlikeParts(const Draft &draft, const Shape &shape) {
  return TileParts(draft.kMajorA() ? shape.m : shape.k, shape.clusterN).larger ||
         TileParts(draft.kMajorB() ? shape.n : shape.k, shape.clusterM).larger;
}

bool rowsSplitSectors(const Draft &draft) {
  return splitsSectors(draft, draft.kernelA(), draft.kMajorA()) ||
         splitsSectors(draft, draft.kernelB(), draft.kMajorB());
}

bool rowsStartInsideSectors(const Draft &draft, const OperandSpec &operand) {
  return rowStep(draft, operand) < sectorBytes;
}

bool rowsStartInsideSectors(const Draft &draft) {
  return rowsStartInsideSectors(draft, draft.kernelA()) || rowsStartInsideSectors(draft, draft.kernelB());
}

bool rowsStartInsideLines(const Draft &draft) {
  return rowStep(draft, draft.kernelA()) < lineBytes || rowStep(draft, draft.kernelB()) < lineBytes;
}

bool rowsStraddleLines(const Draft &draft) {
  return draft.kMajorA() && draft.kMajorB() && !rowsStartInsideSectors(draft) && rowsStartInsideLines(draft);
}

double splitBytes(const Draft &draft, double bytesOfA, double bytesOfB) {
  constexpr double others = 0.45; // what is read beside such rows takes less of the L2
  bool a = splitsSectors(draft, draft.kernelA(), draft.kMajorA());
  bool b = splitsSectors(draft, draft.kernelB(), draft.kMajorB());
  if (!a && !b)
    return 0;
  return (a ? 1 : others) * bytesOfA + (b ? 1 : others) * bytesOfB;
}

double waveBytes(const Draft &draft, const Shape &shape, double slots, double group, RasterOrder order) {
  double tilesM = std::ceil(double(draft.plannedM()) / double(shape.m));
  double tilesN = std::ceil(double(draft.plannedN()) / double(shape.n));
  // A wave covers `group` tiles along one side of the raster and as many as are left along the other.
  const double ofOne = std::max(1.0, tilesM * tilesN); // product of a batch, of which a wave has several
  double together = std::max(1.0, std::min(slots, ofOne));
  group = std::min(group, order == RasterOrder::hilbert ? std::ceil(std::sqrt(together)) : together); // as wide as high
  bool byRows = order != RasterOrder::along_n;
  double along = together / group; // of two cuts that cover as much, none is to win by a tile at the edge
  double rows = std::min(tilesM, byRows ? group : along) * double(shape.m);
  double columns = std::min(tilesN, byRows ? along : group) * double(shape.n);
  double depth = std::ceil(double(draft.plannedK()) / double(shape.k)) * double(shape.k);
  const double products = std::clamp(slots / ofOne, 1.0, std::max(1.0, double(draft.plannedBatch())));
  return products * (rows + columns) * depth * draft.inputBits() / 8.0;
}

/// Clocks that moving bytes takes, whatever waits for them: what memory reads and writes, more where lines of D leave
/// in parts of 128 bytes, tiles are turned, or small. Where rows of D start inside lines also what the L2 sends and
/// takes; elsewhere more where lines leave in parts of 256 bytes, or tiles are large, so that few are stored at a time.
/// They decide where k is few and D most of it, and more than the L2 holds. Of D in f32, or that the L2 holds, a fit
/// had 3 to 8% more with them than without (H200, 2026-11-26 and 29, docs/hopper-shapes.md, *Few of k* and *Stages for
/// the next tile*).
double bytesClocks(const Draft &draft, const Shape &shape, double m, double n, double k, double tiles) {
  constexpr double ofMemory = 1800, ofL2 = 3900; // bytes of a clock: 3.2e12 and 6.8e12 a second
  constexpr double held = 45e6, few = 160;
  constexpr double turned = 0.06, parts = 0.1, halves = 0.03, small = 0.35, large = 0.03, area = 128 * 128;
  const Spec &s = draft.spec();
  const double element = draft.inputBits() / 8.0, batch = double(draft.plannedBatch()), ofD = batch * m * n * 2;
  if (!draft.wgmma() || draft.stream || bytesOf(*s.d.type) != 2 || ofD < held || k > few || atPowerLimit(draft))
    return 0;
  const double result = ofD + (s.beta.value != Scale{0.0} ? batch * m * n * bytesOf(*s.c.type) : 0);
  const double moved = (batch * (m + n) * k * element + result) / ofMemory;
  const bool turns = !storesAlongN(draft);
  const int64_t line = turns ? shape.m : shape.n;
  const double size = double(shape.m) * double(shape.n) / area;
  double cost = 1 + (turns ? turned : 0) + (line % 64 != 0 ? parts : 0) + small * std::max(0.0, 1 - size);
  if (!s.d.ld.value.dynamic() && !startsAt(s.d, lineBytes))
    return atOnce<8>({moved * cost, (tiles * double(shape.m + shape.n) * k * element + result) / ofL2});
  cost += (line % 128 == 64 ? halves : 0) + large * std::max(0.0, size - 1);
  return moved * cost;
}

struct ClocksOfDoubles {
  double main, around; ///< Main loops, and the launch with what slices take to meet.
};

/// Clocks of mma of f64, step by step: a warp, alone with its products, waits for each of them; all CTAs of an SM share
/// its tensor cores, and more where warps of few rows and columns, or of slices of k, read shared memory more often, or
/// a CTA has two warps for four tensor cores; no more comes than memory gives. 390 kernels of 66 races, 504 of 14
/// products in slices that meet in memory, and two each of 79 (H200, 2026-11-26, docs/hopper-types.md, *f64*). Copies
/// of 8 bytes take a warp's time and the SM's: 299 kernels of 23 products at odd pitches, of which it is 9% off
/// (2026-11-28).
static ClocksOfDoubles clocksOfDoubles(const Draft &draft, const Shape &shape, double tiles) {
  constexpr double launch = 4400, waits = 200, ofProducts = 15.6, unhidden = 1.06, port = 2.25;
  constexpr double twoWarps = 1.23, inTwoSlices = 1.46, twoSlices = 1.04, fourSlices = 1.29; // of warps
  constexpr double counted = 3200, readRate = 25;
  constexpr double ofCopies = 17.5, ofCopiesTogether = 3.3;
  constexpr double elementBytes = 8, memory = 2280;    // bytes a clock
  const double rows = 16, columns = 8, depthOfMma = 4; // of an instruction
  const double warpM = double(shape.warpM), warpN = double(shape.warpN), block = double(shape.m) * double(shape.n);
  const double m = double(draft.plannedM()), n = double(draft.plannedN()), k = double(draft.plannedK());
  auto copies = [&](int64_t lines, unsigned bytes) { // of less than 16 bytes, a step, by whole warps
    return bytes < 16 ? double(lines * shape.k) * elementBytes / bytes / 32 : 0;
  };
  const double narrow = copies(shape.m, draft.plan.copyBytesA) + copies(shape.n, draft.plan.copyBytesB);
  const double inTurn = waits + ofCopies * narrow / double(shape.warps()) +
                        ofProducts * (warpM / rows) * (warpN / columns) * (double(shape.warpK) / depthOfMma);
  const double readPerProduct = (warpM + warpN) * elementBytes / (warpM * warpN);
  const bool two = shape.warps() == 2;
  const double feeding = shape.slices() > 2    ? fourSlices
                         : shape.slices() == 2 ? (two ? inTwoSlices : twoSlices)
                                               : (two ? twoWarps : 1);
  const double together =
      block * double(shape.k) / productsOfDoubles(draft) * std::max(unhidden, port * readPerProduct) * feeding +
      ofCopiesTogether * narrow;
  const double parts = double(draft.slicesInMemory()), ctas = std::ceil(tiles * parts / draft.limits.sms); // of an SM
  const double moved = elementBytes * double(draft.plannedBatch()) * (m * k + k * n + m * n);
  const double steps = std::ceil(std::ceil(k / double(shape.k)) / parts);
  const double meeting = parts == 1 ? 0 : counted + elementBytes * block * parts / readRate;
  return {std::max(steps * std::max(inTurn, ctas * together), moved / memory), launch + meeting};
}

Estimate estimate(const Draft &draft, const Shape &shape) {
  const Rates rates = ratesOf(draft);
  int64_t m = draft.plannedM(), n = draft.plannedN();
  int64_t k = draft.plannedK();
  auto tilesOf = [](int64_t extent, int64_t tile, int64_t cluster) {
    return (extent / tile + (extent % tile != 0) + cluster - 1) / cluster * cluster;
  };
  Estimate result;
  double tiles = double(draft.plannedBatch()) * double(tilesOf(m, shape.m, shape.clusterM)) *
                 double(tilesOf(n, shape.n, shape.clusterN));
  result.tiles = int64_t(std::min(tiles, 9e15));
  result.ctasPerSM = residentCtas(draft, shape);
  int64_t together = shape.clusterM * shape.clusterN;
  const int64_t slices = slicesOf(draft, shape), inMemory = draft.slicesInMemory();
  double slots = double(clustersAtATime(draft, together * slices) * together * result.ctasPerSM);
  double waves = std::max(1.0, std::ceil(tiles * double(inMemory) / slots));
  result.waves = int64_t(std::min(waves, 9e15));

  double steps = std::ceil(double(k) / double(shape.k));
  double depth = std::ceil(steps / double(inMemory)) * double(inMemory * shape.k);
  const double filled = waves > 1 ? 1 : std::min(1.0, tiles * double(slices * inMemory) / draft.limits.sms);
  result.main =
      depth * columnClocks(draft, shape, rates, m, n, waves, filled) * (hasUnlikeParts(draft, shape) ? unlikeCost : 1);
  const double alone = storeClocks(draft, shape), store = alone * crowdedStore(draft, alone, result.main);
  const double start = startClocks(draft);
  result.epilogue = start + store;
  result.loose = looseClocks(draft, shape);
  if (shape.schedule == Schedule::pingpong) {
    // Warpgroups take turns: only the first start and the last end are nobody's main loop.
    result.clocks = waves * (std::max(result.main, result.epilogue / 2) + turnClocks + result.loose) + result.epilogue;
  } else {
    // CTAs of one SM share its tensor cores but hide each other's starts and ends.
    double neighbours =
        std::clamp<double>(std::ceil(tiles / draft.limits.sms), 1, double(result.ctasPerSM)); // no tiles: as of one
    double few = !draft.wgmma() && shape.warps() * neighbours < 4 ? 4.0 / (shape.warps() * neighbours) : 1.0;
    double exposed = neighbours > 1 ? 0.5 : storeOverlap(draft, shape) ? overlapLeaves : 1;
    // Columns are shared out in eights: all wait for who has the most.
    double parts = double(slices * inMemory),
           owners = slices == 1 ? 1 : double(shape.warpN) / double(columnShares(shape).each);
    double meeting = slices == 1 ? memoryClocks(shape, inMemory, waves)
                                 : meetingClocks + 4.0 * shape.m * shape.n * (parts - 1) / owners / sumsRate;
    result.clocks = waves * (result.main / parts * neighbours * few + meeting + result.loose / owners +
                             exposed * (start + store / owners * neighbours));
    result.clocks *= slices > 1 ? runApart(k, apartFrom) : 1;
  }
  if (draft.multipliesDoubles()) {
    const auto [main, around] = clocksOfDoubles(draft, shape, tiles);
    result.main = main / waves * double(inMemory), result.epilogue = around / waves;
    result.clocks = main + around;
  }
  result.clocks += halfSectorClocks(draft, shape, waves, result.main, alone);
  if (draft.wgmma() && together > 1 && slices == 1)
    result.clocks += together > 4 ? eightTogetherClocks : togetherClocks;
  result.atPowerLimit = atPowerLimit(draft) && energyIsKnown(draft);
  const double moving = bytesClocks(draft, shape, double(m), double(n), double(k), tiles);
  if (waitsForSectors(draft) && slices * inMemory == 1)
    result.bySectors = sectorClocks(draft, shape, result.clocks, waves);
  result.cost = (result.bySectors > 0 ? result.bySectors : atOnce<8>({result.clocks, moving})) *
                (result.atPowerLimit ? powerShare(draft, shape, result, slots) : 1) * doubtOf(draft);
  if (together > 4 && slices == 1)
    result.cost *= doubtOfEights;
  return result;
}

} // namespace gemmc::plan
