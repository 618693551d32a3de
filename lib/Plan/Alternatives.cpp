// The ranking as a list: what a tuner tries.
#include "Draft.h"

using llvm::formatv;

namespace gemmc {
using namespace plan;

namespace {
std::string textOf(std::array<int64_t, 3> tile) { return formatv("[{0},{1},{2}]", tile[0], tile[1], tile[2]); }

std::string choiceOf(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  std::string words;
  auto add = [&](bool given, llvm::StringRef path, const std::string &value) {
    if (!given)
      words += formatv("{0}{1}={2}", words.empty() ? "" : " ", path, value).str();
  };
  add(s.schedule.given, "pipeline.schedule", nameOf(shape.schedule).str());
  add(s.block.given, "tile.block", textOf(kernelView(draft, {shape.m, shape.n, shape.k})));
  add(s.warp.given, "tile.warp", textOf(kernelView(draft, {shape.warpM, shape.warpN, shape.warpK})));
  return words;
}
} // namespace

std::vector<Alternative> alternatives(const Spec &spec, unsigned count, Diags &diags) {
  unsigned errors = diags.numErrors();
  Draft draft{Plan{}, diags, limitsOf(Target::sm_90a), nullptr};
  draft.plan.spec = spec;
  decideProblem(draft);
  if (!decideFamily(draft) || diags.numErrors() != errors)
    return {};
  decideStore(draft);
  std::vector<Alternative> found;
  for (const Ranked &next : rank(draft, candidates(draft))) {
    if (count && found.size() == count)
      break;
    Diags scratch;
    checkShape(draft, next.shape, scratch);
    if (!scratch.hasErrors())
      found.push_back({choiceOf(draft, next.shape), next.estimate.clocks});
  }
  return found;
}

} // namespace gemmc
