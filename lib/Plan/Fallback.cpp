// The kernels for launches that a faster one's requirements exclude: the last one promises nothing, so it requires
// nothing; before it stands one that copies operands to rows that TMA can read. And the one for launches that have no
// workspace.
#include "gemmc/Plan/Fallback.h"
#include "Draft.h"
#include "gemmc/Plan/Analysis.h"
#include <type_traits>

namespace gemmc {
namespace {
/// Gives a field a value as if the user had written it.
template <typename T> void force(Field<T> &field, std::type_identity_t<T> value) {
  field = {std::move(value), true, field.range, ""};
}
template <typename T> void leaveOpen(Field<T> &field) { field = {}; }

/// The spec with no more promised of its pointers than that they point to elements.
Spec withoutAlignment(const Spec &spec) {
  Spec plain = spec;
  Elem input = spec.a.type.given ? *spec.a.type : spec.b.type.given ? *spec.b.type : Elem::bf16;
  Elem result = spec.d.type.given ? *spec.d.type : plan::resultOf(input);
  auto onlyElements = [](OperandSpec &operand, Elem otherwise) {
    force(operand.align, bytesOf(operand.type.given ? *operand.type : otherwise));
  };
  onlyElements(plain.a, input);
  onlyElements(plain.b, input);
  onlyElements(plain.c, result);
  onlyElements(plain.d, result);
  return plain;
}
} // namespace

std::optional<Plan> makeRepackPlan(const Spec &spec) {
  Spec copied = withoutAlignment(spec);
  leaveOpen(copied.store); // D's rows start anywhere, too
  leaveOpen(copied.loadC);
  leaveOpen(copied.storeBuffers);
  leaveOpen(copied.storeOverlap);
  leaveOpen(copied.prefetch); // the kernel in front writes what it would fetch
  for (Field<Repack> *repack : {&copied.a.repack, &copied.b.repack})
    if (**repack == Repack::inside) { // where the first line starts is not known
      leaveOpen(*repack);
      leaveOpen(copied.fragmentsA);
      leaveOpen(copied.fragmentsB);
    }
  Diags scratch;
  std::optional<Plan> plan = makePlan(copied, scratch);
  // ... or what is faster than that one.
  bool repacks =
      plan && (plan->a.repacked || plan->b.repacked || plan->asTheyLie || *plan->spec.instruction == Instruction::fma);
  return repacks ? plan : std::nullopt;
}

/// The fastest plan of `spec` whole, or in slices that meet in clusters.
static std::optional<Plan> planOfSlicesInClusters(const Spec &spec) {
  std::optional<Plan> best;
  for (int64_t slices : {1, 2, 4, 8}) {
    Spec cut = spec;
    leaveOpen(cut.splitOwners);
    force(cut.split, slices > 1 ? SplitMode::split_k : SplitMode::none);
    if (slices > 1)
      force(cut.splitSlices, slices), force(cut.splitThrough, SplitThrough::cluster);
    Diags scratch;
    std::optional<Plan> plan = makePlan(cut, scratch);
    if (plan && (!best || analyse(*plan, 0).seconds < analyse(*best, 0).seconds))
      best = std::move(plan);
  }
  return best;
}

std::optional<Plan> makePlanWithoutWorkspace(const Spec &spec) {
  Spec bare = spec;
  if (!bare.scheduler.given)
    force(bare.scheduler, Scheduler::fixed);
  auto planned = [&]() -> std::optional<Plan> {
    Diags scratch;
    std::optional<Plan> plan = makePlan(bare, scratch);
    const bool open = !bare.split.given && !bare.splitSlices.given && !bare.splitThrough.given;
    const bool meets =
        plan && *plan->spec.split != SplitMode::none && *plan->spec.splitThrough != SplitThrough::cluster;
    return meets && open ? planOfSlicesInClusters(bare) : plan;
  };
  std::optional<Plan> plan = planned();
  if (!plan || !(plan->a.repacked || plan->b.repacked))
    return plan;
  for (Field<Repack> *repack : {&bare.a.repack, &bare.b.repack})
    if (!repack->given)
      force(*repack, Repack::off);
  return planned();
}

std::optional<Plan> makeFallbackPlan(const Spec &spec, Diags &diags) {
  Spec plain = withoutAlignment(spec);
  Elem input = spec.a.type.given ? *spec.a.type : spec.b.type.given ? *spec.b.type : Elem::bf16;
  leaveOpen(plain.a.repack);
  leaveOpen(plain.b.repack);
  force(plain.instruction, Instruction::mma);
  force(plain.copy, CopyKind::ld);
  // A small tile: quick to compile, and edges of small problems waste little.
  int64_t depth = 64 * 8 / bitsOf(input);
  force(plain.block, {64, 64, depth});
  force(plain.warp, {32, 32, depth});
  leaveOpen(plain.matrixShape);
  leaveOpen(plain.copyBytes);
  leaveOpen(plain.padding);
  leaveOpen(plain.fragmentsA);
  leaveOpen(plain.fragmentsB);
  leaveOpen(plain.fragmentBuffers);
  leaveOpen(plain.fragmentOrder);
  leaveOpen(plain.cluster);
  leaveOpen(plain.stages);
  leaveOpen(plain.inFlight);
  leaveOpen(plain.schedule);
  leaveOpen(plain.swizzle);
  leaveOpen(plain.persistent);
  leaveOpen(plain.scheduler);
  leaveOpen(plain.store);
  leaveOpen(plain.split);
  leaveOpen(plain.splitSlices);
  leaveOpen(plain.splitThrough);
  leaveOpen(plain.splitOwners);
  leaveOpen(plain.a.cache);
  leaveOpen(plain.b.cache);
  leaveOpen(plain.loadC);
  leaveOpen(plain.storeBuffers);
  leaveOpen(plain.storeOverlap);
  leaveOpen(plain.rasterOrder);
  leaveOpen(plain.rasterGroup);
  leaveOpen(plain.prefetch);
  return makePlan(plain, diags);
}

} // namespace gemmc
