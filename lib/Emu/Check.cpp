// The state of the check, what lanes know, reports.
#include "Check.h"
#include "Lanes.h"
#include "Rules.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

/// The smallest access of the kernel to anything but registers, 2 to 8 bytes: what one cell of the shadow stands for.
unsigned granuleBits(const Program &program) {
  unsigned bits = 3;
  for (const Code &code : program.code) {
    if (!code.inst)
      continue;
    ptx::Effect effect = ptx::effectOf(code.inst->op);
    bool memory = effect == ptx::Effect::ReadMemory || effect == ptx::Effect::WriteMemory;
    if (!memory || code.where == Where::Param || code.where == Where::Const || code.where == Where::Local)
      continue;
    while (bits && (1u << bits) > code.bytes)
      --bits;
  }
  for (const Code &code : program.code)
    if (code.inst && (code.inst->op == ptx::Op::CpAsync || code.inst->op == ptx::Op::CpAsyncIgnore) && code.imm[0] == 4)
      bits = std::min(bits, 2u);
  return bits;
}

static uint64_t indexOf(const Cluster &cluster) {
  const auto &count = cluster.launch.numClusters;
  return cluster.id[0] + uint64_t(count[0]) * (cluster.id[1] + uint64_t(count[1]) * cluster.id[2]);
}

Check::Check(Cluster &cluster)
    : cluster(cluster), index(indexOf(cluster)), granule(granuleBits(cluster.program)),
      numWarps(cluster.ctas.size() * cluster.warpsPerCta), numComponents(5 * numWarps), warps(numWarps),
      ctas(cluster.ctas.size()), globals(granule), wgmmaRegisters(cluster.program), gridComponent(numComponents++) {
  executed.resize(cluster.program.code.size());
  for (const Code &code : cluster.program.code) {
    mayLaunchDependents |= code.inst && code.inst->op == ptx::Op::GridDep && code.inst->has("launch_dependents");
    hasScFences |= code.inst && isScFence(*code.inst);
    hasInval |= code.inst && code.inst->op == ptx::Op::MbarrierInval;
  }
  launchesDependents = cluster.launch.params.overlapped;
  mayLaunchDependents |= launchesDependents;
  for (auto &cta : cluster.ctas) {
    of(*cta).shadow = std::make_unique<ShadowRange>(cta->shared.size(), granule);
    for (SharedClocks &named : of(*cta).named)
      named = std::make_shared<Clocks>();
    for (auto &warp : cta->warps) {
      WarpState &state = of(*warp);
      state.exist = warp->alive;
      state.lanes = LaneClocks(warp->alive);
      state.registers = wgmmaRegisters.start();
    }
  }
}
Check::~Check() = default;

// --- Who knows what

/// Lanes with equal values together.
static void learnLanes(Clock &clock, uint32_t component, Mask lanes, Mask exist,
                       const std::array<uint32_t, numLanes> &values) {
  while (lanes) {
    uint32_t value = values[firstLane(lanes)];
    Mask same = 0;
    forLanes(lanes, [&](unsigned l) { same |= values[l] == value ? laneBits[l] : 0; });
    if (value)
      clock.learn(component, exist & ~same ? same : allLanes, value);
    lanes &= ~same;
  }
}

/// A lane that has exited hands over nothing: those that live do not speak for it.
void Check::handOver(const Warp &warp, const Known &known, Mask mask, Clocks &to, bool executionOnly) const {
  const OwnLanes &own = known.own;
  const Mask exist = of(warp).exist;
  auto learn = [&](Clock &clock, uint32_t component, const PerLane &values) {
    learnLanes(clock, component, mask, exist, values);
  };
  known.lanes.each(mask, [&](const LaneClocks::Part &part) {
    if (!executionOnly)
      return to.join(part.clocks);
    for (Sight order : {Sight::execution, Sight::oneWay})
      to[order].join(part.clocks[order]);
  });
  Mask lanes = exist & ~mask ? mask : allLanes;
  for (Sight order : {Sight::execution, Sight::ordered, Sight::generic}) {
    to[order].learn(warpComponent(warp), lanes, known.now);
    learn(to[order], copyComponent(warp), own.copies);
    learn(to[order], bulkComponent(warp, true), own.bulkRead);
    learn(to[order], bulkComponent(warp, false), own.bulkDone);
    if (executionOnly)
      break;
  }
  learn(to[Sight::oneWay], warpComponent(warp), own.oneWay);
  learn(to[Sight::oneWay], copyComponent(warp), own.copiesOneWay);
  learn(to[Sight::aliased], warpComponent(warp), own.aliased);
  // fence.mbarrier_init is a release of its thread's inits, fence.proxy.async is none.
  learn(to[Sight::initialised], warpComponent(warp), executionOnly ? own.initFences : own.init);
  if (executionOnly)
    return;
  of(warp).counted.each(mask, [&](const LaneClocks::Part &part) {
    to[Sight::counted].join(part.clocks[Sight::generic]);
    to.counted.join(part.clocks.foreign);
  });
  Sight strict[2] = {Sight::asyncShared, Sight::asyncGlobal};
  for (unsigned space = 0; space < 2; ++space) {
    learn(to[strict[space]], warpComponent(warp), own.fenced[space]);
    learn(to[strict[space]], copyComponent(warp), own.copiesFenced[space]);
  }
  if (llvm::any_of(own.fencedRemote, [](Epoch at) { return at != 0; })) // hardly ever
    learn(to[Sight::asyncRemote], warpComponent(warp), own.fencedRemote);
}

void Check::handFenced(const Warp &warp, Mask mask, FenceScope scope, Clocks &to) const {
  for (const AtFence &fence : of(warp).fences[scope])
    if (fence.lanes & mask)
      handOver(warp, *fence.known, fence.lanes & mask, to);
}

// --- Barriers of threads

void Check::namedArrived(Warp &warp, Mask mask, uint32_t id, bool waits) {
  SharedClocks &barrier = of(warp.cta).named[id];
  release(warp, mask, *barrier);
  if (waits)
    of(warp).named[id] = barrier;
}
/// Those who wait keep the clocks of their generation.
void Check::namedOpened(Cta &cta, uint32_t id) { of(cta).named[id] = std::make_shared<Clocks>(); }
void Check::namedPassed(Warp &warp, Mask mask, uint32_t id) {
  acquire(warp, mask, *of(warp).named[id]);
  of(warp).behindNamed = of(warp).named[id];
  if (!(warp.alive & ~mask))
    of(warp).lanes.unite(mask);
}

void Check::clusterArrived(Warp &warp, Mask mask, bool relaxed) {
  release(warp, mask, *clusterAccumulated, relaxed);
  if (relaxed)
    handFenced(warp, mask, clusterFence, *clusterAccumulated);
  of(warp).atCluster = clusterAccumulated;
}
void Check::clusterOpened() { clusterAccumulated = std::make_shared<Clocks>(); }
void Check::clusterPassed(Warp &warp, Mask mask) {
  if (of(warp).atCluster)
    acquire(warp, mask, *of(warp).atCluster);
  of(warp).behindCluster = of(warp).atCluster;
  if (LaneClocks &lanes = of(warp).lanes; !(warp.alive & ~mask) && lanes.differ()) {
    Clocks common = lanes.joined(); // all have waited for the same: relaxed arrivals hand over no more than time
    lanes.each(allLanes, [&](LaneClocks::Part &part) { part.clocks[Sight::execution] = common[Sight::execution]; });
  }
}

void Check::warpSync(Warp &warp, Mask lanes) {
  Clocks all;
  release(warp, lanes, all);
  acquire(warp, lanes, all);
  of(warp).lanes.unite(lanes);
}

// --- Fences

/// For the asynchronous proxy, the lanes' own past counts strictly, and all that they know loosely.
void Check::proxyFence(Warp &warp, Mask mask, uint32_t flags) {
  WarpState &state = of(warp);
  const uint32_t wanted[2] = {fenceShared, fenceGlobal};
  const Sight loose[2] = {Sight::looseShared, Sight::looseGlobal};
  bool useful = false;
  if (cluster.ctas.size() > 1 && flags & fenceShared && !(flags & fenceOwn)) {
    state.lanes.each(mask,
                     [](LaneClocks::Part &part) { part.clocks[Sight::looseRemote].join(part.clocks[Sight::generic]); });
    forLanes(mask, [&](unsigned l) { state.own.fencedRemote[l] = state.now; });
  }
  for (unsigned space = 0; space < 2; ++space) {
    if (!(flags & wanted[space]))
      continue;
    uint64_t uses = space ? globalUses : of(warp.cta).sharedUses;
    useful |= uses && uses != state.usesAtFence[space];
    state.usesAtFence[space] = uses;
    state.lanes.each(mask, [&](LaneClocks::Part &part) {
      part.clocks[loose[space]].join(part.clocks[Sight::generic]);
      if (space)
        part.clocks.foreign.fence();
    });
    forLanes(mask, [&](unsigned l) {
      state.own.fenced[space][l] = state.now;
      state.own.copiesFenced[space][l] = state.own.copies[l];
      if (!space)
        state.own.init[l] = state.now;
    });
  }
  fences[warp.group().pc] |= useful;
  ++state.now;
}

void Check::oneWayFence(Warp &warp, Mask mask, bool acquires) {
  WarpState &state = of(warp);
  OwnLanes &own = state.own;
  if (acquires)
    state.lanes.each(mask,
                     [](LaneClocks::Part &part) { part.clocks[Sight::asyncShared].join(part.clocks[Sight::oneWay]); });
  forLanes(mask, [&](unsigned l) {
    if (acquires) {
      own.fenced[0][l] = std::max(own.fenced[0][l], own.oneWay[l]);
      own.copiesFenced[0][l] = std::max(own.copiesFenced[0][l], own.copiesOneWay[l]);
      own.oneWayAcquire[l] = state.now;
    } else {
      own.oneWay[l] = state.now;
      own.copiesOneWay[l] = own.copies[l];
    }
  });
  ++state.now;
}

void Check::initFence(Warp &warp, Mask mask) {
  WarpState &state = of(warp);
  forLanes(mask, [&](unsigned l) { state.own.init[l] = state.own.initFences[l] = state.now; });
  ++state.now;
}

void Check::aliasFence(Warp &warp, Mask mask) {
  WarpState &state = of(warp);
  state.lanes.each(mask, [](LaneClocks::Part &part) { part.clocks[Sight::aliased].join(part.clocks[Sight::generic]); });
  forLanes(mask, [&](unsigned l) { state.own.aliased[l] = state.now; });
  ++state.now;
}

/// Relaxed reads: `near` for a fence behind them of .cta scope, `far` for wider ones.
void Check::observes(Warp &warp, Mask mask, const Clocks &near, const Clocks &far) {
  of(warp).observed.join(mask, near);
  if (cluster.ctas.size() > 1)
    of(warp).observedFar.join(mask, far);
}

/// Relaxed reads and waits of a lane before it become acquires, its relaxed writes and arrivals behind it releases: for
/// those whom its scope includes.
void Check::fence(Warp &warp, const Code &code, Mask mask) {
  WarpState &state = of(warp);
  forLanes(mask, [&](unsigned l) { state.own.plainFence[l] = state.now; });
  const FenceScope scope = scopeOf(code);
  if (scope == wideFence && (code.ordering.acquires || !code.ordering.releases))
    state.counted.each(mask, [](LaneClocks::Part &part) { part.clocks = Clocks(); });
  auto take = [&](LaneClocks &observed) {
    observed.each(mask, [&](LaneClocks::Part &part) {
      ForeignClocks later; // for a wider fence
      if (scope != wideFence)
        std::swap(later, part.clocks.foreign);
      acquire(warp, part.lanes, part.clocks);
      part.clocks = Clocks();
      part.clocks.foreign = std::move(later);
    });
  };
  if (code.ordering.acquires || !code.ordering.releases) {
    take(state.observed);
    if (scope != anyFence)
      take(state.observedFar);
  }
  const bool isSc = isScFence(*code.inst);
  if (isSc)
    state.lanes.each(mask, [&](LaneClocks::Part &part) {
      Clocks learnt;
      learnScFences(warp, scope, part.clocks, learnt);
      part.clocks.join(learnt);
    });
  if (code.ordering.releases || !code.ordering.acquires) {
    const AtFence fence{mask, scope, std::make_shared<const Known>(state)};
    for (unsigned narrower = anyFence; narrower <= scope; ++narrower) {
      auto &fences = state.fences[narrower];
      for (AtFence &earlier : fences)
        earlier.lanes &= ~mask;
      llvm::erase_if(fences, [](const AtFence &earlier) { return !earlier.lanes; });
      fences.push_back(fence);
    }
    if (isSc)
      keepScFence(warp, fence);
  }
  ++state.now;
}

// --- Exit

void Check::exit(Warp &warp, Mask mask) {
  WarpState &state = of(warp);
  const Code &code = cluster.program.code[warp.group().pc];
  leavesUnanswered(warp, mask);
  forLanes(mask, [&](unsigned l) {
    const sem::GroupsState &bulk = warp.async.bulkGroups[l];
    if (bulk.open || bulk.read < bulk.committed)
      report(warp, code, l, "BG-4",
             bulk.open ? "the thread exits with bulk stores that it has not committed"
                       : "the thread exits without waiting for its bulk stores to have read shared memory");
    if (state.lastCopy[l] > state.own.copies[l])
      report(warp, code, l, "CA-8", "the thread exits with cp.async that it has not waited for");
  });
  state.lanes.each(mask, [&](LaneClocks::Part &part) { of(warp.cta).atExit.join(part.clocks[Sight::execution]); });
  of(warp.cta).atExit.learn(warpComponent(warp), mask, state.now);
  bool last = true;
  for (auto &other : warp.cta.warps)
    last &= !(other.get() == &warp ? other->alive & ~mask : other->alive);
  if (last)
    exitCta(warp, code, firstLane(mask));
}

/// Nobody may touch the shared memory of a CTA that has exited: what others did must be known to have happened.
void Check::exitCta(Warp &warp, const Code &code, unsigned lane) {
  CtaState &cta = of(warp.cta);
  for (const Access &use : cta.remoteUses)
    if (!cta.atExit.knows(use.component, use.lanes, use.epoch))
      report(warp, code, lane, "CL-7",
             "the CTA may exit before another CTA of the cluster touches its shared memory: no cluster barrier "
             "between that and the exit",
             &use);
  for (const Access &copy : cta.sources)
    if (!cta.atExit.knows(copy.component, copy.lanes, copy.epoch))
      report(warp, code, lane, "CL-7",
             "the CTA may exit before a copy to another CTA of the cluster has read its shared memory: no wait for the "
             "copy's mbarrier, or for a thread that has waited for it",
             &copy);
  for (auto &[offset, barrier] : cta.barriers)
    if (barrier.issued > cta.atExit.highest(barrier.component)) {
      Access copy;
      copy.pc = barrier.issuedPc;
      copy.warp = warp.number();
      report(warp, code, lane, "MB-22",
             formatv("the CTA exits and nobody has waited for a copy that is counted at {0}",
                     describeObject(cluster, offset)),
             &copy, ownCluster, about(offset, barrier.issued - 1));
    }
}

// --- Reports

Witness Check::witness(const Access &access) const {
  Witness witness;
  const Code &code = cluster.program.code[access.pc];
  const Cta &cta = *cluster.ctas[access.warp / cluster.warpsPerCta];
  uint32_t index = access.warp % cluster.warpsPerCta;
  witness.line = code.line;
  witness.mnemonic = code.inst ? code.inst->mnemonic() : "";
  witness.cta = cta.id;
  witness.thread = index * numLanes + (access.lanes ? firstLane(access.lanes) : 0);
  witness.role = cluster.program.roleOf(index);
  return witness;
}

/// Bulk copies are epochs of their mbarrier: its phases.
std::optional<uint64_t> Check::kStepOf(const Access &access) const {
  if (access.kind != Access::bulk || access.component < 5 * numWarps)
    return std::nullopt;
  for (const CtaState &cta : ctas)
    for (const auto &[offset, barrier] : cta.barriers)
      if (barrier.component == access.component)
        return about(offset, access.epoch - 1).kStep;
  return std::nullopt;
}

Check::About Check::about(uint32_t mbarrier, uint64_t phase) const {
  About about;
  about.spot = spotAt(cluster, mbarrier);
  if (about.spot)
    about.kStep = about.spot.kStep(phase);
  return about;
}

/// Who has read the cell before has read what the last write left there.
Check::About Check::aboutRace(const Access &now, const Access &before, const Cell &cell, uint32_t offset) const {
  About about;
  about.spot = spotAt(cluster, offset);
  about.kStep = now.kind == Access::bulk ? kStepOf(now) : warps[now.warp].kStep;
  about.otherKStep = kStepOf(before.write ? before : cell.write);
  return about;
}

void Check::report(Warp &warp, const Code &code, unsigned lane, llvm::StringRef rule, const llvm::Twine &text,
                   const Access *before, uint64_t ofCluster, const About &about) {
  uint32_t earlier = before ? before->pc + 1 : 0;
  if (!reported.insert({rule.str(), pcOf(code), earlier}).second)
    return;
  Finding finding;
  finding.verdict = severityOf(rule, cluster.launch.options.check.foreign);
  finding.code = rule.str();
  finding.message = text.str();
  Access now;
  now.pc = pcOf(code);
  now.warp = warp.number();
  now.lanes = laneBits[lane];
  static_cast<Witness &>(finding) = witness(now);
  if (before)
    finding.other = witness(*before);
  about.spot.mark(finding);
  finding.kStep = about.kStep;
  finding.other.kStep = about.otherKStep;
  if (before && ofCluster != ownCluster)
    for (unsigned i = 0; i < 3; ++i) {
      uint64_t count = cluster.launch.numClusters[i];
      finding.other.cta[i] += (ofCluster % count - cluster.id[i]) * cluster.launch.params.cluster[i];
      ofCluster /= count;
    }
  cluster.launch.report(std::move(finding));
}

} // namespace gemmc::emu
