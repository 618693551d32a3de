/// Groups of asynchronous copies of one thread, cp.async (PTX ISA 9.7.9.25.3) and bulk (9.7.9.27.2), as a pure state
/// machine. The two kinds are separate domains: a thread has one state for each.
#pragma once
#include <cstdint>

namespace gemmc::emu::sem {

struct GroupsState {
  uint32_t committed = 0; ///< Groups so far; the open one has this number.
  uint32_t read = 0;      ///< Groups below it: sources have been read.
  uint32_t done = 0;      ///< Groups below it are complete.
  uint32_t open = 0;      ///< Operations in the open group.
};

struct GroupsCommand {
  enum Op : uint8_t {
    issue,
    commit,   ///< An empty group counts, too.
    wait,     ///< All but the `keep` most recent committed groups are complete.
    waitRead, ///< ... their sources are read.
    waitAll,  ///< commit, then wait for everything.
    finish    ///< The thread's last: whatever is in flight completes.
  };
  Op op = issue;
  uint32_t keep = 0;
};

struct GroupsOutcome {
  GroupsState state;
  uint32_t group = 0; ///< issue: the number of its group.
  uint32_t due = 0;   ///< wait...: groups below it must be complete (read) now.
};

GroupsOutcome stepGroups(const GroupsState &state, const GroupsCommand &command);

} // namespace gemmc::emu::sem
