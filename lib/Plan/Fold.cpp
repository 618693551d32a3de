// A batch whose products share one operand and follow each other in all else is one product of all their rows, or
// columns: what is shared is read once for all, tiles go from one product to the next, and it may be a stream, or cut
// into slices, as any product may. The spec stays the user's; the kernel's view is that of the one product.
#include "Vector.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
/// Along which the products of a batch may follow each other: the rows of D, or its columns.
struct Side {
  const char *name, *lines;
  Field<Size> Spec::*length;
  const OperandInfo &own, &shared; ///< The operand that each product has of its own, and the one that all have.
  Order strided;                   ///< The layout in which the next row (column) is `ld` elements further, and not one.
};
const Side sides[] = {{"m", "rows", &Spec::m, operandInfos[0], operandInfos[1], Order::row},
                      {"n", "columns", &Spec::n, operandInfos[1], operandInfos[0], Order::col}};

/// Of a size that is not given at launch.
std::optional<int64_t> known(const Size &size) { return size.typical ? std::nullopt : size.fixed; }

/// Why the matrices of an operand do not follow each other along `side`; empty: they do.
std::string whyApart(const Spec &s, const Side &side, const OperandInfo &info) {
  const OperandSpec &operand = s.*info.operand;
  const bool strided = *operand.layout == side.strided;
  const auto length = known(*(s.*side.length)), ld = known(*operand.ld), stride = known(*operand.batchStride);
  if (!length || !ld || !stride)
    return formatv("`problem.{0}`, `{1}.ld` or `{1}.batch_stride` is given at launch", side.name, info.name);
  const __int128 next = __int128(*length) * (strided ? *ld : 1);
  if (*stride != next)
    return formatv("`{0}.batch_stride` is {1}, not `problem.{2}`{3}", info.name, *stride, side.name,
                   strided ? formatv(" x `{0}.ld`", info.name).str() : "");
  if (!strided && __int128(*length) * *s.batch.value.fixed > *ld)
    return formatv("`{0}.ld` is {1}, less than all {2}", info.name, *ld, side.lines);
  return "";
}

/// Why the products are not one along `side`; empty: they are.
std::string whyNotAlong(const Spec &s, const Side &side) {
  constexpr __int128 mostLines = 2147483647; // which a tensor map counts
  if ((s.*side.shared.operand).batchStride.value != Size{0})
    return formatv("`{0}.batch_stride` is not 0", side.shared.name);
  std::string why = whyApart(s, side, side.own);
  if (why.empty())
    why = whyApart(s, side, operandInfos[3]);
  if (why.empty() && s.beta.value != Scale{0.0})
    why = whyApart(s, side, operandInfos[2]);
  if (why.empty() && __int128(*(s.*side.length).value.fixed) * *s.batch.value.fixed > mostLines)
    why = formatv("they are more than 2147483647 {0}", side.lines);
  return why;
}

/// Rows or columns of a product from which on its tiles are filled without those of others. Of fewer the estimates of
/// both differ by 20% (48 rows) to 50 times; from here on by no more than estimates are wrong by: 16 products of
/// 1024x1024x512 take 28.0 us and as one 30.1, 32 of 100x1024x1024 11.3 and 12.3, three of 2048^3 75.3 and 76.1; 16 of
/// 8x14336x4096 318 and 32, 32 of 16x4096x4096 131 and 24 (H200, 2026-11-29, docs/hopper-shapes.md, *Batches*).
constexpr int64_t enoughLines = 64;

const Side *foldedSide(const Spec &s) {
  for (const Side &side : sides)
    if (whyNotAlong(s, side).empty())
      return &side;
  return nullptr;
}

/// Why the products are not one; empty: they are.
std::string whyNone(const Spec &s) {
  const auto products = known(*s.batch);
  if (!products || *products == 0)
    return products ? "there is none" : "`problem.batch` is given at launch";
  if (asksForVector(s))
    return "`instruction: fma` multiplies the vectors one by one";
  if (foldedSide(s))
    return "";
  return formatv("along m {0}; along n {1}", whyNotAlong(s, sides[0]), whyNotAlong(s, sides[1]));
}
} // namespace

void decideFold(Draft &draft) {
  Spec &s = draft.spec();
  if (!isBatch(s))
    return s.foldBatch.decide(Persistence::off, "it is one product");
  const std::string none = whyNone(s);
  const bool asked = s.foldBatch.given && *s.foldBatch == Persistence::on;
  if (asked && !none.empty())
    draft.diags.report(Diag::plan_fold, s.foldBatch.range, none).fix(s.foldBatch.range, "auto");
  if (!none.empty())
    return s.foldBatch.decide(Persistence::off, "the products do not follow each other beside one operand: " + none);
  const Side &side = *foldedSide(s);
  const int64_t products = *s.batch.value.fixed, length = *(s.*side.length).value.fixed;
  const bool few = length < enoughLines;
  const std::string text = formatv("{0} products of {1} {2} beside one {3} {4} one of {5}", products, length,
                                   side.lines, side.shared.name, few ? "are" : "would be", length * products);
  s.foldBatch.decide(few ? Persistence::on : Persistence::off,
                     few ? text : formatv("{0}, but {1} are enough for tiles of their own", text, length).str());
}

std::optional<FoldedBatch> foldedBatch(const Spec &spec) {
  if (!isBatch(spec))
    return std::nullopt;
  Diags scratch = Diags::wordless();
  Draft draft = draftOf(spec, scratch);
  decideProblem(draft);
  const Spec &s = draft.spec();
  if (scratch.hasErrors() || !isFolded(s))
    return std::nullopt;
  FoldedBatch folded{spec, s};
  const Side &side = *foldedSide(s);
  (folded.one.*side.length).value = Size{*(s.*side.length).value.fixed * *s.batch.value.fixed};
  for (const OperandInfo &info : operandInfos) { // the pitch is what it was, however long lines have become
    OperandSpec &operand = folded.one.*info.operand;
    operand.ld.value = *(s.*info.operand).ld;
    operand.ld.given = true;
    operand.batchStride = {};
    if (info.operand == &Spec::c && s.beta.value == Scale{0.0}) // its matrices follow each other as they like
      operand.ld = {};
  }
  folded.one.batch.value = Size{1};
  folded.one.foldBatch = {};
  return folded;
}

void FoldedBatch::unfold(Spec &planned) const {
  for (const Side &side : sides)
    planned.*side.length = decided.*side.length;
  planned.batch = decided.batch;
  planned.foldBatch = decided.foldBatch;
  for (const OperandInfo &info : operandInfos) {
    OperandSpec &operand = planned.*info.operand;
    operand.ld = (decided.*info.operand).ld;
    operand.batchStride = (decided.*info.operand).batchStride;
  }
}

Spec asOneProduct(const Spec &spec) {
  std::optional<FoldedBatch> folded = foldedBatch(spec);
  return folded ? std::move(folded->one) : spec;
}

} // namespace gemmc::plan
