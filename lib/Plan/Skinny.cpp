// Products with one short side: they stream the long operand once and do little with it. What counts is that all SMs
// stream, each with much under way, and that the short operand, which every CTA reads again, does not fill the L2's
// port. The candidates cut the long side into tiles and k into slices; a few rates of an H200 choose among them.
#include "Streams.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t mostShort = 256, leastLong = 1024;
/// Where the other side is shorter than `leastLong`. 160 such products, no part of the fit of StreamTime.cpp, in 0.83
/// of the time that the clock of all products led to; six of more than 192 rows and columns in 1.03 (H100, 2026-11-25,
/// docs/hopper-shapes.md, *Few of both*).
constexpr int64_t mostShortOfFew = 192;
/// The least k. Of a product whose long side is 256 and more: 57 of k from 320 to 504 took 0.94 of the time, eleven
/// smaller ones 1.08 (H100 and H200, 2026-11-25). Of one of up to 64 beside 768 and more: 77 of k from 96 to 319 took
/// 0.92; 64 of 65 to 256 beside 768 1.01, 23 beside less 1.11 (H200, 2026-11-29, docs/hopper-shapes.md, *Few of k*).
int64_t leastDepth(int64_t shortSide, int64_t longSide) {
  return shortSide <= 64 && longSide >= 768 ? 96 : longSide >= 256 ? 320 : 512;
}
/// Where lines of the short operand are shifted, the least k; without a spec that says so, of so many rows or columns:
/// 28 such products (k of 81 to 299) take 0.77 of the time with copies, at most 1.02; eight of 33 to 63 rows 0.72 to
/// 1.12 (H100, 2026-11-27, docs/hopper-l2.md, *Lines that start anywhere*).
constexpr int64_t leastDepthOfShifted = 64, mostShortOfShallow = 32;
constexpr int64_t leastUpright = 64; ///< What fills wgmma's 64 rows.
/// A short side from which empty rows of wgmma cost less than lines of C and D that cross warps: 54 such products, 32
/// to 212 long, take 0.85 of the time the other way round, at most 1.13; nine shorter ones 1.02 (H200, 2026-11-26,
/// docs/hopper-shapes.md, *How a turned stream leaves*).
constexpr int64_t leastWithC = 32;
constexpr int64_t mostSums = 128 * 256; ///< Of a tile: what registers hold.
/// Slices in a cluster that are worth a look for any tile; more of them wait longer for each other than the estimate
/// says, but for those of a tile of few sums with more than two steps each: 2048x112x10240 21.0 us in four that meet in
/// memory, 24.0 in a cluster's six of 128x112; 80x1280x3072 6.2 in four and 5.4 in five of 80x64; 8x1024x768 2.2 and,
/// in six of one step, 2.3 (H100, 2026-11-25).
constexpr int64_t usualSlices = 4, mostSumsOfMany = 80 * 64, leastStepsOfMany = 2;
/// Rows of both tiles of a stage that is 128 deep, so that enough of them fit; where several CTAs stream the same rows.
constexpr int64_t mostDeep = 128, mostDeepShared = 112;
/// Beside so short a side larger ones of several waves are tried both ways where k is in whole lines, down to three
/// stages: 48x151936x3584 takes 262 us in 48x192, in stages of 128 256. In one wave that is between 2% faster and 4%
/// slower (H200, 2026-11-29, docs/hopper-shapes.md, *Rows side by side*).
constexpr int64_t mostBesideDeep = 64, mostDeepAlone = 256;
/// Where four CTAs share few rows of a contiguous short side, of which each brings a quarter of the k of a stage. Two
/// and three stages are too few: 29984x56x9016 TT in 256x56 212 us, 147 in stages of 64; 40x26336x992 NT 22.3, 16.3 of
/// 32 (H200, 2026-11-27, docs/hopper-shapes.md, *A short side that is contiguous*).
constexpr int64_t mostDeepInQuarters = 208;
constexpr int64_t rowsOfWarpgroup = 64; ///< Of a long side that is wgmma's m, where lines are shifted.
/// What slices that meet in memory must promise beside others.
constexpr double doubtOfMemory = 1.02;

/// Whether a short side would leave more than an eighth of wgmma's 64 rows empty: then it is the side of the columns.
bool wastesRows(int64_t length) {
  constexpr int64_t rows = 64;
  return length <= mostShort && 8 * length < 7 * int64_t(llvm::alignTo(length, rows));
}

} // namespace

bool isSkinny(const Draft &draft) {
  const Spec &s = draft.spec();
  if (*s.target != Target::sm_90a || bitsOf(*s.a.type) != 16)
    return false;
  const bool batched = isBatch(s) && (draft.way.batched || draft.shifts());
  if (s.m.value.dynamic() || s.n.value.dynamic() || (isBatch(s) && !batched))
    return false;
  const int64_t m = *s.m.value.fixed, n = *s.n.value.fixed;
  const bool shifted = draft.way.shallow || batched || (draft.shiftsA() && draft.shiftsB());
  const int64_t least = shifted ? leastDepthOfShifted : leastDepth(std::min(m, n), std::max(m, n));
  if (s.k.value.fixed.value_or(0) < least)
    return false;
  return isShort(m, n) || isShort(n, m) || (batched && std::min(m, n) <= mostShort);
}

/// The other way round (`Way::turned`) must promise more than estimates are wrong by where both are alike.
double doubtOfTurned(const Draft &draft) { return draft.way.turned ? 1.01 : 1; }

Way orShallow(const Spec &spec, Way way) {
  auto copied = [](const OperandSpec &operand) { return operand.repack.given && *operand.repack != Repack::inside; };
  if (spec.m.value.dynamic() || spec.n.value.dynamic() || isBatch(spec) || copied(spec.a) || copied(spec.b) ||
      std::min(*spec.m.value.fixed, *spec.n.value.fixed) > mostShortOfShallow)
    return way;
  Diags scratch = Diags::wordless();
  Draft asItLies = draftOf(spec, scratch, way);
  decideProblem(asItLies);
  if (scratch.hasErrors() || isSkinny(asItLies))
    return way;
  Way other = way;
  other.shallow = true;
  Draft draft = draftOf(spec, scratch, other);
  decideProblem(draft);
  const bool shifts = decideFamily(draft) && !scratch.hasErrors() && draft.shiftsB() && draft.kMajorB();
  return shifts && sidesOf(draft).longIsM && !streams(draft).empty() ? other : way;
}

const OperandSpec *longOperand(const Draft &draft) {
  if (!isSkinny(draft))
    return nullptr;
  return sidesOf(draft).longIsM ? &draft.kernelA() : &draft.kernelB();
}

bool isShort(int64_t length, int64_t other) {
  return std::min(length, other) >= 1 && length <= (other >= leastLong ? mostShort : mostShortOfFew);
}

bool shortSideDecides(const Draft &draft) {
  const Spec &s = draft.spec();
  bool other =
      (s.instruction.given && *s.instruction != Instruction::wgmma) || (s.copy.given && *s.copy != CopyKind::tma);
  if (other || asksForHalves(draft) || s.swapOperands.given || s.block.given || s.warp.given || !isSkinny(draft))
    return false;
  const int64_t m = *s.m.value.fixed, n = *s.n.value.fixed;
  // Of two short sides neither has to be: what is given may go with one way round alone.
  if (std::max(m, n) < leastLong && (s.cluster.given || s.store.given || s.stages.given))
    return false;
  return (wastesRows(m) && n >= leastUpright) || (wastesRows(n) && m >= leastUpright);
}

bool decideSkinnySwap(Draft &draft) {
  Spec &s = draft.spec();
  if (!shortSideDecides(draft))
    return false;
  // The kernel's m is wgmma's side of 64 rows.
  const bool swaps = wastesRows(*s.m.value.fixed) && *s.n.value.fixed >= leastUpright;
  const bool turns = swaps == (*s.d.layout == Order::row),
             readsC = s.beta.given && *s.beta != Scale{0.0}; // not decided yet
  if (draft.way.turned)
    s.swapOperands.decide(swaps ? Persistence::off : Persistence::on, "its tiles fit better");
  else if (turns && readsC && std::min(*s.m.value.fixed, *s.n.value.fixed) >= leastWithC)
    s.swapOperands.decide(swaps ? Persistence::off : Persistence::on,
                          "rows that are empty cost less than lines of C and D that cross warps");
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
  bool given = s.swapOperands.given || s.block.given || s.warp.given || s.cluster.given || draft.holdsA() ||
               s.store.given || s.loadC.given;
  bool known = s.beta.value == Scale{0.0} && bitsOf(*s.d.type) == 16;
  if (given || draft.way.turned || !known || !isSkinny(draft))
    return false;
  // Few rows or columns that start inside sectors fill one tile either way.
  const Sides sides = sidesOf(draft);
  return sides.shortSide > fewOfShortSide || !hasSplitRows(draft, !sides.longIsM);
}

namespace {
/// Whether everything that a spec says of the schedule goes with streaming.
bool mayStream(const Draft &draft) {
  const Spec &s = draft.spec();
  return draft.wgmma() && isSkinny(draft) && !asksForHalves(draft) &&
         (!s.schedule.given || *s.schedule == Schedule::cooperative) && *s.scheduler == Scheduler::fixed;
}

/// The cut of a spec that gives its block tile.
std::optional<Stream> givenStream(const Draft &draft) {
  const Spec &s = draft.spec();
  auto cluster = s.cluster.given ? *s.cluster : std::array<int64_t, 3>{1, 1, 1};
  bool sliced = s.splitSlices.given || s.splitThrough.given || (s.split.given && *s.split != SplitMode::none);
  if (cluster[0] * cluster[1] != 1 && !rowsStartInsideSectors(draft) && !rowsStraddleLines(draft))
    return std::nullopt;
  auto block = kernelView(draft, *s.block);
  cluster = kernelView(draft, cluster);
  Stream way{block[0], block[1], block[2], cluster[2], "as the spec says", cluster[0], cluster[1]};
  if (!sliced || (cluster[2] > 1 && draft.inCluster()))
    return way;
  const bool splits = s.split.given && *s.split == SplitMode::split_k && s.splitSlices.given && *s.splitSlices > 1;
  const bool known =
      (splits || draft.asksForSlices()) && !(s.splitThrough.given && *s.splitThrough == SplitThrough::cluster);
  if (!known || !streamMayMeetInMemory(draft, sidesOf(draft)))
    return std::nullopt;
  way.alongK = cluster[2], way.slices = *s.splitSlices, way.through = SplitThrough::workspace;
  return way;
}

std::string reasonOf(const Draft &draft, const Stream &way) {
  const Sides sides = sidesOf(draft);
  auto tiles = llvm::divideCeil(sides.longSide, sides.longTile(way));
  auto times = llvm::divideCeil(sides.shortSide, sides.shortTile(way));
  auto ctas = llvm::alignTo(tiles, sides.sharersOfShort(way)) * llvm::alignTo(times, sides.sharersOfLong(way)) *
              way.slices * draft.plannedBatch();
  const int64_t depth = sides.depth * 2 / draft.way.bytes; // in elements of the user's
  const std::string products = isBatch(draft.spec()) ? formatv("{0} of ", draft.plannedBatch()).str() : "";
  return formatv("{9}{0} x {1} are streamed{2}: {3} tile{4} of {5}{6} are {7} CTAs for {8} SMs", sides.longSide, depth,
                 times > 1 ? formatv(" {0} times", times).str() : "", tiles, tiles > 1 ? "s" : "", sides.longTile(way),
                 way.slices > 1 ? formatv(" in {0} slices of k", way.slices).str() : "", ctas, draft.limits.sms,
                 products);
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
  if (takesLines(draft, sidesOf(draft)))
    return {{1, 1}, {2, 1}, {4, 1}, {2, 2}, {4, 2}, {2, 4}};
  if (rowsStartInsideSectors(draft))
    return {{1, 1}, {2, 1}, {4, 1}};
  if (rowsStraddleLines(draft))
    return {{1, 1}, {4, 1}};
  return {{1, 1}};
}

/// Where rows reach into a second line and not into other sectors, four CTAs whose tile of the long side is narrow gain
/// by sharing the short one, of which each brings enough rows at a time: 160x7248x6800 in 160x64 42.5 us, in
/// fours 34.4, in 80x128 35.9, 96x128 in fours 41.0; 256x2048x9264 in 96x64 30.3 and 24.8, in 64x64 26.4 and 40.6
/// (H200, 2026-11-25).
bool gainsFromFours(const Draft &draft, int64_t longTile, int64_t shortTile, int64_t slices, Sharing sharing) {
  constexpr int64_t leastRows = 24;
  return sharing.ctas() == 1 || !rowsStraddleLines(draft) ||
         (slices == 1 && longTile == cacheLine && shortTile / sharing.ofShort >= leastRows);
}

/// More slices than a cluster has CTAs: as many as find room, and half of them.
llvm::SmallVector<int64_t, 2> manySlices(const Draft &draft, const Sides &sides, int64_t parts, int64_t tile,
                                         Sharing sharing) {
  const int64_t clusters = llvm::divideCeil(llvm::divideCeil(sides.longSide, tile), sharing.ofShort) *
                           llvm::divideCeil(parts, sharing.ofLong),
                room = std::min(mostInMemory, clustersAtATime(draft, sharing.ctas()) / clusters);
  llvm::SmallVector<int64_t, 2> found;
  for (int64_t slices : {room, room / 2})
    if (slices > mostSlices && mayShareSums(draft))
      found.push_back(slices);
  return found;
}
} // namespace

/// All cuts, in the order in which they are tried.
static std::vector<Stream> cutsOf(const Draft &draft) {
  const Spec &s = draft.spec();
  bool open = !s.block.given && !s.warp.given && !s.cluster.given && !s.split.given && !s.splitThrough.given &&
              !s.splitSlices.given && (!s.persistent.given || *s.persistent == Persistence::off);
  if (!open || !mayStream(draft))
    return {};
  const Sides sides = sidesOf(draft);
  // Tiles of an operand whose m or n is contiguous are whole lines, of the short one also all of it, or half a
  // line where none reaches into another sector: 160 columns are five of those, and not the 192 of three lines.
  const bool shortLies = isContiguous(draft, !sides.longIsM), longLies = isContiguous(draft, sides.longIsM);
  const bool halves = shortLies && sides.longIsM && !hasSplitRows(draft, !sides.longIsM);
  int64_t step = sides.longIsM || longLies ? cacheLine : 8, least = step == cacheLine ? cacheLine : 32;
  constexpr int64_t mostCtas = 8; // of a cluster
  int64_t most = 256, shortUnit = sides.longIsM ? 8 : 64;
  std::vector<Stream> found;
  const auto stages = draft.shifts() ? std::optional<StagesOfShifted>(draft) : std::nullopt;
  auto nanosecondsOf = [&](Stream way) {
    if (stages && way.stages == 0)
      way.stages = stages->of(way);
    return timeOf(draft, sides, way).nanoseconds;
  };
  const int64_t inCluster = cAllowsSlices(draft) ? mostSlices : 1;
  auto consider = [&](int64_t parts, int64_t tile, int64_t slices, Sharing sharing, SplitThrough through,
                      int64_t depth = 0, int64_t alongK = 1) {
    // Equal parts, of which each CTA that shares one loads a whole number of 8 rows; those beyond the edge cost
    // nothing.
    const int64_t part = llvm::divideCeil(sides.shortSide, parts);
    int64_t unit = std::max(shortUnit, 8 * sharing.ofShort);
    if (shortLies)
      unit = parts == 1 ? shortUnit : halves && part <= halfLine ? halfLine : cacheLine;
    int64_t shortTile = llvm::alignTo(part, unit);
    if (sides.longIsM)
      shortTile = draft.wgmmaColumns(shortTile);
    else if (draft.wgmmaColumns(tile) != tile)
      return;
    int64_t times = llvm::divideCeil(sides.shortSide, shortTile);
    const bool many = through == SplitThrough::cluster && slices > usualSlices;
    if (times < parts || shortTile * tile > (many ? mostSumsOfMany : mostSums))
      return;
    if (!gainsFromFours(draft, tile, shortTile, slices, sharing))
      return;
    const int64_t together = through == SplitThrough::cluster ? slices * sharing.ctas() : sharing.ctas();
    if (times < sharing.ofLong || tile % (8 * sharing.ofLong) != 0 || together > mostCtas)
      return;
    const bool quarters =
        shortLies && sharing.ofShort == 4 && shortTile < cacheLine && shortTile + tile <= mostDeepInQuarters;
    Stream way{sides.longIsM ? tile : shortTile, sides.longIsM ? shortTile : tile, 64, slices, ""};
    way.through = through, way.alongK = alongK, way.stages = s.stages.given ? *s.stages : 0;
    if (shortTile + tile <= (slices == 1 && times > 1 ? mostDeepShared : mostDeep) || quarters)
      way.k = 128;
    if (depth && !draft.shifts()) {
      const int64_t tiles = times * int64_t(llvm::divideCeil(sides.longSide, tile));
      const bool alike = way.k == depth || slices > 1 || shortTile + tile > mostDeepAlone;
      if (alike || tiles <= draft.limits.sms)
        return;
    }
    if (depth)
      way.k = depth;
    if (sides.depth < slices * way.k || (many && sides.depth <= leastStepsOfMany * slices * way.k))
      return;
    if (draft.shifts() && (sharing.ctas() != 1 || tile * shortTile > 128 * sumsBesideShifter(draft)))
      return;
    // Of a short operand 64 rows would be shifted, however few it has; what lies along it comes in whole 128 bytes.
    if (shiftsShort(draft, sides) && (!sides.longIsM || (shortLies && shortTile % cacheLine != 0)))
      return;
    way.clusterM = sides.longIsM ? sharing.ofShort : sharing.ofLong;
    way.clusterN = sides.longIsM ? sharing.ofLong : sharing.ofShort;
    if (draft.holdsA() && way.clusterN > 1) // lanes read what they share
      return;
    if (through == SplitThrough::workspace) {
      if (!isOneWaveInMemory(draft, sides, way))
        return;
      way.nanoseconds = nanosecondsOf(way) * doubtOfMemory;
      found.push_back(std::move(way));
      return;
    }
    // The card holds 15 clusters of eight: of more the rest would be a wave of its own.
    if (auto [along, across] = clustersOf(sides, way);
        slices * sharing.ctas() == mostCtas && along * across * draft.plannedBatch() > clustersAtATime(draft, mostCtas))
      return;
    way.nanoseconds = nanosecondsOf(way);
    found.push_back(std::move(way));
  };
  // The estimate knows how deep a stage is best where lines are shifted alone.
  llvm::SmallVector<int64_t, 2> depths{0};
  if (draft.shifts())
    depths = {64, 128};
  else if (isLined(draft) && sides.shortSide <= mostBesideDeep)
    depths = {0, 128};
  const int64_t inMemory = streamMayMeetInMemory(draft, sides) ? mostSlices : 1;
  const int64_t mostParts = llvm::divideCeil(sides.shortSide, halves ? halfLine : cacheLine);
  // One warpgroup multiplies what another one shifts, eight boxes of whole 128 bytes at a time.
  if (draft.shifts())
    most = sides.longIsM ? rowsOfWarpgroup : longLies ? longestShifted : most;
  for (int64_t parts = 1; parts <= mostParts; ++parts)
    for (int64_t tile = least; tile <= most; tile += step) {
      for (int64_t slices = 1; slices <= inCluster; ++slices)
        for (Sharing sharing : sharings(draft))
          for (int64_t depth : depths)
            consider(parts, tile, slices, sharing, SplitThrough::cluster, depth);
      for (Sharing sharing : inMemory > 1 ? sharings(draft) : std::vector<Sharing>{}) {
        for (int64_t slices = 2; slices <= inMemory; ++slices)
          consider(parts, tile, slices, sharing, SplitThrough::workspace);
        for (int64_t slices : manySlices(draft, sides, parts, tile, sharing))
          consider(parts, tile, slices, sharing, SplitThrough::workspace);
      }
      for (int64_t alongK : {4, 8})
        for (int64_t each : {2, 3, 4, 5, 7, 10, 15, 30})
          if (inMemory > 1)
            consider(parts, tile, alongK * each, {1, 1}, SplitThrough::workspace, 0, alongK);
    }
  return found;
}

/// Of two tiles that take as long the one with more columns comes first: wgmma reads less of it.
static bool isFaster(const Stream &x, const Stream &y) {
  return x.nanoseconds != y.nanoseconds ? x.nanoseconds < y.nanoseconds : x.n > y.n;
}

std::vector<Stream> streams(const Draft &draft) {
  std::vector<Stream> found = cutsOf(draft);
  llvm::stable_sort(found, isFaster);
  return found;
}

std::optional<Stream> fastestStream(const Draft &draft) {
  std::vector<Stream> found = cutsOf(draft);
  auto first = llvm::min_element(found, isFaster);
  return first == found.end() ? std::nullopt : std::optional(std::move(*first));
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
