/// At least one instruction for every choice of every row of the table: what the round-trip and ptxas tests run on.
#pragma once
#include "gemmc/PTX/Ops.h"
#include <string>
#include <vector>

namespace gemmc::ptx::test {

/// An instruction with the lowest target and PTX version with which the verifier accepts it.
struct RowLine {
  Op op;
  std::string text;   ///< "add.u32 r32_0, r32_1, r32_2;"
  std::string target; ///< "sm_80"
  unsigned version;   ///< 70
};

/// Lines for all rows. `missing` gets "Row.choice" for each choice for which no verified line was found.
std::vector<RowLine> allRowLines(std::vector<std::string> &missing);

/// A module whose kernels declare what the lines use: a wgmma for itself (it binds many registers), other lines
/// together.
std::string moduleOf(llvm::ArrayRef<std::string> lines, llvm::StringRef target, unsigned version);

/// Parses, and fails the test with the problems when it cannot.
std::optional<Module> parseOrFail(llvm::StringRef text, Diags &diags);
std::string problemsOf(const Diags &diags);

} // namespace gemmc::ptx::test
