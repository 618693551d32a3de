/// How a warp brings lines of C to where it will put those of D (LinesOfC.cpp).
#pragma once
#include "Lowering.h"

namespace gemmc {

/// The 16 lines of a piece, from wherever they start.
struct Lowering::LinesOfC {
  static constexpr int64_t lines = 16;

  /// How lanes share the lines of a piece out: parts of `bytes`, `parts` of them a line, `atOnce` lines at a time.
  struct Lanes {
    int64_t bytes, parts, atOnce;
    Val part, line; ///< The lane's.
    Val there;      ///< Whether it has one; None: surely.
  };
  /// What a lane has of a piece, under way or there: words, or pairs of halves, of each of its parts.
  struct Fetched {
    Lanes lanes;
    std::vector<std::vector<Val>> parts;
  };

  LinesOfC(Lowering &lowering, const TensorView &c);

  /// Registers that a lane has for a piece on its way, at most.
  int64_t registers() const { return halves() ? lines * 2 : lines; }
  /// The loads of `columns` of C from (`row`, `col`) on. What lies beyond its edges becomes zero.
  Fetched fetch(int64_t columns, const Val &row, const Val &col);
  /// They come to `slot`, where they lie as `staged` says.
  void put(const Fetched &fetched, const SharedTile &staged, const Val &slot);

private:
  Lowering &l;
  ptx::Builder &b;
  const TensorView &c;
  Pitches pitches;

  /// Where the loads of a lane begin, and how far C goes from there.
  struct Start {
    Val address, row, col;   ///< b64; of the lane's first element.
    Val linesLeft, colsLeft; ///< Only at the edge.
  };

  bool halves() const { return c.align % 4 != 0; }
  Lanes lanesOf(int64_t lineBytes);
  void load(Fetched &to, const Start &start, bool atEdge);
  void loadElements(const std::vector<Val> &part, const Val &address, int64_t offset, const Val &exists,
                    const Val &colsLeft);
  void element(const Val &to, const Val &address, int64_t offset, const Val &exists, const Val &colsLeft,
               int64_t number);
};

} // namespace gemmc
