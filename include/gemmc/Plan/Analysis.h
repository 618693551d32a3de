/// Why a plan is as fast as it is: what the machine needs at least, how the work is cut, what the planner's model says.
/// All times are estimates in seconds.
#pragma once
#include "gemmc/Plan/Plan.h"

namespace gemmc {

/// What a typical card of a target does.
struct MachineRates {
  const char *card;
  double bytes; ///< Of a second, from and to device memory.
  double flops; ///< Of a second, dense, of the inputs' type.
  double clock; ///< Under no power limit.
  /// Part of `flops` that large products reach at the power limit; 1 where nobody has measured it.
  double powered = 1;
  /// At the power limit a kernel that runs alone takes so many seconds times the root of its clocks and of its energy
  /// in multiply-adds; 0 where nobody has measured it.
  double powerConstant = 0;
};

MachineRates ratesOf(Target target, Elem input);

struct Analysis {
  MachineRates machine;
  int64_t m = 0, n = 0, k = 0; ///< The user's.
  int64_t batch = 1;           ///< Products.
  std::string assumed;         ///< `m taken as 64`: of dynamic sizes; see assumedSizes.

  double flops = 0, bytes = 0; ///< Of the product; each matrix moved once.
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  double memoryFloor = 0, tensorFloor = 0, poweredFloor = 0;
  double floor() const { return std::max(memoryFloor, tensorFloor); }

  int64_t tiles = 0, slices = 1;           ///< CTAs that share the k of a tile.
  int64_t waves = 0, slots = 0;            ///< A wave has a slice of a tile in each slot: SMs x CTAs of an SM.
  double lastWave = 0;                     ///< Part of its slots that the last wave fills.
  double tileUse = 0;                      ///< Part of the tiles' elements that D has.
  int64_t stageBytes = 0, sharedBytes = 0; ///< Shared memory: of a stage, of a CTA.
  double tileL2Bytes = 0, l2Bytes = 0;     ///< A, B (and C, D) through the L2: for a tile, in all.
  double tileWritten = 0, tileRead = 0;    ///< Shared memory: what the copies of a tile write, what multiplying reads.
  /// From device memory when no wave finds anything of the one before; `bytes` when all is found.
  double hbmBytes = 0;

  // Clocks of an SM, by the planner's model.
  double clocks = 0, tileMain = 0, tileAround = 0; ///< `tileAround`: start and epilogue.
  double tileLoose = 0;    ///< Clocks of parts of lines of D beside these, which leave by themselves.
  bool streams = false;    ///< By the estimate of streams, which knows what shifting lines takes.
  bool hidden = false;     ///< Ping-pong: starts and ends lie under the other warpgroup's main loop.
  double mainPart = 0;     ///< Of `clocks`: main loops of full slots.
  double idlePart = 0;     ///< Of `clocks`: slots of the last wave that have no tile.
  double aroundPart = 0;   ///< Of `clocks`: starts and ends that nothing hides.
  double bySectors = 0;    ///< Clocks where D waits for sectors that come in parts, of which the tiles' are some; or 0.
  double launch = 0;       ///< Seconds from a launch to its first products, and from the last ones to its end.
  double atPowerLimit = 0; ///< Seconds that `clocks` take there, launch and all; 0: not known.
  double seconds = 0;      ///< By clock and launch; where power sets the pace, by that; of the product alone.
  double copies = 0;       ///< Seconds that copies of operands in front of it take besides.
  /// `memory`, `power`, `tensor cores`, `starts and ends`, `the last wave`, `the launch`; of a stream also `the L2`,
  /// `shared memory`, `the steps of k`.
  const char *bound = "";

  std::vector<Alternative> next; ///< The best that were not taken, their estimates beside this plan's.
};
/// `next`: how many alternatives.
Analysis analyse(const Plan &plan, unsigned next = 5);
/// The best `count` alternatives of `spec` (all that there are, if fewer) but for what `plan`, made of it, takes.
std::vector<Alternative> othersThan(const Plan &plan, const Spec &spec, unsigned count);

} // namespace gemmc
