// gemmc-microtests: the emulator's arithmetic against the card's, instruction by instruction, and questions about
// behaviour that the manual leaves open. One line a family; exit code 0 all equal, 1 not, 3 no GPU here.
#include "Pool.h"
#include "Protocol.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <thread>

using namespace llvm;
using namespace gemmc::microtests;

namespace {
cl::list<std::string> only("only", cl::desc("Only what has this in its name (repeatable)"));
cl::opt<bool> list("list", cl::desc("Names, and nothing else"));
cl::opt<bool> asJson("json", cl::desc("Print JSON"));
cl::opt<uint64_t> vectors("vectors", cl::desc("Dots or operand sets of a family"), cl::init(1000000));
cl::opt<uint64_t> seed("seed", cl::desc("Of the inputs"), cl::init(1));
cl::opt<unsigned> examples("examples", cl::desc("Mismatches to show of a family"), cl::init(5));
cl::opt<unsigned> jobs("jobs", cl::desc("Processes (default: half of the cores, at most 8)"), cl::init(0));
cl::opt<bool> emulateOnly("emulate-only", cl::desc("No GPU: see that every kernel runs on the emulator"));
cl::opt<std::string> emitTo("emit", cl::desc("Write the kernels' PTX into this folder, and nothing else"));

bool wanted(const std::string &name) {
  return only.empty() || any_of(only, [&](const std::string &part) { return name.find(part) != std::string::npos; });
}

json::Object toJson(const Tally &outcome) {
  return json::Object{{"name", outcome.name},
                      {"vectors", int64_t(outcome.vectors)},
                      {"mismatches", int64_t(outcome.mismatches)},
                      {"worst", std::min(outcome.worst, 1e300)},
                      {"examples", json::Array(outcome.examples)},
                      {"error", outcome.error},
                      {"seconds", outcome.seconds},
                      {"jit_seconds", outcome.jitSeconds},
                      {"emulator_seconds", outcome.emulatorSeconds},
                      {"bad", outcome.bad}};
}

std::string textOf(const json::Object &object, StringRef key) { return object.getString(key).value_or("").str(); }

void printFamily(const json::Object &result) {
  std::string error = textOf(result, "error");
  bool bad = result.getBoolean("bad").value_or(true);
  outs() << formatv("{0} {1,-52} {2,9} vectors {3,8} mismatches", bad ? "FAIL" : "ok  ", textOf(result, "name"),
                    result.getInteger("vectors").value_or(0), result.getInteger("mismatches").value_or(0));
  if (double worst = result.getNumber("worst").value_or(0))
    outs() << formatv(" (at most {0:f2} of the manual's bound)", worst);
  outs() << formatv("  {0:f2} s (jit {1:f2}, emulator {2:f2})\n", result.getNumber("seconds").value_or(0),
                    result.getNumber("jit_seconds").value_or(0), result.getNumber("emulator_seconds").value_or(0));
  if (!error.empty())
    outs() << "       " << error << "\n";
  if (const json::Array *examples = result.getArray("examples"); examples && bad)
    for (const json::Value &example : *examples)
      outs() << "       " << example.getAsString().value_or("") << "\n";
  outs().flush();
}
void printAnswer(const Question &question, const json::Object &result) {
  outs() << formatv("{0} {1}: {2}\n       card: {3}\n       rule: {4}\n", textOf(result, "verdict"), question.name,
                    question.asks, textOf(result, "card") + textOf(result, "error"), question.rule);
  outs().flush();
}

int emitAll(const std::vector<Family> &families, const std::vector<Question> &questions) {
  sys::fs::create_directories(emitTo);
  unsigned number = 0;
  auto write = [&](const std::string &name, const std::string &ptx) {
    std::error_code error;
    raw_fd_ostream file(formatv("{0}/{1}.ptx", emitTo, number++).str(), error);
    if (!error)
      file << "// " << name << "\n" << ptx;
    else
      errs() << emitTo << ": " << error.message() << "\n";
    return !error;
  };
  bool good = true;
  for (const Family &family : families)
    good &= write(family.name, family.ptx);
  for (const Question &question : questions) {
    Card card;
    question.ask(card);
    for (const std::string &ptx : card.recorded)
      good &= write(question.name, ptx);
  }
  return good ? 0 : 2;
}

/// The tasks of this run, and what a process needs for them.
struct Session {
  std::vector<Family> families;
  std::vector<Question> questions;
  std::vector<Task> tasks;
  Settings settings;
  std::unique_ptr<Card> card;

  Session() {
    for (Family &family : allFamilies())
      if (wanted(family.name))
        families.push_back(std::move(family));
    if (!emulateOnly)
      for (Question &question : allQuestions())
        if (wanted(question.name))
          questions.push_back(std::move(question));
    for (const Family &family : families)
      tasks.push_back({family.name, 90, false});
    for (const Question &question : questions)
      tasks.push_back({question.name, 30, true});
  }
  int start() {
    if (emulateOnly)
      return 0;
    Trouble error;
    card = Card::open(error);
    if (card)
      return 0;
    errs() << "gemmc-microtests: " << error << "\n";
    return noDeviceExit;
  }
  json::Object work(size_t task) {
    if (task < families.size()) {
      json::Object result = toJson(compare(families[task], card.get(), settings));
      result["stale"] = card && card->dead;
      return result;
    }
    const Question &question = questions[task - families.size()];
    Question::Answer answer = question.ask(*card);
    const char *verdicts[] = {"agrees ", "DIFFERS", "open   "};
    return json::Object{{"name", question.name},
                        {"asks", question.asks},
                        {"rule", question.rule},
                        {"card", answer.card},
                        {"verdict", verdicts[answer.verdict]},
                        {"stale", card->dead}};
  }
};
} // namespace

int main(int argc, char **argv) {
  constexpr int badInput = 2;
  // With a stream of ours, wrong options are a return value and not LLVM's exit(1), which here means "differs".
  if (!cl::ParseCommandLineOptions(argc, argv, "Compares the emulator with the GPU, instruction by instruction\n",
                                   &errs()))
    return badInput;
  auto begin = std::chrono::steady_clock::now();
  Session session;
  if (session.tasks.empty()) {
    WithColor::error() << "no family or question has any of the names of `--only`: `--list` prints them\n";
    return badInput;
  }
  if (list) {
    for (const Task &task : session.tasks)
      outs() << task.name << "\n";
    return 0;
  }
  if (!emitTo.empty())
    return emitAll(session.families, session.questions);
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  unsigned processes = jobs ? jobs : std::clamp(cores / 2, 1u, 8u);
  session.settings = {vectors, seed, std::max(1u, cores / processes), examples};
  json::Array all;
  unsigned bad = 0, differing = 0;
  uint64_t total = 0;
  auto done = [&](size_t task, json::Object result) {
    bool isFamily = task < session.families.size();
    if (isFamily)
      bad += result.getBoolean("bad").value_or(true);
    else
      differing += textOf(result, "verdict") == "DIFFERS";
    total += result.getInteger("vectors").value_or(0);
    if (!asJson && isFamily)
      printFamily(result);
    else if (!asJson)
      printAnswer(session.questions[task - session.families.size()], result);
    all.push_back(std::move(result));
  };
  PoolEnd end = runPool(
      session.tasks, processes, [&] { return session.start(); }, [&](size_t task) { return session.work(task); },
      [&] { return session.card && session.card->dead; }, done);
  if (end.noDevice)
    return noDeviceExit;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (asJson)
    outs() << formatv("{0:2}\n", json::Value(json::Object{{"results", std::move(all)},
                                                          {"families", int64_t(session.families.size())},
                                                          {"failed", int64_t(bad)},
                                                          {"vectors", int64_t(total)},
                                                          {"answers_that_differ", int64_t(differing)},
                                                          {"seconds", seconds}}));
  else
    outs() << formatv(
        "{0} families, {1} failed; {2} vectors; {3} questions, {4} answers differ from our rules; {5:f1} s\n",
        session.families.size(), bad, total, session.questions.size(), differing, seconds);
  return bad ? 1 : 0;
}
