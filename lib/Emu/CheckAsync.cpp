// mbarriers, cp.async, bulk copies and wgmma as actors of their own.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

// --- mbarriers

namespace {
const char *opName(sem::MbarrierCommand::Op op) {
  static constexpr const char *names[] = {"init",        "inval",       "arrive", "arrive_drop", "expect_tx",
                                          "complete_tx", "pending + 1", "test",   "test"};
  return names[op];
}
} // namespace

/// Whether other lanes of the init's CTA have executed a fence.mbarrier_init, and its own has not since.
bool Check::fencedElsewhere(const Access &init) const {
  bool others = false, own = false;
  for (const auto &warp : cluster.ctas[init.warp / cluster.warpsPerCta]->warps)
    for (unsigned l = 0; l < numLanes; ++l) {
      Epoch at = warps[warp->number()].own.initFences[l];
      bool isOwner = warp->number() == init.warp && init.lanes & laneBits[l];
      own |= isOwner && at >= init.epoch;
      others |= !isOwner && at;
    }
  return others && !own;
}

/// The init is ordered before every use; uses by copies want it fenced, too.
void Check::checkInit(const Actor &actor, Cta &cta, Barrier &barrier, bool byAsync) {
  Agent agent = genericAgent(actor.warp, actor.code, actor.lane, 0);
  if (barrier.init.kind == Access::none)
    return;
  auto complain = [&](const char *rule, llvm::StringRef text) {
    for (const auto &[offset, other] : of(cta).barriers)
      if (&other == &barrier)
        report(actor.warp, actor.code, actor.lane, rule, formatv("{0}: {1}", text, describeObject(cluster, offset)),
               &barrier.init, ownCluster, about(offset, barrier.completed));
  };
  const bool fenced = ordered(agent, Sight::initialised, barrier.init); // behind that fence a relaxed arrival is enough
  if (!fenced && !ordered(agent, Sight::generic, barrier.init))
    complain("MB-20", "the mbarrier's init is not ordered before this use: no barrier of threads between them");
  else if (byAsync && !fenced)
    complain(
        fencedElsewhere(barrier.init) ? "FP-3" : "MB-21",
        fencedElsewhere(barrier.init)
            ? "another thread than the one that made the mbarrier has executed fence.mbarrier_init: it orders its own "
              "thread's inits"
            : "no fence.mbarrier_init between the mbarrier's init and a bulk copy that is counted there");
}

/// For a later inval.
void Check::mbarrierUsed(Barrier &barrier, const Access &use) {
  for (Access &other : barrier.uses)
    other.lanes &= other.component == use.component ? ~use.lanes : allLanes;
  llvm::erase_if(barrier.uses, [](const Access &other) { return !other.lanes; });
  barrier.uses.push_back(use);
}
void Check::testedBy(Barrier &barrier, Warp &warp, const Code &code, Mask mask) {
  if (!hasInval)
    return;
  Access use = genericAgent(warp, code, firstLane(mask), 0).access;
  use.lanes = mask;
  mbarrierUsed(barrier, use);
}
/// That its thread has waited for the copies does not say that they have arrived: the end of the phase does.
void Check::copiesPromised(Warp &warp, const Code &code, unsigned lane, std::byte *object) {
  uint32_t offset = 0;
  Cta *cta = hasInval ? cluster.ctaOf(object, offset) : nullptr;
  if (!cta)
    return;
  Barrier &barrier = of(*cta).barriers[offset];
  Access use = genericAgent(warp, code, lane, 0).access;
  mbarrierUsed(barrier, use);
  use.kind = Access::copy;
  use.component = barrier.component;
  use.epoch = barrier.completed + 1;
  use.lanes = allLanes;
  mbarrierUsed(barrier, use);
}

/// All that was done to the mbarrier must have happened, and all copies that are counted there must have come. One lane
/// speaks for its warp: that of libcu++'s pipeline that counts for those which `match.any` has found beside it.
void Check::invalidated(const Actor &actor, Cta &cta, uint32_t offset, const Barrier &barrier) {
  const Agent agent = genericAgent(actor.warp, actor.code, actor.lane, 0);
  auto complain = [&](const Access &before, llvm::StringRef what) {
    report(actor.warp, actor.code, actor.lane, "MB-26",
           formatv("invalidates {0} while {1}", describeObject(cluster, offset), what), &before, ownCluster,
           about(offset, barrier.completed));
  };
  for (Access use : barrier.uses) {
    const Mask lanes = std::exchange(use.lanes, allLanes);
    const bool happened = ordered(agent, Sight::execution, anyLane(use));
    use.lanes = lanes;
    if (!happened)
      complain(use, use.kind == Access::copy
                        ? "cp.async may still arrive there: nobody that this thread knows of has waited for the phase"
                        : "another thread may still use it: no synchronisation between them");
  }
  if (barrier.issued > (*agent.clocks)[Sight::execution].highest(barrier.component)) {
    Access copy;
    copy.pc = barrier.issuedPc;
    copy.warp = actor.warp.number();
    complain(copy, "a copy that is counted there may be in flight: nobody that this thread knows of has waited for it");
  }
}

void Check::identify(const Cta &cta, uint32_t offset, sem::MbarrierCommand &command) const {
  const auto &barriers = ctas[cta.rank].barriers;
  auto found = barriers.find(offset);
  command.object = (offset / 8 & 0x7fff) | cta.rank << 15;
  command.phases = 0;
  if (found == barriers.end())
    return;
  command.object |= (found->second.inits & 0xff) << 19;
  command.phases = found->second.completed;
}

void Check::mbarrier(const Actor &actor, Cta &cta, uint32_t offset, const sem::MbarrierCommand &command,
                     uint64_t before, const sem::MbarrierOutcome &outcome, bool byThread) {
  using Command = sem::MbarrierCommand;
  Barrier &barrier = of(cta).barriers[offset];
  if (!barrier.component)
    barrier.component = numComponents++;
  bool isTest = command.op == Command::testToken || command.op == Command::testParity;
  if (!isTest) {
    barrier.events.push_back({opName(command.op), actor.code.line, actor.warp.thread(actor.lane), actor.warp.cta.rank,
                              sem::describeMbarrier(outcome.word)});
    if (barrier.events.size() > 3)
      barrier.events.pop_front();
  }
  Agent agent = genericAgent(actor.warp, actor.code, actor.lane, 0);
  if (byThread)
    checkRemote(actor, cta);
  if (command.op == Command::init || command.op == Command::inval) {
    bool init = command.op == Command::init;
    ++of(cta).sharedUses;
    if (init) {
      shared(agent, cta, offset, 8, true); // ordered behind whatever used these bytes
      agent.access.kind = Access::mbarrier;
    } else {
      checkInit(actor, cta, barrier, false);
      invalidated(actor, cta, offset, barrier);
    }
    barrier.uses.clear();
    agent.access.write = true;
    barrier.init = init ? agent.access : Access();
    barrier.inits += init;
    barrier.observed = true;
    of(cta).shadow->use(
        offset, 8, false, [](const Cell &, uint64_t) { return true; }, [&](Cell &cell) { cell.write = agent.access; });
    return;
  }
  if (byThread)
    checkInit(actor, cta, barrier, false);
  if (byThread && !isTest && hasInval)
    mbarrierUsed(barrier, agent.access);
  bool arrives = command.op == Command::arrive || command.op == Command::drop;
  if (arrives && !barrier.observed)
    report(actor.warp, actor.code, actor.lane, "MB-15",
           formatv("arrives at {0} in phase {1}, and nobody has waited for the phase before",
                   describeObject(cluster, offset), barrier.completed),
           nullptr, ownCluster, about(offset, barrier.completed));
  if (arrives && byThread) {
    bool near = actor.warp.cta.rank == cta.rank, relaxed = actor.code.ordering.relaxed;
    bool far = near || actor.code.ordering.atCluster;
    Clocks released;
    release(actor.warp, laneBits[actor.lane], released, relaxed);
    Clocks onlyTime;
    for (Sight order : {Sight::execution, Sight::ordered, Sight::oneWay})
      onlyTime[order] = released[order];
    if (relaxed) // what a fence in front has released
      handFenced(actor.warp, laneBits[actor.lane], near ? anyFence : clusterFence, released);
    barrier.accumulated.join(near ? released : onlyTime);
    barrier.accumulatedFar.join(far ? released : onlyTime);
  }
  if (!outcome.completed)
    return;
  ++barrier.completed;
  barrier.observed = false;
  for (Clocks *clocks : {&barrier.accumulated, &barrier.accumulatedFar})
    clocks->learn(barrier.component, allLanes, barrier.completed);
  barrier.published.join(barrier.accumulated);
  barrier.publishedFar.join(barrier.accumulatedFar);
  barrier.accumulated = barrier.accumulatedFar = Clocks();
}

void Check::mbarrierPassed(Warp &warp, const Code &code, Mask mask, Cta &cta, uint32_t offset) {
  Barrier &barrier = of(cta).barriers[offset];
  barrier.observed = true;
  testedBy(barrier, warp, code, mask);
  forLanes(mask, [&](unsigned l) {
    Refused &refused = of(warp).refused[l];
    if (refused.offset == offset)
      refused = Refused();
  });
  if (barrier.issued && barrier.completed)
    of(warp).kStep = about(offset, barrier.completed - 1).kStep;
  bool far = code.ordering.atCluster;
  const Clocks &published = far ? barrier.publishedFar : barrier.published;
  const bool relaxed = code.ordering.relaxed;
  Clocks known = relaxed ? Clocks() : published;
  if (relaxed) // for a fence behind it
    observes(warp, mask, barrier.published, published);
  for (Sight order : {Sight::execution, Sight::oneWay})
    known[order].join(barrier.publishedFar[order]);
  if (!relaxed)
    known[Sight::ordered].join(barrier.publishedFar[Sight::ordered]);
  acquire(warp, mask, known);
}

void Check::copiesArrived(Warp &warp, unsigned lane, uint64_t serial, std::byte *object) {
  uint32_t offset = 0;
  Cta *cta = cluster.ctaOf(object, offset);
  if (!cta)
    return;
  Barrier &barrier = of(*cta).barriers[offset];
  barrier.accumulated.learn(copyComponent(warp), laneBits[lane], serial);
  barrier.accumulatedFar.learn(copyComponent(warp), laneBits[lane], serial);
  if (serial >= of(warp).lastCopy[lane]) // whoever waits there waits for them, too
    of(warp).lastCopy[lane] = of(warp).own.copies[lane];
}

std::string Check::history(const Warp &warp, const Wait &wait) const {
  const CtaState &cta = ctas[warp.cta.rank];
  auto found = cta.barriers.find(wait.address & ((1u << window::rankShift) - 1));
  if (found == cta.barriers.end())
    return "";
  std::string text;
  for (const Event &event : found->second.events) {
    std::string role = cluster.program.roleOf(event.thread / numLanes);
    text += formatv("\n    {0} at line {1} by thread {2} of CTA rank {3}{4}: {5}", event.what, event.line, event.thread,
                    event.cta, role.empty() ? role : " (" + role + ")", event.after);
  }
  return text;
}

/// Whoever is blocked waits for the phase that is not complete.
std::optional<uint64_t> Check::kStepOf(const Warp &warp, const Wait &wait) const {
  const auto &barriers = ctas[warp.cta.rank].barriers;
  auto found = barriers.find(wait.address & ((1u << window::rankShift) - 1));
  return found == barriers.end() ? std::nullopt : about(found->first, found->second.completed).kStep;
}

// --- cp.async

void Check::copyIssued(Warp &warp, const Code &code, const CpAsync &copy,
                       const std::array<uint64_t, numLanes> &sources) {
  llvm::SmallVector<Agent, 0> agents;
  llvm::SmallVector<GlobalUse, numLanes> read;
  agents.reserve(numLanes);
  forLanes(copy.pending, [&](unsigned l) {
    Agent &agent = agents.emplace_back(genericAgent(warp, code, l, 0));
    agent.access.kind = Access::copy;
    agent.access.component = copyComponent(warp);
    agent.access.epoch = copy.serial;
    uint32_t offset = 0;
    if (Cta *cta = cluster.ctaOf(copy.dst[l], offset))
      shared(agent, *cta, offset, copy.bytes, true);
    if (copy.src[l])
      read.push_back(insideCluster(agent, {sources[l], copy.srcBytes[l]}, true, false));
    of(warp).lastCopy[l] = copy.serial;
  });
  acrossClusters(read, false);
  ++of(warp.cta).sharedUses;
}
void Check::copiesCommitted(Warp &warp, Mask mask) {
  forLanes(mask, [&](unsigned l) { of(warp).copyEnds[l].push_back(warp.async.lastSerial); });
}
/// After the lanes' group states have moved on.
void Check::copiesWaited(Warp &warp, Mask mask) {
  WarpState &state = of(warp);
  ++state.now;
  forLanes(mask, [&](unsigned l) {
    const sem::GroupsState &groups = warp.async.copyGroups[l];
    std::vector<uint32_t> &ends = state.copyEnds[l];
    while (ends.size() < groups.committed) // wait_all commits
      ends.push_back(warp.async.lastSerial);
    if (groups.done)
      state.own.copies[l] = ends[groups.done - 1];
    state.copyWait.at[l] = state.now;
    state.copyWait.committed[l] = ends.empty() ? 0 : ends.back();
  });
}

// --- Bulk copies

Check::Agent Check::loadAgent(const Actor &actor, BulkTarget &target) {
  Barrier &barrier = of(*target.cta).barriers[target.mbarrier];
  if (!barrier.component)
    barrier.component = numComponents++;
  checkInit(actor, *target.cta, barrier, true);
  Agent agent = genericAgent(actor.warp, actor.code, actor.lane, 0);
  target.phase = barrier.completed;
  agent.access.kind = Access::bulk;
  agent.access.component = barrier.component;
  agent.access.epoch = barrier.completed + 1;
  agent.access.lanes = allLanes;
  barrier.issued = agent.access.epoch;
  barrier.issuedPc = agent.access.pc;
  return agent;
}

Check::Agent Check::storeAgent(const Actor &actor, bool reads) {
  Agent agent = genericAgent(actor.warp, actor.code, actor.lane, 0);
  agent.access.kind = Access::bulk;
  agent.access.component = bulkComponent(actor.warp, reads);
  agent.access.epoch = actor.warp.async.bulkGroups[actor.lane].committed + 1;
  return agent;
}

void Check::repeated(const Actor &actor, unsigned first) {
  report(actor.warp, actor.code, actor.lane, "BG-7",
         formatv("lanes {0} and {1} issue the same bulk store: it is done twice; elect one lane", first, actor.lane));
}

void Check::delivered(const Actor &actor, const BulkTarget &target) {
  Barrier &barrier = of(*target.cta).barriers[target.mbarrier];
  if (barrier.completed != target.phase)
    report(actor.warp, actor.code, actor.lane, "MB-11",
           formatv("the copy was issued in phase {0} of {1} and lands in phase {2}: the phase completed without it",
                   target.phase, describeObject(cluster, target.mbarrier), barrier.completed),
           nullptr, ownCluster, about(target.mbarrier, target.phase));
}

void Check::bulkWaited(Warp &warp, unsigned lane, bool readOnly) {
  const sem::GroupsState &groups = warp.async.bulkGroups[lane];
  OwnLanes &own = of(warp).own;
  WarpState &state = of(warp);
  state.bulkWait.at[lane] = ++state.now;
  state.bulkWait.committed[lane] = groups.committed;
  of(warp.cta).idleBulkWait |= !groups.committed && !groups.open;
  own.bulkRead[lane] = groups.read;
  if (!readOnly)
    own.bulkDone[lane] = groups.done;
}

// --- wgmma

void Check::wgmmaFence(Warp &warp) {
  WarpState &state = of(warp);
  Clocks all = state.lanes.joined();
  if (!state.atWgmmaFence)
    state.atWgmmaFence = std::make_unique<Clocks>();
  *state.atWgmmaFence = std::move(all);
  WgmmaRegisters::fence(state.registers);
}

namespace {
/// Visits the 16-byte chunks that an operand in shared memory consists of.
template <typename Visit>
void forEachChunk(const sem::WgmmaForm &form, bool isB, const sem::WgmmaDescriptor &descriptor, unsigned first,
                  unsigned lines, Visit visit) {
  bool mnMajor = isB ? form.transB : form.transA;
  unsigned bits = ptx::bitsOf(isB ? form.b : form.a), perChunk = 128 / (bits == 19 ? 32 : bits);
  if (mnMajor) {
    for (unsigned k = 0; k < form.k; ++k)
      for (unsigned line = first; line < first + lines; line += perChunk)
        visit(sem::elementAddress(descriptor, true, bits, line, k));
    return;
  }
  for (unsigned line = first; line < first + lines; ++line)
    for (unsigned k = 0; k < form.k; k += perChunk)
      visit(sem::elementAddress(descriptor, false, bits, line, k));
}
} // namespace

void Check::wgmmaIssued(Warp &warp, const Code &code, uint64_t descA, uint64_t descB) {
  WarpState &state = of(warp);
  const sem::WgmmaForm &form = cluster.program.wgmmaForms[code.imm[0]];
  const auto &groups = warp.cta.warpgroups[warp.index / 4].state.warps[warp.index % 4];
  if (auto broken = wgmmaRegisters.issue(state.registers, code, groups.committed)) {
    Access other;
    other.pc = broken->pc;
    other.warp = warp.number();
    report(warp, code, 0, broken->rule,
           broken->rule == std::string("WG-1")
               ? formatv("no wgmma.fence between an access to register {0} and this wgmma, which uses it", broken->reg)
               : formatv("register {0} belongs to a wgmma of another shape or role that is in flight", broken->reg),
           &other);
  }
  Clocks issued = state.lanes.joined();
  static const Clocks nothing;
  Agent agent{{warp, code, 0}, {}, state.atWgmmaFence ? state.atWgmmaFence.get() : &nothing, &issued};
  agent.access.kind = Access::wgmma;
  agent.access.component = wgmmaComponent(warp);
  agent.access.epoch = groups.committed + 1;
  agent.access.issued = state.now;
  agent.access.lanes = allLanes;
  agent.access.pc = pcOf(code);
  agent.access.warp = warp.number();
  auto visit = [&](bool isB, uint64_t bits, unsigned first, unsigned lines) {
    sem::WgmmaDescriptor descriptor;
    if (sem::decodeDescriptor(bits, descriptor))
      return; // reported when it executes
    forEachChunk(form, isB, descriptor, first, lines, [&](uint32_t address) {
      if (address >= window::sharedBase && address + 16 <= warp.cta.shared.size())
        shared(agent, warp.cta, address & ~15u, 16, false);
    });
  };
  if (code.args[1].kind == Arg::Value)
    visit(false, descA, warp.index % 4 * 16, 16);
  visit(true, descB, 0, form.n);
}

void Check::wgmmaWaited(Warp &warp, uint32_t groups) {
  if (groups)
    of(warp).lanes.each(allLanes,
                        [&](LaneClocks::Part &part) { part.clocks.learn(wgmmaComponent(warp), allLanes, groups); });
  of(warp).wgmmaWait = ++of(warp).now;
  WgmmaRegisters::wait(of(warp).registers, groups);
}

void Check::touchRegisters(Warp &warp, const Code &code) {
  auto broken = wgmmaRegisters.touch(of(warp).registers, code);
  if (!broken)
    return;
  Access other;
  other.pc = broken->pc;
  other.warp = warp.number();
  report(warp, code, 0, broken->rule,
         formatv("register {0} belongs to a wgmma in flight: {1} before this access", broken->reg,
                 broken->rule == std::string("WG-3")
                     ? "the last wgmma.wait_group does not cover it (not committed, or among the groups that it leaves)"
                     : "no wgmma.wait_group"),
         &other);
}

} // namespace gemmc::emu
