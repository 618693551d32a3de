// Products of 8- and 32-bit inputs by wgmma. All the planner knows of streams, slices, rows and waves it has from
// products of 16 bits. But an operand with k contiguous is a matrix of bytes to everybody but the tensor cores, and
// these take 32 bytes of k an instruction whatever the type, in the same clocks: a product of e4m3 is planned as the
// one of bf16 with half its k, one of tf32 as that with twice its k, and takes over what that plan has chosen.
#include "Draft.h"

namespace gemmc::plan {
namespace {
constexpr int64_t sixteen = 2; ///< Bytes of such an element.

template <typename T> void give(Field<T> &field, std::type_identity_t<T> value) {
  field.value = std::move(value);
  field.given = true;
}

/// Lengths along k of elements of `bytes`, as ones of 16 bits.
class Width {
public:
  explicit Width(int64_t bytes) : bytes(bytes) {}
  bool divides(int64_t length) const { return length * bytes % sixteen == 0; }
  int64_t narrowed(int64_t length) const { return (length * bytes + sixteen - 1) / sixteen; }

private:
  int64_t bytes;
};

/// Sums of 32 bits are f32, what they become as wide as it was.
void narrowResults(Spec &spec, Elem input) {
  auto result = [&](Field<Elem> &type) {
    if (type.given && *type == Elem::s32)
      type.value = Elem::f32;
  };
  if (!spec.d.type.given)
    give(spec.d.type, resultOf(input));
  result(spec.d.type), result(spec.c.type), result(spec.accumulator);
}

/// As wgmma reads it: in lines of k, of a copy if need be, or, where lanes turn it, at the pitch at which it lies. How
/// it is read `decided` says.
void narrowOperand(OperandSpec &operand, const OperandSpec &decided, Order lines, const Width &width) {
  give(operand.type, Elem::bf16);
  operand.align.value = std::max(*operand.align, unsigned(sixteen)); // 8-bit elements may start at any byte
  const bool lies = *decided.layout == lines, inside = !lies && *decided.repack == Repack::inside;
  operand.repack.reason = decided.repack.reason;
  give(operand.repack, inside ? Repack::off : *decided.repack);
  give(operand.layout, inside ? *decided.layout : lines);
  if (inside)
    give(operand.ld, *decided.ld);
  else if (!lies)
    operand.ld = {};
  if (!inside && !lies)
    operand.batchStride = OperandSpec().batchStride;
  else if (!inside && operand.batchStride.given && operand.batchStride.value.fixed)
    operand.batchStride.value.fixed = width.narrowed(*operand.batchStride.value.fixed);
  if (operand.ld.given && operand.ld.value.fixed)
    operand.ld.value.fixed = width.narrowed(*operand.ld.value.fixed);
}

/// What lanes turn in registers is wgmma's A, of which these hold as many bytes of k whatever the type.
void narrowFragments(Spec &spec, const Draft &family) {
  const bool swaps = family.turnsInside(family.spec().b);
  if (!swaps && !family.turnsInside(family.spec().a))
    return;
  if (!spec.swapOperands.given)
    spec.swapOperands.reason = family.spec().swapOperands.reason;
  give(spec.swapOperands, swaps ? Persistence::on : Persistence::off);
  give(spec.instruction, Instruction::wgmma);
  give(swaps ? spec.fragmentsB : spec.fragmentsA, FragmentLoad::ldmatrix);
}

/// The product of 16 bits that `spec` is planned as, whose instruction and copies `family` has decided; nullopt where
/// there is none.
std::optional<Spec> narrowedSpec(const Spec &spec, const Draft &family, const Width &width) {
  const Spec &decided = family.spec();
  if (spec.matrixShape.given || decided.alpha.value == Scale{0.0})
    return std::nullopt;
  Spec narrow = spec;
  for (Field<std::array<int64_t, 3>> *tile : {&narrow.block, &narrow.warp}) {
    if (tile->given && !width.divides((*tile).value[2]))
      return std::nullopt;
    tile->value[2] = width.narrowed(tile->value[2]);
  }
  if (narrow.k.value.fixed)
    narrow.k.value.fixed = width.narrowed(*narrow.k.value.fixed);
  narrow.typicalK.value = width.narrowed(*narrow.typicalK);
  narrowOperand(narrow.a, decided.a, Order::row, width);
  narrowOperand(narrow.b, decided.b, Order::col, width);
  narrowFragments(narrow, family);
  narrowResults(narrow, *decided.a.type);
  return narrow;
}
} // namespace

std::optional<Narrowed> narrowed(const Spec &spec) {
  const Elem type = spec.a.type.given ? *spec.a.type : spec.b.type.given ? *spec.b.type : Elem::bf16;
  if (bitsOf(type) == 16)
    return std::nullopt;
  Diags scratch;
  Draft family = draftOf(spec, scratch);
  decideProblem(family);
  if (!decideFamily(family) || !family.wgmma() || !scratch.all().empty())
    return std::nullopt;
  std::optional<Spec> narrow = narrowedSpec(spec, family, Width(bytesOf(type)));
  if (!narrow)
    return std::nullopt;
  Way way; // sums that are promoted are, there, too: they take twice the registers
  way.ofIntegers = isInteger(type), way.bytes = bytesOf(type);
  return Narrowed{std::move(*narrow), way, family.spec().instruction.reason};
}

std::optional<Plan> planAsSixteenBits(const Spec &spec) {
  const Turning turning = turningOf(spec);
  const OperandInfo *inside = turning.inside;
  const std::optional<Narrowed> narrow = narrowed(inside ? withRepack(spec, inside->operand, Repack::inside) : spec);
  if (!narrow)
    return std::nullopt;
  Diags scratch;
  std::optional<Plan> alike = planDirectly(narrow->spec, scratch, narrow->way);
  if (!alike || *alike->spec.instruction != Instruction::wgmma)
    return std::nullopt;
  alike->spec.instruction.reason = narrow->why;
  if (inside) {
    alike->spec.instruction.reason =
        llvm::formatv("twice the rate of mma.sync, and lanes turn {0} on its way", inside->name);
    Field<Repack> &repack = (alike->spec.*inside->operand).repack;
    repack.value = Repack::inside, repack.reason = turning.why;
  }
  for (Field<std::array<int64_t, 3>> *tile : {&alike->spec.block, &alike->spec.warp})
    tile->value = narrow->way.widened(tile->value);
  return planWithChoiceOf(*alike, spec);
}

} // namespace gemmc::plan
