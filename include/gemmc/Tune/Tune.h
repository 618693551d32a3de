/// The fastest plan by measurement. The planner's ranking says what is tried; everyone runs in one arena, in turns;
/// those that are clearly behind leave early; variations of the best (cluster, raster) race in a second heat; the
/// winners are measured against cuBLASLt in a final.
#pragma once
#include "gemmc/Run/Bench.h"
#include "gemmc/Spec/Spec.h"
#include <functional>

namespace llvm::json {
class OStream;
}

namespace gemmc::tune {

struct TuneRequest {
  run::ProblemOptions problem;
  unsigned top = 32;           ///< Tiles of the ranking that take part; 0 = all that are legal.
  bool versusCublas = true;    ///< In the final.
  unsigned rounds = 11;        ///< Of the final.
  double turnSeconds = 0;      ///< Of each kernel's turn in a round (run::Turn).
  double warmUpSeconds = 0.02; ///< Of each kernel.
  /// At least, of load for which nobody is timed before a heat: some 0.3 s after a pause (here the one in which ptxas
  /// works) the SMs' clock falls by a fifth for 0.1 s, and a round that meets that sends fast kernels home (H200,
  /// 2026-11-26).
  double settleSeconds = 0.7;
  double finalSeconds = 0.3;     ///< That each kernel of the final runs before it is measured.
  std::string cublasLibrary;     ///< Empty = the usual names.
  std::function<bool()> stopped; ///< Asked between turns; true ends the tuning with measuring_stopped.
  /// Told what is going on and the best median so far (seconds, 0 = none yet); empty = nobody listens.
  std::function<void(const std::string &step, double best)> progress;
};

/// One choice: fields as `path=value` words, as `--set` takes them.
struct TuneEntry {
  std::string choice;
  double median = 0; ///< Seconds, over the rounds it took part in.
  unsigned rounds = 0;
  bool final = false;
};

struct TuneReport {
  LaunchArgs args;
  ptx::LaunchInfo info;
  std::string device;
  std::vector<TuneEntry> entries; ///< Finalists first, then by their median.
  unsigned refused = 0;           ///< That the device did not run.
  run::BenchReport final;         ///< `ours` is the winner, then the planner's own choice and other finalists.
  std::optional<double> ratio() const { return final.ratio(); }
  std::string winner; ///< Of the final: its choice, empty for the planner's own.
  void printTable(llvm::raw_ostream &os) const;
  void writeJson(llvm::json::OStream &json) const; ///< As attributes of an open object.
};

/// Tunes `spec`: what it gives stays, what it leaves open is varied. Its own plan takes part.
Outcome<TuneReport> tune(const Spec &spec, const TuneRequest &request, std::shared_ptr<const Device> device);

} // namespace gemmc::tune
