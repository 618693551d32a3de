// Accesses to memory: who must be ordered before whom, and by what.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::emu {

raw_ostream &operator<<(raw_ostream &out, const Access &access) {
  const char *what = access.kind == Access::copy      ? "cp.async"
                     : access.kind == Access::wgmma   ? "asynchronous (wgmma)"
                     : access.kind == Access::bulk    ? "asynchronous (bulk copy)"
                     : access.kind == Access::generic ? "generic"
                                                      : "mbarrier";
  return out << what << (access.write ? " write" : " read");
}

// --- The rules

Check::Problem Check::problem(const Agent &agent, const Access &before, const char *rule, const Twine &text) const {
  return {rule, isReported(rule, agent.actor.code, &before) ? "" : text.str()};
}

Epoch Check::ownEpoch(const Warp &warp, unsigned lane, Sight order, uint32_t component) const {
  const OwnLanes &own = warps[warp.number()].own;
  bool happened =
      order == Sight::execution || order == Sight::ordered || order == Sight::generic || order == Sight::counted;
  unsigned space = order == Sight::asyncGlobal || order == Sight::looseGlobal;
  if (component == warpComponent(warp))
    return happened                                                     ? ~Epoch(0)
           : order == Sight::initialised                                ? own.init[lane]
           : order == Sight::oneWay                                     ? own.oneWay[lane]
           : order == Sight::aliased                                    ? own.aliased[lane]
           : order == Sight::asyncRemote || order == Sight::looseRemote ? own.fencedRemote[lane]
                                                                        : own.fenced[space][lane];
  if (component == copyComponent(warp))
    return happened                 ? own.copies[lane]
           : order == Sight::oneWay ? own.copiesOneWay[lane]
                                    : own.copiesFenced[space][lane];
  if (component == bulkComponent(warp, true))
    return happened ? own.bulkRead[lane] : 0;
  return component == bulkComponent(warp, false) && happened ? own.bulkDone[lane] : 0;
}

/// A lane knows of itself by program order, of others what the clocks say. A wgmma is executed by all lanes.
bool Check::ordered(const Agent &agent, const Clocks &clocks, Sight order, const Access &before) const {
  const Warp &warp = agent.actor.warp;
  Mask lanes = before.lanes, covered = 0;
  if (before.warp == warp.number()) {
    Mask own = agent.access.kind == Access::wgmma ? allLanes : laneBits[agent.actor.lane];
    forLanes(own & lanes, [&](unsigned l) {
      covered |= ownEpoch(warp, l, order, before.component) >= before.epoch ? laneBits[l] : 0;
    });
    if ((before.collective && covered) || !(lanes &= ~covered))
      return true;
  }
  if (before.collective)
    return clocks[order].knowsAny(before.component, lanes, before.epoch);
  return clocks[order].knows(before.component, lanes, before.epoch);
}

bool Check::sameCta(const Agent &agent, const Access &before) const {
  return before.warp / cluster.warpsPerCta == agent.actor.warp.cta.rank;
}

std::optional<Check::Problem> Check::judgeGeneric(const Agent &agent, const Access &before) const {
  if (ordered(agent, Sight::generic, before))
    return std::nullopt;
  if (before.kind == Access::copy)
    return uncopied(agent, before);
  if (std::string lines = whereCounted(agent, before, ownCluster); !lines.empty())
    return problem(agent, before, "DR-5", describeCounted(agent.access, before, lines));
  const SharedClocks &behind = warps[agent.actor.warp.number()].behindCluster;
  if (behind && (*behind)[Sight::execution].knows(before.component, before.lanes, before.epoch) &&
      !(*behind)[Sight::generic].knows(before.component, before.lanes, before.epoch))
    return problem(agent, before, "CL-6",
                   formatv("only a relaxed arrival at the cluster barrier stands between {0} and {1}: it orders "
                           "no memory without a fence",
                           before, agent.access));
  if (ordered(agent, Sight::execution, before))
    return problem(agent, before, sameCta(agent, before) ? "MB-18" : "MB-19",
                   formatv("this {0} comes after the earlier {1} in time, but its effect is not ordered: relaxed, or "
                           "a scope that does not include both threads",
                           agent.access, before));
  const char *why = before.strong && agent.access.strong && before.bytes != agent.access.bytes
                        ? " (strong accesses of unlike sizes are not atomic to each other)"
                    : before.warp == agent.actor.warp.number() ? " (lanes of one warp: bar.warp.sync)"
                                                               : "";
  return problem(agent, before, "DR-1",
                 formatv("data race: {0} after {1} of the same bytes, and no synchronisation between them{2}",
                         agent.access, before, why));
}

/// Generic before asynchronous.
std::optional<Check::Problem> Check::judgeProxies(const Agent &agent, const Access &before, Space space) const {
  bool isShared = space == Space::shared;
  const bool remote = isShared && isRemote(agent, before);
  Sight strict = remote ? Sight::asyncRemote : isShared ? Sight::asyncShared : Sight::asyncGlobal;
  Sight loose = remote ? Sight::looseRemote : isShared ? Sight::looseShared : Sight::looseGlobal;
  Sight other = isShared ? Sight::asyncGlobal : Sight::asyncShared;
  if (ordered(agent, strict, before))
    return std::nullopt;
  if (agent.issue && ordered(agent, *agent.issue, strict, before))
    return problem(agent, before, "WG-7", "no wgmma.fence between the wait for this data and the wgmma that reads it");
  if (isShared && !remote && ordered(agent, Sight::oneWay, before))
    return problem(agent, before, "FP-4",
                   formatv("the {0} has the release half of a one-way proxy fence behind it, and its acquire half "
                           "is missing in this thread: fence.proxy.async::generic.acquire",
                           before));
  if (ordered(agent, loose, before))
    return problem(agent, before, "PX-2",
                   formatv("the {0} is fenced by another thread than the one that made it", before));
  if (remote && (ordered(agent, Sight::asyncShared, before) || ordered(agent, Sight::oneWay, before)))
    return problem(agent, before, "PX-8",
                   formatv("the {0} was one of another CTA's shared memory, and the fence behind it is for "
                           ".shared::cta, the memory of its own CTA",
                           before));
  // A thread of the CTA whose bytes these are fences them by .shared::cta, too.
  if (remote && agent.home == &agent.actor.warp.cta && ordered(agent, Sight::looseShared, before))
    return problem(agent, before, "PX-2",
                   formatv("the {0} is fenced by another thread than the one that made it", before));
  bool inTime = ordered(agent, Sight::execution, before) ||
                (agent.issue && ordered(agent, *agent.issue, Sight::execution, before));
  if (!inTime)
    return before.kind == Access::copy
               ? uncopied(agent, before)
               : problem(agent, before, "DR-1",
                         formatv("data race: {0} after {1} of the same bytes, and no synchronisation between "
                                 "them",
                                 agent.access, before));
  if (ordered(agent, other, before))
    return problem(agent, before, "PX-8",
                   formatv("the fence.proxy.async between them names another state space than {0}",
                           isShared ? "shared" : "global"));
  if (before.write && isShared) {
    const WarpState &writer = warps[before.warp], &reader = warps[agent.actor.warp.number()];
    bool plain = true;
    forLanes(before.lanes, [&](unsigned l) { plain &= writer.own.plainFence[l] >= before.issued; });
    if (plain)
      return problem(agent, before, "FP-1",
                     formatv("the fence between {0} and {1} is no proxy fence", before, agent.access));
    if (reader.own.oneWayAcquire[agent.actor.lane])
      return problem(agent, before, "FP-4",
                     formatv("this thread has the acquire half of a one-way proxy fence, and the {0} has no "
                             "release half behind it: fence.proxy.async::generic.release",
                             before));
    if (reader.own.fenced[0][agent.actor.lane])
      return problem(agent, before, "FP-2",
                     formatv("this thread's fence.proxy.async came before it knew of the {0}: a fence covers "
                             "what its own thread has done or knows",
                             before));
  }
  const char *rule = !before.write ? "PX-4" : before.kind == Access::copy ? "PX-3" : isShared ? "PX-1" : "PX-7";
  return problem(agent, before, rule,
                 formatv("no fence.proxy.async between {0} and {1} of the same {2} bytes", before, agent.access,
                         isShared ? "shared" : "global"));
}

/// Asynchronous before anything.
std::optional<Check::Problem> Check::judgeAsync(const Agent &agent, const Access &before) const {
  Sight need = agent.access.isAsync() && agent.access.write ? Sight::ordered : Sight::generic;
  if (ordered(agent, need, before))
    return std::nullopt;
  if (agent.issue && ordered(agent, *agent.issue, need, before))
    return problem(agent, before, "WG-7", "no wgmma.fence between the wait for this data and the wgmma that reads it");
  const Access &now = agent.access;
  if (need == Sight::ordered && ordered(agent, Sight::execution, before))
    return problem(agent, before, "MB-18",
                   formatv("{0} of bytes of an earlier asynchronous {1} that it follows by a relaxed "
                           "synchronisation only, which orders no memory",
                           now, before.write ? "write" : "read"));
  bool isStore = before.component < 5 * numWarps && before.kind == Access::bulk;
  if (isStore)
    return unstored(agent, before);
  if (auto barrier = onlyBarrier(agent, before))
    return barrier;
  if (before.kind == Access::wgmma)
    return problem(agent, before, "WG-6",
                   formatv("{0} of bytes that a wgmma may still read: its thread does not know that the wgmma "
                           "was waited for (wgmma.wait_group, then a signal)",
                           now));
  return problem(agent, before, "TM-6",
                 formatv("{0} of bytes that a bulk copy may still {1}: no successful wait for its mbarrier's "
                         "phase between them",
                         now, before.write ? "write" : "read"));
}

std::string describeMixed(const Access &now, const Access &before) {
  return formatv(
      "{0} after {1} of the same bytes, both atomic, but of two proxies: by the manual neither is atomic to the other, "
      "and they must be ordered like others; one kind of reduction for one place needs no order",
      now, before);
}

/// Two addresses of the same bytes are like two proxies, for strong accesses, too (8.6). Of generic accesses.
std::optional<Check::Problem> Check::judge(const Agent &agent, const Access &before, Space space) const {
  auto unordered = judgeOrder(agent, before, space);
  if (unordered || before.alias == agent.access.alias || before.kind != Access::generic ||
      agent.access.kind != Access::generic || ordered(agent, Sight::aliased, before))
    return unordered;
  return problem(agent, before, "PX-9",
                 formatv("no fence.proxy.alias between {0} and {1}, which call the same bytes by two addresses", before,
                         agent.access));
}

std::optional<Check::Problem> Check::judgeOrder(const Agent &agent, const Access &before, Space space) const {
  if (before.kind == Access::none)
    return std::nullopt;
  if (before.strong && agent.access.strong) {
    const bool inScope = sameCta(agent, before) || !(before.ofCta || agent.access.ofCta);
    if (inScope && areAtomic(before, agent.access))
      return std::nullopt;
    if (inScope && areMixed(before, agent.access)) {
      auto unordered = before.isAsync() ? judgeAsync(agent, before) : judgeProxies(agent, before, space);
      return unordered ? std::optional(problem(agent, before, "PX-10", describeMixed(agent.access, before)))
                       : std::nullopt;
    }
  }
  if (before.kind == Access::mbarrier)
    return problem(agent, before, "MB-3", formatv("{0} of the bytes of a valid mbarrier", agent.access));
  if (before.isAsync())
    return judgeAsync(agent, before);
  // st.async completes like a bulk copy, but no manual says that it is one of another proxy (9.7.9.12).
  const bool isOtherProxy = agent.access.isAsync() && agent.actor.code.inst->op != ptx::Op::StAsync;
  return isOtherProxy ? judgeProxies(agent, before, space) : judgeGeneric(agent, before);
}

// --- Cells

namespace {
/// A lane's later read stands for its earlier ones of the same kind: who knows of it knows of them.
void addReader(Cell &cell, const Access &reader) {
  Access *place = nullptr;
  bool emptied = false;
  for (Access &other : cell.readers) {
    if (other.component != reader.component || other.kind != reader.kind || other.collective != reader.collective ||
        other.strong != reader.strong || other.ofCta != reader.ofCta)
      continue;
    if (other.epoch == reader.epoch)
      place = &other;
    else if (other.epoch < reader.epoch && !(other.lanes &= ~reader.lanes))
      emptied = true;
  }
  if (place)
    place->lanes |= reader.lanes;
  else
    cell.readers.push_back(reader);
  if (emptied)
    erase_if(cell.readers, [](const Access &other) { return !other.lanes; });
}
} // namespace

/// Whether the agent comes behind a strong read of what `before` left there, by its own thread or one that it knows of:
/// that is an order, too, of these bytes alone (8.9.5).
bool Check::observed(const Agent &agent, const Access &before, llvm::ArrayRef<const Access *> observers) const {
  return before.strong && before.write && !agent.access.isAsync() &&
         llvm::any_of(observers, [&](const Access *one) { return ordered(agent, Sight::generic, anyLane(*one)); });
}

/// A strong write takes the place of those before it: they are remembered where somebody may still meet them.
void Check::keepStrong(const Agent &agent, Cell &cell) const {
  auto keep = [&](const Access &access) {
    if (!access.strong || ordered(agent, Sight::generic, access))
      return;
    if (!cell.earlier)
      cell.earlier = std::make_unique<std::vector<Access>>();
    llvm::erase_if(*cell.earlier, [&](const Access &other) {
      return other.component == access.component && other.write == access.write && !(other.lanes & ~access.lanes);
    });
    cell.earlier->push_back(access);
    constexpr size_t many = 16; // now and then those go that somebody knows of
    if (size_t size = cell.earlier->size(); size >= many && !(size & (size - 1)))
      llvm::erase_if(*cell.earlier, [&](const Access &other) { return ordered(agent, Sight::generic, other); });
  };
  keep(cell.write);
  for (const Access &reader : cell.readers)
    keep(reader);
}

bool Check::look(Agent &agent, Space space, const Cell &cell, uint64_t address, bool isRead, bool isWrite) {
  const size_t told = reported.size();
  const Actor &actor = agent.actor;
  llvm::SmallVector<const Access *, 4> observers; // of what the access looked at has left
  auto complain = [&](const Access &before) {
    if (before.warp == actor.warp.number() && before.pc == agent.access.pc && before.epoch == agent.access.epoch &&
        before.component == agent.access.component &&
        (agent.access.kind != Access::bulk ||
         (before.issued == agent.access.issued && (before.lanes == agent.access.lanes || agent.repeats))))
      return; // lanes of one instruction (DR-4, BG-7), pieces of one bulk copy, or the four warps' shares of one wgmma
    auto problem = judge(agent, before, space);
    if (!problem || problem->text.empty() || observed(agent, before, observers))
      return;
    if (space == Space::shared)
      report(actor.warp, actor.code, actor.lane, problem->rule,
             formatv("{0}: {1}", problem->text, describeShared(cluster, address)), &before, ownCluster,
             aboutRace(agent.access, before, cell, address));
    else
      report(actor.warp, actor.code, actor.lane, problem->rule,
             formatv("{0} (global address {1:x})", problem->text, address), &before);
  };
  agent.access.write = isWrite;
  agent.access.updates = isWrite && (isRead || (agent.access.strong && agent.access.isAsync()));
  // A thread may load what nobody has written, ahead of its loop's end: only what comes of it counts.
  if (isRead && agent.access.isAsync() && cell.write.kind == Access::none && space == Space::shared &&
      !isReported("DR-2", actor.code, nullptr))
    report(actor.warp, actor.code, actor.lane, "DR-2",
           formatv("{0} of shared memory that nobody has written: {1}", agent.access, describeShared(cluster, address)),
           nullptr, ownCluster, aboutRace(agent.access, agent.access, cell, address));
  auto observe = [&](const Access &access) {
    if (access.replaces())
      observers.clear();
    if (access.observes())
      observers.push_back(&access);
  };
  if (isWrite || cell.write.strong)
    for (const Access &reader : cell.readers) {
      if (isWrite)
        complain(reader);
      observe(reader);
    }
  complain(cell.write);
  if (cell.earlier) {
    observe(cell.write);
    for (const Access &earlier : llvm::reverse(*cell.earlier)) {
      if (isWrite || earlier.write)
        complain(earlier);
      observe(earlier);
    }
  }
  return reported.size() == told;
}

void Check::keep(const Agent &agent, Cell &cell) const {
  if (!agent.access.write)
    return addReader(cell, agent.access);
  if (agent.access.strong)
    keepStrong(agent, cell);
  cell.readers.clear();
  cell.write = agent.access;
}

template <typename Shadow>
void Check::touch(Agent &agent, Space space, Shadow &shadow, uint64_t address, uint64_t bytes, bool isRead,
                  bool isWrite) {
  shadow.use(
      address, bytes, isWrite && !agent.access.strong,
      [&](const Cell &cell, uint64_t at) { return look(agent, space, cell, at, isRead, isWrite); },
      [&](Cell &cell) { keep(agent, cell); });
}

void Check::shared(Agent &agent, Cta &cta, uint32_t offset, uint64_t bytes, bool writes) {
  checkRemote(agent.actor, cta, agent.access.isAsync());
  agent.home = &cta;
  touch(agent, Space::shared, *of(cta).shadow, offset, bytes, !writes, writes);
  if (writes || agent.access.kind != Access::bulk || agent.access.component < 5 * numWarps)
    return;
  auto same = [&](const Access &other) { return other.component == agent.access.component; };
  llvm::erase_if(of(cta).sources, same);
  of(cta).sources.push_back(agent.access);
}

void Check::enter(const GlobalReads::Read &read) {
  globals.use(
      read.address, read.bytes, false, [](const Cell &, uint64_t) { return true; },
      [&](Cell &cell) { addReader(cell, read.access); });
}

/// Whether a read needs no shadow, as the cluster has not written to the allocation.
bool Check::isNoted(Agent &agent, uint64_t address, uint64_t bytes) {
  agent.access.write = false;
  return globalReads.noted(cluster.launch.memory, {address, bytes, agent.access}, [this](auto &read) { enter(read); });
}

void Check::touchGlobal(Agent &agent, uint64_t address, uint64_t bytes, bool isRead, bool isWrite) {
  if (isWrite)
    globalReads.written(cluster.launch.memory, address, [this](auto &read) { enter(read); });
  else if (isNoted(agent, address, bytes))
    return;
  touch(agent, Space::global, globals, address, bytes, isRead, isWrite);
}

Check::GlobalUse Check::insideCluster(Agent &agent, GlobalRange range, bool reads, bool writes, bool constant) {
  Memory::Home home = cluster.launch.memory.homeOf(range.address);
  range.address = home.address;
  agent.access.alias = home.alias;
  dependency(agent, range.address, range.bytes, reads, writes);
  touchGlobal(agent, range.address, range.bytes, reads, writes);
  if ((writes || constant) && cluster.launch.readOnly)
    readOnly(agent, range.address, range.bytes, writes);
  return {&agent, range};
}

void Check::global(Agent &agent, llvm::ArrayRef<GlobalRange> ranges, bool writes) {
  llvm::SmallVector<GlobalUse, 64> uses;
  for (GlobalRange range : ranges)
    uses.push_back(insideCluster(agent, range, !writes, writes));
  acrossClusters(uses, writes);
}

void Check::checkRemote(const Actor &actor, Cta &cta, bool async) {
  if (actor.warp.cta.rank == cta.rank)
    return;
  const Clock &known = of(actor.warp).lanes.of(actor.lane)[Sight::execution];
  bool started = false;
  for (auto &warp : cta.warps)
    started |= known.highest(warpComponent(*warp)) != 0;
  if (!started)
    report(actor.warp, actor.code, actor.lane, async ? "TM-5" : "CL-5",
           formatv("nothing says that CTA {0} of the cluster has started when its shared memory is touched: no cluster "
                   "barrier before it",
                   cta.rank));
  if (async) // counted at an mbarrier of that CTA: MB-22
    return;
  Access use;
  use.component = warpComponent(actor.warp);
  use.epoch = of(actor.warp).now;
  use.lanes = laneBits[actor.lane];
  use.pc = pcOf(actor.code);
  use.warp = actor.warp.number();
  for (Access &other : of(cta).remoteUses)
    if (other.component == use.component && other.lanes == use.lanes) {
      other = use;
      return;
    }
  of(cta).remoteUses.push_back(use);
}

// --- Accesses by threads

Check::Agent Check::genericAgent(Warp &warp, const Code &code, unsigned lane, unsigned use) {
  Agent agent{{warp, code, lane}, {}, &of(warp).lanes.of(lane), nullptr};
  agent.access.kind = Access::generic;
  agent.access.strong = use & strong;
  agent.access.ofCta = use & strong && code.ordering.atCta;
  const bool packed = code.type == Type::f16x2 || code.type == Type::bf16x2; // two accesses, one each element (8.2.5)
  agent.access.bytes = use & strong ? packed ? code.bytes / 2 : code.bytes : 0;
  agent.access.collective = use & collective && (!(use & write) || use & together);
  agent.access.component = warpComponent(warp);
  agent.access.epoch = agent.access.issued = of(warp).now;
  agent.access.lanes = use & collective ? allLanes : laneBits[lane];
  agent.access.pc = pcOf(code);
  agent.access.warp = warp.number();
  return agent;
}

void Check::generic(Warp &warp, const Code &code, Mask mask, const uint64_t *addresses, Where where, unsigned bytes,
                    unsigned use) {
  if (where == Where::Param || where == Where::Const || where == Where::Local)
    return;
  // What other clusters say comes for all lanes at once; of strong uses, which may acquire, lane by lane.
  const bool alone = cluster.launch.check->isAlone();
  llvm::SmallVector<Agent, 0> agents;
  llvm::SmallVector<GlobalUse, numLanes> plain;
  forLanes(mask, [&](unsigned l) {
    uint64_t address = addresses[l];
    bool isShared = where == Where::Shared || where == Where::SharedCluster ||
                    (where == Where::Generic && address - window::shared < window::size);
    if (where == Where::Generic && window::isPrivate(address))
      return;
    Agent agent = genericAgent(warp, code, l, use);
    ++(isShared ? of(warp.cta).sharedUses : globalUses);
    if (!isShared) {
      GlobalUse seen = insideCluster(agent, {address, bytes}, use & read, use & write, use & constant);
      address = seen.range.address;
      agent.access.strong &=
          code.ordering.isWide(); // a scope that no other cluster is in makes it a plain one for them
      if (use & strong)
        acrossClusters(seen, use & write);
      else if (!alone) {
        agents.reserve(numLanes);
        seen.agent = &agents.emplace_back(agent);
        plain.push_back(seen);
      }
    } else {
      address %= window::size;
      Cta &cta = *cluster.ctas[address >> window::rankShift];
      checkRemote(agent.actor, cta);
      agent.home = &cta;
      touch(agent, Space::shared, *of(cta).shadow, address & ((1u << window::rankShift) - 1), bytes, use & read,
            use & write);
    }
    if (use & strong)
      strongAccess(warp, code, l, address, !isShared, use);
  });
  acrossClusters(plain, use & write);
}

void Check::lanesDiffer(Warp &warp, const Code &code, unsigned first, unsigned second, const std::byte *at) {
  Access before = genericAgent(warp, code, first, write).access;
  std::string where = formatv("global address {0:x}", warp.address(code.args[0], second));
  About about;
  uint32_t offset = 0;
  if (const Cta *cta = cluster.ctaOf(at, offset)) {
    where = describeShared(cluster, (uint64_t(cta->rank) << window::rankShift) + offset);
    about.spot = spotAt(cluster, offset);
  }
  report(
      warp, code, second, "DR-4",
      formatv("lanes {0} and {1} store different values to the same bytes by one instruction: which of them stays is "
              "open: {2}",
              first, second, where),
      &before, ownCluster, about);
}

/// Which of the lanes wins that store to one place is open, so that they must store the same (DR-4).
void Check::compareLanes(Warp &warp, const Code &code, Mask mask, std::byte *const *to, unsigned bytes,
                         llvm::function_ref<LaneBytes(unsigned lane)> stored) {
  const std::byte *last = nullptr;
  bool ascending = true;
  forLanes(mask, [&](unsigned l) {
    ascending &= to[l] > last;
    last = to[l];
  });
  if (ascending) // nearly always: no two places are the same
    return;
  constexpr unsigned tableBits = 6;
  std::array<uint8_t, 1u << tableBits> firsts{}; // by place, hashed: the first lane that stores there, from 1 on
  bool told = false;
  forLanes(mask, [&](unsigned l) {
    uint64_t key = reinterpret_cast<uintptr_t>(to[l]) / bytes * 0x9e3779b97f4a7c15;
    unsigned slot = key >> (64 - tableBits);
    while (firsts[slot] && to[firsts[slot] - 1] != to[l])
      slot = (slot + 1) % firsts.size();
    if (!firsts[slot])
      firsts[slot] = l + 1;
    else if (!told && stored(firsts[slot] - 1) != stored(l)) {
      lanesDiffer(warp, code, firsts[slot] - 1, l, to[l]);
      told = true;
    }
  });
}

/// Release and acquire through an address; relaxed accesses with the fences around them. `red` acquires nothing,
/// whatever fence is behind it (8.11.1).
void Check::strongAccess(Warp &warp, const Code &code, unsigned lane, uint64_t key, bool isGlobal, unsigned use) {
  Location &location = locations[key];
  const unsigned rank = warp.cta.rank, numCtas = cluster.ctas.size();
  if (location.released.empty()) {
    location.released.resize(numCtas);
    location.near.resize(numCtas > 1 ? numCtas : 0);
  }
  LaunchCheck *launch = isGlobal && code.ordering.isWide() ? cluster.launch.check.get() : nullptr;
  const Mask mask = laneBits[lane];
  if (hasScFences)
    happens(warp, location, launch, key, lane, (use & write) != 0);
  if (use & read && code.inst->op != ptx::Op::Red) {
    Clocks known = location.released[rank].handed;
    if (launch)
      launch->acquire(key, known.foreign);
    if (code.ordering.acquires)
      acquire(warp, mask, known);
    else {
      observes(warp, mask, numCtas > 1 ? location.near[rank].handed : known, known);
      countedUp(warp, code, lane, std::move(known));
    }
  }
  if (!(use & write))
    return;
  Clocks near, far, wide;
  ReleaseBy by{warp.number() * numLanes + lane, code.ordering.releases, (use & read) != 0};
  if (by.isRelease)
    release(warp, mask, near);
  else {
    handFenced(warp, mask, anyFence, near);
    handFenced(warp, mask, wideFence, wide);
    if (numCtas > 1)
      handFenced(warp, mask, clusterFence, far);
  }
  for (unsigned i = 0; i < numCtas; ++i) {
    location.released[i].written(by, i == rank || by.isRelease ? near : far);
    if (numCtas > 1)
      location.near[i].written(by, i == rank ? near : Clocks());
  }
  if (launch)
    launch->release(key, index, by, by.isRelease ? near : wide);
}

} // namespace gemmc::emu
