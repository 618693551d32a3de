#include "Schedule.h"
#include <bit>

namespace gemmc::emu {

Schedule::Schedule(const Options &options, uint64_t cluster)
    : kind(options.check.schedule), lowestElected(options.check.foreign),
      state(options.check.seed * 0x9e3779b97f4a7c15 + cluster) {}

/// splitmix64
uint64_t Schedule::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

size_t Schedule::pick(const std::deque<AsyncOp> &pending) {
  if (kind == ScheduleKind::reversed)
    return pending.size() - 1;
  return kind == ScheduleKind::random ? next() % pending.size() : 0;
}

uint64_t Schedule::turn() {
  constexpr uint64_t longTurn = 4096;
  return kind == ScheduleKind::random ? uint64_t(1) << (4 + next() % 8) : longTurn;
}

unsigned Schedule::elect(Mask lanes) {
  unsigned lowest = std::countr_zero(lanes), highest = 31 - std::countl_zero(lanes);
  if (kind == ScheduleKind::lazy || lowestElected)
    return lowest;
  if (kind != ScheduleKind::random)
    return highest;
  for (unsigned skip = next() % std::popcount(lanes); skip--;)
    lanes &= lanes - 1;
  return std::countr_zero(lanes);
}

} // namespace gemmc::emu
