/// Runs PTX text on the CPU: CTAs, clusters, warps with divergence, shared and global memory, cp.async, mbarriers, TMA,
/// wgmma, mma, ldmatrix. Meaning is written from the PTX manual; nothing here knows layouts, tiles or lowering.
/// Whatever is not modelled ends as `incomplete` with its line, never as success.
#pragma once
#include "gemmc/PTX/IR.h"
#include "gemmc/PTX/LaunchInfo.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>

namespace gemmc::emu {

/// Of blocks of 16 bytes, by their number: 1 is read, 2 is written.
using Touches = llvm::DenseMap<uint64_t, uint8_t>;

/// Global memory of the emulated device: separate allocations in a 64-bit address space with unmapped gaps between, so
/// that every access outside an allocation is found. Allocation and host copies are not thread-safe; kernels access it
/// from many threads.
class Memory {
public:
  /// Returns the device address: a multiple of `align` plus `misalign` bytes.
  uint64_t allocate(uint64_t bytes, uint64_t align = 256, uint64_t misalign = 0);
  /// Another address of the same bytes; `address` is that of an allocation, which must outlive the alias.
  uint64_t alias(uint64_t address);
  void free(uint64_t address);
  /// The bytes behind [address, address + bytes), or nullptr when not wholly inside one allocation.
  std::byte *find(uint64_t address, uint64_t bytes);

  struct Span {
    uint64_t begin = 0, size = 0;
    std::byte *data = nullptr;
  };
  /// What an address stands for: the byte's own address, and by which name it was called (0: its own).
  struct Home {
    uint64_t address = 0;
    uint16_t alias = 0;
  };
  Home homeOf(uint64_t address) const { return numAliases ? findHome(address) : Home{address, 0}; }
  /// The allocation that holds the byte at `address`.
  std::optional<Span> blockOf(uint64_t address) const;
  /// The allocation whose bytes are nearest to `address`, for messages.
  std::optional<Span> nearest(uint64_t address) const;
  /// What the last kernel has read and written, if it let its dependents launch before its end.
  Touches earlyTouches;
  /// The next kernel may start before whatever runs in front of it has ended, and that may touch every byte.
  bool unknownInFront = false;

private:
  struct Block {
    uint64_t size;
    std::byte *bytes; ///< As aligned as the device's address, up to 16 bytes.
    std::unique_ptr<std::byte[]> data;
    Home home; ///< Of an alias.
  };
  Home findHome(uint64_t address) const;
  uint16_t numAliases = 0;
  std::map<uint64_t, Block> blocks;
  uint64_t next = 0x7f0000000000;
};

/// Arguments of cuTensorMapEncodeTiled with values.
struct TensorMapValues {
  Elem type = Elem::f16;
  uint64_t address = 0;
  std::vector<uint64_t> dims;    ///< Innermost first, 1..5.
  std::vector<uint64_t> strides; ///< Bytes, dims 1..
  std::vector<uint32_t> box;
  ptx::TmaSwizzle swizzle = ptx::TmaSwizzle::none;
};
/// The emulator's own 128-byte encoding. Enforces every rule of cuTensorMapEncodeTiled; the text says which was broken.
struct EncodedMap {
  std::array<std::byte, 128> bytes{};
  std::string error; ///< Empty = fine.
};
EncodedMap encodeTensorMap(const TensorMapValues &values);

enum class Verdict : uint8_t { clean, error, incomplete, review };
llvm::StringRef nameOf(Verdict verdict);
/// The graver of the two: error, then incomplete, then review.
Verdict worse(Verdict a, Verdict b);

/// Where something happened: an instruction and a thread that executed it.
struct Witness {
  uint32_t line = 0;    ///< Line in the PTX text; 0 = none.
  std::string mnemonic; ///< Of the instruction; empty when it is not known.
  std::array<uint32_t, 3> cta{};
  uint32_t thread = 0; ///< Linear thread in the CTA.
  std::string role;    ///< Of the thread's warp, from comments like `// producer: warps 0 to 3`.
  /// Of the walk through a ring of stages: phase p of stage s is step p * stages + s. Where an mbarrier tells it.
  std::optional<uint64_t> kStep;
};

/// Something the run found, with its witness.
struct Finding : Witness {
  Verdict verdict = Verdict::error;
  std::string code; ///< Rule ID (MB-5, TM-9...), `mem` for bad addresses, `deadlock`, `unmodelled`, `limit`.
  std::string message;
  Witness other;                 ///< The earlier instruction of a race.
  std::string memory;            ///< The region of shared memory that it is about; empty: none, or one without a name.
  std::optional<uint32_t> stage; ///< In that region, when it has several.
};

/// A named part of dynamic shared memory, for messages. They may overlap.
struct Region {
  std::string name;
  uint32_t offset = 0, bytes = 0, stages = 1; ///< `bytes` of each stage, from the beginning of the dynamic memory.
};

struct LaunchParams {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<std::byte> params; ///< The parameter block, laid out as the entry declares it.
  std::vector<Region> regions;
  bool overlapped = false; ///< The next kernel may start before this one has ended, whether this one says so or not.
};

/// When asynchronous operations happen, who runs first, who is elected (docs/emulator.md).
enum class ScheduleKind : uint8_t { lazy, eager, reversed, random };
llvm::StringRef nameOf(ScheduleKind kind);

/// The search for races and misuse that do not show in the values.
struct CheckOptions {
  bool enabled = false;
  bool foreign = false; ///< Not made by gemmc: what respected libraries do as well is `review`, not `error`.
  ScheduleKind schedule = ScheduleKind::lazy;
  uint64_t seed = 1; ///< Of the random schedule.
};

class Timeline;

struct Options {
  CheckOptions check;
  unsigned threads = 0;           ///< Host threads over clusters; 0 = all cores.
  std::vector<uint64_t> clusters; ///< Linear cluster indices to run; empty = the whole grid.
  /// Warp instructions of one cluster, those in which nothing changes apart; reaching it is `incomplete`.
  std::optional<uint64_t> maxSteps;
  uint64_t stepLimit() const { return maxSteps.value_or(uint64_t(1) << (check.enabled ? 24 : 28)); }
  /// The same for those of a host thread in which nothing that another thread could see has changed anywhere; a quarter
  /// of that while races are searched for, which takes longer.
  uint64_t maxQuiet = uint64_t(1) << 25;
  Timeline *timeline = nullptr; ///< Draws the first cluster that runs (gemmc/Emu/Timeline.h).
};

/// What accesses of one kind cost, as `ncu --page source` counts it.
struct Traffic {
  uint64_t bankConflicts = 0; ///< Wavefronts of shared memory beyond those that the bytes alone need.
  uint64_t sectors = 0;       ///< Different sectors (32 bytes) of global memory that each warp asked for.
  uint64_t parts = 0;         ///< Those of them that a warp's store writes, but not all bytes of.

  Traffic &operator+=(const Traffic &other) {
    bankConflicts += other.bankConflicts;
    sectors += other.sectors;
    parts += other.parts;
    return *this;
  }
};

struct Stats {
  uint64_t warpInstructions = 0;
  Traffic loads, stores; ///< ld, ldmatrix and wmma.load; st, stmatrix and wmma.store.
  Traffic copies;        ///< cp.async; its sectors are those that it reads.
  Traffic atomics;       ///< atom and red, of global memory.
  /// Of the instruction on each line of the PTX text that accesses memory; lines behind the last one have none.
  std::vector<Traffic> lines;

  /// Counts what an access of `kind` by the instruction on `line` cost.
  void count(Traffic Stats::*kind, uint32_t line, const Traffic &traffic) {
    this->*kind += traffic;
    if (line >= lines.size())
      lines.resize(line + 1);
    lines[line] += traffic;
  }
  Stats &operator+=(const Stats &other) {
    warpInstructions += other.warpInstructions;
    loads += other.loads;
    stores += other.stores;
    copies += other.copies;
    atomics += other.atomics;
    if (lines.size() < other.lines.size())
      lines.resize(other.lines.size());
    for (size_t line = 0; line < other.lines.size(); ++line)
      lines[line] += other.lines[line];
    return *this;
  }
};

struct Result {
  Verdict verdict = Verdict::clean;
  std::vector<Finding> findings; ///< At most 100.
  Stats stats;
  /// Where races are searched for: copies, barriers, fences, waits and matrix instructions that no thread has executed,
  /// by line. Nothing is known of what they do.
  std::map<uint32_t, std::string> idle;
};

/// Whether the emulator executes instructions of this row; one that it does not ends a run as `incomplete`.
bool isModelled(ptx::Op op);

/// A kernel made ready to run: decoded once, launched often; usable from several threads.
class Kernel {
public:
  /// Nullptr when the entry is missing. Unmodelled instructions are reported when they are executed.
  static std::shared_ptr<const Kernel> load(const ptx::Module &module, llvm::StringRef entry);
  virtual ~Kernel() = default;
  virtual Result launch(const LaunchParams &params, Memory &memory, const Options &options) const = 0;
};

} // namespace gemmc::emu
