#include "gemmc/Emu/Warpgroup.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using llvm::formatv;

namespace gemmc::emu::sem {
namespace {

Broken issue(WarpgroupState &state, const WarpgroupCommand &command, WarpgroupOutcome &out) {
  WarpgroupState::Warp &warp = state.warps[command.warp];
  uint32_t index = warp.issued - state.first;
  if (index == state.operations.size()) {
    state.operations.push_back({command.key, warp.committed, 0});
  } else if (state.operations[index].key != command.key) {
    return {"WG-4", "the warps of a warpgroup issue different `wgmma`: another instruction, descriptor or scale-d"};
  } else if (state.operations[index].group != warp.committed) {
    return {"WG-4", formatv("this `wgmma` is in wgmma-group {0} of this warp and in group {1} of another warp of the "
                            "warpgroup",
                            warp.committed, state.operations[index].group)};
  }
  state.operations[index].issued |= 1u << command.warp;
  out.operation = warp.issued++;
  out.complete = state.operations[index].issued == 0xf;
  return {};
}

void wait(WarpgroupState &state, const WarpgroupCommand &command, WarpgroupOutcome &out) {
  WarpgroupState::Warp &warp = state.warps[command.warp];
  out.groups = warp.committed > command.keep ? warp.committed - command.keep : 0;
  out.due = std::max(warp.waited, state.first);
  while (out.due < warp.issued) {
    const WarpgroupState::Operation &operation = state.operations[out.due - state.first];
    if (operation.group >= out.groups)
      break;
    if (operation.issued != 0xf) {
      out.blocked = true;
      return;
    }
    ++out.due;
  }
  warp.waited = out.due;
  uint32_t all = ~0u;
  for (const WarpgroupState::Warp &other : state.warps)
    all = std::min(all, other.waited);
  state.operations.erase(state.operations.begin(), state.operations.begin() + (all - state.first));
  state.first = all;
}

} // namespace

WarpgroupOutcome stepWarpgroup(WarpgroupState &state, const WarpgroupCommand &command) {
  WarpgroupOutcome out;
  WarpgroupState::Warp &warp = state.warps[command.warp];
  switch (command.op) {
  case WarpgroupCommand::issue:
    out.broken = issue(state, command, out);
    break;
  case WarpgroupCommand::commit:
    ++warp.committed;
    break;
  case WarpgroupCommand::wait:
    wait(state, command, out);
    break;
  case WarpgroupCommand::exit:
    if (warp.waited < warp.issued)
      out.broken = {"WG-8", formatv("the warp exits with {0} `wgmma` in flight that it has not waited for",
                                    warp.issued - warp.waited)};
    break;
  }
  return out;
}

} // namespace gemmc::emu::sem
