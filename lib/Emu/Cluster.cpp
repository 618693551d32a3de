#include "Check.h"
#include "gemmc/Emu/Mbarrier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <bit>
#include <cstring>
#include <set>

using namespace llvm;

namespace gemmc::emu {

Cta::Cta(Cluster &cluster, uint32_t rank, std::array<uint32_t, 3> id) : cluster(cluster), rank(rank), id(id) {
  const LaunchParams &params = cluster.launch.params;
  uint32_t bytes = std::max(cluster.staticShared(), cluster.dynamicOffset() + params.dynamicShared);
  shared.assign(window::sharedBase + bytes, std::byte(0xff)); // NaNs: whoever reads before writing shall see it
  numThreads = params.block[0] * params.block[1] * params.block[2];
  warpgroups.resize(numThreads / (4 * numLanes));
  for (unsigned first = 0; first < numThreads; first += numLanes) {
    unsigned lanes = std::min(numThreads - first, numLanes);
    warps.push_back(
        std::make_unique<Warp>(*this, first / numLanes, lanes == numLanes ? allLanes : (Mask(1) << lanes) - 1));
  }
}
SmallVector<Mask, 32> Cta::alive() const {
  SmallVector<Mask, 32> lanes;
  for (const auto &warp : warps)
    lanes.push_back(warp->alive);
  return lanes;
}
bool Cta::done() const {
  return all_of(warps, [](const auto &warp) { return warp->done(); });
}

/// Clusters are numbered like CTAs: x first.
Cluster::Cluster(Launch &launch, std::array<uint32_t, 3> id)
    : launch(launch), program(launch.program), id(id), params(launch.params.params),
      schedule(launch.options, (uint64_t(id[2]) * launch.numClusters[1] + id[1]) * launch.numClusters[0] + id[0]),
      exact(launch.options.check.enabled && !launch.options.check.foreign) {
  auto [cx, cy, cz] = launch.params.cluster;
  warpsPerCta = (launch.params.block[0] * launch.params.block[1] * launch.params.block[2] + numLanes - 1) / numLanes;
  ctas.resize(cx * cy * cz);
  for (uint32_t rank = 0; rank < ctas.size(); ++rank) {
    std::array<uint32_t, 3> cta{id[0] * cx + rank % cx, id[1] * cy + rank / cx % cy, id[2] * cz + rank / cx / cy};
    ctas[rank] = std::make_unique<Cta>(*this, rank, cta);
    for (auto &warp : ctas[rank]->warps)
      barrier.warps.push_back({warp->alive, 0, 0, 0});
  }
  async.setPolicy(schedule);
  if (launch.options.check.enabled)
    check = std::make_unique<Check>(*this);
}
Cluster::~Cluster() = default;

Cta *Cluster::ctaOf(const std::byte *at, uint32_t &offset) {
  for (auto &cta : ctas)
    if (at >= cta->shared.data() && at < cta->shared.data() + cta->shared.size()) {
      offset = at - cta->shared.data();
      return cta.get();
    }
  return nullptr;
}

std::byte *Cluster::findGlobal(uint64_t address, uint64_t bytes) {
  auto found = launch.memory.blockOf(address);
  if (!found || bytes > found->size - (address - found->begin))
    return nullptr;
  spans[nextSpan++ % spans.size()] = *found;
  return found->data + (address - found->begin);
}

/// One turn for each warp; whether any got on.
bool Cluster::runWarps(bool &alive) {
  bool progress = false;
  size_t count = ctas.size() * warpsPerCta, first = schedule.firstWarp(count);
  for (size_t i = 0; i < count; ++i) {
    size_t at = (first + (schedule.reversed() ? count - 1 - i : i)) % count;
    Warp &warp = *ctas[at / warpsPerCta]->warps[at % warpsPerCta];
    if (warp.done())
      continue;
    progress |= warp.run(schedule.turn());
    alive |= !warp.done();
    if (failed || launch.stop.load(std::memory_order_relaxed))
      return progress;
    if (schedule.eager())
      while (warp.async.completeOneCopy(false))
        ;
    if (schedule.early()) {
      progress |= warp.async.completeOneCopy(schedule.flip());
      if (schedule.flip())
        async.readOne(i);
      else
        progress |= async.completeOne();
    }
  }
  return progress;
}

/// Of what is in flight, where all that runs changes nothing.
bool Cluster::completeAny() {
  bool done = async.completeOne();
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      done |= warp->async.completeOneCopy(false);
  return done;
}

bool Cluster::run() {
  // Warp instructions without an effect. A long one in front of the first, as it lets another cluster begin.
  constexpr uint64_t spun = uint64_t(1) << 14, spunAgain = uint64_t(1) << 6;
  uint64_t seen = effects(), since = work(), told = since;
  for (;;) {
    bool alive = false, progress = runWarps(alive);
    if (failed || launch.stop.load(std::memory_order_relaxed))
      return true;
    if (!alive)
      break;
    if (!progress && !async.completeOne()) {
      reportDeadlock();
      return true;
    }
    if (failed)
      return true;
    const uint64_t now = work();
    if (effects() != seen) {
      busy += now - since;
      seen = effects(), since = now, spins = false;
      if (busy >= launch.options.stepLimit()) {
        reportBusy();
        return true;
      }
      if (endsForMistakes())
        return true;
      if (now - told >= spun) {
        told = now;
        launch.changes.fetch_add(1, std::memory_order_relaxed);
      }
    } else if (now - since >= (spins ? spunAgain : spun)) {
      if (completeAny()) { // a warp that polls waits for another one, and that one for a copy
        since = now;
        continue;
      }
      spins = true;
      return false;
    }
  }
  while (!failed && async.completeOne()) // what nobody waited for
    ;
  if (check && !failed)
    check->finish();
  return true;
}

void Cluster::note(Verdict verdict, StringRef rule, const Twine &message, const Warp &warp, const Code &code,
                   unsigned lane, std::optional<uint32_t> sharedOffset) {
  Finding finding;
  if (sharedOffset)
    spotAt(*this, *sharedOffset).mark(finding);
  finding.verdict = verdict;
  finding.code = rule.str();
  finding.message = message.str();
  finding.line = code.line;
  finding.mnemonic = code.inst ? code.inst->mnemonic() : "exit";
  finding.cta = warp.cta.id;
  finding.thread = warp.thread(lane);
  finding.role = program.roleOf(warp.index);
  launch.report(std::move(finding));
}

// --- Reports

static Finding findingAt(const Warp &warp, const Group &group) {
  Finding finding;
  const Code &code = warp.program.code[group.pc];
  finding.line = code.line;
  finding.mnemonic = code.inst ? code.inst->mnemonic() : "";
  finding.role = warp.program.roleOf(warp.index);
  finding.cta = warp.cta.id;
  finding.thread = warp.thread(std::countr_zero(group.mask));
  if (group.wait.what == Wait::Mbarrier) {
    spotAt(warp.cluster, group.wait.address & ((1u << window::rankShift) - 1)).mark(finding);
    if (warp.cluster.check)
      finding.kStep = warp.cluster.check->kStepOf(warp, group.wait);
  }
  return finding;
}

/// `warps 4 to 7`
static std::string describeWarps(const std::vector<unsigned> &indices) {
  std::string text = indices.size() == 1 ? "warp" : "warps";
  for (size_t i = 0; i < indices.size(); ++i) {
    size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1)
      ++last;
    text += i ? ", " : " ";
    text += last == i ? formatv("{0}", indices[i]).str() : formatv("{0} to {1}", indices[i], indices[last]).str();
    i = last;
  }
  return text;
}

/// All groups of lanes, where they are and what they wait for; warps that wait for the same at the same place are one
/// line.
std::string Cluster::describeWaits() const {
  struct Waiting {
    std::string where, what;
    std::vector<unsigned> warps;
  };
  std::vector<Waiting> list;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      for (const Group &group : warp->groups) {
        std::string role = program.roleOf(warp->index), what = describeWait(*warp, group);
        if (check && group.wait.what == Wait::Mbarrier)
          what += check->history(*warp, group.wait);
        std::string where = formatv("{0} lanes {1:x} at line {2}", role.empty() ? role : " (" + role + ")", group.mask,
                                    program.code[group.pc].line);
        what = formatv("CTA ({0}, {1}, {2}) {3}", cta->id[0], cta->id[1], cta->id[2], what);
        auto same = find_if(list, [&](const Waiting &one) { return one.where == where && one.what == what; });
        if (same == list.end())
          same = list.insert(list.end(), {where, what, {}});
        same->warps.push_back(warp->index);
      }
  std::string text;
  for (const Waiting &one : ArrayRef(list).take_front(24)) {
    auto [cta, what] = StringRef(one.what).split(") ");
    text += formatv("\n  {0}) {1}{2}: {3}", cta, describeWarps(one.warps), one.where, what);
  }
  if (list.size() > 24)
    text += formatv("\n  and {0} more", list.size() - 24);
  return text;
}

/// At the first warp that has not ended; ends the launch.
void Cluster::reportLimit(const Twine &message) {
  failed = true;
  if (launch.stop.exchange(true)) // another cluster was first
    return;
  Finding finding;
  for (const auto &cta : ctas)
    for (const auto &warp : cta->warps)
      if (!finding.line && !warp->done())
        finding = findingAt(*warp, warp->groups.front());
  finding.verdict = Verdict::incomplete;
  finding.code = "limit";
  finding.message = (message + ":" + describeWaits()).str();
  launch.report(std::move(finding));
}

void Cluster::reportQuiet(uint64_t quiet) {
  reportLimit(formatv("{0} warp instructions have changed nothing that another thread could see: a loop that never "
                      "ends, or that waits for what nobody writes",
                      quiet));
}

void Cluster::reportBusy() {
  reportLimit(
      formatv("the cluster has executed {0} warp instructions{1}, not counting turns that changed nothing, and has not "
              "ended: long work, or a loop that never ends and writes ever new values, which cannot be told "
              "from it (--max-instructions sets another limit)",
              busy, copied >= 512 ? " (each 512 bytes of a bulk copy as one)" : ""));
}

/// A run with a mistake is for finding others: it ends when none has come for long.
bool Cluster::endsForMistakes() {
  constexpr uint64_t patience = uint64_t(1) << 18;
  if (size_t mistakes = launch.mistakes; mistakes != mistakesSeen) {
    mistakesSeen = mistakes;
    busyAtMistake = busy;
  }
  if (!mistakesSeen || busy - busyAtMistake < patience)
    return false;
  reportLimit(formatv("{0} warp instructions after the last new mistake: the run ends here", busy - busyAtMistake));
  return true;
}

/// Two groups of a warp that wait for each other at one shfl, vote, match or redux that stands at two places; nullptr:
/// none. By the manual such lanes meet: only qualifiers and mask must be the same (9.7.9.6, 9.7.13.9).
static const Group *meetsElsewhere(const Warp &warp, const Group &group) {
  auto instOf = [&](const Group &one) { return warp.program.code[one.pc].inst; };
  const ptx::Inst *inst = group.wait.what == Wait::Converge ? instOf(group) : nullptr;
  if (!inst ||
      !is_contained({ptx::Op::Shfl, ptx::Op::Vote, ptx::Op::VoteBallot, ptx::Op::Match, ptx::Op::Redux}, inst->op))
    return nullptr;
  for (const Group &other : warp.groups)
    if (other.pc != group.pc && other.wait.what == Wait::Converge && other.wait.lanes == group.wait.lanes &&
        instOf(other) && instOf(other)->mnemonic() == inst->mnemonic())
      return &other;
  return nullptr;
}

/// One finding for the whole cluster: at the first group that waits for an mbarrier, else at the first one, the others
/// named in the text.
void Cluster::reportDeadlock() {
  Finding first;
  bool any = false;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      for (const Group &group : warp->groups)
        if (!any || (first.memory.empty() && group.wait.what == Wait::Mbarrier)) {
          first = findingAt(*warp, group);
          any = true;
        }
  first.verdict = Verdict::error;
  first.code = "deadlock";
  first.message = "no thread can go on and no asynchronous operation is in flight:" + describeWaits();
  failed = true;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      for (const Group &group : warp->groups)
        if (const Group *other = meetsElsewhere(*warp, group); other && first.code == "deadlock") {
          first = findingAt(*warp, group);
          first.verdict = Verdict::incomplete;
          first.code = "unmodelled";
          first.message = formatv("other lanes of the warp execute it at ptx line {0}: by the manual they do so "
                                  "together, but the emulator brings lanes together at one instruction only",
                                  program.code[other->pc].line);
        }
  const bool isDeadlock = first.code == "deadlock";
  launch.report(std::move(first));
  if (isDeadlock)
    reportCauses();
}

/// Warps that have exited without having arrived.
static unsigned exitedWarps(const Cta &cta, const sem::NamedBarrierState &barrier) {
  unsigned count = 0;
  for (auto [index, warp] : enumerate(cta.warps))
    count += !warp->alive && !(barrier.counted >> index & 1);
  return count;
}

/// A barrier of threads that would be full if warps that have exited stood for arrivals; empty when it is not.
static std::string waitsForExited(const Warp &warp, const Wait &wait) {
  const sem::NamedBarrierState &barrier = warp.cta.named[wait.id];
  unsigned gone = exitedWarps(warp.cta, barrier), left = 0;
  for (auto [index, other] : enumerate(warp.cta.warps))
    left += other->alive && !(barrier.counted >> index & 1);
  if (!barrier.hasCount || !gone || barrier.arrived + left * numLanes >= barrier.expected)
    return "";
  return formatv(
      "barrier {0} is used with {1} threads, {2} have arrived, and {3} {4} exited: at a barrier with a count "
      "warps that have exited do not count as arrived",
      wait.id, barrier.expected, barrier.arrived, gone, gone == 1 ? "warp has" : "warps have");
}

/// Waits that nothing can end, whatever the others do, are findings of their own.
void Cluster::reportCauses() {
  std::set<std::pair<uint32_t, std::string>> seen;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      for (const Group &group : warp->groups) {
        Finding finding = findingAt(*warp, group);
        if (group.wait.what == Wait::Registers) {
          finding.code = "SR-5";
          finding.message = describeWait(*warp, group) + ": nobody will give any back";
        } else if (group.wait.what == Wait::Named) {
          finding.code = "NB-7";
          finding.message = waitsForExited(*warp, group.wait);
          if (finding.message.empty())
            continue;
        } else if (group.wait.what == Wait::Mbarrier) {
          uint64_t word;
          std::memcpy(&word, cta->shared.data() + (group.wait.address & ((1u << window::rankShift) - 1)), 8);
          auto state = sem::decodeMbarrier(word);
          if (!state || state->pending || state->tx <= 0)
            continue;
          finding.code = "TM-2";
          finding.message = formatv("all arrivals are in, no copy is in flight, and {0} bytes that this phase expects "
                                    "have not come: copies count less than expect_tx announced",
                                    state->tx);
        } else
          continue;
        if (seen.insert({finding.line, finding.code}).second)
          launch.report(std::move(finding));
      }
}

static std::string describeNamed(const Warp &warp, const Wait &wait) {
  const sem::NamedBarrierState &barrier = warp.cta.named[wait.id];
  if (barrier.expected == 0) // nobody has come since all had
    return formatv("can go on: all have arrived at barrier {0}", wait.id);
  std::string missing, exited;
  for (auto [index, other] : enumerate(warp.cta.warps))
    if (!(barrier.counted >> index & 1) && other->alive)
      missing += formatv(" {0}", index);
  if (unsigned count = exitedWarps(warp.cta, barrier))
    exited = formatv("; {0} {1} exited", count, count == 1 ? "warp has" : "warps have");
  return formatv(
      "waits at barrier {0}: {1} of {2} threads have arrived (first at line {3}); warps that have not:{4}{5}", wait.id,
      barrier.arrived, barrier.expected, barrier.line, missing.empty() ? " none" : missing, exited);
}

static std::string describeCluster(const Warp &warp) {
  unsigned threads = 0, here = 0;
  for (const sem::ClusterBarrierState::Warp &other : warp.cluster.barrier.warps) {
    threads += std::popcount(other.alive);
    here += std::popcount(other.alive & other.arrived);
  }
  return formatv("waits at the cluster barrier: {0} of {1} threads have arrived", here, threads);
}

std::string describeWait(const Warp &warp, const Group &group) {
  const Wait &wait = group.wait;
  switch (wait.what) {
  case Wait::None:
    return "can go on";
  case Wait::Converge:
    return formatv("waits for lanes {0:x} to execute this instruction with it", wait.lanes & ~group.mask);
  case Wait::Named:
    return describeNamed(warp, wait);
  case Wait::WarpSync:
    return formatv("waits for lanes {0:x} at `bar.warp.sync`", wait.lanes & warp.alive & ~warp.warpSyncArrived);
  case Wait::Mbarrier:
    return describeMbarrier(warp, wait);
  case Wait::ClusterBarrier:
    return describeCluster(warp);
  case Wait::Registers:
    return formatv("waits for registers: {0} a thread wanted, {1} a thread held, {2} free in the CTA", wait.id,
                   warp.cta.registers.held[warp.index], warp.cta.registers.free);
  case Wait::Warpgroup:
    return "waits for the other warps of its warpgroup to issue the `wgmma` that it waits for";
  }
  return "";
}

} // namespace gemmc::emu
