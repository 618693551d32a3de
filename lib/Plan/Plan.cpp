#include "Vector.h"
#include <cmath>

using llvm::formatv;

namespace gemmc {
using namespace plan;

namespace {
/// All steps. False where the spec has errors, which `draft.diags` has then.
bool decideAll(Draft &draft) {
  unsigned errors = draft.diags.numErrors();
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

const char *fittingTiles(const Draft &draft) {
  return draft.plan.swapped ? "tiles of D^T fit better" : "tiles of D itself fit better";
}

/// `share`: of the time that the plan as it lies takes.
std::string savedBeside(const Draft &asItLies, double share) {
  const auto &block = *asItLies.spec().block;
  return formatv("an estimated {0}% less than {1}x{2} takes as it lies", std::llround(100 * (1 - share)), block[0],
                 block[1]);
}

/// The plan of a stream's D^T, whose tiles of the long side come in other steps.
std::optional<Plan> turnedStream(const Draft &asItLies, const Spec &spec) {
  if (!mayTurnStream(asItLies))
    return std::nullopt;
  Diags scratch;
  Way turned = asItLies.way;
  turned.turned = true;
  Draft draft = draftOf(spec, scratch, turned);
  if (!decideAll(draft) || !scratch.all().empty() || !draft.stream || draft.shifts() != asItLies.shifts())
    return std::nullopt;
  auto timeOf = [](const Draft &way) { return way.stream->nanoseconds + copyBesideShifted(way); };
  const double share = timeOf(draft) / timeOf(asItLies);
  if (share >= 1)
    return std::nullopt;
  draft.spec().swapOperands.reason = fittingTiles(draft) + (": " + savedBeside(asItLies, share / doubtOfTurned(draft)));
  addRequirements(draft);
  return std::move(draft.plan);
}

/// The plan of another way, where one is cheaper.
std::optional<Plan> otherWay(const Draft &asItLies, const Spec &spec) {
  if (asItLies.stream)
    return turnedStream(asItLies, spec);
  std::optional<Way> best;
  double cost = asItLies.cost;
  for (Way way : otherWays(asItLies))
    if (std::optional<double> less = costOfWay(spec, way, cost))
      best = way, cost = *less;
  if (!best)
    return std::nullopt;
  Diags scratch;
  Draft draft = draftOf(spec, scratch, *best);
  if (!decideAll(draft) || !scratch.all().empty() || draft.cost >= asItLies.cost)
    return std::nullopt;
  const std::string saved = savedBeside(asItLies, draft.cost / doubtOf(draft) / asItLies.cost);
  const char *fits = fittingTiles(draft);
  if (best->turned && best->slices == 1 && leavesFasterTurned(draft))
    draft.spec().swapOperands.reason = "lines of d start anywhere: tiles of D^T leave straight from registers";
  else if (best->turned)
    draft.spec().swapOperands.reason = best->slices > 1 ? fits + std::string(" in slices") : fits + (": " + saved);
  if (best->slices > 1)
    draft.spec().split.reason = "few tiles, each of many steps: " + saved;
  addRequirements(draft);
  return std::move(draft.plan);
}
} // namespace

Draft plan::draftOf(const Spec &spec, Diags &diags, Way way) {
  Draft draft{Plan{}, diags, limitsOf(Target::sm_90a), nullptr};
  draft.plan.spec = spec;
  for (Field<Repack> *repack : {&draft.spec().a.repack, &draft.spec().b.repack}) // asked for before it is decided
    if (!repack->given)
      repack->value = Repack::off;
  draft.way = way;
  return draft;
}

std::optional<Plan> plan::planAsItIs(const Spec &spec, Diags &diags) {
  std::optional<Plan> plan = planByFamily(spec, diags);
  if (std::optional<ByMma> small = plan ? planByMma(spec, *plan) : std::nullopt)
    plan = std::move(small->plan);
  if (std::optional<ByVector> vector = plan ? planByVector(spec, *plan) : std::nullopt; vector && vector->times > 1)
    return std::move(vector->plan);
  return plan;
}

std::optional<Plan> plan::planByFamily(const Spec &spec, Diags &diags) {
  std::optional<Plan> alike = planAsSixteenBits(spec);
  return alike ? std::move(alike) : planDirectly(spec, diags);
}

std::optional<Plan> plan::planDirectly(const Spec &spec, Diags &diags, Way way) {
  if (asksForVector(spec))
    return planVector(spec, diags);
  return planOfWay(spec, diags, wayOfLines(spec, way));
}

std::optional<Plan> plan::planOfWay(const Spec &spec, Diags &diags, Way way) {
  Draft draft = draftOf(spec, diags, way);
  if (!decideAll(draft))
    return std::nullopt;
  if (std::optional<Plan> other = otherWay(draft, spec))
    return other;
  addRequirements(draft);
  return std::move(draft.plan);
}

std::optional<Plan> makePlan(const Spec &spec, Diags &diags) {
  if (const std::optional<FoldedBatch> folded = foldedBatch(spec)) {
    std::optional<Plan> plan = makePlan(folded->one, diags);
    if (plan)
      folded->unfold(plan->spec);
    return plan;
  }
  std::optional<Plan> typical = planForTypicalSizes(spec);
  return typical ? std::move(typical) : planAsItIs(spec, diags);
}

} // namespace gemmc
