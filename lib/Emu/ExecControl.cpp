// Control flow, barriers of threads, fences (PTX ISA 9.7.12, 9.7.13.1 to 9.7.13.4, 9.7.19).
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {
namespace {

Step bra(Warp &warp, const Code &code, Mask mask) { return warp.branch(mask, code.target); }
Step exit(Warp &warp, const Code &code, Mask mask) {
  if (!warp.async.wgmmas.empty())
    return warp.fail(code, firstLane(mask), "WG-8",
                     formatv("the warp exits while the `wgmma` of line {0} is in flight: nobody waited for it",
                             warp.async.wgmmas.front().code->line)
                         .str());
  return warp.exit(mask);
}
Step trap(Warp &warp, const Code &code, Mask mask) {
  return warp.fail(code, firstLane(mask), "trap", "the kernel executed `trap`");
}
Step nothing(Warp &, const Code &, Mask) { return Step::Next; }
/// Fences order what one host thread does anyway; other clusters run on other host threads.
Step fence(Warp &, const Code &, Mask) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Step::Next;
}
Step yield(Warp &, const Code &, Mask) { return Step::Yield; }

// --- Named barriers

enum Flag : uint32_t { Aligned = 1, Arrive = 2, Popc = 4, And = 8, Or = 16 };

/// All that must come before a barrier opens has come, or the rest would have to come from warps that have exited and
/// nobody else is left who could.
void tryOpen(Cta &cta, NamedBarrier &barrier) {
  uint32_t exited = 0;
  bool othersLeft = false;
  for (auto [warp, arrived] : llvm::zip(cta.warps, barrier.counted)) {
    exited += !arrived && !warp->alive ? numLanes : 0;
    othersLeft |= !arrived && warp->alive;
  }
  uint32_t most = barrier.arrived + (othersLeft ? 0 : exited);
  if (!barrier.expected || most < barrier.expected)
    return;
  uint64_t generation = barrier.generation + 1;
  uint32_t result = barrier.count, threads = barrier.redThreads;
  barrier = NamedBarrier();
  barrier.generation = generation;
  barrier.result = result;
  barrier.resultThreads = threads;
  ++cta.cluster.version;
}

/// Lanes of a warp arrive; the warp counts when all of its lanes that live have.
Step arrive(Warp &warp, const Code &code, Mask mask, NamedBarrier &barrier, uint32_t id, uint32_t expected) {
  Cta &cta = warp.cta;
  if (!barrier.expected) {
    barrier.expected = expected;
    barrier.line = code.line;
    barrier.lanes.assign(cta.warps.size(), 0);
    barrier.counted.assign(cta.warps.size(), false);
    barrier.isRed = code.flags & (Popc | And | Or);
  }
  if (barrier.expected != expected)
    return warp.fail(code, firstLane(mask), "NB-3",
                     formatv("barrier {0} is used with {1} threads here and with {2} threads at line {3}", id, expected,
                             barrier.expected, barrier.line)
                         .str());
  if (barrier.isRed != ((code.flags & (Popc | And | Or)) != 0))
    return warp.fail(
        code, firstLane(mask), "NB-5",
        formatv("barrier {0} is in use at line {1}, and only one of the two reduces", id, barrier.line).str());
  if (barrier.counted[warp.index] || barrier.lanes[warp.index] & mask)
    return warp.fail(code, firstLane(mask), "NB-4",
                     formatv("warp {0} arrives twice at barrier {1} before it opens (first arrival at line {2})",
                             warp.index, id, barrier.line)
                         .str());
  barrier.lanes[warp.index] |= mask;
  if (!(warp.alive & ~barrier.lanes[warp.index])) {
    barrier.counted[warp.index] = true;
    barrier.arrived += numLanes;
  }
  return Step::Next;
}

/// Operands of `imm`: [0] index of the barrier's number, [1] of the count, [2] of the reduced predicate.
std::optional<Step> checkNumbers(Warp &warp, const Code &code, Mask mask, uint32_t id, uint32_t count, bool hasCount) {
  unsigned lane = firstLane(mask);
  for (unsigned l = lane; l < numLanes; ++l)
    if (mask >> l & 1 && warp.value(code.args[code.imm[0]], l) != id)
      return warp.fail(code, l, "NB-1", "the lanes of a warp name different barriers");
  if (id >= 16)
    return warp.fail(code, lane, "NB-1", formatv("there is no barrier {0}: they are 0 to 15", id).str());
  if (hasCount && (count % numLanes || (count == 0 && code.flags & Arrive)))
    return warp.fail(code, lane, "NB-1",
                     formatv("barrier {0} is used with {1} threads: the count is a multiple of 32{2}", id, count,
                             count ? "" : " and not 0")
                         .str());
  return std::nullopt;
}

void giveResult(Warp &warp, const Code &code, Mask mask, const NamedBarrier &barrier) {
  if (code.flags & Popc)
    forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, barrier.result); });
  else if (code.flags & (And | Or)) {
    bool yes = code.flags & And ? barrier.result == barrier.resultThreads : barrier.result != 0;
    warp.setPred(code.args[0], yes ? allLanes : 0, mask);
  }
}

Step bar(Warp &warp, const Code &code, Mask mask) {
  Wait &wait = warp.group().wait;
  if (wait.what == Wait::Named && wait.arrived) {
    NamedBarrier &barrier = warp.cta.named[wait.id];
    if (barrier.generation == wait.generation)
      return Step::Block;
    giveResult(warp, code, mask, barrier);
    return Step::Next;
  }
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  auto id = static_cast<uint32_t>(warp.value(code.args[code.imm[0]], firstLane(mask)));
  const Arg &countArg = code.args[code.imm[1]];
  bool hasCount = countArg.kind != Arg::None;
  auto count = hasCount ? static_cast<uint32_t>(warp.value(countArg, firstLane(mask))) : 0;
  if (auto step = checkNumbers(warp, code, mask, id, count, hasCount))
    return *step;
  // Without a count: all threads of the CTA, rounded up to whole warps.
  if (!hasCount || !count)
    count = warp.cta.warps.size() * numLanes;
  NamedBarrier &barrier = warp.cta.named[id];
  uint64_t generation = barrier.generation;
  if (Step step = arrive(warp, code, mask, barrier, id, count); step != Step::Next)
    return step;
  if (barrier.isRed) {
    barrier.count += std::popcount(warp.pred(code.args[code.imm[2]]) & mask);
    barrier.redThreads += std::popcount(mask);
  }
  tryOpen(warp.cta, barrier);
  ++warp.cluster.version;
  if (code.flags & Arrive)
    return Step::Next;
  wait = Wait();
  wait.what = Wait::Named;
  wait.arrived = true;
  wait.id = id;
  wait.generation = generation;
  if (barrier.generation == generation)
    return Step::Block;
  giveResult(warp, code, mask, barrier);
  return Step::Next;
}

Exec barrierExec(Decoder &d, uint32_t flags, unsigned firstOperand) {
  d.code->flags |= flags;
  for (unsigned i = 0; i < 3; ++i)
    d.code->imm[i] = firstOperand + i;
  return bar;
}

// --- The barrier of a cluster

Step clusterArrive(Warp &warp, const Code &code, Mask mask) {
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  Mask &here = warp.cluster.arrived[warp.cta.rank][warp.index];
  if (Mask twice = here & mask)
    return warp.fail(code, firstLane(twice), "CL-1", "a thread arrives twice at the cluster barrier before it opens");
  here |= mask;
  Mask &waiting = warp.clusterPhase;
  waiting = (waiting & ~mask) | (warp.cluster.generation & 1 ? mask : 0);
  warp.clusterArrived |= mask;
  ++warp.cluster.version;
  warp.cluster.tryRelease();
  return Step::Next;
}
/// A thread waits for the phase in which it arrived.
Step clusterWait(Warp &warp, const Code &code, Mask mask) {
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  if (Mask never = mask & ~warp.clusterArrived)
    return warp.fail(code, firstLane(never), "CL-2", "a thread waits at the cluster barrier without having arrived");
  Mask now = warp.cluster.generation & 1 ? allLanes : 0;
  if (mask & ~(now ^ warp.clusterPhase)) {
    Wait &wait = warp.group().wait;
    wait = Wait();
    wait.what = Wait::ClusterBarrier;
    wait.generation = warp.cluster.generation;
    return Step::Block;
  }
  warp.clusterArrived &= ~mask;
  return Step::Next;
}

// --- setmaxnreg

/// `imm[0]`: registers a thread; `flags`: more.
Step setMaxRegisters(Warp &warp, const Code &code, Mask mask) {
  if (auto step = warp.aligned(code, mask))
    return *step;
  auto wanted = static_cast<uint32_t>(code.imm[0]);
  unsigned lane = firstLane(mask);
  if (wanted < 24 || wanted > 256 || wanted % 8)
    return warp.fail(code, lane, "SR-1",
                     formatv("`setmaxnreg` to {0}: a multiple of 8 from 24 to 256 is wanted", wanted).str());
  uint32_t had = warp.registers;
  if (!had) { // unknown at entry: no cap was set, and the instruction has no effect
    return Step::Next;
  }
  if (code.flags ? wanted < had : wanted > had)
    return warp.fail(
        code, lane, "SR-3",
        formatv("`setmaxnreg.{0}` to {1} registers, but the warp has {2}", code.flags ? "inc" : "dec", wanted, had)
            .str());
  int64_t more = (int64_t(wanted) - had) * numLanes;
  if (more > warp.cta.freeRegisters) {
    Wait &wait = warp.group().wait;
    wait = Wait();
    wait.what = Wait::Registers;
    wait.id = wanted;
    return Step::Block;
  }
  warp.cta.freeRegisters -= more;
  warp.registers = wanted;
  ++warp.cluster.version;
  return Step::Next;
}
} // namespace

// --- What lives longer than an instruction

void Cta::exited() {
  for (NamedBarrier &barrier : named) {
    if (!barrier.expected)
      continue;
    for (auto [i, warp] : llvm::enumerate(warps))
      if (!barrier.counted[i] && barrier.lanes[i] && warp->alive && !(warp->alive & ~barrier.lanes[i])) {
        barrier.counted[i] = true;
        barrier.arrived += numLanes;
      }
    tryOpen(*this, barrier);
  }
}

void Cluster::tryRelease() {
  bool any = false;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps) {
      Mask here = arrived[cta->rank][warp->index];
      if (warp->alive & ~here)
        return;
      any |= here != 0;
    }
  if (!any)
    return;
  for (auto &list : arrived)
    for (Mask &mask : list)
      mask = 0;
  ++generation;
  ++version;
}

Exec execBra(Decoder &) { return bra; }
Exec execRet(Decoder &) { return exit; }
Exec execExit(Decoder &) { return exit; }
Exec execTrap(Decoder &) { return trap; }
Exec execBrkpt(Decoder &) { return nothing; }
Exec execNanosleep(Decoder &) { return yield; }
Exec execBarSync(Decoder &d) { return barrierExec(d, Aligned, 0); }
Exec execBarArrive(Decoder &d) { return barrierExec(d, Aligned | Arrive, 0); }
Exec execBarRedPopc(Decoder &d) { return barrierExec(d, Aligned | Popc, 1); }
Exec execBarRed(Decoder &d) { return barrierExec(d, Aligned | uint32_t(d.has("and") ? And : Or), 1); }
Exec execBarrierSync(Decoder &d) {
  d.flag("aligned", Aligned);
  return barrierExec(d, 0, 0);
}
Exec execBarrierArrive(Decoder &d) {
  d.flag("aligned", Aligned);
  return barrierExec(d, Arrive, 0);
}
Exec execClusterArrive(Decoder &d) {
  d.flag("aligned", Aligned);
  return clusterArrive;
}
Exec execClusterWait(Decoder &d) {
  d.flag("aligned", Aligned);
  return clusterWait;
}
Exec execMembar(Decoder &) { return fence; }
Exec execFence(Decoder &) { return fence; }
Exec execFenceProxyAlias(Decoder &) { return fence; }
Exec execFenceProxyAsync(Decoder &) { return fence; }
Exec execFenceTensormapRelease(Decoder &) { return fence; }
Exec execFenceTensormapAcquire(Decoder &) { return fence; }
Exec execFenceMbarrierInit(Decoder &) { return fence; }
Exec execGridDep(Decoder &) { return nothing; }
Exec execSetMaxNReg(Decoder &d) {
  d.code->imm[0] = d.immediate(0);
  d.code->flags = d.has("inc");
  return setMaxRegisters;
}

} // namespace gemmc::emu
