/// What the clusters of a launch hand to each other through global memory (split-K, stream-K): a release and an acquire
/// of an address, both with a scope that includes other clusters, and nothing else, order accesses of two clusters.
#pragma once
#include "Shadow.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <deque>
#include <mutex>
#include <unordered_map>

namespace gemmc::emu {

/// Whether the scope of a strong access or a fence goes beyond the cluster; .gpu where none is written (atom, red).
inline bool isWide(const ptx::Inst &inst) { return !inst.has("cta") && !inst.has("cluster"); }

class LaunchCheck {
public:
  /// `granuleBits`: what one cell stands for, as in the shadow of a cluster.
  LaunchCheck(unsigned granuleBits, bool alone) : bits(granuleBits), alone(alone) {}

  /// `known`: what a cluster's release hands over at `address`, to any scope beyond the cluster.
  void release(uint64_t address, uint64_t cluster, const Clocks &known);
  void acquire(uint64_t address, ForeignClocks &to);

  /// An access of any kind. `access.strong`: a reduction by a bulk copy, or an access that is strong for other
  /// clusters.
  struct Use {
    uint64_t cluster = 0;
    Access access;
  };
  /// Calls `visit(earlier use, address)` where another cluster has used these bytes and one of the two writes, then
  /// remembers this use.
  void access(uint64_t address, uint64_t bytes, const Use &now, llvm::function_ref<void(const Use &, uint64_t)> visit);

  /// Held by strong accesses of global memory from their `acquire` and `release` here to their bytes: clusters run on
  /// threads of the host, and an acquire takes exactly the releases whose values the access has seen.
  std::mutex strong;

private:
  /// By number: the last plain write, and behind it the last few reads and reductions, and the last strong access:
  /// those before it are settled by the coherence of one location. 0: none.
  struct Cell {
    static constexpr unsigned numOthers = 3;
    uint32_t write = 0, strong = 0, others[numOthers] = {};
    uint8_t next = 0;
  };
  /// A use, and how many of the cells' places have its number: without one the number is free again.
  struct Numbered {
    Use use;
    uint32_t places = 0;
  };
  uint32_t numberOf(const Use &now, const Cell &first);
  void put(uint32_t &place, uint32_t number);
  void remember(Cell &cell, const Use &now, uint32_t number);
  std::vector<Cell> *pageOf(uint64_t page, bool writes);

  const unsigned bits;
  const bool alone; ///< One cluster runs.
  std::mutex mutex;
  std::unordered_map<uint64_t, ForeignClocks> released;
  std::unordered_map<uint64_t, std::vector<Cell>> pages;
  uint64_t readPages = 0;
  std::deque<Numbered> uses; ///< By number, from 1 on.
  std::vector<uint32_t> freeNumbers;
};

} // namespace gemmc::emu
