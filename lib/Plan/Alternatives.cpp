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
  if (draft.stream || rowsSplitSectors(draft))
    add(s.cluster.given, "tile.cluster", textOf(kernelView(draft, {shape.clusterM, shape.clusterN, shape.clusterK})));
  return words;
}
void rankInto(Draft &draft, unsigned count, std::vector<Alternative> &found) {
  decideEpilogue(draft);
  for (const Ranked &next : rank(draft, candidates(draft))) {
    if (count && found.size() >= count)
      break;
    Diags scratch;
    checkShape(draft, next.shape, scratch);
    if (!scratch.hasErrors())
      found.push_back({choiceOf(draft, next.shape), next.estimate.clocks});
  }
}
} // namespace

std::vector<Alternative> alternatives(const Spec &spec, unsigned count, Diags &diags) {
  unsigned errors = diags.numErrors();
  Draft draft{Plan{}, diags, limitsOf(Target::sm_90a), nullptr};
  draft.plan.spec = spec;
  decideProblem(draft);
  if (!decideFamily(draft) || diags.numErrors() != errors)
    return {};
  std::vector<Alternative> found;
  // A skinny product: first the cut that streams it.
  for (decideStream(draft); draft.stream; draft.stream.reset()) {
    decideSplit(draft);
    rankInto(draft, count, found);
  }
  decideSplit(draft);
  rankInto(draft, count, found);
  return found;
}

} // namespace gemmc
