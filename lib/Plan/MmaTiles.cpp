// The tiles of mma kernels: of f64, of products of which many were measured, and of all others.
#include "MmaTiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

namespace gemmc::plan {

namespace {
constexpr int64_t usualSide = 64;  // of the tile that small ones are beside
constexpr int64_t narrowSide = 80; // of a D of any size of which small tiles were measured

bool isNarrow(const Draft &draft, int64_t side) { return std::min(draft.plannedM(), draft.plannedN()) <= side; }
} // namespace

bool hasSmallD(const Draft &draft) {
  const double tiles = double(draft.plannedBatch()) * double(draft.plannedM()) * double(draft.plannedN()) /
                       double(usualSide * usualSide);
  return tiles < draft.limits.sms;
}

bool hasMeasuredTiles(const Draft &draft) {
  const Spec &s = draft.spec();
  const unsigned bits = bitsOf(*s.a.type);
  return *s.instruction == Instruction::mma && bits >= 8 && bits <= 32 && (s.block.given || !s.warp.given) &&
         *s.split != SplitMode::stream_k &&
         (hasSmallD(draft) || isNarrow(draft, narrowSide) || draft.needsTurningOfBoth());
}

bool choosesDepth(const Draft &draft) {
  const Spec &s = draft.spec();
  return (draft.multipliesDoubles() || hasMeasuredTiles(draft)) && !s.block.given && !s.warp.given;
}

// Two steps of the instruction, so that one is read while the other is multiplied.
int64_t mmaDepth(const Draft &draft) {
  int64_t depth = std::max(draft.elementsIn(leastDepthBytes * 2), 2 * draft.matrix->k);
  return std::min(depth, draft.elementsIn(mostDepthBytes(draft)));
}

namespace {
/// Threads that copy lines of m or n, 48 or 96 long, do not divide evenly among them: 896x1248x728 TT takes 41.5 us in
/// 64x32, 50.3 in 96x96; 960x2496x1984, k contiguous, 198 and, in 96x64, 179 (H200, 2026-11-30, docs/hopper-types.md,
/// *f64*).
Tiles blocksOfDoubles(const Draft &draft) {
  Tiles tiles;
  constexpr std::pair<int64_t, int64_t> blocks[] = {
      {64, 64}, {128, 64}, {64, 128}, {32, 32},  {64, 32},  {32, 64},  {16, 32}, {32, 16}, {16, 16},
      {96, 64}, {64, 96},  {64, 48},  {48, 64},  {48, 48},  {32, 48},  {48, 32}, {32, 96}, {96, 32},
      {64, 80}, {64, 112}, {96, 96},  {128, 32}, {32, 128}, {128, 48}, {48, 128}};
  for (auto [m, n] : blocks)
    if ((llvm::isPowerOf2_64(m) || draft.kMajorA()) && (llvm::isPowerOf2_64(n) || draft.kMajorB()))
      tiles.push_back({m, n});
  return tiles;
}

/// Blocks of products with less of D than one of 64x64 for each SM, or not much wider. 457x170x65 of tf32 takes 3.26 us
/// in 64x64, 2.20 in 32x32, 15420x8x3824 NT 54.1 in 64x16, 41.7 in 128x16, 1086 of 84x68x356 NT 71.2 in 128x32, 45.5 in
/// 128x128 (H200, 2026-11-30, docs/hopper-types.md, *Few tiles of mma*).
constexpr Tile measuredBlocks[] = {{64, 64},  {32, 64},  {64, 32},  {32, 32},  {16, 64},  {64, 16},
                                   {16, 32},  {32, 16},  {16, 16},  {128, 64}, {64, 128}, {128, 32},
                                   {32, 128}, {128, 16}, {16, 128}, {128, 128}};

/// Warps of f64: all that the estimate can choose among, four of them or, where a given block has more, the fewest.
Tiles warpTilesOfDoubles(Tile block) {
  constexpr int64_t usual = 4;
  Tiles tiles;
  for (auto [m, n] : {std::pair{64, 32},
                      {32, 64},
                      {48, 48},
                      {48, 32},
                      {32, 48},
                      {32, 56},
                      {32, 40},
                      {32, 32},
                      {32, 24},
                      {32, 16},
                      {16, 32},
                      {16, 16}})
    if (block.m % m == 0 && block.n % n == 0)
      tiles.push_back({m, n});
  auto warps = [&](const Tile &tile) { return block.m / tile.m * (block.n / tile.n); };
  int64_t most = usual;
  if (!tiles.empty())
    most = std::max(
        most, warps(*llvm::min_element(tiles, [&](const Tile &x, const Tile &y) { return warps(x) < warps(y); })));
  llvm::erase_if(tiles, [&](const Tile &tile) { return warps(tile) > most; });
  return tiles;
}

/// All warps that a tile can have.
Tiles warpTilesOfMeasured(Tile block) {
  Tiles tiles;
  for (auto [m, n] : {std::pair{64, 64}, {64, 32}, {32, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}})
    if (block.m % m == 0 && block.n % n == 0 && (m < 64 || n < 64 || (block.m == 128 && block.n == 128)))
      tiles.push_back({m, n});
  return tiles;
}

/// The largest tile of a warp (fewest shared memory reads) that leaves each of the SM's four tensor cores a warp, and
/// whose sums a thread can hold.
Tiles largestWarpTile(const Draft &draft, Tile block) {
  Tiles tiles;
  for (auto [m, n] : {std::pair{64, 64}, {64, 32}, {32, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}}) {
    if (block.m % m != 0 || block.n % n != 0)
      continue;
    tiles = {{m, n}};
    Shape shape;
    shape.m = block.m, shape.n = block.n, shape.warpM = m, shape.warpN = n;
    const int64_t warps = block.m / m * (block.n / n);
    if (warps >= 4 && accumulatorRegisters(draft, shape) <= accumulatorLimit(draft, shape))
      break;
  }
  return tiles;
}

/// k of a block and of a warp: 16, or 32 of small tiles, of which a step is short beside its waits, whole or in slices,
/// one for each warp where a tile has fewer than four. 256x256x8192 in 16x32 by two warps, 16 deep, takes 72 us, by
/// four, each with 8 of 32, 44; 512^3 in 32x32 9.9 and 8.2. Two warps of a larger tile leave tensor cores idle:
/// 2500x1300x900 in 64x32 226, in 64x64 by four 142 (H200, 2026-11-26, docs/hopper-types.md, *f64*).
llvm::SmallVector<Depth, 6> depthsOfDoubles(Tile block, Tile warp) {
  constexpr int64_t small = 64 * 64, smallest = 32 * 32, most = 4, leastDepth = 8; // most: warps
  const int64_t least = block.m * block.n <= smallest ? 2 : most;
  const int64_t warps = block.m / warp.m * (block.n / warp.n);
  llvm::SmallVector<Depth, 6> depths;
  for (int64_t depth : {16, 32})
    for (int64_t slices : {1, 2, 4})
      if (warps * slices >= least && warps * slices <= most && depth / slices >= leastDepth &&
          (depth == 16 || block.m * block.n <= small))
        depths.push_back({depth, depth / slices});
  return depths;
}

/// Four warps, one above the other along k where the tile has fewer. Of more than one wave, and more than 32 rows and
/// columns, steps are not deeper than usual: 42x47468x334 TT in 64x128 13.5 us, 16.9 in steps twice as deep,
/// 564x45x464 in 27 products 9.4 and 11.0 (H200, 2026-11-30).
llvm::SmallVector<Depth, 6> depthsOfMeasured(const Draft &draft, Tile block, Tile warp) {
  constexpr int64_t wanted = 4, narrow = 32;
  const int64_t deepest = draft.elementsIn(mostDepthBytes(draft));
  const int64_t warps = block.m / warp.m * (block.n / warp.n), usual = mmaDepth(draft);
  const Field<int64_t> &buffers = draft.spec().fragmentBuffers;
  const bool pairs = buffers.given && *buffers == 2; // of steps
  llvm::SmallVector<Depth, 6> depths;
  if (warps <= wanted)
    for (int64_t depth : {usual, 2 * usual})
      if (depth <= deepest && (depth == usual || hasSmallD(draft) || isNarrow(draft, narrow)) &&
          (!pairs || depth * warps / wanted % (2 * draft.matrix->k) == 0))
        depths.push_back({depth, depth * warps / wanted});
  return depths;
}

/// Of all warps that whole instructions fill, at most sixteen: the largest whose sums a thread can hold and of which
/// there are four, or as few more as can be, else as many as can be. The squarer one of two, which reads less.
Tiles anyWarpTile(const Draft &draft, Tile block) {
  constexpr int64_t wanted = 4, most = 16, longest = 256;
  const bool blocks = *draft.spec().swizzle == Swizzle::blocked; // of 16 x 16, which are whole
  const int64_t stepM = blocks ? 16 : draft.matrix->rows(), stepN = blocks ? 16 : draft.matrix->columns();
  std::optional<Shape> best;
  auto isBetter = [&](const Shape &shape) {
    if (!best)
      return true;
    auto rank = [&](const Shape &x) {
      const int64_t warps = block.m / x.warpM * (block.n / x.warpN);
      return std::tuple(warps < wanted, warps < wanted ? -warps : warps, x.warpM + x.warpN);
    };
    return rank(shape) < rank(*best);
  };
  for (int64_t m = stepM; m <= std::min(longest, block.m); m += stepM)
    for (int64_t n = stepN; n <= std::min(longest, block.n); n += stepN) {
      if (block.m % m != 0 || block.n % n != 0 || block.m / m * (block.n / n) > most)
        continue;
      Shape shape;
      shape.m = block.m, shape.n = block.n, shape.warpM = m, shape.warpN = n;
      if (accumulatorRegisters(draft, shape) <= accumulatorLimit(draft, shape) && isBetter(shape))
        best = shape;
    }
  return best ? Tiles{{best->warpM, best->warpN}} : Tiles{};
}

} // namespace

Tiles mmaBlocks(const Draft &draft) {
  if (draft.multipliesDoubles())
    return blocksOfDoubles(draft);
  if (hasMeasuredTiles(draft))
    return Tiles(std::begin(measuredBlocks), std::end(measuredBlocks));
  // The large tile wants an SM with the shared memory of several stages of it.
  const bool roomy = draft.limits.sharedPerBlock > 128 * 1024;
  if (roomy)
    return {{128, 256}, {128, 128}, {256, 128}, {128, 64}, {64, 128}, {64, 64}};
  return {{128, 128}, {128, 64}, {64, 128}, {64, 64}};
}

Tiles mmaWarps(const Draft &draft, Tile block) {
  Tiles tiles = draft.multipliesDoubles() ? warpTilesOfDoubles(block)
                : choosesDepth(draft)     ? warpTilesOfMeasured(block)
                                          : largestWarpTile(draft, block);
  if (tiles.empty()) // whole instructions of an unusual block
    for (int64_t m : {4, 2, 1})
      for (int64_t n : {4, 2, 1})
        if (Tile tile{m * draft.matrix->rows(), n * draft.matrix->columns()};
            block.m % tile.m == 0 && block.n % tile.n == 0 &&
            (tiles.empty() || tiles[0].m * tiles[0].n * 4 > block.m * block.n))
          tiles = {tile};
  constexpr int64_t mostWarps = 16;
  if (llvm::all_of(tiles, [&](const Tile &tile) { return block.m / tile.m * (block.n / tile.n) > mostWarps; }))
    if (Tiles any = anyWarpTile(draft, block); !any.empty())
      return any;
  return tiles;
}

llvm::SmallVector<Depth, 6> mmaDepths(const Draft &draft, Tile block, Tile warp) {
  return draft.multipliesDoubles() ? depthsOfDoubles(block, warp) : depthsOfMeasured(draft, block, warp);
}

/// Where an SM has few CTAs of f64, what is under way is what their stages hold: 64x4096x4096 in 64x32 takes 79 us in
/// four, 69 in eight; where it has many, they must not take each other's place: 1024^3 in 64x64 43.4 in four, 50.1 in
/// eight (H200, 2026-11-26).
int64_t stagesOfDoubles(const Draft &draft, const Shape &shape, double tiles) {
  constexpr int64_t usual = 4, most = 8;
  constexpr double underWay = 128 * 1024; // bytes of an SM
  const double ctas = std::max(1.0, std::ceil(tiles * double(draft.slicesInMemory()) / draft.limits.sms)); // of an SM
  return std::clamp<int64_t>(int64_t(underWay / (ctas * double(stageBytes(draft, shape)))), usual, most);
}

} // namespace gemmc::plan
