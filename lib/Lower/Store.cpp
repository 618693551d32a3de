#include "Elements.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
using Pairs = std::vector<FragmentMap::Offset>; ///< Of neighbouring columns that a thread holds in one block, in order.
} // namespace

/// D = alpha * acc + beta * C, straight from the accumulators. A thread holds pairs of neighbouring columns: of row
/// block i, half h and column group j the pair at row i * blockRows + 8 * h + lane / 4, columns 8 * j + 2 * (lane % 4)
/// and the next (mma m16n8 and wgmma m64 fragments alike; a wgmma's warp adds 16 rows times its place in the group).
///
/// Tiles that lie inside D wholly take a path without any check; the others check row and column for each pair.
void Lowering::store(const Op &op) {
  struct Writer {
    Lowering &l;
    ptx::Builder &b;
    Elements e;
    const AccumulatorView &acc;
    const Pairs &places;
    Val row0, col0;         ///< Of the thread's first element, in D.
    Val rowsLeft, colsLeft; ///< Rows and columns of D from there on; only for checked paths.
    Pitches pitches{b};

    bool rowOrder(const TensorView &t) const { return t.order == Order::row; }

    using Place = Elements::Place;
    /// Where the thread's first element lies.
    Val start(const TensorView &t, llvm::StringRef name) {
      int64_t bytes = t.elemBytes();
      Val slow = rowOrder(t) ? row0 : col0, fast = rowOrder(t) ? col0 : row0;
      Val offset = l.wide(slow, pitches.of(t), "slow_offset");
      return l.add64(l.add64(offset, t.base, name), l.wide(fast, bytes, "fast_offset"), name);
    }
    /// `lines` lines further on.
    Val moved(const TensorView &t, const Val &from, int64_t lines) {
      Val pitch = pitches.of(t);
      if (pitch.isImm())
        return l.add64(from, lines * pitch.op.imm, t.buffer + "_line");
      Val distance = pitch, to = b.reg(Type::b64, t.buffer + "_line");
      if (lines != 1) {
        distance = b.reg(Type::b64, t.buffer + "_offset");
        b("mul.lo.u64", distance, pitch, lines);
      }
      b("add.s64", to, from, distance);
      return to;
    }

    /// A walk through the lines of a tensor, its rows or its columns. Where a pitch is no constant, the address goes on
    /// from the line before: one is alive, not one for each line, which ptxas would keep for the next block of rows and
    /// spill.
    struct Walk {
      Writer &w;
      const TensorView &t;
      Val first, here = first;
      int64_t line = 0;

      /// Of (row0 + row, col0 + col).
      Place at(int64_t row, int64_t col) {
        int64_t slow = w.rowOrder(t) ? row : col, fast = (w.rowOrder(t) ? col : row) * t.elemBytes();
        Val pitch = w.pitches.of(t);
        // An address holds 32 bits of offset; ours may grow by a line of the tile.
        if (pitch.isImm() && slow * pitch.op.imm < int64_t(1) << 30)
          return {first, slow * pitch.op.imm + fast};
        if (slow == 0)
          return {first, fast};
        if (slow != line) {
          here = slow > line ? w.moved(t, here, slow - line) : w.moved(t, first, slow);
          line = slow;
        }
        return {here, fast};
      }
    };
    /// Two neighbours of a row lie in one row, or in two columns.
    struct Walks {
      Walk walks[2];
      Place at(int64_t row, int64_t col, int64_t half) {
        return walks[walks[0].w.rowOrder(walks[0].t) ? 0 : half].at(row, col + half);
      }
    };
    Walks through(const TensorView &t, llvm::StringRef name) {
      Val first = start(t, name);
      return {{{*this, t, first}, {*this, t, first}}};
    }

    /// The two sums of `pair` in block (i, j), scaled.
    std::pair<Val, Val> scaled(int64_t i, int64_t j, int64_t pair) {
      Val x, y;
      if (acc.half()) {
        Val lo = b.reg(Type::b16, "half"), hi = b.reg(Type::b16, "half");
        b("mov.b32", Val(std::vector<Val>{lo, hi}), packed(i, j, pair));
        x = b.reg(Type::f32, "x");
        y = b.reg(Type::f32, "x");
        b("cvt.f32.f16", x, lo);
        b("cvt.f32.f16", y, hi);
      } else {
        const Val *first = &acc.regs[i][(j * places.size() + pair) * 2];
        x = first[0];
        y = first[1];
      }
      Val first = e.scaled(x);
      return {first, e.scaled(y)};
    }
    /// The register of two f16 sums.
    const Val &packed(int64_t i, int64_t j, int64_t pair) const { return acc.regs[i][j * places.size() + pair]; }

    /// Two neighbours of a row in one access; two of 16 bits are a word.
    std::pair<Val, Val> loadPairOfC(const Place &place, const Val &guard) {
      const bool word = Elements::registerOf(e.c->type) == Type::b16;
      Val x = word ? b.reg(Type::b32, "c") : e.rawC(guard), y = word ? Val() : e.rawC(guard);
      if (word && guard.isReg())
        b("mov.b32", x, 0);
      if (guard.isReg())
        b.when(guard);
      const std::string load = Elements::loadOf(e.c->type), type = load.substr(load.rfind('.'));
      word ? b("ld.global.b32", x, at(place.base, place.offset))
           : b("ld.global.v2" + type, Val(std::vector<Val>{x, y}), at(place.base, place.offset));
      return {x, y};
    }
    void putPair(const Place &place, const Val &x, const Val &y, Val guard) {
      Elem type = e.d->type;
      if (Elements::registerOf(type) != Type::b16) {
        if (guard.isReg())
          b.when(guard);
        const char *mnemonic = type == Elem::f32   ? "st.global.v2.f32"
                               : type == Elem::f64 ? "st.global.v2.f64"
                                                   : "st.global.v2.b32";
        b(mnemonic, at(place.base, place.offset), Val(std::vector<Val>{x, y}));
        return;
      }
      Val packed = b.reg(Type::b32, "d");
      b(type == Elem::f16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", packed, y, x);
      if (guard.isReg())
        b.when(guard);
      b("st.global.b32", at(place.base, place.offset), packed);
    }

    /// Whether the sums go to D as they are, two f16 in a register.
    bool isRaw(bool pairs, bool readC) const {
      return acc.half() && e.d->type == Elem::f16 && e.fixedAlpha && *e.fixedAlpha == 1 && !readC && pairs;
    }

    /// How a path goes through the elements of a thread.
    struct Path {
      bool checked, ///< Against the edges of D.
          pairs,    ///< Two neighbours in one access.
          readC;
    };
    /// A pair of neighbouring columns of block (i, j), at (row, col) from the thread's first element.
    struct Pair {
      int64_t i, j, pair, row, col;
      Val guards[2], c[2]; ///< Of its two elements, where there are edges, and C.
    };
    /// Pairs whose C is on its way at a time: a load does not pass a store that may be to the same place, and takes as
    /// long as some 30 stores. mma's fragments have left registers for them.
    size_t pairsAtATime(const Path &path) const {
      if (!path.readC)
        return 1;
      const int64_t words = e.isF64() ? 4 : 2,
                    sums = int64_t(acc.regs.size()) * int64_t(acc.regs[0].size()) * words / 2;
      const int64_t most = l.isWgmma            ? l.registersOfThread()
                           : l.function.maxnreg ? l.function.maxnreg
                                                : std::min(255u, 65536 / l.function.reqntid[0]);
      return std::clamp<int64_t>(most - sums - 64, words, path.checked ? 4 * words : 32) / words;
    }

    /// All elements of the thread, row by row, or column by column where a tensor is in columns: a thread has many of
    /// them and few rows.
    void all(Path path) {
      std::vector<Pair> order;
      for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
        for (int64_t j = 0; j < acc.warpN / acc.blockColumns; ++j)
          for (int64_t pair = 0; pair < int64_t(places.size()); ++pair) {
            const int64_t row = i * acc.blockRows + places[pair].line, col = j * acc.blockColumns + places[pair].depth;
            order.push_back({i, j, pair, row, col, {}, {}});
          }
      bool byRows = rowOrder(*e.d) && (!path.readC || rowOrder(*e.c));
      llvm::stable_sort(order, [&](const Pair &x, const Pair &y) { return byRows ? x.row < y.row : x.col < y.col; });

      Walks d = through(*e.d, "d_start");
      std::optional<Walks> c;
      if (path.readC)
        c.emplace(through(*e.c, "c_start"));
      int64_t line = -1;
      Val lineIn[2]; // a row, or two columns
      const size_t step = pairsAtATime(path);
      for (auto [index, one] : llvm::enumerate(order)) {
        int64_t slow = byRows ? one.row : one.col;
        Val(&guard)[2] = one.guards;
        for (int64_t half = 0; path.checked && half < (path.pairs ? 1 : 2); ++half) {
          const Val &linesLeft = byRows ? rowsLeft : colsLeft, &left = byRows ? colsLeft : rowsLeft;
          Val &in = lineIn[byRows ? 0 : half];
          if (slow != line && !(byRows && half)) {
            in = b.reg(Type::pred, byRows ? "row_in" : "col_in");
            b("setp.gt.s32", in, linesLeft, byRows ? slow : slow + half);
          }
          guard[half] = b.reg(Type::pred, "in");
          b("setp.gt.and.s32", guard[half], left, byRows ? one.col + half : one.row, in);
        }
        line = slow;
        if (c)
          bring(one, path, *c);
        if ((index + 1) % step == 0 || index + 1 == order.size())
          for (size_t done = index / step * step; done <= index; ++done)
            put(order[done], path, d);
      }
    }

    void bring(Pair &one, const Path &path, Walks &c) {
      const Val(&guard)[2] = one.guards;
      const TensorView &t = *e.c;
      if (path.pairs && rowOrder(t) && t.align >= 2 * t.elemBytes()) {
        std::tie(one.c[0], one.c[1]) = loadPairOfC(c.at(one.row, one.col, 0), guard[0]);
        return;
      }
      one.c[0] = e.loadC(c.at(one.row, one.col, 0), guard[0]);
      one.c[1] = e.loadC(c.at(one.row, one.col, 1), path.pairs ? guard[0] : guard[1]);
    }

    std::pair<Val, Val> elementsOf(const Pair &one) {
      if (one.c[1].isReg())
        return {one.c[0], one.c[1]};
      Val low = b.reg(Type::b16, "c"), high = b.reg(Type::b16, "c");
      b("mov.b32", Val(std::vector<Val>{low, high}), one.c[0]);
      return {low, high};
    }

    void put(const Pair &one, const Path &path, Walks &d) {
      const Val(&guard)[2] = one.guards;
      if (isRaw(path.pairs, path.readC)) {
        Place place = d.at(one.row, one.col, 0);
        if (guard[0].isReg())
          b.when(guard[0]);
        b("st.global.b32", at(place.base, place.offset), packed(one.i, one.j, one.pair));
        return;
      }
      auto [x, y] = scaled(one.i, one.j, one.pair);
      if (path.readC) {
        auto [cx, cy] = elementsOf(one);
        x = e.plusC(x, cx);
        y = e.plusC(y, cy);
      }
      if (path.pairs)
        return putPair(d.at(one.row, one.col, 0), x, y, guard[0]);
      e.put(d.at(one.row, one.col, 0), x, guard[0]);
      e.put(d.at(one.row, one.col, 1), y, guard[1]);
    }
  };

  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  const Op &decl = *kernel.declaration(op.ref("from").name);
  Elements e(*this, op, acc.type);
  const TensorView &d = *e.d, *c = e.c;
  Pairs places;
  for (size_t r = 0; r < acc.map.registers.size(); r += acc.half() ? 1 : 2)
    places.push_back(acc.map.registers[r]);

  b.blank();
  b.comment("D = alpha * A B + beta * C");
  Val row0 = value(op.subject.index[0]), col0 = value(op.subject.index[1]);
  Val tileRow = row0, tileCol = col0;
  // Where this warp's (warpgroup's) part of the tile begins.
  int64_t warpN = decl.item("warp", 1), across = decl.item("tile", 1) / warpN, down = decl.item("tile", 0) / acc.warpM;
  bool alternates = kernel.word("schedule") == "pingpong";
  Val unit = isWgmma ? (variables.count("wg") ? variables["wg"] : divide(warp, 4, "wg")) : warpInSlice();
  Val unitM = down > 1 && !alternates ? divide(unit, across, "unit_m") : Val(0);
  Val unitN = across > 1 && !alternates ? remainder(unit, across, "unit_n") : Val(0);
  row0 = add(row0, mul(unitM, acc.warpM, "unit_row"), "row0");
  col0 = add(add(col0, mul(unitN, warpN, "unit_col"), "col0"), ownColumn, "col0");
  if (isWgmma)
    row0 = add(row0, mul(remainder(warp, 4, "warp_in_group"), 16, "warp_row"), "row0");
  row0 = add(row0, laneSum(acc.map.line, "lane_row"), "row0");
  col0 = add(col0, laneSum(acc.map.depth, "lane_col"), "col0");

  Writer writer{*this, b, e, acc, places, row0, col0, {}, {}};
  // Here, because all paths use them and the first one must not be the only one that defines them.
  writer.pitches.of(d);
  if (c)
    writer.pitches.of(*c);
  int64_t tileM = decl.item("tile", 0), tileN = decl.item("tile", 1);
  bool inside = covers(d.rows, tileM * clusterM) && covers(d.cols, tileN * clusterN);
  bool pairs = d.order == Order::row && d.align >= 2 * d.elemBytes();
  bool evenCols = covers(d.cols, 2);

  Val end = b.label("stored"), edge = b.label("edge_tile");
  if (slices > 1) { // the sums are in the warps of slice 0
    Val others = b.reg(Type::pred, "others");
    b("setp.ne.u32", others, slice(), 0);
    b.when(others)("bra", end);
  }
  auto paths = [&](bool readC) {
    if (inside)
      return writer.all({false, pairs, readC});
    Val part = b.label(readC ? "edge_with_c" : "edge");
    Val out = b.reg(Type::pred, "outside");
    b("setp.gt.u32", out, inRegister(add(tileRow, tileM, "tile_end_m"), "tile_end_m"), value(d.rows));
    b.when(out)("bra", part);
    Val outN = b.reg(Type::pred, "outside");
    b("setp.gt.u32", outN, inRegister(add(tileCol, tileN, "tile_end_n"), "tile_end_n"), value(d.cols));
    b.when(outN)("bra", part);
    writer.all({false, pairs, readC});
    b("bra", end);
    b.place(part);
    writer.rowsLeft = binary("sub.s32", inRegister(value(d.rows), "rows"), row0, "rows_left");
    writer.colsLeft = binary("sub.s32", inRegister(value(d.cols), "cols"), col0, "cols_left");
    writer.all({true, pairs && evenCols, readC});
  };
  if (!c) {
    paths(false);
  } else if (e.fixedBeta) {
    paths(true);
  } else {
    b.comment("beta is zero: C is not read");
    Val isZero = b.reg(Type::pred, "beta_is_zero"), withC = b.label("with_c");
    compareBeta("eq", isZero);
    b.unless(isZero)("bra", withC);
    paths(false);
    b("bra", end);
    b.place(withC);
    paths(true);
  }
  b.place(end);
}

} // namespace gemmc
