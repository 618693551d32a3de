// Where rows of operands start: at lines of the L2, at its sectors, or inside them.
#include "Draft.h"
#include "gemmc/Layout/SharedTile.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {
/// Of rows whose pitch is known. A stride that is given at launch is as its kind: whole lines.
static int64_t stepOfRows(const OperandSpec &operand, int64_t bits) {
  const uint64_t step = llvm::MinAlign(uint64_t(lineBytes), uint64_t(*operand.ld.value.fixed * bits / 8));
  return int64_t(llvm::MinAlign(step, uint64_t(operand.batchStride.value.fixed.value_or(0) * bits / 8)));
}

int64_t rowStep(const Draft &draft, const OperandSpec &operand) {
  if ((*operand.repack != Repack::off && !draft.turnsInside(operand)) || operand.ld.value.dynamic())
    return lineBytes;
  return stepOfRows(operand, draft.inputBits());
}

bool startsAt(const OperandSpec &operand, int64_t bytes) {
  return !operand.ld.value.dynamic() && stepOfRows(operand, bitsOf(*operand.type)) % bytes == 0;
}

bool hasUnlikeParts(const Draft &draft, const Shape &shape) {
  return TileParts(draft.kMajorA() ? shape.m : shape.k, shape.clusterN).larger ||
         TileParts(draft.kMajorB() ? shape.n : shape.k, shape.clusterM).larger;
}

static bool splitsSectors(const Draft &draft, const OperandSpec &operand, bool kMajor) {
  return kMajor && rowsStartInsideSectors(draft, operand);
}

bool rowsSplitSectors(const Draft &draft) {
  return splitsSectors(draft, draft.kernelA(), draft.kMajorA()) ||
         splitsSectors(draft, draft.kernelB(), draft.kMajorB());
}

bool rowsStartInsideSectors(const Draft &draft, const OperandSpec &operand) {
  return rowStep(draft, operand) < sectorBytes;
}

bool rowsStartInsideSectors(const Draft &draft) {
  return rowsStartInsideSectors(draft, draft.kernelA()) || rowsStartInsideSectors(draft, draft.kernelB());
}

bool rowsStartInsideLines(const Draft &draft) {
  return rowStep(draft, draft.kernelA()) < lineBytes || rowStep(draft, draft.kernelB()) < lineBytes;
}

bool rowsStraddleLines(const Draft &draft) {
  return draft.kMajorA() && draft.kMajorB() && !rowsStartInsideSectors(draft) && rowsStartInsideLines(draft);
}

double splitBytes(bool ofA, bool ofB, double bytesOfA, double bytesOfB) {
  constexpr double others = 0.45; // what is read beside such rows takes less of the L2
  if (!ofA && !ofB)
    return 0;
  return (ofA ? 1 : others) * bytesOfA + (ofB ? 1 : others) * bytesOfB;
}

double splitBytes(const Draft &draft, double bytesOfA, double bytesOfB) {
  return splitBytes(splitsSectors(draft, draft.kernelA(), draft.kMajorA()),
                    splitsSectors(draft, draft.kernelB(), draft.kMajorB()), bytesOfA, bytesOfB);
}

} // namespace gemmc::plan
