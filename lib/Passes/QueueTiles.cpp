#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// The producer may be as many tiles ahead of the consumers; two consumers in turn have every other slot each.
constexpr int64_t ringSlots = 4;

/// `lanes`: that take tiles beside the consumers' warps.
void declareRing(Kernel &kernel, int64_t lanes) {
  constexpr int64_t words = 4; // of a slot, of which one is used: slots begin at multiples of 16 bytes
  declareShared(kernel, Op(OpKind::Shared, "sT")
                            .set("type", "s32")
                            .set("extent", std::vector<Expr>{1, words})
                            .set("major", "k")
                            .set("stages", ringSlots)
                            .set("swizzle", "rows"));
  int64_t readers = warpsOfGroup * (kernel.word("schedule") == "pingpong" ? 1 : kernel.number("consumers")) + lanes;
  Op given = Op(OpKind::Barrier, "given").set("stages", ringSlots).set("count", 1);
  Op taken = Op(OpKind::Barrier, "taken").set("stages", ringSlots).set("count", readers);
  taken.set("free", "yes");
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Accumulator), {given, taken});
}

/// Turns the tiles of `outer` (an elected lane, or a role) into those that go through the ring.
void throughRing(std::vector<Op> &outer, llvm::StringRef direction) {
  size_t at = indexOf(outer, OpKind::Tiles);
  Expr t = Expr::var("t");
  Op &tiles = outer[at];
  tiles.set(direction, Ref{"sT", {t}}).set("full", Ref{"given", {t}}).set("free", Ref{"taken", {t}});
  bool alternates = tiles.has("alternate");
  outer.insert(outer.begin() + at, cursor("t", ringSlots));
  if (alternates) {
    Op own = advance("t");
    own.set("by", Expr::var("wg"));
    outer.insert(outer.begin() + at + 1, std::move(own));
  }
}
} // namespace

void queueTiles(Kernel &kernel) {
  if (!kernel.root.has("scheduler"))
    return;
  int64_t elected = 0;
  for (Op &role : kernel.body()) {
    if (role.kind != OpKind::Role)
      continue;
    // The first lane of the producer copies operands and is ahead of all; another one brings C.
    for (Op &op : role.body)
      if (op.kind == OpKind::Elect)
        throughRing(op.body, elected++ ? "takes" : "gives");
    if (findIn(role.body, OpKind::Tiles))
      throughRing(role.body, "takes");
  }
  declareRing(kernel, elected - 1);
}
} // namespace gemmc::tile
