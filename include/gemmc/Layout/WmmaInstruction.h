/// The wmma instructions (PTX ISA 9.7.14.4): shapes, types and how many registers a fragment takes. Which lane holds
/// which element is the hardware's secret; only whole fragments are loaded, multiplied and stored.
#pragma once
#include "gemmc/Support/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace gemmc {

struct WmmaInstruction {
  int64_t m, n, k;
  Elem type;        ///< Of A and B.
  Elem accumulator; ///< Of C and D.
  unsigned sm;      ///< The first target that has it.

  std::string shape() const; ///< `m16n16k16`
  /// Registers of one lane: 32 bits each, for f64 64.
  int64_t operandRegisters(bool isA) const;
  int64_t accumulatorRegisters() const;
  /// Each row (column) that is loaded starts at a multiple of the fragment's bytes (9.7.14.4.2).
  int64_t operandAlignment(bool isA) const;
  /// s4, u4 and b1 multiply rows of A with columns of B only.
  bool kMajorOnly() const { return bitsOf(type) < 8; }
};

/// All of them; of those with the same types the first is the one to take.
llvm::ArrayRef<WmmaInstruction> wmmaInstructions();
const WmmaInstruction *findWmmaInstruction(int64_t m, int64_t n, int64_t k, Elem type, Elem accumulator);

} // namespace gemmc
