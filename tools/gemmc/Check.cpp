// gemmc check: a kernel on the emulator under adversarial schedules, searched for races, misuse and deadlocks.
#include "gemmc/Run/Check.h"
#include "Foreign.h"
#include "GridOptions.h"
#include "InstructionLimit.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool::check_cpp {
namespace {
cl::SubCommand checkCommand("check", "Search a spec's kernel, or a .ptx file, for races, misuse of barriers and hangs");
KernelInput kernel(checkCommand);
ProblemInput problem(checkCommand, run::InputKind::integer, /*mayBeInPlace=*/true);
Count<1, 1000000> schedules("schedules", cl::desc("How many: lazy, eager, reversed, then random (default: 4)"),
                            cl::init(4), cl::sub(checkCommand));
cl::opt<uint64_t> scheduleSeed("schedule-seed", cl::desc("Of the random schedules"), cl::init(1),
                               cl::sub(checkCommand));
GridOptions grid(checkCommand);
Threads threads("threads", cl::desc("Host threads (default: all cores)"), cl::sub(checkCommand));
InstructionLimit maxInstructions(checkCommand);
cl::opt<std::string> launchFile("launch",
                                cl::desc("How a .ptx file that gemmc did not make is launched, and what it must give "
                                         "(YAML, docs/foreign-ptx.md; default: FILE.yaml beside FILE.ptx)"),
                                cl::value_desc("file"), cl::sub(checkCommand));
cl::opt<bool> stopAtError("stop-at-error", cl::desc("No further schedules after an error"), cl::sub(checkCommand));
cl::opt<std::string> timelineFile("timeline",
                                  cl::desc("Write a timeline of the first schedule"
                                           " of the first cluster, for ui.perfetto.dev (JSON)"),
                                  cl::value_desc("file"), cl::sub(checkCommand));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(checkCommand));

int exitCode(emu::Verdict verdict) {
  switch (verdict) {
  case emu::Verdict::error:
    return No;
  case emu::Verdict::incomplete:
    return NotHere;
  default:
    return Ok;
  }
}

/// With a launch file of its own (docs/foreign-ptx.md).
int runForeign(const ForeignInput &input, Diags &diags) {
  grid.checkUse(/*launchFile=*/true, diags);
  if (!checkLaunchOptions(problem, diags))
    return finish(diags);
  run::CheckRequest request;
  request.run.threads = threads;
  maxInstructions.putInto(request.run);
  request.schedules = schedules;
  request.seed = scheduleSeed;
  request.stopAtError = stopAtError;
  request.foreign = true;
  emu::Timeline timeline;
  request.timeline = timelineFile.empty() ? nullptr : &timeline;
  grid.putInto(request.run);
  run::ForeignReport report = [&] {
    Progress progress("checking");
    return run::runForeign(input.module, input.launch, request);
  }();
  writeTimeline(timeline, timelineFile, diags);
  if (asJson) {
    report.check.printJson(outs());
  } else {
    for (const std::string &line : report.results)
      outs() << line << "\n";
    report.check.printText(outs());
  }
  return finish(diags, exitCode(report.check.verdict));
}

int runIt() {
  Diags diags;
  bool failed = false;
  if (!kernel.allUsed(launchFile, diags))
    return finish(diags);
  if (auto foreign = readForeignInput(kernel.path(), launchFile, diags, failed))
    return runForeign(*foreign, diags);
  grid.checkUse(/*launchFile=*/false, diags);
  if (failed || diags.hasErrors())
    return finish(diags);
  auto code = kernel.compile(diags, launchFile);
  if (!code)
    return finish(diags);
  run::CheckRequest request;
  request.run.problem = problem.get();
  request.run.problem.defaultSize = 256;
  request.run.problem.maxBytes = uint64_t(4) << 30;
  request.run.threads = threads;
  maxInstructions.putInto(request.run);
  request.schedules = schedules;
  request.seed = scheduleSeed;
  request.sms = grid.numSms();
  request.stopAtError = stopAtError;
  request.foreign = !launchFile.empty();
  emu::Timeline timeline;
  request.timeline = timelineFile.empty() ? nullptr : &timeline;
  grid.putInto(request.run);
  auto report = [&] {
    Progress progress("checking");
    return run::checkGemm(*code, [&](Fallback kind) { return kernel.compileFallback(kind, diags); }, request);
  }();
  if (!report)
    return finishWith(report.failure(), diags);
  writeTimeline(timeline, timelineFile, diags);
  if (asJson)
    report->printJson(outs());
  else
    report->printText(outs());
  return finish(diags, exitCode(report->verdict));
}
Command command(checkCommand, runIt);
} // namespace
} // namespace gemmc::tool::check_cpp
