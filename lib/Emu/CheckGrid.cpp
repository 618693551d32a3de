// Dependent kernels (griddepcontrol), fences of tensor maps, fences without a use.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

// --- griddepcontrol

constexpr unsigned touchBits = 4; // dependents are tracked by 16 bytes
enum Touch : uint8_t { touchRead = 1, touchWrite = 2 };

/// A kernel that may run while the one before it does must have waited for it, or for somebody who has.
void Check::dependency(const Agent &agent, uint64_t address, uint64_t bytes, bool isRead, bool isWrite) {
  const auto &early = cluster.launch.memory.earlyTouches;
  bool unknown = cluster.launch.memory.unknownInFront;
  if (!mayLaunchDependents && early.empty() && !unknown)
    return;
  bool waited = (early.empty() && !unknown) || (*agent.clocks)[Sight::generic].knows(gridComponent, allLanes, 1);
  if (unknown && !waited && bytes) {
    report(
        agent.actor.warp, agent.actor.code, agent.actor.lane, "GD-1",
        formatv("this kernel may start before the one in front of it has ended, whatever that is, which may still use "
                "these bytes (global address {0:x}): no griddepcontrol.wait before this {1}",
                address, agent.access));
    waited = true;
  }
  for (uint64_t at = address >> touchBits; bytes && at <= (address + bytes - 1) >> touchBits; ++at) {
    if (mayLaunchDependents)
      globalTouches[at] |= (isRead ? touchRead : 0) | (isWrite ? touchWrite : 0);
    auto found = waited ? early.end() : early.find(at);
    if (found == early.end() || (!isWrite && !(found->second & touchWrite)))
      continue;
    report(
        agent.actor.warp, agent.actor.code, agent.actor.lane, "GD-1",
        formatv("the kernel before this one let its dependents launch, and may still {0} these bytes (global address "
                "{1:x}): no griddepcontrol.wait before this {2}",
                found->second & touchWrite ? "write" : "read", at << touchBits, agent.access));
    waited = true;
  }
}

void Check::gridWaited(Warp &warp, Mask mask) {
  split(of(warp), mask);
  for (Part &part : of(warp).parts)
    if (part.lanes & mask)
      part.clocks.learn(gridComponent, allLanes, 1);
}

void Check::finish() {
  Launch &launch = cluster.launch;
  if (launchesDependents) {
    std::lock_guard lock(launch.mutex);
    for (auto [at, how] : globalTouches)
      launch.earlyTouches[at] |= how;
  }
  for (auto [pc, useful] : fences)
    if (!useful)
      report(*cluster.ctas.front()->warps.front(), cluster.program.code[pc], 0, "FP-7",
             "no generic access has ever preceded this fence.proxy.async since the last one: it does nothing");
}

// --- Tensor maps that the device changes

constexpr unsigned mapBytes = 128;

void Check::mapReleased(Warp &warp, Mask mask) {
  WarpState &state = of(warp);
  forLanes(mask, [&](unsigned l) { state.own.mapReleased[l] = state.now; });
  ++state.now;
}

void Check::mapAcquired(Warp &warp, const Code &code, Mask mask, const uint64_t *addresses) {
  forLanes(mask, [&](unsigned l) {
    MapAcquire acquire;
    Agent agent = genericAgent(warp, code, l, 0);
    acquire.event = agent.access;
    globals.forEach(addresses[l], mapBytes, false, [&](Cell &cell, uint64_t) {
      bool released = cell.write.kind == Access::generic && ordered(agent, Sight::generic, cell.write);
      forLanes(cell.write.lanes, [&](unsigned writer) {
        released &= warps[cell.write.warp].own.mapReleased[writer] >= cell.write.epoch;
      });
      if (released)
        acquire.writes.push_back({cell.write.component, cell.write.epoch});
    });
    auto &list = mapAcquires[addresses[l]];
    llvm::erase_if(list, [&](const MapAcquire &other) {
      return other.event.component == acquire.event.component && other.event.lanes == acquire.event.lanes;
    });
    list.push_back(std::move(acquire));
  });
  ++of(warp).now;
}

void Check::mapUsed(Agent &agent, uint64_t address) {
  auto acquired = mapAcquires.find(address);
  bool complained = false;
  globals.forEach(address, mapBytes, false, [&](Cell &cell, uint64_t) {
    if (cell.write.kind == Access::none)
      return;
    bool good = acquired != mapAcquires.end() && llvm::any_of(acquired->second, [&](const MapAcquire &acquire) {
                  return ordered(agent, Sight::generic, acquire.event) &&
                         llvm::is_contained(acquire.writes, std::pair(cell.write.component, cell.write.epoch));
                });
    if (!good && !complained)
      report(
          agent.actor.warp, agent.actor.code, agent.actor.lane, "FP-5",
          formatv("the tensor map at {0:x} was changed by this kernel: a fence.proxy.tensormap release by the writer "
                  "and an acquire of its 128 bytes must stand between that and this use",
                  address),
          &cell.write);
    complained |= !good;
  });
}

} // namespace gemmc::emu
