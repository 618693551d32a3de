// Products with one short side: they stream the long operand once and do little with it. What counts is that all SMs
// stream, each with much under way, and that the short operand, which every CTA reads again, does not fill the L2's
// port. The candidates cut the long side into tiles and k into slices; a few rates of an H200 choose among them.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t mostShort = 256, leastLong = 1024, leastDepth = 512;
constexpr int64_t mostDeep = 128; ///< Rows of both tiles of a stage that is 128 deep, so that six fit and more.

// Bytes a nanosecond, and nanoseconds: a fit to 264 kernels for six skinny products on an H200 (2026-11-21;
// docs/hopper.md). The meetings and `scattered` were set later, by the order of a dozen kernels for two of them.
constexpr double memoryRate = 3600, cacheRate = 13000, portRate = 100, clusterRate = 50;
constexpr double meeting = 2000, meetingOfMany = 4000; ///< Of two slices of k; of more.
constexpr int64_t handySums = 8192;   ///< Elements of a tile whose sums are handed over at the rate of the cluster.
constexpr double unhandy = 0.45;      ///< Of each more: 256x7168x2048 in 256x112 takes 22.8 us in two slices, 13 whole.
constexpr double scattered = 1.35;    ///< Slices of several tiles of the short side read the same lines at other times.
constexpr double productsRate = 3500; ///< Of an SM's tensor cores.
constexpr double outside = 1.25;      ///< What a row of a box outside its matrix costs, relative to one inside.
constexpr double turn = 300;          ///< From one tile of a CTA to its next.
constexpr double streaming = 0.6;     ///< Of the SMs, when they stream as fast as the memory delivers.

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

/// CTAs that run at a time: clusters stay within a group of 16 SMs.
int64_t placesOf(const Draft &draft, int64_t cluster) {
  return cluster <= 2 ? draft.limits.sms : draft.limits.sms / 16 * (16 / cluster * cluster);
}

struct Sides {
  int64_t shortSide, longSide, depth;
  bool longIsM;
};

double nanoseconds(const Draft &draft, const Sides &sides, const Stream &way) {
  auto count = [](int64_t extent, int64_t tile) { return int64_t(llvm::divideCeil(extent, tile)); };
  int64_t longTile = sides.longIsM ? way.m : way.n, shortTile = sides.longIsM ? way.n : way.m;
  int64_t longTiles = count(sides.longSide, longTile), shortTiles = count(sides.shortSide, shortTile);
  int64_t steps = count(count(sides.depth, way.k), way.slices);
  int64_t emptyRows = longTiles * longTile - sides.longSide + shortTiles * shortTile - sides.shortSide;
  int64_t ctas = shortTiles * longTiles * way.slices, places = placesOf(draft, way.slices), waves = count(ctas, places);
  double busy = std::min(1.0, double(ctas) / double(waves * places) / streaming); // of the SMs that memory needs
  double longBytes = 2.0 * sides.longSide * sides.depth, shortBytes = 2.0 * sides.shortSide * sides.depth;
  double memory = longBytes / memoryRate / busy * (way.slices > 1 && shortTiles > 1 ? scattered : 1);
  double cache = (longBytes * shortTiles + shortBytes * longTiles) / cacheRate;
  double port = 2.0 * waves * steps * way.k * (longTile + shortTile + outside * emptyRows) / portRate;
  double products = double(waves) * steps * way.k * longTile * shortTile / productsRate;
  double sums = meetingNanoseconds(way.slices, longTile * shortTile);
  // Only the last tile of each CTA is stored when nothing streams.
  double stored = 2.0 * sides.longSide * sides.shortSide / double(waves) / memoryRate;
  // What is not the slowest is not quite hidden either.
  return std::max({memory, cache, port, products}) + std::min(memory, port) / 8 + sums + stored +
         double(waves - 1) * turn;
}
} // namespace

bool isShort(int64_t length, int64_t other) { return length >= 1 && length <= mostShort && other >= leastLong; }

double meetingNanoseconds(int64_t slices, int64_t elements) {
  if (slices == 1)
    return 0;
  double beyond = std::max(0.0, double(elements - handySums));
  return (slices == 2 ? meeting : meetingOfMany) + 4.0 * double(elements) / clusterRate + beyond * unhandy;
}

bool decideSkinnySwap(Draft &draft) {
  Spec &s = draft.spec();
  bool other =
      (s.instruction.given && *s.instruction != Instruction::wgmma) || (s.copy.given && *s.copy != CopyKind::tma);
  if (other || s.swapOperands.given || s.block.given || s.warp.given || !isSkinny(draft))
    return false;
  // The kernel's m is wgmma's side of 64 rows.
  if (wastesRows(*s.m.value.fixed) && *s.n.value.fixed >= leastLong)
    s.swapOperands.decide(Persistence::on,
                          formatv("{0} rows would waste many of wgmma's 64: the {1} columns are its rows",
                                  *s.m.value.fixed, *s.n.value.fixed));
  else if (!wastesRows(*s.n.value.fixed) || *s.m.value.fixed < leastLong)
    return false;
  else
    s.swapOperands.decide(Persistence::off,
                          formatv("{0} columns would waste many of wgmma's 64 rows", *s.n.value.fixed));
  return true;
}

void decideStream(Draft &draft) {
  const Spec &s = draft.spec();
  bool open = !s.block.given && !s.warp.given && !s.cluster.given && !s.split.given && !s.splitThrough.given &&
              !s.splitSlices.given && (!s.schedule.given || *s.schedule == Schedule::cooperative) &&
              (!s.persistent.given || *s.persistent == Persistence::off) && *s.scheduler == Scheduler::fixed;
  if (!draft.wgmma() || !isSkinny(draft) || !open)
    return;
  int64_t m = *draft.extentM(), n = *draft.extentN();
  Sides sides{std::min(m, n), std::max(m, n), *draft.extentK(), m > n};
  int64_t step = sides.longIsM ? 64 : 8, least = sides.longIsM ? 64 : 32, most = sides.longIsM ? 128 : 256;
  int64_t shortUnit = sides.longIsM ? 8 : 64;
  double best = 0;
  // As rows beside a long tile, 256 of the short side are more sums than there are registers.
  for (int64_t shortMost = 64; shortMost <= (sides.longIsM ? 256 : 128); shortMost *= 2)
    for (int64_t tile = least; tile <= most; tile += step)
      for (int64_t slices = 1; slices <= 4; ++slices) {
        int64_t times = llvm::divideCeil(sides.shortSide, shortMost); // equal parts
        int64_t shortTile = llvm::alignTo(llvm::divideCeil(sides.shortSide, times), shortUnit);
        Stream way{sides.longIsM ? tile : shortTile, sides.longIsM ? shortTile : tile, 64, slices, ""};
        if (shortTile + tile <= mostDeep)
          way.k = 128;
        if (sides.depth < slices * way.k)
          continue;
        double time = nanoseconds(draft, sides, way);
        if (draft.stream && time >= 0.99 * best)
          continue;
        best = time;
        int64_t tiles = llvm::divideCeil(sides.longSide, tile);
        way.reason = formatv("{0} x {1} are streamed{2}: {3} tiles of {4}{5} are {6} CTAs for {7} SMs", sides.longSide,
                             sides.depth, times > 1 ? formatv(" {0} times", times).str() : "", tiles, tile,
                             slices > 1 ? formatv(" in {0} slices of k", slices).str() : "", tiles * slices * times,
                             draft.limits.sms);
        draft.stream = way;
      }
}

} // namespace gemmc::plan
