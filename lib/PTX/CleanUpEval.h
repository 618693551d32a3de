/// Integer arithmetic of PTX on known operands, for constant folding. Values are bit patterns, zero above the width.
#pragma once
#include "gemmc/PTX/Ops.h"

namespace gemmc::ptx {

/// What an integer or bits type (or a predicate: one bit) means for arithmetic.
struct IntType {
  unsigned bits = 0;
  bool isSigned = false;
  static std::optional<IntType> of(Type type);

  uint64_t mask() const { return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }
  uint64_t cut(uint64_t value) const { return value & mask(); }
  /// The value as a mathematical integer: sign-extended when the type is signed.
  __int128 wide(uint64_t value) const;
  /// How the value is written as an immediate.
  int64_t immediate(uint64_t value) const { return static_cast<int64_t>(wide(cut(value))); }
};

/// The first result of `inst` on known operands (in the order of `inst.ops`; those of results are ignored), or nullopt
/// when the instruction is not modelled here or has no defined result.
std::optional<uint64_t> evaluate(const Inst &inst, llvm::ArrayRef<uint64_t> ops);

} // namespace gemmc::ptx
