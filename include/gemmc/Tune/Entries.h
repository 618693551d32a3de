/// Measurements as YAML text: what `gemmc tune --export` writes, `--import` reads and lib/Tune/tables has.
///
///     entries:
///       - {device: NVIDIA H200, kernels: 1, problem: "sm_90a 4096x...", choice: "tile.block=[128,256,64] ...", ...}
///
/// One entry a line, so that the entry of a problem can be found without reading all.
#pragma once
#include "gemmc/Tune/Database.h"
#include "llvm/ADT/ArrayRef.h"

namespace gemmc::tune {

std::string printEntries(llvm::ArrayRef<Tuned> entries);
/// The comment that a table begins with, to be written again in front of newer entries.
llvm::StringRef headComment(llvm::StringRef text);
/// Nullopt after a reported error. `text` is a source held by `diags`. Each choice is checked: it sets fields that
/// exist and say how, not what, is computed.
std::optional<std::vector<Tuned>> readEntries(llvm::StringRef text, Diags &diags);

/// The entry of the tables that gemmc ships.
std::optional<Tuned> findBuiltIn(llvm::StringRef device, llvm::StringRef problem);
/// The tables' texts, by file name: for the test that reads them.
std::vector<std::pair<std::string, std::string>> builtInTables();

/// The three sizes of a problem's text, each a number or one that is given at launch (isOpenSize).
std::array<llvm::StringRef, 3> sizesOfProblem(llvm::StringRef problem);
/// `dynamic`, `dynamic~64`.
inline bool isOpenSize(llvm::StringRef size) { return size.starts_with("dynamic"); }

/// Whether a choice sets only fields that say how: else why not.
std::optional<std::string> whyNoChoice(llvm::StringRef choice);

} // namespace gemmc::tune
