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
constexpr int64_t mostSums = 128 * 256;     ///< Of a tile: what registers hold.
constexpr int64_t line = 64, halfLine = 32; ///< Of the L2, in elements.
/// Rows of both tiles of a stage that is 128 deep, so that enough of them fit; where several CTAs stream the same rows.
constexpr int64_t mostDeep = 128, mostDeepShared = 112;
/// Where lines are shifted on their way (H200, 2026-11-23: 65x4095x4095 20.9 us in stages of 64, 19.3 of 128).
constexpr int64_t mostDeepShifted = 168;

// Bytes and multiply-adds a nanosecond, and nanoseconds: a fit to 404 races of 2 to 19 cuts each, of products with a
// side of 1 to 256, of all layouts, at pitches of 16 bytes and more (H200, 2026-11-23; docs/hopper.md, *Streams, wave
// by wave*). Its choice is 1.4% slower than the best of each on average. It is a fit: the ports of an SM take 127 bytes
// a nanosecond at most.
constexpr double memoryRate = 4200, productsRate = 3179, sharedRate = 283, storeRate = 6042;
/// Lines that come to an SM; slices of k ask for others at the same time, which the L2 does not send once for all.
constexpr double portRate = 157, slicedPortRate = 127;
constexpr double splitRate = 6614;                   ///< Rows that start inside sectors of the L2, k contiguous.
constexpr double launchTime = 2164;                  ///< Until the first bytes come, and from the last ones to the end.
constexpr double stepTime = 41;                      ///< Of a stage, at least.
constexpr double turnTime = 160;                     ///< From a tile of a CTA to its next.
constexpr double meetingTime = 121, sumsRate = 21.4; ///< Of slices of k: until they have met; what a CTA sends.
/// Slices of two and more tiles of the short side read the same lines at other times.
constexpr double scatteredTwo = 1.43, scatteredMore = 2.15;
/// Four of them more so, the longer they run apart, for each doubling of k: what they were estimated to take fell short
/// by 10% where k is 8192, by 28 where it is 32768 (seven products of 200 and 256 rows; H200, 2026-11-25).
constexpr double apartEachDoubling = 0.1, apartFrom = 4096;
// Slices that meet in memory, whose neighbours are tiles of one slice: a fit to 404 cuts of 36 products (H200,
// 2026-11-25, docs/hopper.md, *Slices that meet in memory*): what is fastest by it takes 0.9% more than the least.
constexpr double inMemoryPortRate = 130, scatteredInMemory = 1.1;
constexpr double countedTime = 400, partsRate = 50; ///< Until all are counted; bytes of parts that the last one adds.
constexpr double doubtOfMemory = 1.02;
constexpr int64_t mostInMemory = 8;
/// How much faster lines come to an SM while all others are idle; in proportion while some are.
constexpr double roomOfFew = 0.27;
constexpr double oddEighths = 1.027; ///< The last 16 bytes of a line of D leave by themselves.
/// Tiles of half a line of a contiguous short side, for each one beyond two: of six products three in five such tiles
/// were 5 to 10% slower than a cut that the estimate had 1 to 3% behind (H200, 2026-11-24; docs/hopper.md, *A short
/// side that is contiguous*).
constexpr double furtherHalf = 0.012;
/// How long a step takes CTAs that share rows of a contiguous short side at least, with what each k adds.
constexpr double sharedStep = 67, sharedStepK = 0.71;

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

int64_t clustersAlong(int64_t extent, int64_t tile, int64_t sharers) {
  return int64_t(llvm::divideCeil(llvm::divideCeil(extent, tile), sharers));
}
/// Clusters along the long side, and along the short one.
std::pair<int64_t, int64_t> clustersOf(const Sides &sides, const Stream &way) {
  return {clustersAlong(sides.longSide, sides.longTile(way), sides.sharersOfShort(way)),
          clustersAlong(sides.shortSide, sides.shortTile(way), sides.sharersOfLong(way))};
}

/// Of a product that isSkinny.
Sides sidesOf(const Draft &draft) {
  int64_t m = *draft.extentM(), n = *draft.extentN();
  return {std::min(m, n), std::max(m, n), *draft.extentK(), m > n};
}

/// Wave by wave, because the tiles of a last one that is not full have the memory to themselves, and no more than an SM
/// can take of it.
StreamTime timeOf(const Draft &draft, const Sides &sides, const Stream &way) {
  auto count = [](int64_t extent, int64_t tile) { return int64_t(llvm::divideCeil(extent, tile)); };
  const int64_t longTile = sides.longTile(way), shortTile = sides.shortTile(way), share = way.clusterM * way.clusterN;
  const int64_t shortTiles = count(sides.shortSide, shortTile);
  const auto [alongLong, alongShort] = clustersOf(sides, way);
  const int64_t clusters = alongLong * alongShort;
  const bool inMemory = way.through == SplitThrough::workspace;
  const int64_t together = inMemory ? draft.limits.sms / way.slices : clustersAtATime(draft, way.slices * share);
  const int64_t waves = count(clusters, together);

  // What one CTA does for its part of a tile. Of the short operand the rows that there are come.
  const double steps = double(count(count(sides.depth, way.k), way.slices)), depth = steps * double(way.k);
  const double port = 2 * depth * (double(longTile) + double(sides.shortSide) / double(shortTiles)) /
                      (inMemory         ? inMemoryPortRate
                       : way.slices > 1 ? slicedPortRate
                                        : portRate);
  const double shifting = draft.shifts() ? 2 * depth * double(longTile) / shiftRate : 0;
  const double products = depth * double(longTile) * double(shortTile) / productsRate;
  // Shared memory's port: what the tensor cores read, 64 rows at a time, and what TMA writes.
  const double read = double(way.m) / 64 * double(64 + way.n), written = double(way.m + way.n);
  const double shared = 2 * depth * (portRead * read + portWritten * written) / sharedRate;
  const bool sharesRows = share > 1 && isContiguous(draft, !sides.longIsM);
  const double step = sharesRows ? std::max(stepTime, sharedStep + sharedStepK * double(way.k)) : stepTime;

  // What all of them do together.
  const bool scatters = way.slices > 1 && shortTiles > 1 && !rowsSplitSectors(draft);
  const double scattered = !scatters         ? 1
                           : inMemory        ? scatteredInMemory
                           : shortTiles == 2 ? scatteredTwo
                                             : scatteredMore;
  const double memory = 2 * double(sides.longSide) * double(sides.depth) / memoryRate * scattered;
  const double ofLong = 2 * double(sides.longSide) * double(sides.depth) * double(alongShort);
  const double ofShort = 2 * double(sides.shortSide) * double(sides.depth) * double(alongLong);
  const double split =
      splitBytes(draft, sides.longIsM ? ofLong : ofShort, sides.longIsM ? ofShort : ofLong) / splitRate;
  const double rows = double(alongLong) * rowsNanoseconds(draft, !sides.longIsM, shortTile) +
                      double(alongShort) * rowsNanoseconds(draft, sides.longIsM, longTile);

  auto wave = [&](int64_t of) {
    const double part = double(of) / double(clusters), idle = 1 - double(of) / double(together);
    return atOnce<4>({memory * part, split * part, rows * part, port / (1 + roomOfFew * idle) + shifting, products,
                      shared, steps * step});
  };
  const int64_t rest = clusters % together;
  double all = launchTime + double(clusters / together) * wave(together) + (rest > 0 ? wave(rest) : 0);
  const double sums = 4 * double(longTile * shortTile);
  all += double(waves) * (inMemory ? countedTime + sums * double(way.slices) / partsRate
                                   : meetingNanoseconds(way.slices, longTile * shortTile));
  all += double(waves - 1) * turnTime;
  if (draft.shifts() && way.slices > 1)
    all += double(waves - 1) * restartTime;
  // Only the last tile of each CTA is stored when nothing streams.
  all += 2 * double(sides.longSide) * double(sides.shortSide) / double(waves) / storeRate;
  if (!sides.longIsM && longTile % 16 != 0)
    all *= oddEighths;
  if (!inMemory && scatters && way.slices >= 4 && double(sides.depth) > apartFrom)
    all *= 1 + apartEachDoubling * std::log2(double(sides.depth) / apartFrom);
  if (shortTile == halfLine && shortTiles > 2 && isContiguous(draft, !sides.longIsM))
    all *= 1 + furtherHalf * double(shortTiles - 2);

  const double part = std::min(1.0, double(together) / double(clusters)); // of a full wave
  const std::pair<double, const char *> longest = std::max(
      {std::pair(memory * part, "memory"), std::pair(std::max({split * part, rows * part, port + shifting}), "the L2"),
       std::pair(products, "tensor cores"), std::pair(shared, "shared memory"),
       std::pair(steps * step, "the steps of k")},
      [](const auto &x, const auto &y) { return x.first < y.first; });
  return {all * doubtOfTurned(draft), longest.second};
}
} // namespace

/// The other way round (`Way::turned`) must promise more than estimates are wrong by where both are alike.
double doubtOfTurned(const Draft &draft) { return draft.way.turned ? 1.01 : 1; }

std::optional<StreamTime> streamTime(const Draft &draft) {
  const Spec &s = draft.spec();
  if (!draft.wgmma() || !isSkinny(draft) || *s.schedule != Schedule::cooperative)
    return std::nullopt;
  if (*s.split == SplitMode::stream_k)
    return std::nullopt;
  const auto block = kernelView(draft, *s.block), cluster = kernelView(draft, *s.cluster);
  Stream way{block[0], block[1], block[2], cluster[2], "", cluster[0], cluster[1]};
  if (draft.slicesInMemory() > 1)
    way.slices = draft.slicesInMemory(), way.through = SplitThrough::workspace;
  return timeOf(draft, sidesOf(draft), way);
}

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
  const bool swaps = wastesRows(*s.m.value.fixed) && *s.n.value.fixed >= leastLong;
  if (draft.way.turned)
    s.swapOperands.decide(swaps ? Persistence::off : Persistence::on, "its tiles fit better");
  else if (swaps)
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
  bool known = s.beta.value == Scale{0.0} && bitsOf(*s.d.type) == 16;
  if (given || draft.way.turned || !known || draft.shifts() || !isSkinny(draft))
    return false;
  return !hasSplitRows(draft, !sidesOf(draft).longIsM);
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

/// Whether slices of k may meet in memory, which takes some microseconds: a deep product has them. Nobody shares tiles
/// then.
bool mayMeetInMemory(const Draft &draft, const Sides &sides) {
  constexpr int64_t deep = 8192;
  const Spec &s = draft.spec();
  const bool staged = (s.store.given && *s.store != StoreKind::tma) || endsRowsInside16Bytes(draft);
  return sides.depth >= deep && cAllowsSlices(draft) && !staged && !draft.shifts() && !mayShare(draft);
}

/// The cut of a spec that gives its block tile.
std::optional<Stream> givenStream(const Draft &draft) {
  const Spec &s = draft.spec();
  auto cluster = s.cluster.given ? *s.cluster : std::array<int64_t, 3>{1, 1, 1};
  bool sliced = s.splitSlices.given || s.splitThrough.given || (s.split.given && *s.split != SplitMode::none);
  if (cluster[0] * cluster[1] != 1 && !mayShare(draft))
    return std::nullopt;
  auto block = kernelView(draft, *s.block);
  cluster = kernelView(draft, cluster);
  Stream way{block[0], block[1], block[2], cluster[2], "as the spec says", cluster[0], cluster[1]};
  if (!sliced || cluster[2] > 1)
    return way;
  const bool known = s.split.given && *s.split == SplitMode::split_k && s.splitSlices.given && *s.splitSlices > 1 &&
                     !(s.splitThrough.given && *s.splitThrough == SplitThrough::cluster);
  if (!known || cluster[0] * cluster[1] != 1 || !mayMeetInMemory(draft, sidesOf(draft)))
    return std::nullopt;
  way.slices = *s.splitSlices, way.through = SplitThrough::workspace;
  return way;
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
    return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}};
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
  // Tiles of an operand whose m or n is contiguous are whole lines, of the short one also all of it, or half a line
  // where none reaches into another sector: 160 columns are five of those, and not the 192 of three lines.
  const bool shortLies = isContiguous(draft, !sides.longIsM), longLies = isContiguous(draft, sides.longIsM);
  const bool halves = shortLies && sides.longIsM && !hasSplitRows(draft, !sides.longIsM);
  int64_t step = sides.longIsM || longLies ? line : 8, least = step == line ? line : 32;
  constexpr int64_t most = 256, mostCtas = 8; // of a cluster
  int64_t shortUnit = sides.longIsM ? 8 : 64;
  std::vector<Stream> found;
  const int64_t mostSlices = cAllowsSlices(draft) ? 4 : 1;
  auto consider = [&](int64_t parts, int64_t tile, int64_t slices, Sharing sharing, SplitThrough through) {
    // Equal parts, of which each CTA that shares one loads a whole number of 8 rows; those beyond the edge cost
    // nothing.
    const int64_t part = llvm::divideCeil(sides.shortSide, parts);
    int64_t unit = std::max(shortUnit, 8 * sharing.ofShort);
    if (shortLies)
      unit = parts == 1 ? shortUnit : halves && part <= halfLine ? halfLine : line;
    int64_t shortTile = llvm::alignTo(part, unit);
    int64_t times = llvm::divideCeil(sides.shortSide, shortTile);
    if (times < parts || shortTile * tile > mostSums)
      return;
    if (times < sharing.ofLong || tile % (8 * sharing.ofLong) != 0 || slices * sharing.ctas() > mostCtas)
      return;
    // Each of four brings a quarter of the k of a stage, at least 32 of them.
    const bool quarters = shortLies && sharing.ofShort == 4 && shortTile < line;
    Stream way{sides.longIsM ? tile : shortTile, sides.longIsM ? shortTile : tile, 64, slices, ""};
    way.through = through;
    int64_t deepest = draft.shifts() ? mostDeepShifted : slices == 1 && times > 1 ? mostDeepShared : mostDeep;
    if (shortTile + tile <= deepest || quarters)
      way.k = 128;
    if (sides.depth < slices * way.k)
      return;
    // One warpgroup multiplies what another one shifts, eight boxes of whole 128 bytes at a time.
    if (draft.shifts() &&
        (tile % shiftedLines != 0 || (sides.longIsM && tile != shiftedLines) || (longLies && tile > longestShifted) ||
         sharing.ctas() != 1 || tile * shortTile > 128 * sumsBesideShifter))
      return;
    way.clusterM = sides.longIsM ? sharing.ofShort : sharing.ofLong;
    way.clusterN = sides.longIsM ? sharing.ofLong : sharing.ofShort;
    const auto [along, across] = clustersOf(sides, way);
    const int64_t clusters = along * across;
    if (through == SplitThrough::workspace) { // in one wave
      if (clusters * slices > draft.limits.sms || 2 * clusters * slices < draft.limits.sms)
        return;
      way.nanoseconds = timeOf(draft, sides, way).nanoseconds * doubtOfMemory;
      found.push_back(std::move(way));
      return;
    }
    // The card holds 15 clusters of eight: of more the rest would be a wave of its own.
    if (slices * sharing.ctas() == mostCtas && clusters > clustersAtATime(draft, mostCtas))
      return;
    way.nanoseconds = timeOf(draft, sides, way).nanoseconds;
    found.push_back(std::move(way));
  };
  const int64_t inMemory = mayMeetInMemory(draft, sides) ? mostInMemory : 1;
  const int64_t mostParts = llvm::divideCeil(sides.shortSide, halves ? halfLine : line);
  for (int64_t parts = 1; parts <= mostParts; ++parts)
    for (int64_t tile = least; tile <= most; tile += step) {
      for (int64_t slices = 1; slices <= mostSlices; ++slices)
        for (Sharing sharing : sharings(draft))
          consider(parts, tile, slices, sharing, SplitThrough::cluster);
      for (int64_t slices = 2; slices <= inMemory; ++slices)
        consider(parts, tile, slices, {1, 1}, SplitThrough::workspace);
    }
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
