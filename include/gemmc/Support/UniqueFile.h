/// Names for files that are written first and then renamed to where they belong.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <system_error>

namespace gemmc {

/// Makes a file that was not there, `prefix`, eight random letters and `suffix`, and opens it for writing. `mode`:
/// llvm::sys::fs::perms. (LLVM's function of that name takes each `%` of a path for a letter that is to be made.)
std::error_code createUniqueFile(const llvm::Twine &prefix, llvm::StringRef suffix, unsigned mode, int &handle,
                                 std::string &path);

} // namespace gemmc
