/// What messages call the bytes of shared memory: the regions of the launch, and the module's own shared variables.
#pragma once
#include "Machine.h"

namespace gemmc::emu {

/// A place in a named region; without one `region` is empty.
struct Spot {
  llvm::StringRef region;
  uint32_t stage = 0, stages = 1, offset = 0; ///< `offset`: in the stage.

  explicit operator bool() const { return !region.empty(); }
  std::string str() const; ///< `sA[2] + 128`, `full[3]`
  /// Step of a walk through the stages that comes to this one for the time `phase` (from 0).
  uint64_t kStep(uint64_t phase) const { return phase * stages + stage; }
  /// Notes region and stage.
  void mark(Finding &finding) const;
};

/// `offset`: in the window of a CTA. Where regions overlap, the first one.
Spot spotAt(const Cluster &cluster, uint32_t offset);

/// `sA[2] + 128 (shared address 0x8480)`; all names where regions overlap; the address alone where there is no name.
std::string describeShared(const Cluster &cluster, uint64_t address);
/// `the mbarrier full[3] (shared address 0x38418)`, `the mbarrier at shared address 0x400`
std::string describeObject(const Cluster &cluster, uint64_t address);

} // namespace gemmc::emu
