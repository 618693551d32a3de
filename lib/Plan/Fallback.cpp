// The kernel for launches that a faster one's requirements exclude: it promises nothing, so it requires nothing.
#include "Draft.h"
#include <type_traits>

namespace gemmc {
namespace {
/// Gives a field a value as if the user had written it.
template <typename T> void force(Field<T> &field, std::type_identity_t<T> value) {
  field = {std::move(value), true, field.range, ""};
}
template <typename T> void leaveOpen(Field<T> &field) { field = {}; }
} // namespace

std::optional<Plan> makeFallbackPlan(const Spec &spec, Diags &diags) {
  Spec plain = spec;
  // A pointer to an element is a multiple of the element, and no more is sure.
  Elem input = spec.a.type.given ? *spec.a.type : spec.b.type.given ? *spec.b.type : Elem::bf16;
  Elem result = spec.d.type.given ? *spec.d.type : plan::resultOf(input);
  auto onlyElements = [](OperandSpec &operand, Elem otherwise) {
    force(operand.align, bytesOf(operand.type.given ? *operand.type : otherwise));
  };
  onlyElements(plain.a, input);
  onlyElements(plain.b, input);
  onlyElements(plain.c, result);
  onlyElements(plain.d, result);
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
  leaveOpen(plain.schedule);
  leaveOpen(plain.swizzle);
  leaveOpen(plain.persistent);
  leaveOpen(plain.store);
  leaveOpen(plain.split);
  leaveOpen(plain.splitSlices);
  leaveOpen(plain.splitThrough);
  leaveOpen(plain.a.cache);
  leaveOpen(plain.b.cache);
  leaveOpen(plain.loadC);
  leaveOpen(plain.rasterOrder);
  leaveOpen(plain.rasterGroup);
  return makePlan(plain, diags);
}

} // namespace gemmc
