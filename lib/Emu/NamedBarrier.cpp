#include "gemmc/Emu/NamedBarrier.h"
#include "llvm/Support/FormatVariadic.h"
#include <bit>

namespace gemmc::emu::sem {
namespace {

constexpr uint32_t warpThreads = 32;

/// All that must come before the barrier opens has come, or the rest would have to come from warps that have exited,
/// nobody else is left who could, and nobody gave a count.
void tryOpen(NamedBarrierOutcome &out, llvm::ArrayRef<uint32_t> alive) {
  NamedBarrierState &state = out.state;
  uint32_t exited = 0;
  bool othersLeft = false;
  for (unsigned warp = 0; warp < alive.size(); ++warp) {
    if (state.counted >> warp & 1)
      continue;
    exited += alive[warp] ? 0 : warpThreads;
    othersLeft |= alive[warp] != 0;
  }
  uint32_t most = state.arrived + (othersLeft || state.hasCount ? 0 : exited);
  if (!state.expected || most < state.expected)
    return;
  NamedBarrierState fresh;
  fresh.generation = state.generation + 1;
  fresh.result = state.yes;
  fresh.resultThreads = state.threads;
  state = fresh;
  out.opened = true;
}

void countWarp(NamedBarrierState &state, unsigned warp, uint32_t alive) {
  if (!state.lanes[warp] || state.counted >> warp & 1 || alive & ~state.lanes[warp])
    return;
  state.counted |= 1u << warp;
  state.arrived += warpThreads;
}

Broken arrive(NamedBarrierState &state, const NamedBarrierCommand &command) {
  if (command.id >= 16)
    return broken("NB-1", "there is no barrier {0}: they are 0 to 15", command.id);
  if (command.count % warpThreads)
    return broken("NB-11", "barrier {0} is used with {1} threads: the count is a multiple of 32", command.id,
                  command.count);
  uint32_t expected = command.count ? command.count : command.alive.size() * warpThreads;
  if (!state.expected) {
    state.expected = expected;
    state.line = command.mark;
    state.isRed = command.isRed;
  }
  if (state.expected != expected)
    return broken("NB-3", "barrier {0} is used with {1} threads here and with {2} threads at line {3}", command.id,
                  expected, state.expected, state.line);
  if (state.isRed != command.isRed)
    return broken("NB-5", "barrier {0} is in use at line {1}, and only one of the two reduces", command.id, state.line);
  uint32_t &lanes = state.lanes[command.warp];
  if (state.counted >> command.warp & 1 || lanes & command.lanes)
    return broken("NB-4", "warp {0} arrives twice at barrier {1} before it opens (first arrival at line {2})",
                  command.warp, command.id, state.line);
  lanes |= command.lanes;
  state.hasCount |= command.count != 0;
  state.yes += command.yes;
  state.threads += std::popcount(command.lanes);
  countWarp(state, command.warp, command.alive[command.warp]);
  return {};
}

} // namespace

NamedBarrierOutcome stepNamedBarrier(const NamedBarrierState &state, const NamedBarrierCommand &command) {
  NamedBarrierOutcome out{state, false, {}};
  if (command.op == NamedBarrierCommand::arrive) {
    out.broken = arrive(out.state, command);
  } else if (state.expected) {
    for (unsigned warp = 0; warp < command.alive.size(); ++warp)
      countWarp(out.state, warp, command.alive[warp]); // lanes that arrived and then exited have arrived
  }
  if (out.broken)
    out.state = state;
  else
    tryOpen(out, command.alive);
  return out;
}

} // namespace gemmc::emu::sem
