/// A named barrier of a CTA (PTX ISA 9.7.13.1) as a pure state machine. Its unit is the warp: a warp counts, with all
/// 32 threads, when all of its lanes that live have arrived. Nothing changes when a rule is broken.
///
/// Warps that have exited stand for arrivals at a barrier of the whole CTA, not where somebody gave a count (measured
/// on an H200, docs/emulator.md; the manual says that a barrier which waits only for exited threads is always
/// released).
#pragma once
#include "gemmc/Emu/Broken.h"
#include "llvm/ADT/ArrayRef.h"
#include <array>
#include <cstdint>

namespace gemmc::emu::sem {

struct NamedBarrierState {
  uint64_t generation = 0; ///< Times it has opened.
  uint32_t expected = 0;   ///< Threads; 0 = idle.
  uint32_t arrived = 0;    ///< Threads, whole warps.
  uint32_t counted = 0;    ///< Warps that have arrived completely, one bit each.
  uint32_t line = 0;       ///< `mark` of the first arrival.
  bool isRed = false;
  bool hasCount = false;                  ///< Of those that have arrived, one gave a count.
  std::array<uint32_t, 32> lanes{};       ///< By warp: lanes that have arrived.
  uint32_t yes = 0, threads = 0;          ///< Red: threads whose predicate is true, and all, so far.
  uint32_t result = 0, resultThreads = 0; ///< Red: of the last generation.
};

struct NamedBarrierCommand {
  enum Op : uint8_t {
    arrive, ///< Lanes of a warp arrive; whether they then wait is their own business.
    exit    ///< Lanes have exited; `alive` says who is left.
  };
  Op op = arrive;
  uint32_t id = 0; ///< For messages.
  uint32_t warp = 0, lanes = 0;
  uint32_t count = 0; ///< Threads; 0 = all of the CTA.
  bool isRed = false;
  uint32_t yes = 0;               ///< Red: how many of `lanes` have a true predicate.
  uint32_t mark = 0;              ///< For messages: the line.
  llvm::ArrayRef<uint32_t> alive; ///< By warp: lanes that live.
};

struct NamedBarrierOutcome {
  NamedBarrierState state;
  bool opened = false;
  Broken broken;
};

NamedBarrierOutcome stepNamedBarrier(const NamedBarrierState &state, const NamedBarrierCommand &command);

} // namespace gemmc::emu::sem
