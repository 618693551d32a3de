// Tiles by a counter (scheduler `dynamic`): a CTA begins with the tile of its own number; each further one is the next
// that no CTA has taken. One lane of the producer takes them, a tile ahead of the one whose copies it starts, and hands
// the numbers to the consumers through a ring in shared memory. A number behind the last tile is the end.
//
// Each CTA takes as often as it computes tiles (the last time in vain), so all of them together take as often as there
// are tiles: the counter wraps around there and is zero again when the kernel ends.
#include "Lowering.h"

namespace gemmc {

struct Lowering::TileRing {
  Val id, total, tilesM, tilesN; ///< The present tile's number; tiles in all and along m and n.
  tile::Ref slot, full, free;
  Val place(Lowering &l) const { return l.stageAddress(l.buffers.find(slot.name)->second, slot, "tile_slot"); }
  llvm::StringRef cursor() const { return slot.index[0].name(); }
};

void Lowering::tilesByCounter(const Op &op) {
  auto [countM, countN] = clusterCounts();
  result.kernel.grid[0] = minOf(clusterCount(), maxOf(1, Expr::var("sms")));
  constexpr int64_t counterPlace = 256; // bytes of the workspace, where alignment begins anew
  result.workspace = counterPlace;
  b.blank();
  Val tilesM = value(countM), tilesN = value(countN), id = b.reg(Type::b32, "tile");
  bool gives = op.has("gives");
  TileRing ring{id,
                tilesOfAll(tilesM, tilesN),
                tilesM,
                tilesN,
                op.ref(gives ? "gives" : "takes"),
                op.ref("full"),
                op.ref("free")};
  gives ? giveTiles(op, ring) : takeTiles(op, ring);
}

void Lowering::giveTiles(const Op &op, const TileRing &ring) {
  auto give = [&] {
    wait(Op(OpKind::Wait, ring.free));
    b("st.shared.u32", at(ring.place(*this)), ring.id);
    b("mbarrier.arrive.shared::cta.b64", b.sink(), at(barrierAddress(ring.full, ring.full.name)));
    advance(Op(OpKind::Advance, ring.cursor()));
  };
  Val grid = b.reg(Type::b32, "tile_step"), last = inRegister(add(ring.total, -1, "last_tile"), "last_tile");
  b("mov.u32", ring.id, b.special("%ctaid.x"));
  b("mov.u32", grid, b.special("%nctaid.x"));
  Val next = b.label("tile_loop"), end = b.label("tiles_done");
  b.place(next);
  give();
  Val done = b.reg(Type::pred, "done"), taken = b.reg(Type::b32, "taken");
  b("setp.ge.u32", done, ring.id, ring.total);
  b.when(done)("bra", end);
  b.comment("the next tile's number arrives while this one's copies are started");
  b("atom.relaxed.gpu.global.inc.u32", taken, at(variables["workspace_ptr"]), last);
  placeTile(ring.id, ring.tilesM, ring.tilesN);
  ops(op.body);
  b("add.u32", ring.id, taken, grid);
  b("bra", next);
  b.place(end);
  if (kernel.word("schedule") == "pingpong") { // the other consumer waits for an end of its own
    b.blank();
    give();
  }
}

/// One lane of a warp reads the number for all; it also says that it has. An elected lane is alone.
void Lowering::takeTiles(const Op &op, const TileRing &ring) {
  Op step(OpKind::Advance, ring.cursor());
  if (op.has("alternate"))
    step.set("by", op.number("alternate"));
  Val next = b.label("tile_loop"), end = b.label("tiles_done");
  Val done = b.reg(Type::pred, "done"), reader, read = ring.id;
  if (!lanesElected) {
    reader = b.reg(Type::pred, "reader"), read = b.reg(Type::b32, "tile_read");
    b("setp.eq.u32", reader, lane, 0);
    b("mov.u32", read, 0);
  }
  auto byReader = [&]() -> ptx::Builder & { return reader.isReg() ? b.when(reader) : b; };
  b.place(next);
  wait(Op(OpKind::Wait, ring.full));
  Val place = ring.place(*this), free = barrierAddress(ring.free, ring.free.name);
  byReader()("ld.shared.u32", read, at(place));
  byReader()("mbarrier.arrive.shared::cta.b64", b.sink(), at(free));
  if (!lanesElected)
    b("shfl.sync.idx.b32", ring.id, read, 0, 31, -1);
  advance(step);
  b("setp.ge.u32", done, ring.id, ring.total);
  b.when(done)("bra", end);
  placeTile(ring.id, ring.tilesM, ring.tilesN);
  ops(op.body);
  b("bra", next);
  b.place(end);
}

} // namespace gemmc
