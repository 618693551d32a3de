// Products with one short side: they stream the long operand once and do little with it. What counts is that all SMs
// stream, each with much under way, and that the short operand, which every CTA reads again, does not fill the L2's
// port. The candidates cut the long side into tiles and k into slices; a few rates of an H200 choose among them.
#include "Draft.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t mostShort = 256, leastLong = 1024, leastDepth = 512;
constexpr int64_t mostRows = 128; ///< Of the short side, beside a wide tile: more are more sums than registers.
/// Rows of both tiles of a stage that is 128 deep, so that enough of them fit; where several CTAs stream the same rows.
constexpr int64_t mostDeep = 128, mostDeepShared = 112;
/// Where lines are shifted on their way (H200, 2026-11-23: 65x4095x4095 20.9 us in stages of 64, 19.3 of 128).
constexpr int64_t mostDeepShifted = 168;

// Bytes and multiply-adds a nanosecond, and nanoseconds: a fit to 1250 kernels for 60 products on an H200 (2026-11-22;
// docs/hopper.md). A fit: the ports of an SM take 127 bytes a nanosecond at most.
constexpr double memoryRate = 4450, portRate = 177, productsRate = 3180, storeRate = 3600;
constexpr double launchTime = 2000;                  ///< Until the first bytes come, and from the last ones to the end.
constexpr double turnTime = 150;                     ///< From one tile of a CTA to its next.
constexpr double hiddenPart = 0.325;                 ///< Of what is not the slowest: it is not quite hidden.
constexpr double meetingTime = 440, sumsRate = 19.5; ///< Of slices of k: until they have met; what a CTA sends.
constexpr double drifting = 1.04; ///< CTAs of several tiles: those of the same rows no longer read them together.
/// Clusters of eight. The card holds 15 at a time, but a stream in 15 took 10% longer; in more it was not measured.
constexpr int64_t roomyEights = 14;
constexpr double crowding = 1.1;
constexpr double scattered = 1.4; ///< Slices of several tiles of the short side read the same lines at other times.

// Where lines are shifted on their way; no part of that fit. Three trips of a line to shared memory, 4 clocks for 128
// bytes; and what the CTAs of a next cluster wait until lines have come and been shifted (48x5119x5119: four slices in
// three waves of clusters 28.7 us, none 24.7; H200, 2026-11-23; docs/hopper.md has six more).
constexpr double shiftRate = 55, restartTime = 1500;

/// Whether a short side would leave more than an eighth of wgmma's 64 rows empty: then it is the side of the columns.
bool wastesRows(int64_t length) {
  constexpr int64_t rows = 64;
  return length <= mostShort && 8 * length < 7 * int64_t(llvm::alignTo(length, rows));
}

/// Both operands whole 16-bit elements, all sizes known, one of them short.
bool isSkinny(const Draft &draft) {
  const Spec &s = draft.spec();
  if (*s.target != Target::sm_90a || bitsOf(*s.a.type) != 16)
    return false;
  if (s.m.value.dynamic() || s.n.value.dynamic() || s.k.value.fixed.value_or(0) < leastDepth)
    return false;
  return isShort(*s.m.value.fixed, *s.n.value.fixed) || isShort(*s.n.value.fixed, *s.m.value.fixed);
}

struct Sides {
  int64_t shortSide, longSide, depth;
  bool longIsM;
  int64_t longTile(const Stream &way) const { return longIsM ? way.m : way.n; }
  int64_t shortTile(const Stream &way) const { return longIsM ? way.n : way.m; }
  /// CTAs of a cluster that share a tile of the short operand: they lie along the long side; and of the long one.
  int64_t sharersOfShort(const Stream &way) const { return longIsM ? way.clusterM : way.clusterN; }
  int64_t sharersOfLong(const Stream &way) const { return longIsM ? way.clusterN : way.clusterM; }
};

/// Of a product that isSkinny.
Sides sidesOf(const Draft &draft) {
  int64_t m = *draft.extentM(), n = *draft.extentN();
  return {std::min(m, n), std::max(m, n), *draft.extentK(), m > n};
}

// Where rows start inside sectors of the L2 less is hidden, slices are hardly worse than other CTAs, and stages arrive
// late, one after the other. A fit to 23 races of 16 to 44 cuts of 21 products (H200, 2026-11-22): its choice is 1.6%
// slower than the race's best on average, 7% at worst.
constexpr double stepTime = 131, hiddenOfSplit = 0.555, scatteredSplit = 1.04;
constexpr double splitRate = 3700; ///< Bytes of such rows in a clock at best, of all SMs.

/// For so many bytes of such rows in so many steps of k.
double splitNanoseconds(double bytes, int64_t ctasThatShare, double steps) {
  if (bytes == 0)
    return 0;
  constexpr double clocks = 1.755; // a nanosecond
  double sharing = ctasThatShare == 1 ? 1.28 : ctasThatShare == 2 ? 1.14 : ctasThatShare <= 4 ? 1.2 : 1.7;
  return std::max(bytes * sharing / splitRate / clocks, steps * stepTime);
}

// Where m or n is contiguous (StreamRows.cpp, a fit with the constants there): what is not the slowest; CTAs
// that share rows, and how long a step of theirs takes at least, for each k.
constexpr double hiddenOfRows = 0.26, sharedRows = 1.06, sharedStep = 76, sharedStepK = 1.02;

double nanoseconds(const Draft &draft, const Sides &sides, const Stream &way) {
  auto count = [](int64_t extent, int64_t tile) { return int64_t(llvm::divideCeil(extent, tile)); };
  const int64_t longTile = sides.longTile(way), shortTile = sides.shortTile(way);
  int64_t shortTiles = count(sides.shortSide, shortTile);
  const int64_t share = way.clusterM * way.clusterN;
  int64_t clustersAlongLong = count(count(sides.longSide, longTile), sides.sharersOfShort(way));
  int64_t clustersAlongShort = count(shortTiles, sides.sharersOfLong(way)),
          clusters = clustersAlongLong * clustersAlongShort;
  const int64_t together = way.slices * share;
  double waves = double(count(clusters, clustersAtATime(draft, together)));
  double depth = double(count(count(sides.depth, way.k), way.slices) * way.k) * waves; // of all tiles of a CTA
  const bool splits = rowsSplitSectors(draft);
  bool scatters = way.slices > 1 && shortTiles > 1, drifts = way.slices == 1 && shortTiles > 1 && waves > 1;
  double hindered = drifts ? drifting : 1;
  double memory = 2.0 * double(sides.longSide) * double(sides.depth) / memoryRate *
                  (scatters ? (splits ? scatteredSplit : scattered) : 1);
  double port = 2.0 * depth * double(longTile + shortTile) / portRate;
  if (draft.shifts())
    port += 2.0 * depth * double(longTile) / shiftRate;
  double products = depth * double(longTile) * double(shortTile) / productsRate;
  // Rows that start inside sectors: what the CTAs of a cluster share comes once.
  double ofLong = 2.0 * double(sides.longSide) * double(sides.depth) * double(clustersAlongShort);
  double ofShort = 2.0 * double(sides.shortSide) * double(sides.depth) * double(clustersAlongLong);
  double split = splitNanoseconds(splitBytes(draft, sides.longIsM ? ofLong : ofShort, sides.longIsM ? ofShort : ofLong),
                                  share, depth / double(way.k));
  double rows = double(clustersAlongLong) * rowsNanoseconds(draft, !sides.longIsM, shortTile) +
                double(clustersAlongShort) * rowsNanoseconds(draft, sides.longIsM, longTile),
         steps = 0;
  if (share > 1 && isContiguous(draft, !sides.longIsM)) {
    hindered *= sharedRows;
    steps = depth / double(way.k) * (sharedStep + sharedStepK * double(way.k));
  }
  // Only the last tile of each CTA is stored when nothing streams.
  double stored = 2.0 * double(sides.longSide) * double(sides.shortSide) / waves / storeRate;
  if (together == 8 && clusters > roomyEights)
    hindered *= crowding;
  const double slowest = std::max({memory, port, products, split, rows, steps});
  double all = launchTime + slowest * hindered + std::min(memory, port) * (splits ? hiddenOfSplit : hiddenPart) +
               (rows < slowest ? rows * hiddenOfRows : 0) +
               waves * meetingNanoseconds(way.slices, longTile * shortTile) + stored +
               (waves - 1) * (draft.shifts() && way.slices > 1 ? restartTime : turnTime);
  return all * (draft.way.turned ? doubtOfTurned(way) : 1);
}
} // namespace

/// D^T, where the short side may be either (`Way::turned`), must promise more than estimates are wrong by: of 22
/// products with a side of 64 to 256 where it does it was 6% faster on average (19% faster to 4% slower); in three and
/// four slices it was 10% slower than expected (H200, 2026-11-23).
double doubtOfTurned(const Stream &way) { return way.slices > 2 ? 1.1 : 1.015; }

const OperandSpec *longOperand(const Draft &draft) {
  if (!isSkinny(draft))
    return nullptr;
  return sidesOf(draft).longIsM ? &draft.kernelA() : &draft.kernelB();
}

bool isShort(int64_t length, int64_t other) { return length >= 1 && length <= mostShort && other >= leastLong; }

bool hasShortSide(const Draft &draft) {
  auto m = draft.extentM(), n = draft.extentN();
  return m && n && (isShort(*m, *n) || isShort(*n, *m));
}

double meetingNanoseconds(int64_t slices, int64_t elements) {
  if (slices == 1)
    return 0;
  return meetingTime + 4.0 * double(elements) * double(slices - 1) / double(slices) / sumsRate;
}

bool shortSideDecides(const Draft &draft) {
  const Spec &s = draft.spec();
  bool other =
      (s.instruction.given && *s.instruction != Instruction::wgmma) || (s.copy.given && *s.copy != CopyKind::tma);
  if (other || asksForHalves(draft) || s.swapOperands.given || s.block.given || s.warp.given || !isSkinny(draft))
    return false;
  const int64_t m = *s.m.value.fixed, n = *s.n.value.fixed;
  return (wastesRows(m) && n >= leastLong) || (wastesRows(n) && m >= leastLong);
}

bool decideSkinnySwap(Draft &draft) {
  Spec &s = draft.spec();
  if (!shortSideDecides(draft))
    return false;
  // The kernel's m is wgmma's side of 64 rows.
  if (wastesRows(*s.m.value.fixed) && *s.n.value.fixed >= leastLong)
    s.swapOperands.decide(Persistence::on,
                          formatv("{0} rows would waste many of wgmma's 64: the {1} columns are its rows",
                                  *s.m.value.fixed, *s.n.value.fixed));
  else
    s.swapOperands.decide(Persistence::off,
                          formatv("{0} columns would waste many of wgmma's 64 rows", *s.n.value.fixed));
  return true;
}

bool mayTurnStream(const Draft &draft) {
  const Spec &s = draft.spec();
  bool given = s.swapOperands.given || s.block.given || s.warp.given || s.cluster.given || s.fragmentsA.given ||
               s.store.given || s.loadC.given;
  bool asItLies = draft.plan.swapped == (*s.d.layout == Order::col);
  bool known = s.beta.value == Scale{0.0} && bitsOf(*s.d.type) == 16;
  if (given || !asItLies || !known || draft.shifts() || !isSkinny(draft))
    return false;
  const Sides sides = sidesOf(draft);
  return !wastesRows(sides.shortSide) && !hasSplitRows(draft, !sides.longIsM);
}

namespace {
/// Whether everything that a spec says of the schedule goes with streaming.
bool mayStream(const Draft &draft) {
  const Spec &s = draft.spec();
  // Of the short operand lines are shifted where a spec says so, in tiles of 64 of them.
  const OperandSpec *streamed = longOperand(draft);
  bool othersLines = streamed && draft.shifts() && *streamed->repack != Repack::inside;
  return draft.wgmma() && streamed && !othersLines && !asksForHalves(draft) &&
         (!s.schedule.given || *s.schedule == Schedule::cooperative) && *s.scheduler == Scheduler::fixed;
}

/// Slices of k leave C to whoever adds them: TMA brings it to whole tiles alone.
bool cAllowsSlices(const Draft &draft) {
  const Spec &s = draft.spec();
  bool storedByTma = s.store.given && *s.store == StoreKind::tma,
       broughtByTma = s.loadC.given && *s.loadC == StoreKind::tma;
  return s.beta.value == Scale{0.0} || !(storedByTma || broughtByTma);
}

/// The cut of a spec that gives its block tile.
std::optional<Stream> givenStream(const Draft &draft) {
  const Spec &s = draft.spec();
  auto cluster = s.cluster.given ? *s.cluster : std::array<int64_t, 3>{1, 1, 1};
  bool sliced = s.splitSlices.given || s.splitThrough.given || (s.split.given && *s.split != SplitMode::none);
  if ((cluster[0] * cluster[1] != 1 && !mayShare(draft)) || (sliced && cluster[2] == 1))
    return std::nullopt;
  auto block = kernelView(draft, *s.block);
  cluster = kernelView(draft, cluster);
  return Stream{block[0], block[1], block[2], cluster[2], "as the spec says", cluster[0], cluster[1]};
}

std::string reasonOf(const Draft &draft, const Stream &way) {
  const Sides sides = sidesOf(draft);
  auto tiles = llvm::divideCeil(sides.longSide, sides.longTile(way));
  auto times = llvm::divideCeil(sides.shortSide, sides.shortTile(way));
  auto ctas =
      llvm::alignTo(tiles, sides.sharersOfShort(way)) * llvm::alignTo(times, sides.sharersOfLong(way)) * way.slices;
  return formatv("{0} x {1} are streamed{2}: {3} tiles of {4}{5} are {6} CTAs for {7} SMs", sides.longSide, sides.depth,
                 times > 1 ? formatv(" {0} times", times).str() : "", tiles, sides.longTile(way),
                 way.slices > 1 ? formatv(" in {0} slices of k", way.slices).str() : "", ctas, draft.limits.sms);
}

/// CTAs of a cluster that share a tile of the short operand, and of the long one.
struct Sharing {
  int64_t ofShort, ofLong;
  int64_t ctas() const { return ofShort * ofLong; }
};
/// What is shared comes from the L2 once, which pays where rows start inside its sectors (64x4096x4104: 24.2 us, in
/// fours 12.1; H200, 2026-11-22), and costs 5 to 15% elsewhere.
std::vector<Sharing> sharings(const Draft &draft) {
  if (rowsSplitSectors(draft))
    return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}};
  if (hasSplitRows(draft, sidesOf(draft).longIsM))
    return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}};
  if (mayShare(draft))
    return {{1, 1}, {2, 1}, {4, 1}};
  return {{1, 1}};
}
} // namespace

std::vector<Stream> streams(const Draft &draft) {
  const Spec &s = draft.spec();
  bool open = !s.block.given && !s.warp.given && !s.cluster.given && !s.split.given && !s.splitThrough.given &&
              !s.splitSlices.given && (!s.persistent.given || *s.persistent == Persistence::off);
  if (!open || !mayStream(draft))
    return {};
  const Sides sides = sidesOf(draft);
  // Tiles of an operand whose m or n is contiguous are whole lines, of the short one also all of it.
  const bool shortLies = isContiguous(draft, !sides.longIsM), longLies = isContiguous(draft, sides.longIsM);
  const int64_t line = 64; // elements
  int64_t step = sides.longIsM || longLies ? line : 8, least = step == line ? line : 32;
  constexpr int64_t mostLines = 192; // beside which short tiles: measured where they are contiguous
  int64_t most = !sides.longIsM ? 256 : shortLies ? mostLines : 128;
  int64_t shortUnit = sides.longIsM ? 8 : 64;
  std::vector<Stream> found;
  const int64_t mostParts = llvm::divideCeil(sides.shortSide, int64_t(64)), mostSlices = cAllowsSlices(draft) ? 4 : 1;
  auto consider = [&](int64_t parts, int64_t tile, int64_t slices, Sharing sharing) {
    // Equal parts, of which each CTA that shares one loads a whole number of 8 rows; those beyond the edge cost
    // nothing.
    int64_t unit = shortLies ? (parts > 1 ? line : shortUnit) : std::max(shortUnit, 8 * sharing.ofShort);
    int64_t shortTile = llvm::alignTo(llvm::divideCeil(sides.shortSide, parts), unit);
    int64_t times = llvm::divideCeil(sides.shortSide, shortTile);
    if (times < parts || shortTile > mostShort || (!sides.longIsM && shortTile > mostRows))
      return;
    if (times < sharing.ofLong || tile % (8 * sharing.ofLong) != 0 || slices * sharing.ctas() > 8)
      return;
    // Each of four brings a quarter of the k of a stage, at least 32 of them.
    const bool quarters = shortLies && sharing.ofShort == 4 && shortTile < line;
    if (sides.longIsM && tile == mostLines && (shortTile < line || shortTile > 2 * line))
      return;
    Stream way{sides.longIsM ? tile : shortTile, sides.longIsM ? shortTile : tile, 64, slices, ""};
    int64_t deepest = draft.shifts() ? mostDeepShifted : slices == 1 && times > 1 ? mostDeepShared : mostDeep;
    if (shortTile + tile <= deepest || quarters)
      way.k = 128;
    if (sides.depth < slices * way.k)
      return;
    // One warpgroup multiplies what another one shifts, eight boxes of whole 128 bytes at a time.
    if (draft.shifts() && (tile % shiftedLines != 0 || (sides.longIsM && tile != shiftedLines) || sharing.ctas() != 1 ||
                           tile * shortTile > 128 * sumsBesideShifter))
      return;
    way.clusterM = sides.longIsM ? sharing.ofShort : sharing.ofLong;
    way.clusterN = sides.longIsM ? sharing.ofLong : sharing.ofShort;
    way.nanoseconds = nanoseconds(draft, sides, way);
    found.push_back(std::move(way));
  };
  for (int64_t parts = 1; parts <= mostParts; ++parts)
    for (int64_t tile = least; tile <= most; tile += step)
      for (int64_t slices = 1; slices <= mostSlices; ++slices)
        for (Sharing sharing : sharings(draft))
          consider(parts, tile, slices, sharing);
  // Of two tiles that take as long the one with more columns comes first: wgmma reads less of it.
  llvm::stable_sort(found, [](const Stream &x, const Stream &y) {
    return x.nanoseconds != y.nanoseconds ? x.nanoseconds < y.nanoseconds : x.n > y.n;
  });
  return found;
}

void decideStream(Draft &draft) {
  if (draft.spec().block.given && mayStream(draft))
    draft.stream = givenStream(draft);
  else {
    constexpr size_t most = 24; // more do not fit where the first ones do not
    std::vector<Stream> ways = streams(draft);
    ways.resize(std::min(ways.size(), most), Stream{});
    draft.otherStreams.assign(std::make_move_iterator(ways.rbegin()), std::make_move_iterator(ways.rend()));
    nextStream(draft);
  }
}

void nextStream(Draft &draft) {
  draft.stream.reset();
  if (draft.otherStreams.empty())
    return;
  draft.stream = std::move(draft.otherStreams.back());
  draft.otherStreams.pop_back();
  draft.stream->reason = reasonOf(draft, *draft.stream);
}

} // namespace gemmc::plan
