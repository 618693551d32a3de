// What is computed: target, types, layouts, leading dimensions, alignments, alpha and beta.
#include "Draft.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using llvm::formatv;

namespace gemmc::plan {

const OperandInfo operandInfos[4] = {{"a", &Spec::a, &Spec::m, &Spec::k},
                                     {"b", &Spec::b, &Spec::k, &Spec::n},
                                     {"c", &Spec::c, &Spec::m, &Spec::n},
                                     {"d", &Spec::d, &Spec::m, &Spec::n}};

const Size &contiguousExtent(const Spec &spec, const OperandInfo &info) {
  bool row = *(spec.*info.operand).layout == Order::row;
  return (spec.*(row ? info.cols : info.rows)).value;
}

unsigned promisedAlign(const OperandSpec &operand) {
  uint64_t align = std::max(1u, *operand.align);
  if (operand.ld.value.dynamic())
    return std::gcd(align, uint64_t(16));
  // gcd(align, ld * bytes), without the overflow of the product.
  uint64_t rest = uint64_t(*operand.ld.value.fixed) % align * bytesOf(*operand.type) % align;
  return std::gcd(align, rest);
}

namespace {
/// Reports a type that is not `allowed`, then goes on as if it were the first of them: only what it says is wrong with
/// it.
bool checkType(Draft &draft, Field<Elem> &field, llvm::StringRef path, llvm::ArrayRef<Elem> allowed) {
  if (!field.given || llvm::is_contained(allowed, *field))
    return true;
  std::string list;
  for (Elem type : allowed)
    list += (list.empty() ? "" : ", ") + nameOf(type).str();
  draft.diags.report(Diag::plan_type_unsupported, field.range, path, nameOf(*field), list);
  field.value = allowed.front();
  return false;
}

void decideInputs(Draft &draft) {
  Spec &s = draft.spec();
  constexpr const char *same = "the matrix instructions take one type for a and b";
  bool known = checkType(draft, s.a.type, "a.type", {Elem::bf16, Elem::f16});
  known &= checkType(draft, s.b.type, "b.type", {Elem::bf16, Elem::f16});
  if (s.b.type.given)
    s.a.type.decide(*s.b.type, same);
  else
    s.a.type.decide(Elem::bf16, "16-bit inputs run the tensor cores at full rate; bf16 has the range of f32");
  s.b.type.decide(*s.a.type, same);
  if (known && *s.a.type != *s.b.type)
    draft.diags.report(Diag::plan_types_differ, s.b.type.range, nameOf(*s.b.type), nameOf(*s.a.type))
        .note(Diag::plan_note_type, s.a.type.range)
        .fix(s.b.type.range, nameOf(*s.a.type));
}

void decideTypes(Draft &draft) {
  decideInputs(draft);
  Spec &s = draft.spec();
  s.accumulator.decide(Elem::f32, "sums of 16-bit products keep 24 bits; as fast as any other accumulator");
  bool half = *s.a.type == Elem::f16;
  if (*s.accumulator != Elem::f32 && !(half && *s.accumulator == Elem::f16)) {
    draft.diags
        .report(Diag::plan_accumulator_type, s.accumulator.range, nameOf(*s.accumulator), nameOf(*s.a.type),
                half ? "f32, f16" : "f32")
        .fix(s.accumulator.range, "f32");
    s.accumulator.value = Elem::f32;
  }
  checkType(draft, s.d.type, "d.type", {Elem::f32, Elem::bf16, Elem::f16});
  s.d.type.decide(*s.a.type, "the type of a and b");
  checkType(draft, s.c.type, "c.type", {Elem::f32, Elem::bf16, Elem::f16});
  s.c.type.decide(*s.d.type, "the type of d");
}

void decideLayouts(Draft &draft) {
  Spec &s = draft.spec();
  s.a.layout.decide(Order::row, "C order: the elements of a row are adjacent");
  s.b.layout.decide(Order::row, "C order: the elements of a row are adjacent");
  s.d.layout.decide(Order::row, "C order: the elements of a row are adjacent");
  s.c.layout.decide(*s.d.layout, "the layout of d");
  if (*s.d.layout == Order::col)
    s.swapOperands.decide(Persistence::on, "d is column order: D^T = B^T A^T is written in rows, as the kernels write");
  else
    s.swapOperands.decide(Persistence::off, "d is row order already, as the kernels write");
  draft.plan.swapped = *s.swapOperands == Persistence::on;
}

void decideLd(Draft &draft, const OperandInfo &info) {
  Spec &s = draft.spec();
  OperandSpec &operand = s.*info.operand;
  bool row = *operand.layout == Order::row;
  const Size &extent = contiguousExtent(s, info);
  if (extent.dynamic())
    operand.ld.decide(Size{}, formatv("given at launch, as the length of a {0} is", row ? "row" : "column"));
  else
    operand.ld.decide(Size{std::max<int64_t>(1, *extent.fixed)},
                      formatv("{0}s lie end to end", row ? "row" : "column"));
  int64_t least = std::max<int64_t>(1, extent.fixed.value_or(0));
  if (!operand.ld.value.dynamic() && *operand.ld.value.fixed < least)
    draft.diags
        .report(Diag::plan_ld_small, operand.ld.range, info.name, *operand.ld.value.fixed, row ? "row" : "column",
                extent.fixed.value_or(0), least)
        .fix(operand.ld.range, llvm::Twine(least));
}

void decideAlign(Draft &draft, const OperandInfo &info) {
  OperandSpec &operand = draft.spec().*info.operand;
  operand.align.decide(16, "what TMA and 16-byte copies need, and every allocator gives");
  unsigned element = bytesOf(*operand.type);
  if (*operand.align < element)
    draft.diags
        .report(Diag::plan_align_small, operand.align.range, info.name, *operand.align, element, nameOf(*operand.type))
        .fix(operand.align.range, llvm::Twine(element));
}

void checkSize(Draft &draft, Field<Size> &size, llvm::StringRef path) {
  size.decide(Size{}, "not given: any size at launch");
  if (size.value.fixed.value_or(0) >= 0)
    return;
  draft.diags.report(Diag::plan_size_negative, size.range, path, *size.value.fixed);
  size.value.fixed = 0; // goes on as an empty problem; the error is reported
}
} // namespace

void decideProblem(Draft &draft) {
  Spec &s = draft.spec();
  if (s.name.value.empty())
    s.name.decide("gemm", "what the kernel is");
  s.target.decide(Target::sm_90a, "Hopper: the fastest kernels");
  draft.limits = limitsOf(*s.target);
  checkSize(draft, s.m, "problem.m");
  checkSize(draft, s.n, "problem.n");
  checkSize(draft, s.k, "problem.k");
  decideTypes(draft);
  decideLayouts(draft);
  for (const OperandInfo &info : operandInfos) {
    decideLd(draft, info);
    decideAlign(draft, info);
  }
  s.alpha.decide(Scale{1.0}, "a plain product");
  s.beta.decide(Scale{0.0}, "c is not read");
}

} // namespace gemmc::plan
