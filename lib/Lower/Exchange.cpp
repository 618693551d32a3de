// CTAs of a cluster that share the k steps of a tile: CTA number `rankK` along k multiplies slice rankK, then the sums
// meet in the cluster's shared memory. Each warpgroup's tile is cut along n into as many shares as there are owners,
// the last of which may be narrower; every CTA sends each share to its owner, as the registers lie (16 bytes a thread,
// threads side by side), into a slot of its own; the owner adds the slots and its own registers in the order of the
// slices and goes on with its share as with a narrower tile.
//
//     sX of owner 1    slot of slice 0 | slot of slice 2 | ...      each: its columns of the tile, all warpgroups
//
// st.async counts its bytes on the owner's mbarrier `sums` (PTX ISA 9.7.9.12), which has expected them from the start:
// no CTA waits for another one but for the bytes it is to get, and none writes to one that has not started. Each
// CTA runs the code of its slice, in which registers have their place.
#include "Shares.h"

namespace gemmc {
/// The k steps of slice `number` of `count`. One that has none takes the step behind the last one, which TMA fills with
/// zeros.
void Lowering::placeSlice(const Val &number, int64_t count) {
  Expr each = maxOf(1, ceilDiv(stepCount(), count)), steps = stepCount();
  Val from = mul(number, value(each), "kf");
  if (steps.isConst() && steps.constant() % count == 0 && steps.constant() > 0) {
    variables["kf"] = from;
    variables["kn"] = value(each);
    return;
  }
  Val all = inRegister(value(steps), "steps");
  from = binary("min.u32", all, from, "kf");
  Val left = binary("min.u32", binary("sub.u32", all, from, "steps_left"), value(each), "steps_own");
  variables["kf"] = from;
  variables["kn"] = binary("max.u32", left, 1, "kn");
}

ColumnShares Lowering::storedColumns() const {
  int64_t owners = 1, columns = 0;
  tile::walk(kernel.body(), [&](const Op &op) {
    owners =
        op.kind == OpKind::Exchange || op.kind == OpKind::Gather ? std::max(owners, op.number("owners", 1)) : owners;
    columns = op.kind == OpKind::Accumulator ? op.item("warp", 1) : columns;
  });
  return shareColumns(columns, owners);
}

/// Before a CTA writes into another one's shared memory: that one has started, or, where operand tiles lie there, has
/// read its last one.
void Lowering::meetCluster() {
  if (kernel.root.word("exchange") == "over")
    b("barrier.cluster.arrive.release.aligned");
  else if (!clusterWaits)
    return;
  b("barrier.cluster.wait.acquire.aligned");
}

/// The producer takes part in the same barrier; its lanes come one by one.
void Lowering::leaveCluster() {
  bool over = kernel.root.word("exchange") == "over";
  if (!over && !clusterWaits)
    return;
  b.comment("the cluster meets before its sums do");
  if (over)
    b("barrier.cluster.arrive.release");
  b("barrier.cluster.wait.acquire");
}

/// Code for the sums of one tile.
struct Lowering::Exchange {
  Exchange(Lowering &l, const Op &op, const AccumulatorView &acc)
      : shares(acc, op.number("owners")), l(l), b(l.b), slices(op.number("slices")), width(shares.width(4)),
        line(width * wordBytes * groupThreads * l.kernel.number("consumers")), words(sumWords(acc.type)) {
    Val thread = l.add(l.tid, -32 * l.roleWarp, "consumer_thread");
    slots = l.add(l.add(l.sharedBase, l.buffers.find(op.ref("through").name)->second.offset, "shares"),
                  l.mul(thread, width * wordBytes, "thread_place"), "shares");
    sums = l.inRegister(l.barrierAddress(op.ref("signal"), "sums"), "sums");
    own = b.regs(words.reg, "own", registersOf(0));
  }

  const SumShares shares;

  /// What the CTA of slice `me` does. Its own share never leaves its registers.
  void play(int64_t me) {
    for (int64_t owner = 0; owner < shares.owners(); ++owner)
      if (owner != me)
        send(me, owner);
    if (me > shares.last())
      return;
    b.expand("sm90/mbar_wait", {{"bar", sums}, {"parity", l.inRegister(Val(0), "first_phase")}});
    const std::vector<Val> kept = shares.of(me);
    for (int64_t i = 0; i < int64_t(kept.size()); i += width)
      for (int64_t slice = 0; slice < slices; ++slice) {
        std::vector<Val> part(kept.begin() + i, kept.begin() + i + width);
        if (slice != me) {
          part = b.regs(words.reg, "part", width);
          b(vectors("ld.shared"), Val(part), at(slots, place(slice, me, i)));
        }
        for (int64_t j = 0; j < width; ++j)
          if (slice == 0)
            b(words.move, own[i + j], part[j]);
          else
            b(words.add, own[i + j], own[i + j], part[j]);
      }
  }

  /// The accumulator that `owner` goes on with.
  AccumulatorView ownedBy(int64_t owner) const { return shares.with(own, shares.columnsOf(owner)); }

private:
  std::string vectors(llvm::StringRef stem) const { return (stem + (width == 4 ? ".v4." : ".v2.") + words.type).str(); }
  int64_t registersOf(int64_t owner) const { return shares.registersOf(shares.columnsOf(owner)); }

  /// Of the registers from `i` on that `slice` sends to `owner`: bytes behind this thread's first place there.
  int64_t place(int64_t slice, int64_t owner, int64_t i) const {
    int64_t slot = slice < owner ? slice : slice - 1;
    return (slot * registersOf(owner) + i) / width * line;
  }

  void send(int64_t me, int64_t owner) {
    const int64_t others = l.clusterM * l.clusterN;
    Val peer = l.add(others > 1 ? l.binary("sub.u32", l.rank, l.mul(l.rankK, others, "peers"), "peer") : Val(0),
                     owner * others, "peer");
    Val to = b.reg(Type::b32, "to_shares"), signal = b.reg(Type::b32, "to_sums");
    b("mapa.shared::cluster.u32", to, slots, peer);
    b("mapa.shared::cluster.u32", signal, sums, peer);
    const std::vector<Val> regs = shares.of(owner);
    for (int64_t i = 0; i < int64_t(regs.size()); i += width)
      b(vectors("st.async.shared::cluster.mbarrier::complete_tx::bytes"), at(to, place(me, owner, i)),
        Val(std::vector<Val>(regs.begin() + i, regs.begin() + i + width)), at(signal));
  }

  Lowering &l;
  ptx::Builder &b;
  const int64_t slices, width, line;
  const SumWords words;
  Val slots, sums;
  std::vector<Val> own;
};

/// Owners of a whole share store it by the same code; the last one has code of its own for a narrower one.
void Lowering::exchange(const Op &op) {
  const std::string name = op.subject.name;
  const AccumulatorView acc = accumulators.find(name)->second;
  const int64_t slicesOfK = op.number("slices");
  b.blank();
  b.comment("each share of the tile's sums goes to its owner in the cluster, who adds them in the order of the slices");
  meetCluster();
  Exchange exchange(*this, op, acc);
  Val owned = b.label("shares_added"), end = b.label("not_owner");
  auto goOnAs = [&](int64_t owner) {
    accumulators.insert_or_assign(name, exchange.ownedBy(owner));
    ownColumn = mul(rankK, exchange.shares.columns.each, "own_column");
    ops(op.body);
    ownColumn = 0;
    accumulators.insert_or_assign(name, acc);
  };
  const bool alike = exchange.shares.columns.last == exchange.shares.columns.each;
  for (int64_t me = 0; me < slicesOfK; ++me) {
    const bool lastSlice = me + 1 == slicesOfK;
    Val next = b.label("next_slice");
    if (!lastSlice) {
      Val other = b.reg(Type::pred, "other_slice");
      b("setp.ne.u32", other, rankK, me);
      b.when(other)("bra", next);
    }
    exchange.play(me);
    const bool narrow = me == exchange.shares.last() && !alike;
    if (narrow)
      goOnAs(me);
    if (narrow || me > exchange.shares.last())
      b("bra", end);
    else if (!lastSlice)
      b("bra", owned);
    b.place(next);
  }
  b.place(owned);
  goOnAs(0);
  b.place(end);
}

} // namespace gemmc
