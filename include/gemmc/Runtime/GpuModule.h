/// A compiled GEMM on a device: its PTX assembled by the driver (or a cubin), its kernels ready to launch.
#pragma once
#include "gemmc/Runtime/Device.h"
#include "gemmc/Runtime/Launch.h"

namespace gemmc {
class ReplayCache;
struct KernelReplay;

/// Const after loading: launch from as many threads as you like.
class GpuModule {
public:
  /// `image` is PTX text (its cubin is kept in $GEMMC_CACHE, see CubinCache) or a cubin; `target` its architecture (see
  /// targetOf).
  static Outcome<std::shared_ptr<const GpuModule>> load(std::shared_ptr<const Device> device, llvm::StringRef image,
                                                        ptx::LaunchInfo info, llvm::StringRef target);
  ~GpuModule();
  GpuModule(const GpuModule &) = delete;
  GpuModule &operator=(const GpuModule &) = delete;

  const ptx::LaunchInfo &info() const { return launchInfo; }
  const Device &device() const { return *devicePtr; }
  /// The first requirement that does not hold for `args` on this device; nullptr = all hold.
  const Expr *unmet(const LaunchArgs &args) const { return firstUnmet(launchInfo, args, devicePtr->sms); }

  /// Enqueues all kernels on `stream`. No synchronisation, and no allocation on the device but what the driver may take
  /// for an executable graph (below); a stream that is being captured gets each kernel by itself. Arguments are checked
  /// first (checkArgs), then requirements (launch_requirement). M or N of 0 launches nothing.
  ///
  /// What was prepared for the last few launches is used again; they may have had other addresses. On each of up to
  /// four streams the next such launch makes an executable graph of it, once, in about 15 us of host time; those behind
  /// it launch that: they allocate nothing, and cost the host half of what the kernels by themselves do, or less. No
  /// graphs have: a single kernel that overlaps with what is in front of it on the stream (KernelInfo), the stream that
  /// is another one in each thread, drivers before 12.3, and one that refused a graph. Of what a stream imposes on
  /// launches only its priority is sure to hold in graphs (not an access policy window, or the multiprocessors of a
  /// green context).
  MaybeFailure launch(cuda::Stream stream, const LaunchArgs &args) const;
  /// Whether such a launch of `args` is at hand: all requirements hold.
  bool prepared(const LaunchArgs &args) const;

private:
  GpuModule();
  bool loadCached(llvm::StringRef image);
  MaybeFailure loadImage(llvm::StringRef image);
  MaybeFailure loadKernels();
  int64_t smsFor(const ptx::KernelInfo &kernel, cuda::Function function) const;
  MaybeFailure prepareAndLaunch(cuda::Stream stream, const LaunchArgs &args) const;
  std::optional<MaybeFailure> replay(unsigned index, const KernelReplay &kernel, cuda::Stream stream,
                                     const LaunchArgs &args) const;
  MaybeFailure launchKernel(unsigned index, cuda::Stream stream, const LaunchArgs &args, KernelReplay *keep) const;
  MaybeFailure enqueue(unsigned index, cuda::Stream stream, const std::array<uint32_t, 3> &grid,
                       llvm::ArrayRef<uint16_t> offsets, std::byte *params) const;
  std::shared_ptr<const Device> devicePtr;
  ptx::LaunchInfo launchInfo;
  cuda::Module module = nullptr;
  std::vector<cuda::Function> functions; ///< One for each kernel of launchInfo.
  /// Of each kernel: multiprocessors that its CTAs can fill at a time. The graphics processing clusters of a GPU are
  /// not multiples of every cluster: a persistent grid of more would run its rest after all others.
  std::vector<int64_t> usableSms;
  std::unique_ptr<ReplayCache> replays; ///< Null: each launch is prepared.
};

/// The architecture of the `.target` directive of PTX text; empty when there is none.
llvm::StringRef targetOf(llvm::StringRef ptx);

/// The driver's tensor map of `map`.
MaybeFailure encodeTensorMap(const Driver &driver, llvm::StringRef name, const TensorMapArgs &map, std::byte *out);

} // namespace gemmc
