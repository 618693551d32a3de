// gemmc bench: a kernel's speed on the GPU, beside the best of cuBLASLt.
#include "gemmc/Run/Bench.h"
#include "Problem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool {
namespace {
enum class Rival { cublaslt, none };

cl::SubCommand bench("bench", "Measure a kernel on the GPU, in turns with the best algorithm of cuBLASLt");
KernelInput kernel(bench);
ProblemInput problem(bench, run::InputKind::normal);
cl::opt<Rival> versus("vs", cl::desc("Rival:"), cl::init(Rival::cublaslt), cl::sub(bench),
                      cl::values(clEnumValN(Rival::cublaslt, "cublaslt", "the best of all its algorithms"),
                                 clEnumValN(Rival::none, "none", "nobody")));
cl::opt<unsigned> rounds("rounds", cl::desc("Rounds of measuring (default: 11)"), cl::init(11), cl::sub(bench));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(bench));

int run() {
  Diags diags;
  auto code = kernel.compile(diags);
  if (!code)
    return finish(diags);
  auto device = openDevice();
  if (!device)
    return finishWith(device.failure(), diags);
  run::BenchRequest request;
  request.problem = problem.get();
  request.problem.defaultSize = 4096;
  request.versusCublas = versus == Rival::cublaslt;
  request.rounds = std::max(1u, std::min<unsigned>(rounds, 10000));
  auto measure = [&](const run::Code &code) {
    Progress progress("measuring on " + (*device)->name);
    return run::runBench(code, request, *device);
  };
  auto report = measure(*code);
  if (!report && report.failure().id == Diag::launch_requirement) {
    std::string why = report.failure().str();
    for (Fallback kind : fallbacks)
      if (!report && report.failure().id == Diag::launch_requirement)
        if (auto fallback = kernel.compileFallback(kind, diags))
          report = measure(*fallback);
    if (report)
      report->remark += (report->remark.empty() ? "" : "; ") + ("the fallback kernel was measured: " + why);
  }
  if (!report)
    return finishWith(report.failure(), diags);
  if (asJson)
    report->printJson(outs());
  else
    report->printTable(outs());
  return finish(diags);
}
Command command(bench, run);
} // namespace
} // namespace gemmc::tool
