/// What a launch prepared, kept for the next one that differs in addresses alone: checking arguments, evaluating
/// expressions and encoding tensor maps costs microseconds, patching addresses does not.
///
/// Everything that the preparation looked at but the addresses is the key, and of the addresses what expressions may
/// look at: their low eight bits, and whether they are null. An expression that looks at more of an address makes its
/// module one that is prepared anew at each launch.
#pragma once
#include "gemmc/Runtime/CudaApi.h"
#include "gemmc/Runtime/Launch.h"
#include <memory>
#include <mutex>

namespace gemmc {
class LaunchGraphs;

using LaunchAddresses = std::array<uint64_t, 5>; ///< Of a, b, c, d, the workspace.
LaunchAddresses addressesOf(const LaunchArgs &args);

/// One kernel's parameters, and where addresses stand in them.
struct KernelReplay {
  struct Patch {
    uint16_t offset = 0;
    bool map = false;     ///< A tensor map, not a pointer.
    uint8_t buffer = 0;   ///< a, b, c, d, workspace.
    int64_t behind = 0;   ///< Map: its start behind the buffer's.
    uint64_t encoded = 0; ///< The address that is in it.
  };
  std::array<uint32_t, 3> grid{};
  bool empty = false;
  bool readies = false; ///< See KernelInfo.
  llvm::SmallVector<uint16_t, 16> offsets;
  std::vector<std::byte> params;
  std::vector<Patch> patches;

  /// `encoded`: the addresses of the kernel's tensor maps, in the order of their parameters.
  static KernelReplay of(const ptx::KernelInfo &kernel, const PreparedKernel &prepared, const LaunchArgs &args,
                         llvm::ArrayRef<uint64_t> encoded);
  /// The address that `patch` has with `args`.
  static uint64_t address(const Patch &patch, const LaunchArgs &args);
  /// Writes `address` to where `patch` is in `params` (aligned to 64); false when the driver refuses it.
  static bool write(const cuda::DriverTable &api, const Patch &patch, uint64_t address, std::byte *params);
  /// Whether a launch of `args` has it: a workspace that is ready is not readied.
  bool launched(const LaunchArgs &args) const { return !empty && !(readies && args.workspaceReady); }
};

/// A launch of all kernels.
struct Replay {
  std::vector<KernelReplay> kernels;
  std::unique_ptr<LaunchGraphs> graphs;                    ///< Null: each kernel is launched by itself.
  uint64_t aBytes = 0, bBytes = 0, cBytes = 0, dBytes = 0; ///< 0: not read, or C in place of D.
  Replay(const ptx::LaunchInfo &info, const LaunchArgs &args);
  ~Replay();
  /// The only one of the checks that depends on more of the addresses than the key has: no operand overlaps D.
  bool disjoint(const LaunchArgs &args) const;
};

/// What of a launch's arguments its preparation depends on.
struct ReplayKey {
  std::array<int64_t, 15> numbers{};
  std::array<uint8_t, 6> addresses{};
  ReplayKey() = default;
  explicit ReplayKey(const LaunchArgs &args);
  bool operator==(const ReplayKey &) const = default;
};

/// The last few replays of a module. Safe to use from many threads.
class ReplayCache {
public:
  static constexpr unsigned capacity = 8;
  /// Whether launches of `info` can be replayed.
  static bool serves(const ptx::LaunchInfo &info);
  std::shared_ptr<const Replay> find(const LaunchArgs &args);
  void keep(const LaunchArgs &args, std::shared_ptr<const Replay> replay);

private:
  std::mutex mutex;
  std::array<std::pair<ReplayKey, std::shared_ptr<const Replay>>, capacity> entries;
  unsigned next = 0;
};

} // namespace gemmc
