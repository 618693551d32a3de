/// One GEMM on the emulator under adversarial schedules, with its races, misuse and deadlocks found (docs/emulator.md).
#pragma once
#include "gemmc/Run/Harness.h"

namespace gemmc::run {

struct CheckRequest {
  RunRequest run;
  unsigned schedules = 4; ///< lazy, eager, reversed, then random ones.
  uint64_t seed = 1;
  int64_t sms = 16;                  ///< Multiprocessors: fewer make persistent CTAs take more tiles.
  bool foreign = false;              ///< The PTX is not gemmc's.
  emu::Timeline *timeline = nullptr; ///< Of the first schedule.
  bool stopAtError = false;          ///< No further schedules after one that found an error.
};

struct CheckFinding {
  emu::Finding finding;
  std::string schedule; ///< That showed it first.
};

struct CheckReport {
  emu::Verdict verdict = emu::Verdict::clean;
  std::vector<CheckFinding> findings; ///< Each pair of instructions once.
  ptx::LaunchInfo info;               ///< Of the kernels that ran.
  std::vector<std::string> schedules, remarks;
  uint64_t clustersRun = 0, clustersTotal = 0;
  double seconds = 0;

  void printText(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;
};

/// Of the `index`-th run: lazy, eager, reversed, then random with the request's seed plus the index.
emu::CheckOptions optionsOf(unsigned index, const CheckRequest &request);
/// `lazy`, `random 4`.
std::string scheduleName(const emu::CheckOptions &options);
/// Whether no other schedule is tried: after an error, if the request says so, or a limit, which each would take as
/// long to reach.
bool isEnough(const CheckReport &report, const CheckRequest &request);

Outcome<CheckReport> checkGemm(const Code &code, FallbackCompiler fallback, const CheckRequest &request);

} // namespace gemmc::run
