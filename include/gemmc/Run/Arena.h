/// Where contenders meet: the buffers of one problem, several times over, and everyone who multiplies them there.
#pragma once
#include "gemmc/Run/Bench.h"
#include "gemmc/Run/Timing.h"
#include "gemmc/Run/Verify.h"
#include <random>

namespace gemmc::run {

/// A, B, C, D of one problem, several times over, so that no launch finds its operands in the L2 cache.
class BufferSets {
public:
  static Outcome<BufferSets> create(std::shared_ptr<const Device> device, const GemmProblem &problem, unsigned count,
                                    const DeviceStream &stream);
  /// The problem's arguments on set `index`.
  LaunchArgs args(const LaunchArgs &base, unsigned index) const;
  static uint64_t bytesOf(const GemmProblem &problem); ///< Of one set.

private:
  DeviceMemory memory;
  uint64_t stride = 0;
  std::array<uint64_t, 4> offsets{};
};

/// Contenders are counted in the order of their admission.
class Arena {
public:
  static Outcome<std::unique_ptr<Arena>> open(const ptx::LaunchInfo &info, const ProblemOptions &options,
                                              std::shared_ptr<const Device> device);
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// One of our kernels. Where its requirements do not hold, the failure is launch_requirement.
  MaybeFailure admit(std::string name, std::shared_ptr<const GpuModule> module);
  /// Whether an algorithm may take part.
  using Judge = std::function<Outcome<bool>(Contender &algorithm)>;
  /// The fastest `finalists` algorithms of cuBLASLt, each timed briefly, and its first choice. `judge` is asked about
  /// those that would take part or set the pace for others.
  MaybeFailure admitCublas(std::shared_ptr<const CublasLt> library, unsigned finalists, const Judge &judge = {});

  /// What D must be.
  Reference reference() const { return Reference(problem); }
  /// One launch on the first set, whose D is poison before, and that D beside `wanted`.
  Outcome<Verification> verify(Contender &contender, const Reference &wanted);
  Contender &contender(unsigned index) { return contenders[index]; }
  /// Whether it adds up as the reference has it: in that type, with promotion after as many products.
  bool sumsAlike(unsigned index) const { return alike[index]; }

  MaybeFailure warmUp(unsigned index, double seconds);
  /// Readies all that have been admitted for turns of that kind. One batch size for all: as many launches of the first
  /// contender as fill the measuring time.
  MaybeFailure prepare(const Turn &turn);
  /// Each of `members` takes its turn: the median of its timings, in seconds. The order is another one in each round:
  /// at the power limit the clock that a kernel finds is what its predecessor left.
  /// `stopped` is asked before each turn; true ends it with measuring_stopped.
  Outcome<std::vector<double>> playRound(llvm::ArrayRef<unsigned> members, const Turn &turn,
                                         const std::function<bool()> &stopped = {});

  /// Seconds that the host takes to enqueue one launch of a contender: the median of single ones, in a row.
  Outcome<double> hostCost(unsigned index);

  unsigned size() const { return contenders.size(); }
  const std::string &name(unsigned index) const { return contenders[index].name(); }
  /// The number that cuBLASLt's heuristic gave the contender's algorithm; nullopt: one of ours.
  std::optional<unsigned> algorithmOf(unsigned index) const { return algorithm[index]; }
  unsigned algorithms() const { return matmul ? matmul->algorithms() - refused : 0; } ///< All but those refused.
  const LaunchArgs &args() const { return problem.args; }
  unsigned sets() const { return setCount; }
  unsigned batch() const { return batchSize; }
  bool graphs() const { return useGraphs; }

private:
  Arena(std::shared_ptr<const Device> device, DeviceStream stream)
      : device(std::move(device)), stream(std::move(stream)) {}
  Contender contenderOf(unsigned algorithmIndex);
  Outcome<std::optional<double>> timeBriefly(unsigned algorithmIndex, double fastest);
  /// `own`: of one contender alone, who leaves in it what the next launch needs.
  Outcome<uint64_t> workspaceOf(uint64_t bytes, bool own);
  MaybeFailure chooseBatch(const Turn &turn);
  Outcome<double> playTurn(unsigned index, const Turn &turn);
  CublasProblem cublasProblem() const;

  std::shared_ptr<const Device> device;
  DeviceStream stream;
  ptx::LaunchInfo info;
  GemmProblem problem;
  std::optional<BufferSets> buffers;
  unsigned setCount = 0, batchSize = 0, prepared = 0;
  bool useGraphs = false;
  std::minstd_rand shuffler{std::random_device{}()}; ///< One order for all would favour a place in it.
  std::vector<DeviceMemory> workspaces;              ///< The last one is the largest; earlier contenders keep theirs.
  std::vector<DeviceMemory> ownWorkspaces;
  DeviceMemory cublasWorkspace;
  std::shared_ptr<const CublasLt> cublas;
  std::unique_ptr<CublasMatmul> matmul;
  std::vector<Contender> contenders;
  std::vector<std::optional<unsigned>> algorithm; ///< Of each contender.
  std::vector<bool> alike;                        ///< Of each kernel of ours.
  unsigned refused = 0;                           ///< Algorithms, by the judge.
};

} // namespace gemmc::run
