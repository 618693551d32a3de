/// From a shared buffer of the tile IR to its layout.
#pragma once
#include "gemmc/Layout/SharedTile.h"
#include "gemmc/Tile/IR.h"

namespace gemmc::tile {

/// How one stage of a shared buffer lies; its swizzle is known.
inline SharedTile tileOf(const Op &shared) {
  return makeSharedTile(shared.item("extent", 0), shared.item("extent", 1), shared.word("major") == "k",
                        *parseElem(shared.word("type")), *parseSharedLayout(shared.word("swizzle")),
                        shared.number("padding", 16));
}

/// Tiles of operands, and lines on their way to them.
inline bool isOperandTile(const Op &shared) {
  llvm::StringRef name = shared.subject.name;
  return name == "sA" || name == "sB" || name == "rA" || name == "rB";
}

/// What of `extent` the last of tiles of `length` has: 0 for whole tiles, 1 to `length` of one that is given at launch.
inline Expr lastPart(const Expr &extent, int64_t length) {
  return extent.isConst() ? Expr(extent.constant() % length) : (extent - 1) % length + 1;
}

} // namespace gemmc::tile
