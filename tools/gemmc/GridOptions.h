/// `--ctas` and `--sms` of the commands that run the emulator: how much of a kernel's grid runs, and how large it is.
#pragma once
#include "Problem.h"
#include "gemmc/Run/Harness.h"

namespace gemmc::tool {

class GridOptions {
public:
  explicit GridOptions(llvm::cl::SubCommand &command)
      : ctas("ctas", llvm::cl::desc("Emulator: run a sample of that many clusters (0 = all; default: by size)"),
             llvm::cl::sub(command)),
        sms("sms",
            llvm::cl::desc("Emulator: multiprocessors; with fewer, persistent CTAs take more tiles (default: 16)"),
            llvm::cl::init(16), llvm::cl::sub(command)) {}
  bool samples() const { return ctas.getNumOccurrences() > 0; }
  bool givesSms() const { return sms.getNumOccurrences() > 0; }
  unsigned numSms() const { return sms; }
  void putInto(run::RunRequest &request) const {
    if (samples())
      request.ctas = ctas;
  }
  /// Reports what does nothing; `launchFile`: one says what the grid is.
  void checkUse(bool launchFile, Diags &diags) const {
    if (givesSms() && launchFile)
      diags.report(Diag::option_useless, {}, "--sms", "the launch file says how many CTAs there are");
    else if (givesSms() && samples() && ctas)
      diags.report(Diag::option_useless, {}, "--sms", "with `--ctas` each CTA takes one tile");
  }

private:
  llvm::cl::opt<uint64_t> ctas;
  Count<1, 65536> sms;
};

} // namespace gemmc::tool
