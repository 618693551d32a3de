// Races between clusters.
#include "CheckClusters.h"
#include "Check.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

void LaunchCheck::release(uint64_t address, uint64_t cluster, const Clocks &known) {
  std::lock_guard lock(mutex);
  ForeignClocks &at = released[address];
  at.join(known.foreign); // what it knows of third ones goes along
  at.join(cluster, known[Sight::generic]);
}

void LaunchCheck::acquire(uint64_t address, ForeignClocks &to) {
  std::lock_guard lock(mutex);
  if (auto found = released.find(address); found != released.end())
    to.join(found->second);
}

std::optional<LaunchCheck::Write> LaunchCheck::access(uint64_t granule, uint64_t cluster, const Access *write) {
  std::lock_guard lock(mutex);
  std::optional<Write> before;
  if (auto found = writes.find(granule); found != writes.end() && found->second.cluster != cluster)
    before = found->second;
  if (write)
    writes[granule] = {cluster, *write};
  return before;
}

void Check::acrossClusters(const Agent &agent, uint64_t address, unsigned bytes, bool writes) {
  Access access = agent.access;
  access.write = writes;
  for (uint64_t at = address >> granule; at <= (address + bytes - 1) >> granule; ++at) {
    auto before = cluster.launch.check->access(at, index, writes ? &access : nullptr);
    if (!before || agent.clocks->foreign.knows(before->cluster, before->access.component, before->access.lanes,
                                               before->access.epoch))
      continue;
    report(agent.actor.warp, agent.actor.code, agent.actor.lane, "DR-1",
           formatv("data race between clusters: {0} of global bytes that another cluster wrote, and no release and "
                   "acquire of .gpu scope between them (global address {1:x})",
                   nameOf(access), at << granule),
           &before->access, before->cluster);
  }
}

} // namespace gemmc::emu
