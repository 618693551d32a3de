/// Clean-up on PTX IR, so that the output reads as if an expert had written it. Each pass returns whether it changed
/// anything. None of them moves or removes anything but Pure instructions (dead loads excepted).
///
/// PTX is not SSA. The passes reason about values: registers with one definition, unguarded, that dominates every use.
/// Other registers (loop variables, results under a guard) are only followed inside one block, up to their next
/// definition. Works on any kernel the parser reads; linear in its size but for the nesting of loops.
#pragma once
#include "gemmc/PTX/IR.h"

namespace gemmc::ptx {

bool foldConstants(
    Function &function); ///< Constants and copies forward, x+0, x*1, shifts for powers of two, known guards.
bool foldAddresses(Function &function);          ///< `add r, a, 16; ld [r]` -> `ld [a+16]`.
bool shareCommonExpressions(Function &function); ///< With what dominates; predicates only inside a block.
bool hoistLoopInvariants(Function &function); ///< To in front of the loop: at most 16 results and 4 predicates a loop.
bool removeDeadCode(Function &function);      ///< Unused Pure results and loads, unreachable code, unused labels.
/// All of them until nothing changes (bounded), then unused registers are dropped.
void cleanUp(Function &function);

} // namespace gemmc::ptx
