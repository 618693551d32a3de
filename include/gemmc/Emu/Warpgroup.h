/// The wgmma groups of a warpgroup (PTX ISA 9.7.15.7) as a pure state machine. An operation belongs to all four warps:
/// each issues it in its own time, it can begin when the last of them has, and a wait of one warp covers it only then.
#pragma once
#include "gemmc/Emu/Broken.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <cstdint>

namespace gemmc::emu::sem {

struct WarpgroupState {
  struct Operation {
    uint64_t key = 0;   ///< What must be equal in the four warps: instruction, descriptors, scale-d.
    uint32_t group = 0; ///< Number of its wgmma-group.
    uint8_t issued = 0; ///< Warps, one bit each.
  };
  struct Warp {
    uint32_t issued = 0;    ///< Operations so far.
    uint32_t committed = 0; ///< Groups so far.
    uint32_t waited = 0;    ///< Operations below it have been waited for.
  };
  std::array<Warp, 4> warps;
  uint32_t first = 0; ///< Number of `operations[0]`; all before it have been waited for by all warps.
  llvm::SmallVector<Operation, 8> operations;
};

struct WarpgroupCommand {
  enum Op : uint8_t { issue, commit, wait, exit };
  Op op = issue;
  unsigned warp = 0; ///< 0 to 3.
  uint64_t key = 0;
  uint32_t keep = 0;
};

struct WarpgroupOutcome {
  uint32_t operation = 0; ///< issue: its number.
  bool complete = false;  ///< issue: all four warps have issued it.
  bool blocked = false;   ///< wait: another warp has not issued what is waited for; nothing has changed.
  uint32_t due = 0;       ///< wait: operations below it must be complete now.
  uint32_t groups = 0;    ///< wait: groups below it are complete for this warp.
  Broken broken;
};

/// Changes `state` only when nothing is broken or blocked.
WarpgroupOutcome stepWarpgroup(WarpgroupState &state, const WarpgroupCommand &command);

} // namespace gemmc::emu::sem
