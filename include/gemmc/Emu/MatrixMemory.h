/// ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15 to .17) for 8x8 matrices of 16-bit elements.
///
/// Matrix m has its eight rows at the addresses of lanes 8m .. 8m+7, each 16 bytes. Element (r, c) of it is register m
/// of lane 4r + c/2, the low half for even c; with `.trans`, element (c, r) is there instead.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gemmc::emu::sem {

/// `rows[i]`: the 16 bytes at the address of lane i, for 8 * count lanes. `regs[m][lane]`: the destination.
void ldmatrix(unsigned count, bool trans, const std::byte *const *rows, uint32_t *const *regs);
/// `rows` must not overlap.
void stmatrix(unsigned count, bool trans, const uint32_t *const *regs, std::byte *const *rows);
/// Transposes the matrix that the 32 lanes hold. `to` may be `from`.
void movmatrix(const uint32_t *from, uint32_t *to);

} // namespace gemmc::emu::sem
