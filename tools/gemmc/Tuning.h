/// The options by which a subcommand that plans finds measured choices.
#pragma once
#include "Tool.h"
#include "gemmc/Tune/Choose.h"

namespace gemmc::tool {

/// --database FILE --device-name NAME --no-tuning
class TuningInput {
public:
  explicit TuningInput(llvm::cl::SubCommand &sub);
  tune::ChooseOptions get() const;

private:
  llvm::cl::opt<std::string> database, deviceName;
  llvm::cl::opt<bool> off;
};

} // namespace gemmc::tool
