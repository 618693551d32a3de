/// Bytes that `ld.global.nc` reads: its cache is not coherent, so nobody may write to them while the kernel runs, not
/// even behind the load (PTX ISA 9.7.9.9, `__ldg` of CUDA C++). Order between the two plays no part.
#pragma once
#include "Shadow.h"
#include <deque>
#include <mutex>
#include <unordered_map>

namespace gemmc::emu {

/// `ld.global.nc`.
inline bool isNonCoherent(const ptx::Inst &inst) { return inst.op == ptx::Op::Ld && inst.has("nc"); }

/// What all clusters of a launch have read that way, and written; only of kernels that have such loads.
class ReadOnlyCheck {
public:
  /// `granuleBits`: what one cell stands for, as in the shadow of a cluster.
  explicit ReadOnlyCheck(unsigned granuleBits) : bits(granuleBits) {}

  struct Use {
    uint64_t cluster = 0;
    Access access; ///< `write`: of any kind; else one of these loads.
  };
  struct Conflict {
    Use earlier;
    uint64_t address = 0;
  };
  /// Remembers a use of [address, address + bytes); the first earlier one that does not go with it, if there is one.
  std::optional<Conflict> use(uint64_t address, uint64_t bytes, const Use &now);

private:
  struct Cell {
    uint32_t read = 0, write = 0; ///< Numbers of the first uses; 0: none.
  };
  static constexpr unsigned pageBits = 10;
  const unsigned bits;
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<Cell>> pages;
  std::deque<Use> uses; ///< By number, from 1 on.
};

} // namespace gemmc::emu
