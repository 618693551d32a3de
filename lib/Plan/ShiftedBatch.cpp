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

/// What streams must promise: of 40 batches, each way, what these choose is the faster one but for one, 2% slower
/// (H200, 2026-12-01, docs/hopper-l2.md, *Lines of a batch*).
constexpr double surely = 0.95;

Way orBatched(const Spec &spec, Way way) {
  Diags scratch = Diags::wordless();
  Way batched = way;
  batched.batched = true;
  Draft draft = draftOf(spec, scratch, batched);
  decideProblem(draft);
  if (scratch.hasErrors() || !isBatch(draft.spec()) || !mayBeShifted(draft))
    return way;
  if (!decideFamily(draft) || scratch.hasErrors() || !draft.shifts())
    return way;
  const std::optional<Stream> stream = fastestStream(draft);
  const std::optional<Plan> otherwise = planOfWay(spec, scratch, way);
  if (!stream || !otherwise)
    return way;
  const Analysis analysis = analyse(*otherwise, 0);
  const double copied = (analysis.seconds + analysis.copies) * 1e9;
  return stream->nanoseconds + copyBesideShifted(draft) < surely * copied ? batched : way;
}
} // namespace

Way wayOfLines(const Spec &spec, Way way) { return isBatch(spec) ? orBatched(spec, way) : orShallow(spec, way); }

} // namespace gemmc::plan
