/// mma.sync and wmma (PTX ISA 9.7.14.4, 9.7.14.5): a warp's registers in, a warp's registers out.
///
/// A register of a warp is a row of 32 `uint32_t`, one a lane; a 64-bit register is a row of 32 `uint64_t`, passed by
/// the address of its first word.
#pragma once
#include "gemmc/Emu/Broken.h"
#include "gemmc/Emu/Numerics.h"
#include "gemmc/Emu/TensorCore.h"
#include "gemmc/Support/Types.h"

namespace gemmc::emu::sem {

struct MmaForm {
  unsigned m = 16, n = 8, k = 16;
  ptx::Type a = ptx::Type::f16, b = ptx::Type::f16, c = ptx::Type::f32, d = ptx::Type::f32;
  Order aOrder = Order::row, bOrder = Order::col; ///< Only m8n8k4.f16 (and wmma) have a choice.
  bool satfinite = false;                         ///< Integers: clamp instead of wrap.
  bool exclusive = false;                         ///< b1: xor instead of and.
  Round round = Round::nearest;                   ///< f64.
  Chip chip = Chip::hopper;
};

enum class Role : uint8_t { a, b, c, d };

/// Whether the manual has this shape with these types.
bool isMma(const MmaForm &form);
/// Registers of a fragment (f64: 64-bit registers, else 32-bit).
unsigned mmaRegs(const MmaForm &form, Role role);
/// Which element of the role's matrix the `index`-th element (counted from the low end of the first register) of a lane
/// is. m8n8k4.f16 has four matrices, one for each group of eight lanes (`quad`).
struct Place {
  unsigned row, column, quad;
};
Place mmaPlace(const MmaForm &form, Role role, unsigned lane, unsigned index);
/// d = a * b + c. Pointers to registers; d may share registers with the sources. `form` must be one that `isMma`
/// accepts.
void mma(const MmaForm &form, const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c,
         uint32_t *const *d);

/// wmma. Which lane holds which element is the implementation's choice. Here: the elements of the matrix in row-major
/// order fill lane 0's registers, then lane 1's, and so on; a fragment with room for more repeats the matrix.
bool isWmma(const MmaForm &form);
unsigned wmmaRegs(const MmaForm &form, Role role);
/// A matrix in memory is a number of lines (rows of a row-major, columns of a column-major matrix), each contiguous.
struct WmmaLines {
  unsigned count, bytes;
};
WmmaLines wmmaLines(const MmaForm &form, Role role, Order order);
/// Elements of a row (column) of the matrix: the default of the `stride` operand.
unsigned wmmaDefaultStride(const MmaForm &form, Role role, Order order);
void wmmaLoad(const MmaForm &form, Role role, Order order, const std::byte *const *lines, uint32_t *const *regs);
void wmmaStore(const MmaForm &form, Order order, const uint32_t *const *regs, std::byte *const *lines);
void wmma(const MmaForm &form, const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c,
          uint32_t *const *d);

} // namespace gemmc::emu::sem
