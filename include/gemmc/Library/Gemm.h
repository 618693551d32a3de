/// One GEMM, compiled from a spec and loaded on a device, for use in a program.
///
///     auto gemm = gemmc::Gemm::create("problem: {m: dynamic, n: 4096, k: 4096}\n");
///     if (!gemm) { puts(gemm.failure().str().c_str()); ... }
///     gemmc::GemmArgs args;                        // sizes, leading dimensions, device addresses, alpha, beta
///     if (auto failed = (*gemm)->launch(stream, args)) ...
///
/// Where sizes are dynamic, and the spec does not say what is typical for them, a kernel for each range of sizes
/// (endOfRange, gemmc/Plan/Typical.h) is compiled when the first launch or prepare() comes to it: m of 64 and of 4096
/// want different tiles.
///
/// There is no global state. A Gemm is const: launch it from as many threads and on as many streams as you like, with a
/// workspace for each launch that may run beside others. It must live until its launches have ended, and as long as a
/// graph that was captured of them. The context that is current at creation is used, else the device's primary context
/// (the one of the CUDA runtime).
#pragma once
#include "gemmc/Runtime/GpuModule.h"
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string_view>

namespace gemmc {

struct Plan; // gemmc/Plan/Plan.h
struct Spec;
using GemmArgs = LaunchArgs;

class Gemm {
public:
  struct Options {
    /// Fields of the spec in place of the text's: {"tile.block", "[128, 256, 64]"}.
    std::vector<std::pair<std::string, std::string>> overrides;
    std::string name = "gemm"; ///< Of the kernel, and of the spec in messages.
    std::string driver = "libcuda.so.1";
    bool tuning = true;   ///< Take what was measured for the device: from the database, then from gemmc's own table.
    std::string database; ///< A file. Empty: the default place (docs/tuning.md).
  };

  /// Compiles and loads. Failures: gemm_spec (with all messages), and those of Driver, Device and GpuModule.
  static Outcome<std::shared_ptr<const Gemm>> create(std::string_view spec, const Options &options);
  static Outcome<std::shared_ptr<const Gemm>> create(std::string_view spec) { return create(spec, Options()); }
  ~Gemm();

  /// Enqueues D = alpha A B + beta C on `stream` (a CUstream or cudaStream_t); nothing waits. Launches that differ in
  /// addresses alone go as executable graphs from the second one on, and a stream may be captured: see
  /// GpuModule::launch, also for what is allocated. Where the kernel's requirements do not hold for these arguments
  /// (alignment, K = 0), the fallback kernel runs. A kernel is compiled at its first use, also by a launch into a
  /// stream that is being captured, which takes tenths of a second (milliseconds from the cache of cubins): see
  /// prepare(). `args.workspaceReady` counts where no size has ranges. A kernel that cannot be loaded (no memory,
  /// say) is tried again by later launches, ever fewer of them; meanwhile the next one that serves the arguments runs,
  /// and workspaceReady does not count any more.
  MaybeFailure launch(void *stream, const GemmArgs &args) const;
  /// Bytes of workspace that launch() needs for `args`; 0 for most kernels. With less, operands at odd pitches are not
  /// copied to rows that TMA reads, sums of slices do not meet there, no counter gives tiles, and a slower kernel runs.
  Outcome<uint64_t> workspaceBytes(const GemmArgs &args) const;
  /// Why `args` get neither the kernel of their sizes nor that of the typical ones: the requirement that does not hold
  /// or the workspace that lacks. Or why the former cannot be loaded, or what is wrong with `args`; else an empty
  /// string. Compiles and loads the kernel that it asks where nobody has.
  std::string fallbackReason(const GemmArgs &args) const;
  /// Compiles and loads now what launch() takes for the sizes, leading dimensions, alignment and workspace
  /// (`workspaceBytes`, wherever it will be) of `args`. A failure only where launch() would have no kernel.
  MaybeFailure prepare(const GemmArgs &args) const;
  /// Compiles and loads the fallback kernels now, once. After a failure, those that lack.
  MaybeFailure prepareFallback() const;

  /// Of the kernel for the typical sizes.
  const std::string &ptx() const { return *base->first.text; }
  const ptx::LaunchInfo &info() const { return base->first.module->info(); }

private:
  struct Compilation; ///< The spec with the texts it points into.
  Gemm();
  /// A kernel that is compiled when it is needed.
  struct Kernel {
    std::atomic<bool> ready = false; ///< Nothing of it will change any more; before, all below is Compilation::mutex'.
    std::shared_ptr<const GpuModule> module; ///< None: not for this spec, or `failure` says why.
    const std::string *text = nullptr;       ///< Its PTX, once it is compiled.
    ptx::LaunchInfo launch;                  ///< Of that, until it is loaded.
    MaybeFailure failure;
    std::atomic<unsigned> failures = 0; ///< Loads that a later one may make good.
    std::atomic<unsigned> rest = 0;     ///< Launches that do not try again.
    /// Takes one launch off the rest; false when none is left.
    bool rests();
  };
  using Sizes = std::array<int64_t, 3>; ///< m, n, k; 0: as the spec says.
  /// Kernels that are planned for the same sizes.
  struct Range {
    Sizes typical{};
    Kernel first, repack, bare; ///< `bare`: without a workspace.
    /// Whether another kernel may have run where one of these could not be loaded.
    bool stoodIn() const { return first.failures || repack.failures || bare.failures; }
  };
  using MakePlan = llvm::function_ref<std::optional<Plan>(const Spec &, Diags &)>;
  MaybeFailure prepare(Kernel &kernel, const Sizes &typical, bool required, MakePlan makePlan) const;
  MaybeFailure prepareFirst(Range &range) const;
  MaybeFailure prepareRepack(Range &range) const;
  MaybeFailure prepareBare(Range &range) const;
  MaybeFailure preparePlain() const;
  Range &rangeOf(const GemmArgs &args) const;
  /// Whether `kernel` is there, its requirements hold, and so many bytes of workspace (none: any) are enough for it.
  bool serves(const Kernel &kernel, const GemmArgs &args, std::optional<uint64_t> workspace) const;
  /// The module for `args`, the best that so many bytes of workspace allow; one that is not there is made. What could
  /// not be loaded is tried again: now (`insists`), or as it comes to it (Kernel::rest).
  Outcome<const GpuModule *> moduleFor(const GemmArgs &args, std::optional<uint64_t> workspace, bool insists) const;
  std::shared_ptr<const Device> device;
  std::unique_ptr<Compilation> compilation;
  bool ranged = false;         ///< A size is dynamic, and nothing is typical for it.
  std::unique_ptr<Range> base; ///< Of the typical sizes.
  mutable Kernel plain;        ///< Right for all arguments.
  mutable std::shared_mutex mutex;
  mutable std::map<Sizes, std::unique_ptr<Range>> ranges;
};

} // namespace gemmc
