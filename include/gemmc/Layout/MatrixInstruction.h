/// The matrix instructions of one warp (mma.sync, PTX ISA 9.7.14.5) and which lane holds which element of their
/// operands: pure integer functions, written from the manual's formulas.
///
/// A place in a fragment is a part that depends on the lane plus a part that depends on the register, so that lowering
/// computes the first once and writes the second into the address:
///
///     line  = sum of `line` terms (lane)  + registers[r].line            line:  row of A, column of B, row of D
///     depth = sum of `depth` terms (lane) + registers[r].depth + i       depth: k of A and B, column of D
///
/// for the i-th of the elements that register r packs, counted from its low end.
///
/// m8n8k4 of f16 computes four products at once, one for each quad of lanes (q, q + 16) with q = 4i .. 4i + 3 (manual,
/// 9.7.14.5.1). Here the four form one product of 16x16: quad i takes rows 8 * (i / 2) and columns 8 * (i % 2) of it.
#pragma once
#include "gemmc/Support/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace gemmc {

struct MatrixInstruction {
  int64_t m, n, k;  ///< As in its name.
  Elem type;        ///< Of A and B.
  Elem accumulator; ///< Of C and D.
  unsigned sm;      ///< The first target that has it, as in `sm_80`.

  bool isQuad() const { return type == Elem::f16 && k == 4; }
  /// Rows and columns of D that a warp computes with one instruction.
  int64_t rows() const { return isQuad() ? 2 * m : m; }
  int64_t columns() const { return isQuad() ? 2 * n : n; }
  /// Bytes of one line of A or B.
  int64_t lineBytes() const { return k * bitsOf(type) / 8; }
};

/// Columns of D that one wgmma computes at most (PTX ISA 9.7.15.2).
constexpr int64_t wgmmaMostColumns = 256;
/// Bytes of a line of k that one wgmma takes, whatever the type (PTX ISA 9.7.15.2).
constexpr int64_t wgmmaDepthBytes = 32;

/// All of them. Of those with the same types the first that a target has is the one to take.
llvm::ArrayRef<MatrixInstruction> matrixInstructions();
/// The row of a table (of mma.sync, of wmma) with this shape and these types; nullptr = there is none.
const MatrixInstruction *findInstruction(llvm::ArrayRef<MatrixInstruction> table, int64_t m, int64_t n, int64_t k,
                                         Elem type, Elem accumulator);

enum class MatrixRole : uint8_t { a, b, accumulator };

/// times * (lane / divide % modulo)
struct LaneTerm {
  unsigned divide, modulo, times;
};
struct FragmentMap {
  struct Offset {
    int64_t line, depth;
  };
  llvm::SmallVector<LaneTerm, 3> line, depth;
  llvm::SmallVector<Offset, 8> registers;
  unsigned perRegister = 1; ///< Elements of a register, neighbours along `depth`. f64: registers of 64 bits.

  int64_t lineOf(unsigned lane, unsigned element) const;
  int64_t depthOf(unsigned lane, unsigned element) const;
  unsigned elements() const { return registers.size() * perRegister; }
};
FragmentMap fragmentMap(const MatrixInstruction &instruction, MatrixRole role);

/// Whether ldmatrix fills the fragments of A and B: it moves words of 32 bits, so it needs lines of k in shared memory,
/// or (`.trans`) elements of 16 bits.
bool fitsLdmatrix(const MatrixInstruction &instruction, bool kMajor);

} // namespace gemmc
