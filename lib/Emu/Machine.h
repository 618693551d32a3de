/// The machine while it runs: a cluster of CTAs, its warps, and the one launch that all clusters share.
///
/// One host thread runs one cluster at a time and interleaves its warps. Within a warp, lanes with the same program
/// counter form a group; the group that is furthest behind runs first and joins others where it meets them, which
/// brings the lanes of structured code together again after every branch.
#pragma once
#include "AsyncQueue.h"
#include "Program.h"
#include "Schedule.h"
#include "gemmc/Emu/ClusterBarrier.h"
#include "gemmc/Emu/Emulator.h"
#include "gemmc/Emu/NamedBarrier.h"
#include "gemmc/Emu/RegisterPool.h"
#include "gemmc/Emu/Warpgroup.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include <atomic>
#include <map>
#include <mutex>

namespace gemmc::emu {

class Check;
class Cluster;
class LaunchCheck;
class ReadOnlyCheck;
class Cta;

/// What a group of lanes waits for; words for the deadlock report come from here.
struct Wait {
  enum What : uint8_t { None, Converge, Named, WarpSync, Mbarrier, ClusterBarrier, Registers, Warpgroup };
  What what = None;
  bool arrived = false;    ///< The arrival has happened: the group must not be merged with one that has yet to arrive.
  uint32_t id = 0;         ///< Named: the barrier. Registers: how many are wanted for a thread.
  uint64_t address = 0;    ///< Mbarrier: shared address.
  uint32_t phase = 0;      ///< Mbarrier: the parity asked for.
  uint64_t generation = 0; ///< Named, ClusterBarrier: completes when the barrier's is another.
  Mask lanes = 0;          ///< Converge, WarpSync: lanes that must come together.
};

/// Lanes at one program counter.
struct Group {
  uint32_t pc = 0;
  Mask mask = 0;
  bool stuck = false; ///< Tried in this turn and blocked.
  Wait wait;
  uint32_t triedPc = ~0u;              ///< A try_wait that said False without having blocked.
  uint32_t spinPc = ~0u;               ///< Where a test last failed, and
  uint64_t spinVersion = ~uint64_t(0); ///< the cluster's `version` then.
};

class Warp {
public:
  Warp(Cta &cta, unsigned index, Mask existing);

  /// Runs until nothing more can be done now or `budget` instructions have run. False when no instruction completed.
  bool run(uint64_t budget);
  bool done() const { return groups.empty(); }

  template <typename T> const T *read(const Arg &arg) const {
    return reinterpret_cast<const T *>((arg.constant ? constants : rows) + arg.slot);
  }
  template <typename T> T *write(const Arg &arg) { return reinterpret_cast<T *>(rows + arg.slot); }
  Mask pred(const Arg &arg) const { return preds[arg.slot] ^ (arg.negated ? allLanes : 0); }
  void setPred(const Arg &arg, Mask value, Mask mask) { preds[arg.slot] = (preds[arg.slot] & ~mask) | (value & mask); }
  /// One lane of a value of up to 64 bits, zero-extended.
  uint64_t value(const Arg &arg, unsigned lane) const {
    return arg.bits > 32 ? read<uint64_t>(arg)[lane] : read<uint32_t>(arg)[lane];
  }
  /// Stores `value`, cut to the register's width.
  void set(const Arg &arg, unsigned lane, uint64_t value);
  uint64_t address(const Arg &arg, unsigned lane) const { return value(arg, lane) + arg.offset; }
  const Arg &element(const Arg &vector, unsigned index) const { return args[vector.first + index]; }
  uint32_t thread(unsigned lane) const { return index * numLanes + lane; }

  /// Reports an error found by `lane`.
  Step fail(const Code &code, unsigned lane, llvm::StringRef rule, const llvm::Twine &message);
  Step incomplete(const Code &code, unsigned lane, llvm::StringRef rule, const llvm::Twine &message);

  /// The bytes of an access, or nullptr after a finding. Checks alignment to `align` and the bounds of the space.
  std::byte *memory(Where where, uint64_t address, uint64_t bytes, unsigned align, unsigned lane, const Code &code) {
    std::byte *found = quickMemory(where, address, bytes, align);
    return found ? found : anyMemory(where, address, bytes, align, lane, code);
  }

  /// For instructions whose lanes must execute together: nullopt when all lanes of `wanted` are here.
  std::optional<Step> converge(const Code &code, Mask mask, Mask wanted);
  /// The same for `.aligned` instructions: all lanes that have not exited.
  std::optional<Step> aligned(const Code &code, Mask mask) { return converge(code, mask, alive); }
  /// Sends `taken` to `target` and the other lanes of the current group to the next instruction.
  Step branch(Mask taken, uint32_t target);
  Step exit(Mask mask);
  Group &group() { return groups[current]; }

  Cta &cta;
  Cluster &cluster;
  const Program &program;
  const unsigned index;
  Mask alive; ///< Lanes that exist and have not exited.
  llvm::SmallVector<Group, 4> groups;
  WarpAsync async;
  std::vector<std::byte> local; ///< One lane after the other.
  Mask warpSyncArrived = 0;
  Mask lastElected = 0; ///< The lane that the last `elect.sync` chose.
  /// The lane that `elect.sync` chooses: always the same one of a mask.
  unsigned elected(Mask lanes) {
    auto [entry, fresh] = leaders.try_emplace(lanes, 0);
    if (fresh)
      entry->second = electAny(lanes);
    return entry->second;
  }
  /// Number of the warp in the cluster.
  unsigned number() const;

private:
  friend struct WarpTestAccess;
  Group *choose();
  /// The frequent cases, the CTA's own shared memory and global memory; nullptr when it is another, or wrong.
  std::byte *quickMemory(Where where, uint64_t address, uint64_t bytes, unsigned align);
  std::byte *anyMemory(Where where, uint64_t address, uint64_t bytes, unsigned align, unsigned lane, const Code &code);
  void fillSpecials();
  unsigned electAny(Mask lanes);
  std::map<Mask, unsigned> leaders;
  const Row *constants;
  Row *rows;
  const Arg *args;
  std::vector<Row> rowStorage;
  std::vector<Mask> preds;
  unsigned current = 0;

public:
  Mask *predFile() { return preds.data(); }
};

/// A wgmma as the four warps of a warpgroup have issued it.
struct WgmmaOp {
  const Code *code = nullptr;
  uint64_t descA = 0, descB = 0;
  bool accumulate = true;
  bool executed = false;
};
struct Warpgroup {
  sem::WarpgroupState state;
  std::deque<WgmmaOp> ops; ///< From `state.first` on.
};

class Cta {
public:
  Cta(Cluster &cluster, uint32_t rank, std::array<uint32_t, 3> id);

  Cluster &cluster;
  const uint32_t rank;
  const std::array<uint32_t, 3> id;
  std::vector<std::byte> shared; ///< By offset: the first `sharedBase` bytes are not used.
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<sem::NamedBarrierState, 16> named;
  std::vector<Warpgroup> warpgroups;
  sem::RegisterPoolState registers;

  uint32_t numThreads = 0;
  /// Whether the warp is one of four whole ones that begin at a multiple of four (9.7.15.1).
  bool hasWarpgroup(const Warp &warp) const { return warp.index / 4 < warpgroups.size(); }
  /// By warp: lanes that live.
  llvm::SmallVector<Mask, 32> alive() const;
  bool done() const;
  /// Lanes of a warp have exited: barriers that wait only for them open.
  void exited();
};

/// Everything that the clusters of a launch share.
class Launch {
public:
  Launch(const Program &program, const LaunchParams &params, Memory &memory, const Options &options);
  void report(Finding finding);
  std::unique_ptr<Cluster> begin(uint64_t index); ///< A cluster of the grid.
  void end(Cluster &cluster);                     ///< When it has run.

  const Program &program;
  const LaunchParams &params;
  Memory &memory;
  const Options &options;
  std::vector<std::byte> *module = nullptr; ///< Module variables; shared by all launches of a kernel.
  std::array<uint32_t, 3> numClusters{};
  uint64_t gridWorkspace = 0; ///< Of a cooperative launch: what %envreg1 (high half) and %envreg2 tell.
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> changes{0}; ///< Grows, now and then, while clusters change what others may see.
  std::mutex mutex;
  Result result;
  std::atomic<size_t> mistakes{0};         ///< Of the findings.
  std::vector<uint8_t> executed;           ///< By instruction, in any cluster; empty: nobody looks.
  Touches earlyTouches;                    ///< See `Memory::earlyTouches`; of this launch.
  std::shared_ptr<LaunchCheck> check;      ///< Null: nobody looks for races.
  std::shared_ptr<ReadOnlyCheck> readOnly; ///< Null: nobody looks, or the kernel has no ld.global.nc.
  /// Atomic operations on global memory take the lock of their address.
  std::mutex &lockOf(const void *at) { return locks[(reinterpret_cast<uintptr_t>(at) >> 4) % locks.size()]; }
  /// Calls `part(at, offset, bytes)` for the pieces of a range, each under its lock.
  template <typename Part> void reduceGlobal(std::byte *to, uint32_t bytes, Part part) {
    for (uint32_t done = 0, size; done < bytes; done += size) {
      size = std::min<uint32_t>(bytes - done, 16 - (reinterpret_cast<uintptr_t>(to + done) & 15));
      std::lock_guard lock(lockOf(to + done));
      part(to + done, done, size);
    }
  }

private:
  std::array<std::mutex, 64> locks;
};

class Cluster {
public:
  Cluster(Launch &launch, std::array<uint32_t, 3> id);
  ~Cluster();
  /// Until it has ended (true), or has spun for a while without an effect: what it waits for may come from a cluster
  /// that has not begun, or is not being run.
  bool run();
  void reportQuiet(uint64_t steps); ///< Nobody has changed anything for so many warp instructions.
  /// Warp instructions, a bulk copy one more for each 512 bytes: what an endless loop is known by.
  uint64_t work() const { return steps + copied / 512; }
  /// A finding at `pc` of `warp`; the run goes on. `sharedOffset`: what it is about, in the window of a CTA.
  void note(Verdict verdict, llvm::StringRef rule, const llvm::Twine &message, const Warp &warp, const Code &code,
            unsigned lane, std::optional<uint32_t> sharedOffset = std::nullopt);

  Launch &launch;
  const Program &program;
  const std::array<uint32_t, 3> id;
  std::vector<std::unique_ptr<Cta>> ctas;
  AsyncQueue async;
  uint64_t steps = 0;
  uint64_t copied = 0;   ///< Bytes of bulk copies.
  uint64_t busy = 0;     ///< Work without that of turns that changed nothing for long.
  uint64_t version = 0;  ///< Grows with every effect that another warp may see.
  uint64_t meetings = 0; ///< Of those, arrivals at barriers of threads, whose state is all that they change.
  /// Without them: a loop that polls may lead through a barrier, as `while (!__syncthreads_or(seen))` does.
  uint64_t effects() const { return version - meetings; }
  bool spins = false; ///< Gave its turn to other clusters, and nothing of its own has changed since.
  bool failed = false;
  Stats stats;
  std::vector<std::byte> params; ///< The parameter block.
  /// Global memory, with the allocations used last kept at hand.
  std::byte *global(uint64_t address, uint64_t bytes);

  sem::ClusterBarrierState barrier; ///< Of the cluster.
  unsigned warpsPerCta = 0;
  Schedule schedule;
  std::unique_ptr<Check> check; ///< Null: nobody looks for races.
  Timeline *timeline = nullptr; ///< Null: nobody draws.
  /// Whether variables in shared memory get no more alignment than they declare: those of our kernels, while races are
  /// searched for. Others count on what the hardware gives, dynamic memory at a multiple of 1024 among it.
  const bool exact;
  uint32_t dynamicOffset() const { return exact ? program.exactDynamic : program.dynamicOffset; }
  uint32_t staticShared() const { return exact ? program.exactShared : program.staticShared; }
  /// The CTA whose shared memory holds `at`, and the offset in its window; nullptr when none does.
  Cta *ctaOf(const std::byte *at, uint32_t &offset);

private:
  bool runWarps(bool &alive);
  bool completeAny();
  void reportDeadlock();
  void reportCauses();
  void reportBusy();
  bool endsForMistakes();
  void reportLimit(const llvm::Twine &message);
  std::string describeWaits() const;
  std::byte *findGlobal(uint64_t address, uint64_t bytes);
  uint64_t busyAtMistake = 0; ///< `busy` when the launch's last mistake was found.
  size_t mistakesSeen = 0;
  std::array<Memory::Span, 4> spans;
  unsigned nextSpan = 0;
};

inline unsigned Warp::electAny(Mask lanes) { return cluster.schedule.elect(lanes); }
inline unsigned Warp::number() const { return cta.rank * cluster.warpsPerCta + index; }

inline std::byte *Cluster::global(uint64_t address, uint64_t bytes) {
  for (const Memory::Span &span : spans)
    if (address - span.begin < span.size && bytes <= span.size - (address - span.begin))
      return span.data + (address - span.begin);
  return findGlobal(address, bytes);
}

inline std::byte *Warp::quickMemory(Where where, uint64_t address, uint64_t bytes, unsigned align) {
  if (address & (align - 1))
    return nullptr;
  if (where == Where::Global)
    return cluster.global(address, bytes);
  if (where != Where::Shared && where != Where::SharedCluster)
    return nullptr;
  uint64_t offset = address - (uint64_t(cta.rank) << window::rankShift);
  bool own = offset >= window::sharedBase && offset + bytes <= cta.shared.size();
  return own ? cta.shared.data() + offset : nullptr;
}

/// What group `group` of `warp` waits for, in words.
std::string describeWait(const Warp &warp, const Group &group);
std::string describeMbarrier(const Warp &warp, const Wait &wait);

/// Decodes; nullptr when the entry is missing.
std::unique_ptr<Program> decode(const ptx::Module &module, llvm::StringRef entry);

} // namespace gemmc::emu
