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
int64_t mmaDepth(const Draft &draft); ///< k of a block where it does not.
/// Stages of f64 that pay where there are so many tiles.
int64_t stagesOfDoubles(const Draft &draft, const Shape &shape, double tiles);

} // namespace gemmc::plan
