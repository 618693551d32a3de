#include "gemmc/Support/UniqueFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace gemmc {

std::error_code createUniqueFile(const llvm::Twine &prefix, llvm::StringRef suffix, unsigned mode, int &handle,
                                 std::string &path) {
  constexpr int attempts = 128;
  std::error_code error;
  for (int i = 0; i < attempts; ++i) {
    llvm::SmallString<16> letters;
    llvm::sys::fs::createUniquePath("%%%%%%%%", letters, /*MakeAbsolute=*/false);
    path = (prefix + letters + suffix).str();
    error = llvm::sys::fs::openFileForWrite(path, handle, llvm::sys::fs::CD_CreateNew, llvm::sys::fs::OF_None, mode);
    if (error != std::errc::file_exists)
      break;
  }
  return error;
}

} // namespace gemmc
