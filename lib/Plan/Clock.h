/// The planner's clock (Model.cpp): what it asks of a draft, and the parts that a tile pays for each k (MainLoop.cpp)
/// and once (StoreTime.cpp).
#pragma once
#include "Draft.h"

namespace gemmc::plan {

/// How lines come from the L2 where m or n is contiguous in an operand, by one of two fits (Premises.cpp).
struct Fit {
  double sent, sentTogether; ///< Bytes of a clock, once for a cluster; the second to clusters that are one wave.
  double received;           ///< To each SM; where k is contiguous in both operands, too.
  bool requests;             ///< Whether rows that start inside sectors also count as requests (`requestClocks`).
  double pairs, inARow;      ///< What two CTAs, and four in a row, that share tiles wait for each other.
};

struct Rates {
  double products;    ///< Multiply-adds an SM does in a clock.
  double sharedBytes; ///< From shared memory to the tensor cores.
  double l2Bytes;     ///< From the L2 to one SM while all of them read.
};
double productsOfDoubles(const Draft &draft); ///< Multiply-adds of f64.

/// What most races were of: wgmma of 16 bits that reads shared memory, sums in f32, D of 16 bits without C, no stream.
bool isPlain(const Draft &draft);
/// Products for which it is known what stores of D cost (`crowdedStore`, `looseClocks`).
bool storesAreKnown(const Draft &draft);
/// Of a product of few k without C whose lines of D start inside sectors of the L2: it waits for D, and each sector
/// that two tiles, or two boxes of TMA, write a part of is several for the L2 (docs/hopper-l2.md, *Odd lines of D*).
bool waitsForSectors(const Draft &draft);

/// What holds for all shapes of a draft whose problem, family, split and epilogue are decided: asked once, and not for
/// each of thousands of shapes.
struct Premises {
  explicit Premises(const Draft &draft);

  /// The kernel's A or B, as it is read.
  struct Operand {
    bool kMajor;
    int64_t step;       ///< `rowStep`.
    bool insideSectors; ///< Rows start inside sectors of the L2.

    bool splitsSectors() const { return kMajor && insideSectors; }
  };

  const Draft &draft;
  int64_t m, n, k, batch; ///< What is planned for, as the kernel sees it.
  bool wgmma, streamed, skinny;
  unsigned inputBits;
  Operand a, b;
  bool holdsA, shifts, promotes, multipliesDoubles, measuredTiles;
  int64_t slicesInMemory;
  Rates rates;
  bool atPowerLimit;     ///< The power limit sets the SMs' clock.
  bool energyIsKnown;    ///< It was measured what the energy of such a product does to that.
  bool sharesSums;       ///< Slices in memory that all run at a time: each adds a share (`mayShareSums`).
  bool storesAreKnown;   ///< As above.
  bool fewStepsAreKnown; ///< ... and k is one of the fit, where three warpgroups were 2% better than they are charged
                         ///< elsewhere.
  bool waitsForSectors;
  bool keepsTilesTogether; ///< CTAs take tiles from a counter.
  bool collectsSectors;    ///< Warps of mma store lines of a tile whole.
  bool mayOverlapStores;   ///< Some shape may store half a tile while the other half multiplies (`storeOverlap`).
  bool storesAlongN, writesOddLines;
  bool sectorsOfD, linesOfD; ///< Rows of D start at sectors, at lines of the L2.
  double doubt;              ///< `doubtOf`.
  const Fit &fit;            ///< Of the two the one that holds.

  bool alongK() const { return a.kMajor && b.kMajor; } ///< In both operands k is contiguous.
  bool insideSectors() const { return a.insideSectors || b.insideSectors; }
  /// Slices as this clock knows them; streams have a model of their own.
  int64_t slicesOf(const Shape &shape) const { return skinny ? 1 : shape.clusterK; }
};
Estimate estimate(const Premises &on, const Shape &shape);

int64_t residentCtas(const Premises &on, const Shape &shape); ///< That one SM holds at a time.

struct ClocksOfMma {
  double main, around; ///< Main loops, and the launch with what slices of k take to meet.
};
/// Of mma of f64 and of measured tiles (MmaTime.cpp), of which there are `tiles`.
ClocksOfMma clocksOfDoubles(const Premises &on, const Shape &shape, double tiles);
ClocksOfMma clocksOfMeasuredTiles(const Premises &on, const Shape &shape, double tiles);

/// Clocks that the multiplication of one k column of a block tile keeps the SM busy, in one of `waves`, of which one
/// alone keeps a part of the SMs busy, `filled`.
double columnClocks(const Premises &on, const Shape &shape, double waves, double filled);

/// A bound of it, whatever the warp tile and the stages are.
double leastColumnClocks(const Premises &on, const Shape &shape, double waves, double filled);

/// Clocks until a tile has left. Lines of C that warps bring themselves take more than what they write, and where lines
/// of D are odd, too, as much for one warpgroup as for all at once: of 26 products whose tile it changes it makes 4%
/// (one of 41 without C loses 1% by such a term, twice of it 4%; H200, 2026-11-26, docs/hopper-l2.md, *Odd lines of
/// C*).
double storeClocks(const Premises &on, const Shape &shape);
double leastStoreClocks(const Premises &on, const Shape &shape); ///< A bound of it, whatever the warp tile is.
/// What the clocks of a store are multiplied by: SMs that store for a larger part of the time are in each other's way.
double crowdedStore(const Premises &on, double store, double main);
/// Clocks of a tile for parts of its lines of D that are less than 128 bytes and leave by themselves, which nothing
/// hides but, by half, ping-pong: so many for each row of a part, whatever k is. 8 columns count where they cut a
/// sector that rows of D start at. Where that is not known, 8 columns alone, and only where no rows of A and B start
/// inside sectors: half of what the store of 16 bits takes; D in f32, whose last piece is 32 bytes, was not measured
/// and counts alike. It was 3% of the tile until the 26th, too much for long main loops: over 93 races of large
/// products the choice was 1.0% behind the best, and is 0.7%; over 76 pairs of plans 1.1 and 0.5% (H200, 2026-11-26,
/// docs/hopper-shapes.md, *Seen on an H200*).
double looseClocks(const Premises &on, const Shape &shape);
/// Clocks that tiles take longer to leave where their lines of D end inside sectors of the L2, which then come together
/// from two tiles (bytes a clock): those of the last wave, which no main loop hides; less where long ones have set CTAs
/// apart; and those before it that take longer than the next main loop. A fit (docs/hopper-shapes.md, *Mid products of
/// any size*), which has 744x10704x64 in 128x168 at 11.6 us, in 64x256 at 8.1, 1024x10704x8 at 18.7 and, in
/// 192x256, 12.3 (H100, 2026-11-25).
double halfSectorClocks(const Premises &on, const Shape &shape, double waves, double main, double store);
/// Clocks that a product takes that waits for sectors and whose tiles take `clocks` by themselves: beside these an SM
/// stores 15 bytes a clock, and memory takes what is moved; what is loaded comes late. A fit to 14 tiles of each of 26
/// products of 700 to 9000 rows and columns, k of 16 to 208, in all layouts: its choice is 2% slower than the best of
/// them, that of before 14% (H200, 2026-11-29).
double sectorClocks(const Premises &on, const Shape &shape, double clocks, double waves);
/// A bound of it, whatever the warp tile and the stages are.
double leastSectorClocks(const Premises &on, const Shape &shape, double clocks, double waves);
/// Clocks of a product whose D the L2 does not hold and whose tiles, which take `clocks` by themselves, come from a
/// counter: beside these memory takes what is moved, an SM's port its tiles, and the L2 what is asked of it and all of
/// D. Sectors, or boxes, that two tiles share count again, and tiles of more than 32 KiB are stored in bursts. A fit to
/// 1227 kernels of 43 such products of f16, bf16, tf32 and e4m3, 7% off; its choice is 1.9% behind the best of 16 to 46
/// (2.5% over products left out), that of before 5.5% (H200, 2026-11-30, docs/hopper-l2.md, *Tiles that drift apart*).
double countedClocks(const Premises &on, const Shape &shape, double clocks, double tiles, double waves);
/// What part of its tiles D is; the rest hangs over its edges.
double filledPart(const Premises &on, const Shape &shape);

} // namespace gemmc::plan
