/// What the passes ask of a kernel's shape. A kernel that `buildKernel` made and the passes before left always has it;
/// a text that somebody wrote may not.
#pragma once
#include "gemmc/Tile/IR.h"

namespace gemmc::tile {

/// Accumulator `acc`, shared buffers `sA` and `sB`.
bool hasOperands(const Kernel &kernel);
/// Every shared buffer has its `swizzle`.
bool hasSwizzles(const Kernel &kernel);
/// One `tiles` in the kernel, in it a loop with copies.
bool hasCopyLoop(const Kernel &kernel);
/// Accumulator, swizzles, and a main loop where the schedule has it: in the kernel's `tiles`, or in that of each role.
bool fitsBarriers(const Kernel &kernel);
/// Roles and barriers of a cooperative kernel whose operands with `shift` fill whole swizzled lines. Or nothing to
/// do.
bool fitsShift(const Kernel &kernel);
/// An accumulator `acc`, a barrier `empty`, no accumulator `part` yet, and one stage under way at a time. Or nothing to
/// do.
bool fitsPromote(const Kernel &kernel);
/// Swizzles, and the operands' tiles of a kernel whose wgmma TMA feeds. Or nothing to do.
bool fitsTrim(const Kernel &kernel);
/// A main loop whose k-steps each have loads and an mma; fragments `fA` and `fB`. Or nothing to do.
bool fitsFragments(const Kernel &kernel);
/// An accumulator with its warp tile, and a `tiles` whose last operation is the store, or a `gather` that ends with it.
/// Or nothing to do.
bool hasStore(const Kernel &kernel);
/// A producer's and a consumer's role, whose store of C goes through shared memory by TMA. Or nothing to do.
bool fitsBringC(const Kernel &kernel);
/// The accumulators of its exchanges, and no buffer for them yet.
bool hasExchange(const Kernel &kernel);
/// A role that elects lanes for its `tiles`, and one whose warps all have them. Or nothing to do.
bool fitsRing(const Kernel &kernel);
/// A main loop in the `tiles` of the kernel or of its last role. Or nothing to do.
bool fitsTrigger(const Kernel &kernel);
/// A first step, a loop of known length, and a store of two row blocks by TMA, in the last role. Or nothing to do.
bool fitsOverlap(const Kernel &kernel);
/// No loop in a loop.
bool hasFlatLoops(const Kernel &kernel);

} // namespace gemmc::tile
