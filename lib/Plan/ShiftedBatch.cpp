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

/// Nanoseconds that streams must take less than. Copies and wgmma take what is estimated and up to a third more; small
/// tiles by mma 0.7 to 1.25 times that, others, which nobody has measured, 1.1 to 2.3 times (H200, 2026-12-01,
/// docs/hopper-l2.md, *Lines of a batch*).
double mostWorthwhile(const Plan &otherwise) {
  constexpr double measured = 0.95, unmeasured = 1.4;
  const Analysis analysis = analyse(otherwise, 0);
  const double nanoseconds = (analysis.seconds + analysis.copies) * 1e9;
  if (*otherwise.spec.instruction == Instruction::wgmma)
    return nanoseconds;
  Diags scratch = Diags::wordless();
  const Draft draft{otherwise, scratch, limitsOf(*otherwise.spec.target)};
  return (hasMeasuredTiles(draft) ? measured : unmeasured) * nanoseconds;
}

/// What the fastest of such streams takes, and the copy of the short operand in front; nullopt where lines are not
/// shifted.
std::optional<double> nanosecondsOf(const Spec &spec, Way way) {
  Diags scratch = Diags::wordless();
  Draft draft = draftOf(spec, scratch, way);
  decideProblem(draft);
  if (scratch.hasErrors() || !mayBeShifted(draft) || !decideFamily(draft) || scratch.hasErrors() || !draft.shifts())
    return std::nullopt;
  const std::optional<Stream> stream = fastestStream(draft);
  if (!stream)
    return std::nullopt;
  const double asItLies = stream->nanoseconds + copyBesideShifted(draft);
  if (!mayTurnStream(draft))
    return asItLies;
  way.turned = true;
  const std::optional<double> turned = nanosecondsOf(spec, way);
  return turned ? std::min(asItLies, *turned) : asItLies;
}

Way orBatched(const Spec &spec, Way way) {
  Way batched = way;
  batched.batched = true;
  const std::optional<double> streams = nanosecondsOf(spec, batched);
  if (!streams)
    return way;
  Diags scratch = Diags::wordless();
  const std::optional<Plan> otherwise = planOfWay(spec, scratch, way);
  return otherwise && *streams < mostWorthwhile(*otherwise) ? batched : way;
}
} // namespace

Way wayOfLines(const Spec &spec, Way way) { return isBatch(spec) ? orBatched(spec, way) : orShallow(spec, way); }

} // namespace gemmc::plan
