/// A product with one short side: what its cuts (Skinny.cpp) and their time (StreamTime.cpp) both need.
#pragma once
#include "Draft.h"

namespace gemmc::plan {

constexpr int64_t cacheLine = 64, halfLine = 32; ///< Of the L2, in elements.
/// Of a contiguous short side whose rows start inside sectors: 15 products with up to 64 became 1.5% slower by lines
/// (`takesLines`), and the other way round up to 96 gain nothing (15 products, H200, 2026-11-26).
constexpr int64_t fewOfShortSide = 96;

struct Sides {
  int64_t shortSide, longSide, depth;
  bool longIsM;
  int64_t longTile(const Stream &way) const { return longIsM ? way.m : way.n; }
  int64_t shortTile(const Stream &way) const { return longIsM ? way.n : way.m; }
  /// CTAs of a cluster that share a tile of the short operand: they lie along the long side; and of the long one.
  int64_t sharersOfShort(const Stream &way) const { return longIsM ? way.clusterM : way.clusterN; }
  int64_t sharersOfLong(const Stream &way) const { return longIsM ? way.clusterN : way.clusterM; }
};
Sides sidesOf(const Draft &draft); ///< Of a product that isSkinny.
/// Whether lines of the short operand are shifted: alone, or with those of the long one.
inline bool shiftsShort(const Draft &draft, const Sides &sides) {
  return sides.longIsM ? draft.shiftsB() : draft.shiftsA();
}

/// Clusters along the long side, and along the short one.
std::pair<int64_t, int64_t> clustersOf(const Sides &sides, const Stream &way);

/// Lines of the L2 that 64 of k of a tile come in, on average: rows that reach into a second line are two
/// (StreamRows.cpp).
double linesOfTile(const Draft &draft, bool ofM, int64_t tile);
/// Nanoseconds that one SM takes at least for the copies of 64 of k of a tile.
double copiesOfTile(const Draft &draft, bool ofM, int64_t tile);
/// Whether an SM's port takes lines and not bytes: where the short side is contiguous and its rows start inside
/// sectors. Where those of the long one do, too, the rates of such rows say enough.
bool takesLines(const Draft &draft, const Sides &sides);
/// Whether k is contiguous in both operands, and all rows start at lines.
bool isLined(const Draft &draft);

/// Slices of k leave C to whoever adds them: TMA brings it to whole tiles alone.
bool cAllowsSlices(const Draft &draft);
/// Whether slices of k may meet in memory: those of deep products. Nobody shares tiles then.
bool streamMayMeetInMemory(const Draft &draft, const Sides &sides);
/// Whether a cut in such slices is what was measured: at most eight of them, in one wave that keeps half of the SMs
/// busy, or more where tiles are too few for that.
bool isOneWaveInMemory(const Draft &draft, const Sides &sides, const Stream &way);

/// From the launch to the end of a cut, and what sets its pace.
StreamTime timeOf(const Draft &draft, const Sides &sides, const Stream &way);
/// The same where lines are shifted on their way, in stages that are known (ShiftTime.cpp).
StreamTime shiftedTimeOf(const Draft &draft, const Sides &sides, const Stream &way);
/// Stages of lines that are shifted that fit beside a store which nobody has decided yet: what a spec leaves open
/// counts as open, whatever an earlier plan of it took.
class StagesOfShifted {
public:
  explicit StagesOfShifted(const Draft &draft);
  int64_t of(const Stream &way) const;

private:
  Draft open;
};

} // namespace gemmc::plan
