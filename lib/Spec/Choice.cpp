// Choices that somebody has made before: a measured one, or one of the planner's alternatives.
#include "Table.h"

using llvm::StringRef;

namespace gemmc {
using namespace spec;

namespace {
/// What a spec says of one field may rule out what a choice has for another: a trigger is for kernels that overlap, one
/// at the sums for CTAs that know their last tile.
bool isRuledOut(const Spec &spec, StringRef path) {
  if (path == "launch.dependent")
    return spec.trigger.given && *spec.trigger != Trigger::start;
  bool alone = spec.dependent.given && *spec.dependent == Persistence::off;
  return path == "launch.trigger" && (alone || (spec.scheduler.given && *spec.scheduler == Scheduler::dynamic));
}
} // namespace

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
    if (row->given(spec) || isRuledOut(spec, override->path))
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
