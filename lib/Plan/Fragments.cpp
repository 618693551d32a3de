// The matrix instruction of mma kernels, and how its operands get from shared memory into registers.
#include "Draft.h"
#include "gemmc/Layout/WmmaInstruction.h"
#include "llvm/ADT/StringExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
unsigned smOf(Target target) {
  switch (target) {
  case Target::sm_80:
    return 80;
  case Target::sm_86:
    return 86;
  case Target::sm_89:
    return 89;
  case Target::sm_90a:
    return 90;
  }
  llvm_unreachable("unknown target");
}

/// The rows for the types of the spec that its target has, the best first.
std::vector<const MatrixInstruction *> rowsFor(const Spec &spec) {
  std::vector<const MatrixInstruction *> rows;
  for (const MatrixInstruction &row :
       *spec.instruction == Instruction::wmma ? wmmaInstructions() : matrixInstructions())
    if (row.type == *spec.a.type && row.accumulator == *spec.accumulator && row.sm <= smOf(*spec.target))
      rows.push_back(&row);
  return rows;
}

std::string listOf(llvm::ArrayRef<const MatrixInstruction *> rows) {
  std::vector<std::string> texts;
  for (const MatrixInstruction *row : rows)
    texts.push_back(formatv("[{0}, {1}, {2}]", row->m, row->n, row->k));
  return llvm::join(texts, ", ");
}

void reportShape(Draft &draft, const std::string &allowed) {
  const Spec &s = draft.spec();
  const auto &shape = *s.matrixShape;
  draft.diags
      .report(Diag::plan_matrix_shape, s.matrixShape.range, shape[0], shape[1], shape[2], nameOf(*s.instruction),
              nameOf(*s.a.type), nameOf(*s.accumulator), nameOf(*s.target), allowed)
      .fix(s.matrixShape.range, llvm::StringRef(allowed).split(']').first.str() + "]");
}

/// A field that the family decides by itself.
template <typename T> void fixedByFamily(Draft &draft, Field<T> &field, const char *path, T value, const char *reason) {
  field.decide(value, reason);
  if (*field == value)
    return;
  std::string seen, allowed;
  if constexpr (std::is_enum_v<T>)
    seen = nameOf(*field), allowed = nameOf(value);
  else
    seen = std::to_string(*field), allowed = std::to_string(value);
  draft.diags.report(Diag::plan_fragment_family, field.range, path, seen, nameOf(*draft.spec().instruction), allowed)
      .fix(field.range, allowed);
}

void decideForWgmma(Draft &draft) {
  Spec &s = draft.spec();
  int64_t n = draft.plan.warpN;
  const int64_t k = draft.elementsIn(wgmmaDepthBytes);
  s.matrixShape.decide({64, n, k}, "as wide as the warpgroup's tile");
  if (*s.matrixShape != std::array<int64_t, 3>{64, n, k})
    reportShape(draft, formatv("[64, {0}, {1}]{2}", n, k,
                               s.warp.given    ? ", as wide as `tile.warp`"
                               : s.block.given ? ", as wide as a warpgroup's part of `tile.block`"
                                               : "; of other columns, multiples of 8 up to 256"));
  constexpr const char *reads = "wgmma reads its operands from shared memory";
  // The kernel's A may come from registers, its B never.
  auto &a = draft.plan.swapped ? s.fragmentsB : s.fragmentsA, &b = draft.plan.swapped ? s.fragmentsA : s.fragmentsB;
  const char *pathA = draft.plan.swapped ? "fragments.b" : "fragments.a";
  if (draft.turnsInside(draft.kernelA()))
    fixedByFamily(draft, a, pathA, FragmentLoad::lds, "k is not contiguous: lanes read elements into registers");
  else if (!a.given || *a != FragmentLoad::ldmatrix)
    fixedByFamily(draft, a, pathA, FragmentLoad::descriptor, reads);
  draft.plan.loadA = *a;
  fixedByFamily(draft, b, draft.plan.swapped ? "fragments.a" : "fragments.b", FragmentLoad::descriptor, reads);
  fixedByFamily<int64_t>(draft, s.fragmentBuffers, "fragments.buffers", 1, "no fragments of operands");
  fixedByFamily(draft, s.fragmentOrder, "fragments.order", FragmentOrder::plain,
                "one instruction spans the tile's width");
}

void decideForWmma(Draft &draft) {
  Spec &s = draft.spec();
  constexpr const char *reads = "wmma loads whole fragments";
  fixedByFamily(draft, s.fragmentsA, "fragments.a", FragmentLoad::wmma_load, reads);
  fixedByFamily(draft, s.fragmentsB, "fragments.b", FragmentLoad::wmma_load, reads);
  draft.plan.loadA = draft.plan.loadB = FragmentLoad::wmma_load;
  fixedByFamily<int64_t>(draft, s.fragmentBuffers, "fragments.buffers", 1, "a fragment of f16 takes eight registers");
  s.fragmentOrder.decide(FragmentOrder::snake, "each fragment of b at a turn is used twice in a row");
}

/// Why ldmatrix cannot fill the fragments of an operand; empty when it can.
std::string whyNotLdmatrix(const Draft &draft, bool kMajor) {
  const MatrixInstruction &matrix = *draft.matrix;
  if (fitsLdmatrix(matrix, kMajor))
    return "";
  if (matrix.isQuad())
    return "a lane of m8n8k4 holds four neighbours along k, ldmatrix gives it two";
  if (bitsOf(matrix.type) > 32)
    return formatv("ldmatrix moves words of 32 bits, {0} has {1}", nameOf(matrix.type), bitsOf(matrix.type));
  return formatv("k is not contiguous, and ldmatrix transposes elements of 16 bits, {0} has {1}", nameOf(matrix.type),
                 bitsOf(matrix.type));
}

FragmentLoad decideLoad(Draft &draft, Field<FragmentLoad> &load, llvm::StringRef operand, bool kMajor) {
  std::string obstacle = whyNotLdmatrix(draft, kMajor);
  if (obstacle.empty())
    load.decide(FragmentLoad::ldmatrix, "four 8x8 matrices of a warp tile by one instruction");
  else
    load.decide(FragmentLoad::lds, obstacle);
  std::string path = ("fragments." + operand).str();
  if (*load == FragmentLoad::descriptor || *load == FragmentLoad::wmma_load || *load == FragmentLoad::direct)
    draft.diags
        .report(Diag::plan_fragment_family, load.range, path, nameOf(*load), nameOf(*draft.spec().instruction),
                obstacle.empty() ? "ldmatrix, lds" : "lds")
        .fix(load.range, "lds");
  else if (*load == FragmentLoad::ldmatrix && !obstacle.empty())
    draft.diags.report(Diag::plan_fragment_ldmatrix, load.range, path, operand, obstacle).fix(load.range, "lds");
  return *load;
}

/// Whether a second buffer of fragments would make ptxas spill: their elements come one by one, each from an address of
/// its own, beside a large tile's sums and, if they are narrow, many copies. 4096^3 on an H200 (2026-11-24, 15:05), one
/// buffer against two that spill: u8, A in columns, B in rows 743 -> 628 us, either alone 389 -> 383 and 386 -> 385;
/// tf32 899 -> 951, either alone (no spill) 655 -> 942 and 683 -> 919.
bool fillsRegisters(const Draft &draft) {
  const bool floats = isFloat8(*draft.spec().a.type); // spill 8 bytes beside half as many
  const int64_t manySums = (floats ? 64 : 128) * 32;  // of a warp
  const Plan &plan = draft.plan;
  const bool a = plan.loadA == FragmentLoad::lds && !draft.kMajorA();
  const bool b = plan.loadB == FragmentLoad::lds && !draft.kMajorB();
  if (plan.warpM * plan.warpN < manySums || draft.inputBits() > 32)
    return false;
  const bool narrow = std::min(plan.copyBytesA, plan.copyBytesB) < 16;
  return (a && b) || ((a || b) && (draft.inputBits() == 8 || narrow));
}

void decideDepthOfDoubles(Draft &draft) {
  const MatrixInstruction &matrix = matrixOf(draft, shapeOf(draft.plan));
  const char *reason = matrix.k > draft.matrix->k ? "sums are read and written half as often as by [16, 8, 4]"
                                                  : "deeper ones would not fit the registers, or leave a warp one step";
  draft.spec().matrixShape.decide({matrix.m, matrix.n, matrix.k}, reason);
  draft.matrix = &matrix;
}

void decideBuffers(Draft &draft) {
  Spec &s = draft.spec();
  int64_t steps = draft.plan.warpK / draft.matrix->k;
  bool possible = *s.stages >= 3 && steps % 2 == 0;
  if (possible && fillsRegisters(draft))
    s.fragmentBuffers.decide(1, "two would not fit the registers: their elements are read one by one");
  else if (possible)
    s.fragmentBuffers.decide(2, "the next step's fragments are read while this one is multiplied");
  else
    s.fragmentBuffers.decide(1, *s.stages < 3 ? "the next stage may still be on its way"
                                              : "an odd number of steps in a stage: nothing to alternate between");
  if (*s.fragmentBuffers == 2 && !possible)
    draft.diags
        .report(Diag::plan_fragment_buffers, s.fragmentBuffers.range, *s.stages, draft.plan.warpK, draft.matrix->k,
                steps)
        .fix(s.fragmentBuffers.range, "1");
}
} // namespace

bool decideMatrix(Draft &draft) {
  Spec &s = draft.spec();
  std::vector<const MatrixInstruction *> rows = rowsFor(s);
  if (rows.empty()) {
    const bool wmma = *s.instruction == Instruction::wmma;
    const Field<FragmentLoad> &asking = // where nobody has given the instruction
        s.fragmentsA.given && *s.fragmentsA == FragmentLoad::wmma_load ? s.fragmentsA : s.fragmentsB;
    draft.diags.report(Diag::plan_no_instruction,
                       wmma             ? (s.instruction.given ? s.instruction.range : asking.range)
                       : s.a.type.given ? s.a.type.range
                                        : s.b.type.range,
                       nameOf(*s.instruction), nameOf(*s.target), nameOf(*s.a.type),
                       wmma ? "" : ": they came with sm_89");
    return false;
  }
  const MatrixInstruction &best = *rows.front();
  if (draft.multipliesDoubles() && !s.matrixShape.given) { // the tile decides
    draft.matrix = &best;
    return true;
  }
  s.matrixShape.decide({best.m, best.n, best.k},
                       formatv("the first choice of {0} for {1}", nameOf(*s.instruction), nameOf(best.type)));
  for (const MatrixInstruction *row : rows)
    if (*s.matrixShape == std::array<int64_t, 3>{row->m, row->n, row->k})
      draft.matrix = row;
  if (draft.matrix)
    return true;
  reportShape(draft, listOf(rows));
  draft.matrix = &best;
  return true;
}

void decideFragments(Draft &draft) {
  if (draft.plan.blockK == 0)
    return; // no tile: reported
  if (draft.wgmma())
    return decideForWgmma(draft);
  if (draft.wmma())
    return decideForWmma(draft);
  Spec &s = draft.spec();
  Plan &plan = draft.plan;
  if (draft.multipliesDoubles())
    decideDepthOfDoubles(draft);
  FragmentLoad a = decideLoad(draft, s.fragmentsA, "a", plan.swapped ? draft.kMajorB() : draft.kMajorA());
  FragmentLoad b = decideLoad(draft, s.fragmentsB, "b", plan.swapped ? draft.kMajorA() : draft.kMajorB());
  plan.loadA = plan.swapped ? b : a;
  plan.loadB = plan.swapped ? a : b;
  decideBuffers(draft);
  s.fragmentOrder.decide(FragmentOrder::snake, "each fragment of b at a turn is used twice in a row");
}

} // namespace gemmc::plan
