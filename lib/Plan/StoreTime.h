/// What the planner's clock (Model.cpp) knows of how D leaves.
#pragma once
#include "Draft.h"

namespace gemmc::plan {

/// Clocks until a tile has left. Lines of C that warps bring themselves take more than what they write, and where lines
/// of D are odd, too, as much for one warpgroup as for all at once: of 26 products whose tile it changes it makes 4%
/// (one of 41 without C loses 1% by such a term, twice of it 4%; H200, 2026-11-26, docs/hopper-l2.md, *Odd lines of
/// C*).
double storeClocks(const Draft &draft, const Shape &shape);
/// What the clocks of a store are multiplied by: SMs that store for a larger part of the time are in each other's way.
double crowdedStore(const Draft &draft, double store, double main);
/// Clocks of a tile for parts of its lines of D that are less than 128 bytes and leave by themselves, which nothing
/// hides but, by half, ping-pong: so many for each row of a part, whatever k is. 8 columns count where they cut a
/// sector that rows of D start at. Where that is not known, 8 columns alone, and only where no rows of A and B start
/// inside sectors: half of what the store of 16 bits takes; D in f32, whose last piece is 32 bytes, was not measured
/// and counts alike. It was 3% of the tile until the 26th, too much for long main loops: over 93 races of large
/// products the choice was 1.0% behind the best, and is 0.7%; over 76 pairs of plans 1.1 and 0.5% (H200, 2026-11-26,
/// docs/hopper-shapes.md, *Seen on an H200*).
double looseClocks(const Draft &draft, const Shape &shape);
/// Clocks that tiles take longer to leave where their lines of D end inside sectors of the L2, which then come together
/// from two tiles (bytes a clock): those of the last wave, which no main loop hides; less where long ones have set CTAs
/// apart; and those before it that take longer than the next main loop. A fit (docs/hopper-shapes.md, *Mid products of
/// any size*), which has 744x10704x64 in 128x168 at 11.6 us, in 64x256 at 8.1, 1024x10704x8 at 18.7 and, in
/// 192x256, 12.3 (H100, 2026-11-25).
double halfSectorClocks(const Draft &draft, const Shape &shape, double waves, double main, double store);
/// Of a product of few k without C whose lines of D start inside sectors of the L2: it waits for D, and each sector
/// that two tiles, or two boxes of TMA, write a part of is several for the L2 (docs/hopper-l2.md, *Odd lines of D*).
bool waitsForSectors(const Draft &draft);
/// Clocks that such a product takes whose tiles take `clocks` by themselves: beside these an SM stores 15 bytes a
/// clock, and memory takes what is moved; what is loaded comes late. A fit to 14 tiles of each of 26 products of 700 to
/// 9000 rows and columns, k of 16 to 208, in all layouts: its choice is 2% slower than the best of them, that of before
/// 14% (H200, 2026-11-29).
double sectorClocks(const Draft &draft, const Shape &shape, double clocks, double waves);
/// Whether stores are known (StoreTime.cpp) and k is one of the fit, where three warpgroups were 2% better than they
/// are charged elsewhere.
bool fewStepsAreKnown(const Draft &draft);

} // namespace gemmc::plan
