// How long it takes to stream a product whose long operand's lines are shifted on their way (`repack: inside`), or
// those of the short one, or of both: the warpgroup that shifts is one more thing that a stage waits for.
#include "Streams.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace gemmc::plan {
namespace {
// Bytes a nanosecond, and nanoseconds: a fit to 804 cuts of 79 products of 1 to 256 rows, odd columns and k (H200,
// 2026-11-27; docs/hopper-l2.md, *Lines that start anywhere*). What is fastest of them by it takes 0.9% more than the
// least. Of that fit is `shiftRate`, too.
constexpr double memoryRate = 4300, portRate = 98.7, readRate = 113.6;
struct Shifting {
  double launchTime; ///< Without that of the copy in front, which the short operand needs.
  double rate, stepTime, turnTime;
};
constexpr Shifting longOne{2200, shiftRate, 195, 855};
/// Of the short operand, too: 78 cuts of 17 products with 1 to 48 rows, within 9% (2026-11-27, 19:48). No kernel is in
/// front. Of the short one alone, no part of that fit: 16 cuts of four products with up to 16 rows, 13% (20:37).
constexpr Shifting shortOne{960, 32.3, 283, 300};
/// Of a batch: 443 cuts of 133 batches, the long operand's lines within 12%, the short one's, too, or alone, within 10%
/// (2026-12-01, docs/hopper-l2.md, *Lines of a batch*). What is stored counts twice.
constexpr Shifting longOfBatch{2800, shiftRate, 195, 300}, shortOfBatch{1700, 42, 180, 900};
constexpr double storedTwice = 2;
/// A stage from its request to its release, which all but some have under way.
constexpr double stageTime = 804, stagesAtWork = 1.52;
/// Of slices of k: until they have met; elements that a CTA sends; several tiles of the short side read the same lines
/// at other times.
constexpr double meetingTime = 807, sumsRate = 5, scattered = 1.89;
/// All of a stage's times at once: more than the longest, less than their sum.
constexpr double order = 3.13;
constexpr int64_t bufferBytes = 16 * 1024; ///< Of a store, where there is one.

} // namespace

StagesOfShifted::StagesOfShifted(const Draft &draft) : open(draft) {
  Spec &s = open.spec();
  s.swizzle.value = Swizzle::b128;
  if (!s.store.given)
    s.store.value = StoreKind::direct;
  if (!s.loadC.given)
    s.loadC.value = StoreKind::direct;
}

int64_t StagesOfShifted::of(const Stream &way) const {
  Shape shape{Schedule::cooperative, way.m, way.n, way.k, way.m, way.n, way.k};
  shape.clusterK = way.slices, shape.stages = 1;
  const int64_t stage = stageBytes(open, shape), others = sharedBytes(open, shape) - stage + bufferBytes;
  return std::min(mostStages, std::max<int64_t>(0, open.limits.sharedPerBlock - others) / stage);
}

StreamTime shiftedTimeOf(const Draft &draft, const Sides &sides, const Stream &way) {
  if (way.stages < 2)
    return {std::numeric_limits<double>::infinity(), 0, "shared memory"};
  const double longTile = double(sides.longTile(way)), shortTile = double(sides.shortTile(way)), depth = double(way.k);
  const auto [alongLong, alongShort] = clustersOf(sides, way);
  const int64_t products = draft.plannedBatch(), clusters = alongLong * alongShort * products,
                atATime = clustersAtATime(draft, way.slices);
  const int64_t waves = llvm::divideCeil(clusters, atATime), stages = way.stages;
  const int64_t steps = llvm::divideCeil(llvm::divideCeil(sides.depth, way.k), way.slices);

  const bool several = isBatch(draft.spec()), ofShortOne = shiftsShort(draft, sides);
  const Shifting &shifting = several ? (ofShortOne ? shortOfBatch : longOfBatch) : ofShortOne ? shortOne : longOne;
  const double shifted = 2 * depth * double(draft.shiftedExtent(way.m, way.n));
  const double lines = 2 * longTile * depth, ofShort = 2 * depth * double(sides.shortSide) / double(alongShort);
  const double again = way.slices > 1 && alongShort > 1 ? scattered : 1;
  // Each product of a batch has matrices of its own, or all have the same one.
  auto matrices = [&](bool ofM) {
    const OperandSpec &operand = ofM ? draft.kernelA() : draft.kernelB();
    return several && operand.batchStride.value == Size{0} ? 1 / double(products) : 1;
  };
  const double ofMemory = lines * again / double(alongShort) * matrices(sides.longIsM) +
                          (several ? ofShort / double(alongLong) * matrices(!sides.longIsM) : 0);
  const double elements = double(sides.longSide) / double(alongLong) * double(sides.shortSide) / double(alongShort);
  const double stored = several ? storedTwice * elements * bytesOf(*draft.spec().d.type) / memoryRate : 0;
  // wgmma reads its columns once for each 64 rows.
  const double read = 2 * depth * double(way.m) / 64 * double(64 + way.n);
  struct Time {
    double nanoseconds;
    const char *what;
  };
  auto timesOf = [&](int64_t of) { // of a stage, in a wave of so many clusters
    const double part = double(of) / double(atATime);
    return std::array<Time, 6>{
        {{double(of * way.slices) * ofMemory / memoryRate, "memory"},
         {(lines + 16 * longTile + ofShort) / portRate / (2 - part), "the L2"},
         {shifted / shifting.rate, "the warpgroup that shifts"},
         {read / readRate, "shared memory"},
         {stages >= steps ? 0 : stageTime / (double(stages) - stagesAtWork), "stages on their way"},
         {shifting.stepTime, "the steps of k"}}};
  };
  auto wave = [&](int64_t of) {
    const auto times = timesOf(of);
    return double(steps) *
               atOnce(llvm::map_to_vector(times, [](const Time &each) { return each.nanoseconds; }), order) +
           double(of) * stored;
  };
  const int64_t rest = clusters % atATime;
  double all = shifting.launchTime + double(clusters / atATime) * wave(atATime) + (rest > 0 ? wave(rest) : 0);
  all += double(waves - 1) * shifting.turnTime;
  const double sent = longTile * shortTile * double(way.slices - 1) / double(way.slices);
  const double meeting = way.slices > 1 ? double(waves) * (meetingTime + sent / sumsRate) : 0;
  const auto times = timesOf(std::min(clusters, atATime));
  const Time longest =
      *llvm::max_element(times, [](const Time &x, const Time &y) { return x.nanoseconds < y.nanoseconds; });
  return {(all + meeting) * doubtOfTurned(draft), meeting, longest.what};
}
} // namespace gemmc::plan
