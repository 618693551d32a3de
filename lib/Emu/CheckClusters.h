/// What the clusters of a launch hand to each other through global memory (split-K, stream-K): a release and an acquire
/// of an address, both with a scope that includes other clusters, and nothing else, order accesses of two clusters.
#pragma once
#include "Release.h"
#include "Shadow.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

namespace gemmc::emu {

/// fence.sc, and membar, which is one (9.7.13.4).
bool isScFence(const ptx::Inst &inst);

/// Whether the lanes that made a write have released it as a tensor map. `released`: by lane, when they did so last.
bool isReleased(const Access &write, const std::array<Epoch, numLanes> &released);

class LaunchCheck {
public:
  /// `granuleBits`: what one cell stands for, as in the shadow of a cluster.
  LaunchCheck(unsigned granuleBits, bool alone) : bits(granuleBits), alone(alone) {}

  /// `known`: what the write of a cluster hands over at `address`, to any scope beyond the cluster.
  void release(uint64_t address, uint64_t cluster, ReleaseBy by, const Clocks &known);
  void acquire(uint64_t address, ForeignClocks &to);

  /// An access of any kind. `access.strong`: a reduction by a bulk copy, or an access that is strong for other
  /// clusters.
  struct Use {
    uint64_t cluster = 0;
    Access access;
  };
  /// Of kernels with fence.sc: what has happened before the strong writes of an address, and the fences themselves.
  void seeHappened(uint64_t address, ForeignClocks &known);
  void happens(uint64_t address, uint64_t cluster, const Clock &own, const ForeignClocks &known);
  void keepScFence(const Use &fence, const Clocks &handed);
  void learnScFences(uint64_t cluster, const ForeignClocks &known, ForeignClocks &learnt);

  /// Of strong reads, the last first.
  using Observers = llvm::ArrayRef<const Use *>;
  /// Calls `visit(earlier use, address, who has read what it left)` where another cluster has used these bytes and one
  /// of the two writes, then remembers this use. The caller holds what `hold` returns; not where one cluster runs
  /// alone.
  void access(uint64_t address, uint64_t bytes, const Use &now,
              llvm::function_ref<void(const Use &, uint64_t, Observers)> visit);

  /// For all accesses of an instruction: threads of the host that take turns at each of them mostly wait (256x256x1024
  /// on two of them, 2026-11-29: 72 thousand switches between threads, and 5).
  [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex); }
  bool isAlone() const { return alone; }

  /// Lanes of a warp have released the tensor maps that they wrote, to other clusters (fence.proxy.tensormap).
  void mapReleased(const Use &by, Mask lanes);
  /// Calls `visit(write, whether that thread has released it as a tensor map)` for the last plain writes of any
  /// cluster.
  void writes(uint64_t address, uint64_t bytes, llvm::function_ref<void(const Use &, bool)> visit);

  /// Held by strong accesses of global memory from their `acquire` and `release` here to their bytes: clusters run on
  /// threads of the host, and an acquire takes exactly the releases whose values the access has seen.
  std::mutex strong;

private:
  /// By number: the last plain write, and behind it the last few reads and reductions, and the strong accesses, the
  /// last of each thread. 0: none.
  struct Cell {
    static constexpr unsigned numOthers = 3;
    uint32_t write = 0, others[numOthers] = {};
    uint32_t strong = 0; ///< Of the last one's link.
    uint8_t next = 0;
    static constexpr uint8_t mixed = 0xff;
    uint8_t strongBytes = 0; ///< Of an element of the strong ones, if there are any.
  };
  /// A strong access of a cell, and the one before it.
  struct Link {
    uint32_t use = 0, before = 0;
    uint32_t length = 0, most = 32; ///< Links from this one on, and how many make it worth a look.
  };
  /// A use, and how many of the cells' places have its number: without one the number is free again.
  struct Numbered {
    Use use;
    uint32_t places = 0;
  };
  /// What somebody in `cluster` who knows this hands over to other clusters.
  static ForeignClocks foreignOf(uint64_t cluster, const Clocks &known);
  /// `cells`: of the access.
  uint32_t numberOf(const Use &now, const Cell &first, uint64_t cells);
  void put(uint32_t &place, uint32_t number);
  void putStrong(Cell &cell, const Use &now, uint32_t number);
  uint32_t thinStrong(Cell &cell);
  void unlink(uint32_t &place);
  void remember(Cell &cell, const Use &now, uint32_t number);
  std::vector<Cell> *pageOf(uint64_t page, bool writes);

  const unsigned bits;
  const bool alone; ///< One cluster runs.
  std::mutex mutex;
  std::unordered_map<uint64_t, ReleaseSequence<ForeignClocks>> released;
  std::unordered_map<uint64_t, ForeignClocks> happened; ///< By address.
  /// fence.sc by lanes of a warp, and what it hands over.
  struct ScFence {
    Access event;
    ForeignClocks handed;
  };
  std::map<std::pair<uint64_t, uint32_t>, std::array<ScFence, 2>> scFences; ///< By cluster and component: the last two.
  std::unordered_map<uint64_t, std::vector<Cell>> pages;
  std::map<std::pair<uint64_t, uint32_t>, std::array<Epoch, numLanes>> mapReleases; ///< By cluster and component.
  uint64_t readPages = 0;
  std::deque<Numbered> uses; ///< By number, from 1 on.
  std::vector<uint32_t> freeNumbers;
  std::deque<Link> links; ///< By number, from 1 on.
  std::vector<uint32_t> freeLinks;
};

} // namespace gemmc::emu
