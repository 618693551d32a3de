// Operands of 32 bits whose k is not contiguous, which wgmma does not read as they lie (PTX ISA 9.7.15.5.2). A kernel
// in front turns them, which takes them through memory twice more; or lanes turn one on its way into the registers from
// which wgmma takes its A. Two plans say which is faster.
#include "Draft.h"
#include "gemmc/Plan/Analysis.h"
#include <limits>

using llvm::formatv;

namespace gemmc::plan {
namespace {
/// Seconds that copies which turn take to launch, and the bytes that they read and write in a second (2.8e12 of large
/// ones). Of 90 products of tf32, each way, what these choose is the faster one or at most 14% slower (H200,
/// 2026-11-26, docs/hopper-types.md, *Lanes that turn tf32*).
constexpr double copiesLaunch = 1.2e-6, copiesMove = 2.5e12;

/// What wgmma takes for a product as `spec` reads its operands: its kernel, and the copies in front of it.
struct Time {
  double seconds = std::numeric_limits<double>::infinity();
  bool copies = false;
};
Time timeOf(const Spec &spec) {
  const std::optional<Narrowed> narrow = narrowed(spec);
  Diags scratch;
  const std::optional<Plan> plan = narrow ? planDirectly(narrow->spec, scratch, narrow->way) : std::nullopt;
  if (!plan || *plan->spec.instruction != Instruction::wgmma)
    return {};
  double moved = 0;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2))
    if (*(narrow->spec.*info.operand).repack == Repack::on)
      moved += 2.0 * bytesOf(*(narrow->spec.*info.operand).type) * double(typicalSize(narrow->spec, info.rows)) *
               double(typicalSize(narrow->spec, info.cols));
  return {analyse(*plan, 0).seconds + (moved > 0 ? moved / copiesMove + copiesLaunch : 0), moved > 0};
}
} // namespace

Spec withRepack(Spec spec, OperandSpec Spec::*operand, Repack how) {
  Field<Repack> &repack = (spec.*operand).repack;
  repack.value = how, repack.given = true;
  return spec;
}

Turning turningOf(const Spec &spec) {
  Turning turning;
  const Elem type = spec.a.type.given ? *spec.a.type : spec.b.type.given ? *spec.b.type : Elem::bf16;
  if (bitsOf(type) != 32)
    return turning;
  Diags scratch;
  Draft family = draftOf(spec, scratch);
  decideProblem(family);
  if (!decideFamily(family) || !scratch.all().empty())
    return turning;
  turning.open = family.turnable;
  turning.otherwise = family.wgmma() ? Repack::on : Repack::off;
  if (turning.open.empty())
    return turning;
  // mma, which reads element by element, is slower than lanes that turn all of a stage: 30 products of 16 to 16384 of k
  // take it 2.3 times as long, 1.05 at least (H200, 2026-11-26); but not than those behind a copy of the other operand.
  const double other = family.wgmma() ? timeOf(spec).seconds : family.secondsByMma;
  turning.seconds = std::numeric_limits<double>::infinity();
  for (const OperandInfo *info : turning.open) {
    const Time time = timeOf(withRepack(spec, info->operand, Repack::inside));
    const bool pays = time.seconds < other || (!family.wgmma() && !time.copies);
    if (pays && time.seconds < turning.seconds)
      turning.inside = info, turning.seconds = time.seconds;
  }
  if (!turning.inside)
    return turning;
  const std::string beside = family.wgmma() ? formatv("behind a copy that turns it {0:f1} us", other * 1e6).str()
                                            : "mma would read it element by element";
  turning.why =
      formatv("wgmma reads {0} with k contiguous: lanes turn it on its way into registers, an estimated {1:f1} "
              "us; {2}",
              nameOf(type), turning.seconds * 1e6, beside);
  return turning;
}

double timesOfCopy(const Spec &spec, const Turning &turning) {
  const double copied = timeOf(withRepack(spec, turning.inside->operand, Repack::on)).seconds;
  return std::isfinite(copied) ? std::max(1.0, copied / turning.seconds) : 1;
}

} // namespace gemmc::plan
