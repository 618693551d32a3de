#include "gemmc/Run/Bench.h"
#include "gemmc/Run/Arena.h"
#include "gemmc/Run/Assemble.h"
#include "gemmc/Run/Stopwatch.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace gemmc::run {
namespace {
BenchEntry entryOf(std::string name, const std::vector<double> &rounds, double flops) {
  BenchEntry entry{std::move(name)};
  entry.median = medianOf(rounds);
  entry.best = *std::min_element(rounds.begin(), rounds.end());
  entry.worst = *std::max_element(rounds.begin(), rounds.end());
  entry.flops = entry.median > 0 ? flops / entry.median : 0;
  return entry;
}

/// Sorts what the rounds gave into ours and theirs.
void conclude(const Arena &arena, const std::vector<std::vector<double>> &rounds, BenchReport &report) {
  const LaunchArgs &args = arena.args();
  double flops = 2.0 * double(args.batch) * double(args.m) * double(args.n) * double(args.k);
  for (unsigned i = 0; i < arena.size(); ++i) {
    BenchEntry entry = entryOf(arena.name(i), rounds[i], flops);
    if (arena.algorithmOf(i) == 0u)
      report.firstHeuristic = entry.median;
    if (i == 0)
      report.ours = entry;
    else
      (arena.algorithmOf(i) ? report.cublas : report.also).push_back(entry);
  }
  llvm::sort(report.cublas, [](const BenchEntry &x, const BenchEntry &y) { return x.median < y.median; });
}

/// Whether they multiply matrices of the same types and layouts: all work on the first one's.
bool sameProblem(const ptx::LaunchInfo &one, const ptx::LaunchInfo &other) {
  auto same = [](const ptx::OperandInfo &x, const ptx::OperandInfo &y) {
    return x.type == y.type && x.order == y.order;
  };
  return same(one.a, other.a) && same(one.b, other.b) && same(one.c, other.c) && same(one.d, other.d);
}

/// `refused`: optional ones that do not run here.
MaybeFailure admitAll(Arena &arena, llvm::ArrayRef<Rival> rivals, std::shared_ptr<const Device> device,
                      unsigned &refused) {
  for (const Rival &rival : rivals)
    if (!sameProblem(rivals.front().code.info, rival.code.info))
      return Failure::make(Diag::bench_other_problem, rival.name, rivals.front().name);
  std::vector<const Code *> codes;
  for (const Rival &rival : rivals)
    codes.push_back(&rival.code);
  std::vector<Image> images = assembleAll(codes, device->architecture());
  for (unsigned i = 0; i < rivals.size(); ++i) {
    const Code &code = rivals[i].code;
    auto module = GpuModule::load(device, images[i].text(), code.info, targetOf(code.ptx));
    auto failed = module ? arena.admit(rivals[i].name, *module) : MaybeFailure(module.failure());
    if (failed && (!rivals[i].optional || failed->contextDead))
      return failed;
    refused += failed.has_value();
  }
  return std::nullopt;
}

/// Looks at what contenders compute.
class Verifier {
public:
  Verifier(Arena &arena, const BenchRequest &request, BenchReport &report)
      : arena(arena), request(request), report(report), wanted(arena.reference()) {}

  /// All of ours that were admitted.
  MaybeFailure ours() {
    for (unsigned i = 0; i < arena.size(); ++i) {
      if (!arena.sumsAlike(i)) {
        report.remarks.push_back("`" + arena.name(i) + "` is not verified: it adds up otherwise than the first kernel");
        continue;
      }
      auto result = look(arena.contender(i));
      if (!result)
        return result.failure();
      if (!result->ok)
        return Failure::make(Diag::bench_wrong, arena.name(i), result->wrong())
            .hint("`gemmc check` looks for the reason on the emulator");
    }
    return std::nullopt;
  }
  /// One of cuBLASLt's: whether it is right. One that fails is not.
  Outcome<bool> algorithm(Contender &contender) {
    auto result = look(contender);
    if (!result && (result.failure().contextDead || result.failure().id == Diag::measuring_stopped))
      return result.failure();
    if (result && result->ok)
      return true;
    report.remarks.push_back(contender.name() +
                             " takes no part: " + (result ? result->wrong() : result.failure().str()));
    return false;
  }

private:
  Outcome<Verification> look(Contender &contender) {
    if (request.stopped && request.stopped())
      return Failure::make(Diag::measuring_stopped);
    auto result = arena.verify(contender, wanted);
    if (result && result->ok) {
      ++report.verified;
      report.verification = result->how;
    }
    return result;
  }
  Arena &arena;
  const BenchRequest &request;
  BenchReport &report;
  const Reference wanted;
};

MaybeFailure admitCublas(Arena &arena, const BenchRequest &request, std::shared_ptr<const Device> device,
                         Verifier *verifier) {
  auto library = request.cublas;
  if (!library) {
    auto loaded = CublasLt::load(device, request.cublasLibrary);
    if (!loaded)
      return loaded.failure();
    library = *loaded;
  }
  // Who needs least energy does not show in a brief race: in long turns nearly all take part.
  unsigned finalists = request.turn.seconds > 0 ? 2 * request.finalists : request.finalists;
  Arena::Judge judge;
  if (verifier)
    judge = [verifier](Contender &algorithm) { return verifier->algorithm(algorithm); };
  return arena.admitCublas(std::move(library), finalists, judge);
}

MaybeFailure play(Arena &arena, const BenchRequest &request, BenchReport &report) {
  Stopwatch watch;
  for (unsigned i = 0; i < arena.size(); ++i)
    if (auto failed = arena.warmUp(i, request.warmUpSeconds))
      return failed;
  if (auto failed = arena.prepare(request.turn))
    return failed;
  report.spent.warmUp = watch.lap();
  auto host = arena.hostCost(0);
  if (!host)
    return host.failure();
  report.hostSeconds = *host;
  report.spent.hostCost = watch.lap();
  auto everyone = llvm::to_vector(llvm::seq(0u, arena.size()));
  std::vector<std::vector<double>> rounds(arena.size());
  for (unsigned round = 0; round < request.rounds; ++round) {
    auto medians = arena.playRound(everyone, request.turn, request.stopped);
    if (!medians)
      return medians.failure();
    for (unsigned i = 0; i < arena.size(); ++i)
      rounds[i].push_back((*medians)[i]);
  }
  report.spent.rounds = watch.lap();
  conclude(arena, rounds, report);
  return std::nullopt;
}
} // namespace

std::string BenchReport::remark() const { return llvm::join(remarks, "; "); }

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  llvm::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> BenchReport::ratioOf(const BenchEntry &entry) const {
  if (cublas.empty() || entry.median <= 0)
    return std::nullopt;
  return cublas.front().median / entry.median;
}

std::optional<double> BenchReport::ratioToFirst() const {
  if (!firstHeuristic || ours.median <= 0)
    return std::nullopt;
  return *firstHeuristic / ours.median;
}

const BenchEntry &BenchReport::fastest() const {
  const BenchEntry *best = &ours;
  for (const BenchEntry &entry : also)
    if (entry.median < best->median)
      best = &entry;
  return *best;
}

std::optional<double> BenchReport::ofFastest() const {
  if (also.empty() || fastest().median <= 0)
    return std::nullopt;
  return ours.median / fastest().median;
}

Outcome<BenchReport> runBench(llvm::ArrayRef<Rival> rivals, const BenchRequest &request,
                              std::shared_ptr<const Device> device) {
  BenchReport report;
  report.info = rivals.front().code.info;
  report.device = device->name;
  report.rounds = request.rounds;
  report.turnSeconds = request.turn.seconds;
  Stopwatch watch;
  auto arena = Arena::open(report.info, request.problem, device);
  if (!arena)
    return arena.failure();
  report.args = (*arena)->args();
  report.sets = (*arena)->sets();
  report.spent.inputs = watch.lap();
  unsigned refused = 0;
  if (auto failed = admitAll(**arena, rivals, device, refused))
    return *failed;
  if (refused)
    report.remarks.push_back(llvm::formatv("{0} of {1} alternatives do not run here", refused,
                                           llvm::count_if(rivals, [](const Rival &rival) { return rival.optional; })));
  report.spent.load = watch.lap();
  std::optional<Verifier> verifier;
  if (request.verify) {
    verifier.emplace(**arena, request, report);
    if (auto failed = verifier->ours())
      return *failed;
  }
  report.spent.verify = watch.lap();
  if (request.versusCublas) {
    if (auto failed = admitCublas(**arena, request, device, verifier ? &*verifier : nullptr)) {
      if (failed->contextDead || failed->id == Diag::measuring_stopped)
        return *failed;
      report.remarks.push_back("not compared with cuBLASLt: " + failed->str());
    } else if (llvm::none_of(llvm::seq(0u, (*arena)->size()), [&](unsigned i) { return (*arena)->algorithmOf(i); })) {
      report.remarks.push_back("not compared with cuBLASLt: none of its algorithms takes part");
    }
  }
  report.algorithms = (*arena)->algorithms();
  report.spent.cublas = watch.lap();
  if (auto failed = play(**arena, request, report))
    return *failed;
  report.batch = (*arena)->batch();
  report.graphs = (*arena)->graphs();
  return report;
}

} // namespace gemmc::run
