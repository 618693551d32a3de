// Loads by the cache that is not coherent, and writes to their bytes (DR-3).
#include "CheckReadOnly.h"
#include "Check.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

std::optional<ReadOnlyCheck::Conflict> ReadOnlyCheck::use(uint64_t address, uint64_t bytes, const Use &now) {
  if (!bytes)
    return std::nullopt;
  std::lock_guard lock(mutex);
  std::optional<Conflict> found;
  uint32_t number = 0; // a use gets one when somebody must remember it
  for (uint64_t at = address >> bits, last = (address + bytes - 1) >> bits; at <= last;) {
    uint64_t page = at >> (pageBits - bits), end = std::min(last + 1, (page + 1) << (pageBits - bits));
    std::vector<Cell> &cells = pages.try_emplace(page, size_t(1) << (pageBits - bits)).first->second;
    for (; at < end; ++at) {
      Cell &cell = cells[at & ((uint64_t(1) << (pageBits - bits)) - 1)];
      uint32_t &mine = now.access.write ? cell.write : cell.read;
      if (uint32_t other = now.access.write ? cell.read : cell.write; other && !found)
        found = {uses[other - 1], at << bits};
      if (mine)
        continue;
      if (!number) {
        uses.push_back(now);
        number = uses.size();
      }
      mine = number;
    }
  }
  return found;
}

void Check::readOnly(const Agent &agent, uint64_t address, uint64_t bytes, bool writes) {
  ReadOnlyCheck::Use now{index, agent.access};
  now.access.write = writes;
  auto conflict = cluster.launch.readOnly->use(address, bytes, now);
  if (!conflict)
    return;
  const Access &before = conflict->earlier.access;
  if (isReported("DR-3", agent.actor.code, &before))
    return;
  std::string text = writes ? formatv("{0} of global bytes that this kernel reads by ld.global.nc", now.access).str()
                            : formatv("ld.global.nc of bytes that this kernel writes ({0})", before).str();
  report(agent.actor.warp, agent.actor.code, agent.actor.lane, "DR-3",
         formatv("{0}: its cache is not coherent, so they must stay as they are while the kernel runs; ld.global reads "
                 "what changes (global address {1:x})",
                 text, conflict->address),
         &before, conflict->earlier.cluster == index ? ownCluster : conflict->earlier.cluster);
}

} // namespace gemmc::emu
