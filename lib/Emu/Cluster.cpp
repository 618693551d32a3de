#include "Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <bit>

using namespace llvm;

namespace gemmc::emu {

/// Warp instructions that one warp may run before the next one has its turn.
static constexpr uint64_t turn = 4096;

Cta::Cta(Cluster &cluster, uint32_t rank, std::array<uint32_t, 3> id) : cluster(cluster), rank(rank), id(id) {
  const LaunchParams &params = cluster.launch.params;
  const Program &program = cluster.program;
  uint32_t bytes = std::max(program.staticShared, program.dynamicOffset + params.dynamicShared);
  shared.assign(window::sharedBase + bytes, std::byte(0xff)); // NaNs: whoever reads before writing shall see it
  numThreads = params.block[0] * params.block[1] * params.block[2];
  for (unsigned first = 0; first < numThreads; first += numLanes) {
    unsigned lanes = std::min(numThreads - first, numLanes);
    warps.push_back(
        std::make_unique<Warp>(*this, first / numLanes, lanes == numLanes ? allLanes : (Mask(1) << lanes) - 1));
  }
}
bool Cta::done() const {
  return all_of(warps, [](const auto &warp) { return warp->done(); });
}

/// Clusters are numbered like CTAs: x first.
Cluster::Cluster(Launch &launch, std::array<uint32_t, 3> id)
    : launch(launch), program(launch.program), id(id), params(launch.params.params) {
  auto [cx, cy, cz] = launch.params.cluster;
  unsigned numWarps =
      (launch.params.block[0] * launch.params.block[1] * launch.params.block[2] + numLanes - 1) / numLanes;
  for (uint32_t rank = 0; rank < cx * cy * cz; ++rank) {
    arrived.emplace_back(numWarps, 0);
    ctas.push_back(nullptr);
  }
  for (uint32_t rank = 0; rank < ctas.size(); ++rank) {
    std::array<uint32_t, 3> cta{id[0] * cx + rank % cx, id[1] * cy + rank / cx % cy, id[2] * cz + rank / cx / cy};
    ctas[rank] = std::make_unique<Cta>(*this, rank, cta);
  }
}

std::byte *Cluster::findGlobal(uint64_t address, uint64_t bytes) {
  auto found = launch.memory.blockOf(address);
  if (!found || bytes > found->size - (address - found->begin))
    return nullptr;
  spans[nextSpan++ % spans.size()] = *found;
  return found->data + (address - found->begin);
}

void Cluster::run() {
  for (;;) {
    bool progress = false, alive = false;
    for (auto &cta : ctas)
      for (auto &warp : cta->warps) {
        if (warp->done())
          continue;
        progress |= warp->run(turn);
        alive |= !warp->done();
        if (failed || launch.stop.load(std::memory_order_relaxed))
          return;
        if (steps >= launch.options.maxSteps)
          return reportLimit(*warp);
      }
    if (!alive)
      break;
    if (!progress && !async.completeOne())
      return reportDeadlock();
    if (failed)
      return;
  }
  while (!failed && async.completeOne()) // what nobody waited for
    ;
}

// --- Reports

static Finding findingAt(const Warp &warp, const Group &group) {
  Finding finding;
  finding.line = warp.program.code[group.pc].line;
  finding.cta = warp.cta.id;
  finding.thread = warp.thread(std::countr_zero(group.mask));
  return finding;
}

void Cluster::reportLimit(const Warp &warp) {
  Finding finding;
  if (!warp.groups.empty())
    finding = findingAt(warp, warp.groups.front());
  finding.verdict = Verdict::incomplete;
  finding.code = "limit";
  finding.message = formatv("the cluster has executed {0} warp instructions, the limit, and has not ended", steps);
  failed = true;
  launch.report(std::move(finding));
}

/// One finding for the whole cluster: at the first waiting group, the others named in the text.
void Cluster::reportDeadlock() {
  Finding first;
  std::string text;
  unsigned waiting = 0, shown = 0;
  for (auto &cta : ctas)
    for (auto &warp : cta->warps)
      for (const Group &group : warp->groups) {
        if (!waiting++)
          first = findingAt(*warp, group);
        if (shown == 32)
          continue;
        ++shown;
        text += formatv("\n  CTA ({0}, {1}, {2}) warp {3} lanes {4:x} at line {5}: {6}", cta->id[0], cta->id[1],
                        cta->id[2], warp->index, group.mask, program.code[group.pc].line, describeWait(*warp, group));
      }
  if (waiting > shown)
    text += formatv("\n  and {0} more", waiting - shown);
  first.verdict = Verdict::error;
  first.code = "deadlock";
  first.message = "no thread can go on and no asynchronous operation is in flight:" + text;
  failed = true;
  launch.report(std::move(first));
}

static std::string describeNamed(const Warp &warp, const Wait &wait) {
  const NamedBarrier &barrier = warp.cta.named[wait.id];
  std::string missing;
  for (auto [index, other] : enumerate(warp.cta.warps))
    if (index < barrier.counted.size() && !barrier.counted[index] && other->alive)
      missing += formatv(" {0}", index);
  return formatv("waits at barrier {0}: {1} of {2} threads have arrived; warps that have not:{3}", wait.id,
                 barrier.arrived, barrier.expected, missing.empty() ? " none" : missing);
}

static std::string describeCluster(const Warp &warp) {
  unsigned threads = 0, here = 0;
  for (auto &cta : warp.cluster.ctas)
    for (auto &other : cta->warps) {
      threads += std::popcount(other->alive);
      here += std::popcount(other->alive & warp.cluster.arrived[cta->rank][other->index]);
    }
  return formatv("waits at the cluster barrier: {0} of {1} threads have arrived", here, threads);
}

std::string describeWait(const Warp &warp, const Group &group) {
  const Wait &wait = group.wait;
  switch (wait.what) {
  case Wait::None:
    return "does not wait";
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
                   warp.registers, warp.cta.freeRegisters);
  }
  return "";
}

} // namespace gemmc::emu
