/// A family of instructions as one experiment: a kernel in PTX text, inputs for each CTA, and which instructions a word
/// of the output came from. The same text with the same inputs runs on the card and on the emulator.
#pragma once
#include "Inputs.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gemmc::microtests {

using Bytes = llvm::MutableArrayRef<std::byte>;
using ConstBytes = llvm::ArrayRef<std::byte>;

/// How far an approximation may be from the emulator's exact value: the manual's bounds (PTX ISA 9.7.3 and 9.7.4), each
/// with one unit more for the emulator's rounding.
struct Tolerance {
  double ulps = 0, relative = 0, absolute = 0;
};

/// The kernel is `k(.param .u64 in, .param .u64 out)`; CTA i owns bytes i * inBytes... of `in` and i * outBytes... of
/// `out`.
struct Family {
  std::string name; ///< group/instruction
  std::string ptx;
  unsigned threads = 32;
  unsigned cluster = 1;               ///< CTAs of a cluster.
  unsigned inBytes = 0, outBytes = 0; ///< Of a CTA; multiples of 8.
  unsigned wordBytes = 4;             ///< What is compared.
  unsigned vectors = 1;               ///< Operand sets of a CTA: dots, or operands of each variant.
  std::optional<Tolerance> tolerance; ///< Of approximations; other families differ by nothing.
  ptx::Type element = ptx::Type::f32; ///< Of an approximation's result; a word has one or two.
  std::function<void(Random &, Bytes in)> fill;
  /// Of tf32 and bf16: powers of two whose products are around the smallest f32, and c = 0 (see `fillSmall`).
  std::function<void(Random &, Bytes in)> fillSmall;
  /// The instruction and its inputs behind word `word`, in hex.
  std::function<std::string(ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator)> describe;
};

/// All of them; small texts are made at once, since there are some hundreds.
std::vector<Family> allFamilies();
void addScalarFamilies(std::vector<Family> &families);
void addAtomicFamilies(std::vector<Family> &families);
void addMmaFamilies(std::vector<Family> &families);
void addWmmaFamilies(std::vector<Family> &families);
void addWgmmaFamilies(std::vector<Family> &families);

/// Head of every module.
extern const char *const ptxHead;

template <typename T> T loadAs(ConstBytes bytes, size_t at) {
  T value;
  __builtin_memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}
inline uint64_t loadBits(ConstBytes bytes, size_t at, unsigned size) {
  uint64_t value = 0;
  __builtin_memcpy(&value, bytes.data() + at, size);
  return value;
}
inline void storeBits(Bytes bytes, size_t at, uint64_t value, unsigned size) {
  __builtin_memcpy(bytes.data() + at, &value, size);
}
/// Element `index` of packed elements of `width` bits (64 at most).
inline uint64_t loadElement(ConstBytes bytes, size_t index, unsigned width) {
  size_t bit = index * width;
  if (width >= 8)
    return loadBits(bytes, bit / 8, width / 8);
  return loadBits(bytes, bit / 8, 1) >> bit % 8 & ((1u << width) - 1);
}
/// Fills [at, at + bytes) with packed elements.
void fillElements(Random &random, Bytes bytes, size_t at, size_t count, ptx::Type type, const Style &style);
/// Zeros, and powers of two from 2^-70 to 2^-87 with a sign: products from 2^-140 to 2^-174.
void fillSmall(Random &random, Bytes bytes, size_t at, size_t count, ptx::Type type);
std::string hex(uint64_t value, unsigned bits);
/// `a=[..] b=[..] c=..`, elements along K.
std::string dotText(llvm::ArrayRef<uint64_t> a, unsigned aBits, llvm::ArrayRef<uint64_t> b, unsigned bBits, uint64_t c,
                    unsigned cBits);

} // namespace gemmc::microtests
