/// Adversarial schedules: when asynchronous operations read and complete, which warp runs and for how long, which lane
/// is elected, when try_wait says no. Without a check there is one schedule: lazy, in order, lowest lane.
#pragma once
#include "AsyncQueue.h"
#include "gemmc/Emu/Emulator.h"

namespace gemmc::emu {

class Schedule final : public AsyncPolicy {
public:
  Schedule(const Options &options, uint64_t cluster);

  bool atIssue(const AsyncOp &) override { return kind == ScheduleKind::eager; }
  size_t pick(const std::deque<AsyncOp> &pending) override;
  /// Whether the oldest work of another kind may complete now although warps can go on.
  bool early() { return kind == ScheduleKind::random && next() % 4 == 0; }
  bool eager() const { return kind == ScheduleKind::eager; }
  bool reversed() const { return kind == ScheduleKind::reversed; }
  /// Instructions that a warp may execute before it is the next one's turn.
  uint64_t turn();
  /// Where the round over the warps starts.
  size_t firstWarp(size_t count) { return kind == ScheduleKind::random ? next() % count : 0; }
  unsigned elect(Mask lanes);
  /// try_wait of a complete phase may say False.
  bool spuriousFailure() { return kind == ScheduleKind::random && next() % 8 == 0; }
  bool flip() { return kind == ScheduleKind::random ? next() & 1 : eager(); }

private:
  uint64_t next();
  ScheduleKind kind;
  bool lowestElected; ///< As the H200 does, and as CUTLASS counts on; no manual says which lane.
  uint64_t state;
};

} // namespace gemmc::emu
