/// The tiles of mma kernels: block tiles, warps, depths and stages to try (MmaTiles.cpp).
#pragma once
#include "Draft.h"
#include "llvm/ADT/SmallVector.h"

namespace gemmc::plan {

struct Tile {
  int64_t m, n;
};
using Tiles = llvm::SmallVector<Tile, 16>;

/// k of a block and of a warp.
struct Depth {
  int64_t block, warp;
};

/// Of a block that nobody has given, the favourite first.
Tiles mmaBlocks(const Draft &draft);
/// Warps of a block, the favourite first; empty where no whole instructions fill it.
Tiles mmaWarps(const Draft &draft, Tile block);
/// Whether the estimate chooses the depth of a stage, and how many warps share it: of `mmaDepths`.
bool choosesDepth(const Draft &draft);
llvm::SmallVector<Depth, 6> mmaDepths(const Draft &draft, Tile block, Tile warp);
/// k of a block where it does not.
int64_t blockDepth(const Draft &draft);
/// Stages of f64 that pay.
int64_t stagesOfDoubles(const Draft &draft, const Shape &shape);
/// Tiles of all products; clusters may add some.
double tilesOf(const Draft &draft, const Shape &shape);

} // namespace gemmc::plan
