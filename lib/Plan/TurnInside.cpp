// Operands of 32 bits whose k is not contiguous, which wgmma does not read as they lie (PTX ISA 9.7.15.5.2). A kernel
// in front turns them, which takes them through memory twice more; or lanes turn one on its way into the registers from
// which wgmma takes its A. Two plans say which is faster.
#include "Draft.h"
#include "gemmc/Plan/Analysis.h"
#include <limits>

using llvm::formatv;

namespace gemmc::plan {
namespace {
/// Seconds that a copy takes to launch, and its bytes a second: 41 products of tf32, b in rows, each way (H200,
/// 2026-11-26, docs/hopper-types.md, *k is not contiguous*).
constexpr double copyLaunch = 1.2e-6, copiedBytes = 2.5e12;

/// The kernels of a product that wgmma multiplies, as `spec` reads its operands.
double secondsOf(const Spec &spec) {
  const std::optional<Narrowed> narrow = narrowed(spec);
  Diags scratch;
  const std::optional<Plan> plan = narrow ? planDirectly(narrow->spec, scratch, narrow->way) : std::nullopt;
  if (!plan || *plan->spec.instruction != Instruction::wgmma)
    return std::numeric_limits<double>::infinity();
  double copied = 0;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2))
    if (*(narrow->spec.*info.operand).repack == Repack::on)
      copied += 2.0 * bytesOf(*(narrow->spec.*info.operand).type) * double(typicalSize(narrow->spec, info.rows)) *
                double(typicalSize(narrow->spec, info.cols));
  return analyse(*plan, 0).seconds + (copied > 0 ? copied / copiedBytes + copyLaunch : 0);
}
} // namespace

std::optional<TurnedInside> turnedInside(const Spec &spec) {
  Diags scratch;
  Draft family = draftOf(spec, scratch);
  decideProblem(family);
  if (!decideFamily(family) || family.turnable.empty() || !scratch.all().empty())
    return std::nullopt;
  std::optional<TurnedInside> best;
  // mma, which reads element by element, is slower than lanes that turn all of a stage: 30 products of 16 to 16384 of k
  // take it 2.3 times as long, 1.05 at least (H200, 2026-11-26).
  double least = family.wgmma() ? secondsOf(spec) : std::numeric_limits<double>::infinity();
  const double other = least;
  for (const OperandInfo *info : family.turnable) {
    Spec with = spec;
    Field<Repack> &repack = (with.*info->operand).repack;
    repack.value = Repack::inside, repack.given = true;
    if (const double seconds = secondsOf(with); seconds < least)
      best = TurnedInside{std::move(with), info->operand, info->operand == &Spec::a ? "a.repack" : "b.repack", "", 1},
      least = seconds;
  }
  if (!best)
    return std::nullopt;
  best->otherwise = std::isfinite(other) ? other / least : 1;
  const std::string beside = std::isfinite(other) ? formatv("behind a copy that turns it {0:f1} us", other * 1e6).str()
                                                  : "mma would read it element by element";
  best->why =
      formatv("wgmma reads {0} with k contiguous: lanes turn it on its way into registers, an estimated {1:f1} us; "
              "{2}",
              nameOf(*family.spec().a.type), least * 1e6, beside);
  return best;
}

} // namespace gemmc::plan
