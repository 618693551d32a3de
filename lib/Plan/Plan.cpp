#include "Draft.h"

namespace gemmc {
using namespace plan;

std::optional<Plan> makePlan(const Spec &spec, Diags &diags) {
  unsigned errors = diags.numErrors();
  Draft draft{Plan{}, diags, limitsOf(Target::sm_90a), nullptr};
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
  if (diags.numErrors() != errors)
    return std::nullopt;
  addRequirements(draft);
  return std::move(draft.plan);
}

} // namespace gemmc
