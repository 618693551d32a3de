// How long it takes to stream a product with one short side: what goes on at once, wave by wave, at a few rates of an
// H200 that races have given.
#include "Streams.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {
namespace {
// Bytes and multiply-adds a nanosecond, and nanoseconds: a fit to 404 races of 2 to 19 cuts each, of products with a
// side of 1 to 256, of all layouts, at pitches of 16 bytes and more (H200, 2026-11-23; docs/hopper-shapes.md, *Streams,
// wave by wave*). Its choice is 1.4% slower than the best of each on average. It is a fit: the ports of an SM take 127
// bytes a nanosecond at most.
constexpr double memoryRate = 4200, productsRate = 3179, sharedRate = 283, storeRate = 6042;
/// Lines that come to an SM; slices of k ask for others at the same time, which the L2 does not send once for all.
constexpr double portRate = 157, slicedPortRate = 127;
constexpr double splitRate = 6614; ///< Rows that start inside sectors of the L2, k contiguous.
/// Rows that reach into a second line, k contiguous: by one or three sectors, and by two. Of 308 cuts of 126 products,
/// no part of that fit, what is fastest by it takes 1.5% more than the least, and 3.8% without (H200, 2026-11-25;
/// docs/hopper-shapes.md, *Rows across two lines*).
constexpr double unevenRate = 12500, evenRate = 16000;
/// What slices in clusters take more of the memory then. It was a share of everything, the larger the shorter k, which
/// kept short products whole: of 48 of k 416 to 4720 what was fastest by that took 6.6% more than the least of 31 cuts,
/// by this 2.2% (H200, 2026-11-29; *Slices of short rows* there).
constexpr double slicedAcrossLines = 1.06;
// `takesLines`: what is fastest of 549 cuts of 143 products, no part of that fit, takes 1.5% more than the least, and
// 7.6% without (H200, 2026-11-25; docs/hopper-shapes.md, *Line by line*).
constexpr double againRate = 8000;   ///< The long operand, which clusters of sharers ask for again at other times.
constexpr double receivedLine = 0.5; ///< Of a line that another CTA asks for.
constexpr double sharersMeet = 400;  ///< Of each slice beyond one, where CTAs share tiles, too.
constexpr double nobodyShares = 1.08;
// What CTAs that share tiles of whole products begin and end later, but those that share a contiguous short side of few
// rows inside sectors, of which less comes to each. With it and the rates of StreamRows.cpp what is fastest of 3051
// cuts of 261 products at pitches of 16 bytes and more, many of them cuts that nobody would have tried, takes 2.0% more
// than the least, and 5.3% with the rates of before; where all rows start at lines nothing changes (H200, 2026-11-26,
// docs/hopper-shapes.md, *Streams, once more*).
constexpr double togetherTime = 700;
constexpr double slicesTogetherTime = 150; ///< The same of slices (H200, 2026-11-29; *Slices of short rows*).
constexpr double launchTime = 2164;        ///< Until the first bytes come, and from the last ones to the end.
constexpr double stepTime = 41;            ///< Of a stage, at least.
constexpr double turnTime = 160;           ///< From a tile of a CTA to its next.
constexpr double sumsRate = 21.4;          ///< Of slices of k: what a CTA sends.
/// Slices of two and more tiles of the short side read the same lines at other times.
constexpr double scatteredTwo = 1.43, scatteredMore = 2.15;
/// Four of them more so, the longer they run apart: what they were estimated to take fell short by 10% where k is 8192,
/// by 28 where it is 32768 (seven products of 200 and 256 rows; H200, 2026-11-25).
constexpr double apartFrom = 4096;
// Slices that meet in memory, whose neighbours are tiles of one slice: a fit to 404 cuts of 36 products (H200,
// 2026-11-25, docs/hopper-l2.md, *Slices that meet in memory*): what is fastest by it takes 0.9% more than the least.
constexpr double inMemoryPortRate = 130, scatteredInMemory = 1.1;
/// Until all are counted; bytes of sums that each writes, and that each owner of a share reads (H200, 2026-12-01,
/// docs/hopper-l2.md, *Slices that share out the sum*).
constexpr double countedTime = 1150, sumsWritten = 34, sumsRead = 66;
constexpr double countedAlone = 400, partsRate = 50; ///< Where the last one adds all parts.
// Where they have met in clusters before: until all are counted, more for each CTA of a cluster. What is fastest by it
// of 39 products in 5 to 24 cuts takes 3.4% more than the least (H200, 2026-11-30, docs/hopper-shapes.md, *Slices that
// meet twice*).
constexpr double countedBehindClusters = 500, countedOfCluster = 60;
constexpr double smallShare = 8192, smallSharesRate = 200; ///< Bytes, of which all parts come at a time.
// What k in whole lines tells (H200, 2026-11-29; docs/hopper-shapes.md, *Large weights*, *Rows side by side*). Of 141
// products in 8 to 25 cuts each what is fastest by all of this takes 0.7% more than the least, and 1.5% by `twoTiles`
// and what stood in the place of the rest.
constexpr int64_t fewBeside = 64; ///< Of the short side: where one cause or both show.
/// What memory takes more for each row beyond 128 that a CTA goes through side by side, a line of each at a time: all
/// CTAs together go through 132 times as many, each in another place of it. Stages of 128 take two lines at a time.
/// Beside few rows, or where tiles of 128 rows are more than one wave.
constexpr double sideBySide = 0.000125;
constexpr int64_t usualSideBySide = 128;
/// Bytes a nanosecond that come to a GPC, beside few rows. The tiles of a last wave lie on the first GPCs:
/// 16x51200x5120 takes 139 us in 200 tiles of 256 rows, and 128 where the last 68 are spread over all.
constexpr double gpcRate = 848;
/// What slices take more beside more than 128 rows, of k of 16384 and more; from 8192 on a part of it.
constexpr double deepSlices = 0.04, deepFrom = 8192;
constexpr int64_t mostBesideSlices = 128;
/// What two tiles of the short side take less, of twice this k and more; from it on a part of that. Narrower tiles of
/// the long side do not. Of so many rows of both tiles five stages fit; 160x28672x8192 in 80x256, of which four do,
/// takes 157 us, in 160x128 143. The second pair beside up to 160 rows where the product `isWide`: of 148 such products
/// what is fastest by this, by `emptyRow` and by `oddBesideWide` takes 0.6% more than the least, and 1.6% before
/// (docs/hopper-shapes.md, *Wide weights*).
constexpr double twoTiles = 0.025, longRows = 4096, twoBesideWide = 0.035, longOfWide = 3000;
constexpr int64_t leastOfLong = 112, mostOfBoth = 320, mostOfTwo = 160;
/// What a row that is not there takes of the time of one that is, where the product `isWide` and has up to 96:
/// 72x28672x4096 takes 63.4 us in 72x128 and 64.2 in 128x128, 72x57344x8192 238 and 251; but 144x57344x8192 293 in
/// 144x128 and 336 in 192x128.
constexpr double emptyRow = 0.55;
constexpr int64_t mostBesideEmpty = 96;
/// How much faster lines come to an SM while all others are idle; in proportion while some are.
constexpr double roomOfFew = 0.27;
/// The last 16 bytes of a line of D leave by themselves. The second where it `isWide`.
constexpr double oddEighths = 1.027, oddBesideWide = 1.02;
/// Tiles of half a line of a contiguous short side, for each one beyond two: of six products three in five such tiles
/// were 5 to 10% slower than a cut that the estimate had 1 to 3% behind (H200, 2026-11-24; docs/hopper-shapes.md, *A
/// short side that is contiguous*).
constexpr double furtherHalf = 0.012;
constexpr double clockOfHeld = 1.755; ///< Clocks a nanosecond, as those of `leastOfHeld` were found.
/// How long a step takes CTAs that share rows of a contiguous short side at least, with what each k adds.
constexpr double sharedStep = 67, sharedStepK = 0.71;

/// What all CTAs together ask the L2 for of one operand, in rows that reach into a second line.
double straddledNanoseconds(const Draft &draft, bool ofM, double bytes) {
  const int64_t step = rowStep(draft, ofM ? draft.kernelA() : draft.kernelB());
  if (isContiguous(draft, ofM) || step < sectorBytes || step == lineBytes)
    return 0;
  return bytes / (step == lineBytes / 2 ? evenRate : unevenRate);
}

/// Elements of both tiles, for each k, that an SM's port is busy with. Of the short operand the rows that there are
/// come.
double elementsOnPort(const Draft &draft, const Sides &sides, const Stream &way) {
  const int64_t longTile = sides.longTile(way), shortTile = sides.shortTile(way);
  const double ofShort = double(sides.shortSide) / double(llvm::divideCeil(sides.shortSide, shortTile));
  if (!takesLines(draft, sides))
    return double(longTile) + ofShort;
  const double own = 1 / double(sides.sharersOfShort(way)), lines = linesOfTile(draft, !sides.longIsM, shortTile);
  return linesOfTile(draft, sides.longIsM, longTile) + ofShort +
         std::max(0.0, lines - ofShort) * (own + receivedLine * (1 - own));
}

/// Whether k is in whole lines, the short side is not so short, and tiles of the usual rows are more than one wave.
bool isWide(const Draft &draft, const Sides &sides) {
  return isLined(draft) && sides.shortSide > fewBeside && sides.longSide > draft.limits.sms * usualSideBySide;
}

/// Rows of a tile of the short side, those that are not there by what they take.
double rowsMultiplied(const Sides &sides, int64_t shortTile, bool wide) {
  const double there = double(sides.shortSide) / double(llvm::divideCeil(sides.shortSide, shortTile));
  return there + (double(shortTile) - there) * (wide && sides.shortSide <= mostBesideEmpty ? emptyRow : 1);
}

/// What two tiles of the short side take of what they were thought to.
double partOfTwoTiles(const Sides &sides, int64_t longTile, int64_t shortTile, bool wide) {
  const bool two = llvm::divideCeil(sides.shortSide, shortTile) == 2;
  if (!two || longTile < leastOfLong || longTile + shortTile > mostOfBoth)
    return 1;
  const bool more = wide && sides.shortSide <= mostOfTwo;
  const double doublings = std::log2(double(sides.depth) / (more ? longOfWide : longRows));
  return 1 - (more ? twoBesideWide : twoTiles) * std::clamp(doublings, 0.0, 1.0);
}

int64_t clustersAlong(int64_t extent, int64_t tile, int64_t sharers) {
  return int64_t(llvm::divideCeil(llvm::divideCeil(extent, tile), sharers));
}
} // namespace

bool takesLines(const Draft &draft, const Sides &sides) {
  return sides.shortSide > fewOfShortSide && hasSplitRows(draft, !sides.longIsM) &&
         !rowsStartInsideSectors(draft, *longOperand(draft));
}

bool isLined(const Draft &draft) { return draft.kMajorA() && draft.kMajorB() && !rowsStartInsideLines(draft); }

std::pair<int64_t, int64_t> clustersOf(const Sides &sides, const Stream &way) {
  return {clustersAlong(sides.longSide, sides.longTile(way), sides.sharersOfShort(way)),
          clustersAlong(sides.shortSide, sides.shortTile(way), sides.sharersOfLong(way))};
}

Sides sidesOf(const Draft &draft) {
  int64_t m = *draft.extentM(), n = *draft.extentN();
  return {std::min(m, n), std::max(m, n), *draft.extentK(), m > n};
}

/// Wave by wave, because the tiles of a last one that is not full have the memory to themselves, and no more than an SM
/// can take of it.
StreamTime timeOf(const Draft &draft, const Sides &sides, const Stream &way) {
  if (draft.shifts())
    return shiftedTimeOf(draft, sides, way);
  auto count = [](int64_t extent, int64_t tile) { return int64_t(llvm::divideCeil(extent, tile)); };
  const int64_t longTile = sides.longTile(way), shortTile = sides.shortTile(way), share = way.clusterM * way.clusterN;
  const int64_t shortTiles = count(sides.shortSide, shortTile);
  const auto [alongLong, alongShort] = clustersOf(sides, way);
  const int64_t clusters = alongLong * alongShort;
  const bool inMemory = way.through == SplitThrough::workspace;
  const int64_t together =
      std::max<int64_t>(1, clustersAtATime(draft, way.inCluster() * share) / std::max<int64_t>(1, way.inMemory()));
  const int64_t waves = count(clusters, together);

  // What one CTA does for its part of a tile.
  const double steps = double(count(count(sides.depth, way.k), way.slices)), depth = steps * double(way.k);
  const bool byLine = takesLines(draft, sides);
  const double port = 2 * depth * elementsOnPort(draft, sides, way) /
                      (inMemory         ? inMemoryPortRate
                       : way.slices > 1 ? slicedPortRate
                                        : portRate);
  const bool lined = isLined(draft), wide = isWide(draft, sides);
  const double products = depth * double(longTile) * rowsMultiplied(sides, shortTile, wide) / productsRate;
  // Shared memory's port: what the tensor cores read, 64 rows at a time, and what TMA writes.
  const double read = double(way.m) / 64 * double(64 + way.n), written = double(way.m + way.n);
  const double shared = 2 * depth * (portRead * read + portWritten * written) / sharedRate;
  const bool sharesRows = share > 1 && isContiguous(draft, !sides.longIsM);
  double step = sharesRows ? std::max(stepTime, sharedStep + sharedStepK * double(way.k)) : stepTime;
  if (way.alongK > 1) {
    const double copies = copiesOfTile(draft, sides.longIsM, longTile) + copiesOfTile(draft, !sides.longIsM, shortTile);
    step = std::max(step, copies * double(way.k) / 64);
  }
  if (draft.holdsA()) // by warpgroups of 64 rows, or by two
    step = std::max(step, leastOfHeld(draft, way.k, way.m > 192 ? way.m / 2 : 64) / clockOfHeld);

  // What all of them do together.
  const bool scatters = way.slices > 1 && shortTiles > 1 && !rowsSplitSectors(draft);
  const double scattered = !scatters         ? 1
                           : inMemory        ? scatteredInMemory
                           : shortTiles == 2 ? scatteredTwo
                                             : scatteredMore;
  const double across = !inMemory && way.slices > 1 && rowsStraddleLines(draft) ? slicedAcrossLines : 1;
  const double rowsAtOnce = double(longTile * cacheLine) / double(way.k);
  const bool few = lined && sides.shortSide <= fewBeside;
  const double apart = few || wide ? sideBySide * (rowsAtOnce - usualSideBySide) : 0;
  const double memory =
      2 * double(sides.longSide) * double(sides.depth) / memoryRate * scattered * across * (1 + apart);
  const double ofLong = 2 * double(sides.longSide) * double(sides.depth) * double(alongShort);
  const double ofShort = 2 * double(sides.shortSide) * double(sides.depth) * double(alongLong);
  const double split =
      straddledNanoseconds(draft, sides.longIsM, ofLong) + straddledNanoseconds(draft, !sides.longIsM, ofShort) +
      splitBytes(draft, sides.longIsM ? ofLong : ofShort, sides.longIsM ? ofShort : ofLong) / splitRate;
  const double again = byLine && share > 1 && shortTiles > 1 ? ofLong / againRate : 0;
  const double rows = double(alongLong) * rowsNanoseconds(draft, !sides.longIsM, shortTile) +
                      double(alongShort) * rowsNanoseconds(draft, sides.longIsM, longTile);

  const bool packed = way.slices == 1 && share == 1 && clusters > together && sides.shortSide <= fewBeside;
  auto wave = [&](int64_t of) {
    const double part = double(of) / double(clusters), idle = 1 - double(of) / double(together);
    const double gpc = packed && of < together ? 2 * depth * double(longTile * std::min(of, ctasOfGpc)) / gpcRate : 0;
    return atOnce<4>({memory * part, again * part, split * part, rows * part, port / (1 + roomOfFew * idle), products,
                      shared, steps * step, gpc});
  };
  const int64_t rest = clusters % together;
  double all = launchTime + double(clusters / together) * wave(together) + (rest > 0 ? wave(rest) : 0);
  const double sums = 4 * double(longTile * shortTile);
  double meeting = meetingNanoseconds(way.inCluster(), longTile * shortTile);
  if (way.alongK > 1) {
    const double share = sums / double(way.alongK);
    meeting += countedBehindClusters + double(way.alongK) * countedOfCluster +
               share * double(way.inMemory()) / (share <= smallShare ? smallSharesRate : partsRate);
  } else if (inMemory && !mayShareSums(draft)) {
    meeting += countedAlone + sums * double(way.slices) / partsRate;
  } else if (inMemory) {
    const double owners = double(sharesInMemory(way.n, way.slices).owners);
    meeting += countedTime + sums / sumsWritten + sums * double(way.slices) / owners / sumsRead;
  }
  meeting *= double(waves);
  all += meeting;
  all += double(waves - 1) * turnTime;
  // Only the last tile of each CTA is stored when nothing streams.
  all += 2 * double(sides.longSide) * double(sides.shortSide) / double(waves) / storeRate;
  if (!sides.longIsM && longTile % 16 != 0)
    all *= wide ? oddBesideWide : oddEighths;
  // Five and more run apart where nothing scatters, too, from twice that k on: of 28 cuts in eight what they take fell
  // short by 10 to 20% where k is 16384 and 32768 (H100, 2026-11-25, docs/hopper-shapes.md, *Few of both*).
  if (!inMemory && way.slices >= (scatters ? 4 : 5))
    all *= runApart(sides.depth, scatters ? apartFrom : 2 * apartFrom);
  if (lined && way.slices == 1)
    all *= partOfTwoTiles(sides, longTile, shortTile, wide);
  if (lined && way.slices > 1 && sides.shortSide > mostBesideSlices)
    all *= 1 + deepSlices * std::clamp(std::log2(double(sides.depth) / deepFrom), 0.0, 1.0);
  const bool fewInside = sides.shortSide <= fewOfShortSide && hasSplitRows(draft, !sides.longIsM);
  if (share > 1 && way.slices == 1 && !fewInside)
    all += togetherTime;
  if (share > 1 && way.slices > 1 && !inMemory)
    all += slicesTogetherTime;
  if (byLine && share > 1 && !inMemory)
    all += sharersMeet * double(way.slices - 1);
  if (byLine && share == 1)
    all *= nobodyShares;
  if (shortTile == halfLine && shortTiles > 2 && isContiguous(draft, !sides.longIsM))
    all *= 1 + furtherHalf * double(shortTiles - 2);

  const double part = std::min(1.0, double(together) / double(clusters)); // of a full wave
  const std::pair<double, const char *> longest =
      std::max({std::pair(memory * part, "memory"),
                std::pair(std::max({split * part, again * part, rows * part, port}), "the L2"),
                std::pair(products, "tensor cores"), std::pair(shared, "shared memory"),
                std::pair(steps * step, "the steps of k")},
               [](const auto &x, const auto &y) { return x.first < y.first; });
  return {all * doubtOfTurned(draft), meeting, longest.second};
}

double meetingNanoseconds(int64_t slices, int64_t elements) {
  if (slices == 1)
    return 0;
  return 4.0 * double(elements) * double(slices - 1) / double(slices) / sumsRate;
}

bool cAllowsSlices(const Draft &draft) {
  const Spec &s = draft.spec();
  bool storedByTma = s.store.given && *s.store == StoreKind::tma,
       broughtByTma = s.loadC.given && *s.loadC == StoreKind::tma;
  return s.beta.value == Scale{0.0} || !(storedByTma || broughtByTma);
}

bool streamMayMeetInMemory(const Draft &draft, const Sides &sides) {
  const Spec &s = draft.spec();
  const bool staged = (s.store.given && *s.store != StoreKind::tma) || endsRowsInside16Bytes(draft);
  return sides.depth >= deepInMemory && cAllowsSlices(draft) && !staged && !draft.shifts();
}

bool isOneWaveInMemory(const Draft &draft, const Sides &sides, const Stream &way) {
  const auto [alongLong, alongShort] = clustersOf(sides, way);
  const int64_t clusters = alongLong * alongShort, share = way.clusterM * way.clusterN;
  if (way.alongK > 1)
    return 2 * clusters <= draft.limits.sms / mostSlices &&
           clusters * way.inMemory() <= clustersAtATime(draft, way.alongK * share);
  return clusters * way.slices <= clustersAtATime(draft, share) &&
         2 * clusters * way.slices * share >= draft.limits.sms &&
         (way.slices <= mostSlices || sides.depth >= way.slices * leastOfManySlices);
}

std::optional<StreamTime> streamTime(const Draft &draft) {
  const Spec &s = draft.spec();
  if (!draft.wgmma() || !isSkinny(draft) || *s.schedule != Schedule::cooperative)
    return std::nullopt;
  if (*s.split == SplitMode::stream_k)
    return std::nullopt;
  const auto block = kernelView(draft, *s.block), cluster = kernelView(draft, *s.cluster);
  Stream way{block[0], block[1], block[2], cluster[2], "", cluster[0], cluster[1]};
  way.stages = *s.stages;
  const Sides sides = sidesOf(draft);
  if (draft.slicesInMemory() > 1) {
    way.alongK = way.slices, way.slices *= draft.slicesInMemory(), way.through = SplitThrough::workspace;
    if (!streamMayMeetInMemory(draft, sides) || !isOneWaveInMemory(draft, sides, way))
      return std::nullopt;
  }
  return timeOf(draft, sides, way);
}

} // namespace gemmc::plan
