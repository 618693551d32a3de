#include "Lowering.h"

namespace gemmc {
/// One thread initialises all mbarriers; the fence makes that visible to TMA and to the other CTAs of the cluster.
void Lowering::initBarriers() {
  bool any = false;
  Val end;
  for (const Op &op : kernel.body()) {
    if (op.kind != OpKind::Barrier)
      continue;
    if (!any) {
      end = b.label("barriers_ready");
      b.blank();
      Val others = b.reg(Type::pred, "others");
      b("setp.ne.u32", others, tid, 0);
      b.when(others)("bra", end);
      for (const auto &tensor : tensors)
        if (tensor.second.map.isReg())
          b("prefetch.tensormap", at(tensor.second.map));
      for (const Op &tensor : kernel.body())
        if (tensor.kind == OpKind::Tensor) {
          for (const ptx::TensorMapInfo &map : severalMaps(tensor))
            b("prefetch.tensormap", at(variables[map.name]));
          for (const ptx::TensorMapInfo &map : moreMaps(tensor))
            b("prefetch.tensormap", at(variables[map.name]));
        }
    }
    any = true;
    for (int64_t stage = 0; stage < op.number("stages"); ++stage)
      b("mbarrier.init.shared::cta.b64", at(sharedBase, op.number("offset") + barrierBytes * stage),
        op.number("count"));
    b.note(op.subject.name);
    if (op.has("expects"))
      b("mbarrier.arrive.expect_tx.shared::cta.b64", b.sink(), at(sharedBase, op.number("offset")), expectedBytes(op));
  }
  if (!any)
    return;
  b("fence.mbarrier_init.release.cluster");
  b.place(end);
  if (clusterM * clusterN > 1)
    return clusterBarrier();
  if (clusterK > 1 && kernel.root.word("exchange") == "apart") {
    b("barrier.cluster.arrive.release.aligned"); // waited for when the other CTAs are first written to
    clusterWaits = true;
  }
  b("bar.sync", 0);
}

Val Lowering::expectedBytes(const Op &barrier) {
  if (!barrier.has("expects_of_last"))
    return barrier.number("expects");
  Val last = b.reg(Type::pred, "last_owner"), bytes = b.reg(Type::b32, "expected");
  b("setp.eq.u32", last, rankK, storedColumns().owners - 1);
  b("selp.b32", bytes, barrier.number("expects_of_last"), barrier.number("expects"), last);
  return bytes;
}

void Lowering::clusterBarrier() {
  b("barrier.cluster.arrive.release.aligned");
  b("barrier.cluster.wait.acquire.aligned");
}

Val Lowering::barrierAddress(const tile::Ref &ref, llvm::StringRef name) {
  const Op &barrier = *kernel.declaration(ref.name);
  Val slot = value(ref.index[0]);
  return add(add(mul(slot, barrierBytes, name), sharedBase, name), barrier.number("offset"), name);
}

Val Lowering::stageAddress(const SharedView &shared, const tile::Ref &ref, llvm::StringRef name) {
  Val base = add(sharedBase, shared.offset, name);
  if (ref.index.empty() || shared.stages == 1)
    return base;
  return add(mul(value(ref.index[0]), shared.tile.stageBytes(), name), base, name);
}

void Lowering::cursor(const Op &op) {
  std::string name = op.subject.name;
  CursorView view{b.reg(Type::b32, name + "_slot"), b.reg(Type::b32, name + "_phase"), op.number("stages")};
  b("mov.u32", view.slot, 0);
  b("mov.u32", view.phase, 0);
  cursors[name] = view;
}

void Lowering::advance(const Op &op) {
  CursorView &view = cursors[op.subject.name];
  Val guard = op.has("when") ? condition(op.expr("when")) : Val();
  if (op.has("by")) {
    b.comment("over the stages of another warpgroup's tile");
    Val steps = value(op.expr("by"));
    Val sum = add(view.slot, steps, "slot_sum"), turns = divide(sum, view.stages, "turns");
    b("and.b32", turns, turns, 1);
    b("xor.b32", view.phase, view.phase, turns);
    Val slot = remainder(sum, view.stages, "slot_left");
    b("mov.u32", view.slot, slot);
    return;
  }
  if (guard.isReg())
    b.when(guard);
  b("add.u32", view.slot, view.slot, 1);
  Val wraps = b.reg(Type::pred, "wraps");
  b("setp.eq.u32", wraps, view.slot, view.stages);
  b.when(wraps)("mov.u32", view.slot, 0);
  if (isTma)
    b.when(wraps)("xor.b32", view.phase, view.phase, 1);
}

void Lowering::expect(const Op &op) {
  Val bytes = op.subject.name == "full" ? bytesExpected(op.number("bytes")) : op.number("bytes");
  b("mbarrier.arrive.expect_tx.shared::cta.b64", b.sink(), at(barrierAddress(op.subject, "full")), bytes);
}

/// A barrier that starts out free lets the first round of waits through: they ask for the phase before the first.
void Lowering::wait(const Op &op) {
  const CursorView &view = cursors[op.subject.index[0].name()];
  bool free = kernel.declaration(op.subject.name)->word("free") == "yes";
  Val parity = free ? binary("xor.b32", view.phase, 1, "free_phase") : view.phase;
  b.expand(free && threadsReadShared() ? "sm90/mbar_wait_cluster" : "sm90/mbar_wait",
           {{"bar", barrierAddress(op.subject, op.subject.name)}, {"parity", parity}});
}

/// Whether threads read what a CTA's neighbours wrote: fragments of A, which neighbours along n share.
bool Lowering::threadsReadShared() const {
  return clusterN > 1 && llvm::any_of(kernel.body(), [](const Op &op) { return op.kind == OpKind::Fragment; });
}

/// One arrival a warpgroup, at this CTA and at every CTA whose copies fill this one's stages. Only reads by wgmma are
/// released, and those have been waited for, so the default scope does: a cluster release would cost a full fence.
/// Where the lanes of a warp have read the stage (`by=warps`), the next copy into it is an access of another proxy:
/// each lane fences its reads, the warp meets, and one lane arrives for it; what it knows of the others' reads reaches
/// another CTA by a release and an acquire of the cluster alone. A second arrival right behind that one (`by=fenced`)
/// needs no fence of its own. Where neighbours share B and not what lanes read, they
/// need to know of wgmma's reads alone.
void Lowering::arrive(const Op &op) {
  Val bar = barrierAddress(op.subject, op.subject.name);
  if (op.has("along"))
    return arriveAlong(op, bar);
  bool byWarps = op.has("by");
  if (op.word("by") == "warps") {
    b("fence.proxy.async.shared::cta");
    b("bar.warp.sync", -1);
  }
  Val thread = byWarps ? lane : binary("and.b32", tid, 127, "group_thread"), p = b.reg(Type::pred, "arrives");
  Val when = op.has("when") ? condition(op.expr("when")) : Val();
  if (clusterM * clusterN == 1) {
    b("setp.eq.u32", p, thread, 0);
    if (when.isReg())
      p = both(p, when, "arrives");
    b.when(p)("mbarrier.arrive.shared::cta.b64", b.sink(), at(bar));
    return;
  }
  // Thread i signals CTA i of the cluster (of those at the same k), when that one shares this one's row or column.
  b("setp.lt.u32", p, thread, clusterM * clusterN);
  if (clusterM > 1 && clusterN > 1) {
    Val sameM = b.reg(Type::pred, "same_m"), sameN = b.reg(Type::pred, "same_n"), near = b.reg(Type::pred, "near");
    b("setp.eq.u32", sameM, remainder(thread, clusterM, "peer_m"), rankM);
    b("setp.eq.u32", sameN, divide(thread, clusterM, "peer_n"), rankN);
    b("or.pred", near, sameM, sameN);
    p = both(p, near, "arrives");
  }
  if (when.isReg())
    p = both(p, when, "arrives");
  Val remote = b.reg(Type::b32, "remote_bar");
  Val peer = clusterK > 1 ? add(thread, mul(rankK, clusterM * clusterN, "peers"), "peer") : thread;
  b.when(p)("mapa.shared::cluster.u32", remote, bar, peer);
  b.when(p)(threadsReadShared() ? "mbarrier.arrive.release.cluster.shared::cluster.b64"
                                : "mbarrier.arrive.shared::cluster.b64",
            b.sink(), at(remote));
}

/// At all CTAs along one direction of the cluster, this one too, of those from number `from` on: one thread's arrivals.
void Lowering::arriveAlong(const Op &op, const Val &bar) {
  const bool alongM = op.word("along") == "m";
  const int64_t ctas = alongM ? clusterM : clusterN, step = alongM ? 1 : clusterM;
  const Val &place = alongM ? rankM : rankN;
  Val without = b.reg(Type::pred, "without"), first = 0;
  b("setp.ge.u32", without, place, op.number("from"));
  if (ctas != clusterSize()) // else the whole cluster lies along it
    first = binary("sub.u32", rank, mul(place, step, "first_peer"), "first_peer");
  for (int64_t i = 0; i < ctas; ++i) {
    Val remote = b.reg(Type::b32, "remote_bar"), peer = add(first, i * step, "peer");
    b("mapa.shared::cluster.u32", remote, bar, peer);
    b.when(without)("mbarrier.arrive.shared::cluster.b64", b.sink(), at(remote));
  }
}

void Lowering::turn(const Op &op) {
  bool waits = op.word("action") == "wait";
  Val wg = variables["wg"];
  constexpr int64_t firstTurn = barriers::turns, bothGroups = 256;
  Val id =
      waits ? add(wg, firstTurn, "turn") : binary("sub.u32", inRegister(Val(firstTurn + 1), "last_turn"), wg, "turn");
  Val when = op.has("when") ? condition(op.expr("when")) : Val();
  if (when.isReg())
    b.when(when);
  b(waits ? "bar.sync" : "bar.arrive", id, bothGroups);
}

} // namespace gemmc
