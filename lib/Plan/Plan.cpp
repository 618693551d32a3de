#include "Draft.h"

namespace gemmc {
using namespace plan;

std::optional<Plan> makePlan(const Spec &spec, Diags &diags) {
  unsigned errors = diags.numErrors();
  Draft draft{Plan{}, diags, limitsOf(Target::sm_90a)};
  draft.plan.spec = spec;
  decideProblem(draft);
  if (decideFamily(draft)) {
    decideShape(draft);
    decideRest(draft);
  }
  if (diags.numErrors() != errors)
    return std::nullopt;
  addRequirements(draft);
  return std::move(draft.plan);
}

std::optional<Plan> makeFallbackPlan(const Spec &spec, Diags &diags) {
  Spec plain = spec;
  auto force = [](auto &field, auto value) { field = {value, true, field.range, ""}; };
  auto open = [](auto &field) { field = {}; };
  for (const OperandInfo &info : operandInfos)
    (plain.*info.operand).align = {};
  // One byte is a multiple that every pointer has; the planner's own check wants an element.
  auto elementAlign = [&](OperandSpec &operand, Elem fallback) {
    force(operand.align, bytesOf(operand.type.given ? *operand.type : fallback));
  };
  Elem input = plain.a.type.given ? *plain.a.type : plain.b.type.given ? *plain.b.type : Elem::bf16;
  Elem result = plain.d.type.given ? *plain.d.type : input;
  elementAlign(plain.a, input);
  elementAlign(plain.b, input);
  elementAlign(plain.c, result);
  elementAlign(plain.d, result);
  force(plain.instruction, Instruction::mma);
  force(plain.copy, CopyKind::ld);
  force(plain.block, std::array<int64_t, 3>{64, 64, 32});
  force(plain.warp, std::array<int64_t, 3>{32, 32, 32});
  open(plain.cluster), open(plain.stages), open(plain.schedule), open(plain.swizzle);
  open(plain.persistent), open(plain.store);
  open(plain.rasterOrder), open(plain.rasterGroup);
  return makePlan(plain, diags);
}

} // namespace gemmc
