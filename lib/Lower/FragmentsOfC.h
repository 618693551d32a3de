/// How the lanes of a wgmma warp bring the elements of C that they have sums of (FragmentsOfC.cpp).
#pragma once
#include "Lowering.h"

namespace gemmc {

/// C of any type, order and pitch for the tile of a warp, in pieces of 16 rows: column group j and half h of a lane are
/// two neighbours of a row, as in StagedSums.h.
struct Lowering::FragmentsOfC {
  using Pair = std::pair<Val, Val>; ///< In registers of C's type; or a word of two halves, and None.
  struct Piece {
    int64_t row, column, columns; ///< From the tile's first element on.
  };

  /// `reads`: whether C is read at all, None: surely.
  FragmentsOfC(Lowering &lowering, const TensorView &c, const AccumulatorView &acc, const Val &reads);

  /// A tile from (`row`, `col`) on, whose pieces will be taken in this order.
  void begin(const Val &row, const Val &col, std::vector<Piece> pieces);
  /// Of the first piece that is not staged; to be taken in the order of j.
  Pair pair(int64_t j, int64_t h);
  void staged(); ///< A piece; the next one is asked for, where registers are left for it.

private:
  static constexpr int64_t groupColumns = 8, mostRegisters = 32; ///< Those of one batch of loads.
  Lowering &l;
  ptx::Builder &b;
  const TensorView &c;
  const Val reads;
  const int64_t spare; ///< Registers.
  Pitches pitches;
  Val row, col; ///< Of the tile.
  std::vector<Piece> pieces;
  size_t done = 0;         ///< Pieces that are staged.
  std::vector<Pair> pairs; ///< Of the next one, from its first column on.

  /// How far C goes from a lane's first element on.
  struct Edge {
    Val rows, cols;
  };
  bool byRow() const { return c.order == Order::row; }
  bool halves() const { return c.elemBytes() == 2; }
  /// Two neighbours in one access.
  bool inPairs() const { return byRow() && c.align >= 2 * c.elemBytes(); }
  bool inWords() const { return inPairs() && halves(); }
  int64_t registersOfGroup() const { return inWords() ? 2 : 4; }
  int64_t groupsAtOnce() const { return mostRegisters / registersOfGroup(); }
  Type type() const;
  const char *word() const;
  void clear(llvm::ArrayRef<Pair> to);
  int64_t groupsOfPiece() const { return pieces[done].columns / groupColumns; }
  int64_t groupsAsked() const { return int64_t(pairs.size()) / 2; }
  void fetch(int64_t groups);
  void load(llvm::ArrayRef<Pair> to, const Val &start, const Edge *edge);
  void loadPair(const Pair &to, const Val address[2], const int64_t offset[2], const Val &guard);
  void loadOne(const Val &to, const Val &address, int64_t offset, const Val &guard);
};

} // namespace gemmc
