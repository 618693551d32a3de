// What is computed: target, types, layouts, leading dimensions, alignments, alpha and beta.
#include "Draft.h"
#include "gemmc/Support/Batch.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
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
  for (const Size &distance : {*operand.ld, *operand.batchStride}) {
    if (distance.dynamic()) {
      align = std::gcd(align, uint64_t(16));
      continue;
    }
    // gcd(align, distance * bytes), without the overflow of the product.
    uint64_t unit = align * perByte(*operand.type); // so many elements hold a multiple of `align` bytes
    uint64_t rest = uint64_t(*distance.fixed) % unit * bitsOf(*operand.type) / 8 % align;
    align = std::gcd(align, rest);
  }
  return align;
}

Elem resultOf(Elem input) {
  if (isInteger(input))
    return Elem::s32;
  return input == Elem::tf32 ? Elem::f32 : isFloat8(input) ? Elem::bf16 : input;
}

namespace {
/// Reports a type that is not `allowed`, then goes on as if it were the first of them: only what it says is wrong with
/// it.
void checkType(Draft &draft, Field<Elem> &field, llvm::StringRef path, llvm::ArrayRef<Elem> allowed) {
  if (!field.given || llvm::is_contained(allowed, *field))
    return;
  std::string list;
  for (Elem type : allowed)
    list += (list.empty() ? "" : ", ") + nameOf(type).str();
  draft.diags.report(Diag::plan_type_unsupported, field.range, path, nameOf(*field), list);
  field.value = allowed.front();
}

void decideInputs(Draft &draft) {
  Spec &s = draft.spec();
  constexpr const char *same = "a and b have one type";
  if (s.b.type.given)
    s.a.type.decide(*s.b.type, same);
  else
    s.a.type.decide(Elem::bf16, "16-bit inputs run the tensor cores at full rate; bf16 has the range of f32");
  s.b.type.decide(*s.a.type, same);
  if (*s.a.type != *s.b.type)
    draft.diags.report(Diag::plan_types_differ, s.b.type.range, nameOf(*s.b.type), nameOf(*s.a.type))
        .note(Diag::plan_note_type, s.a.type.range)
        .fix(s.b.type.range, nameOf(*s.a.type));
}

/// Types of the sums of products of `input`, the usual one first.
std::vector<Elem> accumulatorsOf(Elem input) {
  if (isInteger(input))
    return {Elem::s32};
  if (input == Elem::f64)
    return {Elem::f64};
  return input == Elem::f16 ? std::vector<Elem>{Elem::f32, Elem::f16} : std::vector<Elem>{Elem::f32};
}

void decideAccumulator(Draft &draft) {
  Spec &s = draft.spec();
  std::vector<Elem> allowed = accumulatorsOf(*s.a.type);
  bool narrow = bitsOf(*s.a.type) == 16;
  if (narrow)
    s.accumulator.decide(Elem::f32, "sums of 16-bit products keep 24 bits; as fast as any other accumulator");
  else
    s.accumulator.decide(allowed.front(), formatv("what the matrix instructions sum {0} in", nameOf(*s.a.type)));
  if (llvm::is_contained(allowed, *s.accumulator))
    return;
  std::string list;
  for (Elem type : allowed)
    list += (list.empty() ? "" : ", ") + nameOf(type).str();
  draft.diags.report(Diag::plan_accumulator_type, s.accumulator.range, nameOf(*s.accumulator), nameOf(*s.a.type), list)
      .fix(s.accumulator.range, nameOf(allowed.front()));
  s.accumulator.value = allowed.front();
}

void decideAccumulation(Draft &draft) {
  Spec &s = draft.spec();
  const bool floats = isFloat8(*s.a.type);
  s.fastAccumulation.decide(Persistence::on,
                            floats ? "tensor cores keep 14 bits of sums of 8-bit floats; `off` adds them up in f32"
                                   : "tensor cores keep all bits of the sums' type");
  const bool narrowed = draft.way.bytes == 1; // planned as 16 bits
  if (draft.promotes() && !floats && !narrowed)
    draft.diags.report(Diag::plan_fast_accumulation, s.fastAccumulation.range, nameOf(*s.a.type))
        .fix(s.fastAccumulation.range, "on");
}

void decideTypes(Draft &draft) {
  decideInputs(draft);
  decideAccumulator(draft);
  decideAccumulation(draft);
  Spec &s = draft.spec();
  Elem sum = *s.accumulator;
  std::vector<Elem> results = {Elem::f32, Elem::bf16, Elem::f16};
  if (sum == Elem::f64)
    results = {sum};
  else if (sum == Elem::s32 && s.instruction.given && *s.instruction == Instruction::wmma)
    results = {sum}; // whose fragments nobody can read as others
  else if (sum == Elem::s32)
    results.insert(results.begin(), sum);
  checkType(draft, s.d.type, "d.type", results);
  const Elem result = resultOf(*s.a.type);
  s.d.type.decide(result, result == *s.a.type ? "the type of a and b"
                          : result == sum     ? "the type of the sums"
                                              : "16 bits hold what sums of 8-bit floats are good for");
  if (sum == Elem::s32 && isInteger(*s.d.type))
    results = {sum};
  else if (sum == Elem::s32)
    llvm::erase(results, sum);
  checkType(draft, s.c.type, "c.type", results);
  s.c.type.decide(*s.d.type, "the type of d");
}

void decideBits(Draft &draft) {
  Spec &s = draft.spec();
  bool bits = *s.a.type == Elem::b1;
  s.bitOperation.decide(bits ? BitOperation::and_ : BitOperation::none,
                        bits ? "the product of two bits" : "elements are no bits");
  if ((*s.bitOperation != BitOperation::none) == bits)
    return;
  draft.diags
      .report(Diag::plan_bit_operation, s.bitOperation.range, nameOf(*s.bitOperation), nameOf(*s.a.type),
              bits ? "and, xor" : "none")
      .fix(s.bitOperation.range, bits ? "and" : "none");
}

/// Packed elements share bytes along k, so k is contiguous.
void decidePackedLayout(Draft &draft, Field<Order> &layout, llvm::StringRef name, Order order) {
  Elem type = *draft.spec().a.type;
  if (perByte(type) == 1)
    return layout.decide(Order::row, "C order: the elements of a row are adjacent");
  layout.decide(order, formatv("{0} elements lie packed along k", nameOf(type)));
  if (*layout == order)
    return;
  draft.diags
      .report(Diag::plan_packed_layout, layout.range, nameOf(type), perByte(type), name, nameOf(*layout), nameOf(order))
      .fix(layout.range, nameOf(order));
  layout.value = order;
}

void checkPackedSize(Draft &draft, const Field<Size> &size, llvm::StringRef path) {
  Elem type = *draft.spec().a.type;
  if (int64_t each = perByte(type); size.value.fixed.value_or(0) % each != 0)
    draft.diags.report(Diag::plan_packed_size, size.range, nameOf(type), each, path, *size.value.fixed)
        .fix(size.range, llvm::Twine((*size.value.fixed / each + 1) * each));
}

/// Sums of integers are scaled as integers, where D holds such.
void checkScale(Draft &draft, const Field<Scale> &scale, llvm::StringRef path) {
  constexpr int64_t most = 65536; // what alpha * sum needs is less than 53 bits
  if (!isInteger(*draft.spec().d.type))
    return;
  if (double value = scale.value.fixed.value_or(0.5); value == std::trunc(value) && std::fabs(value) <= most)
    return;
  char text[32];
  snprintf(text, sizeof text, "%g", scale.value.fixed.value_or(0));
  draft.diags.report(Diag::plan_scale_integer, scale.range, path, scale.value.dynamic() ? "dynamic" : text,
                     nameOf(*draft.spec().a.type), most);
}

/// Whether the spec has lanes turn an operand.
bool isTurnedInside(const Draft &draft, const OperandSpec &operand) {
  return operand.repack.given && draft.turnsInside(operand);
}

void decideLayouts(Draft &draft) {
  Spec &s = draft.spec();
  decidePackedLayout(draft, s.a.layout, "a", Order::row);
  decidePackedLayout(draft, s.b.layout, "b", Order::col);
  s.d.layout.decide(Order::row, "C order: the elements of a row are adjacent");
  s.c.layout.decide(*s.d.layout, "the layout of d");
  const bool heldB = isTurnedInside(draft, s.b);
  if (heldB || isTurnedInside(draft, s.a))
    s.swapOperands.decide(heldB ? Persistence::on : Persistence::off,
                          formatv("wgmma takes its A alone from registers, in which {0} is turned", heldB ? "b" : "a"));
  else if (decideSkinnySwap(draft))
    ;
  else if (draft.way.turned)
    s.swapOperands.decide(*s.d.layout == Order::col ? Persistence::off : Persistence::on, "its tiles fit better");
  else if (*s.d.layout == Order::col)
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
    operand.ld.decide(Size{std::max<int64_t>(perByte(*operand.type), *extent.fixed)},
                      formatv("{0}s lie end to end", row ? "row" : "column"));
  int64_t least = std::max<int64_t>(1, extent.fixed.value_or(0));
  if (!operand.ld.value.dynamic() && *operand.ld.value.fixed < least)
    draft.diags
        .report(Diag::plan_ld_small, operand.ld.range, info.name, *operand.ld.value.fixed, row ? "row" : "column",
                extent.fixed.value_or(0), least)
        .fix(operand.ld.range, llvm::Twine(least));
}

/// The matrices of a batch. Those of D may lie end to end, or in each other's rows.
void decideBatchStride(Draft &draft, const OperandInfo &info) {
  Spec &s = draft.spec();
  OperandSpec &operand = s.*info.operand;
  if (!isBatch(s)) {
    operand.batchStride.value = Size{0};
    return;
  }
  const bool row = *operand.layout == Order::row;
  const Size &lines = (s.*(row ? info.rows : info.cols)).value, &ld = operand.ld.value;
  const bool known = lines.fixed && ld.fixed;
  const int64_t whole = known ? *lines.fixed * *ld.fixed : 0;
  if (known) // no more than the reader lets through
    operand.batchStride.decide(Size{whole}, "the matrices lie end to end");
  else
    operand.batchStride.decide(Size{}, "given at launch, as the size of a matrix is");
  const Size &stride = operand.batchStride.value, &length = contiguousExtent(s, info);
  if (info.operand != &Spec::d || stride.dynamic() || s.batch.value.dynamic() || !known || !length.fixed)
    return;
  if (matricesOverlap(*s.batch.value.fixed, *lines.fixed, *length.fixed, *ld.fixed, *stride.fixed))
    draft.diags
        .report(Diag::plan_batch_overlap, operand.batchStride.range, *stride.fixed, whole - *ld.fixed + *length.fixed,
                *length.fixed, *s.batch.value.fixed)
        .fix(operand.batchStride.range, "auto");
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
  decideTypicalSizes(s);
  decideTypes(draft);
  decideLayouts(draft);
  for (const OperandInfo &info : operandInfos) {
    decideLd(draft, info);
    decideBatchStride(draft, info);
    decideAlign(draft, info);
  }
  s.alpha.decide(Scale{1.0}, "a plain product");
  s.beta.decide(Scale{0.0}, "c is not read");
  decideFold(draft);
  decideBits(draft);
  checkPackedSize(draft, s.k, "problem.k");
  if (s.a.ld.given)
    checkPackedSize(draft, s.a.ld, "a.ld");
  if (s.b.ld.given)
    checkPackedSize(draft, s.b.ld, "b.ld");
  for (auto [operand, path] : {std::pair(&s.a, "a.batch_stride"), std::pair(&s.b, "b.batch_stride")})
    if (isBatch(s) && operand->batchStride.given)
      checkPackedSize(draft, operand->batchStride, path);
  checkScale(draft, s.alpha, "alpha");
  checkScale(draft, s.beta, "beta");
}

} // namespace gemmc::plan
