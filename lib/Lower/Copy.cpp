#include "Lowering.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace gemmc {

/// All threads of the CTA copy: thread t takes unit t, t + threads, ... of the tile, row by row, so that a warp reads
/// whole rows. What lies beyond the tensor becomes zero: cp.async by its source size, ld by a predicate.
struct Lowering::ThreadCopy {
  Lowering &l;
  ptx::Builder &b;
  const TensorView &tensor;
  const SharedView &shared;
  const SharedTile &tile;
  Expr startRow, startCol; ///< Of the tile, in the tensor's own rows (contiguous runs).
  Expr tensorRows, tensorCols;
  bool async, guardRows, guardCols;
  bool straddles = false;           ///< cp.async: units may lie across the end of a row.
  int64_t threads, elem, bytes = 0; ///< bytes: of a unit.
  int64_t perRow = 0, total = 0, rounds = 0;
  /// The threads divide evenly among the units of a row: each keeps its column, its rows advance by `rowStep`.
  bool even = false;
  int64_t rowStep = 0;
  /// Rows longer than the threads reach at once are copied in so many column blocks, one after the other.
  int64_t blocks = 1, block = 0;
  int64_t period = 1;      ///< Rounds until the XOR repeats.
  std::vector<Val> places; ///< In shared memory, of the first `period` rounds.
  Val stage, when, rowBytes, stepBytes;

  /// Where a unit goes to and comes from; how many rows of the tensor are left there; the bytes of it that lie inside.
  struct Place {
    Val to, from, rowsLeft, bytesInside, colInside;
    int64_t toOffset = 0, fromOffset = 0;
  };
  /// A value on its way through registers.
  struct Pending {
    Val to, data, inTile;
    int64_t toOffset;
  };
  std::vector<Pending> pending;

  ThreadCopy(Lowering &lowering, const Op &op, const TensorView &tensor, const SharedView &shared, Val when)
      : l(lowering), b(lowering.b), tensor(tensor), shared(shared), tile(shared.tile), when(std::move(when)) {
    bool rowOrder = tensor.order == Order::row;
    const auto &start = op.ref("from").index;
    startRow = start[rowOrder ? 0 : 1];
    startCol = start[rowOrder ? 1 : 0];
    tensorRows = rowOrder ? tensor.rows : tensor.cols;
    // Packed elements are copied as the bytes that hold them; the plan sees to it that lines are whole bytes.
    int64_t each = perByte(tensor.type);
    startCol = inBytes(startCol, each);
    tensorCols = inBytes(rowOrder ? tensor.cols : tensor.rows, each);
    threads = l.kernel.number("threads");
    elem = tensor.elemBytes();
    async = op.word("via") == "cp_async";
    // The tile's extent along its rows, without the padding of the layout.
    int64_t cols = l.kernel.declaration(op.subject.name)->item("extent", tile.kMajor ? 1 : 0) / each;
    guardRows = !covers(tensorRows, tile.rows);
    guardCols = !covers(tensorCols, cols);
    chooseUnits(op.number("bytes"), cols);
    stage = l.stageAddress(shared, op.subject, "to_" + op.subject.name);
    choosePitch();
  }

  /// Elements as bytes that hold `each` of them: `kt * 64` of two a byte is `kt * 32`.
  static Expr inBytes(const Expr &elements, int64_t each) {
    if (elements.kind() == Expr::Mul && elements.rhs().isConst() && elements.rhs().constant() % each == 0)
      return elements.lhs() * (elements.rhs() / Expr(each));
    return elements / Expr(each);
  }

  void chooseUnits(int64_t wanted, int64_t cols) {
    bytes = wanted;
    // A load through registers is all or nothing: units that may straddle the edge shrink to elements.
    if (!async && guardCols && !covers(tensorCols, bytes / elem))
      bytes = elem;
    while (cols * elem % bytes)
      bytes /= 2;
    straddles = async && guardCols && !covers(tensorCols, bytes / elem);
    perRow = cols * elem / bytes;
    total = perRow * tile.rows;
    rounds = (total + threads - 1) / threads;
    if (perRow > threads && perRow % threads == 0) {
      blocks = perRow / threads;
      total = threads * tile.rows;
      rounds = tile.rows;
    }
    rowStep = blocks > 1 ? 1 : threads % perRow ? 0 : threads / perRow;
    // The rounds of a thread meet whole blocks, or the same rows of each.
    bool blocked = tile.layout == SharedLayout::blocked;
    even = rowStep && (!blocked || rowStep % SharedTile::blockRows == 0 || SharedTile::blockRows % rowStep == 0);
    // After a period of the XOR the places in shared memory repeat, further on.
    const int64_t rows = tile.swizzle.period();
    period = even ? rows / std::gcd(rows, rowStep) : 1;
  }

  void choosePitch() {
    unsigned bits = bitsOf(tensor.type);
    if (tensor.ld.isImm()) {
      rowBytes = tensor.ld.op.imm * bits / 8;
      stepBytes = rowBytes.op.imm * rowStep;
      return;
    }
    rowBytes = b.reg(Type::b64, "row_bytes");
    if (bits > 8)
      b("shl.b64", rowBytes, tensor.ld, llvm::Log2_32(bits / 8));
    else if (bits == 8)
      b("mov.b64", rowBytes, tensor.ld);
    else
      b("shr.u64", rowBytes, tensor.ld, llvm::Log2_32(8 / bits));
    if (!even)
      return;
    stepBytes = b.reg(Type::b64, "step_bytes");
    b("mul.lo.u64", stepBytes, rowBytes, rowStep);
  }

  void run() {
    for (block = 0; block < blocks; ++block)
      runBlock();
    flush();
  }

  void runBlock() {
    places.clear();
    Place place;
    for (int64_t round = 0; round < rounds; ++round) {
      if (round == 0 || !even)
        place = placeOf(round);
      else
        step(place, round);
      Val inTile; // the last round may have fewer units than threads
      if ((round + 1) * threads > total) {
        inTile = b.reg(Type::pred, "in_tile");
        b("setp.lt.u32", inTile, l.add(l.tid, round * threads, "index"), total);
      }
      int64_t row = even ? round * rowStep : 0;
      if (async)
        copyAsync(place, row, inTile);
      else
        load(place, row, inTile);
    }
  }

  Val unitOf(int64_t round) {
    Val index = l.add(l.tid, (blocks > 1 ? block : round) * threads, "index");
    return blocks > 1 ? index : l.remainder(index, perRow, "unit");
  }
  Val rowOf(int64_t round) {
    return blocks > 1 ? Val(round) : l.divide(l.add(l.tid, round * threads, "index"), perRow, "row");
  }

  Place placeOf(int64_t round) {
    Val unit = unitOf(round), row = rowOf(round);
    Place place;
    place.to = l.add(sharedOffset(row, unit), stage, "to");
    // The part that stays the same in all iterations first, so that it leaves the loop.
    Val fixed = l.add64(l.wide(row, rowBytes, "row_offset"), tensor.base, "row_start");
    fixed = l.add64(fixed, l.wide(unit, bytes, "col_offset"), "from");
    Val row0 = l.value(startRow), col0 = l.value(startCol);
    Val rowPart = l.wide(row0, rowBytes, "row0_offset"), colPart = l.wide(col0, elem, "col0_offset");
    bool rowMoves = startRow.uses("kt");
    place.from = l.add64(l.add64(fixed, rowMoves ? colPart : rowPart, "from"), rowMoves ? rowPart : colPart, "from");
    if (guardRows)
      place.rowsLeft = l.binary("sub.s32", l.inRegister(l.value(tensorRows), "row_limit"),
                                l.add(row0, row, "global_row"), "rows_left");
    if (guardCols)
      guardColumn(place, l.add(col0, l.mul(unit, bytes / elem, "col"), "global_col"));
    return place;
  }

  Val sharedOffset(const Val &row, const Val &unit) {
    return l.sharedOffset(tile, row, l.mul(unit, bytes, "byte"), bytes);
  }

  void guardColumn(Place &place, const Val &col) {
    Val left = l.binary("sub.s32", l.inRegister(l.value(tensorCols), "col_limit"), col, "cols_left");
    if (!straddles) {
      place.colInside = b.reg(Type::pred, "col_inside");
      b("setp.gt.s32", place.colInside, left, 0);
      return;
    }
    // max(0, limit - col) elements, at most a unit
    left = l.binary("max.s32", left, 0, "cols_left");
    left = l.binary("min.s32", left, bytes / elem, "cols_left");
    place.bytesInside = l.mul(left, elem, "bytes_left");
  }

  /// The next round's unit: `rowStep` rows further on.
  void step(Place &place, int64_t round) {
    if (places.empty())
      places.push_back(place.to);
    if (round < period) {
      Val offset = sharedOffset(rowOf(round), unitOf(round));
      places.push_back(l.add(offset, stage, "to"));
    }
    place.to = places[round % period];
    place.toOffset = tile.offset(round / period * period * rowStep, 0);
    if (stepBytes.isImm() && place.fromOffset + stepBytes.op.imm < maxOffset)
      place.fromOffset += stepBytes.op.imm;
    else
      place.from = l.add64(place.from, stepBytes, "from");
  }

  Val rowInside(const Place &place, int64_t row) {
    if (!guardRows)
      return {};
    Val p = b.reg(Type::pred, "row_inside");
    b("setp.gt.s32", p, place.rowsLeft, row);
    return p;
  }

  /// The bytes that are read of a unit. All or nothing is a predicate; of a size that ptxas does not know it moves the
  /// address, too, seven instructions a copy: 1000x200x2000 of f64 takes 36.2 us so, 25.3 (H200, 2026-11-30,
  /// docs/hopper-types.md, *f64*).
  Val sourceSize(const Place &place, int64_t row) {
    Val inside = rowInside(place, row);
    Val whole = l.both(inside, place.colInside);
    if (!whole.isReg())
      return place.bytesInside;
    Val size = b.reg(Type::b32, "src_size");
    b("selp.b32", size, straddles ? place.bytesInside : Val(bytes), 0, whole);
    return size;
  }

  void copyAsync(const Place &place, int64_t row, const Val &inTile) {
    Val size = sourceSize(place, row);
    llvm::StringRef mnemonic = bytes == 16 ? "cp.async.cg.shared.global" : "cp.async.ca.shared.global";
    if (Val issues = l.both(inTile, when); issues.isReg())
      b.when(issues);
    Val to = at(place.to, place.toOffset), from = at(place.from, place.fromOffset);
    if (size.isReg())
      b(mnemonic, to, from, bytes, size);
    else
      b(mnemonic, to, from, bytes);
  }

  void load(const Place &place, int64_t row, const Val &inTile) {
    Val inside = l.both(l.both(rowInside(place, row), place.colInside), inTile);
    Val data = zeroed(inside.isReg());
    if (inside.isReg())
      b.when(inside);
    const char *mnemonic = bytes == 1   ? "ld.global.u8"
                           : bytes == 2 ? "ld.global.u16"
                           : bytes == 4 ? "ld.global.u32"
                           : bytes == 8 ? "ld.global.u64"
                                        : "ld.global.v4.u32";
    b(mnemonic, data, at(place.from, place.fromOffset));
    pending.push_back({place.to, data, inTile, place.toOffset});
    // Several loads are on their way before the first store needs its value.
    constexpr size_t inFlight = 8;
    if (pending.size() == inFlight)
      flush();
  }

  /// Registers for a unit; zero when the load may be skipped.
  Val zeroed(bool zero) {
    if (bytes == 16) {
      std::vector<Val> words = b.regs(Type::b32, "data", 4);
      for (const Val &word : words)
        if (zero)
          b("mov.u32", word, 0);
      return Val(words);
    }
    Val data = b.reg(bytes <= 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64, "data"); // a byte in 16 bits
    if (zero)
      b(bytes <= 2 ? "mov.b16" : bytes == 4 ? "mov.b32" : "mov.b64", data, 0);
    return data;
  }

  void flush() {
    const char *mnemonic = bytes == 1   ? "st.shared.u8"
                           : bytes == 2 ? "st.shared.u16"
                           : bytes == 4 ? "st.shared.u32"
                           : bytes == 8 ? "st.shared.u64"
                                        : "st.shared.v4.u32";
    for (const Pending &store : pending) {
      if (store.inTile.isReg())
        b.when(store.inTile);
      b(mnemonic, at(store.to, store.toOffset), store.data);
    }
    pending.clear();
  }
};

void Lowering::copy(const Op &op) {
  const TensorView &tensor = tensors.find(op.ref("from").name)->second;
  const SharedView &shared = buffers.find(op.subject.name)->second;
  if (op.word("via") == "tma")
    return copyByTma(op, tensor, shared);
  Val when = op.has("when") ? condition(op.expr("when")) : Val();
  // A branch would part the main loop into blocks, across which nothing is scheduled: cp.async takes the condition
  // itself.
  if (op.word("via") == "cp_async" || !when.isReg())
    return ThreadCopy(*this, op, tensor, shared, when).run();
  Val end = b.label("copied");
  b.unless(when)("bra", end);
  ThreadCopy(*this, op, tensor, shared, Val()).run();
  b.place(end);
}

} // namespace gemmc
