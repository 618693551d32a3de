// The second half of a staged epilogue: a D tile leaves shared memory line by line, so that neighbouring threads write
// neighbouring addresses of global memory, up to 16 bytes each.
#include "Lowering.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
Val zeroF32() { return ptx::Operand::makeF32(0); }
} // namespace

/// Threads take units of neighbouring elements: thread t takes unit t, t + threads, ... of the tile. A line of the tile
/// is a row of D, or a column where D is in column order. D = alpha * staged + beta * C happens on the way.
struct Lowering::CopyOut {
  Lowering &l;
  ptx::Builder &b;
  const StagedTile &from;
  const TensorView &d, *c;
  std::optional<double> alpha, beta;
  bool byRow;              ///< Lines are rows of D.
  Val line0, col0;         ///< Of the tile's first element, along D's lines.
  bool inward = false;     ///< From global memory to the tile.
  Val linesLeft, colsLeft; ///< Of D from there on; only for tiles at the edge.
  Pitches pitches{b};
  int64_t unit = 1;                ///< Elements of a unit.
  int64_t perLine = 1, rounds = 1; ///< Units of a line; units of a thread.
  /// The threads divide evenly among the units of a line: each keeps its columns, its lines advance by `lineStep`.
  bool even = false;
  int64_t lineStep = 0;
  Val shared0; ///< even: where the thread's first unit is staged.

  struct Unit {
    Val line, col; ///< In the tile.
    Val shared, d, c;
    int64_t sharedOffset = 0, dOffset = 0, cOffset = 0;
    Val inside; ///< Whether there is such a unit; none: surely.
  };

  CopyOut(Lowering &lowering, const Op &op, const StagedTile &from)
      : l(lowering), b(lowering.b), from(from), d(l.tensors.find(op.subject.name)->second),
        c(op.has("c") && !from.finished ? &l.tensors.find(op.ref("c").name)->second : nullptr),
        alpha(from.finished ? 1.0 : fixedScale(op.word("alpha"))), beta(fixedScale(op.word("beta"))),
        byRow(d.order == Order::row), line0(byRow ? from.row0 : from.col0), col0(byRow ? from.col0 : from.row0) {
    begin();
  }
  /// The other way: `from` is filled with what `tensor` holds there.
  CopyOut(Lowering &lowering, const tile::Ref &tensor, const StagedTile &from)
      : l(lowering), b(lowering.b), from(from), d(l.tensors.find(tensor.name)->second), c(nullptr), alpha(1.0),
        beta(0.0), byRow(d.order == Order::row), line0(byRow ? from.row0 : from.col0),
        col0(byRow ? from.col0 : from.row0), inward(true) {
    begin();
  }
  void begin() {
    chooseUnits();
    // Here, because all paths use them and the first one must not be the only one that defines them.
    pitches.of(d);
    if (c)
      pitches.of(*c);
  }

  bool sameOrder() const { return c->order == d.order; }

  void chooseUnits() {
    int64_t element = d.elemBytes(), bytes = 16;
    while (bytes > element && (d.align % bytes || from.length * element % bytes))
      bytes /= 2;
    unit = std::max<int64_t>(1, bytes / element);
    const SharedTile &tile = from.tile;
    const bool swizzled = tile.swizzle.moves();
    while (swizzled && unit * bytesOf(from.type) > 16) // the next 16 bytes lie elsewhere
      unit /= 2;
    perLine = from.length / unit;
    lineStep = from.threads % perLine ? 0 : from.threads / perLine;
    bool steady = !swizzled || llvm::isPowerOf2_64(lineStep);
    even = lineStep && steady && (!c || sameOrder());
    rounds = even ? llvm::divideCeil(from.lines, lineStep) : llvm::divideCeil(from.lines * perLine, from.threads);
  }

  // Places -----------------------------------------------------------------------------------------------------------

  Val globalAt(const TensorView &t, const Val &line, const Val &col) {
    Val alongLine = l.add(col0, col, "col"), acrossLines = l.add(line0, line, "line");
    if (t.order != d.order)
      std::swap(alongLine, acrossLines);
    Val start = l.add64(l.wide(acrossLines, pitches.of(t), "line_offset"), t.base, t.buffer + "_line");
    return l.add64(start, l.wide(alongLine, t.elemBytes(), "col_offset"), t.buffer + "_unit");
  }

  Unit unitAt(const Val &line, const Val &number) {
    Unit u;
    u.line = line;
    u.col = l.mul(number, unit, "unit_col");
    Val byte = l.mul(number, unit * bytesOf(from.type), "unit_byte");
    u.shared = l.add(l.sharedOffset(from.tile, line, byte, sharedAccess()), from.address, "staged");
    u.d = globalAt(d, line, u.col);
    if (c)
      u.c = globalAt(*c, line, u.col);
    return u;
  }

  void advance(const TensorView &t, Val &base, int64_t &offset) {
    Val pitch = pitches.of(t);
    if (pitch.isImm() && offset + pitch.op.imm * lineStep < maxOffset)
      offset += pitch.op.imm * lineStep;
    else
      base = l.add64(base, pitches.of(t, lineStep), t.buffer + "_unit");
  }

  Unit first() {
    Unit u = unitAt(l.divide(from.thread, perLine, "unit_line"), l.remainder(from.thread, perLine, "unit"));
    shared0 = u.shared;
    return u;
  }

  Unit next(const Unit &last, int64_t round) {
    Unit u = last;
    if (!even) {
      Val index = l.add(from.thread, round * from.threads, "unit_index");
      u = unitAt(l.divide(index, perLine, "unit_line"), l.remainder(index, perLine, "unit"));
    } else if (round > 0) {
      u.sharedOffset += lineStep * from.tile.pitch;
      // A thread's first line is below lineStep, a power of two where the tile is swizzled: no carry, so the lines' xor
      // is the xor of both.
      int64_t key = from.tile.xorOf(round * lineStep) * 16;
      u.shared = key ? l.binary("xor.b32", shared0, key, "staged") : shared0;
      advance(d, u.d, u.dOffset);
      if (c)
        advance(*c, u.c, u.cOffset);
    }
    u.inside = {};
    int64_t last0 = even ? (round + 1) * lineStep : (round + 1) * from.threads;
    int64_t all = even ? from.lines : from.lines * perLine;
    if (last0 > all) { // the last round may have fewer units than threads
      u.inside = b.reg(Type::pred, "unit_exists");
      b("setp.lt.u32", u.inside,
        l.inRegister(even ? l.add(u.line, round * lineStep, "unit_line")
                          : l.add(from.thread, round * from.threads, "unit_index"),
                     "unit_index"),
        all);
    }
    return u;
  }

  // Values -----------------------------------------------------------------------------------------------------------

  static Val some(const std::vector<Val> &regs, size_t at, size_t count) {
    if (count == 1)
      return regs[at];
    return Val(std::vector<Val>(regs.begin() + at, regs.begin() + at + count));
  }

  static Type registerOf(Elem type) {
    return type == Elem::f64 ? Type::f64 : type == Elem::f32 ? Type::f32 : Type::b32;
  }
  static llvm::StringRef wordOf(Type type) {
    return type == Type::f64 ? "f64" : type == Type::f32 ? "f32" : type == Type::b16 ? "b16" : "b32";
  }
  static Val zeroOf(Type type) {
    return type == Type::f64 ? Val(ptx::Operand::makeF64(0)) : type == Type::f32 ? zeroF32() : Val(0);
  }

  /// `count` registers from memory, `access` bytes at a time; zero where `guard` forbids.
  std::vector<Val> fetch(llvm::StringRef stem, const Val &address, int64_t offset, int64_t count, Type type,
                         int64_t access, const Val &guard) {
    int64_t bytes = type == Type::b16 ? 2 : type == Type::f64 ? 8 : 4;
    int64_t step = std::max<int64_t>(1, std::min(count, access / bytes));
    std::vector<Val> regs = b.regs(type, "part", count);
    for (const Val &reg : regs)
      if (guard.isReg())
        b(("mov." + wordOf(type)).str(), reg, zeroOf(type));
    for (int64_t i = 0; i < count; i += step) {
      if (guard.isReg())
        b.when(guard);
      b(vectorOf(stem, step, wordOf(type)), some(regs, i, step), at(address, offset + i * bytes));
    }
    return regs;
  }

  Val toFloat(const Val &half, Elem type) {
    Val wide = b.reg(Type::f32, "value");
    if (type == Elem::f16) {
      b("cvt.f32.f16", wide, half);
      return wide;
    }
    Val zero = b.reg(Type::b16, "zero");
    b("mov.b16", zero, 0);
    b("mov.b32", wide, Val(std::vector<Val>{zero, half})); // bf16 is the upper half of an f32
    return wide;
  }

  /// `count` elements: halves as f32, all others as they are.
  std::vector<Val> floats(llvm::StringRef stem, const Val &address, int64_t offset, int64_t count, Elem type,
                          int64_t access, const Val &guard = {}) {
    if (bytesOf(type) > 2)
      return fetch(stem, address, offset, count, registerOf(type), access, guard);
    std::vector<Val> values;
    if (count == 1 || access < 4) {
      for (const Val &half : fetch(stem, address, offset, count, Type::b16, access, guard))
        values.push_back(toFloat(half, type));
      return values;
    }
    for (const Val &word : fetch(stem, address, offset, count / 2, Type::b32, access, guard)) {
      std::vector<Val> halves = b.regs(Type::b16, "half", 2);
      b("mov.b32", Val(halves), word);
      values.push_back(toFloat(halves[0], type));
      values.push_back(toFloat(halves[1], type));
    }
    return values;
  }

  int64_t sharedAccess() const { return std::min<int64_t>(16, unit * bytesOf(from.type)); }
  int64_t cAccess() const {
    int64_t bytes = 16;
    while (bytes > c->elemBytes() && (c->align % bytes || unit * c->elemBytes() % bytes))
      bytes /= 2;
    return bytes;
  }

  /// The unit's elements of C; `guards`: one for all of them or one for each.
  std::vector<Val> loadC(const Unit &u, llvm::ArrayRef<Val> guards) {
    if (sameOrder() && guards.size() <= 1)
      return floats("ld.global", u.c, u.cOffset, unit, c->type, cAccess(), guards.empty() ? Val() : guards[0]);
    std::vector<Val> values;
    Val address = u.c, step = sameOrder() ? Val(c->elemBytes()) : pitches.of(*c);
    for (int64_t e = 0; e < unit; ++e) {
      Val guard = guards.empty() ? Val() : guards.size() == 1 ? guards[0] : guards[e];
      values.push_back(floats("ld.global", address, u.cOffset, 1, c->type, c->elemBytes(), guard)[0]);
      address = l.add64(address, step, c->buffer + "_element");
    }
    return values;
  }

  // Sums are scaled in their own type; those in f16 as f32.
  bool isF64() const { return from.type == Elem::f64; }
  bool isS32() const { return from.type == Elem::s32; }

  /// alpha * x + beta * c.
  Val finished(Val x, const std::vector<Val> &added, size_t e) {
    Type type = isF64() ? Type::f64 : isS32() ? Type::b32 : Type::f32;
    const char *fma = isF64() ? "fma.rn.f64" : isS32() ? "mad.lo.s32" : "fma.rn.f32";
    if (!alpha || *alpha != 1) {
      Val scaled = b.reg(type, "x");
      // Plus zero, so that a negative alpha times an empty sum is +0 and not -0.
      b(fma, scaled, x, l.factorInRegister(alpha, l.alpha, from.type), zeroOf(type));
      x = scaled;
    }
    if (added.empty())
      return x;
    Val sum = b.reg(type, "x");
    b(fma, sum, added[e], l.factorInRegister(beta, l.beta, from.type), x);
    return sum;
  }

  /// The unit as it goes to memory: one register for each 4 bytes (or one of 2).
  std::vector<Val> packed(const std::vector<Val> &values) {
    if (d.elemBytes() > 2)
      return values;
    llvm::StringRef type = d.type == Elem::f16 ? "f16" : "bf16";
    std::vector<Val> words;
    if (values.size() == 1) {
      words.push_back(b.reg(Type::b16, "d"));
      b(("cvt.rn." + type + ".f32").str(), words[0], values[0]);
    }
    for (size_t e = 0; e + 1 < values.size(); e += 2) {
      words.push_back(b.reg(Type::b32, "d"));
      b(("cvt.rn." + type + "x2.f32").str(), words.back(), values[e + 1], values[e]);
    }
    return words;
  }

  void put(const Val &address, int64_t offset, const std::vector<Val> &words, const Val &guard) {
    bool half = d.elemBytes() == 2 && singles;
    if (guard.isReg())
      b.when(guard);
    b(vectorOf("st.global", words.size(), half ? "b16" : wordOf(registerOf(d.type))), at(address, offset),
      some(words, 0, words.size()));
  }
  bool singles = false; ///< Elements are written one by one.

  // Paths ------------------------------------------------------------------------------------------------------------

  /// No arithmetic is left: words go through as they are.
  bool plain() const { return from.type == d.type && alpha && *alpha == 1 && !c && unit * d.elemBytes() >= 4; }

  void one(const Unit &u, const std::vector<Val> &added, const Val &guard) {
    singles = unit == 1;
    if (inward)
      return bring(u, guard);
    if (plain()) {
      int64_t words = d.elemBytes() == 2 ? unit / 2 : unit;
      put(u.d, u.dOffset, fetch("ld.shared", u.shared, u.sharedOffset, words, registerOf(d.type), sharedAccess(), {}),
          guard);
      return;
    }
    std::vector<Val> values = floats("ld.shared", u.shared, u.sharedOffset, unit, from.type, sharedAccess());
    for (size_t e = 0; e < values.size(); ++e)
      values[e] = finished(values[e], added, e);
    put(u.d, u.dOffset, packed(values), guard);
  }

  /// The unit's registers, of the tensor's own type.
  Type unitType() const { return d.elemBytes() == 2 && unit == 1 ? Type::b16 : registerOf(d.type); }
  int64_t unitRegisters() const { return d.elemBytes() == 2 && unit > 1 ? unit / 2 : unit; }
  void putShared(const Unit &u, const std::vector<Val> &regs, int64_t offset, Type type) {
    b(vectorOf("st.shared", regs.size(), wordOf(type)), at(u.shared, u.sharedOffset + offset),
      some(regs, 0, regs.size()));
  }
  void bring(const Unit &u, const Val &guard) {
    putShared(u, fetch("ld.global", u.d, u.dOffset, unitRegisters(), unitType(), unit * d.elemBytes(), guard), 0,
              unitType());
  }
  void bringSingles(const Unit &u, llvm::ArrayRef<Val> guards) {
    Type type = d.elemBytes() == 2 ? Type::b16 : registerOf(d.type);
    for (int64_t e = 0; e < unit; ++e) {
      int64_t offset = e * d.elemBytes();
      putShared(u, fetch("ld.global", u.d, u.dOffset + offset, 1, type, d.elemBytes(), guards[e]), offset, type);
    }
  }
  /// Zeros in the whole tile.
  void clear() {
    Unit u = even ? first() : Unit();
    for (int64_t round = 0; round < rounds; ++round) {
      u = next(u, round);
      std::vector<Val> zeros = b.regs(unitType(), "zero", unitRegisters());
      for (const Val &zero : zeros)
        b(("mov." + wordOf(unitType())).str(), zero, zeroOf(unitType()));
      if (u.inside.isReg())
        b.when(u.inside);
      putShared(u, zeros, 0, unitType());
    }
  }

  /// The whole tile lies inside D.
  void all(bool readC) {
    const TensorView *given = c;
    if (!readC)
      c = nullptr;
    // C and D may be the same memory: what is loaded together must be loaded before what is stored in between.
    constexpr int64_t batch = 4;
    Unit u = even ? first() : Unit();
    for (int64_t round = 0; round < rounds;) {
      std::vector<Unit> units;
      std::vector<std::vector<Val>> added;
      for (int64_t i = 0; i < batch && round < rounds; ++i, ++round) {
        u = next(u, round);
        units.push_back(u);
        added.push_back(readC ? loadC(u, u.inside.isReg() ? llvm::ArrayRef<Val>(u.inside) : llvm::ArrayRef<Val>())
                              : std::vector<Val>());
      }
      for (size_t i = 0; i < units.size(); ++i)
        guarded(units[i], added[i]);
    }
    c = given;
  }
  /// A unit that is not there is not read from shared memory either: it may lie beyond.
  void guarded(const Unit &u, const std::vector<Val> &added) {
    if (!u.inside.isReg())
      return one(u, added, {});
    Val skip = b.label("no_unit");
    b.unless(u.inside)("bra", skip);
    one(u, added, {});
    b.place(skip);
  }

  /// A tile across the edge of D: a loop over the units, whose elements are looked at one by one unless the edge is
  /// known to lie between units.
  void edge(bool readC) {
    const TensorView *given = c;
    if (!readC)
      c = nullptr;
    Val index = b.reg(Type::b32, "unit_index"), again = b.label("edge_units"), skip = b.label("beyond");
    Val lineIn = b.reg(Type::pred, "line_in"), more = b.reg(Type::pred, "more");
    Val done = b.label("edge_done");
    b("mov.u32", index, from.thread);
    int64_t total = from.lines * perLine;
    if (total < from.threads) {
      b("setp.ge.u32", more, index, total);
      b.when(more)("bra", done);
    }
    b.place(again);
    Val line = l.divide(index, perLine, "unit_line");
    b("setp.le.s32", lineIn, linesLeft, line);
    b.when(lineIn)("bra", skip);
    Unit u = unitAt(line, l.remainder(index, perLine, "unit"));
    Val left = l.binary("sub.s32", colsLeft, u.col, "cols_left");
    atEdge(u, left, readC);
    b.place(skip);
    b("add.u32", index, index, from.threads);
    b("setp.lt.u32", more, index, total);
    b.when(more)("bra", again);
    b.place(done);
    c = given;
  }
  void atEdge(const Unit &u, const Val &left, bool readC) {
    std::vector<Val> guards;
    bool whole = covers(byRow ? d.cols : d.rows, unit);
    for (int64_t e = 0; e < (whole ? 1 : unit); ++e) {
      guards.push_back(b.reg(Type::pred, "in"));
      b("setp.gt.s32", guards.back(), left, e);
    }
    std::vector<Val> added = readC ? loadC(u, guards) : std::vector<Val>();
    if (whole)
      return one(u, added, guards[0]);
    if (inward)
      return bringSingles(u, guards);
    singles = true;
    std::vector<Val> values = floats("ld.shared", u.shared, u.sharedOffset, unit, from.type, sharedAccess());
    for (int64_t e = 0; e < unit; ++e)
      put(u.d, u.dOffset + e * d.elemBytes(), packed({finished(values[e], added, e)}), guards[e]);
  }

  /// With edges in sight the tile asks where it lies.
  void paths(bool readC, bool inside, const Val &end) {
    if (inside)
      return all(readC);
    Val part = b.label(readC ? "edge_with_c" : "edge");
    auto leaves = [&](const Val &start, int64_t size, const Expr &extent) {
      Val outside = b.reg(Type::pred, "outside");
      b("setp.gt.u32", outside, l.inRegister(l.add(start, size, "tile_end"), "tile_end"), l.value(extent));
      b.when(outside)("bra", part);
    };
    const Expr &lineExtent = byRow ? d.rows : d.cols, &colExtent = byRow ? d.cols : d.rows;
    leaves(line0, from.lines, lineExtent);
    leaves(col0, from.length, colExtent);
    all(readC);
    b("bra", end);
    b.place(part);
    linesLeft = l.binary("sub.s32", l.inRegister(l.value(lineExtent), "lines"), line0, "lines_left");
    colsLeft = l.binary("sub.s32", l.inRegister(l.value(colExtent), "cols"), col0, "cols_left");
    edge(readC);
  }

  void run(const Val &end) {
    bool inside = l.tilesCover(d);
    if (!c || beta) {
      paths(c != nullptr, inside, end);
      b.place(end);
      return;
    }
    b.comment("beta is zero: C is not read");
    Val isZero = b.reg(Type::pred, "beta_is_zero"), withC = b.label("with_c");
    l.compareBeta("eq", isZero);
    b.unless(isZero)("bra", withC);
    paths(false, inside, end);
    b("bra", end);
    b.place(withC);
    paths(true, inside, end);
    b.place(end);
  }
};

void Lowering::copyOut(const Op &store, const StagedTile &from) { CopyOut(*this, store, from).run(b.label("stored")); }

StagedTile Lowering::warpTile(const SharedView &view, const tile::Ref &ref, const AccumulatorView &acc,
                              const Op &decl) {
  int64_t across = decl.item("tile", 1) / acc.warpN, down = decl.item("tile", 0) / acc.warpM;
  Val unitM = down > 1 ? divide(warpInSlice(), across, "unit_m") : Val(0);
  Val unitN = across > 1 ? remainder(warpInSlice(), across, "unit_n") : Val(0);
  return {view.tile,
          0,
          0,
          acc.type,
          false,
          stageAddress(view, ref, "stage"),
          {},
          0,
          mul(unitM, acc.warpM, "unit_row"),
          mul(unitN, acc.warpN, "unit_col")};
}

/// Each warp of slice 0 puts its part of the tile where it belongs.
void Lowering::stage(const Op &op) {
  const SharedView &view = buffers.find(op.subject.name)->second;
  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  const Op &decl = *kernel.declaration(op.ref("from").name);
  Val end = b.label("staged");
  b.blank();
  b.comment("the sums become a tile in shared memory");
  if (slices > 1) {
    Val others = b.reg(Type::pred, "others");
    b("setp.ne.u32", others, slice(), 0);
    b.when(others)("bra", end);
  }
  StagedTile to = warpTile(view, op.subject, acc, decl);
  if (isWmma)
    wmmaStage(to, acc);
  else
    mmaStage(to, acc);
  b.place(end);
}

/// The tile of D in `name`, as all threads of the CTA see it; `at`: its place in the tensor.
StagedTile Lowering::wholeTile(const tile::Ref &ref, const tile::Ref &at, bool finished) {
  const SharedView &view = buffers.find(ref.name)->second;
  const Op &decl = *kernel.declaration(ref.name);
  int64_t rows = decl.item("extent", 0), cols = decl.item("extent", 1);
  bool byRow = view.tile.kMajor;
  return {view.tile,
          byRow ? rows : cols,
          byRow ? cols : rows,
          *parseElem(decl.word("type")),
          finished,
          stageAddress(view, ref, "stage"),
          tid,
          kernel.number("threads"),
          value(at.index[0]),
          value(at.index[1])};
}

/// With beta 0, C may hold anything and is not read.
void Lowering::bring(const Op &op) {
  b.blank();
  b.comment("C into shared memory, line by line");
  StagedTile to = wholeTile(op.subject, op.ref("from"), true);
  CopyOut copy(*this, op.ref("from"), to);
  Val end = b.label("brought");
  if (op.word("beta") == "dynamic") {
    Val reads = b.label("reads_c"), isZero = b.reg(Type::pred, "beta_is_zero");
    compareBeta("eq", isZero);
    b.unless(isZero)("bra", reads);
    copy.clear();
    b("bra", end);
    b.place(reads);
  }
  copy.run(end);
}

void Lowering::storeStaged(const Op &op) {
  b.blank();
  b.comment("D = alpha * A B + beta * C, line by line");
  copyOut(op, wholeTile(op.ref("from"), op.subject, false));
}

} // namespace gemmc
