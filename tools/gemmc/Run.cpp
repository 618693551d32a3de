// gemmc run: one GEMM on the GPU or on the emulator, verified.
#include "Foreign.h"
#include "GridOptions.h"
#include "InstructionLimit.h"
#include "TimeLimit.h"
#include "gemmc/Run/Harness.h"
#include "gemmc/Run/Stopwatch.h"
#include "gemmc/Runtime/CubinCache.h"
#include "gemmc/Runtime/GpuModule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <future>

using namespace llvm;

namespace gemmc::tool::run_cpp {
namespace {
enum class Where { automatic, gpu, emulator };

cl::SubCommand runCommand("run", "Run a GEMM on the GPU, or on the emulator without one, and verify the result");
KernelInput kernel(runCommand);
ProblemInput problem(runCommand, run::InputKind::integer, /*mayBeInPlace=*/true);
TimeLimit timeLimit(runCommand);
cl::opt<Where>
    where("device", cl::desc("Where it runs:"), cl::init(Where::automatic), cl::sub(runCommand),
          cl::values(clEnumValN(Where::automatic, "auto", "on the GPU if it can run this, else on the emulator"),
                     clEnumValN(Where::gpu, "gpu", "on the GPU"),
                     clEnumValN(Where::emulator, "emulator", "on the emulator")));
GridOptions grid(runCommand);
InstructionLimit maxInstructions(runCommand);
Threads threads("threads", cl::desc("Host threads (default: all cores)"), cl::sub(runCommand));
cl::opt<bool> check("check",
                    cl::desc("Emulator: search for races and misuse, too (`gemmc check` tries more schedules)"),
                    cl::sub(runCommand));
/// The architecture; 0: the target's.
enum class Chip { ofTarget = 0, sm_80 = 80, sm_86 = 86, sm_89 = 89, sm_90 = 90 };
cl::opt<Chip> chip("chip", cl::desc("Emulator: the chip whose arithmetic it uses (default: the target's):"),
                   cl::init(Chip::ofTarget), cl::sub(runCommand),
                   cl::values(clEnumValN(Chip::sm_80, "sm_80", "A100"), clEnumValN(Chip::sm_86, "sm_86", "A10, RTX 30"),
                              clEnumValN(Chip::sm_89, "sm_89", "L4, RTX 40"),
                              clEnumValN(Chip::sm_90, "sm_90", "H100, H200, for PTX of sm_80 too")));
cl::opt<std::string> timelineFile("timeline",
                                  cl::desc("Emulator: write a timeline"
                                           " of the first cluster, for ui.perfetto.dev (JSON)"),
                                  cl::value_desc("file"), cl::sub(runCommand));
Count<1, 1000000> repeat("repeat",
                         cl::desc("Run so many times, each with the next seed; the first wrong result ends it"),
                         cl::init(1), cl::sub(runCommand));
Count<0, 1000000> stress("stress",
                         cl::desc("GPU: that many launches more while a second stream keeps the device busy; "
                                  "all results must have the same bits"),
                         cl::sub(runCommand));
cl::opt<std::string> cubinFile("cubin",
                               cl::desc("GPU: the kernel as ptxas has assembled it, loaded in place of the PTX"),
                               cl::value_desc("file"), cl::sub(runCommand));
cl::opt<std::string> launchFile("launch",
                                cl::desc("How a .ptx file that gemmc did not make is launched on the emulator, and "
                                         "what it must give (YAML, docs/foreign-ptx.md; default: FILE.yaml beside "
                                         "FILE.ptx)"),
                                cl::value_desc("file"), cl::sub(runCommand));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(runCommand));

emu::Timeline timeline;

run::RunRequest requestFor(bool onEmulator) {
  run::RunRequest request;
  request.problem = problem.get();
  request.problem.defaultSize = onEmulator ? 256 : 512;
  request.problem.maxBytes = uint64_t(onEmulator ? 4 : 32) << 30;
  request.threads = threads;
  request.stress = stress;
  maxInstructions.putInto(request);
  grid.putInto(request);
  return request;
}

using Opened = Outcome<std::shared_ptr<const Device>>;
using MaybeDevice = std::optional<Opened>;

/// The start of a run on a GPU. Opening the device takes longer than all the rest, so the kernel is compiled, for the
/// device that its target is usually, and assembled meanwhile.
class Start {
public:
  /// Opens the GPU, where the emulator is not asked for.
  Start() {
    if (where == Where::emulator || check || !timelineFile.empty())
      return;
    opening = std::async(std::launch::async, [this] {
      run::Stopwatch watch;
      Opened device = timeLimit.openDevice();
      deviceSeconds = watch.lap();
      return device;
    });
  }

  std::optional<run::Code> compile(std::unique_ptr<Diags> &diags) {
    run::Stopwatch watch;
    auto code = kernel.compile(*diags);
    compileSeconds = watch.lap();
    if (!opening.valid())
      return code;
    assemble(code);
    if (code && !opened())
      if (auto made = run::makeInputs(code->info, requestFor(/*onEmulator=*/false)))
        inputs = *made;
    device = opening.get();
    watch.lap();
    if (*device && (**device)->name != usual && !kernel.path().ends_with(".ptx")) {
      kernel.runsOn((**device)->name); // what was measured on it counts
      diags = std::make_unique<Diags>();
      assembling = {};
      inputs.reset();
      code = kernel.compile(*diags);
      compileSeconds += watch.lap();
    }
    if (code && *device && assembling.valid())
      if (auto made = assembling.get()) {
        code->cubin.assign(made->begin(), made->end());
        code->assembled = true;
      }
    assembleSeconds = watch.lap();
    return code;
  }

  MaybeDevice device;
  std::shared_ptr<run::Inputs> inputs; ///< For a GPU; null: not made.
  double compileSeconds = 0, deviceSeconds = 0, assembleSeconds = 0;

private:
  static constexpr unsigned usualSm = 90;
  static constexpr StringRef usual = "NVIDIA H200"; ///< For which a kernel is planned where nothing else is known.

  /// A machine without a GPU needs no cubin.
  void assemble(const std::optional<run::Code> &code) {
    if (code && !opened() && cubinFile.empty())
      assembling = std::async(std::launch::async, [ptx = code->ptx] { return cubinOf(ptx, usual, usualSm); });
  }

  /// A missing driver is known at once: then nothing is prepared for a GPU.
  bool opened() const { return opening.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  std::future<Opened> opening;
  std::future<std::optional<std::vector<char>>> assembling;
};

/// Reports options that mean nothing beside others.
bool allUsed(Diags &diags) {
  kernel.allUsed(launchFile, diags);
  if (where == Where::gpu)
    for (const auto &[option, given] :
         std::initializer_list<std::pair<StringRef, bool>>{{"--check", check},
                                                           {"--timeline", !timelineFile.empty()},
                                                           {"--chip", chip != Chip::ofTarget},
                                                           {"--ctas", grid.samples()},
                                                           {"--sms", grid.givesSms()},
                                                           {"--max-instructions", maxInstructions.given()}})
      if (given)
        diags.report(Diag::option_useless, {}, option, "it is for the emulator, and `--device gpu` asks for a GPU");
  if (where == Where::emulator)
    for (const auto &[option, given] : std::initializer_list<std::pair<StringRef, bool>>{
             {"--cubin", !cubinFile.empty()}, {"--time-limit", timeLimit.given()}})
      if (given)
        diags.report(Diag::option_useless, {}, option, "it is for a GPU, and `--device emulator` asks for none");
  return !diags.hasErrors();
}

std::string nameOfChip() { return chip == Chip::ofTarget ? "" : "sm_" + utostr(unsigned(chip.getValue())); }

std::unique_ptr<run::Executor> emulator(const emu::CheckOptions &options, emu::Timeline *drawn) {
  return run::makeEmulator(threads, options, grid.numSms(), nameOfChip(), drawn);
}

/// The executor of choice; a remark when `auto` had to take the emulator.
Outcome<std::unique_ptr<run::Executor>> choose(const MaybeDevice &device, const run::Code &code, std::string &remark) {
  emu::CheckOptions options;
  options.enabled = check;
  if (chip != Chip::ofTarget)
    if (auto failed = supports(nameOfChip(), unsigned(chip.getValue()), targetOf(code.ptx)))
      return *failed;
  if (!device)
    return emulator(options, timelineFile.empty() ? nullptr : &timeline);
  MaybeFailure why = *device ? (**device)->supports(targetOf(code.ptx)) : MaybeFailure(device->failure());
  if (!why)
    return run::makeGpu(**device);
  if (where == Where::gpu)
    return *why;
  remark = why->str();
  return emulator({}, nullptr);
}

/// With a launch file of its own (docs/foreign-ptx.md): once, and what comes out.
int runForeign(const ForeignInput &input, Diags &diags) {
  for (const auto &[option, given] :
       std::initializer_list<std::pair<StringRef, bool>>{{"--device gpu", where == Where::gpu},
                                                         {"--stress", stress.getNumOccurrences() > 0},
                                                         {"--cubin", !cubinFile.empty()},
                                                         {"--time-limit", timeLimit.given()}})
    if (given)
      diags.report(Diag::option_useless, {}, option, "what a launch file launches runs on the emulator alone");
  grid.checkUse(/*launchFile=*/true, diags);
  if (repeat.getNumOccurrences())
    diags.report(Diag::option_useless, {}, "--repeat", "the launch file says what the buffers hold");
  if (chip != Chip::ofTarget)
    diags.report(Diag::option_useless, {}, "--chip", "what a launch file launches has the arithmetic of its target");
  if (asJson)
    diags.report(Diag::option_useless, {}, "--json", "`gemmc check` prints the findings of such PTX as JSON");
  if (!checkLaunchOptions(problem, diags))
    return finish(diags);
  run::CheckRequest request;
  request.run.threads = threads;
  maxInstructions.putInto(request.run);
  request.schedules = check ? 1 : 0;
  request.foreign = true;
  request.timeline = timelineFile.empty() ? nullptr : &timeline;
  grid.putInto(request.run);
  run::ForeignReport report = run::runForeign(input.module, input.launch, request);
  writeTimeline(timeline, timelineFile, diags);
  for (const std::string &line : report.results)
    outs() << line << "\n";
  report.check.printText(outs());
  bool good = report.check.verdict == emu::Verdict::clean || report.check.verdict == emu::Verdict::review;
  return finish(diags, good ? Ok : report.check.verdict == emu::Verdict::incomplete ? NotHere : No);
}

int runIt() {
  auto sink = std::make_unique<Diags>();
  bool failed = false;
  if (!allUsed(*sink))
    return finish(*sink);
  if (auto foreign = readForeignInput(kernel.path(), launchFile, *sink, failed))
    return runForeign(*foreign, *sink);
  grid.checkUse(/*launchFile=*/false, *sink);
  if (failed || sink->hasErrors())
    return finish(*sink);
  run::Stopwatch watch;
  Start start;
  auto code = start.compile(sink);
  Diags &diags = *sink;
  if (!code)
    return finish(diags);
  if (!cubinFile.empty()) {
    auto cubin = readFile(cubinFile, diags);
    if (!cubin)
      return finish(diags);
    code->cubin = cubin->str();
  }
  std::string remark;
  auto executor = choose(start.device, *code, remark);
  if (!executor)
    return finishWith(executor.failure(), diags);

  run::RunRequest request = requestFor((*executor)->isEmulator());
  if (!(*executor)->isEmulator())
    request.inputs = std::move(start.inputs);
  auto report = [&] {
    Progress progress("running on " + (*executor)->where());
    return run::runRepeatedly(
        *code, [&](Fallback kind) { return kernel.compileFallback(kind, diags); }, request, repeat, **executor);
  }();
  if (!report)
    return finishWith(report.failure(), diags);
  report->totalSeconds = watch.lap();
  report->compileSeconds = start.compileSeconds;
  report->deviceSeconds = start.deviceSeconds;
  report->assembleSeconds = start.assembleSeconds;
  writeTimeline(timeline, timelineFile, diags);
  if (!remark.empty())
    report->remarks.insert(report->remarks.begin(), "on the emulator: " + remark);
  if (stress && (*executor)->isEmulator())
    report->remarks.push_back("--stress is for a GPU: the emulator gives the same bits each time");
  if (asJson)
    report->printJson(outs());
  else
    report->printTable(outs());
  return finish(diags, report->ok() ? Ok : No);
}
Command command(runCommand, runIt);
} // namespace
} // namespace gemmc::tool::run_cpp
