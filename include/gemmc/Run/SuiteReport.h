/// What a suite of benchmarks gave: a line a problem, geometric means a class.
#pragma once
#include "gemmc/Run/Bench.h"

namespace gemmc::run {

struct SuiteEntry {
  std::string name, group;
  BenchReport report;
  std::string failure; ///< Why there is no report; empty = there is one.
  double seconds = 0;  ///< That it took, from the spec on.
};

/// Of the ratios of one class.
struct GroupMean {
  std::string group;
  unsigned problems = 0; ///< With a ratio to cuBLASLt; without any what follows is 0.
  double ratio = 0, ratioToFirst = 0, worst = 0;
  /// Of those that raced with other kernels of ours: how many, and their times over those of the fastest kernel.
  unsigned compared = 0;
  double ofFastest = 0, worstOfFastest = 0;
};

struct SuiteReport {
  std::vector<SuiteEntry> entries;
  /// In the order in which the classes occur.
  std::vector<GroupMean> means() const;
  static void printHead(llvm::raw_ostream &os);
  static void printLine(llvm::raw_ostream &os, const SuiteEntry &entry);
  static void printJsonLine(llvm::raw_ostream &os, const SuiteEntry &entry);
  void printMeans(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;
};

} // namespace gemmc::run
