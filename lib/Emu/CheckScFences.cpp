// The order of fence.sc (8.9.3): a fence synchronises with a later one, and which is later is known where something
// behind the first has been seen in front of the second: by a strong access of the same place, or any synchronisation.
// If the second came first, what it hands over would contradict that (8.10.2, 8.10.6). Looked at only in kernels that
// have such fences.
#include "Check.h"
#include "Lanes.h"

namespace gemmc::emu {

bool isScFence(const ptx::Inst &inst) {
  return inst.op == ptx::Op::Membar || (inst.op == ptx::Op::Fence && inst.has("sc"));
}

/// Who accesses a place strongly comes behind those before it.
void Check::happens(Warp &warp, Location &location, LaunchCheck *launch, uint64_t key, unsigned lane, bool writes) {
  WarpState &state = of(warp);
  state.lanes.each(laneBits[lane], [&](LaneClocks::Part &part) {
    part.clocks[Sight::execution].join(location.happened);
    if (launch)
      launch->seeHappened(key, part.clocks.foreign);
    if (!writes)
      return;
    location.happened.join(part.clocks[Sight::execution]);
    location.happened.learn(warpComponent(warp), laneBits[lane], state.now);
    if (launch)
      launch->happens(key, index, location.happened, part.clocks.foreign);
  });
  state.now += writes;
}

void Check::learnScFences(const Warp &warp, FenceScope scope, const Clocks &known, Clocks &learnt) const {
  for (auto &cta : cluster.ctas)
    for (auto &other : cta->warps)
      for (const AtFence &earlier : warps[other->number()].scFences) {
        const bool inScope = std::min(scope, earlier.scope) > anyFence || cta.get() == &warp.cta;
        const uint32_t component = warpComponent(*other);
        if (!earlier.known || !inScope || known[Sight::generic].knows(component, earlier.lanes, earlier.known->now))
          continue;
        Mask seen = 0;
        forLanes(earlier.lanes, [&](unsigned l) {
          bool knows = known[Sight::execution].knows(component, laneBits[l], earlier.known->now);
          seen |= knows ? laneBits[l] : 0;
        });
        if (seen)
          handOver(*other, *earlier.known, seen, learnt);
      }
  if (scope == wideFence)
    cluster.launch.check->learnScFences(index, known.foreign, learnt.foreign);
}

void Check::keepScFence(Warp &warp, const AtFence &fence) {
  auto &fences = of(warp).scFences;
  fences[1] = std::exchange(fences[0], fence);
  if (fence.scope != wideFence)
    return;
  Clocks handed;
  handOver(warp, *fence.known, fence.lanes, handed);
  Access event;
  event.component = warpComponent(warp), event.lanes = fence.lanes, event.epoch = fence.known->now;
  cluster.launch.check->keepScFence({index, event}, handed);
}

// --- Between clusters

void LaunchCheck::seeHappened(uint64_t address, ForeignClocks &known) {
  std::lock_guard lock(mutex);
  if (auto found = happened.find(address); found != happened.end())
    known.join(found->second);
}

void LaunchCheck::happens(uint64_t address, uint64_t cluster, const Clock &own, const ForeignClocks &known) {
  std::lock_guard lock(mutex);
  ForeignClocks &at = happened[address];
  at.join({cluster, {}, {}, {}, own});
  for (const auto &one : known.of)
    at.join({one->cluster, {}, {}, {}, one->happened});
}

void LaunchCheck::keepScFence(const Use &fence, const Clocks &handed) {
  std::lock_guard lock(mutex);
  auto &fences = scFences[{fence.cluster, fence.access.component}];
  fences[1] = std::exchange(fences[0], {fence.access, foreignOf(fence.cluster, handed)});
}

void LaunchCheck::learnScFences(uint64_t cluster, const ForeignClocks &known, ForeignClocks &learnt) {
  std::lock_guard lock(mutex);
  for (const auto &[by, fences] : scFences)
    for (const ScFence &earlier : fences)
      if (by.first != cluster && earlier.event.lanes &&
          !known.knows(&ForeignClocks::Known::generic, by.first, earlier.event) &&
          known.knows(&ForeignClocks::Known::happened, by.first, earlier.event))
        learnt.join(earlier.handed);
}

} // namespace gemmc::emu
