#include "Needs.h"
#include "gemmc/Passes/Passes.h"
#include "llvm/ADT/ArrayRef.h"

namespace gemmc::tile {

llvm::ArrayRef<Pass> passes() {
  static constexpr llvm::StringLiteral
      operands = "the accumulator `acc` and the shared buffers `sA` and `sB`",
      trimmed = "a `swizzle` of every shared buffer, and `sA` and `sB`, of a kernel with copies by TMA to wgmma",
      copyLoop = "one `tiles` with a `for` that copies in it", swizzles = "a `swizzle` of every shared buffer",
      storesOnce = "the accumulator `acc` with its warp tile and one `tiles` that ends with a `store`";
  static constexpr Pass list[] = {
      {"swizzle-shared", swizzleShared},
      {"select-copies", selectCopies},
      {"split-multiply", splitMultiply, operands, hasOperands},
      {"pipeline-loop", pipelineLoop, copyLoop, hasCopyLoop},
      {"specialize-warps", specializeWarps, copyLoop, hasCopyLoop},
      {"place-barriers", placeBarriers,
       "`acc`, `sA` and `sB`, a `swizzle` of every shared buffer, and a `for` that is not unrolled in the `tiles` of "
       "the kernel (of each role, when the schedule has roles; with a `wgmma` in it where nobody is elected)",
       fitsBarriers},
      {"promote-sums", promoteSums,
       "of a wgmma kernel with `promote`: the accumulator `acc`, the barrier `empty`, and products that are waited for "
       "one stage at a time",
       fitsPromote},
      {"shift-lines", shiftLines,
       "of a kernel with `shift`: `schedule=cooperative` without `scheduler` and cluster, `shifted_stages`, such "
       "tensors A or B of a known `ld`, their tiles of 16-bit elements, 8 lines or a multiple, swizzle 128B, "
       "barriers `full` and `empty`, and two roles, one right behind the other, of which the first one's `elect` has "
       "`tiles` with a `for`",
       fitsShift},
      {"buffer-fragments", bufferFragments,
       "fragments `fA` and `fB` and, in `tiles`, a `for` with loads and one `mma` for each k-step", fitsFragments},
      {"reduce-slices", reduceSlices, storesOnce, hasStore},
      {"stage-store", stageStore, storesOnce, hasStore},
      {"bring-c", bringC,
       "a role whose `elect` has `tiles`, and one whose `tiles` end with a `store` of `c` that goes `through` shared "
       "memory",
       fitsBringC},
      {"exchange-parts", exchangeParts, "the accumulator that an `exchange` names", hasExchange},
      {"queue-tiles", queueTiles,
       "a role whose `elect` holds whole `tiles` and a role with `tiles`, of a kernel without `sT`", fitsRing},
      {"place-trigger", placeTrigger, "one `tiles`, of the kernel or of its last role, with a `for` that stays one",
       fitsTrigger, true},
      {"prefetch-ahead", prefetchAhead},
      {"peel-first", peelFirst, "loops without loops in them", hasFlatLoops},
      {"overlap-store", overlapStore,
       "no more steps than stages, in a cooperative kernel without `in_flight`: a role whose plain `tiles` multiply a "
       "step, then a `for` of a known length of more steps than that, and end with a `store` of sums in f32 or f16, "
       "two "
       "blocks of 64 rows, `through` shared memory by TMA to a D of 16 bits in rows, without `c`",
       fitsOverlap},
      {"prefetch-c", prefetchC},
      {"trim-edges", trimEdges, trimmed, fitsTrim},
      {"meet-neighbours", meetNeighbours, trimmed, fitsTrim},
      {"allocate-shared", allocateShared, swizzles, hasSwizzles, true},
  };
  return list;
}

bool concerns(const Pass &pass, const Kernel &kernel) { return pass.ofVectors || kernel.word("instruction") != "fma"; }

const Pass *findPass(llvm::StringRef name) {
  for (const Pass &pass : passes())
    if (pass.name == name)
      return &pass;
  return nullptr;
}

bool runPass(const Pass &pass, Kernel &kernel, Diags &diags) {
  if (pass.fits && !pass.fits(kernel)) {
    diags.report(Diag::tile_pass_needs, kernel.root.range, pass.name, pass.needs);
    return false;
  }
  pass.run(kernel);
  return true;
}
} // namespace gemmc::tile
