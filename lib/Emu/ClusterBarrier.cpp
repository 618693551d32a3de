#include "gemmc/Emu/ClusterBarrier.h"
#include <bit>

namespace gemmc::emu::sem {

static bool tryOpen(ClusterBarrierState &state) {
  bool any = false;
  for (const ClusterBarrierState::Warp &warp : state.warps) {
    if (warp.alive & ~warp.arrived)
      return false;
    any |= warp.arrived != 0;
  }
  if (!any)
    return false;
  for (ClusterBarrierState::Warp &warp : state.warps)
    warp.arrived = 0;
  ++state.generation;
  return true;
}

ClusterBarrierOutcome stepClusterBarrier(ClusterBarrierState &state, const ClusterBarrierCommand &command) {
  ClusterBarrierOutcome out;
  ClusterBarrierState::Warp &warp = state.warps[command.warp];
  uint32_t lanes = command.lanes, now = state.generation & 1 ? ~0u : 0u;
  switch (command.op) {
  case ClusterBarrierCommand::arrive:
    // Who has not waited for the last generation has not noticed that it opened: arriving again is too early, too.
    if (uint32_t twice = (warp.arrived | warp.owes) & lanes) {
      out.lane = std::countr_zero(twice);
      out.broken = {"CL-1", warp.arrived & twice
                                ? "a thread arrives twice at the cluster barrier before it opens"
                                : "a thread arrives at the cluster barrier again without having waited for it"};
      return out;
    }
    warp.arrived |= lanes;
    warp.owes |= lanes;
    warp.parity = (warp.parity & ~lanes) | (now & lanes);
    out.opened = tryOpen(state);
    return out;
  case ClusterBarrierCommand::wait:
    if (uint32_t never = lanes & ~warp.owes) {
      out.lane = std::countr_zero(never);
      out.broken = {"CL-2", "a thread waits at the cluster barrier without having arrived"};
      return out;
    }
    out.blocked = (lanes & ~(now ^ warp.parity)) != 0;
    if (!out.blocked)
      warp.owes &= ~lanes;
    return out;
  case ClusterBarrierCommand::exit:
    warp.alive &= ~lanes;
    warp.arrived &= ~lanes;
    out.opened = tryOpen(state);
    return out;
  }
  return out;
}

} // namespace gemmc::emu::sem
