// Constants and copies forward, and the instructions that become simpler by it. One walk over the blocks, each behind
// its dominators, so that a value is known before its first use.
#include "CleanUpEval.h"
#include "CleanUpWork.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::ptx {
namespace {

/// What is known of a value.
struct Fact {
  enum Kind : uint8_t { nothing, constant, copy } kind = nothing;
  RegId reg = 0;     ///< Copy: of this value.
  uint64_t bits = 0; ///< Constant.
};

class Folder {
public:
  explicit Folder(Work &work) : work(work), regs(work.function.regs), facts(regs.size()) {}

  void run() {
    for (uint32_t block : work.flow.order)
      for (uint32_t i = work.flow.blocks[block].begin; i < work.flow.blocks[block].end; ++i)
        if (work.live(i))
          visit(i);
  }

private:
  void visit(uint32_t stmt);
  bool resolveGuard(uint32_t stmt);
  void substitute(Inst &inst);
  void substituteCopy(Operand &operand, bool isInt);
  void substituteFlags(Inst &inst);
  void simplify(Inst &inst);
  bool simplifyByConstant(Inst &inst, unsigned index, uint64_t value, IntType type);
  void simplifyMad(Inst &inst, IntType type);
  void simplifySelect(Inst &inst);
  void learn(const Inst &inst);

  const Fact &factOf(const Operand &operand) const { return facts[operand.reg]; }
  std::optional<uint64_t> known(const Inst &inst, unsigned index) const;
  void toMove(Inst &inst, Operand source);
  /// Makes `inst` another instruction with the operands `ops`, its guard and result kept.
  void become(Inst &inst, const llvm::Twine &mnemonic, llvm::SmallVector<Operand, 4> ops);

  Work &work;
  const std::vector<Reg> &regs;
  std::vector<Fact> facts; ///< By register.
  llvm::StringMap<Match> rows;
};

/// Operands of this instruction may become immediates.
bool takesConstants(Op op) {
  switch (op) {
  case Op::Add:
  case Op::Sub:
  case Op::Mul:
  case Op::MulWide:
  case Op::Mad:
  case Op::MadWide:
  case Op::Div:
  case Op::Rem:
  case Op::Min:
  case Op::Max:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Shl:
  case Op::Shr:
  case Op::Shf:
  case Op::Bfe:
  case Op::Bfi:
  case Op::Lop3:
  case Op::Prmt:
  case Op::Setp:
  case Op::Selp:
  case Op::Mov:
  case Op::St:
    return true;
  default:
    return false;
  }
}

void Folder::visit(uint32_t stmt) {
  Inst &inst = work.inst(stmt);
  if (inst.guarded && !resolveGuard(stmt))
    return;
  Effect effect = effectOf(inst.op);
  if (effect == Effect::Tensor) // its register lists are laid out on purpose
    return substituteFlags(inst);
  substitute(inst);
  if (effect != Effect::Pure)
    return;
  simplify(inst);
  if (inst.op == Op::Mov && inst.ops[1] == inst.ops[0])
    return work.remove(stmt);
  learn(inst);
}

/// False when the guard never holds: the instruction is gone.
bool Folder::resolveGuard(uint32_t stmt) {
  Inst &inst = work.inst(stmt);
  const Fact &fact = facts[inst.guard];
  if (fact.kind == Fact::copy) {
    inst.guard = fact.reg;
    work.changed = true;
  } else if (fact.kind == Fact::constant) {
    if (bool(fact.bits) == inst.guardNegated) {
      work.remove(stmt);
      return false;
    }
    inst.guarded = inst.guardNegated = false;
    inst.guard = 0;
    work.changed = true;
  }
  return true;
}

void Folder::substituteCopy(Operand &operand, bool isInt) {
  const Fact &fact = factOf(operand);
  Type now = regs[operand.reg].type, then = regs[fact.reg].type;
  bool fits = now == then || (isInt && IntType::of(now) && IntType::of(then) && bitsOf(now) == bitsOf(then));
  if (fact.kind != Fact::copy || !fits)
    return;
  operand.reg = fact.reg;
  work.changed = true;
}

void Folder::substitute(Inst &inst) {
  const Row &row = rowOf(inst.op);
  for (unsigned i = 0; i < inst.ops.size(); ++i) {
    Operand &operand = inst.ops[i];
    const OperandForm &form = row.operands[i];
    if (form.access != Access::Read)
      continue;
    for (Operand &elem : operand.elems)
      if (elem.isReg())
        substituteCopy(elem, operand.kind == Operand::Address);
    if (operand.kind == Operand::Address && operand.hasReg)
      substituteCopy(operand, true);
    if (!operand.isReg() || factOf(operand).kind == Fact::nothing)
      continue;
    auto type = IntType::of(operandType(inst, i));
    substituteCopy(operand, type.has_value());
    const Fact &fact = factOf(operand);
    if (fact.kind != Fact::constant || !type || type->bits == 1 || !takesConstants(inst.op))
      continue;
    operand = Operand::makeImm(type->immediate(fact.bits));
    work.changed = true;
  }
}

/// wgmma's choice between C = A B and C += A B may be written as 0 or 1.
void Folder::substituteFlags(Inst &inst) {
  const Row &row = rowOf(inst.op);
  for (unsigned i = 0; i < inst.ops.size(); ++i)
    if (row.operands[i].rule == TypeRule::Flag && inst.ops[i].isReg())
      if (auto value = known(inst, i)) {
        inst.ops[i] = Operand::makeImm(*value);
        work.changed = true;
      }
}

std::optional<uint64_t> Folder::known(const Inst &inst, unsigned index) const {
  const Operand &operand = inst.ops[index];
  bool isConstant = operand.isReg() ? factOf(operand).kind == Fact::constant : operand.isImm() && !operand.floatBits;
  auto type = isConstant ? IntType::of(operandType(inst, index)) : std::nullopt;
  if (!type)
    return std::nullopt;
  if (operand.isReg())
    return type->cut(factOf(operand).bits ^ uint64_t(operand.negated));
  return type->bits == 1 ? uint64_t(operand.imm != 0) : type->cut(operand.imm);
}

void Folder::become(Inst &inst, const llvm::Twine &mnemonic, llvm::SmallVector<Operand, 4> ops) {
  llvm::SmallString<16> text;
  auto [entry, fresh] = rows.try_emplace(mnemonic.toStringRef(text));
  if (fresh)
    entry->second = matchMnemonic(entry->getKey()).value();
  inst.op = entry->second.op;
  inst.mods = entry->second.mods;
  inst.ops = std::move(ops);
  assert(inst.ops.size() == rowOf(inst.op).operands.size());
  work.changed = true;
}

void Folder::toMove(Inst &inst, Operand source) {
  Type type = operandType(inst, 0);
  become(inst, "mov." + nameOf(type), {inst.ops[0], std::move(source)});
}

/// `x op constant` for the operand `index` being the constant. True when the instruction became another one.
bool Folder::simplifyByConstant(Inst &inst, unsigned index, uint64_t value, IntType type) {
  Operand other = inst.ops[3 - index];
  Operand zero = Operand::makeImm(0);
  bool second = index == 2;
  auto moveOther = [&] { return toMove(inst, other), true; };
  auto moveZero = [&] { return toMove(inst, zero), true; };
  auto shift = [&](const llvm::Twine &mnemonic) {
    return become(inst, mnemonic, {inst.ops[0], other, Operand::makeImm(llvm::Log2_64(value))}), true;
  };
  std::string bits = std::to_string(type.bits);
  switch (inst.op) {
  case Op::Add:
  case Op::Or:
  case Op::Xor:
    return value == 0 && moveOther();
  case Op::Sub:
  case Op::Shl:
  case Op::Shr:
    return value == 0 && second && moveOther();
  case Op::And:
    return value == 0 ? moveZero() : value == type.mask() && moveOther();
  case Op::Mul:
    if (inst.mod(0) != "lo")
      return false;
    if (value <= 1)
      return value == 0 ? moveZero() : moveOther();
    return llvm::isPowerOf2_64(value) && shift("shl.b" + bits);
  case Op::Div:
    if (value == 1 && second)
      return moveOther();
    return second && !type.isSigned && llvm::isPowerOf2_64(value) && shift("shr.u" + bits);
  case Op::Rem:
    if (value == 1 && second)
      return moveZero();
    if (!second || type.isSigned || !llvm::isPowerOf2_64(value))
      return false;
    become(inst, "and.b" + bits, {inst.ops[0], other, Operand::makeImm(type.immediate(value - 1))});
    return true;
  default:
    return false;
  }
}

/// mad.lo with a constant product or without an addend.
void Folder::simplifyMad(Inst &inst, IntType type) {
  if (inst.mod(0) != "lo")
    return;
  auto a = known(inst, 1), b = known(inst, 2), c = known(inst, 3);
  llvm::StringRef name = nameOf(inst.type());
  Operand dst = inst.ops[0], addend = inst.ops[3];
  if (a && b)
    become(inst, "add." + name, {dst, addend, Operand::makeImm(type.immediate(*a * *b))});
  else if (b && *b == 0)
    toMove(inst, addend);
  else if (b && *b == 1)
    become(inst, "add." + name, {dst, inst.ops[1], addend});
  else if (c && *c == 0)
    become(inst, "mul.lo." + name, {dst, inst.ops[1], inst.ops[2]});
  else
    return;
  simplify(inst);
}

void Folder::simplifySelect(Inst &inst) {
  if (inst.ops[1] == inst.ops[2])
    return toMove(inst, inst.ops[1]);
  if (auto which = known(inst, 3))
    toMove(inst, inst.ops[*which ? 1 : 2]);
}

void Folder::simplify(Inst &inst) {
  if (inst.op == Op::Selp)
    return simplifySelect(inst);
  auto type = IntType::of(inst.type());
  if (!type || inst.ops.size() < 3 || inst.has("sat"))
    return;
  // One writes a constant second.
  if (commutes(inst.op) && inst.ops[1].isImm() && inst.ops[2].isReg()) {
    std::swap(inst.ops[1], inst.ops[2]);
    work.changed = true;
  }
  if (inst.op == Op::Mad)
    return simplifyMad(inst, *type);
  if (inst.ops.size() != 3 || type->bits == 1)
    return;
  auto a = known(inst, 1), b = known(inst, 2);
  if (a && b)
    if (auto value = evaluate(inst, {0, *a, *b}); value && IntType::of(operandType(inst, 0)))
      return toMove(inst, Operand::makeImm(IntType::of(operandType(inst, 0))->immediate(*value)));
  for (unsigned index : {2u, 1u})
    if (auto value = known(inst, index); value && simplifyByConstant(inst, index, *value, *type))
      return simplify(inst);
}

/// Records what the result is, if it is a value and known.
void Folder::learn(const Inst &inst) {
  const Operand &dst = inst.ops[0];
  if (!dst.isReg() || !work.flow.isValue(dst.reg))
    return;
  Fact &fact = facts[dst.reg];
  bool sameWidth = bitsOf(operandType(inst, 0)) == bitsOf(regs[dst.reg].type);
  if (inst.op == Op::Mov && inst.ops[1].isReg()) {
    const Operand &source = inst.ops[1];
    if (sameWidth && !source.negated && work.flow.isValue(source.reg))
      fact = facts[source.reg].kind == Fact::constant ? facts[source.reg] : Fact{Fact::copy, source.reg, 0};
    return;
  }
  llvm::SmallVector<uint64_t, 5> ops(inst.ops.size());
  const Row &row = rowOf(inst.op);
  for (unsigned i = 1; i < inst.ops.size(); ++i)
    if (row.operands[i].access == Access::Read && inst.ops[i].kind != Operand::None) {
      auto value = known(inst, i);
      if (!value)
        return;
      ops[i] = *value;
    }
  auto value = evaluate(inst, ops);
  if (value && sameWidth)
    fact = {Fact::constant, 0, *value};
}
} // namespace

void foldConstants(Work &work) { Folder(work).run(); }

} // namespace gemmc::ptx
