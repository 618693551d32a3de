/// The first tile kernel of a plan: a plain loop nest that says what is computed and nothing about how.
#pragma once
#include "gemmc/Plan/Plan.h"
#include "gemmc/Tile/IR.h"

namespace gemmc::tile {

/// tensors, one shared buffer per operand, one accumulator, and
///     tiles { zero acc; for kt { copy sA; copy sB; multiply acc }; store D }
/// The plan's choices stand in the kernel's configuration attributes for the passes to read.
Kernel buildKernel(const Plan &plan);

} // namespace gemmc::tile
