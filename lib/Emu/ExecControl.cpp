// Control flow, barriers of threads, fences (PTX ISA 9.7.12, 9.7.13.1 to 9.7.13.4, 9.7.19).
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>
#include <map>

using llvm::formatv;

namespace gemmc::emu {
namespace {

/// A branch or ret marked `.uni` is one for all lanes that execute it (9.7.12.3).
void checkUniform(Warp &warp, const Code &code, bool isUniform) {
  if (isUniform || !warp.cluster.check)
    return;
  const Mask lanes = warp.group().mask;
  warp.cluster.check->report(warp, code, firstLane(lanes), "WS-4",
                             formatv("the lanes {0:x} of the warp execute this instruction together and part here: "
                                     "`.uni` says that they do not",
                                     lanes));
}

Step bra(Warp &warp, const Code &code, Mask mask) { return warp.branch(mask, code.target); }
Step braUniform(Warp &warp, const Code &code, Mask mask) {
  checkUniform(warp, code, mask == warp.group().mask);
  return warp.branch(mask, code.target);
}
/// `imm[0]`: the jump table; operand 0: the index in it. Lanes go in as many groups as there are targets.
Step branchIndexed(Warp &warp, const Code &code, Mask mask) {
  const std::vector<uint32_t> &table = warp.program.jumpTables[code.imm[0]];
  std::map<uint32_t, Mask> lanesOf;
  for (unsigned l = 0; l < numLanes; ++l) {
    if (!(mask >> l & 1))
      continue;
    uint64_t index = warp.value(code.args[0], l);
    if (index >= table.size())
      return warp.fail(code, l, "brx", formatv("index {0}: the list of targets has {1}", index, table.size()).str());
    lanesOf[table[index]] |= laneBits[l];
  }
  Group &here = warp.group();
  const bool isUniform = lanesOf.size() == 1 && mask == here.mask;
  if (code.flags)
    checkUniform(warp, code, isUniform);
  if (isUniform) {
    here.pc = lanesOf.begin()->first;
    return Step::Jump;
  }
  here.mask &= ~mask;
  ++here.pc;
  if (!here.mask) { // the group goes on as the first of them
    here.pc = lanesOf.begin()->first;
    here.mask = lanesOf.begin()->second;
    lanesOf.erase(lanesOf.begin());
  }
  for (auto [pc, lanes] : lanesOf) {
    Group other;
    other.pc = pc;
    other.mask = lanes;
    warp.groups.push_back(other);
  }
  return Step::Regroup;
}

// --- Calls that could not be replaced by a body (gemmc/PTX/Inline.h)

/// Where the parameter `index` of operand `list` lies in local memory.
std::byte *passed(Warp &warp, const Code &code, unsigned list, unsigned index, unsigned lane) {
  const auto &elems = code.inst->ops[list].elems;
  const Place *place = index < elems.size() ? warp.program.place(elems[index].name) : nullptr;
  if (!place || place->where != Where::Local)
    return nullptr;
  return warp.local.data() + size_t(lane) * warp.program.localBytes + place->offset;
}
/// A string of the module that a parameter points to.
std::string stringAt(Warp &warp, const std::byte *pointer) {
  uint64_t address = 0;
  if (pointer)
    std::memcpy(&address, pointer, sizeof(address));
  const std::vector<std::byte> &image = *warp.cluster.launch.module;
  std::string text;
  if (address / window::size != window::module / window::size)
    return "?";
  for (uint64_t at = address % window::size; at < image.size() && image[at] != std::byte(0) && text.size() < 200; ++at)
    text += static_cast<char>(image[at]);
  return text;
}

/// printf of CUDA: it prints nothing here and says so by a count of 0.
Step callPrint(Warp &warp, const Code &code, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    if (std::byte *result = passed(warp, code, 0, 0, l))
      std::memset(result, 0, 4);
  });
  return Step::Next;
}
/// `__assertfail(expression, file, line, function, size of a character)`
Step callAssert(Warp &warp, const Code &code, Mask mask) {
  unsigned lane = firstLane(mask);
  uint32_t line = 0;
  if (const std::byte *at = passed(warp, code, 2, 2, lane))
    std::memcpy(&line, at, sizeof(line));
  return warp.fail(code, lane, "assert",
                   formatv("assertion `{0}` failed ({1}:{2})", stringAt(warp, passed(warp, code, 2, 0, lane)),
                           stringAt(warp, passed(warp, code, 2, 1, lane)), line)
                       .str());
}
Step callUnknown(Warp &warp, const Code &code, Mask mask) {
  return warp.incomplete(code, firstLane(mask), "unmodelled",
                         formatv("the emulator cannot call `{0}`: the module has no body for it, or it is recursive",
                                 code.inst->ops[1].name)
                             .str());
}

Step exit(Warp &warp, const Code &code, Mask mask) {
  if (code.flags)
    checkUniform(warp, code, mask == warp.group().mask);
  if (warp.cta.hasWarpgroup(warp)) {
    sem::WarpgroupState &state = warp.cta.warpgroups[warp.index / 4].state;
    sem::Broken broken = sem::stepWarpgroup(state, {sem::WarpgroupCommand::exit, warp.index % 4, 0, 0}).broken;
    if (broken)
      return warp.fail(code, firstLane(mask), broken.rule, broken.text);
  }
  return warp.exit(mask);
}
Step trap(Warp &warp, const Code &code, Mask mask) {
  return warp.fail(code, firstLane(mask), "trap", "the kernel executed `trap`");
}
Step nothing(Warp &, const Code &, Mask) { return Step::Next; }
/// Fences order what one host thread does anyway; other clusters run on other host threads.
Step fence(Warp &warp, const Code &code, Mask mask) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (warp.cluster.check)
    warp.cluster.check->fence(warp, code, mask);
  return Step::Next;
}
/// `flags`: spaces, see `Check::proxyFence`.
Step proxyFence(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->proxyFence(warp, mask, code.flags);
  return Step::Next;
}
Step initFence(Warp &warp, const Code &, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->initFence(warp, mask);
  return Step::Next;
}
Step aliasFence(Warp &warp, const Code &, Mask mask) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (warp.cluster.check)
    warp.cluster.check->aliasFence(warp, mask);
  return Step::Next;
}
/// `flags`: the acquire half.
Step oneWayFence(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->oneWayFence(warp, mask, code.flags);
  return Step::Next;
}
Step mapRelease(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->mapReleased(warp, code, mask);
  return Step::Next;
}
/// Operands: [map], 128. The map is in global memory.
Step mapAcquire(Warp &warp, const Code &code, Mask mask) {
  std::array<uint64_t, numLanes> addresses{};
  bool good = true;
  forLanes(mask, [&](unsigned l) {
    addresses[l] = warp.address(code.args[0], l);
    if (good && !warp.cluster.global(addresses[l], 128)) {
      warp.fail(code, l, "FP-8", formatv("there are no 128 bytes of global memory at {0:x}", addresses[l]).str());
      good = false;
    }
  });
  if (good && warp.cluster.check)
    warp.cluster.check->mapAcquired(warp, code, mask, addresses.data());
  return good ? Step::Next : Step::Stop;
}
/// `flags`: wait, else launch_dependents.
Step gridDep(Warp &warp, const Code &code, Mask mask) {
  if (Check *check = warp.cluster.check.get()) {
    if (code.flags)
      check->gridWaited(warp, mask);
    else
      check->dependentsLaunched();
  }
  return Step::Next;
}
Step yield(Warp &, const Code &, Mask) { return Step::Yield; }

// --- Named barriers

enum Flag : uint32_t { Aligned = 1, Arrive = 2, Popc = 4, And = 8, Or = 16, Relaxed = 32 };

/// The barrier's number and count, the same in all lanes.
std::optional<Step> checkNumbers(Warp &warp, const Code &code, Mask mask, uint32_t id, uint32_t count, bool hasCount) {
  unsigned lane = firstLane(mask);
  for (unsigned l = lane; l < numLanes; ++l)
    if (mask >> l & 1 && warp.value(code.args[code.imm[0]], l) != id)
      return warp.fail(code, l, "NB-1", "the lanes of a warp name different barriers");
  for (unsigned l = lane; hasCount && l < numLanes; ++l)
    if (mask >> l & 1 && static_cast<uint32_t>(warp.value(code.args[code.imm[1]], l)) != count)
      return warp.fail(code, l, "NB-3", formatv("the lanes of a warp give barrier {0} different counts", id).str());
  if (hasCount && count == 0 && code.flags & Arrive)
    return warp.fail(code, lane, "NB-11", formatv("barrier {0} is used with 0 threads", id).str());
  if (warp.cluster.check && count > warp.cta.warps.size() * numLanes)
    return warp.fail(code, lane, "NB-12",
                     formatv("barrier {0} is used with {1} threads and can never open: the CTA has {2}", id, count,
                             warp.cta.warps.size() * numLanes)
                         .str());
  return std::nullopt;
}

sem::NamedBarrierOutcome arriveAt(Warp &warp, const Code &code, Mask mask, uint32_t id, uint32_t count) {
  sem::NamedBarrierCommand command;
  command.id = id;
  command.warp = warp.index;
  command.lanes = mask;
  command.count = count;
  command.isRed = code.flags & (Popc | And | Or);
  command.yes = command.isRed ? std::popcount(warp.pred(code.args[code.imm[2]]) & mask) : 0;
  command.mark = code.line;
  llvm::SmallVector<Mask, 32> alive = warp.cta.alive();
  command.alive = alive;
  return sem::stepNamedBarrier(id < warp.cta.named.size() ? warp.cta.named[id] : sem::NamedBarrierState(), command);
}

void giveResult(Warp &warp, const Code &code, Mask mask, const sem::NamedBarrierState &barrier) {
  if (code.flags & Popc)
    forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, barrier.result); });
  else if (code.flags & (And | Or)) {
    bool yes = code.flags & And ? barrier.result == barrier.resultThreads : barrier.result != 0;
    warp.setPred(code.args[0], yes ? allLanes : 0, mask);
  }
}

Step opened(Warp &warp, const Code &code, Mask mask, uint32_t id) {
  giveResult(warp, code, mask, warp.cta.named[id]);
  if (warp.cluster.check)
    warp.cluster.check->namedPassed(warp, mask, id);
  return Step::Next;
}

Step bar(Warp &warp, const Code &code, Mask mask) {
  Wait &wait = warp.group().wait;
  if (wait.what == Wait::Named && wait.arrived)
    return warp.cta.named[wait.id].generation == wait.generation ? Step::Block : opened(warp, code, mask, wait.id);
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  auto id = static_cast<uint32_t>(warp.value(code.args[code.imm[0]], firstLane(mask)));
  const Arg &countArg = code.args[code.imm[1]];
  bool hasCount = countArg.kind != Arg::None;
  auto count = hasCount ? static_cast<uint32_t>(warp.value(countArg, firstLane(mask))) : 0;
  if (auto step = checkNumbers(warp, code, mask, id, count, hasCount))
    return *step;
  sem::NamedBarrierOutcome outcome = arriveAt(warp, code, mask, id, count);
  if (outcome.broken)
    return warp.fail(code, firstLane(mask), outcome.broken.rule, outcome.broken.text);
  uint64_t generation = warp.cta.named[id].generation;
  warp.cta.named[id] = outcome.state;
  ++warp.cluster.version, ++warp.cluster.meetings;
  if (Check *check = warp.cluster.check.get()) {
    check->namedArrived(warp, mask, id, !(code.flags & Arrive));
    if (outcome.opened)
      check->namedOpened(warp.cta, id);
  }
  if (code.flags & Arrive)
    return Step::Next;
  wait = Wait();
  wait.what = Wait::Named;
  wait.arrived = true;
  wait.id = id;
  wait.generation = generation;
  return outcome.opened ? opened(warp, code, mask, id) : Step::Block;
}

Exec barrierExec(Decoder &d, uint32_t flags, unsigned firstOperand) {
  d.code->flags |= flags;
  for (unsigned i = 0; i < 3; ++i)
    d.code->imm[i] = firstOperand + i;
  return bar;
}

// --- The barrier of a cluster

/// `flags & Relaxed`: arrives without ordering memory.
Step clusterArrive(Warp &warp, const Code &code, Mask mask) {
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  Cluster &cluster = warp.cluster;
  auto outcome = sem::stepClusterBarrier(cluster.barrier, {sem::ClusterBarrierCommand::arrive, warp.number(), mask});
  if (outcome.broken)
    return warp.fail(code, outcome.lane, outcome.broken.rule, outcome.broken.text);
  ++cluster.version, ++cluster.meetings;
  if (cluster.check) {
    cluster.check->clusterArrived(warp, mask, code.flags & Relaxed);
    if (outcome.opened)
      cluster.check->clusterOpened();
  }
  return Step::Next;
}
/// A thread waits for the phase in which it arrived.
Step clusterWait(Warp &warp, const Code &code, Mask mask) {
  if (code.flags & Aligned)
    if (auto step = warp.aligned(code, mask))
      return *step;
  Cluster &cluster = warp.cluster;
  auto outcome = sem::stepClusterBarrier(cluster.barrier, {sem::ClusterBarrierCommand::wait, warp.number(), mask});
  if (outcome.broken)
    return warp.fail(code, outcome.lane, outcome.broken.rule, outcome.broken.text);
  if (outcome.blocked) {
    Wait &wait = warp.group().wait;
    wait = Wait();
    wait.what = Wait::ClusterBarrier;
    wait.generation = cluster.barrier.generation;
    return Step::Block;
  }
  if (cluster.check)
    cluster.check->clusterPassed(warp, mask);
  return Step::Next;
}

// --- setmaxnreg

/// `imm[0]`: registers a thread; `flags`: more.
Step setMaxRegisters(Warp &warp, const Code &code, Mask mask) {
  if (auto step = warp.aligned(code, mask))
    return *step;
  if (!warp.cta.hasWarpgroup(warp))
    return warp.fail(code, firstLane(mask), "SR-2",
                     formatv("`setmaxnreg` in warp {0}, but the CTA has {1} threads: a warpgroup is 128, four whole "
                             "warps",
                             warp.index, warp.cta.numThreads)
                         .str());
  using Command = sem::RegisterPoolCommand;
  auto wanted = static_cast<uint32_t>(code.imm[0]);
  auto outcome =
      sem::stepRegisterPool(warp.cta.registers, {code.flags ? Command::inc : Command::dec, warp.index, wanted, 0});
  if (outcome.broken)
    return warp.fail(code, firstLane(mask), outcome.broken.rule, outcome.broken.text);
  if (outcome.blocked) {
    Wait &wait = warp.group().wait;
    wait = Wait();
    wait.what = Wait::Registers;
    wait.id = wanted;
    return Step::Block;
  }
  if (outcome.ignored && warp.cluster.check)
    warp.cluster.check->report(warp, code, firstLane(mask), "SR-6",
                               "the kernel has no register cap at entry (.maxnreg, or .reqntid with .minnctapersm): "
                               "`setmaxnreg` is ignored");
  warp.cta.registers = outcome.state;
  ++warp.cluster.version;
  return Step::Next;
}
} // namespace

// --- What lives longer than an instruction

void Cta::exited() {
  llvm::SmallVector<Mask, 32> lanes = alive();
  for (auto [id, state] : llvm::enumerate(named)) {
    if (!state.expected)
      continue;
    sem::NamedBarrierCommand command;
    command.op = sem::NamedBarrierCommand::exit;
    command.alive = lanes;
    auto outcome = sem::stepNamedBarrier(state, command);
    state = outcome.state;
    if (!outcome.opened)
      continue;
    ++cluster.version;
    if (cluster.check)
      cluster.check->namedOpened(*this, id);
  }
}

Exec execBra(Decoder &d) { return d.has("uni") && d.code->guard >= 0 ? braUniform : bra; }
Exec execBrxIdx(Decoder &d) {
  auto table = d.jumpTable();
  d.code->imm[0] = table.value_or(0);
  d.flag("uni", 1);
  return table ? branchIndexed : unmodelled;
}
Exec execCall(Decoder &d) {
  llvm::StringRef callee = d.inst->ops[1].name;
  return callee == "vprintf" ? callPrint : callee == "__assertfail" ? callAssert : callUnknown;
}
Exec execRet(Decoder &d) {
  d.flag("uni", 1);
  return exit;
}
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
  d.flag("relaxed", Relaxed);
  return clusterArrive;
}
Exec execClusterWait(Decoder &d) {
  d.flag("aligned", Aligned);
  return clusterWait;
}
Exec execMembar(Decoder &) { return fence; }
Exec execFence(Decoder &) { return fence; }
Exec execFenceProxyAlias(Decoder &) { return aliasFence; }
Exec execFenceProxyAsync(Decoder &d) {
  bool shared = d.has("shared::cta") || d.has("shared::cluster"), global = d.has("global");
  uint32_t flags = d.has("shared::cta") ? uint32_t(Check::fenceOwn) : 0;
  if (shared || !global)
    flags |= Check::fenceShared;
  if (global || !shared)
    flags |= Check::fenceGlobal;
  d.code->flags = flags;
  return proxyFence;
}
Exec execFenceOneWayRelease(Decoder &) { return oneWayFence; }
Exec execFenceOneWayAcquire(Decoder &d) {
  d.code->flags = 1;
  return oneWayFence;
}
Exec execFenceTensormapRelease(Decoder &) { return mapRelease; }
Exec execFenceTensormapAcquire(Decoder &) { return mapAcquire; }
Exec execFenceMbarrierInit(Decoder &) { return initFence; }
Exec execGridDep(Decoder &d) {
  d.flag("wait", 1);
  return gridDep;
}
Exec execSetMaxNReg(Decoder &d) {
  d.code->imm[0] = d.immediate(0);
  d.code->flags = d.has("inc");
  return setMaxRegisters;
}

} // namespace gemmc::emu
