#include "Check.h"
#include "CheckClusters.h"
#include "gemmc/Emu/Timeline.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>

using namespace llvm;

namespace gemmc::emu {
namespace {
/// Whether what the instruction does, or leaves undone, is what a search for races is about.
bool isWatched(const ptx::Inst &inst) {
  using ptx::Effect, ptx::Op;
  if (llvm::is_contained({Op::Prefetch, Op::PrefetchMap, Op::Nanosleep, Op::Elect, Op::Call}, inst.op))
    return false;
  const Effect effect = ptx::rowOf(inst.op).effect;
  return effect == Effect::AsyncCopy || effect == Effect::Tensor || effect == Effect::Order;
}

/// Watched instructions that were never executed; a function that is called in several places counts once.
std::map<uint32_t, std::string> idleLines(const Program &program, llvm::ArrayRef<uint8_t> executed) {
  std::map<uint32_t, std::string> idle;
  for (size_t pc = 0; pc < executed.size(); ++pc)
    if (const ptx::Inst *inst = program.code[pc].inst; inst && inst->line && !executed[pc] && isWatched(*inst))
      idle.emplace(inst->line, inst->mnemonic());
  for (size_t pc = 0; pc < executed.size(); ++pc)
    if (executed[pc] && program.code[pc].inst)
      idle.erase(program.code[pc].inst->line);
  return idle;
}

constexpr size_t maxFindings = 100;

class DecodedKernel final : public Kernel {
public:
  explicit DecodedKernel(std::unique_ptr<Program> made) : program(std::move(made)), moduleBytes(program->moduleBytes) {}
  Result launch(const LaunchParams &params, Memory &memory, const Options &options) const override;

private:
  std::unique_ptr<Program> program;
  mutable std::vector<std::byte> moduleBytes; ///< Variables keep their values from launch to launch, as on the device.
};

/// Why a launch is refused before it begins; empty when it is fine.
std::string refusal(const Program &program, const LaunchParams &params) {
  const ptx::Function &function = program.function;
  uint64_t threads = uint64_t(params.block[0]) * params.block[1] * params.block[2];
  uint64_t ctas = uint64_t(params.cluster[0]) * params.cluster[1] * params.cluster[2];
  constexpr uint32_t maxShared = 227 * 1024;
  if (!threads || threads > 1024)
    return formatv("a block of {0} threads: 1 to 1024 are possible", threads);
  if (!ctas || ctas > 16)
    return formatv("a cluster of {0} CTAs: 1 to 16 are possible", ctas);
  for (unsigned i = 0; i < 3; ++i) {
    if (!params.cluster[i] || params.grid[i] % params.cluster[i])
      return formatv("the grid's extent {0} is no multiple of the cluster's, {1}", params.grid[i], params.cluster[i]);
    if (function.reqntid[0] && params.block[i] != std::max(1u, function.reqntid[i]))
      return formatv("the kernel demands a block of {0}x{1}x{2} threads and got {3}x{4}x{5}", function.reqntid[0],
                     std::max(1u, function.reqntid[1]), std::max(1u, function.reqntid[2]), params.block[0],
                     params.block[1], params.block[2]);
    if (function.reqnctapercluster[0] && params.cluster[i] != std::max(1u, function.reqnctapercluster[i]))
      return formatv("the kernel demands another cluster shape than {0}x{1}x{2}", params.cluster[0], params.cluster[1],
                     params.cluster[2]);
  }
  if (function.maxclusterrank && ctas > function.maxclusterrank)
    return formatv("a cluster of {0} CTAs: the kernel was made for at most {1}", ctas, function.maxclusterrank);
  uint64_t most = function.maxntid[0] ? uint64_t(function.maxntid[0]) * std::max(1u, function.maxntid[1]) *
                                            std::max(1u, function.maxntid[2])
                                      : 1024;
  if (threads > most)
    return formatv("a block of {0} threads: the kernel was made for at most {1}", threads, most);
  uint64_t shared = std::max<uint64_t>(program.staticShared, uint64_t(program.dynamicOffset) + params.dynamicShared);
  if (shared > maxShared)
    return formatv("{0} bytes of shared memory: at most {1} are possible", shared, maxShared);
  if (params.params.size() < program.paramBytes)
    return formatv("{0} bytes of parameters: the kernel takes {1}", params.params.size(), program.paramBytes);
  return "";
}

/// Of a grid that meets as a whole; empty when it can. An upper bound: registers are not counted.
std::string tooLargeToMeet(const Program &program, const LaunchParams &params) {
  constexpr uint64_t numSms = 132, threadsOfSm = 2048, ctasOfSm = 32, sharedOfSm = 228 * 1024, reserved = 1024; // H200
  const uint64_t threads = uint64_t(params.block[0]) * params.block[1] * params.block[2];
  const uint64_t shared =
      std::max<uint64_t>(program.staticShared, uint64_t(program.dynamicOffset) + params.dynamicShared);
  const uint64_t ofSm =
      std::min({ctasOfSm, threadsOfSm / ((threads + 31) / 32 * 32), sharedOfSm / (shared + reserved)});
  const uint64_t ctas = uint64_t(params.grid[0]) * params.grid[1] * params.grid[2];
  if (ctas <= numSms * ofSm)
    return "";
  return formatv(
      "a grid of {0} CTAs that meets as a whole (the kernel reads %envreg1 or %envreg2, as grid.sync() does): "
      "at most {1} can run at once, {2} on each of an H200's {3} SMs, and a cooperative launch of more fails",
      ctas, numSms * ofSm, ofSm, numSms);
}

/// What the headers of cooperative groups make of it: the size, which they do not read, and the barrier's word.
constexpr uint64_t gridWorkspaceBytes = 8;

/// Clusters run side by side; their findings come as if they had run one after the other.
void sortByCluster(std::vector<Finding> &findings, const LaunchParams &params) {
  auto clusterOf = [&](const Finding &finding) {
    return std::array{finding.cta[2] / params.cluster[2], finding.cta[1] / params.cluster[1],
                      finding.cta[0] / params.cluster[0]};
  };
  stable_sort(findings, [&](const Finding &a, const Finding &b) { return clusterOf(a) < clusterOf(b); });
}

/// The order in which clusters begin: hardware promises none.
class ClusterOrder {
public:
  ClusterOrder(const CheckOptions &check, uint64_t count) : count(count) {
    if (!check.enabled || count < 2)
      return;
    if (check.schedule == ScheduleKind::reversed)
      first = stride = count - 1;
    if (check.schedule == ScheduleKind::random) {
      first = check.seed % count;
      for (stride = 1 + check.seed * 7919 % (count - 1); std::gcd(stride, count) != 1;)
        --stride;
    }
  }
  uint64_t operator[](uint64_t i) const { return (first + i * stride) % count; }

private:
  uint64_t count, first = 0, stride = 1;
};

/// Runs the clusters `chosen` (all when empty) on `threads` host threads. A thread goes on with the next one when a
/// cluster spins, and comes back to it.
void runAll(Launch &launch, const std::vector<uint64_t> &chosen, uint64_t total, unsigned threads) {
  uint64_t count = chosen.empty() ? total : chosen.size();
  const ClusterOrder order(launch.options.check, count);
  const uint64_t maxQuiet = launch.options.maxQuiet / (launch.options.check.enabled ? 4 : 1);
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    std::deque<std::unique_ptr<Cluster>> spinning;
    uint64_t quiet = 0, seen = launch.changes;
    bool met = false; // at barriers, while it was quiet
    while (!launch.stop) {
      std::unique_ptr<Cluster> cluster;
      if (uint64_t i = next.load() < count ? next++ : count; i < count) {
        cluster = launch.begin(chosen.empty() ? order[i] : chosen[order[i]]);
      } else if (!spinning.empty()) {
        cluster = std::move(spinning.front());
        spinning.pop_front();
      } else {
        return;
      }
      const uint64_t effects = cluster->effects(), meetings = cluster->meetings, work = cluster->work();
      const bool ended = cluster->run();
      if (ended || cluster->effects() != effects)
        ++launch.changes;
      const bool isQuiet = launch.changes == seen;
      quiet = isQuiet ? quiet + cluster->work() - work : 0;
      met = isQuiet && (met || cluster->meetings != meetings);
      seen = launch.changes;
      // Votes at barriers may be all that long work hands on: it has as long as one that writes.
      const uint64_t most = met ? std::max(maxQuiet, launch.options.stepLimit()) : maxQuiet;
      if (ended) {
        launch.end(*cluster);
      } else if (quiet >= most / (launch.mistakes ? 32 : 1)) { // see Cluster::endsForMistakes
        cluster->reportQuiet(quiet);
        launch.end(*cluster);
      } else {
        spinning.push_back(std::move(cluster));
      }
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::min<uint64_t>(threads, count); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

Result DecodedKernel::launch(const LaunchParams &params, Memory &memory, const Options &options) const {
  Launch launch(*program, params, memory, options);
  launch.module = &moduleBytes;
  auto refuse = [&](const std::string &why, Verdict verdict = Verdict::error) {
    Finding finding;
    finding.verdict = verdict;
    finding.code = "launch";
    finding.message = why;
    launch.report(std::move(finding));
    return std::move(launch.result);
  };
  if (std::string why = refusal(*program, params); !why.empty())
    return refuse(why);
  for (unsigned i = 0; i < 3; ++i)
    launch.numClusters[i] = params.grid[i] / params.cluster[i];
  auto [x, y, z] = launch.numClusters;
  uint64_t total = uint64_t(x) * y * z;
  for (uint64_t index : options.clusters)
    if (index >= total)
      return refuse(formatv("cluster {0} is wanted; the grid has {1}", index, total));
  const bool meets = isCooperative(*program);
  if (std::string why = meets ? tooLargeToMeet(*program, params) : ""; !why.empty())
    return refuse(why);
  if (meets && !options.clusters.empty() && options.clusters.size() < total)
    return refuse("a sample of the grid cannot meet as a whole (the kernel reads %envreg1 or %envreg2, as grid.sync() "
                  "does): run all CTAs, without --ctas, of a smaller grid",
                  Verdict::incomplete);
  if (meets)
    launch.gridWorkspace = memory.allocate(gridWorkspaceBytes);
  unsigned threads = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  runAll(launch, options.clusters, total, threads);
  if (meets)
    memory.free(launch.gridWorkspace);
  sortByCluster(launch.result.findings, params);
  launch.result.idle = idleLines(*program, launch.executed);
  // What a kernel need not have waited for, the next one must wait for all the more.
  if (params.overlapped)
    for (auto [at, how] : memory.earlyTouches)
      launch.earlyTouches[at] |= how;
  memory.earlyTouches = std::move(launch.earlyTouches);
  return std::move(launch.result);
}
} // namespace

StringRef nameOf(Verdict verdict) {
  constexpr StringRef names[] = {"clean", "error", "incomplete", "review"};
  return names[static_cast<unsigned>(verdict)];
}
Verdict worse(Verdict a, Verdict b) {
  auto rank = [](Verdict v) {
    return v == Verdict::clean ? 0 : v == Verdict::review ? 1 : v == Verdict::error ? 3 : 2;
  };
  return rank(a) >= rank(b) ? a : b;
}
StringRef nameOf(ScheduleKind kind) {
  constexpr StringRef names[] = {"lazy", "eager", "reversed", "random"};
  return names[static_cast<unsigned>(kind)];
}

Launch::Launch(const Program &program, const LaunchParams &params, Memory &memory, const Options &options)
    : program(program), params(params), memory(memory), options(options) {
  bool alone = params.grid == params.cluster || options.clusters.size() == 1;
  if (!options.check.enabled)
    return;
  check = std::make_shared<LaunchCheck>(granuleBits(program), alone);
  if (llvm::any_of(program.code, [](const Code &code) { return code.inst && isNonCoherent(*code.inst); }))
    readOnly = std::make_shared<ReadOnlyCheck>(granuleBits(program));
}

void Launch::report(Finding finding) {
  std::lock_guard lock(mutex);
  result.verdict = worse(result.verdict, finding.verdict);
  // Nobody reads hundreds of them, but all clusters run to their end while none is a mistake: what they compute counts.
  const bool fatal = finding.verdict == Verdict::error || finding.verdict == Verdict::incomplete;
  if (fatal || result.findings.size() < maxFindings)
    result.findings.push_back(std::move(finding));
  if (fatal && ++mistakes == maxFindings)
    stop = true;
}

std::unique_ptr<Cluster> Launch::begin(uint64_t index) {
  auto x = numClusters[0], y = numClusters[1];
  auto cluster = std::make_unique<Cluster>(*this, std::array{static_cast<uint32_t>(index % x),
                                                             static_cast<uint32_t>(index / x % y),
                                                             static_cast<uint32_t>(index / x / y)});
  if (options.timeline && index == (options.clusters.empty() ? 0 : options.clusters.front())) {
    cluster->timeline = options.timeline;
    cluster->timeline->start(*cluster);
  }
  return cluster;
}

void Launch::end(Cluster &cluster) {
  if (cluster.timeline)
    cluster.timeline->finish(cluster);
  std::lock_guard lock(mutex);
  cluster.stats.warpInstructions = cluster.steps;
  result.stats += cluster.stats;
  if (cluster.check) {
    const std::vector<uint8_t> &here = cluster.check->whatRan();
    executed.resize(here.size());
    for (size_t pc = 0; pc < here.size(); ++pc)
      executed[pc] |= here[pc];
  }
}

std::shared_ptr<const Kernel> Kernel::load(const ptx::Module &module, StringRef entry) {
  std::unique_ptr<Program> program = decode(module, entry);
  return program ? std::make_shared<DecodedKernel>(std::move(program)) : nullptr;
}

} // namespace gemmc::emu
