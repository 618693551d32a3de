#include "gemmc/Layout/MatrixInstruction.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc {
namespace {
/// PTX ISA 9.7.14.5.14, shapes and types; the best one of equal types first.
constexpr MatrixInstruction table[] = {
    {16, 8, 16, Elem::f16, Elem::f32, 80},  {16, 8, 8, Elem::f16, Elem::f32, 75},
    {8, 8, 4, Elem::f16, Elem::f32, 70},    {16, 8, 16, Elem::f16, Elem::f16, 80},
    {16, 8, 8, Elem::f16, Elem::f16, 75},   {8, 8, 4, Elem::f16, Elem::f16, 70},
    {16, 8, 16, Elem::bf16, Elem::f32, 80}, {16, 8, 8, Elem::bf16, Elem::f32, 80},
    {16, 8, 8, Elem::tf32, Elem::f32, 80},  {16, 8, 4, Elem::tf32, Elem::f32, 80},
    {16, 8, 32, Elem::e4m3, Elem::f32, 89}, {16, 8, 16, Elem::e4m3, Elem::f32, 89},
    {16, 8, 32, Elem::e5m2, Elem::f32, 89}, {16, 8, 16, Elem::e5m2, Elem::f32, 89},
    {16, 8, 4, Elem::f64, Elem::f64, 90},   {16, 8, 8, Elem::f64, Elem::f64, 90},
    {16, 8, 16, Elem::f64, Elem::f64, 90},  {8, 8, 4, Elem::f64, Elem::f64, 80},
    {16, 8, 32, Elem::s8, Elem::s32, 80},   {16, 8, 16, Elem::s8, Elem::s32, 80},
    {8, 8, 16, Elem::s8, Elem::s32, 75},    {16, 8, 32, Elem::u8, Elem::s32, 80},
    {16, 8, 16, Elem::u8, Elem::s32, 80},   {8, 8, 16, Elem::u8, Elem::s32, 75},
    {16, 8, 64, Elem::s4, Elem::s32, 80},   {16, 8, 32, Elem::s4, Elem::s32, 80},
    {8, 8, 32, Elem::s4, Elem::s32, 75},    {16, 8, 64, Elem::u4, Elem::s32, 80},
    {16, 8, 32, Elem::u4, Elem::s32, 80},   {8, 8, 32, Elem::u4, Elem::s32, 75},
    {16, 8, 256, Elem::b1, Elem::s32, 80},  {16, 8, 128, Elem::b1, Elem::s32, 80},
    {8, 8, 128, Elem::b1, Elem::s32, 75},
};

/// 9.7.14.5.1: lanes 4i .. 4i + 3 and the same + 16 work on product i.
FragmentMap quadMap(const MatrixInstruction &instruction, MatrixRole role) {
  constexpr LaneTerm upperHalf = {16, 2, 4}, quadRow = {8, 2, 8}, quadColumn = {4, 2, 8};
  FragmentMap map;
  map.perRegister = 2;
  if (role != MatrixRole::accumulator) {
    map.line = {{1, 4, 1}, upperHalf, role == MatrixRole::a ? quadRow : quadColumn};
    map.registers = {{0, 0}, {0, 2}};
    return map;
  }
  if (instruction.accumulator == Elem::f16) {
    map.line = {{1, 4, 1}, upperHalf, quadRow};
    map.depth = {quadColumn};
    map.registers = {{0, 0}, {0, 2}, {0, 4}, {0, 6}};
    return map;
  }
  map.perRegister = 1;
  map.line = {{1, 2, 1}, upperHalf, quadRow};
  map.depth = {{2, 2, 2}, quadColumn};
  for (int64_t i = 0; i < 8; ++i)
    map.registers.push_back({i & 2, (i & 4) + (i & 1)});
  return map;
}

/// 9.7.14.5.2 to 9.7.14.5.13: eight groups of four lanes. A group has a line, a lane of it one register's elements; the
/// registers take the blocks of eight lines first, then the next elements along k.
FragmentMap operandMap(const MatrixInstruction &instruction, int64_t lines) {
  unsigned bits = bitsOf(instruction.type);
  FragmentMap map;
  map.perRegister = bits > 32 ? 1 : 32 / bits;
  map.line = {{4, 8, 1}};
  map.depth = {{1, 4, map.perRegister}};
  int64_t perGroup = 4 * map.perRegister;
  for (int64_t depth = 0; depth < instruction.k; depth += perGroup)
    for (int64_t line = 0; line < lines; line += 8)
      map.registers.push_back({line, depth});
  return map;
}

FragmentMap accumulatorMap(const MatrixInstruction &instruction) {
  FragmentMap map;
  map.perRegister = instruction.accumulator == Elem::f16 ? 2 : 1;
  map.line = {{4, 8, 1}};
  map.depth = {{1, 4, 2}};
  for (int64_t line = 0; line < instruction.m; line += 8)
    for (int64_t column = 0; column < 2; column += map.perRegister)
      map.registers.push_back({line, column});
  return map;
}

int64_t sumOf(llvm::ArrayRef<LaneTerm> terms, unsigned lane) {
  int64_t sum = 0;
  for (const LaneTerm &term : terms)
    sum += int64_t(term.times) * (lane / term.divide % term.modulo);
  return sum;
}
} // namespace

llvm::ArrayRef<MatrixInstruction> matrixInstructions() { return table; }

const MatrixInstruction *findInstruction(llvm::ArrayRef<MatrixInstruction> table, int64_t m, int64_t n, int64_t k,
                                         Elem type, Elem accumulator) {
  const auto *found = llvm::find_if(table, [&](const MatrixInstruction &row) {
    return row.m == m && row.n == n && row.k == k && row.type == type && row.accumulator == accumulator;
  });
  return found == table.end() ? nullptr : found;
}

FragmentMap fragmentMap(const MatrixInstruction &instruction, MatrixRole role) {
  if (instruction.isQuad())
    return quadMap(instruction, role);
  if (role == MatrixRole::accumulator)
    return accumulatorMap(instruction);
  return operandMap(instruction, role == MatrixRole::a ? instruction.m : instruction.n);
}

int64_t FragmentMap::lineOf(unsigned lane, unsigned element) const {
  return sumOf(line, lane) + registers[element / perRegister].line;
}

int64_t FragmentMap::depthOf(unsigned lane, unsigned element) const {
  return sumOf(depth, lane) + registers[element / perRegister].depth + element % perRegister;
}

bool fitsLdmatrix(const MatrixInstruction &instruction, bool kMajor) {
  unsigned bits = bitsOf(instruction.type);
  return !instruction.isQuad() && bits <= 32 && (kMajor || bits == 16);
}

} // namespace gemmc
