// Linked into test programs only: notes the name of each diagnostic that is reported, and appends them to a file of the
// build folder at the program's end. test/diag_coverage.py reads it.
#include "gemmc/Support/Diag.h"
#include <atomic>
#include <fcntl.h>
#include <unistd.h>

namespace {
// Lines of one write() to a file opened for appending do not mix with those of other test programs.
class Recorder {
public:
  Recorder() {
    gemmc::diagObserver = [](gemmc::Diag id) {
      seen[static_cast<unsigned>(id)].store(true, std::memory_order_relaxed);
    };
  }
  ~Recorder() {
    std::string names;
    for (unsigned id = 0; id < gemmc::numDiags(); ++id)
      if (seen[id].load(std::memory_order_relaxed))
        names += (gemmc::nameOf(static_cast<gemmc::Diag>(id)) + "\n").str();
    int file = names.empty() ? -1 : ::open(GEMMC_DIAG_RECORD, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
      return;
    if (::write(file, names.data(), names.size()) != ssize_t(names.size()))
      ::perror(GEMMC_DIAG_RECORD);
    ::close(file);
  }

private:
  static std::atomic<bool> seen[];
};
std::atomic<bool> Recorder::seen[] = {
#define GEMMC_DIAG(Name, Sev, Text) false,
#include "gemmc/Support/Diags.def"
#undef GEMMC_DIAG
};
Recorder recorder;
} // namespace
