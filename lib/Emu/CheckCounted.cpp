// Atomics that count without an acquire. By the letter whoever comes last and takes over the data of all must acquire
// (8.8); NVIDIA's samples put `__threadfence` in front of the atomic alone.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::emu {

/// Who counts by an update (the last of many takes over the data of all) often leaves the acquire out, as NVIDIA's
/// samples do; locks (cas, exch) are not meant. What is kept is what a `__threadfence` behind the atomic would add.
void Check::countedUp(Warp &warp, const Code &code, unsigned lane, Clocks seen) {
  if (code.inst->op != ptx::Op::Atom || code.inst->has("exch"))
    return;
  if (hasScFences)
    learnScFences(warp, wideFence, of(warp).lanes.of(lane), seen);
  if (seen[Sight::generic].empty() && seen.foreign.of.empty())
    return;
  of(warp).counted.join(laneBits[lane], seen);
  counters[pcOf(code)].join(seen);
}

/// Somebody has counted what the other thread had released, and only the acquire is missing.
std::string Check::whereCounted(const Agent &agent, const Access &before, uint64_t owner) const {
  if (counters.empty())
    return "";
  const Actor &actor = agent.actor;
  auto knows = [&](const Clocks &clocks, Sight order, const ForeignClocks &foreign) {
    return owner == ownCluster ? ordered(agent, clocks, order, before)
                               : foreign.knows(&ForeignClocks::Known::generic, owner, before);
  };
  const Clocks &own = warps[actor.warp.number()].counted.of(actor.lane);
  if (!knows(*agent.clocks, Sight::counted, agent.clocks->counted) && !knows(own, Sight::generic, own.foreign))
    return "";
  std::string lines;
  for (const auto &[pc, seen] : counters)
    if (knows(seen, Sight::generic, seen.foreign))
      lines += formatv("{0}{1}", lines.empty() ? "" : ", ", cluster.program.code[pc].line);
  return lines;
}

std::string describeCounted(const Access &now, const Access &before, llvm::StringRef lines) {
  return formatv(
      "{0} after {1} of the same bytes: an atomic has counted what was released behind the first (ptx line "
      "{2}), but it is relaxed and no fence follows it, so that nobody acquires: __threadfence() (`membar.gl;`) "
      "behind the atomic is missing",
      now, before, lines);
}

} // namespace gemmc::emu
