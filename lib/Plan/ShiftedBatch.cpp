// A batch whose operands TMA cannot read as they lie: a kernel in front copies them, or its products are streams, one
// behind the other, whose lines a warpgroup shifts. Two plans say which is faster.
#include "Draft.h"
#include "gemmc/Plan/Analysis.h"

namespace gemmc::plan {
namespace {
/// Whether a spec leaves open how its operands are read, and one of them is in rows that TMA cannot read.
bool mayBeShifted(const Draft &draft) {
  const Spec &s = draft.spec();
  auto open = [](const OperandSpec &operand) { return !operand.repack.given || *operand.repack == Repack::inside; };
  return *s.target == Target::sm_90a && draft.inputBits() == 16 && open(s.a) && open(s.b) &&
         (promisedAlign(s.a) % 16 != 0 || promisedAlign(s.b) % 16 != 0);
}

/// The fastest of such streams, with the copy of the short operand in front: what it takes, and the operand whose lines
/// are shifted, the first one of both.
struct Shifted {
  double nanoseconds;
  const OperandInfo *operand;
};
std::optional<Shifted> fastestShifted(const Spec &spec, Way way) {
  Diags scratch = Diags::wordless();
  Draft draft = draftOf(spec, scratch, way);
  decideProblem(draft);
  if (scratch.hasErrors() || !mayBeShifted(draft) || !decideFamily(draft) || scratch.hasErrors() || !draft.shifts())
    return std::nullopt;
  const std::optional<Stream> stream = fastestStream(draft);
  if (!stream)
    return std::nullopt;
  const Shifted asItLies{stream->nanoseconds + copyBesideShifted(draft),
                         &operandInfos[draft.isShifted(draft.spec().a) ? 0 : 1]};
  if (!mayTurnStream(draft))
    return asItLies;
  way.turned = true;
  const std::optional<Shifted> turned = fastestShifted(spec, way);
  return turned && turned->nanoseconds < asItLies.nanoseconds ? *turned : asItLies;
}

/// Streams, and what is planned in their place.
struct Compared {
  Shifted streams;
  Instruction instruction; ///< Of the other plan.
  double otherwise;        ///< What it takes by its estimate, nanoseconds.
  bool pays;               ///< Whether streams are faster.
};

/// Copies and wgmma take what is estimated and up to a third more; small tiles by mma 0.7 to 1.25 times that, others,
/// which nobody has measured, 1.1 to 2.3 times (H200, 2026-12-01, docs/hopper-l2.md, *Lines of a batch*).
double weightOf(const Plan &otherwise) {
  constexpr double measured = 0.95, unmeasured = 1.4;
  if (*otherwise.spec.instruction == Instruction::wgmma)
    return 1;
  Diags scratch = Diags::wordless();
  return hasMeasuredTiles(Draft{otherwise, scratch, limitsOf(*otherwise.spec.target)}) ? measured : unmeasured;
}

Way batched(Way way) {
  way.batched = true;
  return way;
}

std::optional<Compared> compare(const Spec &spec, Way way) {
  const std::optional<Shifted> streams = fastestShifted(spec, batched(way));
  if (!streams)
    return std::nullopt;
  Diags scratch = Diags::wordless();
  const std::optional<Plan> plan = planOfWay(spec, scratch, way);
  if (!plan)
    return std::nullopt;
  const Analysis analysis = analyse(*plan, 0);
  const double otherwise = (analysis.seconds + analysis.copies) * 1e9;
  return Compared{*streams, *plan->spec.instruction, otherwise, streams->nanoseconds < weightOf(*plan) * otherwise};
}
} // namespace

Way wayOfLines(const Spec &spec, Way way) {
  if (!isBatch(spec))
    return orShallow(spec, way);
  const std::optional<Compared> compared = compare(spec, way);
  return compared && compared->pays ? batched(way) : way;
}

std::optional<RepackChoice> otherRepackOfBatch(const Spec &spec) {
  const std::optional<Compared> compared = compare(spec, {});
  if (!compared || (spec.*compared->streams.operand->operand).repack.given)
    return std::nullopt;
  const auto operand = compared->streams.operand->operand;
  const char *path = operand == &Spec::a ? "a.repack" : "b.repack";
  const double times = compared->streams.nanoseconds / compared->otherwise;
  if (!compared->pays)
    return RepackChoice{operand, path, Repack::inside, times};
  const bool copied = compared->instruction == Instruction::wgmma;
  return RepackChoice{operand, path, Repack::on, copied ? std::optional(1 / times) : std::nullopt};
}

} // namespace gemmc::plan
