#include "gemmc/Runtime/Ptxas.h"
#include "gemmc/Runtime/GpuModule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace gemmc {
namespace fs = llvm::sys::fs;
namespace {
using Path = llvm::SmallString<128>;

/// A directory only we can enter; removed with its files unless kept.
class TemporaryDirectory {
public:
  static Outcome<TemporaryDirectory> create() {
    Path pattern;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, pattern);
    std::string parent = pattern.str().str();
    llvm::sys::path::append(pattern, "gemmc-XXXXXX");
    TemporaryDirectory out;
    out.path = pattern;
    if (!mkdtemp(const_cast<char *>(out.path.c_str()))) { // mode 0700
      out.path.clear();
      return Failure::make(Diag::temporary_failed, parent, std::strerror(errno));
    }
    return out;
  }
  TemporaryDirectory(TemporaryDirectory &&other) : path(std::move(other.path)) { other.path.clear(); }
  ~TemporaryDirectory() {
    if (!path.empty())
      fs::remove_directories(path);
  }
  std::string file(llvm::StringRef name) const {
    Path full(path);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
  void keep() { path.clear(); }

private:
  TemporaryDirectory() = default;
  Path path;
};

/// Runs `arguments` with both outputs in `log`; the wait status. Nullopt: it ended, and nobody can say how, as this
/// process ignores SIGCHLD (a server, or what inherits that) or waits for every child elsewhere: both are its own
/// affair. Bounded by limits on the child, not by an alarm in this process, which may be somebody else's.
Outcome<std::optional<int>> runProgram(const std::vector<std::string> &arguments, const std::string &log,
                                       const PtxasOptions &options) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Failure::make(Diag::ptxas_failed, std::strerror(error)).hint("started as `" + arguments[0] + "`");
  rlimit time{options.seconds, options.seconds + 1}, memory{options.memory, options.memory}, core{0, 0};
  prlimit(child, RLIMIT_CPU, &time, nullptr);
  prlimit(child, RLIMIT_AS, &memory, nullptr);
  prlimit(child, RLIMIT_CORE, &core, nullptr);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == ECHILD)
      return std::optional<int>();
    if (errno != EINTR)
      return Failure::make(Diag::ptxas_failed, std::strerror(errno));
  }
  return std::optional(status);
}

std::string readWhole(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Messages of ptxas without the file's name, which says nothing to the reader.
std::string cleaned(llvm::StringRef log, llvm::StringRef file) {
  std::string out = log.trim().str();
  for (size_t at = out.find(file); at != std::string::npos; at = out.find(file))
    out.replace(at, file.size(), "ptx");
  return out;
}

/// Whether a log of ptxas has a message of an error: `ptxas FILE, line 7; error   : TEXT`, `ptxas fatal   : TEXT`.
bool tellsError(llvm::StringRef log) {
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n');
  return llvm::any_of(lines, [](llvm::StringRef line) {
    llvm::StringRef kind = line.split(" : ").first.rtrim();
    return kind.starts_with("ptxas ") && (kind.ends_with(" error") || kind.ends_with(" fatal"));
  });
}

/// Whether `file` is an ELF file with all of its tables, which lie behind what they tell of.
bool isWhole(llvm::StringRef file) {
  constexpr llvm::StringRef magic = "\x7f"
                                    "ELF\2\1"; // 64 bits, little endian
  if (file.size() < 64 || !file.starts_with(magic))
    return false;
  using llvm::support::endian::read16le, llvm::support::endian::read64le;
  auto ends = [&](unsigned start, unsigned bytes, unsigned count) {
    return llvm::SaturatingAdd(read64le(file.data() + start),
                               uint64_t(read16le(file.data() + bytes)) * read16le(file.data() + count));
  };
  return ends(32, 54, 56) <= file.size() && ends(40, 58, 60) <= file.size(); // of the segments, of the sections
}

/// The failure of a program that ended nobody knows how; nothing where `cubin` shows that it did its work.
MaybeFailure judgeByWork(const std::string &log, const std::string &cubin, const std::string &input,
                         const std::string &program) {
  std::string text = cleaned(log, input);
  if (tellsError(text))
    return Failure::make(Diag::ptxas_failed, text);
  if (isWhole(cubin))
    return std::nullopt;
  return Failure::make(Diag::ptxas_nothing, program)
      .hint("how it ended is not known: SIGCHLD is ignored here, or somebody else waited for it");
}

/// The failure behind a wait status; nothing for a clean exit.
MaybeFailure judge(int status, const std::string &log, const std::string &input, const PtxasOptions &options,
                   TemporaryDirectory &directory) {
  if (WIFSIGNALED(status)) {
    directory.keep();
    int signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGKILL)
      return Failure::make(Diag::ptxas_limit, options.seconds, input);
    return Failure::make(Diag::ptxas_crashed, signal, input);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return std::nullopt;
  std::string text = cleaned(log, input);
  return Failure::make(Diag::ptxas_failed, text.empty() ? "it says nothing" : text);
}
} // namespace

Outcome<std::string> findPtxas(llvm::StringRef toolkit) {
  if (const char *given = std::getenv("GEMMC_PTXAS"); given && *given) {
    if (fs::can_execute(given) && !fs::is_directory(given))
      return std::string(given);
    return Failure::make(Diag::ptxas_override, given);
  }
  auto found = llvm::sys::findProgramByName("ptxas");
  if (!found)
    found = llvm::sys::findProgramByName("ptxas", {toolkit});
  if (!found)
    return Failure::make(Diag::ptxas_missing, toolkit).hint("install the CUDA Toolkit (nvcc), or set GEMMC_PTXAS");
  return *found;
}

std::string architectureOn(unsigned sm, llvm::StringRef ptx) {
  llvm::StringRef target = targetOf(ptx);
  return target.ends_with("a") ? target.str() : "sm_" + std::to_string(sm);
}

Outcome<PtxasResult> assemblePtx(llvm::StringRef ptx, const PtxasOptions &options) {
  std::string program = options.program;
  if (program.empty()) {
    auto found = findPtxas();
    if (!found)
      return found.failure();
    program = *found;
  }
  auto directory = TemporaryDirectory::create();
  if (!directory)
    return directory.failure();
  std::string input = directory->file("kernel.ptx"), output = directory->file("kernel.cubin"),
              log = directory->file("log");
  {
    std::error_code error;
    llvm::raw_fd_ostream os(input, error);
    os << ptx;
    os.close();
    if (error || os.has_error()) {
      std::string why = error ? error.message() : os.error().message();
      os.clear_error();
      return Failure::make(Diag::temporary_failed, llvm::sys::path::parent_path(input), why);
    }
  }
  std::string target = options.target.empty() ? targetOf(ptx).str() : options.target;
  std::vector<std::string> arguments{program, "-v"};
  if (!target.empty())
    arguments.push_back("-arch=" + target);
  arguments.insert(arguments.end(), {"-o", output, input});

  auto status = runProgram(arguments, log, options);
  if (!status)
    return status.failure();
  std::string text = readWhole(log), cubin = readWhole(output);
  if (auto failed =
          *status ? judge(**status, text, input, options, *directory) : judgeByWork(text, cubin, input, program))
    return *failed;
  PtxasResult result;
  if (cubin.empty())
    return Failure::make(Diag::ptxas_nothing, program);
  result.cubin.assign(cubin.begin(), cubin.end());
  result.report = parsePtxasLog(text);
  return result;
}

} // namespace gemmc
