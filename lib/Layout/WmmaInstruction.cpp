#include "gemmc/Layout/WmmaInstruction.h"

namespace gemmc {
namespace {
/// PTX ISA 9.7.14.4, table of shapes and types.
constexpr MatrixInstruction wmmaTable[] = {
    {16, 16, 16, Elem::f16, Elem::f32, 70},  {32, 8, 16, Elem::f16, Elem::f32, 70},
    {8, 32, 16, Elem::f16, Elem::f32, 70},   {16, 16, 16, Elem::f16, Elem::f16, 70},
    {32, 8, 16, Elem::f16, Elem::f16, 70},   {8, 32, 16, Elem::f16, Elem::f16, 70},
    {16, 16, 16, Elem::bf16, Elem::f32, 80}, {32, 8, 16, Elem::bf16, Elem::f32, 80},
    {8, 32, 16, Elem::bf16, Elem::f32, 80},  {16, 16, 8, Elem::tf32, Elem::f32, 80},
    {8, 8, 4, Elem::f64, Elem::f64, 80},     {16, 16, 16, Elem::s8, Elem::s32, 72},
    {32, 8, 16, Elem::s8, Elem::s32, 72},    {8, 32, 16, Elem::s8, Elem::s32, 72},
    {16, 16, 16, Elem::u8, Elem::s32, 72},   {32, 8, 16, Elem::u8, Elem::s32, 72},
    {8, 32, 16, Elem::u8, Elem::s32, 72},    {8, 8, 32, Elem::s4, Elem::s32, 75},
    {8, 8, 32, Elem::u4, Elem::s32, 75},     {8, 8, 128, Elem::b1, Elem::s32, 75},
};
constexpr int64_t lanes = 32;
int64_t registerBits(Elem type) { return type == Elem::f64 ? 64 : 32; }
int64_t evenly(int64_t elements, Elem type) { return elements * bitsOf(type) / (lanes * registerBits(type)); }
} // namespace

llvm::ArrayRef<MatrixInstruction> wmmaInstructions() { return wmmaTable; }

int64_t wmmaOperandRegisters(const MatrixInstruction &instruction, bool isA) {
  // f16 keeps the eight registers of the first tensor cores, which held two copies or more.
  return instruction.type == Elem::f16
             ? 8
             : evenly((isA ? instruction.m : instruction.n) * instruction.k, instruction.type);
}

int64_t wmmaAccumulatorRegisters(const MatrixInstruction &instruction) {
  return evenly(instruction.m * instruction.n, instruction.accumulator);
}

int64_t wmmaOperandAlignment(const MatrixInstruction &instruction, bool isA) {
  return wmmaOperandRegisters(instruction, isA) * registerBits(instruction.type) / 8;
}

} // namespace gemmc
