// A problem as text. Types, layouts, pitches and alignments are the planner's, so that an open field and its default
// written out are the same problem.
#include "gemmc/Plan/Key.h"
#include "Draft.h"

using llvm::formatv;
using llvm::StringRef;

namespace gemmc {
using namespace plan;

namespace {
std::string textOf(const Size &size) { return size.fixed ? std::to_string(*size.fixed) : "dynamic"; }

/// A dynamic size with the one that is planned for: `dynamic~64`; `dynamic` is for the usual one.
std::string textOf(const Field<Size> &size, const Field<int64_t> &typical) {
  std::string text = textOf(*size);
  return size.value.dynamic() && *typical != usualSize ? text + "~" + std::to_string(*typical) : text;
}

/// More than 16 bytes of alignment make no other kernel.
std::string textOf(const OperandSpec &operand) {
  std::string text = formatv("{0}:{1}:{2}:{3}", nameOf(*operand.type), nameOf(*operand.layout),
                             textOf(operand.ld.value), std::min(16u, *operand.align));
  return operand.negate.given && *operand.negate == Persistence::on ? text + ":negated" : text;
}

/// Of a batch: `batch=16 strides=65536,0,65536`, where c is read the third of four.
std::string batchOf(const Spec &spec) {
  std::string text = " batch=" + textOf(spec.batch, spec.typicalBatch) + " strides=";
  for (const OperandInfo &info : operandInfos)
    if (&info != &operandInfos[2] || spec.beta.value != Scale{0.0})
      text += (text.back() == '=' ? "" : ",") + textOf((spec.*info.operand).batchStride.value);
  return text;
}

/// Kernels differ by whether a factor is there, not by what it is.
const char *kindOf(const Scale &scale) {
  if (scale.dynamic())
    return "dynamic";
  return *scale.fixed == 0 ? "0" : *scale.fixed == 1 ? "1" : "other";
}

/// `tile.block=[128,256,64]`: no spaces in a word.
std::string wordOf(const FieldText &field) {
  std::string word = field.path.str() + "=";
  for (char c : field.value)
    if (c != ' ')
      word += c;
  return word;
}
} // namespace

bool isProblemField(StringRef path) {
  static constexpr StringRef fields[] = {"name",          "target", "accumulator", "fast_accumulation",
                                         "bit_operation", "alpha",  "beta"};
  static constexpr StringRef operands[] = {"a", "b", "c", "d"},
                             keys[] = {"type", "layout", "ld", "batch_stride", "align", "negate"};
  auto [section, key] = path.split('.');
  if (llvm::is_contained(operands, section)) // they also say how an operand is copied
    return llvm::is_contained(keys, key);
  return section == "problem" || section == "typical" || llvm::is_contained(fields, path);
}

std::optional<ProblemKey> problemKey(const Spec &spec) {
  Diags scratch;
  Draft draft = draftOf(asOneProduct(spec), scratch);
  decideProblem(draft);
  if (scratch.hasErrors())
    return std::nullopt;
  const Spec &s = draft.spec();
  ProblemKey key;
  key.folded = isBatch(spec) && !isBatch(s);
  key.problem = formatv("{0} {1}x{2}x{3} a={4} b={5}", nameOf(*s.target), textOf(s.m, s.typicalM),
                        textOf(s.n, s.typicalN), textOf(s.k, s.typicalK), textOf(s.a), textOf(s.b));
  if (s.beta.value != Scale{0.0})
    key.problem += " c=" + textOf(s.c);
  key.problem += formatv(" d={0} sums={1} alpha={2} beta={3}", textOf(s.d), nameOf(*s.accumulator), kindOf(*s.alpha),
                         kindOf(*s.beta));
  if (isBatch(s))
    key.problem += batchOf(s);
  if (draft.promotes())
    key.problem += " promoted";
  if (*s.bitOperation != BitOperation::none)
    key.problem += (" bits=" + nameOf(*s.bitOperation)).str();
  for (const FieldText &field : fieldTexts(spec))
    if (field.given && !isProblemField(field.path))
      key.given += (key.given.empty() ? "" : " ") + wordOf(field);
  return key;
}

} // namespace gemmc
