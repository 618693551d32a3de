/// What the clusters of a launch hand to each other through global memory (split-K, stream-K): a release and an acquire
/// of an address, both with a scope that includes other clusters, and nothing else, order plain accesses of two
/// clusters.
#pragma once
#include "Shadow.h"
#include <mutex>
#include <unordered_map>

namespace gemmc::emu {

/// Whether the scope of a strong access or a fence goes beyond the cluster; .gpu where none is written (atom, red).
inline bool isWide(const ptx::Inst &inst) { return !inst.has("cta") && !inst.has("cluster"); }

class LaunchCheck {
public:
  /// `known`: what a cluster's release hands over at `address`, to any scope beyond the cluster.
  void release(uint64_t address, uint64_t cluster, const Clocks &known);
  void acquire(uint64_t address, ForeignClocks &to);

  struct Write {
    uint64_t cluster = 0;
    Access access;
  };
  /// The last plain write of a granule of global memory before this access, when another cluster made it.
  std::optional<Write> access(uint64_t granule, uint64_t cluster, const Access *write);

private:
  std::mutex mutex;
  std::unordered_map<uint64_t, ForeignClocks> released;
  std::unordered_map<uint64_t, Write> writes;
};

} // namespace gemmc::emu
