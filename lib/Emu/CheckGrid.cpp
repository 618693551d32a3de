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
  of(warp).lanes.each(mask, [&](LaneClocks::Part &part) { part.clocks.learn(gridComponent, allLanes, 1); });
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

void Check::mapReleased(Warp &warp, const Code &code, Mask mask) {
  WarpState &state = of(warp);
  const FenceScope scope = scopeOf(code);
  for (unsigned narrower = anyFence; narrower <= scope; ++narrower)
    forLanes(mask, [&](unsigned l) { state.mapReleased[narrower][l] = state.now; });
  if (scope == wideFence)
    cluster.launch.check->mapReleased({index, genericAgent(warp, code, firstLane(mask), 0).access}, mask);
  ++state.now;
}

void Check::mapAcquired(Warp &warp, const Code &code, Mask mask, const uint64_t *addresses) {
  forLanes(mask, [&](unsigned l) {
    Agent agent = genericAgent(warp, code, l, 0);
    MapAcquire acquire{agent.access, scopeOf(code), {}};
    globals.see(addresses[l], mapBytes, [&](const Cell &cell) {
      if (cell.write.kind != Access::generic || !ordered(agent, Sight::generic, cell.write))
        return;
      const auto &released = warps[cell.write.warp].mapReleased[sameCta(agent, cell.write) ? anyFence : clusterFence];
      if (isReleased(cell.write, released))
        acquire.writes.push_back({index, cell.write.component, cell.write.epoch, cell.write.lanes});
    });
    if (acquire.scope == wideFence)
      cluster.launch.check->writes(addresses[l], mapBytes, [&](const LaunchCheck::Use &write, bool released) {
        if (released && agent.clocks->foreign.knows(&ForeignClocks::Known::generic, write.cluster, write.access))
          acquire.writes.push_back({write.cluster, write.access.component, write.access.epoch, write.access.lanes});
      });
    auto &list = mapAcquires[addresses[l]];
    llvm::erase_if(list, [&](const MapAcquire &other) {
      return other.event.component == acquire.event.component && other.event.lanes == acquire.event.lanes &&
             other.scope <= acquire.scope;
    });
    list.push_back(std::move(acquire));
  });
  ++of(warp).now;
}

/// The read goes on until the operation has been waited for.
void Check::mapUsed(Agent &agent, uint64_t address) {
  if (window::isPrivate(address))
    return;
  const auto *acquires = &mapAcquires[address];
  bool told = false;
  auto see = [&](uint64_t writer, const Access &write, FenceScope scope) {
    const MapWrite wanted{writer, write.component, write.epoch, write.lanes};
    bool good = llvm::any_of(*acquires, [&](const MapAcquire &acquire) {
      return acquire.scope >= scope && ordered(agent, Sight::generic, acquire.event) &&
             llvm::any_of(acquire.writes, [&](const MapWrite &seen) { return seen.covers(wanted); });
    });
    if (!good && !told)
      report(
          agent.actor.warp, agent.actor.code, agent.actor.lane, "FP-5",
          formatv("the tensor map at {0:x} was changed by this kernel: a fence.proxy.tensormap release by the writer "
                  "and an acquire of its 128 bytes must stand between that and this use, of scopes that include both",
                  address),
          &write, writer == index ? ownCluster : writer);
    told |= !good;
  };
  address = cluster.launch.memory.homeOf(address).address;
  globals.see(address, mapBytes, [&](const Cell &cell) {
    if (cell.write.kind != Access::none)
      see(index, cell.write, sameCta(agent, cell.write) ? anyFence : clusterFence);
  });
  if (LaunchCheck &check = *cluster.launch.check; !check.isAlone()) {
    const auto held = check.hold();
    check.access(address, mapBytes, {index, agent.access},
                 [&](const LaunchCheck::Use &write, uint64_t, auto) { see(write.cluster, write.access, wideFence); });
  }
  if (!isNoted(agent, address, mapBytes))
    enter({address, mapBytes, agent.access});
}

} // namespace gemmc::emu
