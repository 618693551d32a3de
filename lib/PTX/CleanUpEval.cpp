#include "CleanUpEval.h"
#include <algorithm>

namespace gemmc::ptx {
namespace {
using Wide = __int128;

/// Shift amounts are clamped to the width (PTX ISA 9.7.8: shl, shr).
uint64_t shiftLeft(IntType type, uint64_t a, uint64_t by) { return by >= type.bits ? 0 : type.cut(a << by); }
uint64_t shiftRight(IntType type, uint64_t a, uint64_t by) {
  return type.cut(static_cast<uint64_t>(type.wide(a) >> std::min<uint64_t>(by, type.bits)));
}

std::optional<bool> compare(llvm::StringRef how, Wide a, Wide b) {
  if (how == "eq" || how == "ne")
    return (a == b) == (how == "eq");
  if (how == "lt" || how == "lo")
    return a < b;
  if (how == "le" || how == "ls")
    return a <= b;
  if (how == "gt" || how == "hi")
    return a > b;
  if (how == "ge" || how == "hs")
    return a >= b;
  return std::nullopt;
}

/// `p` of a plain setp: no second predicate, nothing combined.
std::optional<uint64_t> setp(const Inst &inst, llvm::ArrayRef<uint64_t> ops) {
  auto type = IntType::of(inst.type());
  bool plain = inst.mod(1).empty() && (inst.ops[1].kind == Operand::None || inst.ops[1].kind == Operand::Sink);
  if (!type || !plain)
    return std::nullopt;
  auto result = compare(inst.mod(0), type->wide(ops[2]), type->wide(ops[3]));
  return result ? std::optional<uint64_t>(*result) : std::nullopt;
}

/// The low or high half of `mul` and `mad`, the whole of their wide forms. Modulo 2^128, which holds any of these.
uint64_t product(const Inst &inst, IntType type, llvm::ArrayRef<uint64_t> ops) {
  using Unsigned = unsigned __int128;
  Unsigned full = Unsigned(type.wide(ops[1])) * Unsigned(type.wide(ops[2]));
  bool isWide = inst.op == Op::MulWide || inst.op == Op::MadWide;
  return static_cast<uint64_t>(!isWide && inst.mod(0) == "hi" ? full >> type.bits : full);
}

std::optional<uint64_t> convert(const Inst &inst, uint64_t a) {
  for (unsigned slot = 0; slot < 3; ++slot) // rounding, ftz, sat
    if (!inst.mod(slot).empty())
      return std::nullopt;
  auto to = IntType::of(operandType(inst, 0)), from = IntType::of(operandType(inst, 1));
  return to && from ? std::optional(to->cut(static_cast<uint64_t>(from->wide(from->cut(a))))) : std::nullopt;
}

std::optional<uint64_t> divide(Op op, IntType type, uint64_t a, uint64_t b) {
  if (b == 0) // unspecified (PTX ISA 9.7.1: div, rem)
    return std::nullopt;
  Wide result = op == Op::Div ? type.wide(a) / type.wide(b) : type.wide(a) % type.wide(b);
  return type.cut(static_cast<uint64_t>(result));
}
} // namespace

std::optional<IntType> IntType::of(Type type) {
  switch (type) {
  case Type::pred:
    return IntType{1, false};
  case Type::b8:
  case Type::u8:
  case Type::b16:
  case Type::u16:
  case Type::b32:
  case Type::u32:
  case Type::b64:
  case Type::u64:
    return IntType{bitsOf(type), false};
  case Type::s8:
  case Type::s16:
  case Type::s32:
  case Type::s64:
    return IntType{bitsOf(type), true};
  default:
    return std::nullopt;
  }
}

__int128 IntType::wide(uint64_t value) const {
  if (!isSigned)
    return value;
  unsigned unused = 64 - bits;
  return static_cast<int64_t>(value << unused) >> unused;
}

std::optional<uint64_t> evaluate(const Inst &inst, llvm::ArrayRef<uint64_t> ops) {
  if (inst.op == Op::Setp)
    return setp(inst, ops);
  if (inst.op == Op::Cvt)
    return convert(inst, ops[1]);
  auto type = IntType::of(inst.type());
  if (!type || inst.has("sat"))
    return std::nullopt;
  uint64_t a = ops.size() > 1 ? ops[1] : 0, b = ops.size() > 2 ? ops[2] : 0;
  switch (inst.op) {
  case Op::Mov:
    return type->cut(a);
  case Op::Add:
    return type->cut(a + b);
  case Op::Sub:
    return type->cut(a - b);
  case Op::Mul:
    return type->cut(product(inst, *type, ops));
  case Op::Mad:
    return type->cut(product(inst, *type, ops) + ops[3]);
  case Op::MulWide:
    return IntType{2 * type->bits}.cut(product(inst, *type, ops));
  case Op::MadWide:
    return IntType{2 * type->bits}.cut(product(inst, *type, ops) + ops[3]);
  case Op::Div:
  case Op::Rem:
    return divide(inst.op, *type, a, b);
  case Op::Min:
    return type->cut(static_cast<uint64_t>(std::min(type->wide(a), type->wide(b))));
  case Op::Max:
    return type->cut(static_cast<uint64_t>(std::max(type->wide(a), type->wide(b))));
  case Op::Neg:
    return type->cut(-a);
  case Op::Abs:
    return type->cut(type->wide(a) < 0 ? -a : a);
  case Op::And:
    return a & b;
  case Op::Or:
    return a | b;
  case Op::Xor:
    return a ^ b;
  case Op::Not:
    return type->cut(~a);
  case Op::Shl:
    return shiftLeft(*type, a, b);
  case Op::Shr:
    return shiftRight(*type, a, b);
  default:
    return std::nullopt;
  }
}

} // namespace gemmc::ptx
