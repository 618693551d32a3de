/// The compiler as one call: spec text in, PTX text with its launch information out. No global state; usable from
/// several threads at once.
#pragma once
#include "gemmc/PTX/LaunchInfo.h"
#include "gemmc/Plan/Plan.h"
#include "gemmc/Spec/Spec.h"
#include <functional>

namespace gemmc {

struct CompileOptions {
  bool verifyEach = false; ///< Verify the IR between all passes (debug builds always do).
  std::string file;        ///< Of the spec, for reports about the kernel; empty = none.
  bool cleanUp = true;     ///< Run the clean-up passes on the PTX IR.
  /// Called with a pass's name and the text of the IR after it; empty = nobody listens.
  std::function<void(llvm::StringRef pass, llvm::StringRef text)> afterPass;
};

/// What a compilation gives. The module's text is complete: `launch` is also in its header comment.
struct Compiled {
  Plan plan;
  ptx::LaunchInfo launch;
  std::string ptx;
};

/// Plan -> PTX. Nullopt only after a reported error.
std::optional<Compiled> compilePlan(const Plan &plan, Diags &diags, const CompileOptions &options = {});
/// Spec -> PTX: makePlan and compilePlan.
std::optional<Compiled> compileSpec(const Spec &spec, Diags &diags, const CompileOptions &options = {});
/// The same of `spec` with a measured or ranked choice (applyChoice); nullopt where that does not combine with it.
std::optional<Compiled> compileChoice(const Spec &spec, llvm::StringRef choice);
/// The kernels for launches that the first kernel's requirements exclude, to be tried in this order: `repack` still
/// requires what TMA needs beside alignment, and is not there for every spec; `plain` is right for all.
enum class Fallback : uint8_t { repack, plain };
constexpr Fallback fallbacks[] = {Fallback::repack, Fallback::plain};

/// Spec -> PTX of a fallback; nullopt without a report where `repack` is no choice (see makeRepackPlan and
/// makeFallbackPlan).
std::optional<Compiled> compileFallback(const Spec &spec, Fallback kind, Diags &diags,
                                        const CompileOptions &options = {});

} // namespace gemmc
