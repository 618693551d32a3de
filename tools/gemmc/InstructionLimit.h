/// `--max-instructions` of the commands that run the emulator.
#pragma once
#include "gemmc/Run/Harness.h"
#include "llvm/Support/CommandLine.h"

namespace gemmc::tool {

class InstructionLimit {
public:
  explicit InstructionLimit(llvm::cl::SubCommand &command)
      : option("max-instructions",
               llvm::cl::desc(
                   "Emulator: warp instructions of one cluster, turns that change nothing not counted, after which "
                   "it is `incomplete` (default: 2^28, 2^24 while races are searched for, more for large "
                   "products; 0: none)"),
               llvm::cl::sub(command)) {}
  bool given() const { return option.getNumOccurrences() > 0; }
  void putInto(run::RunRequest &request) const {
    if (given())
      request.maxInstructions = option.getValue() ? option.getValue() : ~uint64_t(0);
  }

private:
  llvm::cl::opt<uint64_t> option;
};

} // namespace gemmc::tool
