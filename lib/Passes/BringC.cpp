#include "Rewrite.h"

namespace gemmc::tile {
namespace {

bool alternates(const Kernel &kernel) { return kernel.word("schedule") == "pingpong"; }

/// A barrier for each buffer of each warpgroup: `brought` when C is in it, `left` when its four warps have stored from
/// it.
void declareBarriersOfC(Kernel &kernel) {
  int64_t buffers = kernel.number("consumers") * kernel.number("store_buffers");
  Op brought = Op(OpKind::Barrier, "brought").set("stages", buffers).set("count", 1);
  Op left = Op(OpKind::Barrier, "left").set("stages", buffers).set("count", warpsOfGroup).set("free", "yes");
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Accumulator), {brought, left});
}

/// A thread of its own: it runs behind the consumers' epilogue, the one that copies operands ahead of their main loop.
Op electForC(const Kernel &kernel, const Op &store) {
  Op bring = Op(OpKind::Bring, store.ref("through")).set("from", store.ref("c")).set("beta", store.word("beta"));
  bring.set("via", "tma").set("to", store.ref("from"));
  bring.set("after", Ref{"left", {0}}).set("signal", Ref{"brought", {0}}).set("cursor", Expr::var("c"));
  bring.range = store.range;
  Op tiles(OpKind::Tiles);
  tiles.body = {std::move(bring), advance("c")};
  // The slot says whose tile it is where warpgroups take tiles in turn, the phase how often each has had one.
  Op elect = Op(OpKind::Elect).set("warp", 1);
  elect.body = {cursor("c", alternates(kernel) ? kernel.number("consumers") : 1), std::move(tiles)};
  return elect;
}

void waitForC(Op &role) {
  std::vector<Op> &tile = findIn(role.body, OpKind::Tiles)->body;
  tile.back().set("after", Ref{"brought", {0}}).set("signal", Ref{"left", {0}}).set("cursor", Expr::var("c"));
  tile.push_back(advance("c"));
  role.body.insert(role.body.begin(), cursor("c", 1));
}
} // namespace

void bringC(Kernel &kernel) {
  if (kernel.root.word("load_c") != "tma")
    return;
  Op *producer = nullptr, *consumer = nullptr;
  for (Op &role : kernel.body())
    if (role.kind == OpKind::Role)
      (findIn(role.body, OpKind::Elect) ? producer : consumer) = &role;
  Op elect = electForC(kernel, findIn(consumer->body, OpKind::Tiles)->body.back());
  waitForC(*consumer);
  producer->body.push_back(std::move(elect));
  declareBarriersOfC(kernel); // moves the roles
}
} // namespace gemmc::tile
