/// Tuning many problems, one after the other, into the database: what is there already is skipped, what is finished is
/// kept whatever happens next.
#pragma once
#include "gemmc/Tune/Database.h"
#include "gemmc/Tune/Tune.h"

namespace gemmc::tune {

struct Job {
  std::string name;
  Spec spec;
};

struct SessionRequest {
  TuneRequest tune;
  bool again = false; ///< Measure what is in the database, too.
  /// Tunes one problem; empty = tune(). For tests that have no kernels to run.
  std::function<Outcome<TuneReport>(const Spec &, const TuneRequest &, std::shared_ptr<const Device>)> tuner;
};

/// What became of a job.
struct JobResult {
  enum State { measured, kept, failed } state = measured;
  const Job *job = nullptr;
  unsigned number = 0, count = 0; ///< `number` of `count`, from 1.
  double elapsed = 0;             ///< Seconds.
  Tuned tuned;                    ///< measured, kept.
  std::string why;                ///< failed.
  std::optional<TuneReport> report;
  /// `[3 of 67] square: 203.2 us, 1.021 of cuBLASLt's best, tile.block=[128,256,64] ... (34 s)`
  std::string str() const;
  /// One object: what became of it, what the database has now and, if it was measured now, the whole report.
  void printJson(llvm::raw_ostream &os) const;
};

/// Told of each finished job.
using Listener = std::function<void(const JobResult &)>;

/// Ends early with a failure when the context is dead, the database cannot be written, or `request.tune.stopped`
/// says so (measuring_stopped). A job that fails for itself does not end the session. The number of failed jobs.
Outcome<unsigned> tuneAll(llvm::ArrayRef<Job> jobs, const SessionRequest &request, std::shared_ptr<const Device> device,
                          Database *database, const Listener &listener);

/// Of today, UTC: `2026-11-21`.
std::string today();

} // namespace gemmc::tune
