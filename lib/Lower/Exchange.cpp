// CTAs of a cluster that share the k steps of a tile: CTA number `rankK` along k multiplies slice rankK, then the sums
// meet in the cluster's shared memory. Each warpgroup's tile is cut along n into as many shares as there are owners;
// every CTA sends each share to its owner, as the registers lie (16 bytes a thread, threads side by side), into a slot
// of its own; the owner adds the slots in the order of the slices and goes on with its share as with a narrower tile.
//
//     sX of an owner    slot of slice 0 | slot of slice 1 | ...      each: its columns of the tile, all warpgroups
//
// st.async counts its bytes on the owner's mbarrier `sums` (PTX ISA 9.7.9.12), which has expected them from the start:
// no CTA waits for another one but for the bytes it is to get, and none writes to one that has not started.
#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t groupThreads = 128, wordBytes = 4;
} // namespace

/// This CTA's k steps. One that has none takes the step behind the last one, which TMA fills with zeros.
void Lowering::placeSlice() {
  Expr each = maxOf(1, ceilDiv(stepCount(), clusterK)), steps = stepCount();
  Val from = mul(rankK, value(each), "kf");
  if (steps.isConst() && steps.constant() % clusterK == 0 && steps.constant() > 0) {
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

int64_t Lowering::storedColumns(const Op &acc) const {
  int64_t owners = 1;
  tile::walk(kernel.body(), [&](const Op &op) { owners = op.kind == OpKind::Exchange ? op.number("owners") : owners; });
  return acc.item("warp", 1) / owners;
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

void Lowering::exchange(const Op &op) {
  const std::string name = op.subject.name;
  const AccumulatorView acc = accumulators.find(name)->second;
  const int64_t owners = op.number("owners"), slicesOfK = op.number("slices");
  const int64_t blocks = int64_t(acc.regs.size()), each = int64_t(acc.regs[0].size()) / owners;
  const int64_t total = blocks * each, threads = groupThreads * kernel.number("consumers");
  const int64_t width = total % 4 ? 2 : 4, slotBytes = total * wordBytes * threads;
  const bool half = acc.type == Elem::f16;
  auto vectorOf = [&](llvm::StringRef stem, llvm::StringRef type) {
    return (stem + (width == 4 ? ".v4." : ".v2.") + type).str();
  };
  auto some = [&](const std::vector<Val> &regs, int64_t at) {
    return Val(std::vector<Val>(regs.begin() + at, regs.begin() + at + width));
  };

  b.blank();
  b.comment("each share of the tile's sums goes to its owner in the cluster");
  meetCluster();
  Val thread = add(tid, -32 * roleWarp, "consumer_thread");
  Val area = add(add(sharedBase, buffers.find(op.ref("through").name)->second.offset, "shares"),
                 mul(thread, width * wordBytes, "thread_place"), "shares");
  Val slot = add(area, mul(rankK, slotBytes, "slot"), "slot");
  Val bar = inRegister(barrierAddress(op.ref("signal"), "sums"), "sums");
  for (int64_t owner = 0; owner < owners; ++owner) {
    Val peer = add(clusterM * clusterN > 1 ? binary("sub.u32", rank, mul(rankK, clusterM * clusterN, "peers"), "peer")
                                           : Val(0),
                   owner * clusterM * clusterN, "peer");
    Val to = b.reg(Type::b32, "to_share"), signal = b.reg(Type::b32, "to_sums");
    b("mapa.shared::cluster.u32", to, slot, peer);
    b("mapa.shared::cluster.u32", signal, bar, peer);
    std::vector<Val> regs;
    for (const auto &block : acc.regs)
      regs.insert(regs.end(), block.begin() + owner * each, block.begin() + (owner + 1) * each);
    for (int64_t i = 0; i < total; i += width)
      b(vectorOf("st.async.shared::cluster.mbarrier::complete_tx::bytes", half ? "b32" : "f32"),
        at(to, i * wordBytes * threads), some(regs, i), at(signal));
  }

  Val end = b.label("not_owner");
  if (owners < slicesOfK) {
    Val others = b.reg(Type::pred, "others");
    b("setp.ge.u32", others, rankK, owners);
    b.when(others)("bra", end);
  }
  b.comment("the owner adds its shares in the order of the slices");
  b.expand("sm90/mbar_wait", {{"bar", bar}, {"parity", inRegister(Val(0), "first_phase")}});
  AccumulatorView own = acc;
  own.warpN = acc.warpN / owners;
  std::vector<Val> sums = b.regs(half ? Type::b32 : Type::f32, "own", total);
  for (int64_t i = 0; i < total; i += width)
    for (int64_t part = 0; part < slicesOfK; ++part) {
      std::vector<Val> more = b.regs(half ? Type::b32 : Type::f32, "more", width);
      Val from = at(area, part * slotBytes + i * wordBytes * threads);
      b(vectorOf("ld.shared", half ? "b32" : "f32"), part ? Val(more) : some(sums, i), from);
      for (int64_t j = 0; part && j < width; ++j)
        b(half ? "add.rn.f16x2" : "add.rn.f32", sums[i + j], sums[i + j], more[j]);
    }
  for (int64_t i = 0; i < blocks; ++i)
    own.regs[i].assign(sums.begin() + i * each, sums.begin() + (i + 1) * each);
  accumulators.insert_or_assign(name, own);
  ownColumn = mul(rankK, own.warpN, "own_column");
  ops(op.body);
  ownColumn = 0;
  accumulators.insert_or_assign(name, acc);
  b.place(end);
}

} // namespace gemmc
