/// Many modules assembled at a time.
#pragma once
#include "gemmc/Run/Executor.h"

namespace gemmc::run {

/// What a module is loaded from: its cubin, or its PTX text where nobody has assembled it.
struct Image {
  const Code *code = nullptr;
  std::vector<char> cubin;
  llvm::StringRef text() const {
    return cubin.empty() ? llvm::StringRef(code->ptx) : llvm::StringRef(cubin.data(), cubin.size());
  }
};

/// Assembles on all cores with the toolkit's ptxas, for a device of compute capability `sm` / 10. One module is left to
/// the driver, as are all where there is no ptxas, and those that it refuses (the driver's message then says why).
std::vector<Image> assembleAll(llvm::ArrayRef<const Code *> codes, unsigned sm);

} // namespace gemmc::run
