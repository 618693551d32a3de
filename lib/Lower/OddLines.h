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
  /// tile of 16 lines of 128 bytes, swizzle 128B; with the last ones also what is left.
  void piece(int64_t column, int64_t columns, const Val &slot, bool last);

private:
  /// Lines that lie alike to words.
  struct Start {
    Val address;  ///< b64: of the lane's word of the first piece of the first such line.
    Val word;     ///< s32: where that word begins, in bytes from the line's first element: a multiple of 4, or 2 less.
    Val odd;      ///< Whether it is 2 less; None: it is not.
    Val selector; ///< prmt: the word as it lies in memory, of the staged one before and the lane's own.
  };
  /// Which lanes write what of a piece; None: all of them (`word`), or none.
  struct Writers {
    Val word, upper, lower; ///< The word; the element of it that the line begins or ends with.
    Val behind; ///< The last element of a piece of 128 bytes, which would be the lower one of the next word.
  };
  struct Edge {
    Val lines, bytes; ///< How far D goes from the piece's first element on.
  };

  Val laneByte, laneBefore, lastLane;
  Val step, start;          ///< Bytes from line to line; b64: where the first one begins.
  std::vector<Start> alike; ///< Of the first line, and of the second where it lies differently; only of a known `step`.
  std::vector<Val> kept;    ///< The lane's word of each line of the piece before.

  bool halves() const { return d.align % 4 != 0; }
  bool known() const;
  Val predicate(llvm::StringRef compare, const Val &x, const Val &y, const Val &also, llvm::StringRef name);
  Val both(const Val &p, const Val &q);
  Start startOf(const Val &line);
  Writers writersOf(const Start &start, int64_t columns, bool first, bool last, const Edge *edge);
  Val inMemory(const Start &start, const Val &own, const Val &ofLastLane);
  void put(const Start &start, const Writers &writers, int64_t offset, const Val &own, const Val &word,
           const Val &exists);
  void lay(int64_t number, int64_t columns, const Val &slot, bool last, const Edge *edge);
};

} // namespace gemmc
