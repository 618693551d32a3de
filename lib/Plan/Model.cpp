// The planner's clock: an estimate that ranks tile shapes. It knows four things, all per SM and clock, and what a long
// product moves, which costs power:
//   - the tensor cores multiply at a fixed rate, less when a tile is too small to reuse what shared memory delivers;
//   - the tiles of A and B come through the L2, a cluster's shared ones once;
//   - the last wave is as long as a full one, however few tiles it has;
//   - each tile costs a start (latency until the first stage is there) and an end (the epilogue), which ping-pong
//     warpgroups hide behind each other's main loops.
// The constants are of the order that measurements give; they rank shapes and promise no times.
#include "Ranking.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace gemmc::plan {
namespace {
// The constants of wgmma are a fit to 34 races of 6 to 48 kernels on an H200 (2026-11-21, `gemmc tune`, shapes of 512^3
// to 8192x28672x8192): the first choice was 0.5% slower than the best of the race on average, 3.3% at worst. With what
// was added since it is 0.8% and 3.9% over the 16 of them that are kept (docs/hopper-shapes.md, *The model*).
/// Clocks from one tile's products to the next one's first, whose stages have come meanwhile; ping-pong: from one
/// warpgroup's main loop to the other's. 950 and 335 of that fit were too many: 125 races of 6 to 14 kernels, of
/// products of 320 to 29568 rows and columns (H200, 2026-11-23), have 1.0% behind their best in the place of 1.5.
double startClocks(const Premises &on) { return on.wgmma ? 300 : 950; }
constexpr double turnClocks = 100;
constexpr double takingClocks = 750; // from a counter: each tile takes a CTA so long at least
/// What is left of a tile's start and end where half of it is stored while the other half multiplies
/// (`epilogue.overlap`): a fit to 19 races of 11 to 19 kernels, each in two regimes (H200, 2026-11-22,
/// docs/hopper-clock.md, *Half a tile at a time*).
constexpr double overlapLeaves = 0.65;
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
/// What the clock of products is multiplied by where CTAs of a cluster have unlike parts of a tile. When they took
/// turns that was measured (eight kernels, H100, 2026-11-25), and the races that fitted the clock had it. Without it 18
/// whole products took other tiles and 0.8% longer (H200, 2026-11-26).
constexpr double unlikeCost = 1.015;
// Slices of k: fewer CTAs ask for the same lines at the same time, unless they share tiles. A fit to 69 races of 14 to
// 27 tiles, clusters and slices each, of products of 256 to 2048 rows and columns, k of 512 to 15616 (H200,
// 2026-11-23); with 12 of them at pitches of 16 bytes. Its choice is 2.1% slower than the best on average.
/// Clocks until the slices of a tile have met, and bytes of sums that a CTA sends in a clock.
constexpr double meetingClocks = 1150, sumsRate = 6.9;
/// The k from which slices in clusters take longer: eleven products took 10 to 16% more than estimated where it is
/// 16384 and more, nothing where it is 8192 (H200, 2026-11-25).
constexpr double apartFrom = 8192;

/// Clocks until the slices of a tile have met in memory: what each writes, the counter, and what each owner of a share
/// reads of all (bytes a clock).
/// Where the last adds alone a fit to 250 kernels of 38 products (H200, 2026-11-25): beside 226 with slices in clusters
/// and whole tiles its choice is 1.4% slower than the best of them (4.9% before). With owners 50 kernels of two steps,
/// tiles of 64x64 to 256x128 in 2 to 32 slices (H200, 2026-12-01, docs/hopper-l2.md, *Slices that share out the sum*).
double memoryClocks(const Premises &on, const Shape &shape, int64_t parts, double waves) {
  constexpr double counted = 2000, readAlone = 30, writeRate = 19, readRate = 38;
  if (parts == 1)
    return 0;
  const double sums = 4.0 * double(shape.m * shape.n);
  if (on.sharesSums && waves == 1 && shape.clusterK == 1) {
    const double owners = double(sharesInMemory(shape.warpN ? shape.warpN : shape.n, parts).owners);
    return counted + sums / writeRate + sums * double(parts) / owners / readRate;
  }
  // For each wave: a CTA comes last of one tile in `parts`, and of its last one.
  const double last = counted + sums * double(parts) / readAlone;
  return last * (1 + (waves - 1) / double(parts)) / waves;
}

/// Clocks until all slices have met: in clusters of `slices`, of which `owners` have shares of the sums, then in memory
/// what `inMemory` of these have come to.
double clocksOfMeeting(const Premises &on, const Shape &shape, int64_t slices, double owners, int64_t inMemory,
                       double waves) {
  if (slices == 1)
    return memoryClocks(on, shape, inMemory, waves);
  const double inCluster = meetingClocks + 4.0 * shape.m * shape.n * double(slices - 1) / owners / sumsRate;
  return inCluster + memoryClocks(on, shape, inMemory, waves) / owners;
}

/// What slices in memory take of their estimate where all run at a time, by the CTAs that share tiles: 54 kernels that
/// it chose, and 108 that it did not, of products of 200 to 2048 rows and columns, k of 4544 to 44632 (H200,
/// 2026-12-01).
double partOfShared(int64_t together) { return together == 1 ? 1.07 : together == 2 ? 1.03 : 0.97; }

/// What the energy of a product, relative to what its multiply-adds alone take, adds to its clocks. At the power limit
/// voltage follows the clock, and the time of a kernel that runs alone goes with the root of clocks x energy: over 513
/// kernels of 17 products (H200, 2026-11-22, turns of 0.06 to 0.2 s) clocks have the power 0.494, and a byte of memory
/// costs as much as 68 multiply-adds, a byte of the L2 nothing that shows. Kernels that take turns of a few launches
/// share their clock, and clocks alone count. With a third both are within 0.7% of the best on average
/// (docs/hopper-clock.md, *Whose clock*).
double powerShare(const Premises &on, const Shape &shape, const Estimate &estimate, double slots) {
  constexpr double share = 1.0 / 3;
  double k = double(on.k);
  double area = double(on.m) * double(on.n) * double(on.batch);
  const Spec &s = on.draft.spec();
  double group = double(s.rasterGroup.given ? *s.rasterGroup : squareGroup(slots, shape.m, shape.n));
  RasterOrder order = s.rasterOrder.given ? kernelView(on.draft, *s.rasterOrder) : RasterOrder::along_m;
  double result = bytesOf(*s.d.type) + (s.beta.value != Scale{0.0} ? bytesOf(*s.c.type) : 0);
  double bytes = double(estimate.waves) * waveBytes(on.draft, shape, slots, group, order) + area * result;
  double products = double(estimate.tiles) * double(shape.m) * double(shape.n) * k;
  return std::pow(energyOf(products, bytes) / (area * k), share);
}
} // namespace

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
/// takes; elsewhere more where lines leave in parts of 256 bytes (128 alone take 10% of a D that the L2 does not hold:
/// 480 of 464x704x48 of e4m3, 2026-11-30), or tiles are large, so that few are stored at a time.
/// Tiles with whole lines write them one after the other. What tiles from a counter hang over by costs its root.
/// They decide where k is few and D most of it, and more than the L2 holds. Of D in f32, or that the L2 holds, a fit
/// had 3 to 8% more with them than without (H200, 2026-11-26 and 29, docs/hopper-shapes.md, *Few of k* and *Stages for
/// the next tile*).
double bytesClocks(const Premises &on, const Shape &shape, double tiles) {
  constexpr double ofMemory = 1800, ofL2 = 3900; // bytes of a clock: 3.2e12 and 6.8e12 a second
  constexpr double held = 45e6, few = 160;
  constexpr double turned = 0.06, parts = 0.1, halves = 0.03, alone = 0.1, small = 0.35, large = 0.03, area = 128 * 128;
  const Spec &s = on.draft.spec();
  const double m = double(on.m), n = double(on.n), k = double(on.k), element = on.inputBits / 8.0;
  const double batch = double(on.batch), ofD = batch * m * n * 2;
  if (!on.wgmma || on.streamed || bytesOf(*s.d.type) != 2 || ofD < held || k > few || on.atPowerLimit)
    return 0;
  const double result = ofD + (s.beta.value != Scale{0.0} ? batch * m * n * bytesOf(*s.c.type) : 0);
  const double moved = (batch * (m + n) * k * element + result) / ofMemory;
  const bool turns = !on.storesAlongN;
  const int64_t line = turns ? shape.m : shape.n, lines = turns ? on.m : on.n;
  const bool cuts = line < lines;                   // a tile that has whole lines writes them one after the other
  const double size = batch * m * n / tiles / area; // what a tile has of D
  double cost = 1 + (turns ? turned : 0) + (cuts && line % 64 != 0 ? parts : 0) + small * std::max(0.0, 1 - size);
  cost /= on.keepsTilesTogether ? std::sqrt(filledPart(on, shape)) : 1;
  if (!s.d.ld.value.dynamic() && !on.linesOfD)
    return atOnce<8>({moved * cost, (tiles * double(shape.m + shape.n) * k * element + result) / ofL2});
  const double half = on.keepsTilesTogether && line == 64 ? alone : halves;
  cost += (cuts && line % 128 == 64 ? half : 0) + large * std::max(0.0, size - 1);
  return moved * cost;
}

namespace {
/// The tiles of a product, with those that fill clusters up, and in how many waves they come.
struct Waves {
  double tiles, slots, waves;
  double filled; ///< The part of the SMs that one wave alone keeps busy.
};
Waves wavesOf(const Premises &on, const Shape &shape, int64_t ctasPerSM) {
  auto tilesOf = [](int64_t extent, int64_t tile, int64_t cluster) {
    return (extent / tile + (extent % tile != 0) + cluster - 1) / cluster * cluster;
  };
  const double tiles = double(on.batch) * double(tilesOf(on.m, shape.m, shape.clusterM)) *
                       double(tilesOf(on.n, shape.n, shape.clusterN));
  const int64_t together = shape.clusterM * shape.clusterN, slices = on.slicesOf(shape);
  const double slots = double(clustersAtATime(on.draft, together * slices) * together * ctasPerSM);
  const double waves = std::max(1.0, std::ceil(tiles * double(on.slicesInMemory) / slots));
  const double ctas = tiles * double(slices * on.slicesInMemory);
  return {tiles, slots, waves, waves > 1 ? 1 : std::min(1.0, ctas / on.draft.limits.sms)};
}
} // namespace

/// Where k is short, most of the time is D's: tiles leave faster where D's rows go along their m, and a warpgroup has
/// 64 of them, 128 bytes of each row. 7344x6232x200 TT takes 63.7 us in 256x176 as it lies, in 256x128 60.4 and, as
/// D^T, 51.8 (750 kernels of 38 products; H200, 2026-11-30, docs/hopper-shapes.md, *Few of k*). With C, and of D of
/// other widths, it was not measured.
static double wholeLinesCost(const Premises &on) {
  constexpr int64_t mostK = 448;
  constexpr double share = 0.96;
  const Spec &s = on.draft.spec();
  const bool measured = on.wgmma && !on.streamed && s.beta.value == Scale{0.0} && bytesOf(*s.d.type) == 2;
  return measured && !on.storesAlongN && on.k <= mostK ? share : 1;
}

// What `estimate` has of an outline, in its order; its other parts only add to that.
double leastCost(const Premises &on, const Outline &outline) {
  const auto [schedule, m, n, clusterM, clusterN, clusterK] = outline;
  auto small = [](int64_t value) { return value >= 1 && value <= 1024; };
  if (!on.wgmma || on.streamed || !small(m) || !small(n))
    return 0; // all of them are looked at
  Shape shape;
  shape.schedule = schedule, shape.m = m, shape.n = n;
  shape.clusterM = clusterM, shape.clusterN = clusterN, shape.clusterK = clusterK;
  const auto [tiles, slots, waves, filled] = wavesOf(on, shape, 1);
  const double main = double(on.k) * leastColumnClocks(on, shape, waves, filled);
  const double start = startClocks(on), store = leastStoreClocks(on, shape);
  const int64_t together = clusterM * clusterN, slices = on.slicesOf(shape);
  const bool bySectors = on.waitsForSectors && !on.keepsTilesTogether && slices * on.slicesInMemory == 1;
  auto costOf = [&](double clocks) {
    return (bySectors ? leastSectorClocks(on, shape, clocks, waves) : clocks) * on.doubt * wholeLinesCost(on);
  };
  if (schedule == Schedule::pingpong)
    return costOf(waves * (main + turnClocks) + start + store);
  const double parts = double(slices * on.slicesInMemory), owners = double(slices);
  const double meeting = clocksOfMeeting(on, shape, slices, owners, on.slicesInMemory, waves);
  const double company = together > 1 && slices == 1 ? (together > 4 ? eightTogetherClocks : togetherClocks) : 0;
  const double exposed = on.mayOverlapStores ? overlapLeaves : 1;
  const bool shares = on.sharesSums && on.slicesInMemory > 1 && waves == 1;
  const double part = slices == 1 && shares ? partOfShared(together) : 1;
  return costOf(part * waves * (main / parts + meeting + exposed * (start + store / owners)) + company);
}

Estimate estimate(const Premises &on, const Shape &shape) {
  Estimate result;
  result.ctasPerSM = std::min<int64_t>(4, residentCtas(on, shape));
  const auto [tiles, slots, waves, filled] = wavesOf(on, shape, result.ctasPerSM);
  result.tiles = int64_t(std::min(tiles, 9e15));
  int64_t together = shape.clusterM * shape.clusterN;
  const int64_t slices = on.slicesOf(shape), inMemory = on.slicesInMemory;
  result.waves = int64_t(std::min(waves, 9e15));

  double steps = std::ceil(double(on.k) / double(shape.k));
  double depth = std::ceil(steps / double(inMemory)) * double(inMemory * shape.k);
  result.main = depth * columnClocks(on, shape, waves, filled) * (hasUnlikeParts(on.draft, shape) ? unlikeCost : 1);
  const double alone = storeClocks(on, shape), store = alone * crowdedStore(on, alone, result.main);
  const double start = startClocks(on);
  result.epilogue = start + store;
  result.loose = looseClocks(on, shape);
  if (shape.schedule == Schedule::pingpong) {
    // Warpgroups take turns: only the first start and the last end are nobody's main loop.
    result.clocks = waves * (std::max(result.main, result.epilogue / 2) + turnClocks + result.loose) + result.epilogue;
  } else {
    // CTAs of one SM share its tensor cores but hide each other's starts and ends.
    double neighbours =
        std::clamp<double>(std::ceil(tiles / on.draft.limits.sms), 1, double(result.ctasPerSM)); // no tiles: as of one
    double few = !on.wgmma && shape.warps() * neighbours < 4 ? 4.0 / (shape.warps() * neighbours) : 1.0;
    double exposed = neighbours > 1 ? 0.5 : storeOverlap(on.draft, shape) ? overlapLeaves : 1;
    // Columns are shared out in eights: all wait for who has the most.
    double parts = double(slices * inMemory),
           owners = slices == 1 ? 1 : double(shape.warpN) / double(columnShares(shape).each);
    double meeting = clocksOfMeeting(on, shape, slices, owners, inMemory, waves);
    result.clocks = waves * (result.main / parts * neighbours * few + meeting + result.loose / owners +
                             exposed * (start + store / owners * neighbours));
    const bool shares = on.sharesSums && inMemory > 1 && waves == 1;
    result.clocks *= slices > 1 ? runApart(on.k, apartFrom) : shares ? partOfShared(together) : 1;
  }
  if (on.multipliesDoubles || on.measuredTiles) {
    const auto [main, around] =
        on.multipliesDoubles ? clocksOfDoubles(on, shape, tiles) : clocksOfMeasuredTiles(on, shape, tiles);
    result.main = main / waves * double(inMemory), result.epilogue = around / waves;
    result.clocks = main + around;
  }
  result.clocks += halfSectorClocks(on, shape, waves, result.main, alone);
  if (on.keepsTilesTogether)
    result.clocks = std::max(result.clocks, waves * takingClocks);
  if (on.wgmma && together > 1 && slices == 1)
    result.clocks += together > 4 ? eightTogetherClocks : togetherClocks;
  result.atPowerLimit = on.atPowerLimit && on.energyIsKnown;
  const double moving = bytesClocks(on, shape, tiles);
  if (on.keepsTilesTogether && !(on.linesOfD && moving > 0)) // whose fit has whole lines of D
    result.bySectors = countedClocks(on, shape, result.clocks, tiles, waves);
  else if (on.waitsForSectors && slices * inMemory == 1)
    result.bySectors = sectorClocks(on, shape, result.clocks, waves);
  result.cost = (result.bySectors > 0 ? result.bySectors
                 : moving > 0         ? atOnce<8>({result.clocks, moving})
                                      : result.clocks) *
                (result.atPowerLimit ? powerShare(on, shape, result, slots) : 1) * on.doubt;
  if (together > 4 && slices == 1)
    result.cost *= doubtOfEights;
  if (shape.schedule == Schedule::cooperative && shape.warpM == 64 && waves > 1)
    result.cost *= wholeLinesCost(on);
  return result;
}

} // namespace gemmc::plan
