// gemmc bench: a kernel's speed on the GPU, or that of a suite of kernels, beside the best of cuBLASLt.
#include "Problem.h"
#include "Ranged.h"
#include "Stop.h"
#include "TimeLimit.h"
#include "gemmc/Plan/Typical.h"
#include "gemmc/Run/Stopwatch.h"
#include "gemmc/Run/SuiteReport.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool::bench_cpp {
namespace {
enum class Versus { cublaslt, none };

cl::SubCommand bench("bench", "Measure a kernel on the GPU, in turns with the best algorithm of cuBLASLt");
KernelInput kernel(bench);
ProblemInput problem(bench, run::InputKind::normal, /*mayBeInPlace=*/false);
TimeLimit timeLimit(bench);
cl::opt<Versus> versus("vs", cl::desc("Rival (default: cublaslt):"), cl::init(Versus::cublaslt), cl::sub(bench),
                       cl::values(clEnumValN(Versus::cublaslt, "cublaslt", "the best of all its algorithms"),
                                  clEnumValN(Versus::none, "none", "nobody")));
cl::list<std::string> also("also",
                           cl::desc("Another kernel for the same problem, measured in turns with the first: "
                                    "fields (and before them another file), separated by spaces, or a .ptx file"),
                           cl::value_desc("[file] path=value..."), cl::sub(bench));
Count<0, 1000> next("next",
                    cl::desc("Measure also the N best alternatives to the plan, which `gemmc explain --next N` lists "
                             "(not of a .ptx file; default: 0)"),
                    cl::value_desc("N"), cl::init(0), cl::sub(bench));
cl::opt<bool> verify("verify",
                     cl::desc("Check what each kernel, and each algorithm of cuBLASLt that takes part, computes"),
                     cl::sub(bench));
Count<1, 10000> rounds("rounds", cl::desc("Rounds of measuring (default: 11)"), cl::init(11), cl::sub(bench));
Seconds<60> warmUp("warm-up", cl::desc("Seconds that each kernel runs before it is measured (default: 0.3)"),
                   cl::init(0.3), cl::sub(bench));
Seconds<10> rest("rest",
                 cl::desc("Seconds of rest before each kernel's turn: a cool device (default: 0, sustained load)"),
                 cl::init(0), cl::sub(bench));
Seconds<10> turn("turn",
                 cl::desc("Seconds of each kernel's turn in a round, the second half timed (default: 0, a few "
                          "launches; 0.1: each at the clock that its own power leaves it)"),
                 cl::init(0), cl::sub(bench));
cl::list<std::string> only("only",
                           cl::desc("Of a suite: the problems with this text in their name or class (repeatable)"),
                           cl::value_desc("text"), cl::sub(bench));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(bench));
cl::opt<bool> asLines("lines", cl::desc("Of a suite: print each problem's JSON in one line as soon as it is measured"),
                      cl::sub(bench));

/// The kernel of the command line, those of `--also` and of `--next`; empty after a reported error.
std::vector<run::Rival> rivals(Diags &diags) {
  std::vector<run::Rival> out;
  if (auto code = kernel.compile(diags))
    out.push_back({also.empty() && !next ? "gemmc" : sys::path::stem(kernel.path()).str(), std::move(*code)});
  if (next && kernel.path().ends_with(".ptx"))
    diags.report(Diag::bench_no_alternatives, {}, kernel.path());
  for (const std::string &words : also)
    if (auto code = kernel.compileVariant(words, diags))
      out.push_back({words, std::move(*code)});
  if (diags.hasErrors())
    out.clear();
  else
    append_range(out, kernel.compileNext(next));
  return out;
}

/// One for all problems of a suite: it takes long to load. Without one, each report says why.
std::shared_ptr<const CublasLt> loadedCublas;

/// `spec`: of the kernel; null for PTX.
run::BenchRequest requestFor(const Spec *spec) {
  run::BenchRequest request;
  request.cublas = loadedCublas;
  request.problem = problem.get();
  request.problem.defaultSize = usualSize;
  if (spec)
    run::takeTypicalSizes(request.problem, *spec);
  request.versusCublas = versus == Versus::cublaslt;
  request.verify = verify;
  request.warmUpSeconds = warmUp;
  request.turn.rest = rest;
  request.turn.seconds = turn;
  request.rounds = rounds;
  request.stopped = stopWanted;
  return request;
}

using FallbackOf = function_ref<std::optional<run::Code>(Fallback)>;

/// Measures `kernels`; a single one whose requirements do not hold is replaced by the first fallback whose do.
Outcome<run::BenchReport> measure(std::vector<run::Rival> kernels, const Spec *spec, FallbackOf fallbackOf,
                                  const std::shared_ptr<const Device> &device) {
  Progress progress("measuring on " + device->name);
  const run::BenchRequest request = requestFor(spec);
  auto report = run::runBench(kernels, request, device);
  if (report || report.failure().id != Diag::launch_requirement)
    return report;
  if (any_of(drop_begin(kernels), [](const run::Rival &rival) { return !rival.optional; }))
    return report;
  std::string why = report.failure().str();
  for (Fallback kind : fallbacks)
    if (!report && report.failure().id == Diag::launch_requirement)
      if (auto fallback = fallbackOf(kind))
        report = run::runBench(run::Rival{"gemmc", std::move(*fallback)}, request, device);
  if (report)
    report->remarks.push_back("the fallback kernel was measured: " + why);
  return report;
}

/// One problem of a suite.
run::SuiteEntry entryOf(const SuiteProblem &problem, const std::shared_ptr<const Device> &device, MaybeFailure &fatal) {
  run::SuiteEntry entry{*problem.spec.name, problem.group, {}, "", 0};
  Diags diags;
  auto fallback = [&](Fallback kind) -> std::optional<run::Code> {
    auto compiled = compileFallback(problem.spec, kind, diags);
    return compiled ? std::optional(run::Code{std::move(compiled->ptx), std::move(compiled->launch)}) : std::nullopt;
  };
  auto code = kernel.compileChosen(problem.spec, diags);
  if (!code) {
    entry.failure = diags.all().front().message;
    return entry;
  }
  std::vector<run::Rival> kernels{{"gemmc", std::move(*code)}};
  append_range(kernels, kernel.compileNext(problem.spec, next));
  auto report = measure(std::move(kernels), &problem.spec, fallback, device);
  if (report) {
    entry.report = std::move(*report);
    return entry;
  }
  entry.failure = report.failure().str();
  if (report.failure().contextDead || report.failure().id == Diag::measuring_stopped)
    fatal = report.failure();
  return entry;
}

int runSuite(std::vector<SuiteProblem> problems, Diags &diags) {
  auto device = timeLimit.openDevice();
  if (!device)
    return finishWith(device.failure(), diags);
  kernel.runsOn((*device)->name);
  stopOnSignals();
  if (versus == Versus::cublaslt)
    if (auto loaded = CublasLt::load(*device))
      loadedCublas = *loaded;
  run::SuiteReport report;
  MaybeFailure fatal;
  bool table = !asJson && !asLines;
  if (table)
    run::SuiteReport::printHead(outs());
  for (const SuiteProblem &problem : problems) {
    run::Stopwatch watch;
    run::SuiteEntry entry = entryOf(problem, *device, fatal);
    entry.seconds = watch.lap();
    if (fatal && fatal->id == Diag::measuring_stopped)
      break;
    if (asLines)
      run::SuiteReport::printJsonLine(outs(), entry);
    else if (table)
      run::SuiteReport::printLine(outs(), entry);
    outs().flush();
    report.entries.push_back(std::move(entry));
    if (fatal) { // the device is of no more use
      fatal->hint("this was `" + *problem.spec.name + "` of the suite");
      break;
    }
  }
  loadedCublas.reset(); // before the device goes
  if (asJson && !asLines)
    report.printJson(outs());
  else if (table)
    report.printMeans(outs());
  bool failed = any_of(report.entries, [](const run::SuiteEntry &entry) { return !entry.failure.empty(); });
  return fatal ? finishWith(*fatal, diags) : finish(diags, failed ? No : Ok);
}

int runOne(Diags &diags) {
  auto device = timeLimit.openDevice();
  if (device)
    kernel.runsOn((*device)->name);
  std::vector<run::Rival> kernels = rivals(diags);
  if (kernels.empty())
    return finish(diags);
  const Spec *spec = kernel.planned();
  if (spec)
    warnOfOtherSizes(*spec, problem.get(), diags);
  if (!device)
    return finishWith(device.failure(), diags);
  auto report =
      measure(std::move(kernels), spec, [&](Fallback kind) { return kernel.compileFallback(kind, diags); }, *device);
  if (!report)
    return finishWith(report.failure(), diags);
  if (asJson)
    report->printJson(outs());
  else
    report->printTable(outs());
  return finish(diags);
}

/// Reports options that mean nothing for one spec, or for a suite.
bool allUsed(bool suite, Diags &diags) {
  kernel.allUsed("", diags);
  if (is_contained(also, ""))
    diags.report(Diag::option_useless, {}, "--also=", "it names neither fields nor a file");
  if (suite && !also.empty())
    diags.report(Diag::bench_also_suite, {});
  if (!suite)
    for (const auto &[option, given] : {std::pair("--only", !only.empty()), std::pair("--lines", asLines.getValue())})
      if (given)
        diags.report(Diag::option_useless, {}, option, "it is for suites, which have a key `problems`");
  return !diags.hasErrors();
}

int run() {
  Diags diags;
  if (!kernel.path().ends_with(".ptx")) {
    auto text = readFile(kernel.path(), diags);
    if (!text)
      return finish(diags);
    if (isSuite(*text)) {
      auto problems = readSuite(*text, overridesOf(kernel.specs().words(), diags), diags);
      allUsed(/*suite=*/true, diags);
      if (problems && !only.empty())
        problems = onlyThose(std::move(*problems), only, diags);
      return problems && !diags.hasErrors() ? runSuite(std::move(*problems), diags) : finish(diags);
    }
  }
  return allUsed(/*suite=*/false, diags) ? runOne(diags) : finish(diags);
}
Command command(bench, run);
} // namespace
} // namespace gemmc::tool::bench_cpp
