// CTAs that share the k steps of a tile (split-k, stream-k). Each leaves its part of the sums in the workspace and
// counts itself; whoever comes last adds the parts in their order and stores the tile, or each owner a share of it
// (Gather.cpp). Nobody needs another CTA to have started, so any order of CTAs is good, and the order of the sum is
// always the same.
//
//     workspace   counters of all tiles, one for each consumer warpgroup (where there are no roles one), zero when the
//                 kernel starts and when it ends
//                 slots of one block tile each, as the registers lie of those who multiply: 16 bytes a thread, threads
//                 side by side
//
// Of a batch they are those of all products, whose tiles stand in one row of numbers.
//
// Slices may meet in clusters first (Exchange.cpp): then each CTA of one has a share of the tile's columns, which is
// counted, and has its slots, like a tile of its own.
#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t slotAlign = 256;
Expr atLeastOne(const Expr &e) { return maxOf(1, e); }
} // namespace

bool Lowering::isStream(const Op &tiles) { return tiles.word("parts") == "stream_k"; }

Expr Lowering::stepCount() const { return ceilDiv(kernel.root.expr("k"), kernel.root.item("block", 2)); }

int64_t Lowering::slotBytes() const {
  const Op &acc = *kernel.declaration("acc");
  const int64_t warpN = acc.item("warp", 1), stored = clusterK > 1 ? storedColumns().each : warpN;
  return acc.item("tile", 0) * acc.item("tile", 1) / warpN * stored * int64_t(bytesOf(*parseElem(acc.word("type"))));
}
Expr Lowering::countersEnd() const { return ceilDiv(counterCount() * counterBytes, slotAlign) * slotAlign; }

/// Defines tm, tn, kf and kn for one part after the other; `parts` remembers which one it is. Parts are a CTA's, or a
/// cluster's, whose CTAs each have a tile of their own.
void Lowering::tilesInParts(const Op &op) {
  const bool clustered = clusterSize() > 1;
  const Expr sms = Expr::var("sms"), atATime = atLeastOne(clustered ? sms / clusterSize() : sms);
  Expr slots = isStream(op) ? minOf(tileCount() * atLeastOne(stepCount()), atATime) * 2
                            : tileCount() * kernel.number("split_slices");
  result.workspace = countersEnd() + slots * slotBytes();
  b.blank();
  auto [countM, countN] = clusterCounts();
  Val tilesM = counted(countM), tilesN = counted(countN);
  Val own = b.reg(Type::b32, clustered ? "cluster" : "cta"), all = b.reg(Type::b32, clustered ? "clusters" : "ctas");
  b("mov.u32", own, b.special(clustered ? "%clusterid.x" : "%ctaid.x"));
  b("mov.u32", all, b.special(clustered ? "%nclusterid.x" : "%nctaid.x"));
  if (isStream(op))
    streamTiles(op, {tilesM, tilesN, own, all}, atATime);
  else
    splitTiles(op, {tilesM, tilesN, own, all}, atATime);
}

/// Part number id / tiles of tile id % tiles, for every id: neighbours read the same steps of k. A cluster counts the
/// tiles of its CTAs, which share what they read, as one; of those along k each has a slice of the part.
void Lowering::splitTiles(const Op &op, const TileGrid &grid, const Expr &atATime) {
  const int64_t slices = kernel.number("split_slices") * clusterK;
  Expr stepsOfPart = atLeastOne(ceilDiv(stepCount(), slices));
  Expr count = atLeastOne(ceilDiv(stepCount(), stepsOfPart * clusterK)); // without steps one that stores
  const int64_t together = clusterSize();
  Expr total = clusterCount() * count;
  bool persistent = kernel.word("persistent") == "on";
  result.kernel.grid[0] = (persistent ? minOf(total, atATime) : total) * together;

  Val steps = value(stepCount()), each = value(stepsOfPart),
      all = mul(tilesOfAll(grid.m, grid.n), value(count), "parts");
  parts.count = value(count);
  Val id = b.reg(Type::b32, "part_id"), next = b.label("part_loop"), end = b.label("parts_done");
  b("mov.u32", id, grid.own);
  Val done = b.reg(Type::pred, "done"), more = b.reg(Type::pred, "more");
  b("setp.ge.u32", done, id, all);
  b.when(done)("bra", end);
  b.place(next);
  Val tiles = tilesOfAll(grid.m, grid.n);
  Val tile = remainder(id, tiles, "tile"), part = divide(id, tiles, "part");
  parts.tile = together > 1 ? add(mul(tile, together, "first_tile"), rank, "own_tile") : tile;
  parts.first = inRegister(mul(parts.tile, parts.count, "first_slot"), "first_slot");
  parts.slot = add(parts.first, part, "slot");
  if (clusterK > 1) {
    placeSlice(add(mul(part, clusterK, "slice_of_k"), rankK, "slice_of_k"), slices);
  } else {
    Val from = mul(part, each, "kf");
    variables["kf"] = from;
    variables["kn"] = binary("min.u32", binary("sub.u32", inRegister(steps, "steps"), from, "steps_left"), each, "kn");
  }
  placeTile(tile, grid.m, grid.n);
  ops(op.body);
  b("add.u32", id, id, grid.all);
  b("setp.lt.u32", more, id, all);
  if (persistent)
    b.when(more)("bra", next);
  b.place(end);
}

/// Steps own * each to (own + 1) * each of the steps of all tiles in a row, by CTAs without clusters. A CTA has parts
/// of two tiles at most: the end of its first one goes to slot 2 own, the beginning of its last one to slot 2 own + 1.
void Lowering::streamTiles(const Op &op, const TileGrid &grid, const Expr &atATime) {
  const Expr placesOfTile = atLeastOne(stepCount()); // without steps one CTA stores
  result.kernel.grid[0] = minOf(tileCount() * placesOfTile, atATime);
  Val steps = value(placesOfTile), all = mul(tilesOfAll(grid.m, grid.n), steps, "steps_of_all");
  Val rounded = add(add(grid.all, -1, "rounded"), all, "rounded");
  Val each = divide(rounded, grid.all, "steps_of_cta");
  Val at = b.reg(Type::b32, "step_at"), stop = b.reg(Type::b32, "step_stop");
  b("mul.lo.u32", at, grid.own, each);
  b("add.u32", stop, at, each);
  b("min.u32", stop, stop, all);
  Val next = b.label("part_loop"), end = b.label("parts_done");
  Val done = b.reg(Type::pred, "done"), more = b.reg(Type::pred, "more");
  b("setp.ge.u32", done, at, stop);
  b.when(done)("bra", end);
  b.place(next);
  Val tile = divide(at, steps, "tile"), begin = inRegister(mul(tile, steps, "tile_begin"), "tile_begin");
  Val from = binary("sub.u32", at, begin, "kf");
  Val left = binary("sub.u32", inRegister(steps, "steps"), from, "steps_left");
  Val count = binary("min.u32", left, binary("sub.u32", stop, at, "own_left"), "kn");
  variables["kf"] = from;
  const bool some = stepCount().isConst() && !stepCount().isConst(0);
  variables["kn"] = some ? count : binary("min.u32", count, value(stepCount()), "kn");
  Val firstCta = divide(begin, each, "first_cta");
  Val lastCta = divide(add(add(begin, steps, "tile_end"), -1, "tile_end"), each, "last_cta");
  parts.tile = tile;
  parts.first = firstCta;
  parts.count = add(binary("sub.u32", lastCta, firstCta, "more_parts"), 1, "parts");
  Val whole = b.reg(Type::pred, "begins"), odd = b.reg(Type::b32, "begins");
  b("setp.eq.u32", whole, from, 0);
  b("selp.b32", odd, 1, 0, whole);
  parts.slot = add(mul(grid.own, 2, "slot"), odd, "slot");
  placeTile(tile, grid.m, grid.n);
  ops(op.body);
  b("add.u32", at, at, count);
  b("setp.lt.u32", more, at, stop);
  b.when(more)("bra", next);
  b.place(end);
}

bool Lowering::gathers() const {
  bool found = false;
  tile::walk(kernel.body(), [&](const Op &op) { found |= op.kind == OpKind::Gather; });
  return found;
}

Expr Lowering::counterCount() const {
  if (countsTiles())
    return 1;
  return gathers() ? tileCount() * countersOfTile() : Expr(0);
}

/// A kernel that runs before this one: the counters start at zero, whatever the workspace held.
void Lowering::clearCounters() {
  constexpr unsigned threads = 256;
  ptx::Function &clear = result.module.functions.emplace_back();
  clear.name = kernel.name().str() + "_clear";
  clear.reqntid = {threads, 1, 1};
  Expr counters = counterCount();
  ptx::KernelInfo info;
  info.name = clear.name;
  info.block = {threads, 1, 1};
  info.readies = 1; // counters end where they began
  info.grid[0] = ceilDiv(counters, threads);
  addParam(clear, info, {ptx::ParamInfo::Pointer, "workspace_ptr", Type::u64, "workspace", 0});
  addParam(clear, info, {ptx::ParamInfo::Int, "counters", Type::u32, "", counters});

  ptx::Builder c(clear);
  Val thread = c.reg(Type::b32, "tid"), block = c.reg(Type::b32, "cta"), index = c.reg(Type::b32, "index");
  Val count = c.reg(Type::b32, "counters"), beyond = c.reg(Type::pred, "beyond"), end = c.label("end");
  Val raw = c.reg(Type::b64, "workspace_ptr"), base = c.reg(Type::b64, "workspace"), place = c.reg(Type::b64, "place");
  c("mov.u32", thread, c.special("%tid.x"));
  c("mov.u32", block, c.special("%ctaid.x"));
  c("mad.lo.u32", index, block, threads, thread);
  if (isDependent()) {
    waitForKernelInFront(c);
    c("griddepcontrol.launch_dependents");
  }
  c("ld.param.u32", count, at(c.symbol("counters")));
  c("setp.ge.u32", beyond, index, count);
  c.when(beyond)("bra", end);
  c("ld.param.u64", raw, at(c.symbol("workspace_ptr")));
  c("cvta.to.global.u64", base, raw);
  c("mul.wide.u32", place, index, counterBytes);
  c("add.s64", place, place, base);
  c("st.global.u32", at(place), 0);
  c.place(end);
  c("ret");
  result.before.push_back(std::move(info));
}

} // namespace gemmc
