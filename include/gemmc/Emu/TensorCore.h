/// Arithmetic of the matrix units: d = c + sum over k of a[k] * b[k], as the chips compute it (f16, bf16, tf32, fp8).
///
/// The manual leaves accumulation open; this is the measured behaviour. One instruction is one fused sum, or two where
/// the unit takes only half of K at a time: products are exact, all terms and c are aligned to the largest exponent
/// among them, cut towards zero to F fraction bits there, and added exactly. The result is cut to f32, or rounded to
/// nearest even for f16. The exponent of a product is the sum of the factors' exponents (it is not normalised), that of
/// a subnormal factor its format's smallest; a product of zero and c = 0 have none. sm_90 aligns at 2^-133 at
/// least.
///
///   chip            F (f16, bf16, tf32)   K at once        F (fp8)   f32 result of fp8   K at once
///   sm_80, sm_86           24           128 bits of a row      -            -                -
///   sm_89                  24           128 bits of a row     13     13 fraction bits     16 elements
///   sm_90 mma.sync         25                all              (as f16, see MmaMultiply.cpp)
///   sm_90 wgmma            25                all              13     13 fraction bits        all
///
/// Zeros come out as +0, NaN as 0x7fffffff (f32) or 0x7fff (f16); infinities follow IEEE 754.
#pragma once
#include "gemmc/PTX/IR.h"
#include <cstdint>
#include <vector>

namespace gemmc::emu::sem {

enum class Chip : uint8_t { ampere, ada, hopper };
/// From the number in the module's target: 80, 86, 89, 90...
Chip chipOf(unsigned sm);

struct DotModel {
  unsigned fraction = 25;       ///< F.
  unsigned step = ~0u;          ///< Elements of K in one fused sum.
  unsigned resultFraction = 23; ///< Fraction bits of an f32 result.
  int smallest = -1000;         ///< Terms are aligned at this exponent at least.
  bool f16Result = false;
};
/// `a` is the type of the factors, `d` f32 or f16, `k` the instruction's.
DotModel dotModel(Chip chip, bool wgmma, ptx::Type a, ptx::Type d, unsigned k);

/// A matrix operand ready for many dots: floating-point factors of `lines` rows of A (or columns of B), each of `k`
/// elements (32 at most). Every value is split as significand * 2^exponent with |significand| < 2.
struct Factors {
  unsigned lines = 0, k = 0;
  std::vector<float> values;      ///< `[line * k + i]`, after tf32 truncation and negation.
  std::vector<int16_t> exponents; ///< Of the same elements.
  std::vector<uint8_t> plain;     ///< By line: finite and of moderate exponents, so that the fast path may take it.

  void resize(unsigned newLines, unsigned newK);
  /// Stores `count` elements, adjacent in `data`: elements i, i+1... of `line`, or element i of `line`, `line`+1...
  void fill(unsigned line, unsigned i, unsigned count, ptx::Type type, const void *data, bool alongLines = false,
            bool negate = false);
  /// To be called once after all elements are stored.
  void finish();
};

/// One dot in the most literal way: the definition above, without shortcuts. `c` and the result are bits of f32, or of
/// f16 when `model.f16Result`.
uint32_t fusedDot(const DotModel &model, const Factors &a, unsigned row, const Factors &b, unsigned column, uint32_t c);

/// d[r][c] for all rows of `a` and columns of `b`, the same bits as `fusedDot`, fast. `acc` holds c on entry and d on
/// return, row-major with `stride` words a row; an f16 accumulator takes a word too.
void fusedDots(const DotModel &model, const Factors &a, const Factors &b, uint32_t *acc, unsigned stride);

/// s32 accumulation of integer factors: exact, then wrapped, or clamped with `satfinite`. `a` and `b` are `[line * k +
/// i]`. Clamping acts once, on the exact sum with c.
void integerDots(const int16_t *a, unsigned rows, const int16_t *b, unsigned columns, unsigned k, bool satfinite,
                 uint32_t *acc, unsigned stride);
/// Single bits: popc(a xor b) or popc(a and b), added to c with wrap-around. Lines of `words` 32-bit words.
void bitDots(const uint32_t *a, unsigned rows, const uint32_t *b, unsigned columns, unsigned words, bool exclusive,
             uint32_t *acc, unsigned stride);

} // namespace gemmc::emu::sem
