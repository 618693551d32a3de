#include "gemmc/Emu/RegisterPool.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu::sem {
namespace {

constexpr int64_t threadsOfWarp = 32;

/// The four warps of a warpgroup execute the same setmaxnreg one after the other. A warp that is ahead of another by
/// one may have executed what the other has yet to execute; by two, somebody left one out.
Broken checkWarpgroup(const RegisterPoolState &state, const RegisterPoolCommand &command) {
  uint32_t first = command.warp & ~3u, mine = state.executed[command.warp];
  for (uint32_t warp = first; warp < first + 4; ++warp) {
    if (warp == command.warp)
      continue;
    if (state.executed[warp] == mine + 1 && state.lastWanted[warp] != command.wanted)
      return {"SR-2", formatv("`setmaxnreg` to {0} in warp {1}, but to {2} in warp {3} of its warpgroup",
                              command.wanted, command.warp, state.lastWanted[warp], warp)};
    if (state.executed[warp] < mine)
      return {"SR-4", formatv("warp {0} executes its {1}. `setmaxnreg` while warp {2} of its warpgroup has executed "
                              "{3}: a warpgroup-wide barrier must lie between two of them",
                              command.warp, mine + 1, warp, state.executed[warp])};
  }
  return {};
}

Broken checkExit(const RegisterPoolState &state, const RegisterPoolCommand &command) {
  uint32_t first = command.warp & ~3u, mine = state.executed[command.warp];
  for (uint32_t warp = first; warp < first + 4 && warp < command.numWarps; ++warp)
    if (state.executed[warp] > mine)
      return {"SR-2", formatv("warp {0} exits and has executed {1} `setmaxnreg`, warp {2} of its warpgroup {3}: all "
                              "four warps must execute each",
                              command.warp, mine, warp, state.executed[warp])};
  return {};
}

} // namespace

RegisterPoolOutcome stepRegisterPool(const RegisterPoolState &state, const RegisterPoolCommand &command) {
  RegisterPoolOutcome out{state, false, false, {}};
  if (command.op == RegisterPoolCommand::exit) {
    out.broken = checkExit(state, command);
    return out;
  }
  uint32_t wanted = command.wanted, had = state.held[command.warp];
  bool inc = command.op == RegisterPoolCommand::inc;
  if (wanted < 24 || wanted > 256 || wanted % 8) {
    out.broken = {"SR-1", formatv("`setmaxnreg` to {0}: a multiple of 8 from 24 to 256 is wanted", wanted)};
    return out;
  }
  out.broken = checkWarpgroup(state, command);
  if (out.broken)
    return out;
  out.ignored = !had;
  if (had && (inc ? wanted < had : wanted > had)) {
    out.broken = {"SR-3",
                  formatv("`setmaxnreg.{0}` to {1} registers, but the warp has {2}", inc ? "inc" : "dec", wanted, had)};
    return out;
  }
  int64_t more = had ? (int64_t(wanted) - had) * threadsOfWarp : 0;
  if (more > state.free) {
    out.blocked = true;
    return out;
  }
  out.state.free -= more;
  out.state.held[command.warp] = had ? wanted : 0;
  ++out.state.executed[command.warp];
  out.state.lastWanted[command.warp] = wanted;
  return out;
}

} // namespace gemmc::emu::sem
