/// One GEMM kernel, compiled from a spec and loaded on a device, for use in a program.
///
///     auto gemm = gemmc::Gemm::create("problem: {m: dynamic, n: 4096, k: 4096}\n");
///     if (!gemm) { puts(gemm.failure().str().c_str()); ... }
///     gemmc::GemmArgs args;                        // sizes, leading dimensions, device addresses, alpha, beta
///     if (auto failed = (*gemm)->launch(stream, args)) ...
///
/// There is no global state. A Gemm is const: launch it from as many threads and on as many streams as you like. The
/// context that is current at creation is used, else the device's primary context (the one of the CUDA runtime).
#pragma once
#include "gemmc/Runtime/GpuModule.h"
#include <mutex>
#include <string_view>

namespace gemmc {

enum class Fallback : uint8_t; // gemmc/Driver/Compiler.h
using GemmArgs = LaunchArgs;

class Gemm {
public:
  struct Options {
    /// Fields of the spec in place of the text's: {"tile.block", "[128, 256, 64]"}.
    std::vector<std::pair<std::string, std::string>> overrides;
    std::string name = "gemm"; ///< Of the kernel, and of the spec in messages.
    std::string driver = "libcuda.so.1";
  };

  /// Compiles and loads. Failures: gemm_spec (with all messages), and those of Driver, Device and GpuModule.
  static Outcome<std::shared_ptr<const Gemm>> create(std::string_view spec, const Options &options);
  static Outcome<std::shared_ptr<const Gemm>> create(std::string_view spec) { return create(spec, Options()); }
  ~Gemm();

  /// Enqueues D = alpha A B + beta C on `stream` (a CUstream or cudaStream_t); nothing waits. Launches that differ in
  /// addresses alone go as executable graphs from the second one on, and a stream may be captured: see
  /// GpuModule::launch, also for what is allocated. Where the kernel's requirements do not hold for these arguments
  /// (alignment, K = 0), the fallback kernel runs; it is compiled at its first use, which makes that launch unfit for
  /// stream capture: see prepareFallback.
  MaybeFailure launch(void *stream, const GemmArgs &args) const;
  /// Bytes of workspace that launch() needs for `args`; 0 for most kernels. With less, operands at odd pitches are not
  /// copied to rows that TMA reads, and a slower kernel runs.
  Outcome<uint64_t> workspaceBytes(const GemmArgs &args) const;
  /// Whether `args` need the fallback kernel; the requirement that does not hold, or an empty string.
  std::string fallbackReason(const GemmArgs &args) const;
  /// Compiles and loads the fallback kernels now, once.
  MaybeFailure prepareFallback() const;

  const std::string &ptx() const { return text; }
  const ptx::LaunchInfo &info() const { return first->info(); }

private:
  struct Compilation; ///< The spec with the texts it points into.
  Gemm();
  /// A kernel for launches that the first one's requirements exclude, compiled when it is needed.
  struct Second {
    std::once_flag once;
    std::shared_ptr<const GpuModule> module; ///< None: not for this spec, or `failure` says why.
    MaybeFailure failure;
  };
  MaybeFailure prepare(Fallback kind) const;
  /// The module for `args`: the first, or a fallback; the best that so many bytes of workspace allow (none: any).
  Outcome<const GpuModule *> moduleFor(const GemmArgs &args, std::optional<uint64_t> workspace) const;
  std::shared_ptr<const Device> device;
  std::unique_ptr<Compilation> compilation;
  std::string text;
  std::shared_ptr<const GpuModule> first;
  mutable std::array<Second, 2> seconds; ///< By Fallback.
};

} // namespace gemmc
