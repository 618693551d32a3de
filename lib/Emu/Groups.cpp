#include "gemmc/Emu/Groups.h"
#include <algorithm>

namespace gemmc::emu::sem {

GroupsOutcome stepGroups(const GroupsState &state, const GroupsCommand &command) {
  GroupsOutcome out{state, state.committed, 0};
  GroupsState &now = out.state;
  auto commit = [&] {
    ++now.committed;
    now.open = 0;
  };
  auto wait = [&](uint32_t keep, bool readOnly) {
    out.due = now.committed > keep ? now.committed - keep : 0;
    now.read = std::max(now.read, out.due);
    if (!readOnly)
      now.done = std::max(now.done, out.due);
  };
  switch (command.op) {
  case GroupsCommand::issue:
    ++now.open;
    break;
  case GroupsCommand::commit:
    commit();
    break;
  case GroupsCommand::wait:
    wait(command.keep, false);
    break;
  case GroupsCommand::waitRead:
    wait(command.keep, true);
    break;
  case GroupsCommand::waitAll:
  case GroupsCommand::finish:
    if (now.open || command.op == GroupsCommand::waitAll)
      commit();
    wait(0, false);
    break;
  }
  return out;
}

} // namespace gemmc::emu::sem
