/// The small floating-point formats, bit by bit: f16, bf16, tf32, e4m3, e5m2 to and from f32 and f64, as `cvt` rounds
/// them (PTX ISA 9.7.9.21, formats 5.2.3).
///
///   format  bits  exponent  fraction  bias  largest        infinity  NaN
///   f16      16      5         10       15   65504           yes     0x7fff
///   bf16     16      8          7      127   0x7f7f          yes     0x7fff
///   tf32     32      8         10      127   0x7f7fe000      yes     0x7fffe000
///   e4m3      8      4          3        7   448 (0x7e)      no      0x7f
///   e5m2      8      5          2       15   57344 (0x7b)    yes     0x7f
///
/// tf32 lies in the upper 19 bits of an f32 register; its low 13 bits are written as zero and ignored when read.
#pragma once
#include "gemmc/PTX/IR.h"
#include <array>
#include <bit>
#include <cstdint>

namespace gemmc::emu::sem {

enum class Round : uint8_t {
  nearest,     ///< rn: ties to even
  nearestAway, ///< rna: ties away from zero
  zero,        ///< rz
  down,        ///< rm
  up           ///< rp
};

struct CvtMode {
  Round round = Round::nearest;
  bool satfinite = false; ///< Too large a magnitude, infinity included, becomes the largest finite one.
  bool relu = false;      ///< A negative result (-0 too) becomes +0; NaN stays NaN.
};

struct Format {
  uint8_t bits, exponent, fraction;
  bool infinity;   ///< e4m3 has none: its only special value is NaN, all ones below the sign.
  uint8_t padding; ///< Unused low bits (tf32).
};
constexpr Format formatF16{16, 5, 10, true, 0}, formatBf16{16, 8, 7, true, 0}, formatTf32{32, 8, 10, true, 13},
    formatE4m3{8, 4, 3, false, 0}, formatE5m2{8, 5, 2, true, 0}, formatF32{32, 8, 23, true, 0};

/// Rounds a value once. NaN gives the format's canonical NaN. Without `satfinite`, what exceeds the largest finite
/// value after rounding becomes infinity or, rounded towards zero, the largest finite value; e4m3 has NaN in place of
/// infinity.
uint32_t encode(const Format &format, double value, CvtMode mode = {});
/// The value of a bit pattern, exact. Every NaN gives the host's quiet NaN.
double decode(const Format &format, uint32_t bits);

/// For speed: all 65536 values of f16 (256 KiB, filled on first use; signalling NaNs come out quiet).
const std::array<float, 65536> &f16Table();
/// All 256 values of an 8-bit format.
const std::array<float, 256> &e4m3Table();
const std::array<float, 256> &e5m2Table();

inline float f16ToF32(uint16_t bits) { return f16Table()[bits]; }
inline float bf16ToF32(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
inline float e4m3ToF32(uint8_t bits) { return e4m3Table()[bits]; }
inline float e5m2ToF32(uint8_t bits) { return e5m2Table()[bits]; }
inline float tf32ToF32(uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); }

inline uint16_t f32ToF16(float value, CvtMode mode = {}) { return encode(formatF16, value, mode); }
inline uint16_t f32ToBf16(float value, CvtMode mode = {}) { return encode(formatBf16, value, mode); }
inline uint32_t f32ToTf32(float value, CvtMode mode = {}) { return encode(formatTf32, value, mode); }
/// `cvt` to an 8-bit format always has `.rn.satfinite`.
inline uint8_t f32ToE4m3(float value, bool relu = false) {
  return encode(formatE4m3, value, {Round::nearest, true, relu});
}
inline uint8_t f32ToE5m2(float value, bool relu = false) {
  return encode(formatE5m2, value, {Round::nearest, true, relu});
}
/// Exact, for every finite value: f16 has room for all of e4m3 and e5m2. NaN gives 0x7fff.
inline uint16_t e4m3ToF16(uint8_t bits) { return encode(formatF16, e4m3ToF32(bits)); }
inline uint16_t e5m2ToF16(uint8_t bits) { return encode(formatF16, e5m2ToF32(bits)); }

/// The format of an element type; nullptr for integers and f64.
const Format *formatOf(ptx::Type type);

} // namespace gemmc::emu::sem
