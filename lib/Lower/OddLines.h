/// How a warp writes lines of D that do not start at multiples of 16 bytes (OddLines.cpp).
#pragma once
#include "Lowering.h"

namespace gemmc {

/// The 16 lines that a warp has of a block, piece by piece from left to right.
struct Lowering::OddLines {
  static constexpr int64_t lines = 16, pieceColumns = 64;

  Lowering &l;
  ptx::Builder &b;
  const TensorView &d;
  Val row0, col0; ///< Of the first piece's first element, in D.

  OddLines(Lowering &lowering, const TensorView &d, const Val &row0, const Val &col0);

  /// Whether D's lines are such.
  static bool areOf(const TensorView &d) { return d.elemBytes() == 2 && d.align % 16 != 0; }
  /// How `columns` come.
  static std::vector<LinePiece> pieces(int64_t columns);
  /// Writes the words that are complete with these `columns` (64, but in the `last` piece), which lie in `slot` as a
  /// tile of 16 lines of 128 bytes, swizzle 128B; with the last ones also what is left. The piece before still lies in
  /// `slotBefore`.
  void piece(int64_t column, int64_t columns, const Val &slot, const Val &slotBefore, bool last);

private:
  struct Piece {
    int64_t number, columns;
    bool last;
    int64_t words, atOnce; ///< Lanes that a line has; lines that the warp writes at a time.
    Val word, line;        ///< The lane's, of those.
    Val own;               ///< b32: where its staged word of the first line is.
    Val firstWord, tail;   ///< Whether it is a line's first one; where the last one of the piece before is.
    Val begin;             ///< b64: where its first line begins.
  };
  /// Lines that lie alike to words.
  struct Start {
    Val address;  ///< b64, of the lane's word.
    Val offset;   ///< s32: where that is, in bytes from the piece's first element: a multiple of 4, or 2 less.
    Val selector; ///< prmt: the word as it lies in memory, of the staged one in front and the lane's own.
  };
  /// Which lanes write what of a line; None: all of them (`word`), or none.
  struct Writers {
    Val word, upper, lower; ///< The word; the one element of it that the line begins or ends with.
    Val behind;             ///< The last element, where it would be the lower one of a word that no lane has.
  };
  struct Edge {
    Val lines, bytes; ///< How far D goes, from the lane's first line and the piece's first element on.
  };

  Pitches pitches;
  Val step, start; ///< Bytes from line to line; b64: where the first one begins.

  static SharedTile stagedPiece();
  bool halves() const { return d.align % 4 != 0; }
  bool stepIsKnown() const;
  Val predicate(llvm::StringRef compare, const Val &x, const Val &y, const Val &also, llvm::StringRef name);
  void place(Piece &piece, const Val &slot, const Val &slotBefore);
  Start startOf(const Piece &piece, const Val &line);
  Writers writersOf(const Piece &piece, const Start &start, const Edge *edge);
  Val keyed(const Val &place, int64_t key);
  Val inMemory(const Piece &piece, const Start &start, const Val &own, int64_t number);
  void put(const Start &start, const Writers &writers, int64_t place, const Val &own, const Val &word,
           const Val &exists);
  void lay(const Piece &piece, const Edge *edge);
};

} // namespace gemmc
