// Choices that somebody has made before: a measured one, or one of the planner's alternatives.
#include "Table.h"

using llvm::StringRef;

namespace gemmc {
using namespace spec;

std::optional<std::vector<std::string>> applyChoice(Spec &spec, StringRef words, Diags &diags) {
  unsigned errors = diags.numErrors();
  std::vector<std::string> applied;
  llvm::SmallVector<StringRef> parts;
  words.split(parts, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto override = parseOverride(part, diags);
    const Row *row = override ? findRow(override->path) : nullptr;
    if (!row) {
      if (override)
        diags.report(Diag::spec_unknown_key, {}, override->path, "a choice", "the paths of `gemmc reference`");
      continue;
    }
    if (row->given(spec))
      continue;
    auto value = parseYaml(diags.addSource("choice", override->value), diags);
    if (value && row->read(spec, *value, *row, diags))
      applied.push_back(override->path);
  }
  if (diags.numErrors() != errors)
    return std::nullopt;
  return applied;
}

void settleChoice(Spec &spec, llvm::ArrayRef<std::string> paths, StringRef reason) {
  for (const std::string &path : paths)
    findRow(path)->settle(spec, reason);
}

} // namespace gemmc
