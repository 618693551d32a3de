/// wgmma.mma_async (PTX ISA 9.7.15.5): descriptors, operands in shared memory, and a warp's share of the product.
///
/// Warp w of a warpgroup owns rows 16w .. 16w+15 of D, so that an instruction is four independent calls of `wgmma`; B
/// can be gathered once and shared by them.
#pragma once
#include "gemmc/Emu/Broken.h"
#include "gemmc/Emu/TensorCore.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <optional>

namespace gemmc::emu::sem {

/// The matrix descriptor (9.7.15.5.1.2.2):
///
///   63..62   61..52   51..49        48..46   45..32    31..30   29..16    15..14   13..0
///   swizzle  0        base offset   0        SBO >> 4  0        LBO >> 4  0        start >> 4
struct WgmmaDescriptor {
  uint32_t start = 0, leading = 0, stride = 0; ///< Bytes.
  uint32_t baseOffset = 0;
  enum Swizzle : uint8_t { none, b128, b64, b32 } swizzle = none; ///< By their encoding.
};
/// WG-5 for bits outside of the fields; `unmodelled` for a base offset other than 0.
Broken decodeDescriptor(uint64_t bits, WgmmaDescriptor &descriptor);

struct WgmmaForm {
  unsigned n = 8, k = 16;
  ptx::Type a = ptx::Type::f16, b = ptx::Type::f16, d = ptx::Type::f32;
  bool negateA = false, negateB = false; ///< imm-scale -1.
  bool transA = false, transB = false;   ///< imm-trans 1: MN-major.
  bool satfinite = false;                ///< Integers.
};
bool isWgmma(const WgmmaForm &form);
/// Registers of D (all types) and of A (4 always).
unsigned wgmmaRegsD(const WgmmaForm &form);

/// Byte address of element (line, k) of an operand: `line` is a row of A or a column of B, `k` counts elements along K.
/// `mnMajor` as `transA`/`transB`. For elements of less than a byte: of the byte that holds it.
uint32_t elementAddress(const WgmmaDescriptor &descriptor, bool mnMajor, unsigned bits, unsigned line, unsigned k);

/// An operand, gathered from shared memory or registers and ready to be multiplied.
struct WgmmaOperand {
  Factors factors;               ///< Floating-point types.
  std::vector<int16_t> integers; ///< s8, u8: [line * k + i].
  std::vector<uint32_t> bits;    ///< b1: [line * (k / 32) + word].
};

/// Bytes of shared memory that an operand covers: the lowest address and one past the highest.
struct WgmmaExtent {
  uint32_t begin, end;
};
WgmmaExtent operandExtent(const WgmmaForm &form, bool isB, const WgmmaDescriptor &descriptor, unsigned firstLine,
                          unsigned lines);

/// `firstLine`, `lines`: 0, n for B; 16w, 16 for warp w's rows of A. `shared` is indexed by shared addresses; WG-6 when
/// the operand reaches out of it.
Broken gatherShared(const WgmmaForm &form, bool isB, const WgmmaDescriptor &descriptor, unsigned firstLine,
                    unsigned lines, llvm::ArrayRef<std::byte> shared, WgmmaOperand &operand, uint32_t begin = 0);
/// A from four registers of a warp.
void gatherRegisters(const WgmmaForm &form, const uint32_t *const *regs, WgmmaOperand &operand);

/// d = a * b + (accumulate ? d : 0) for 16 rows. `a` has 16 lines, `b` n.
void wgmma(const WgmmaForm &form, const WgmmaOperand &a, const WgmmaOperand &b, bool accumulate, uint32_t *const *d);

} // namespace gemmc::emu::sem
