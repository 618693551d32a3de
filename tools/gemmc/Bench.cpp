// gemmc bench: a kernel's speed on the GPU, beside the best of cuBLASLt.
#include "gemmc/Run/Bench.h"
#include "Problem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool {
namespace {
enum class Versus { cublaslt, none };

cl::SubCommand bench("bench", "Measure a kernel on the GPU, in turns with the best algorithm of cuBLASLt");
KernelInput kernel(bench);
ProblemInput problem(bench, run::InputKind::normal);
cl::opt<Versus> versus("vs", cl::desc("Rival:"), cl::init(Versus::cublaslt), cl::sub(bench),
                       cl::values(clEnumValN(Versus::cublaslt, "cublaslt", "the best of all its algorithms"),
                                  clEnumValN(Versus::none, "none", "nobody")));
cl::list<std::string> also("also",
                           cl::desc("Another kernel for the same problem, measured in turns with the first: "
                                    "fields (and before them another file), separated by spaces"),
                           cl::value_desc("[file] path=value..."), cl::sub(bench));
cl::opt<unsigned> rounds("rounds", cl::desc("Rounds of measuring (default: 11)"), cl::init(11), cl::sub(bench));
cl::opt<double> warmUp("warm-up", cl::desc("Seconds that each kernel runs before it is measured (default: 0.3)"),
                       cl::init(0.3), cl::sub(bench));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(bench));

/// The kernel of the command line and those of `--also`; empty after a reported error.
std::vector<run::Rival> rivals(Diags &diags) {
  std::vector<run::Rival> out;
  if (auto code = kernel.compile(diags))
    out.push_back({also.empty() ? "gemmc" : sys::path::stem(kernel.path()).str(), std::move(*code)});
  for (const std::string &words : also)
    if (auto code = kernel.compileVariant(words, diags))
      out.push_back({words, std::move(*code)});
  if (diags.hasErrors())
    out.clear();
  return out;
}

int run() {
  Diags diags;
  std::vector<run::Rival> kernels = rivals(diags);
  if (kernels.empty())
    return finish(diags);
  auto device = openDevice();
  if (!device)
    return finishWith(device.failure(), diags);
  run::BenchRequest request;
  request.problem = problem.get();
  request.problem.defaultSize = 4096;
  request.versusCublas = versus == Versus::cublaslt;
  request.warmUpSeconds = std::clamp(warmUp.getValue(), 0.0, 60.0);
  request.rounds = std::max(1u, std::min<unsigned>(rounds, 10000));
  auto measure = [&](ArrayRef<run::Rival> kernels) {
    Progress progress("measuring on " + (*device)->name);
    return run::runBench(kernels, request, *device);
  };
  auto report = measure(kernels);
  if (!report && report.failure().id == Diag::launch_requirement && kernels.size() == 1) {
    std::string why = report.failure().str();
    for (Fallback kind : fallbacks)
      if (!report && report.failure().id == Diag::launch_requirement)
        if (auto fallback = kernel.compileFallback(kind, diags))
          report = measure(run::Rival{"gemmc", std::move(*fallback)});
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
