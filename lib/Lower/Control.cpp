#include "Lowering.h"

namespace gemmc {

void Lowering::role(const Op &op) {
  int64_t first = op.item("warps", 0), count = op.item("warps", 1), warps = kernel.number("threads") / 32;
  Val end = b.label(op.subject.name + "_end");
  b.blank();
  b.comment(op.subject.name + ": warps " + llvm::Twine(first) + " to " + llvm::Twine(first + count - 1));
  auto leaveWhen = [&](const char *mnemonic, int64_t bound) {
    Val p = b.reg(Type::pred, "not_" + op.subject.name);
    b(mnemonic, p, warp, bound);
    b.when(p)("bra", end);
  };
  if (first > 0)
    leaveWhen("setp.lt.u32", first);
  if (first + count < warps)
    leaveWhen("setp.ge.u32", first + count);
  if (op.has("regs")) {
    // The kernel starts with an equal share; the producer hands registers over to those who multiply.
    bool gives = op.subject.name == "producer";
    b(gives ? "setmaxnreg.dec.sync.aligned.u32" : "setmaxnreg.inc.sync.aligned.u32", op.number("regs"));
  }
  roleWarp = first;
  roleWarps = count;
  if (isWgmma) {
    Val group = add(warp, -first, "role_warp");
    variables["wg"] = count > 4 ? divide(group, 4, "wg") : Val(0);
  }
  // Ping-pong: consumer 0 has the first turn, which consumer 1 gives it.
  if (op.subject.name == "consumer" && kernel.word("schedule") == "pingpong") {
    Val second = b.reg(Type::pred, "second");
    b("setp.eq.u32", second, variables["wg"], 1);
    b.when(second)("bar.arrive", barriers::turns, 256);
  }
  ops(op.body);
  if (clusterK > 1 && op.subject.name != "consumer")
    leaveCluster();
  b.place(end);
}

void Lowering::tiles(const Op &op) {
  if (op.word("parts") == "cluster")
    placeSlice(rankK, clusterK);
  else if (op.has("parts"))
    return tilesInParts(op);
  else if (op.has("gives") || op.has("takes"))
    return tilesByCounter(op);
  int64_t cluster = clusterSize();
  bool persistent = kernel.word("persistent") == "on";
  auto [countM, countN] = clusterCounts();
  Expr count = clusterCount(), sms = Expr::var("sms");
  result.kernel.grid[0] = persistent ? minOf(count, maxOf(1, sms / cluster)) * cluster : count * cluster;

  b.blank();
  Val tilesM = value(countM), tilesN = value(countN);
  Val id = b.reg(Type::b32, "tile");
  b("mov.u32", id, b.special(cluster > 1 ? "%clusterid.x" : "%ctaid.x"));
  if (!persistent || op.has("first")) {
    placeTile(id, tilesM, tilesN);
    ops(op.body);
    return lateOfLast(op);
  }

  Val total = tilesOfAll(tilesM, tilesN);
  Val step = b.reg(Type::b32, "tile_step");
  b("mov.u32", step, b.special(cluster > 1 ? "%nclusterid.x" : "%nctaid.x"));
  Val stride = step;
  if (op.has("alternate")) {
    Val offset = mul(step, variables["wg"], "tile_offset");
    b("add.u32", id, id, offset);
    stride = mul(step, op.number("alternate"), "tile_stride");
  }
  Val next = b.label("tile_loop"), end = b.label("tiles_done");
  Val done = b.reg(Type::pred, "done");
  b("setp.ge.u32", done, id, total);
  b.when(done)("bra", end);
  for (const Op &inner : op.body)
    if (inner.kind == OpKind::Late)
      beginLate();
  b.place(next);
  placeTile(id, tilesM, tilesN);
  walk = TileWalk{id, step, stride, total, true};
  ops(op.body);
  walk->inside = false;
  rememberTile(); // before its number, which may be its place, goes on
  b("add.u32", id, id, stride);
  Val more = b.reg(Type::pred, "more");
  b("setp.lt.u32", more, id, total);
  b.when(more)("bra", next);
  lateOfLast(op);
  b.place(end);
}

/// In front of the loop: there is no tile before the first one.
void Lowering::beginLate() {
  lateTile = LateTile{b.reg(Type::b32, "late_m"), b.reg(Type::b32, "late_n"), b.reg(Type::pred, "late_exists"), {}};
  b("mov.u32", lateTile->m, 0);
  b("mov.u32", lateTile->n, 0);
  b("setp.ne.u32", lateTile->exists, 0, 0);
  if (!isBatch())
    return;
  lateTile->product = b.reg(Type::b32, "late_index");
  b("mov.u32", lateTile->product, 0);
}

/// At the end of a tile: it is the one before the next.
void Lowering::rememberTile() {
  if (!lateTile)
    return;
  b("mov.u32", lateTile->m, variables["tm"]);
  b("mov.u32", lateTile->n, variables["tn"]);
  if (isBatch())
    b("mov.u32", lateTile->product, variables["product"]);
  b("setp.eq.u32", lateTile->exists, 0, 0);
}

void Lowering::enterLate() {
  variables["tm"] = lateTile->m;
  variables["tn"] = lateTile->n;
  if (isBatch())
    enterProduct(lateTile->product);
}

void Lowering::late(const Op &op) {
  if (!lateTile)
    return; // a CTA has one tile
  Val none = b.label("no_tile_before");
  const auto present = variables;
  const auto matrices = tensors;
  b.unless(lateTile->exists)("bra", none);
  enterLate();
  ops(op.body);
  variables = present;
  tensors = matrices;
  b.place(none);
}

/// Behind the last tile, or the only one, whose place the variables still hold.
void Lowering::lateOfLast(const Op &tiles) {
  if (lateTile) {
    enterLate();
    lateTile.reset();
  }
  for (const Op &inner : tiles.body)
    if (inner.kind == OpKind::Late)
      ops(inner.body);
}

/// Of the CTA's last tile, by the warps that have it: the first thread of a CTA that says so speaks for all of them.
void Lowering::trigger() {
  Val last;
  if (walk && (walk->inside || walk->stride.op != walk->step.op)) {
    last = b.reg(Type::pred, "last_tile");
    Val next = b.reg(Type::b32, "next_tile"),
        bound = walk->inside ? walk->total : add(walk->total, walk->stride, "end");
    b("add.u32", next, walk->id, walk->step);
    b("setp.ge.u32", last, next, bound);
  }
  if (last.isReg())
    b.when(last);
  b("griddepcontrol.launch_dependents");
}

/// Whether ptxas would unroll a loop of products until registers spill: over packed elements any (s4 in 64x64: 94
/// registers, and 240 with 48 bytes spilled), over others one of three to sixteen steps: of 7200 plans for mma 26
/// spilled 4 to 188 bytes so (4096x1024x186 of bf16: 188 bytes, 29 kB of code, and 16 kB). Of f64, whose steps are
/// short, none did. Thirty kernels that say they shall not take 0.987 of the time, 0.92 to 1.06 (H200, 2026-11-30).
bool Lowering::wouldUnroll(const Val &from, const Val &to) const {
  constexpr int64_t few = 2;
  const Op *a = kernel.declaration("sA");
  if (!a || isWgmma)
    return false;
  const Elem type = *parseElem(a->word("type"));
  return perByte(type) > 1 || (type != Elem::f64 && from.isImm() && to.isImm() && to.op.imm - from.op.imm > few);
}

void Lowering::loop(const Op &op) {
  llvm::StringRef name = op.subject.name;
  if (op.has("unroll")) {
    for (int64_t i = op.number("from"); i < op.number("to"); ++i) {
      variables[name] = i;
      ops(op.body);
    }
    return;
  }
  b.blank();
  Val i = b.reg(Type::b32, name), from = value(op.expr("from")), to = value(op.expr("to"));
  b("mov.u32", i, from);
  Val next = b.label((name + "_loop").str()), end = b.label((name + "_done").str());
  bool runs = op.has("runs") || (from.isImm() && to.isImm() && from.op.imm < to.op.imm);
  if (!runs) {
    Val none = b.reg(Type::pred, "none");
    b("setp.ge.u32", none, i, to);
    b.when(none)("bra", end);
  }
  b.place(next);
  if (wouldUnroll(from, to))
    b.pragma("nounroll");
  variables[name] = i;
  ops(op.body);
  b("add.u32", i, i, 1);
  Val more = b.reg(Type::pred, "more");
  b("setp.lt.u32", more, i, to);
  b.when(more)("bra", next);
  b.place(end);
}

void Lowering::elect(const Op &op) {
  Val end = b.label("not_elected");
  if (Val p = op.has("when") ? condition(op.expr("when")) : Val(); p.isReg())
    b.unless(p)("bra", end);
  Val other = b.reg(Type::pred, "other_warp"), elected = b.reg(Type::pred, "elected");
  b("setp.ne.u32", other, warp, roleWarp + op.number("warp"));
  b.when(other)("bra", end);
  b("elect.sync", ptx::pair(b.sink(), elected), -1);
  b.unless(elected)("bra", end);
  lanesElected = true;
  ops(op.body);
  lanesElected = false;
  b.place(end);
}

} // namespace gemmc
