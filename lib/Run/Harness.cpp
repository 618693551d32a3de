#include "gemmc/Run/Harness.h"
#include "gemmc/Run/Stopwatch.h"
#include "gemmc/Runtime/GpuModule.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>

namespace gemmc::run {
namespace {
/// The steps of one run, with what they hand on.
class Run {
public:
  Run(const Code &code, const RunRequest &request, Executor &executor, std::shared_ptr<Inputs> given)
      : code(&code), request(request), executor(executor), inputs(std::move(given)), problem(inputs->problem) {
    report.inputSeconds = inputs->seconds;
    report.kind = request.problem.kind;
    report.where = executor.where();
  }

  MaybeFailure go(FallbackCompiler fallback);
  RunReport report;

private:
  MaybeFailure fallBack(FallbackCompiler fallback, int64_t sms);
  MaybeFailure upload();
  MaybeFailure uploadWorkspace();
  MaybeFailure download(HostMatrix &matrix, std::optional<GuardViolation> &violation);
  MaybeFailure check();
  void chooseSample();
  void remarkOnSizes();
  Verification compare(const HostMatrix &d) const;

  const Code *code;
  std::optional<Code> fallbackCode;
  const RunRequest &request;
  Executor &executor;
  std::shared_ptr<Inputs> inputs;
  GemmProblem &problem;
  LaunchChoice choice;
};

void Run::remarkOnSizes() {
  const ProblemOptions &options = problem.options;
  std::string chosen;
  auto add = [&](const char *name, const Expr &fixed, std::optional<int64_t> given, int64_t value) {
    if (fixed.isConst() || given)
      return;
    chosen += chosen.empty() ? "" : ", ";
    chosen += llvm::formatv("{0} = {1}", name, value).str();
  };
  add("m", code->info.m, options.m, problem.args.m);
  add("n", code->info.n, options.n, problem.args.n);
  add("k", code->info.k, options.k, problem.args.k);
  add("batch", code->info.batch, options.batch, problem.args.batch);
  if (!chosen.empty())
    report.remarks.push_back("dynamic sizes not given: " + chosen + " taken");
}

/// On the emulator a large problem takes minutes; some tiles of it show the same faults.
void Run::chooseSample() {
  choice.seed = request.problem.seed;
  choice.timed = request.timed;
  if (!executor.isEmulator())
    return;
  choice.maxInstructions = request.maxInstructions;
  if (request.ctas && (!*request.ctas || code->info.blockM)) {
    choice.sampleClusters = *request.ctas;
    return;
  }
  if (request.ctas)
    report.remarks.push_back(
        "--ctas is without effect: the clusters of this kernel hand sums or tiles to each other, or their tiles "
        "reach from one product of a batch to the next, so all run (--sms sets how many there "
        "are)");
  double flops = 2 * problem.macs();
  if (flops <= wholeGridFlops || code->info.kernels.empty() || code->info.blockM == 0)
    return;
  const auto &cluster = code->info.kernels.back().cluster;
  double each = 2.0 * std::max(1u, code->info.blockM) * std::max(1u, code->info.blockN) *
                std::max<double>(1, double(problem.args.k)) * cluster[0] * cluster[1] * cluster[2];
  choice.sampleClusters = static_cast<uint64_t>(std::clamp(wholeGridFlops / 4 / each, 2.0, 64.0));
  report.remarks.push_back(
      llvm::formatv("{0:f1} GFLOP are much for the emulator: a sample of {1} clusters runs (--ctas sets "
                    "another number)",
                    flops / 1e9, choice.sampleClusters)
          .str());
}

MaybeFailure Run::upload() {
  uint64_t misalign = problem.options.misalign;
  LaunchArgs &args = problem.args;
  // What must not be read is not even there: a null pointer shows every touch.
  std::tuple<const HostMatrix &, uint64_t &, bool> inputs[] = {
      {problem.a, args.a, problem.readsInputs()},
      {problem.b, args.b, problem.readsInputs()},
      {problem.c, args.c, problem.readsC() && !problem.options.inPlace},
      {problem.d, args.d, true}};
  for (auto &[matrix, address, needed] : inputs) {
    if (!needed)
      continue;
    auto placed = executor.upload(matrix.name, matrix.data, misalign);
    if (!placed)
      return placed.failure();
    address = *placed;
  }
  if (problem.readsC() && problem.options.inPlace)
    args.c = args.d;
  return std::nullopt;
}

MaybeFailure Run::uploadWorkspace() {
  auto bytes = workspaceBytes(code->info, problem.args, executor.sms(choice));
  if (!bytes || *bytes == 0)
    return std::nullopt; // checkArgs says what is wrong with it
  if (*bytes > problem.options.maxBytes)
    return Failure::make(Diag::run_too_large, *bytes, problem.options.maxBytes);
  std::vector<std::byte> initial(*bytes, std::byte(0xff)); // a workspace's first contents are nobody's business
  auto placed = executor.upload("workspace", initial, 0);
  if (!placed)
    return placed.failure();
  problem.args.workspace = *placed;
  problem.args.workspaceBytes = *bytes;
  return std::nullopt;
}

/// The first fallback whose own requirements hold.
MaybeFailure Run::fallBack(FallbackCompiler fallback, int64_t sms) {
  std::string unmet = report.fallback;
  for (Fallback kind : fallbacks) {
    fallbackCode = fallback(kind);
    if (!fallbackCode)
      continue;
    code = &*fallbackCode;
    const Expr *again = firstUnmet(code->info, problem.args, sms);
    if (!again)
      return std::nullopt;
    unmet = again->str();
  }
  Failure failure = Failure::make(Diag::launch_requirement, unmet);
  if (!fallbackCode) // PTX, of which nobody knows the spec
    failure.hint("`gemmc compile <spec> --fallback=repack` and `--fallback` write kernels for launches that this one "
                 "excludes; given the spec itself, gemmc takes them by itself");
  return failure;
}

MaybeFailure Run::go(FallbackCompiler fallback) {
  remarkOnSizes();
  chooseSample();
  if (auto failed = upload())
    return failed;
  if (!problem.args.empty()) {
    int64_t sms = executor.sms(choice);
    const Expr *unmet = firstUnmet(code->info, problem.args, sms);
    if (unmet) {
      report.fallback = unmet->str();
      if (auto failed = fallBack(fallback, sms))
        return failed;
    }
    if (auto failed = uploadWorkspace())
      return failed;
    if (auto failed = checkArgs(code->info, problem.args, sms))
      return failed;
    choice.stress = request.stress;
    auto outcome = executor.launch(*code, problem.args, choice);
    if (!outcome)
      return outcome.failure();
    report.launch = *outcome;
    report.launched = true;
  }
  report.args = problem.args;
  report.info = code->info;
  Stopwatch watch;
  MaybeFailure failed = check();
  report.verifySeconds = watch.lap();
  return failed;
}

MaybeFailure Run::download(HostMatrix &matrix, std::optional<GuardViolation> &violation) {
  return executor.download(matrix.name, matrix.data, violation);
}

Verification Run::compare(const HostMatrix &d) const {
  if (inputs->reference && !report.launch.sampled)
    return verify(*inputs->reference, d);
  Reference reference(problem, request.threads);
  if (!report.launch.sampled)
    return verify(reference, d);
  // A cluster at the edge may hold CTAs without a tile.
  uint64_t clusters = report.launch.clustersRun;
  return verifyTiles(reference, d, std::max(1u, code->info.blockM), std::max(1u, code->info.blockN), clusters,
                     clusters * report.launch.ctasPerCluster);
}

MaybeFailure Run::check() {
  std::optional<GuardViolation> violation;
  HostMatrix d = problem.d;
  if (auto failed = download(d, violation))
    return failed;
  report.dHash = llvm::xxh3_64bits(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(d.data.data()), d.data.size()));
  if (!violation)
    violation = checkPadding(problem.d, d);
  const HostMatrix *inputs[] = {problem.readsInputs() ? &problem.a : nullptr,
                                problem.readsInputs() ? &problem.b : nullptr,
                                problem.readsC() && !problem.options.inPlace ? &problem.c : nullptr};
  for (const HostMatrix *input : inputs) {
    if (!input || violation)
      continue;
    HostMatrix after = *input;
    if (auto failed = download(after, violation))
      return failed;
    if (!violation)
      violation = checkUnchanged(*input, after.data);
  }
  // What an incomplete or failed emulation left behind proves nothing either way.
  if (report.launch.findings.empty())
    report.verification = compare(d);
  else
    report.verification.problem =
        report.launch.incomplete ? "the emulation is incomplete" : "the emulator found errors";
  if (violation)
    report.verification.guard = violation;
  report.verification.ok &= !violation && report.launch.findings.empty();
  return std::nullopt;
}
} // namespace

Outcome<RunReport> runGemm(const Code &code, FallbackCompiler fallback, const RunRequest &request, Executor &executor) {
  if (auto failed = executor.supports(targetOf(code.ptx)))
    return *failed;
  auto inputs = request.inputs;
  if (!inputs) {
    Stopwatch watch;
    auto made = makeProblem(code.info, request.problem);
    if (!made)
      return made.failure();
    inputs.reset(new Inputs{std::move(*made), {}, watch.lap()});
  }
  Run run(code, request, executor, std::move(inputs));
  if (auto failed = run.go(fallback))
    return *failed;
  return std::move(run.report);
}

Outcome<std::shared_ptr<Inputs>> makeInputs(const ptx::LaunchInfo &info, const RunRequest &request) {
  Stopwatch watch;
  auto problem = makeProblem(info, request.problem);
  if (!problem)
    return problem.failure();
  std::shared_ptr<Inputs> inputs(new Inputs{std::move(*problem), {}, 0});
  const LaunchArgs &args = inputs->problem.args;
  constexpr double mostKept = double(1 << 22); // elements of D, 16 bytes each
  if (inputs->problem.macs() <= plainLimit && double(inputs->problem.rows()) * double(args.n) <= mostKept) {
    inputs->reference.emplace(inputs->problem, request.threads);
    inputs->reference->precompute();
  }
  inputs->seconds = watch.lap();
  return inputs;
}

Outcome<RunReport> runRepeatedly(const Code &code, FallbackCompiler fallback, RunRequest request, uint64_t runs,
                                 Executor &executor) {
  request.timed &= runs <= 1;
  for (uint64_t run = 1;; ++run, ++request.problem.seed) {
    auto report = runGemm(code, fallback, request, executor);
    if (!report)
      return report;
    report->runs = run;
    request.inputs.reset();
    if (run >= runs || !report->ok())
      return report;
  }
}

} // namespace gemmc::run
