/// --time-limit SECONDS, of the commands that run kernels on a GPU.
#pragma once
#include "Ranged.h"
#include "gemmc/Runtime/Device.h"

namespace gemmc::tool {

class TimeLimit {
public:
  explicit TimeLimit(llvm::cl::SubCommand &sub)
      : seconds("time-limit",
                llvm::cl::desc("GPU: seconds for what is launched together; what takes longer hangs, and that ends "
                               "the command (default: 60; 0: it is waited for)"),
                llvm::cl::init(60), llvm::cl::sub(sub)) {}
  bool given() const { return seconds.getNumOccurrences() > 0; }
  Outcome<std::shared_ptr<const Device>> openDevice() const { return gemmc::openDevice(seconds); }

private:
  Seconds<86400> seconds;
};

} // namespace gemmc::tool
