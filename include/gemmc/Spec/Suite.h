/// A suite: a list of problems, each a spec of its own, to be tuned or measured one after the other.
///
///     defaults: {a: {type: bf16, layout: row}, b: {layout: col}}
///     problems:
///       - {name: square, class: large, problem: {m: 4096, n: 4096, k: 4096}}
///
/// An entry is a spec in flow or block form with one key more, `class`, by which results are summed up; `defaults`
/// holds for all entries that do not say otherwise. The reader is as strict as that of specs.
#pragma once
#include "gemmc/Spec/Spec.h"

namespace gemmc {

struct SuiteProblem {
  Spec spec; ///< Its name is the entry's.
  std::string group;
};

/// Whether a text is a suite: it has the key `problems` at the start of a line, perhaps in quotes or behind `{`.
bool isSuite(llvm::StringRef text);
/// `text` is a source held by `diags`; the overrides apply to each entry. Nullopt after a reported error.
std::optional<std::vector<SuiteProblem>> readSuite(llvm::StringRef text, llvm::ArrayRef<Override> overrides,
                                                   Diags &diags);
/// Those with one of the `texts` in their name or class, in the suite's order; reports suite_only for each text that
/// none has.
std::optional<std::vector<SuiteProblem>> onlyThose(std::vector<SuiteProblem> problems,
                                                   llvm::ArrayRef<std::string> texts, Diags &diags);

} // namespace gemmc
