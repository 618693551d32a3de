/// The wmma instructions (PTX ISA 9.7.14.4): shapes, types and how many registers a fragment takes. Which lane holds
/// which element is the hardware's secret; only whole fragments are loaded, multiplied and stored.
#pragma once
#include "gemmc/Layout/MatrixInstruction.h"

namespace gemmc {

/// All of them; of those with the same types the first is the one to take.
llvm::ArrayRef<MatrixInstruction> wmmaInstructions();

/// Registers of one lane: 32 bits each, for f64 64.
int64_t wmmaOperandRegisters(const MatrixInstruction &instruction, bool isA);
int64_t wmmaAccumulatorRegisters(const MatrixInstruction &instruction);
/// Each row (column) of an operand starts at a multiple of its fragment's bytes (9.7.14.4.2).
int64_t wmmaOperandAlignment(const MatrixInstruction &instruction, bool isA);
/// s4, u4 and b1 multiply rows of A with columns of B only.
inline bool wmmaIsKMajor(const MatrixInstruction &instruction) { return bitsOf(instruction.type) < 8; }

} // namespace gemmc
