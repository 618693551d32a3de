/// Bank conflicts of shared memory, and sectors of global memory. 32 banks of 4 bytes. A request is served in
/// wavefronts; lanes that want the same word share it, lanes that want different words of one bank wait for each other.
/// Accesses of 4 bytes and less take all 32 lanes at once, of 8 bytes half a warp, of 16 bytes a quarter; ldmatrix and
/// stmatrix one 8x8 matrix.
#pragma once
#include "Machine.h"
#include "gemmc/Emu/Mma.h"

namespace gemmc::emu {

/// Wavefronts beyond the first that one phase needs: `count` lanes that access `bytes` bytes each at these addresses.
unsigned extraWavefronts(const uint32_t *addresses, unsigned count, unsigned bytes);

/// What a warp's access costs: conflicts in shared memory, sectors of global memory and, of one that `stores`, those
/// that it writes in part.
Traffic trafficOf(Where where, const std::array<uint64_t, numLanes> &addresses, unsigned bytes, Mask mask,
                  bool stores = false);

/// Conflicts of a wmma matrix with these lines in shared memory. The manual leaves the order of its accesses open;
/// these are the instructions that ptxas 13 makes for sm_80 and up, and ncu counts the same (examples/ladder).
unsigned wmmaConflicts(const sem::MmaForm &form, sem::Role role, Order order, llvm::ArrayRef<uint64_t> lines);

/// The new value of an atomic operation in shared memory (`atomicOpOf` numbers them); nullopt when it is not modelled
/// for `type`. In global memory additions of f32 and f64 differ.
std::optional<uint64_t> atomicResult(ptx::Type type, unsigned op, uint64_t old, uint64_t operand);
std::optional<unsigned> atomicOpOf(llvm::StringRef name);

} // namespace gemmc::emu
