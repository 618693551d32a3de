// gemmc tune: the fastest plan of a spec, by measurement.
#include "gemmc/Tune/Tune.h"
#include "Problem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool {
namespace {
cl::SubCommand tuneCommand("tune", "Measure the planner's best alternatives on the GPU and say which one is fastest");
SpecInput input(tuneCommand);
ProblemInput problem(tuneCommand, run::InputKind::normal);
cl::opt<unsigned> top("top", cl::desc("Tiles that take part, the planner's favourites (default: 32; 0 = all)"),
                      cl::init(32), cl::sub(tuneCommand));
cl::opt<unsigned> rounds("rounds", cl::desc("Rounds of the final (default: 11)"), cl::init(11), cl::sub(tuneCommand));
cl::opt<bool> noCublas("no-cublaslt", cl::desc("No final against cuBLASLt"), cl::sub(tuneCommand));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(tuneCommand));

void showProgress(const std::string &text) {
  if (sys::Process::StandardErrIsDisplayed())
    errs() << "\r\033[K" << text;
}

int run() {
  Diags diags;
  auto spec = input.read(diags);
  if (!spec || !makePlan(*spec, diags))
    return finish(diags);
  auto device = openDevice();
  if (!device)
    return finishWith(device.failure(), diags);
  tune::TuneRequest request;
  request.problem = problem.get();
  request.problem.defaultSize = 4096;
  request.top = top;
  request.rounds = std::max(1u, std::min<unsigned>(rounds, 10000));
  request.versusCublas = !noCublas;
  request.progress = showProgress;
  auto report = tune::tune(*spec, request, *device);
  showProgress("");
  if (!report)
    return finishWith(report.failure(), diags);
  if (asJson)
    report->printJson(outs());
  else
    report->printTable(outs());
  return finish(diags);
}
Command command(tuneCommand, run);
} // namespace
} // namespace gemmc::tool
