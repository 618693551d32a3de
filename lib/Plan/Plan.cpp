#include "Draft.h"
#include <cmath>

using llvm::formatv;

namespace gemmc {
using namespace plan;

namespace {
/// All steps. False where the spec has errors, which `draft.diags` has then.
bool decideAll(Draft &draft, const Spec &spec) {
  unsigned errors = draft.diags.numErrors();
  draft.plan.spec = spec;
  decideProblem(draft);
  if (decideFamily(draft)) {
    decideStream(draft);
    decideSplit(draft);
    decideShape(draft);
    decideRest(draft);
    decideFragments(draft);
    decideOverlap(draft);
  }
  return draft.diags.numErrors() == errors;
}

Draft emptyDraft(Diags &diags) { return Draft{Plan{}, diags, limitsOf(Target::sm_90a), nullptr}; }

const char *fittingTiles(const Draft &draft) {
  return draft.plan.swapped ? "tiles of D^T fit better" : "tiles of D itself fit better";
}

/// The plan of a stream's D^T, whose tiles of the long side come in other steps.
std::optional<Plan> turnedStream(const Draft &asItLies, const Spec &spec) {
  if (!mayTurnStream(asItLies))
    return std::nullopt;
  Diags scratch;
  Draft draft = emptyDraft(scratch);
  draft.way.turned = true;
  if (!decideAll(draft, spec) || !scratch.all().empty() || !draft.stream)
    return std::nullopt;
  double share = draft.stream->nanoseconds / asItLies.stream->nanoseconds;
  if (share >= 1)
    return std::nullopt;
  draft.spec().swapOperands.reason =
      formatv("{0}: an estimated {1}% less than {2}x{3} takes as it lies", fittingTiles(draft),
              std::llround(100 * (1 - share / doubtOfTurned(*draft.stream))), (*asItLies.spec().block)[0],
              (*asItLies.spec().block)[1]);
  addRequirements(draft);
  return std::move(draft.plan);
}

/// The plan of another way, where one is cheaper.
std::optional<Plan> otherWay(const Draft &asItLies, const Spec &spec) {
  if (asItLies.stream)
    return turnedStream(asItLies, spec);
  std::optional<Way> best;
  double cost = asItLies.cost;
  for (Way way : otherWays(asItLies)) {
    std::vector<Alternative> first = alternativesOf(spec, way, 1);
    if (!first.empty() && first.front().cost < cost)
      best = way, cost = first.front().cost;
  }
  if (!best)
    return std::nullopt;
  Diags scratch;
  Draft draft = emptyDraft(scratch);
  draft.way = *best;
  if (!decideAll(draft, spec) || !scratch.all().empty() || draft.cost >= asItLies.cost)
    return std::nullopt;
  const std::string saved = formatv("an estimated {0}% less than {1}x{2} takes as it lies",
                                    std::llround(100 * (1 - draft.cost / doubtOf(*best) / asItLies.cost)),
                                    (*asItLies.spec().block)[0], (*asItLies.spec().block)[1]);
  const char *fits = fittingTiles(draft);
  if (best->turned)
    draft.spec().swapOperands.reason = best->slices > 1 ? fits + std::string(" in slices") : fits + (": " + saved);
  if (best->slices > 1)
    draft.spec().split.reason = "few tiles, each of many steps: " + saved;
  addRequirements(draft);
  return std::move(draft.plan);
}
} // namespace

std::optional<Plan> makePlan(const Spec &spec, Diags &diags) {
  Draft draft = emptyDraft(diags);
  if (!decideAll(draft, spec))
    return std::nullopt;
  if (std::optional<Plan> other = otherWay(draft, spec))
    return other;
  addRequirements(draft);
  return std::move(draft.plan);
}

} // namespace gemmc
