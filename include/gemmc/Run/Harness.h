/// One GEMM run and verified: inputs, launch (or the fallback kernel where the first one's requirements do not hold),
/// comparison with the reference.
#pragma once
#include "gemmc/Driver/Compiler.h"
#include "gemmc/Run/Executor.h"

namespace gemmc::run {

/// What a run needs of the CPU: it can be made while the device is opened.
struct Inputs {
  GemmProblem problem;
  std::optional<Reference> reference; ///< Of a small problem, with all of D.
  double seconds = 0;                 ///< That making them took.
};

struct RunRequest {
  ProblemOptions problem;
  /// Emulator: clusters to run; 0 = decide by size (the whole grid up to wholeGridFlops, else a sample).
  std::optional<uint64_t> ctas;
  std::optional<uint64_t> maxInstructions; ///< Emulator: of one cluster (`emu::Options::maxSteps`).
  unsigned threads = 0;                    ///< Of the reference.
  uint64_t stress = 0;                     ///< GPU: that many launches more, under load.
  bool timed = true;                       ///< Measure again after the first launch (GPU).
  std::shared_ptr<Inputs> inputs = {};     ///< Of the first run, if they are there.
};

/// Failures: those of makeProblem.
Outcome<std::shared_ptr<Inputs>> makeInputs(const ptx::LaunchInfo &info, const RunRequest &request);

/// Floating-point operations up to which the emulator runs the whole grid by default.
constexpr double wholeGridFlops = 2e9;

struct RunReport {
  LaunchArgs args;
  ptx::LaunchInfo info; ///< Of the kernels that ran.
  InputKind kind = InputKind::integer;
  std::string where;
  std::string fallback; ///< The requirement that sent us to the fallback kernel; empty = the first kernel ran.
  std::vector<std::string> remarks; ///< Decisions worth telling: chosen sizes, sampling.
  bool launched = false;            ///< False for an empty D.
  uint64_t runs = 1;                ///< Of runRepeatedly: this is the last of so many.
  LaunchOutcome launch;
  /// Filled by the caller, who compiled while the device was opened: host time of both, of waiting for the assembler
  /// besides, and of everything from the start until D was verified.
  double compileSeconds = 0, deviceSeconds = 0, assembleSeconds = 0, totalSeconds = 0;
  double inputSeconds = 0, verifySeconds = 0; ///< Making the inputs; copying the results back and comparing them.
  Verification verification;
  uint64_t dHash = 0; ///< Of D's bytes, padding too: equal on two devices = D is equal bit for bit.
  bool ok() const { return verification.ok && launch.findings.empty() && launch.different == 0; }

  void printTable(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;
};

/// Compiles a kernel for problems that the first one cannot do; nullopt when that failed (and was reported) or, but for
/// the last kind, where there is none.
using FallbackCompiler = llvm::function_ref<std::optional<Code>(Fallback)>;

/// Runs `code` on `executor`. A failure is something that kept it from running; a wrong result is in the report.
Outcome<RunReport> runGemm(const Code &code, FallbackCompiler fallback, const RunRequest &request, Executor &executor);
/// `runs` times, each with the next seed: a race may show in one launch of many. The first that is not right, or the
/// last; several are not timed.
Outcome<RunReport> runRepeatedly(const Code &code, FallbackCompiler fallback, RunRequest request, uint64_t runs,
                                 Executor &executor);

} // namespace gemmc::run
