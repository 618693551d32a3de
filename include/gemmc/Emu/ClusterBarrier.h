/// The barrier of a cluster (PTX ISA 9.7.13.3) as a pure state machine: every thread that has not exited arrives, then
/// waits for the generation in which it arrived. Warps are numbered through the cluster.
#pragma once
#include "gemmc/Emu/Broken.h"
#include <cstdint>
#include <vector>

namespace gemmc::emu::sem {

struct ClusterBarrierState {
  struct Warp {
    uint32_t alive = 0;
    uint32_t arrived = 0; ///< Lanes that have arrived in this generation.
    uint32_t owes = 0;    ///< Lanes that have arrived, in whichever generation, and not waited since.
    uint32_t parity = 0;  ///< Of the generation in which they arrived, one bit a lane.
  };
  uint64_t generation = 0;
  std::vector<Warp> warps;
};

struct ClusterBarrierCommand {
  enum Op : uint8_t { arrive, wait, exit };
  Op op = arrive;
  uint32_t warp = 0, lanes = 0;
};

struct ClusterBarrierOutcome {
  bool opened = false;
  bool blocked = false; ///< wait: not yet.
  uint32_t lane = 0;    ///< Broken: by which lane.
  Broken broken;
};

/// Changes `state` only when nothing is broken (it is too large to be copied at each step).
ClusterBarrierOutcome stepClusterBarrier(ClusterBarrierState &state, const ClusterBarrierCommand &command);

} // namespace gemmc::emu::sem
