/// PTX of another compiler with its launch file, for `check` and `run`.
#pragma once
#include "Problem.h"
#include "gemmc/Run/Foreign.h"

namespace gemmc::tool {

struct ForeignInput {
  ptx::Module module;
  run::ForeignLaunch launch;
};

/// Reads `path` when it is a `.ptx` file that is launched by a file of docs/foreign-ptx.md: by `launchFile`, or by the
/// one beside it when it has no launch block of its own. Nullopt when it is something else, or (then `failed`) after a
/// reported error.
std::optional<ForeignInput> readForeignInput(llvm::StringRef path, llvm::StringRef launchFile, Diags &diags,
                                             bool &failed);

/// Whether no option says what the launch file does; reports the first that is given.
bool checkLaunchOptions(const ProblemInput &problem, Diags &diags);

} // namespace gemmc::tool
