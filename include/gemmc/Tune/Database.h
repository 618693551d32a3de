/// The tuning database: which choice was measured as the fastest for a problem on a device.
///
/// One SQLite file with a rollback journal, so that any number of processes may use it and each may die at any moment.
/// Nothing here throws or ends the process; a file that is damaged, foreign, of a newer gemmc or busy is a Failure.
#pragma once
#include "gemmc/Runtime/Failure.h"
#include <memory>

struct sqlite3;

namespace gemmc::tune {

/// Raised when the compiler's output changes so that old measurements say nothing any more.
constexpr int64_t kernelVersion = 1;

/// One measurement.
struct Tuned {
  std::string device;  ///< The driver's name of it: `NVIDIA H200`.
  std::string problem; ///< ProblemKey::text().
  int64_t kernels = kernelVersion;
  std::string choice;       ///< `path=value` words, as applyChoice takes them.
  std::string sizes;        ///< `4096x4096x4096`, `4 of 64x64x64`: what was multiplied; a problem's may be dynamic.
  double seconds = 0;       ///< Median.
  double cublasSeconds = 0; ///< Median of cuBLASLt's best algorithm; 0: not measured.
  int64_t rounds = 0;
  std::string date; ///< `2026-11-21`, UTC.

  /// Above 1 we are faster.
  std::optional<double> ratio() const;
  /// `measured on NVIDIA H200 2026-11-21: 203.2 us, 1.021 of cuBLASLt's best`
  std::string str() const;
};

class Database {
public:
  /// `write` makes the file and its folder. `read` changes nothing but what a killed process left half done.
  enum class Mode { read, write };
  static constexpr int schema = 1;

  /// Waits at most `patience` milliseconds for other processes, here and in every other call.
  static Outcome<Database> open(const std::string &path, Mode mode, int patience = 5000);
  Database(Database &&other) noexcept;
  Database &operator=(Database &&other) noexcept;
  ~Database();

  /// Nothing when nobody has measured this problem on this device.
  Outcome<std::optional<Tuned>> find(const std::string &device, const std::string &problem);
  /// Takes the place of an older measurement of the same problem on the same device.
  MaybeFailure store(const Tuned &tuned);
  MaybeFailure store(const std::vector<Tuned> &all); ///< All or, after a failure, none.
  Outcome<std::vector<Tuned>> all();                 ///< By device and problem.
  /// Reads all pages: a failure (tuning_corrupt) when one is damaged.
  MaybeFailure check();

private:
  Database() = default;
  MaybeFailure prepareSchema(Mode mode);
  MaybeFailure execute(const char *sql, const char *doing);
  Outcome<int64_t> number(const char *sql);
  Failure failed(const char *doing) const;

  sqlite3 *handle = nullptr;
  std::string path;
  int patience = 0;
  bool empty = false; ///< A file without a table yet, opened to read.
};

/// `$GEMMC_TUNING`, else `$XDG_CACHE_HOME/gemmc/tuning.db`, else `~/.cache/gemmc/tuning.db`. An empty text when
/// GEMMC_TUNING is set and empty: no database.
Outcome<std::string> defaultDatabase();

} // namespace gemmc::tune
