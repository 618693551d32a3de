// Small products of operands that wgmma does not read as they lie: a kernel in front that copies them, or a warpgroup
// that shifts their lines, takes as long as the product, and mma does without.
#include "Draft.h"
#include "gemmc/Plan/Analysis.h"
#include "gemmc/Plan/Typical.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
bool copies(const Spec &spec) { return *spec.a.repack == Repack::on || *spec.b.repack == Repack::on; }
/// Their lines are shifted, or turned, on their way.
bool readsInside(const Spec &spec) { return *spec.a.repack == Repack::inside || *spec.b.repack == Repack::inside; }

/// Nothing that is given says what multiplies or how D is cut; mma refuses what is given of TMA and of copies.
bool isOpen(const Spec &s) { return !s.instruction.given && !s.block.given && !s.warp.given; }

struct Small {
  Plan plan;
  bool hasSmallD; ///< Of which estimates are better.
  bool turnsBoth; ///< wgmma would need both operands turned.
  bool collects;  ///< `collectsSectors`
};
/// The product by mma, of which it is known what its tiles take; nullopt where it is none.
std::optional<Small> measuredByMma(const Spec &spec) {
  Diags scratch = Diags::wordless();
  Draft family = draftOf(spec, scratch);
  decideProblem(family);
  if (!decideFamily(family) || !hasMeasuredTiles(family))
    return std::nullopt;
  std::optional<Plan> plan = planDirectly(spec, scratch);
  if (!plan)
    return std::nullopt;
  return Small{std::move(*plan), hasSmallD(family), family.needsTurningOfBoth(), collectsSectors(family)};
}
} // namespace

Spec withMma(Spec spec) {
  spec.instruction.value = Instruction::mma, spec.instruction.given = true;
  return spec;
}

/// Of 150 products of 1 to 16384 rows and columns and 48 to 8192 of k, each way, what these choose takes 0.85 of the
/// time that the one with wgmma took, the faster one of both 0.82. Of a larger D four of some hundred took 1.14 to 1.4
/// times as long by that, so mma has to promise more there. Small products whose words lanes turn take less than their
/// estimate: of eight such mma was faster in two. Larger ones whose words both have to be turned take more, by a half
/// where tiles cut lines of a D of few k, which mma collects; of more k it was faster in one of three (50 products;
/// H200, 2026-11-30, docs/hopper-types.md, *mma as operands lie, or a copy and wgmma*).
std::optional<ByMma> planByMma(const Spec &spec, const Plan &byFamily) {
  constexpr double surely = 0.9, ofMore = 0.7, ofTurnedWords = 0.75, ofBothTurned = 1.15, ofCutLines = 1.6;
  constexpr int64_t shortK = 64;
  const Spec &other = byFamily.spec;
  if (*other.instruction != Instruction::wgmma || !isOpen(spec) || !(copies(other) || readsInside(other)))
    return std::nullopt;
  std::optional<Small> small = measuredByMma(withMma(spec));
  if (!small)
    return std::nullopt;
  const bool turns = readsInside(other) && bitsOf(*other.a.type) == 32;
  const bool shiftsBatch = readsInside(other) && !turns && isBatch(spec); // estimates that are as good as those of mma
  const bool both = small->turnsBoth && !small->hasSmallD;
  const double ofBoth = !small->collects ? ofBothTurned : typicalK(spec) <= shortK ? ofCutLines : ofMore;
  const Analysis analysis = analyse(byFamily, 0);
  const double seconds = analyse(small->plan, 0).seconds;
  const double others = both ? (analysis.seconds + analysis.copies) * ofBoth
                             : analysis.seconds * (turns ? ofTurnedWords : 1) + analysis.copies;
  if (seconds > (both || shiftsBatch ? 1 : small->hasSmallD ? surely : ofMore) * others)
    return std::nullopt;
  Spec &decided = small->plan.spec;
  decided.instruction.reason =
      formatv("mma reads a and b as they lie, an estimated {0:f1} us; wgmma {1} {2:f1} us", seconds * 1e6,
              copies(other) ? "behind a copy"
              : turns       ? "while lanes turn one"
                            : "while a warpgroup shifts lines",
              others * 1e6);
  decided.a.repack.reason = decided.b.repack.reason = "mma reads it as it lies";
  small->plan.asTheyLie = true;
  std::optional<Plan> plan = planWithChoiceOf(small->plan, spec);
  return plan ? std::optional<ByMma>({std::move(*plan), others / seconds}) : std::nullopt;
}

} // namespace gemmc::plan
