// SQLite behind a few functions. The file may be anybody's: its application id, schema and contents are checked, and
// triggers, views and functions of its schema are not trusted.
#include "gemmc/Tune/Database.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <sqlite3.h>

using llvm::formatv;
using llvm::StringRef;

namespace gemmc::tune {
namespace {
constexpr int64_t applicationId = 0x67656d6d; // "gemm"

/// Step i brings schema i to schema i + 1. A step is never changed once it was released.
constexpr const char *steps[] = {"CREATE TABLE tuned ("
                                 "device TEXT NOT NULL, problem TEXT NOT NULL, kernels INTEGER NOT NULL, "
                                 "choice TEXT NOT NULL, sizes TEXT NOT NULL, seconds REAL NOT NULL, "
                                 "cublas REAL NOT NULL, rounds INTEGER NOT NULL, date TEXT NOT NULL, "
                                 "PRIMARY KEY (device, problem)) WITHOUT ROWID"};
static_assert(std::size(steps) == Database::schema);

constexpr const char *columns = "device, problem, kernels, choice, sizes, seconds, cublas, rounds, date";

/// A prepared statement.
class Statement {
public:
  Statement(sqlite3 *handle, const std::string &sql) {
    sqlite3_prepare_v2(handle, sql.c_str(), int(sql.size()) + 1, &statement, nullptr);
  }
  Statement(const Statement &) = delete;
  ~Statement() { sqlite3_finalize(statement); }
  explicit operator bool() const { return statement; }
  void bind(int at, const std::string &text) {
    sqlite3_bind_text(statement, at, text.data(), int(text.size()), SQLITE_TRANSIENT);
  }
  void bind(int at, int64_t value) { sqlite3_bind_int64(statement, at, value); }
  void bind(int at, double value) { sqlite3_bind_double(statement, at, value); }
  int step() { return sqlite3_step(statement); }
  void reset() { sqlite3_reset(statement); }
  /// Fit for a terminal and for JSON, whoever wrote it.
  std::string text(int at) {
    auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(statement, at));
    std::string text = bytes ? std::string(bytes, sqlite3_column_bytes(statement, at)) : "";
    for (char &c : text)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        c = '?';
    return llvm::json::isUTF8(text) ? text : llvm::json::fixUTF8(text);
  }
  int64_t integer(int at) { return sqlite3_column_int64(statement, at); }
  double real(int at) { return sqlite3_column_double(statement, at); }

private:
  sqlite3_stmt *statement = nullptr;
};

Tuned rowOf(Statement &row) {
  return {row.text(0), row.text(1), row.integer(2), row.text(3), row.text(4),
          row.real(5), row.real(6), row.integer(7), row.text(8)};
}
} // namespace

std::optional<double> Tuned::ratio() const {
  return cublasSeconds > 0 && seconds > 0 ? std::optional(cublasSeconds / seconds) : std::nullopt;
}

std::string Tuned::str() const {
  std::string text = formatv("measured on {0} {1}: {2:f1} us", device, date, seconds * 1e6);
  if (auto value = ratio())
    text += formatv(", {0:f3} of cuBLASLt's best", *value);
  return text;
}

Database::Database(Database &&other) noexcept { *this = std::move(other); }
Database &Database::operator=(Database &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(path, other.path);
  std::swap(patience, other.patience);
  std::swap(empty, other.empty);
  return *this;
}
Database::~Database() { sqlite3_close_v2(handle); }

/// What the last error means for a user.
Failure Database::failed(const char *doing) const {
  std::string why = handle ? sqlite3_errmsg(handle) : "out of memory";
  switch (handle ? sqlite3_errcode(handle) & 0xff : SQLITE_NOMEM) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return Failure::make(Diag::tuning_busy, path, patience).hint("try again when it is done");
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
  case SQLITE_MISMATCH:
  case SQLITE_ERROR: // a table that is not as ours
    return Failure::make(Diag::tuning_corrupt, path, why)
        .hint("move the file away, and `gemmc tune` makes a new one; or name another with --database or GEMMC_TUNING");
  default:
    return Failure::make(Diag::tuning_access, doing, path, why)
        .hint("name another file with --database or GEMMC_TUNING");
  }
}

MaybeFailure Database::execute(const char *sql, const char *doing) {
  if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK)
    return std::nullopt;
  Failure failure = failed(doing);
  if (!sqlite3_get_autocommit(handle))
    sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
  return failure;
}

Outcome<int64_t> Database::number(const char *sql) {
  Statement statement(handle, sql);
  if (!statement || statement.step() != SQLITE_ROW)
    return failed("read");
  return statement.integer(0);
}

Outcome<Database> Database::open(const std::string &path, Mode mode, int patience) {
  Database database;
  database.path = path;
  database.patience = patience;
  bool write = mode == Mode::write;
  const llvm::StringRef folder = llvm::sys::path::parent_path(path); // "": the current one
  if (write && !folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return Failure::make(Diag::tuning_access, "make the folder of", path, error.message())
          .hint("name another file with --database or GEMMC_TUNING");
  // Readers, too: what a killed process left half done is rolled back by the next that comes. SQLite itself falls back
  // to reading where the file cannot be written.
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (write ? SQLITE_OPEN_CREATE : 0);
  const std::string file = llvm::sys::path::is_absolute(path) ? path : "./" + path; // no `:memory:`, no URI
  if (sqlite3_open_v2(file.c_str(), &database.handle, flags, nullptr) != SQLITE_OK)
    return database.failed("open");
  sqlite3_busy_timeout(database.handle, patience);
  sqlite3_limit(database.handle, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_db_config(database.handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database.handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database.handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  if (auto failed = database.prepareSchema(mode))
    return *failed;
  return database;
}

/// An empty file gets our tables. Two processes may both find it empty: all is looked at again under the lock. Each
/// look is one transaction: what another process writes between two numbers would make a file look foreign.
MaybeFailure Database::prepareSchema(Mode mode) {
  for (bool locked : {false, true}) {
    if (auto failed = execute(locked ? "BEGIN IMMEDIATE" : "BEGIN", locked ? "write" : "read"))
      return failed;
    auto version = number("PRAGMA user_version");
    auto id = version ? number("PRAGMA application_id") : version;
    auto tables = id && *version == 0 ? number("SELECT count(*) FROM sqlite_schema") : id;
    if (!locked)
      sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
    if (!tables)
      return tables.failure();
    bool fresh = *version == 0 && *id == 0 && *tables == 0;
    if (!fresh && *id != applicationId)
      return Failure::make(Diag::tuning_foreign, path, *id).hint("name another file with --database or GEMMC_TUNING");
    if (*version < 0)
      return Failure::make(Diag::tuning_corrupt, path, formatv("its version is {0}", *version).str())
          .hint("name another file with --database or GEMMC_TUNING");
    if (*version > schema)
      return Failure::make(Diag::tuning_newer, path, *version, schema)
          .hint("use that gemmc, or name another file with --database or GEMMC_TUNING");
    if (*version == schema)
      return locked ? execute("COMMIT", "write") : std::nullopt;
    if (mode == Mode::read && fresh) {
      empty = true;
      return std::nullopt;
    }
    if (!locked)
      continue;
    std::string sql = formatv("PRAGMA application_id = {0}; PRAGMA user_version = {1};", applicationId, int(schema));
    for (int64_t step = *version; step < schema; ++step)
      sql += std::string(steps[step]) + ";";
    return execute((sql + "COMMIT").c_str(), "write");
  }
  llvm_unreachable("the second round returns");
}

Outcome<std::optional<Tuned>> Database::find(const std::string &device, const std::string &problem) {
  if (empty)
    return std::optional<Tuned>();
  Statement row(handle, std::string("SELECT ") + columns + " FROM tuned WHERE device = ? AND problem = ?");
  if (!row)
    return failed("read");
  row.bind(1, device);
  row.bind(2, problem);
  int result = row.step();
  if (result == SQLITE_ROW)
    return std::optional(rowOf(row));
  if (result == SQLITE_DONE)
    return std::optional<Tuned>();
  return failed("read");
}

MaybeFailure Database::store(const Tuned &tuned) { return store(std::vector<Tuned>{tuned}); }

MaybeFailure Database::store(const std::vector<Tuned> &all) {
  if (auto failed = execute("BEGIN IMMEDIATE", "write"))
    return failed;
  MaybeFailure failure;
  {
    Statement row(handle,
                  std::string("INSERT OR REPLACE INTO tuned (") + columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    if (!row)
      failure = failed("write");
    for (const Tuned &tuned : failure ? std::vector<Tuned>() : all) {
      row.bind(1, tuned.device), row.bind(2, tuned.problem), row.bind(3, tuned.kernels), row.bind(4, tuned.choice);
      row.bind(5, tuned.sizes), row.bind(6, tuned.seconds), row.bind(7, tuned.cublasSeconds);
      row.bind(8, tuned.rounds), row.bind(9, tuned.date);
      if (row.step() != SQLITE_DONE) {
        failure = failed("write");
        break;
      }
      row.reset();
    }
  }
  if (!failure)
    return execute("COMMIT", "write");
  sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
  return failure;
}

MaybeFailure Database::check() {
  Statement row(handle, "PRAGMA integrity_check(1)");
  if (!row || row.step() != SQLITE_ROW)
    return failed("read");
  std::string answer = row.text(0);
  if (answer == "ok")
    return std::nullopt;
  return Failure::make(Diag::tuning_corrupt, path, answer)
      .hint("move the file away, and `gemmc tune` makes a new one; what it still has: `gemmc tune --export FILE`");
}

Outcome<std::vector<Tuned>> Database::all() {
  std::vector<Tuned> out;
  if (empty)
    return out;
  Statement row(handle, std::string("SELECT ") + columns + " FROM tuned ORDER BY device, problem");
  if (!row)
    return failed("read");
  int result;
  while ((result = row.step()) == SQLITE_ROW)
    out.push_back(rowOf(row));
  if (result != SQLITE_DONE)
    return failed("read");
  return out;
}

Outcome<std::string> defaultDatabase() {
  if (const char *named = std::getenv("GEMMC_TUNING"))
    return std::string(named);
  llvm::SmallString<128> path;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && llvm::sys::path::is_absolute(cache))
    path = cache;
  else if (home && *home)
    llvm::sys::path::append(path, home, ".cache");
  else
    return Failure::make(Diag::tuning_no_place).hint("name a file with --database or GEMMC_TUNING");
  llvm::sys::path::append(path, "gemmc", "tuning.db");
  return path.str().str();
}

} // namespace gemmc::tune
