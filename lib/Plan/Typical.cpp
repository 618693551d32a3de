// Sizes that are given at launch. What a kernel for all of them is fast at is decided by a plan for typical ones: the
// planner makes it as if they were fixed, and then the plan of the spec takes over what that plan has chosen.
#include "gemmc/Plan/Typical.h"
#include "Vector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
/// A size, and where a spec says what is typical for it.
struct TypicalField {
  const char *name;
  Field<Size> Spec::*size;
  Field<int64_t> Spec::*typical;
  int64_t usual;
};
constexpr TypicalField allFields[] = {{"m", &Spec::m, &Spec::typicalM, usualSize},
                                      {"n", &Spec::n, &Spec::typicalN, usualSize},
                                      {"k", &Spec::k, &Spec::typicalK, usualSize},
                                      {"batch", &Spec::batch, &Spec::typicalBatch, usualBatch}};
/// Those that have ranges: any batch of a few products fills the device.
const auto fields = llvm::ArrayRef(allFields).take_front(3);

int64_t endOf(const TypicalField &field, int64_t size) {
  return field.size == &Spec::k ? endOfRangeOfK(size) : endOfRange(size);
}

bool isDynamic(const Spec &spec, const TypicalField &field) { return (spec.*field.size).value.dynamic(); }

int64_t sizeOf(const Spec &spec, const TypicalField &field) {
  return typicalSize(*(spec.*field.size), *(spec.*field.typical), field.usual);
}
} // namespace

int64_t typicalSize(const Spec &spec, Field<Size> Spec::*size) {
  return sizeOf(spec, *llvm::find_if(allFields, [&](const TypicalField &field) { return field.size == size; }));
}

bool hasDynamicSizes(const Spec &spec) {
  return llvm::any_of(allFields, [&](const TypicalField &field) { return isDynamic(spec, field); });
}

std::string assumedSizes(const Spec &spec) {
  std::string text;
  for (const TypicalField &field : allFields)
    if (isDynamic(spec, field))
      text += (text.empty() ? "" : ", ") + std::string(field.name) + (text.empty() ? " taken as " : " as ") +
              std::to_string(sizeOf(spec, field));
  return text;
}

void decideTypicalSizes(Spec &spec) {
  for (const TypicalField &field : allFields)
    if (isDynamic(spec, field))
      (spec.*field.typical).decide(field.usual, "nobody says what the size is most of all");
}

Spec atTypicalSizes(const Spec &spec) {
  Spec fixed = spec;
  for (const TypicalField &field : allFields)
    (fixed.*field.size).value = Size{sizeOf(spec, field), isDynamic(spec, field) || (spec.*field.size).value.typical};
  return fixed;
}

std::optional<Plan> planForTypicalSizes(const Spec &spec) {
  if (!hasDynamicSizes(spec))
    return std::nullopt;
  Diags scratch;
  auto typical = plan::planAsItIs(atTypicalSizes(spec), scratch);
  auto plan = typical ? plan::planWithChoiceOf(*typical, spec) : std::nullopt;
  if (plan && !plan->spec.block.given)
    plan->spec.block.reason += " (" + assumedSizes(spec) + ")";
  return plan;
}

std::optional<Plan> plan::planWithChoiceOf(const Plan &other, const Spec &spec) {
  const std::string ways[] = {"epilogue.store", "epilogue.c"}; // which streams have of their own
  Diags scratch;
  Spec with = spec;
  auto paths = applyChoice(with, choiceOf(other, spec, ways), scratch);
  auto plan = paths && !paths->empty() ? planDirectly(with, scratch) : std::nullopt;
  if (!plan || !scratch.all().empty())
    return std::nullopt;
  plan->asTheyLie = other.asTheyLie;
  std::vector<FieldText> decided = fieldTexts(other.spec);
  for (const std::string &path : *paths)
    settleChoice(plan->spec, path,
                 llvm::find_if(decided, [&](const FieldText &field) { return field.path == path; })->reason);
  return plan;
}

/// `parts` of each octave, up to `last`.
static int64_t endOfPart(int64_t size, int64_t parts, int64_t last) {
  constexpr int64_t shortest = 8;
  if (size >= last)
    return last;
  const int64_t octave = size > 1 ? int64_t(llvm::bit_floor(uint64_t(size - 1))) : 1;
  return llvm::alignTo(uint64_t(std::max<int64_t>(1, size)), uint64_t(std::max(shortest, octave / parts)));
}

// Tiles come in waves: planned for powers of two and halfway to the next, 102 products of m from 1 to 3000 took 1.2
// times as long as planned for their m, up to 2.5 times (H200, 2026-11-26, docs/plan.md, *Sizes at launch*).
int64_t endOfRange(int64_t size) { return endOfPart(size, 8, 16384); }
int64_t endOfRangeOfK(int64_t size) { return endOfPart(size, 2, 262144); }

static bool isRanged(const Spec &spec, const TypicalField &field) {
  return isDynamic(spec, field) && !(spec.*field.typical).given;
}

bool hasRanges(const Spec &spec) {
  return llvm::any_of(fields, [&](const TypicalField &field) { return isRanged(spec, field); });
}

std::array<int64_t, 3> rangesOf(const Spec &spec, const std::array<int64_t, 3> &sizes) {
  std::array<int64_t, 3> ends{};
  for (auto [field, size, end] : llvm::zip_equal(fields, sizes, ends)) {
    const bool vector = size == 1 && field.size != &Spec::k;
    if (int64_t its = vector ? 1 : endOf(field, size); isRanged(spec, field) && its != usualSize)
      end = its;
  }
  return ends;
}

/// With `size` known to be 1. Distances that were given at launch still are.
static Spec asVector(const Spec &spec, Field<Size> Spec::*size) {
  Diags scratch = Diags::wordless();
  plan::Draft open = plan::draftOf(spec, scratch);
  plan::decideProblem(open);
  Spec vector = spec;
  (vector.*size).value = Size{1};
  for (const plan::OperandInfo &info : plan::operandInfos)
    for (auto distance : {&OperandSpec::ld, &OperandSpec::batchStride})
      if ((open.spec().*info.operand.*distance).value.dynamic())
        (vector.*info.operand.*distance).value = Size{}, (vector.*info.operand.*distance).given = true;
  return vector;
}

Spec plannedFor(const Spec &spec, const std::array<int64_t, 3> &typical) {
  Spec planned = spec;
  for (const auto &[field, size] : llvm::zip_equal(fields, typical))
    if (size)
      (planned.*field.typical).value = size, (planned.*field.typical).given = true;
  for (const auto &[field, size] : llvm::zip_equal(fields, typical))
    if (size == 1 && field.size != &Spec::k)
      if (Spec vector = asVector(planned, field.size); plan::isVector(vector))
        return vector;
  return planned;
}

std::string typicalFor(const Spec &spec, const std::array<std::optional<int64_t>, 3> &sizes) {
  std::string text;
  for (const auto &[field, size] : llvm::zip_equal(fields, sizes)) {
    if (isDynamic(spec, field) && size && endOf(field, *size) != endOf(field, sizeOf(spec, field)))
      text +=
          (text.empty() ? "--set typical." : " --set typical.") + std::string(field.name) + "=" + std::to_string(*size);
  }
  return text;
}

std::string choiceOf(const Plan &plan, const Spec &spec, llvm::ArrayRef<std::string> more) {
  // What the planner's model and the tuner vary; other fields follow from these and the problem.
  static constexpr llvm::StringRef deciding[] = {"instruction",       "copy",
                                                 "a.repack",          "b.repack",
                                                 "tile.block",        "tile.warp",
                                                 "tile.cluster",      "pipeline.stages",
                                                 "pipeline.schedule", "raster.order",
                                                 "raster.group",      "split.mode",
                                                 "split.slices",      "split.through",
                                                 "swap_operands",     "a.cache",
                                                 "b.cache",           "launch.dependent",
                                                 "launch.prefetch",   "raster.persistent",
                                                 "raster.scheduler",  "pipeline.in_flight",
                                                 "launch.trigger",    "epilogue.overlap",
                                                 "epilogue.buffers"};
  std::vector<FieldText> given = fieldTexts(spec);
  std::string words;
  for (auto [index, field] : llvm::enumerate(fieldTexts(plan.spec))) {
    if (given[index].given || (!llvm::is_contained(deciding, field.path) && !llvm::is_contained(more, field.path)))
      continue;
    words += (words.empty() ? "" : " ") + field.path.str() + "=";
    for (char c : field.value)
      if (c != ' ')
        words += c;
  }
  return words;
}

} // namespace gemmc
