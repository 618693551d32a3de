// gemmc tune: the fastest plans of specs and suites, by measurement, into the tuning database.
#include "Problem.h"
#include "Ranged.h"
#include "Stop.h"
#include "TimeLimit.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Tune/Entries.h"
#include "gemmc/Tune/Session.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;

namespace gemmc::tool::tune_cpp {
namespace {
cl::SubCommand tuneCommand("tune", "Measure the planner's best alternatives on the GPU and keep which one is fastest");
cl::list<std::string> files(cl::Positional, cl::desc("<spec.yaml or suite.yaml>..."), cl::sub(tuneCommand));
cl::list<std::string> sets("set", cl::desc("Give one field of all specs a value, in place of the files'"),
                           cl::value_desc("path=value"), cl::sub(tuneCommand));
ProblemInput problem(tuneCommand, run::InputKind::normal, /*mayBeInPlace=*/false);
TimeLimit timeLimit(tuneCommand);
cl::opt<std::string> databaseFile("database",
                                  cl::desc("The tuning database (default: $GEMMC_TUNING or ~/.cache/gemmc/tuning.db)"),
                                  cl::value_desc("file"), cl::sub(tuneCommand));
cl::opt<bool> list("list", cl::desc("Print what the database has"), cl::sub(tuneCommand));
cl::opt<std::string> exportFile("export", cl::desc("Write what the database has as YAML (- = standard output)"),
                                cl::value_desc("file"), cl::sub(tuneCommand));
cl::list<std::string> imports("import", cl::desc("Take the entries of a YAML file into the database (repeatable)"),
                              cl::value_desc("file"), cl::sub(tuneCommand));
cl::opt<bool> again("again", cl::desc("Measure what is in the database, too"), cl::sub(tuneCommand));
cl::list<std::string> only("only",
                           cl::desc("Of suites: the problems with this text in their name or class (repeatable)"),
                           cl::value_desc("text"), cl::sub(tuneCommand));
Count<0, 100000> top("top", cl::desc("Tiles that take part, the planner's favourites (default: 32; 0 = all)"),
                     cl::init(32), cl::sub(tuneCommand));
Count<1, 10000> rounds("rounds", cl::desc("Rounds of the final (default: 11)"), cl::init(11), cl::sub(tuneCommand));
Seconds<10> turn("turn",
                 cl::desc("Seconds of each kernel's turn in a round, as `bench` has it (default: 0; 0.1: what is "
                          "fastest by itself at the power limit)"),
                 cl::init(0), cl::sub(tuneCommand));
Seconds<60> warmUp("warm-up",
                   cl::desc("Seconds of load before each heat, and that each kernel of the final runs before it is "
                            "measured (default: 0.7 and 0.3)"),
                   cl::init(0), cl::sub(tuneCommand));
cl::opt<bool> noCublas("no-cublaslt", cl::desc("No final against cuBLASLt"), cl::sub(tuneCommand));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(tuneCommand));

/// The file of the options; an empty text: none is wanted.
Outcome<std::string> databasePath() {
  return databaseFile.empty() ? tune::defaultDatabase() : Outcome<std::string>(databaseFile.getValue());
}

/// The comment at the head of a file that will be replaced, in whole lines. A device or a pipe, which may never end, is
/// not read.
std::string headBefore(StringRef file, Diags &diags) {
  if (file == "-" || !sys::fs::is_regular_file(file))
    return "";
  auto before = readFile(file, diags);
  std::string head = before ? tune::headComment(*before).str() : "";
  return head.empty() || head.back() == '\n' ? head : head + "\n";
}

MaybeFailure exportAll(tune::Database &database, Diags &diags) {
  auto rows = database.all();
  if (!rows)
    return rows.failure();
  std::string head = headBefore(exportFile, diags);
  if (!diags.hasErrors())
    writeFile(exportFile, head + tune::printEntries(*rows), diags);
  return std::nullopt;
}

MaybeFailure printAll(tune::Database &database) {
  if (auto damaged = database.check())
    return damaged;
  auto rows = database.all();
  if (!rows)
    return rows.failure();
  for (const tune::Tuned &row : *rows) {
    outs() << row.problem << "\n  " << row.str() << ", " << row.sizes << ", " << row.rounds << " rounds";
    if (row.kernels != tune::kernelVersion)
      outs() << "; of kernels " << row.kernels << ": not used";
    outs() << "\n  " << row.choice << "\n";
  }
  return std::nullopt;
}

/// What the files of `--import` have, all or, where one is wrong, none; read before a database is made for it.
std::vector<tune::Tuned> readImports(Diags &diags) {
  std::vector<tune::Tuned> all;
  for (const std::string &file : imports) {
    auto text = readFile(file, diags);
    if (auto entries = text ? tune::readEntries(*text, diags) : std::nullopt)
      append_range(all, *entries);
  }
  return all;
}

/// Specs that plan, by the names of their files or in suites.
std::vector<tune::Job> readJobs(Diags &diags) {
  std::vector<tune::Job> jobs;
  std::vector<Override> overrides = overridesOf(sets, diags);
  for (const std::string &file : files) {
    auto problems = readProblems(file, overrides, diags);
    if (problems && !only.empty())
      problems = onlyThose(std::move(*problems), only, diags);
    for (SuiteProblem &each : problems.value_or(std::vector<SuiteProblem>()))
      if (makePlan(each.spec, diags)) {
        warnOfOtherSizes(each.spec, problem.get(), diags);
        jobs.push_back({*each.spec.name, std::move(each.spec)});
      }
  }
  return jobs;
}

/// One line on a terminal, redrawn; elsewhere nothing between the results.
class Ticker {
public:
  explicit Ticker(size_t count) : count(count) {}
  void step(const std::string &what, double best) {
    if (!sys::Process::StandardErrIsDisplayed())
      return;
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    errs() << "\r\033[K" << "[" << done + 1 << " of " << count << "] " << what;
    if (best > 0)
      errs() << format(", best %.1f us", best * 1e6);
    errs() << format(", %.0f s", seconds);
  }
  void finished() {
    ++done;
    clear();
  }
  void clear() {
    if (sys::Process::StandardErrIsDisplayed())
      errs() << "\r\033[K";
  }

private:
  size_t count, done = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

tune::SessionRequest requestOf(Ticker &ticker) {
  tune::SessionRequest request;
  request.again = again;
  request.tune.problem = problem.get();
  request.tune.top = top;
  request.tune.rounds = rounds;
  request.tune.turnSeconds = turn;
  if (warmUp.getNumOccurrences())
    request.tune.settleSeconds = request.tune.finalSeconds = warmUp;
  request.tune.versusCublas = !noCublas;
  request.tune.stopped = stopWanted;
  request.tune.progress = [&ticker](const std::string &what, double best) { ticker.step(what, best); };
  return request;
}

/// The number of jobs that failed.
Outcome<unsigned> tuneJobs(ArrayRef<tune::Job> jobs, std::shared_ptr<const Device> device, tune::Database *database) {
  stopOnSignals();
  Ticker ticker(jobs.size());
  bool alone = jobs.size() == 1;
  std::string comma;
  if (asJson && !alone)
    outs() << "[";
  auto failures = tune::tuneAll(jobs, requestOf(ticker), device, database, [&](const tune::JobResult &result) {
    ticker.finished();
    if (asJson) {
      outs() << comma;
      result.printJson(outs());
      comma = ",";
    } else if (alone && result.report) {
      result.report->printTable(outs());
    } else {
      outs() << result.str() << "\n";
    }
    outs().flush();
  });
  ticker.clear();
  if (asJson && !alone)
    outs() << "]\n";
  return failures;
}

/// Reports options that mean nothing beside others, and files that would be lost.
bool allUsed(Diags &diags) {
  if (files.empty() && asJson)
    diags.report(Diag::option_useless, {}, "--json", "nothing is measured; `--export -` prints YAML");
  else if (asJson)
    for (const auto &[option, given] :
         {std::pair("--list", list.getValue()), std::pair("--export -", exportFile == "-")})
      if (given)
        diags.report(Diag::option_useless, {}, option, "with `--json` nothing but JSON goes to standard output");
  if (exportFile != "-" && any_of(files, [](StringRef file) { return sys::fs::equivalent(file, exportFile); }))
    diags.report(Diag::file_is_input, {}, exportFile.getValue());
  return !diags.hasErrors();
}

void sayTaken(size_t count, Diags &diags) {
  const std::string text = formatv("{0} {1} taken", count, count == 1 ? "entry" : "entries");
  if (asJson || exportFile == "-") // standard output is for these
    diags.report(Diag::runtime_hint, {}, text);
  else
    outs() << text << "\n";
}

int run() {
  Diags diags;
  bool manage = list || !exportFile.empty() || !imports.empty();
  if (files.empty() && !manage) {
    diags.report(Diag::tuning_nothing, {});
    return finish(diags);
  }
  if (!allUsed(diags))
    return finish(diags);
  std::vector<tune::Job> jobs = readJobs(diags);
  const std::vector<tune::Tuned> imported = readImports(diags);
  if (diags.hasErrors())
    return finish(diags);
  auto path = databasePath();
  if (!path)
    return finishWith(path.failure(), diags);
  if (path->empty() && manage)
    return finishWith(Failure::make(Diag::tuning_no_place), diags);
  if (!exportFile.empty() && sys::fs::equivalent(exportFile.getValue(), *path)) {
    diags.report(Diag::file_unwritable, {}, exportFile.getValue(), "it is the database");
    return finish(diags);
  }
  std::shared_ptr<const Device> device;
  if (!jobs.empty()) { // first: without one, no database is made
    auto opened = timeLimit.openDevice();
    if (!opened)
      return finishWith(opened.failure(), diags);
    device = *opened;
  }
  std::optional<tune::Database> database;
  if (!path->empty()) {
    bool reads = jobs.empty() && imports.empty();
    auto opened = tune::Database::open(*path, reads ? tune::Database::Mode::read : tune::Database::Mode::write);
    if (!opened)
      return finishWith(opened.failure(), diags);
    database.emplace(std::move(*opened));
  }
  if (!imports.empty()) {
    if (auto failed = database->store(imported))
      return finishWith(*failed, diags);
    sayTaken(imported.size(), diags);
  }
  if (!jobs.empty()) {
    auto failures = tuneJobs(jobs, device, database ? &*database : nullptr);
    if (!failures)
      return finishWith(failures.failure(), diags);
    if (*failures)
      return finish(diags, No);
  }
  if (list)
    if (auto failed = printAll(*database))
      return finishWith(*failed, diags);
  if (!exportFile.empty())
    if (auto failed = exportAll(*database, diags))
      return finishWith(*failed, diags);
  return finish(diags);
}
Command command(tuneCommand, run);
} // namespace
} // namespace gemmc::tool::tune_cpp
