#include "gemmc/Tune/Tune.h"
#include "gemmc/Driver/Compiler.h"
#include "gemmc/Run/Arena.h"
#include "gemmc/Run/Assemble.h"
#include "gemmc/Run/Stopwatch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

namespace gemmc::tune {
namespace {
/// How a heat goes: `rounds`, behind each of which all leave that are slower than the best by more than their slack.
struct Heat {
  unsigned rounds, perRound;
  double slackFirst, slackLast; ///< Of the first and of the last round; in between it falls evenly.
  double slack(unsigned round) const {
    return slackFirst + (slackLast - slackFirst) * double(round) / double(std::max(1u, rounds - 1));
  }
};
constexpr Heat tiles{5, 3, 0.15, 0.03}, variations{9, 3, 0.06, 0.01};
constexpr unsigned varied = 3;    ///< Tiles whose variations race.
constexpr unsigned finalists = 6; ///< Beside the planner's own choice.

/// One kernel in the race.
struct Entrant {
  std::string choice;
  run::Code code;
  std::vector<double> rounds;
  double median() const { return run::medianOf(rounds); }
  std::string name() const { return choice.empty() ? "auto" : choice; }
};

class Tuner {
public:
  Tuner(const Spec &spec, const TuneRequest &request, std::shared_ptr<const Device> device)
      : spec(spec), request(request), device(std::move(device)) {}
  Outcome<TuneReport> go();

private:
  void say(const std::string &text) const {
    double fastest = 0;
    for (unsigned index : racing)
      if (double median = entrants[index].median(); median > 0 && (fastest == 0 || median < fastest))
        fastest = median;
    if (request.progress)
      request.progress(text, fastest);
  }
  bool stopped() const { return request.stopped && request.stopped(); }
  void compile(llvm::ArrayRef<std::string> choices);
  MaybeFailure admit();
  MaybeFailure settle();
  MaybeFailure race(const Heat &heat);
  std::vector<std::string> variationsOf(llvm::StringRef choice) const;
  std::vector<std::string> walksOf(llvm::StringRef choice) const;
  MaybeFailure final(TuneReport &report);
  std::vector<unsigned> best(unsigned count) const;

  const Spec &spec;
  const TuneRequest &request;
  std::shared_ptr<const Device> device;
  std::unique_ptr<run::Arena> arena;
  std::vector<Entrant> waiting;  ///< Compiled, not admitted yet.
  std::vector<Entrant> entrants; ///< Numbered as in the arena.
  std::vector<unsigned> racing;
  llvm::StringSet<> known;
  unsigned refused = 0;
};

/// Compiles what has not been tried; a choice that does not combine is no error.
void Tuner::compile(llvm::ArrayRef<std::string> choices) {
  for (const std::string &choice : choices) {
    if (!known.insert(choice).second)
      continue;
    if (auto compiled = compileChoice(spec, choice))
      waiting.push_back({choice, {std::move(compiled->ptx), std::move(compiled->launch)}, {}});
  }
}

MaybeFailure Tuner::admit() {
  std::vector<const run::Code *> codes;
  for (const Entrant &entrant : waiting)
    codes.push_back(&entrant.code);
  std::vector<run::Image> images = run::assembleAll(codes, device->architecture());
  for (unsigned i = 0; i < waiting.size(); ++i) {
    if (stopped())
      return Failure::make(Diag::measuring_stopped);
    const run::Code &code = waiting[i].code;
    auto module = GpuModule::load(device, images[i].text(), code.info, targetOf(code.ptx));
    MaybeFailure failed = module ? arena->admit(waiting[i].name(), *module) : MaybeFailure(module.failure());
    if (failed && (failed->contextDead || entrants.empty()))
      return failed;
    if (failed) {
      ++refused;
      continue;
    }
    racing.push_back(entrants.size());
    entrants.push_back(std::move(waiting[i]));
    if (auto tooSlow = arena->warmUp(entrants.size() - 1, request.warmUpSeconds))
      return tooSlow;
  }
  waiting.clear();
  return arena->prepare({.seconds = request.turnSeconds});
}

/// Keeps the device busy with those that will race, in brief turns, until its clock is theirs.
MaybeFailure Tuner::settle() {
  const run::Turn brief{.timings = 1};
  say(llvm::formatv("warming up: {0} kernels", racing.size()));
  run::Stopwatch watch;
  for (double busy = 0; busy < request.settleSeconds; busy += watch.lap())
    if (auto played = arena->playRound(racing, brief, request.stopped); !played)
      return played.failure();
  return std::nullopt;
}

MaybeFailure Tuner::race(const Heat &heat) {
  const run::Turn turn{.seconds = request.turnSeconds, .timings = heat.perRound};
  if (auto failed = settle())
    return failed;
  for (unsigned round = 0; round < heat.rounds; ++round) {
    say(llvm::formatv("round {0} of {1}: {2} kernels", round + 1, heat.rounds, racing.size()));
    auto medians = arena->playRound(racing, turn, request.stopped);
    if (!medians)
      return medians.failure();
    for (unsigned i = 0; i < racing.size(); ++i)
      entrants[racing[i]].rounds.push_back((*medians)[i]);
    double fastest = std::numeric_limits<double>::infinity();
    for (unsigned index : racing)
      fastest = std::min(fastest, entrants[index].median());
    llvm::erase_if(racing,
                   [&](unsigned index) { return entrants[index].median() > fastest * (1 + heat.slack(round)); });
  }
  return std::nullopt;
}

std::vector<unsigned> Tuner::best(unsigned count) const {
  std::vector<unsigned> order = racing;
  llvm::stable_sort(order, [&](unsigned x, unsigned y) { return entrants[x].median() < entrants[y].median(); });
  order.resize(std::min<size_t>(order.size(), count));
  return order;
}

/// Other rasters of a tile, and other clusters where the choice names none.
std::vector<std::string> Tuner::variationsOf(llvm::StringRef choice) const {
  std::vector<std::string> out;
  const bool hasCluster = spec.cluster.given || choice.contains("tile.cluster");
  for (const char *cluster : {"", " tile.cluster=[2,1,1]", " tile.cluster=[1,2,1]"})
    for (const char *group : {"", " raster.group=4", " raster.group=8", " raster.group=32"}) {
      bool givenGroup = *group && spec.rasterGroup.given;
      if (!(*cluster && hasCluster) && !givenGroup)
        out.push_back((choice + cluster + group).str());
    }
  return out;
}

/// Other ways for the leader's CTAs to begin and to end, to wait, to store, and to come by their tiles.
std::vector<std::string> Tuner::walksOf(llvm::StringRef choice) const {
  std::vector<std::string> out;
  if (!spec.scheduler.given) {
    Diags scratch;
    Spec leader = spec;
    const std::optional<Plan> plan = applyChoice(leader, choice, scratch) ? makePlan(leader, scratch) : std::nullopt;
    const bool counter = plan && *plan->spec.scheduler == Scheduler::dynamic;
    out.push_back((choice + (counter ? " raster.scheduler=static" : " raster.scheduler=dynamic")).str());
  }
  if (!spec.rasterOrder.given)
    out.push_back((choice + " raster.order=hilbert").str());
  if (!spec.dependent.given)
    out.push_back((choice + " launch.dependent=off").str());
  if (!spec.trigger.given)
    for (const char *trigger : {" launch.trigger=start", " launch.trigger=sums", " launch.trigger=end"})
      out.push_back((choice + (spec.dependent.given ? "" : " launch.dependent=on") + trigger).str());
  if (!spec.inFlight.given)
    for (const char *inFlight : {" pipeline.in_flight=1", " pipeline.in_flight=2", " pipeline.in_flight=3"})
      out.push_back((choice + inFlight).str());
  if (!spec.storeOverlap.given)
    for (const char *overlap : {" epilogue.overlap=0", " epilogue.overlap=1", " epilogue.overlap=2"})
      out.push_back((choice + overlap).str());
  if (!spec.storeBuffers.given)
    for (const char *buffers : {" epilogue.buffers=1", " epilogue.buffers=2"})
      out.push_back((choice + buffers).str());
  return out;
}

/// The winners and the planner's own choice, against cuBLASLt.
MaybeFailure Tuner::final(TuneReport &report) {
  std::vector<unsigned> taking = best(finalists);
  if (!llvm::is_contained(taking, 0u))
    taking.push_back(0);
  std::vector<run::Rival> rivals;
  for (unsigned index : taking)
    rivals.push_back({entrants[index].name(), entrants[index].code});
  run::BenchRequest bench;
  bench.problem = request.problem;
  bench.versusCublas = request.versusCublas;
  bench.rounds = request.rounds;
  bench.turn.seconds = request.turnSeconds;
  bench.warmUpSeconds = request.finalSeconds;
  bench.cublasLibrary = request.cublasLibrary;
  bench.stopped = request.stopped;
  arena.reset(); // its buffers make room
  say(llvm::formatv("final: {0} kernels", rivals.size()));
  auto measured = run::runBench(rivals, bench, device);
  if (!measured)
    return measured.failure();
  report.final = std::move(*measured);
  std::vector<run::BenchEntry> ours{report.final.ours};
  llvm::append_range(ours, report.final.also);
  llvm::stable_sort(ours, [](const auto &x, const auto &y) { return x.median < y.median; });
  report.final.ours = ours.front();
  report.winner = report.final.ours.name == "auto" ? "" : report.final.ours.name;
  report.final.also.assign(ours.begin() + 1, ours.end());
  return std::nullopt;
}

Outcome<TuneReport> Tuner::go() {
  Diags scratch;
  auto ranking = alternatives(spec, request.top, scratch);
  std::vector<std::string> choices{""};
  for (Alternative &alternative : ranking)
    choices.push_back(std::move(alternative.choice));
  say(llvm::formatv("compiling {0} kernels", choices.size()));
  compile(choices);
  assert(!waiting.empty() && "the spec itself compiles: the caller has tried");
  auto opened = run::Arena::open(waiting.front().code.info, request.problem, device);
  if (!opened)
    return opened.failure();
  arena = std::move(*opened);
  TuneReport report;
  report.args = arena->args();
  report.info = waiting.front().code.info;
  report.device = device->name;
  if (auto failed = admit())
    return *failed;
  if (auto failed = race(tiles))
    return *failed;
  for (unsigned index : best(varied))
    compile(variationsOf(entrants[index].choice));
  compile(walksOf(entrants[best(1).front()].choice));
  say(llvm::formatv("compiled {0} variations", waiting.size()));
  if (auto failed = admit())
    return *failed;
  if (auto failed = race(variations))
    return *failed;
  std::vector<unsigned> winners = best(finalists);
  if (auto failed = final(report))
    return *failed;
  for (unsigned i = 0; i < entrants.size(); ++i)
    report.entries.push_back({entrants[i].choice, entrants[i].median(), unsigned(entrants[i].rounds.size()),
                              llvm::is_contained(winners, i)});
  llvm::stable_sort(report.entries, [](const TuneEntry &x, const TuneEntry &y) {
    return std::pair(!x.final, x.median) < std::pair(!y.final, y.median);
  });
  report.refused = refused;
  return report;
}
} // namespace

Outcome<TuneReport> tune(const Spec &spec, const TuneRequest &request, std::shared_ptr<const Device> device) {
  return Tuner(spec, request, std::move(device)).go();
}

} // namespace gemmc::tune
