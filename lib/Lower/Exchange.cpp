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
#include "Lowering.h"

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
    owners = op.kind == OpKind::Exchange ? op.number("owners") : owners;
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

/// The registers of a tile's sums, cut into shares.
struct Lowering::Exchange {
  Exchange(Lowering &l, const Op &op, const AccumulatorView &acc)
      : columns(shareColumns(acc.warpN, op.number("owners"))), l(l), b(l.b), acc(acc), slices(op.number("slices")),
        width(registersOf(0) % 4 || registersOf(last()) % 4 ? 2 : 4),
        line(width * wordBytes * groupThreads * l.kernel.number("consumers")), words(sumWords(acc.type)) {
    Val thread = l.add(l.tid, -32 * l.roleWarp, "consumer_thread");
    shares = l.add(l.add(l.sharedBase, l.buffers.find(op.ref("through").name)->second.offset, "shares"),
                   l.mul(thread, width * wordBytes, "thread_place"), "shares");
    sums = l.inRegister(l.barrierAddress(op.ref("signal"), "sums"), "sums");
    own = b.regs(words.reg, "own", registersOf(0));
  }

  const ColumnShares columns;
  int64_t last() const { return columns.owners - 1; }
  int64_t columnsOf(int64_t owner) const { return owner == last() ? columns.last : columns.each; }

  /// What the CTA of slice `me` does. Its own share never leaves its registers.
  void play(int64_t me) {
    for (int64_t owner = 0; owner < columns.owners; ++owner)
      if (owner != me)
        send(me, owner);
    if (me > last())
      return;
    b.expand("sm90/mbar_wait", {{"bar", sums}, {"parity", l.inRegister(Val(0), "first_phase")}});
    const std::vector<Val> kept = shareOf(me);
    for (int64_t i = 0; i < int64_t(kept.size()); i += width)
      for (int64_t slice = 0; slice < slices; ++slice) {
        std::vector<Val> part(kept.begin() + i, kept.begin() + i + width);
        if (slice != me) {
          part = b.regs(words.reg, "part", width);
          b(vectors("ld.shared"), Val(part), at(shares, place(slice, me, i)));
        }
        for (int64_t j = 0; j < width; ++j)
          if (slice == 0)
            b(words.move, own[i + j], part[j]);
          else
            b(words.add, own[i + j], own[i + j], part[j]);
      }
  }

  /// The accumulator that `owner` goes on with.
  AccumulatorView ownedBy(int64_t owner) const {
    AccumulatorView out = acc;
    const int64_t each = ofBlock(columnsOf(owner));
    out.warpN = columnsOf(owner);
    for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
      out.regs[i].assign(own.begin() + i * each, own.begin() + (i + 1) * each);
    return out;
  }

private:
  std::string vectors(llvm::StringRef stem) const { return (stem + (width == 4 ? ".v4." : ".v2.") + words.type).str(); }

  /// A thread's registers of so many columns of a block of rows, and of all that `owner` has.
  int64_t ofBlock(int64_t columns) const { return int64_t(acc.regs[0].size()) * columns / acc.warpN; }
  int64_t registersOf(int64_t owner) const { return int64_t(acc.regs.size()) * ofBlock(columnsOf(owner)); }

  std::vector<Val> shareOf(int64_t owner) const {
    std::vector<Val> out;
    for (const auto &block : acc.regs) {
      auto first = block.begin() + ofBlock(owner * columns.each);
      out.insert(out.end(), first, first + ofBlock(columnsOf(owner)));
    }
    return out;
  }

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
    b("mapa.shared::cluster.u32", to, shares, peer);
    b("mapa.shared::cluster.u32", signal, sums, peer);
    const std::vector<Val> regs = shareOf(owner);
    for (int64_t i = 0; i < int64_t(regs.size()); i += width)
      b(vectors("st.async.shared::cluster.mbarrier::complete_tx::bytes"), at(to, place(me, owner, i)),
        Val(std::vector<Val>(regs.begin() + i, regs.begin() + i + width)), at(signal));
  }

  Lowering &l;
  ptx::Builder &b;
  const AccumulatorView &acc;
  const int64_t slices, width, line;
  const SumWords words;
  Val shares, sums;
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
    ownColumn = mul(rankK, exchange.columns.each, "own_column");
    ops(op.body);
    ownColumn = 0;
    accumulators.insert_or_assign(name, acc);
  };
  const bool alike = exchange.columns.last == exchange.columns.each;
  for (int64_t me = 0; me < slicesOfK; ++me) {
    const bool lastSlice = me + 1 == slicesOfK;
    Val next = b.label("next_slice");
    if (!lastSlice) {
      Val other = b.reg(Type::pred, "other_slice");
      b("setp.ne.u32", other, rankK, me);
      b.when(other)("bra", next);
    }
    exchange.play(me);
    const bool narrow = me == exchange.last() && !alike;
    if (narrow)
      goOnAs(me);
    if (narrow || me > exchange.last())
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
