#include "gemmc/Tune/Session.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Tune/Choose.h"
#include "gemmc/Tune/Entries.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <ctime>

using llvm::formatv;

namespace gemmc::tune {
namespace {
using Clock = std::chrono::steady_clock;

/// What a job multiplies, as its problem says it: of a batch that is planned as one product that product. Sizes that
/// the problem leaves open are those of the options, which have them all.
std::string sizesOf(const Spec &spec, const ProblemKey &key, const run::ProblemOptions &options) {
  const std::optional<int64_t> given[] = {options.m, options.n, options.k};
  std::string text;
  for (auto [size, open] : llvm::zip_equal(sizesOfProblem(key.problem), given))
    text += (text.empty() ? "" : "x") + (isOpenSize(size) ? std::to_string(*open) : size.str());
  const int64_t products = key.folded ? 1 : spec.batch.value.fixed.value_or(options.batch.value_or(1));
  return products == 1 ? text : std::to_string(products) + " of " + text;
}

Tuned tunedOf(const Job &job, const ProblemKey &key, const TuneReport &report, const TuneRequest &request) {
  Tuned tuned;
  tuned.device = report.device;
  tuned.problem = key.text();
  tuned.choice = wholeChoice(job.spec, report.winner);
  tuned.sizes = sizesOf(job.spec, key, request.problem);
  tuned.seconds = report.final.ours.median;
  tuned.cublasSeconds = report.final.cublas.empty() || key.folded ? 0 : report.final.cublas.front().median;
  tuned.rounds = request.rounds;
  tuned.date = today();
  return tuned;
}
} // namespace

std::string today() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string JobResult::str() const {
  std::string text = formatv("[{0} of {1}] {2}: ", number, count, job->name);
  if (state == failed)
    return text + why;
  text += formatv("{0:f1} us", tuned.seconds * 1e6);
  if (auto ratio = tuned.ratio())
    text += formatv(", {0:f3} of cuBLASLt's best", *ratio);
  text += ", " + tuned.choice;
  return text + (state == kept ? formatv(" (kept, of {0})", tuned.date).str() : formatv(" ({0:f0} s)", elapsed).str());
}

Outcome<unsigned> tuneAll(llvm::ArrayRef<Job> jobs, const SessionRequest &request, std::shared_ptr<const Device> device,
                          Database *database, const Listener &listener) {
  unsigned failures = 0;
  for (unsigned i = 0; i < jobs.size(); ++i) {
    const Job &job = jobs[i];
    JobResult result;
    TuneRequest each = request.tune;
    run::takeTypicalSizes(each.problem, job.spec);
    result.job = &job, result.number = i + 1, result.count = unsigned(jobs.size());
    auto start = Clock::now();
    auto key = problemKey(job.spec);
    assert(key && "the caller has planned the spec");
    if (database && !request.again) {
      auto known = database->find(device->name, key->text());
      if (!known)
        return known.failure();
      if (*known && (*known)->kernels == kernelVersion && (*known)->sizes == sizesOf(job.spec, *key, each.problem)) {
        result.state = JobResult::kept;
        result.tuned = **known;
        listener(result);
        continue;
      }
    }
    if (request.tune.stopped && request.tune.stopped())
      return Failure::make(Diag::measuring_stopped);
    auto report = request.tuner ? request.tuner(job.spec, each, device) : tune(job.spec, each, device);
    result.elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (!report) {
      Failure failure = report.failure();
      if (failure.id == Diag::measuring_stopped || jobs.size() == 1)
        return failure;
      if (failure.contextDead)
        return failure.hint("this was `" + job.name + "`");
      result.state = JobResult::failed;
      result.why = report.failure().str();
      ++failures;
      listener(result);
      continue;
    }
    result.tuned = tunedOf(job, *key, *report, each);
    result.report = std::move(*report);
    if (database)
      if (auto failed = database->store(result.tuned))
        return *failed;
    listener(result);
  }
  return failures;
}

} // namespace gemmc::tune
