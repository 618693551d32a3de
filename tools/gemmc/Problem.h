/// What `run` and `bench` share: the options that make a spec a concrete problem, the compiled code, exit codes of what
/// the runtime says.
#pragma once
#include "Ranged.h"
#include "SpecInput.h"
#include "Tuning.h"
#include "gemmc/Driver/Compiler.h"
#include "gemmc/Emu/Timeline.h"
#include "gemmc/Run/Bench.h"

namespace gemmc::tool {

/// --m --n --k --batch --lda... --stride-a... --alpha --beta --seed --input --misalign, and --in-place where a result
/// is looked at: what is measured has memory of its own for C and D.
class ProblemInput {
public:
  ProblemInput(llvm::cl::SubCommand &sub, run::InputKind defaultKind, bool mayBeInPlace);
  run::ProblemOptions get() const;
  llvm::StringRef firstGiven() const; ///< The first option that is on the command line; empty: none.

private:
  using Number = llvm::cl::opt<int64_t>;
  Number m, n, k, batch, lda, ldb, ldc, ldd, strideA, strideB, strideC, strideD;
  Real alpha, beta;
  llvm::cl::opt<uint64_t> seed, misalign;
  llvm::cl::opt<run::InputKind> kind;
  std::optional<llvm::cl::opt<bool>> inPlace;
};

/// The kernel of a spec, or of a `.ptx` file that carries its launch information (then there is no fallback).
class KernelInput {
public:
  explicit KernelInput(llvm::cl::SubCommand &sub);
  /// Whether `--set`, and `--launch` with that file, mean something for such an input; reports which does not.
  bool allUsed(llvm::StringRef launchFile, Diags &diags) const;
  /// Nullopt after a reported error. `launchFile`: a file with the launch block of a `.ptx` file that has none.
  std::optional<run::Code> compile(Diags &diags, llvm::StringRef launchFile = "");
  std::optional<run::Code> compileFallback(Fallback kind, Diags &diags) const;
  /// Another kernel: a `.ptx` file, or `words` as SpecInput::readVariant takes them.
  std::optional<run::Code> compileVariant(llvm::StringRef words, Diags &diags) const;

  llvm::StringRef path() const { return input.path(); }
  const SpecInput &specs() const { return input; }
  /// The device that the kernel will run on: its measurements count, where --device-name says nothing else.
  void runsOn(std::string device) { deviceName = std::move(device); }
  /// The kernel of a spec by the plan that was measured for it, or else the model's.
  std::optional<run::Code> compileChosen(const Spec &spec, Diags &diags) const;
  /// The planner's best `count` alternatives to that plan, by what they choose.
  std::vector<run::Rival> compileNext(const Spec &spec, unsigned count) const;
  /// The spec of the kernel that was compiled last; null for a `.ptx` file.
  const Spec *planned() const { return spec ? &*spec : nullptr; }
  /// The alternatives of that; none of a `.ptx` file.
  std::vector<run::Rival> compileNext(unsigned count) const;

private:
  std::optional<Plan> choose(const Spec &spec, Diags &diags) const;
  CompileOptions options() const;
  SpecInput input;
  TuningInput tuning;
  std::string deviceName;
  std::optional<Spec> spec;
};

/// Warns where dynamic sizes that are given are not of the ranges that `spec` is planned for.
void warnOfOtherSizes(const Spec &spec, const run::ProblemOptions &sizes, Diags &diags);

/// Reports `failure`, prints all, and gives the exit code: 3 what is not possible on this machine, 1 a kernel that
/// died, 2 what the user asked for wrongly.
int finishWith(const Failure &failure, Diags &diags);

/// Writes the timeline, if a file is wanted; a remark when it is not whole.
void writeTimeline(const emu::Timeline &timeline, llvm::StringRef file, Diags &diags);

/// While it lives, says on a terminal what takes so long: from the third second on.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace gemmc::tool
