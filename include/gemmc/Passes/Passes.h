/// The passes over the tile IR, in the order in which they run. Each has a file of its own in lib/Passes and takes a
/// kernel that verifies to one that verifies; they read the plan's decisions from the kernel's configuration
/// attributes.
#pragma once
#include "gemmc/Tile/IR.h"

namespace gemmc::tile {

/// Chooses how each operand's tile lies in shared memory.
/// Ensures: every shared buffer has `swizzle`. First, because copies and multiplies depend on the layout.
void swizzleShared(Kernel &kernel);

/// Says which instruction carries each copy and how many bytes it moves at a time.
/// Ensures: every copy has `via` and `bytes`.
void selectCopies(Kernel &kernel);

/// Breaks the multiply of a block tile down to instructions: wgmma of a warpgroup tile, or ldmatrix and mma.sync steps
/// of a warp tile. Requires: shared layouts. Ensures: no `multiply` is left, the accumulator has its `warp` tile.
void splitMultiply(Kernel &kernel);

/// Gives the shared buffers their stages and lets copies run ahead: a prologue fills all stages but one, each iteration
/// copies for the iteration that comes stages - 1 later. Requires: multiplies are split. After it copies and reads name
/// their stage by a cursor. Does nothing for one stage, nor for the warp-specialised schedules, whose roles run free.
void pipelineLoop(Kernel &kernel);

/// Parts the kernel into a producer that only copies and consumers that only multiply (schedules cooperative,
/// pingpong). After pipelineLoop, its counterpart for the other schedule. Ensures: shared buffers have their stages,
/// which decouple the two roles; copies and reads name their stage by a cursor of the role.
void specializeWarps(Kernel &kernel);

/// Adds what makes a stage's copies visible before its first read and keeps them off a stage that is still read:
/// commits, group waits and CTA barriers for ld and cp.async, full and empty mbarriers for TMA. Ensures: no read of a
/// stage is ahead of its wait, no copy into it ahead of its release.
void placeBarriers(Kernel &kernel);

/// Of a wgmma kernel with `promote`: what each stage's products sum up to is added to `acc`, in registers of its own,
/// before the next stage is multiplied. After placeBarriers, whose releases it makes earlier.
void promoteSums(Kernel &kernel);

/// Puts a role between producer and consumer that shifts the lines of an operand into place (a tensor with `shift`):
/// the producer's copies bring lines as they lie, the consumer reads tiles of their own stages, `shifted_stages` of
/// them. After placeBarriers, whose arrivals it doubles, and before all that follows the roles.
void shiftLines(Kernel &kernel);

/// Reads the fragments of the next k-step while the present one is multiplied, across stages too (mma.sync only).
/// After placeBarriers: the read of the next stage's first step must stay behind that stage's wait.
void bufferFragments(Kernel &kernel);

/// Adds up the sums of warps that multiplied different slices of k, in the order of the slices, through shared memory
/// that held operand tiles (mma, wmma). After bufferFragments: it ends the tile's loop, which must have its last form.
void reduceSlices(Kernel &kernel);

/// Sends D through shared memory that held operand tiles (mma, wmma with store `staged`): the sums become a tile there,
/// from which all threads write whole lines. After reduceSlices, whose sums it takes.
void stageStore(Kernel &kernel);

/// Lets TMA bring C while the main loop runs (`load_c=tma`): a second warp of the producer copies it into the buffers
/// of the store, chunk by chunk, and the store waits for each. After stageStore, whose buffers they share.
void bringC(Kernel &kernel);

/// Gives the CTAs of a cluster that share a tile's k steps the shared memory and the barrier through which their sums
/// meet (`exchange`). After stageStore: like its buffers, theirs are no stages of operands.
void exchangeParts(Kernel &kernel);

/// Lets the producer take tiles from a counter of the grid and hand their numbers to the consumers through a ring of
/// shared memory with barriers of its own (scheduler `dynamic`). After specializeWarps, which makes the roles, and
/// behind all that sums up the bytes of shared buffers or follows cursors: neither is meant.
void queueTiles(Kernel &kernel);

/// Says when the kernel behind may be launched (`trigger`): behind the main loop of a CTA's last tile, or behind all
/// that its consumers do. After placeBarriers, whose waits end the main loop.
void placeTrigger(Kernel &kernel);

/// Brings the operands of a CTA's first tile to the L2, `prefetch` steps of them, before it waits for the kernel in
/// front of it (roles and TMA). After placeBarriers, which says how a cluster shares a copy.
void prefetchAhead(Kernel &kernel);

/// Lets the first iteration of a wgmma loop write the accumulator instead of adding to it: it is taken out of the loop
/// where the number of iterations is known, else (`runs=once`) it tells itself by `kt`. After placeBarriers, whose
/// conditions `0 < kt` it resolves.
void peelFirst(Kernel &kernel);

/// Stores each half of a warpgroup's tile under products of the other half (`overlap`): the upper rows under the last
/// step of the lower ones, the lower rows, packed, under the first steps of the next tile's upper ones. After
/// peelFirst, whose first step it multiplies by halves, and placeTrigger: the sums of a tile are done later than its
/// loop.
void overlapStore(Kernel &kernel);

/// Has the consumers ask for their tile's lines of C before its end (roles; main loops of known length), where they add
/// C of whole tiles themselves: then they wait for the L2, not for memory, once for each chunk of lines. After bringC,
/// which leaves it nothing to do, and after all who look for the main loop: it parts a long one.
void prefetchC(Kernel &kernel);

/// Says of an operand whose m or n ends inside its last tile how much of it that tile has (`rest` of the tensor; sizes
/// known, TMA and wgmma): its lowered copies bring only that, and its barrier expects as much less. All rows beyond a
/// matrix are requests for one and the same place of the L2, which slows the whole card down (docs/hopper-l2.md, *Rows
/// that are not there*). What is read and never copied is cleared. After all who look for the consumer's `tiles`: it
/// gets others.
void trimEdges(Kernel &kernel);

/// Of a cluster whose CTAs share tiles: a stage of a CTA is full, and so given back to its neighbours, when they have
/// brought their parts of it, for which they have waited until it was given back before. Those that have no part of
/// some tile say so at each step instead: else a neighbour might give back a stage for the second time before they have
/// waited for the first. After trimEdges, which knows what last tiles have.
void meetNeighbours(Kernel &kernel);

/// Gives every shared buffer and barrier its offset and sums them up in `shared`. Last: nothing is declared after it.
void allocateShared(Kernel &kernel);

struct Pass {
  llvm::StringRef name;
  void (*run)(Kernel &);
  /// What a kernel must have beyond what `verify` asks, in words and as a question; gemmc's own kernels always have it.
  llvm::StringRef needs = "";
  bool (*fits)(const Kernel &) = nullptr;
  bool ofVectors = false; ///< Also of kernels for a matrix and a vector, which have no tiles in shared memory.
};
/// Whether a kernel that `buildKernel` has made goes through the pass.
bool concerns(const Pass &pass, const Kernel &kernel);
/// All passes in order.
llvm::ArrayRef<Pass> passes();
const Pass *findPass(llvm::StringRef name);

/// Runs a pass over a kernel of unknown origin that verifies: reports what the pass needs and does not find, and gives
/// false with the kernel unchanged then.
bool runPass(const Pass &pass, Kernel &kernel, Diags &diags);

} // namespace gemmc::tile
