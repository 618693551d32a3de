/// Where kernels run: the GPU and the emulator behind one interface, so that everything around a launch (inputs,
/// fallback, verification) is written and tested once.
#pragma once
#include "gemmc/Emu/Emulator.h"
#include "gemmc/Run/Verify.h"
#include "gemmc/Runtime/Device.h"

namespace gemmc::run {

/// A compiled GEMM: what an executor needs of it.
struct Code {
  std::string ptx;
  ptx::LaunchInfo info;
  std::string cubin = {}; ///< `ptx` assembled: what a GPU loads in its place. Empty: the driver assembles.
  bool assembled = false; ///< `cubin` was made to save time: where it does not load, `ptx` does.
};

/// How a launch is done.
struct LaunchChoice {
  uint64_t sampleClusters = 0; ///< Run only that many clusters, chosen by `seed` (emulator); 0 = the whole grid.
  std::optional<uint64_t> maxInstructions; ///< Emulator: of one cluster; by default by size.
  uint64_t seed = 1;
  uint64_t stress = 0; ///< GPU: launches more under load, whose results must have the same bits (see Stress.h).
  bool timed = true;   ///< Measure again after the first launch, where launches are fast (GPU).
};

struct LaunchOutcome {
  double seconds = 0; ///< Of the kernels alone.
  /// GPU, host time: until the code was loaded, and from then until the first launch had ended.
  double loadSeconds = 0, firstSeconds = 0;
  uint64_t clustersRun = 0, clustersTotal = 0;
  uint32_t ctasPerCluster = 1;
  bool sampled = false;
  uint64_t stressed = 0, different = 0; ///< Launches more, and those whose D had other bits than the first one's.
  /// The emulator's findings, printed with their PTX line; empty = clean.
  std::vector<std::string> findings;
  std::vector<emu::Finding> witnesses; ///< The same as data, reviews included.
  bool incomplete = false;             ///< Something was not modelled: no verdict.
  emu::Stats stats;                    ///< What the emulator counted.
};

class Executor {
public:
  virtual ~Executor() = default;
  /// "NVIDIA H200" or "emulator (2 threads)".
  virtual std::string where() const = 0;
  virtual bool isEmulator() const = 0;
  /// The value of the launch variable `sms` for `choice`.
  virtual int64_t sms(const LaunchChoice &choice) const = 0;
  virtual MaybeFailure supports(llvm::StringRef target) const = 0;

  /// Allocates memory for `data` behind a multiple of 256 bytes plus `misalign` and copies it there; its address. The
  /// surroundings are guarded: bytes of poison (GPU) or nothing at all (emulator).
  virtual Outcome<uint64_t> upload(llvm::StringRef name, llvm::ArrayRef<std::byte> data, uint64_t misalign) = 0;
  /// Launches all kernels of `code` and waits. Arguments and requirements have been checked.
  virtual Outcome<LaunchOutcome> launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) = 0;
  /// Copies a buffer back into `data`; a violation when its guards have changed.
  virtual MaybeFailure download(llvm::StringRef name, llvm::MutableArrayRef<std::byte> data,
                                std::optional<GuardViolation> &violation) = 0;
};

/// Runs PTX text on the CPU. `threads` 0 = all cores; `sms`: multiprocessors that it claims to have, which says how
/// many tiles a persistent CTA takes; `chip`: whose arithmetic it uses (`sm_90`: PTX for sm_80 on an H200), else that
/// of the PTX's target; `timeline`: draws the first cluster of each launch, the last launch remains.
std::unique_ptr<Executor> makeEmulator(unsigned threads = 0, const emu::CheckOptions &check = {}, int64_t sms = 16,
                                       llvm::StringRef chip = "", emu::Timeline *timeline = nullptr);
std::unique_ptr<Executor> makeGpu(std::shared_ptr<const Device> device);

} // namespace gemmc::run
