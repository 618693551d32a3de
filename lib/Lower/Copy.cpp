#include "Lowering.h"

namespace gemmc {

void Lowering::copy(const Op &op) {
  const TensorView &tensor = tensors.find(op.ref("from").name)->second;
  const SharedView &shared = buffers.find(op.subject.name)->second;
  if (op.word("via") == "tma")
    return copyByTma(op, tensor, shared);
  Val when = op.has("when") ? condition(op.expr("when")) : Val();
  // A branch would part the main loop into blocks, across which nothing is scheduled: cp.async takes the condition
  // itself.
  if (op.word("via") == "cp_async" || !when.isReg())
    return copyByThreads(op, tensor, shared, when);
  Val end = b.label("copied");
  b.unless(when)("bra", end);
  copyByThreads(op, tensor, shared, Val());
  b.place(end);
}

namespace {
/// The work of one thread: units of `bytes` at rows `row + i * rowStep` (or computed one by one when the threads do not
/// divide evenly), the same place along the row.
struct Units {
  int64_t bytes, perRow, total, rounds;
  bool even;       ///< Every thread keeps its column, and its rows advance by rowStep.
  int64_t rowStep; ///< Only when even.
};

Units unitsOf(const SharedTile &tile, int64_t extentBytes, int64_t bytes, int64_t threads) {
  Units units;
  units.bytes = bytes;
  units.perRow = extentBytes / bytes;
  units.total = units.perRow * tile.rows;
  units.rounds = (units.total + threads - 1) / threads;
  units.even = threads % units.perRow == 0;
  units.rowStep = units.even ? threads / units.perRow : 0;
  return units;
}
} // namespace

/// All threads of the CTA copy: thread t takes unit t, t + threads, ... of the tile, row by row, so that a warp reads
/// whole rows. What lies beyond the tensor becomes zero: cp.async by its source size, ld by a predicate.
void Lowering::copyByThreads(const Op &op, const TensorView &tensor, const SharedView &shared, const Val &when) {
  const SharedTile &tile = shared.tile;
  const Op &decl = *kernel.declaration(op.subject.name);
  int64_t threads = kernel.number("threads"), elem = tensor.elemBytes();
  int64_t extentCols = decl.item("extent", tile.kMajor ? 1 : 0); // without the padding of the layout
  bool rowOrder = tensor.order == Order::row;
  const Expr &tensorRows = rowOrder ? tensor.rows : tensor.cols, &tensorCols = rowOrder ? tensor.cols : tensor.rows;
  const auto &start = op.ref("from").index;
  const Expr &startRow = start[rowOrder ? 0 : 1], &startCol = start[rowOrder ? 1 : 0];

  bool async = op.word("via") == "cp_async";
  bool guardRows = !covers(tensorRows, tile.rows), guardCols = !covers(tensorCols, extentCols);
  int64_t bytes = op.number("bytes");
  // A load through registers is all or nothing: units that may straddle the edge shrink to elements.
  if (!async && guardCols && !covers(tensorCols, bytes / elem))
    bytes = elem;
  while ((extentCols * elem) % bytes)
    bytes /= 2;
  Units units = unitsOf(tile, extentCols * elem, bytes, threads);

  Val row0 = value(startRow), col0 = value(startCol);
  Val stage = stageAddress(shared, op.subject, "to_" + op.subject.name);
  Val colsLeft, rowLimit;
  if (guardRows)
    rowLimit = inRegister(value(tensorRows), "row_limit");
  Val firstRow, pointer, rowBytes = wide(Val(elem), tensor.ld, "row_bytes"), toFirst;
  if (tensor.ld.isReg()) {
    rowBytes = b.reg(Type::b64, "row_bytes");
    b("shl.b64", rowBytes, tensor.ld, elem == 2 ? 1 : 2);
  } else {
    rowBytes = tensor.ld.op.imm * elem;
  }

  // Loads of several rounds are issued before the first store needs its value.
  struct Pending {
    Val to, data, inside;
  };
  std::vector<Pending> pending;
  auto flush = [&] {
    for (Pending &store : pending) {
      if (store.inside.isReg())
        b.when(store.inside);
      switch (bytes) {
      case 2:
        b("st.shared.u16", at(store.to), store.data);
        break;
      case 4:
        b("st.shared.u32", at(store.to), store.data);
        break;
      case 8:
        b("st.shared.u64", at(store.to), store.data);
        break;
      default:
        b.emit("st.shared.v4.u32", {at(store.to), store.data});
      }
    }
    pending.clear();
  };

  for (int64_t round = 0; round < units.rounds; ++round) {
    Val row, unit, to;
    bool partial = (round + 1) * threads > units.total;
    Val inTile; // the last round may have fewer units than threads
    if (units.even) {
      if (round == 0) {
        unit = remainder(tid, units.perRow, "unit");
        firstRow = divide(tid, units.perRow, "row");
      }
      row = add(firstRow, round * units.rowStep, "row");
    }
    Val index = add(tid, round * threads, "index");
    if (!units.even) {
      unit = remainder(index, units.perRow, "unit");
      row = divide(index, units.perRow, "row");
    } else if (round > 0) {
      unit = remainder(tid, units.perRow, "unit");
    }
    if (partial) {
      inTile = b.reg(Type::pred, "in_tile");
      b("setp.lt.u32", inTile, index, units.total);
    }

    // Shared address: span, row, swizzled chunk, place in the chunk.
    Val byte = mul(unit, bytes, "byte");
    Val chunk = divide(byte, 16, "chunk"), rest = bytes < 16 ? remainder(byte, 16, "rest") : Val(0);
    if (tile.layout == SharedLayout::xor_) {
      Val key = tile.pitch >= 128 ? remainder(row, 8, "key")
                                  : remainder(divide(row, 128 / tile.pitch, "key"), tile.pitch / 16, "key");
      if (!key.isImm(0))
        chunk = binary("xor.b32", inRegister(chunk, "chunk"), key, "chunk");
    }
    to = add(mul(row, tile.pitch, "to"), add(mul(chunk, 16, "to"), rest, "to"), "to");
    to = add(to, stage, "to_" + op.subject.name);

    // Global address: the part that stays the same in all iterations first, so that it leaves the loop.
    Val fixed = add64(wide(row, rowBytes, "row_offset"), tensor.base, "row_start");
    fixed = add64(fixed, wide(unit, bytes, "col_offset"), "from");
    bool rowMoves = startRow.uses("kt"), colMoves = startCol.uses("kt");
    Val rowPart = wide(row0, rowBytes, "row0_offset"), colPart = wide(col0, elem, "col0_offset");
    Val from = rowMoves ? add64(add64(fixed, colPart, "from"), rowPart, "from")
                        : add64(add64(fixed, rowPart, "from"), colPart, "from");
    (void)colMoves;

    // How much of the unit lies inside the tensor.
    Val inside = inTile, size;
    if (guardRows) {
      Val globalRow = add(row0, row, "global_row"), p = b.reg(Type::pred, "row_inside");
      b("setp.lt.u32", p, inRegister(globalRow, "global_row"), rowLimit);
      if (async)
        size = p; // taken up below
      if (inside.isReg() && !async) {
        Val both = b.reg(Type::pred, "inside");
        b("and.pred", both, p, inside);
        inside = both;
      } else if (!async) {
        inside = p;
      }
    }
    Val colBytes = bytes;
    if (guardCols) {
      Val at0 = add(col0, mul(unit, bytes / elem, "col"), "global_col");
      Val limit = inRegister(value(tensorCols), "col_limit");
      if (async) {
        // max(0, limit - col) elements, at most a unit
        Val left = b.reg(Type::b32, "left");
        b("sub.s32", left, limit, at0);
        b("max.s32", left, left, 0);
        b("min.s32", left, left, bytes / elem);
        colBytes = mul(left, elem, "left_bytes");
      } else {
        Val p = b.reg(Type::pred, "col_inside");
        b("setp.lt.u32", p, inRegister(at0, "global_col"), limit);
        if (inside.isReg()) {
          Val both = b.reg(Type::pred, "inside");
          b("and.pred", both, p, inside);
          inside = both;
        } else {
          inside = p;
        }
      }
    }

    if (async) {
      if (size.isReg()) {
        Val chosen = b.reg(Type::b32, "src_size");
        b("selp.b32", chosen, colBytes, 0, size);
        colBytes = chosen;
      }
      llvm::StringRef mnemonic = bytes == 16 ? "cp.async.cg.shared.global" : "cp.async.ca.shared.global";
      Val issues = inTile.isReg() ? inTile : when;
      if (inTile.isReg() && when.isReg()) {
        issues = b.reg(Type::pred, "issues");
        b("and.pred", issues, inTile, when);
      }
      if (issues.isReg())
        b.when(issues);
      if (colBytes.isImm())
        b(mnemonic, at(to), at(from), bytes);
      else
        b(mnemonic, at(to), at(from), bytes, colBytes);
      continue;
    }

    Val data;
    const char *load = bytes == 2   ? "ld.global.u16"
                       : bytes == 4 ? "ld.global.u32"
                       : bytes == 8 ? "ld.global.u64"
                                    : "ld.global.v4.u32";
    if (bytes == 16) {
      std::vector<Val> words = b.regs(Type::b32, "data", 4);
      for (const Val &word : words)
        if (inside.isReg())
          b("mov.u32", word, 0);
      data = Val(words);
    } else {
      data = b.reg(bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64, "data");
      if (inside.isReg())
        b(bytes == 2 ? "mov.b16" : bytes == 4 ? "mov.b32" : "mov.b64", data, 0);
    }
    if (inside.isReg())
      b.when(inside);
    b.emit(load, {data, at(from)});
    pending.push_back({to, data, inTile});
    if (pending.size() == 8)
      flush();
  }
  flush();
}

} // namespace gemmc
