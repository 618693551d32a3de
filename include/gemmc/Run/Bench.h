/// Measures kernels against the best that cuBLASLt has, fairly: in turns within each round, over rotating buffers that
/// do not fit into the L2 cache, medians over rounds.
///
/// A contender is a function that enqueues one GEMM on buffer set i. Launches of 100 us and more are timed one by one
/// with a pair of events; shorter ones, and all in long turns, in batches, captured into a graph where the driver can
/// (so that neither side pays for its host code), else enqueued in a row. Both sides are always timed in the same way.
#pragma once
#include "gemmc/Run/Executor.h"
#include "gemmc/Runtime/CublasLt.h"
#include "gemmc/Runtime/GpuModule.h"
#include <functional>

namespace gemmc::run {

/// What a contender does in a round. At the power limit its clock is its own only where a turn is longer than the
/// limit's control loop takes (0.1 s is; docs/hopper-clock.md, *Whose clock*): in shorter ones all run at a clock that
/// all of them set.
struct Turn {
  double rest = 0;      ///< Seconds before it: the device cools down, and clocks are not limited.
  double seconds = 0;   ///< At least; what is launched in the first half is not timed.
  unsigned timings = 5; ///< At least.
};

struct BenchRequest {
  ProblemOptions problem;
  bool versusCublas = true;
  bool verify = false; ///< What each contender computes, before it is measured.
  unsigned rounds = 11;
  Turn turn;
  /// cuBLASLt algorithms that take part in the rounds, after each was timed briefly; twice as many in long turns.
  unsigned finalists = 4;
  double warmUpSeconds = 0.3;
  std::string cublasLibrary; ///< Empty = the usual names.
  /// Loaded already: one library for many benchmarks, which is half a second less for each. Null: loaded from above.
  std::shared_ptr<const CublasLt> cublas;
  std::function<bool()> stopped; ///< Asked between turns; true ends the benchmark with measuring_stopped.
};

/// One of our kernels in a benchmark. All rivals of one benchmark multiply the same problem.
struct Rival {
  std::string name;
  Code code;
  bool optional = false; ///< Where the device or its requirements refuse it the others race without it.
};

struct BenchEntry {
  std::string name;
  double median = 0, best = 0, worst = 0; ///< Seconds, over rounds (each round's median).
  double flops = 0;                       ///< Per second, at the median.
};

struct BenchReport {
  LaunchArgs args;
  ptx::LaunchInfo info;
  std::string device;
  unsigned sets = 0;   ///< Of rotating buffers.
  unsigned batch = 1;  ///< Launches in one timing.
  bool graphs = false; ///< Batches were graphs.
  unsigned rounds = 0;
  double turnSeconds = 0; ///< What was asked for.
  BenchEntry ours;
  std::vector<BenchEntry> also;         ///< The other rivals, in the order given.
  std::vector<BenchEntry> cublas;       ///< Finalists, best first; empty = not compared (see `remarks`).
  std::optional<double> firstHeuristic; ///< Seconds of cuBLASLt's own first choice.
  double hostSeconds = 0;               ///< That the host takes to enqueue one of our launches.
  unsigned algorithms = 0;              ///< That cuBLASLt offered, but for those found wrong.
  unsigned verified = 0;                ///< Results that were looked at, and right.
  std::string verification;             ///< How.
  std::vector<std::string> remarks;
  std::string remark() const; ///< All of them.
  /// Where the host's time went: inputs and their copies, loading the kernels, looking at their results,
  /// cuBLASLt and its algorithms with a look at theirs, warming up, the host cost, the rounds.
  struct {
    double inputs = 0, load = 0, verify = 0, cublas = 0, warmUp = 0, hostCost = 0, rounds = 0;
  } spent;
  /// Best cuBLASLt median / our median: above 1 we are faster.
  std::optional<double> ratio() const { return ratioOf(ours); }
  std::optional<double> ratioOf(const BenchEntry &entry) const;
  std::optional<double> ratioToFirst() const;
  /// The fastest of `ours` and `also`.
  const BenchEntry &fastest() const;
  /// Our median over that of the fastest: 1 = none of ours is faster. Nullopt where there is nobody else.
  std::optional<double> ofFastest() const;

  void printTable(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os, unsigned indent = 2) const;
};

/// Measures all rivals in turns. Where requirements of one do not hold, the failure is launch_requirement. Results are
/// looked at only if the request says so: a wrong one of ours is a failure (bench_wrong), an algorithm of cuBLASLt with
/// one takes no part, and the next fastest does.
Outcome<BenchReport> runBench(llvm::ArrayRef<Rival> rivals, const BenchRequest &request,
                              std::shared_ptr<const Device> device);

/// Number of buffer sets of `bytes` each: at least 3, and together at least 256 MiB and twice the L2 cache.
unsigned rotatingSets(uint64_t bytes, uint64_t l2Bytes);
double medianOf(std::vector<double> values);

} // namespace gemmc::run
