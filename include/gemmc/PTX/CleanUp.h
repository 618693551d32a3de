/// Clean-up on PTX IR, so that the output reads as if an expert had written it. Each pass returns whether it changed
/// anything. None of them moves or removes anything but Pure instructions (dead loads excepted).
#pragma once
#include "gemmc/PTX/IR.h"

namespace gemmc::ptx {

bool foldConstants(Function &function);        ///< Constants and copies forward, x+0, x*1, shifts for powers of two.
bool foldAddresses(Function &function);        ///< `add r, a, 16; ld [r]` -> `ld [a+16]`.
bool shareCommonExpressions(Function &function); ///< Within dominating straight-line regions.
bool hoistLoopInvariants(Function &function);  ///< Pure instructions with invariant inputs move in front of the loop.
bool removeDeadCode(Function &function);       ///< Unused Pure results and loads, unreachable code, unused labels.
/// All of them until nothing changes (bounded), then unused registers are dropped.
void cleanUp(Function &function);

} // namespace gemmc::ptx
