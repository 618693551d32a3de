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

/// The plan of D^T, where it promises more than the estimates are wrong by when two tiles are alike.
std::optional<Plan> turned(const Draft &asItLies, const Spec &spec) {
  constexpr double least = 0.99;
  if (!mayTurn(asItLies))
    return std::nullopt;
  Diags scratch;
  Draft draft = emptyDraft(scratch);
  draft.turned = true;
  if (!decideAll(draft, spec) || !scratch.all().empty() || !mayTurn(draft) || draft.cost >= least * asItLies.cost)
    return std::nullopt;
  draft.spec().swapOperands.reason =
      formatv("tiles of D^T fit better: an estimated {0}% less than {1}x{2} takes as it lies",
              std::llround(100 * (1 - draft.cost / asItLies.cost)), asItLies.plan.blockM, asItLies.plan.blockN);
  addRequirements(draft);
  return std::move(draft.plan);
}
} // namespace

// Tiles come in steps of 64 along the kernel's m and 16 along its n: D^T has others. Its store is as fast (63 products
// of 384 to 3072 rows and 384 to 6144 columns, H200, 2026-11-23: what is alike takes 0.2% less, what the model
// expects to gain 8% or more gains 9; docs/hopper.md).
bool plan::mayTurn(const Draft &draft) {
  const Spec &s = draft.spec();
  bool open = !s.swapOperands.given && !s.block.given && !s.warp.given && !s.cluster.given;
  bool known = draft.extentM() && draft.extentN() && draft.extentK();
  return open && known && draft.wgmma() && !draft.stream && !draft.shifts() && draft.inputBits() == 16 &&
         *s.copy == CopyKind::tma && *s.split == SplitMode::none && *s.store == StoreKind::tma &&
         s.beta.value == Scale{0.0};
}

std::optional<Plan> makePlan(const Spec &spec, Diags &diags) {
  Draft draft = emptyDraft(diags);
  if (!decideAll(draft, spec))
    return std::nullopt;
  if (std::optional<Plan> other = turned(draft, spec))
    return other;
  addRequirements(draft);
  return std::move(draft.plan);
}

} // namespace gemmc
