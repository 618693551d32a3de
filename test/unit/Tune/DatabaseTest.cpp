// The tuning database: what is stored comes back, from any number of processes, whatever happens to them; and files
// that are not ours, or broken, are failures that say what to do.
#include "gemmc/Tune/Database.h"
#include "Pace.h"
#include "Temporary.h"
#include <csignal>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gemmc;
using namespace gemmc::tune;
using Mode = Database::Mode;

namespace {
/// Every field follows from `number`, so that a torn row shows.
Tuned row(int number) {
  Tuned tuned;
  tuned.device = "NVIDIA H200";
  tuned.problem = "problem " + std::to_string(number);
  tuned.choice = "tile.block=[128," + std::to_string(number) + ",64]" + std::string(300, 'x');
  tuned.sizes = std::to_string(number) + "x1x1";
  tuned.seconds = number * 1e-6;
  tuned.cublasSeconds = number * 2e-6;
  tuned.rounds = number;
  tuned.date = "2026-11-21";
  return tuned;
}

Database opened(const std::string &path, Mode mode = Mode::write) {
  auto database = Database::open(path, mode);
  EXPECT_TRUE(bool(database)) << database.failure().str();
  return std::move(*database);
}

Diag failureOf(const std::string &path, Mode mode = Mode::read) {
  auto database = Database::open(path, mode, 20);
  EXPECT_FALSE(bool(database));
  return database.failure().id;
}

void sql(const std::string &path, const char *text) {
  sqlite3 *handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  char *why = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, text, nullptr, nullptr, &why), SQLITE_OK) << why;
  sqlite3_close(handle);
}

/// All rows of a sound database are whole.
void expectWhole(Database &database) {
  if (auto damaged = database.check())
    ADD_FAILURE() << damaged->str();
  auto rows = database.all();
  ASSERT_TRUE(bool(rows)) << rows.failure().str();
  for (const Tuned &tuned : *rows)
    EXPECT_EQ(tuned.choice, row(int(tuned.rounds)).choice);
}
} // namespace

TEST(Database, KeepsWhatIsStored) {
  Temporary folder;
  std::string path = folder.file("new/folder/tuning.db");
  {
    Database database = opened(path);
    EXPECT_FALSE(database.store(row(7)));
    Tuned again = row(7);
    again.seconds = 1;
    EXPECT_FALSE(database.store(again)); // in the place of the first
    EXPECT_FALSE(database.store({row(3), row(5)}));
  }
  Database database = opened(path, Mode::read);
  auto found = database.find("NVIDIA H200", "problem 7");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->seconds, 1);
  EXPECT_EQ((*found)->choice, row(7).choice);
  EXPECT_EQ((*found)->sizes, "7x1x1");
  EXPECT_EQ((*found)->kernels, kernelVersion);
  EXPECT_EQ((*found)->date, "2026-11-21");
  auto other = database.find("NVIDIA H100", "problem 7");
  EXPECT_TRUE(other && !*other);
  auto all = database.all();
  ASSERT_TRUE(bool(all));
  EXPECT_EQ(all->size(), 3u);
}

TEST(Database, SaysWhatWasMeasured) {
  Tuned tuned = row(1);
  tuned.seconds = 203.21e-6, tuned.cublasSeconds = 207.5e-6;
  EXPECT_EQ(tuned.str(), "measured on NVIDIA H200 2026-11-21: 203.2 us, 1.021 of cuBLASLt's best");
  tuned.cublasSeconds = 0;
  EXPECT_EQ(tuned.str(), "measured on NVIDIA H200 2026-11-21: 203.2 us");
}

TEST(Database, AnEmptyFileIsANewDatabase) {
  Temporary folder;
  std::string path = folder.write("tuning.db", "");
  {
    Database database = opened(path, Mode::read);
    auto found = database.find("x", "y");
    EXPECT_TRUE(found && !*found);
    EXPECT_TRUE(database.all()->empty());
    EXPECT_FALSE(database.check());
  }
  Database database = opened(path);
  EXPECT_FALSE(database.store(row(1)));
}

TEST(Database, FilesOfOthersAreLeftAlone) {
  Temporary folder;
  EXPECT_EQ(failureOf(folder.write("text", std::string(5000, 'x'))), Diag::tuning_corrupt);
  EXPECT_EQ(failureOf(folder.write("short", "hello")), Diag::tuning_corrupt);
  std::string path = folder.file("foreign.db");
  sql(path, "CREATE TABLE bookmarks (url TEXT)");
  EXPECT_EQ(failureOf(path), Diag::tuning_foreign);
  EXPECT_EQ(failureOf(path, Mode::write), Diag::tuning_foreign);
  path = folder.file("other.db");
  sql(path, "PRAGMA application_id = 77; PRAGMA user_version = 1");
  EXPECT_EQ(failureOf(path, Mode::write), Diag::tuning_foreign);
}

TEST(Database, NewerSchemasAreRefused) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  opened(path);
  sql(path, "PRAGMA user_version = 2");
  EXPECT_EQ(failureOf(path), Diag::tuning_newer);
  EXPECT_EQ(failureOf(path, Mode::write), Diag::tuning_newer);
}

TEST(Database, ATableOfOurNameWithOtherColumnsIsNoDatabase) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  opened(path);
  sql(path, "DROP TABLE tuned; CREATE TABLE tuned (device TEXT)");
  Database database = opened(path);
  EXPECT_EQ(database.find("a", "b").failure().id, Diag::tuning_corrupt);
  EXPECT_EQ(database.all().failure().id, Diag::tuning_corrupt);
  EXPECT_EQ(database.store(row(1))->id, Diag::tuning_corrupt);
}

TEST(Database, PlacesThatCannotBe) {
  Temporary folder;
  std::string file = folder.write("file", "");
  EXPECT_EQ(failureOf(file + "/tuning.db", Mode::write), Diag::tuning_access);
  EXPECT_EQ(failureOf(folder.file("missing.db")), Diag::tuning_access);
  EXPECT_EQ(failureOf(folder.file(""), Mode::write), Diag::tuning_access);
}

TEST(Database, DamagedPagesNeverCrash) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  {
    Database database = opened(path);
    std::vector<Tuned> rows;
    for (int i = 1; i <= 200; ++i)
      rows.push_back(row(i));
    EXPECT_FALSE(database.store(rows));
  }
  std::string good;
  {
    std::ifstream in(path, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_GT(good.size(), 20000u);
  unsigned noticed = 0;
  for (size_t at = 0; at < good.size(); at += 997) {
    std::string bad = good;
    for (size_t i = at; i < std::min(at + 64, bad.size()); ++i)
      bad[i] = char(bad[i] ^ 0xa5);
    std::string copy = folder.write("bad.db", bad);
    auto database = Database::open(copy, Mode::write, 20);
    if (!database) {
      ++noticed;
      continue;
    }
    bool sound = !database->check();
    auto rows = database->all();
    auto one = database->find("NVIDIA H200", "problem 100");
    MaybeFailure stored = database->store(row(500));
    noticed += !sound || !rows || !one || stored;
  }
  EXPECT_GT(noticed, 5u);
  std::string half = folder.write("half.db", good.substr(0, good.size() / 2));
  auto database = Database::open(half, Mode::read, 20);
  EXPECT_TRUE(!database || database->check());
}

TEST(Database, ABusyDatabaseIsAFailure) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  opened(path);
  sqlite3 *handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(failureOf(path), Diag::tuning_busy);
  sqlite3_close(handle);
  opened(path, Mode::read);
}

TEST(Database, HostileTextsAreMadeHarmless) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  Database database = opened(path);
  Tuned tuned = row(1);
  tuned.choice = "\x1b[31m\xff\n";
  EXPECT_FALSE(database.store(tuned));
  auto found = database.find(tuned.device, tuned.problem);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->choice, "?[31m\xef\xbf\xbd?");
}

TEST(Database, ManyProcessesWriteAtOnce) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  constexpr int writers = 4, each = 12;
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    pid_t child = fork();
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < each && good; ++i) {
        auto database = Database::open(path, Mode::write, 60000);
        good = database && !database->store(row(writer * each + i));
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Database database = opened(path, Mode::read);
  expectWhole(database);
  EXPECT_EQ(database.all()->size(), size_t(writers * each));
}

// One of them makes the tables while the others look whether there are any.
TEST(Database, ManyProcessesMakeItAtOnce) {
  Temporary folder;
  constexpr int files = gemmc::test::cases(60), writers = 6;
  for (int i = 0; i < files; ++i) {
    std::string path = folder.file("tuning" + std::to_string(i) + ".db");
    std::vector<pid_t> children;
    for (int writer = 0; writer < writers; ++writer) {
      pid_t child = fork();
      if (child == 0) {
        auto database = Database::open(path, Mode::write, 60000);
        _exit(database && !database->store(row(writer)) ? 0 : 1);
      }
      children.push_back(child);
    }
    for (pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << path;
    }
    EXPECT_EQ(opened(path, Mode::read).all()->size(), size_t(writers)) << path;
  }
}

TEST(Database, AKilledProcessLeavesASoundDatabase) {
  Temporary folder;
  std::string path = folder.file("tuning.db");
  size_t before = 0;
  for (int attempt = 0; attempt < 12; ++attempt) {
    pid_t child = fork();
    if (child == 0) {
      auto database = Database::open(path, Mode::write, 60000);
      for (int i = 0; database; ++i) // several rows at once, so that there is a middle to die in
        if (database->store({row(i % 400), row(i % 400 + 400), row(i % 400 + 800)}))
          _exit(1);
      _exit(1);
    }
    usleep(15000 + 3711 * attempt);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it should have been writing";
    if (!llvm::sys::fs::exists(path))
      continue;                                   // killed before its first step
    Database database = opened(path, Mode::read); // rolls back what was left
    expectWhole(database);
    size_t rows = database.all()->size();
    EXPECT_EQ(rows % 3, 0u) << "a transaction was cut in two";
    EXPECT_GE(rows, before) << "something finished was lost";
    before = rows;
  }
  EXPECT_GT(before, 0u) << "nothing was written at all: too slow a machine for this test";
}

TEST(Database, TheUsualPlace) {
  auto set = [](const char *name, const char *value) { value ? setenv(name, value, 1) : unsetenv(name); };
  set("GEMMC_TUNING", "/somewhere/x.db");
  EXPECT_EQ(*defaultDatabase(), "/somewhere/x.db");
  set("GEMMC_TUNING", "");
  EXPECT_EQ(*defaultDatabase(), "");
  set("GEMMC_TUNING", nullptr);
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(*defaultDatabase(), "/cache/gemmc/tuning.db");
  std::string home = getenv("HOME") ? getenv("HOME") : "";
  set("XDG_CACHE_HOME", nullptr);
  set("HOME", "/home/me");
  EXPECT_EQ(*defaultDatabase(), "/home/me/.cache/gemmc/tuning.db");
  set("HOME", nullptr);
  EXPECT_EQ(defaultDatabase().failure().id, Diag::tuning_no_place);
  set("HOME", home.c_str());
}
