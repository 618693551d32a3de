/// How a warp writes lines of D that may start inside sectors of the L2 (OddLines.cpp).
#pragma once
#include "Lowering.h"

namespace gemmc {

/// The 16 lines that a warp has of a block, piece by piece from left to right.
struct Lowering::OddLines {
  static constexpr int64_t lines = 16, sectorBytes = 32;

  Lowering &l;
  ptx::Builder &b;
  const TensorView &d;
  Val row0, col0; ///< Of the first piece's first element, in D.
  int64_t elementBytes;

  OddLines(Lowering &lowering, const TensorView &d, const Val &row0, const Val &col0);

  /// How `columns` come.
  static std::vector<LinePiece> pieces(int64_t columns, int64_t elementBytes);
  /// Writes the sectors that are complete with these `columns` (128 bytes, but in the `last` piece), which lie in
  /// `slot` as a tile of 16 lines of 128 bytes, swizzle 128B; with the last ones also what is left. The piece before
  /// still lies in `slotBefore`.
  void piece(int64_t column, int64_t columns, const Val &slot, const Val &slotBefore, bool last);

private:
  struct Piece {
    int64_t number, columns;
    bool last;
    Val slot, slotBefore;
  };
  /// How lanes share the lines: each has a `unit` of a line in each round.
  struct Lanes {
    int64_t ofLine, atOnce; ///< Lanes that a line has; lines of a round...
    int64_t stride;         ///< ...and how far apart they are.
    Val unit, line;         ///< The lane's; the line is so many behind the round's first one.
    Val own, before{};      ///< b32: where the lane's line of round 0 is staged; where that is in the piece before.
    Val key;                ///< b32: what bytes of the line are XORed with there.
    Val begin;              ///< b64: where the line begins.
    /// A round's first line.
    int64_t firstOf(int64_t round) const;
  };
  /// The lane's line of a round.
  struct Line {
    Val begin, skew;  ///< b64: where a line begins that lies alike, by how many bytes behind a sector's first one.
    int64_t place;    ///< Bytes from there to the line's part of the piece.
    int64_t row, key; ///< Where it is staged, from the line of round 0 on; what is XORed with bytes of it.
    Val exists{};     ///< Predicate; None: it does.
  };
  struct Edge {
    Val lines, bytes; ///< How far D goes, from the piece's first line and its first element on.
  };

  Pitches pitches;
  Val step, start; ///< Bytes from line to line; b64: where the first one begins.

  SharedTile stagedPiece() const;
  bool halves() const { return d.align % 4 != 0; }
  bool unaligned() const { return d.align % 16 != 0; }
  int64_t mostSkew() const { return sectorBytes - std::min<int64_t>(d.align, sectorBytes); }
  bool stepIsKnown() const;
  Val predicate(llvm::StringRef compare, const Val &x, const Val &y, const Val &also, llvm::StringRef name);
  Lanes lanesOf(const Piece &piece, int64_t each);
  void eachRound(const Piece &piece, const Lanes &share, const Edge *edge,
                 llvm::function_ref<void(const Line &line)> put);
  Val stagedAt(const Lanes &share, const Line &line, const Val &offset, const Val &own, const Val &before);
  std::vector<Val> inMemory(const Lanes &share, const Line &line, const Val &offset);
  void putChunks(const Piece &piece, const Lanes &share, int64_t first, const Edge *edge);
  void putChunks(const Piece &piece, const Edge *edge);
  void putElement(const Lanes &share, const Line &line, const Val &offset, const Val &before, const Val &exists);
  void putEnds(const Piece &piece, const Edge *edge);
  void putElements(const Piece &piece, const Edge *edge);
  void lay(const Piece &piece, const Edge *edge);
};

} // namespace gemmc
