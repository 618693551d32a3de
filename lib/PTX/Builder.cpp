#include "gemmc/PTX/Builder.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace gemmc::ptx {
namespace {

std::vector<Operand> operandsOf(ArrayRef<Val> values) {
  std::vector<Operand> operands;
  operands.reserve(values.size());
  for (const Val &value : values)
    operands.push_back(value.op);
  return operands;
}

/// Our own fault: says which instruction and stops, in release builds too, since wrong PTX would come out otherwise.
[[noreturn]] void misuse(StringRef mnemonic, ArrayRef<Match> rows, size_t count) {
  errs() << "internal error: `" << mnemonic << "` with " << count << " operands fits no row of the PTX table";
  for (const Match &match : rows)
    errs() << "\n  " << rowOf(match.op).form;
  errs() << '\n';
  std::abort();
}
} // namespace

Val::Val(ArrayRef<Val> elems) : op(Operand::makeVector(operandsOf(elems))) {}

Val at(const Val &base, int64_t offset) { return Operand::makeAddress(base.op, offset); }
Val at(const Val &base, int64_t offset, ArrayRef<Val> coords) {
  return Operand::makeAddress(base.op, offset, operandsOf(coords));
}
Val pair(const Val &first, const Val &second) {
  Val twin = Operand::makeVector({first.op, second.op});
  twin.twin = true;
  return twin;
}

Val Builder::reg(Type type, StringRef name) {
  if (name.starts_with("%"))
    return Operand::makeReg(function.addReg(type, name));
  SmallString<32> full("%");
  full += name;
  return Operand::makeReg(function.addReg(type, full));
}

std::vector<Val> Builder::regs(Type type, StringRef stem, unsigned count) {
  std::vector<Val> list;
  list.reserve(count);
  for (unsigned i = 0; i < count; ++i)
    list.push_back(reg(type, (stem + Twine(i)).str()));
  return list;
}

Stmt &Builder::append(Stmt::Kind kind) {
  Stmt &stmt = function.body.emplace_back();
  stmt.kind = kind;
  return stmt;
}

Val Builder::label(StringRef stem) { return Operand::makeLabel(function.freshLabel(stem)); }
void Builder::place(const Val &label) {
  assert(label.op.kind == Operand::Label && "place wants a label");
  append(Stmt::Label).text = label.op.name;
}

const SmallVector<Match, 2> &Builder::lookup(StringRef mnemonic) {
  auto [entry, fresh] = known.try_emplace(mnemonic);
  if (fresh)
    entry->second = matchMnemonics(mnemonic);
  return entry->second;
}

Inst &Builder::emit(StringRef mnemonic, ArrayRef<Val> args) {
  const auto &rows = lookup(mnemonic);
  SmallVector<TextOperand, 8> given;
  for (const Val &arg : args) {
    if (!arg.twin) {
      given.push_back({arg.op, false});
      continue;
    }
    given.push_back({arg.op.elems[0], false});
    given.push_back({arg.op.elems[1], true});
  }
  auto isPred = [&](RegId reg) { return function.regs[reg].type == Type::pred; };
  Inst &inst = append(Stmt::Instruction).inst;
  for (const Match &match : rows) {
    inst.op = match.op;
    inst.mods = match.mods;
    if (!placeOperands(inst, given, isPred))
      continue;
    inst.origin = origin;
    inst.guarded = std::exchange(pending, false);
    inst.guardNegated = inst.guarded && pendingNegated;
    inst.guard = inst.guarded ? pendingGuard : 0;
    return inst;
  }
  misuse(mnemonic, rows, given.size());
}

Builder &Builder::when(const Val &p, bool negated) {
  assert(p.isReg() && function.regs[p.op.reg].type == Type::pred && "a guard is a predicate register");
  pending = true;
  pendingGuard = p.op.reg;
  pendingNegated = negated != p.op.negated;
  return *this;
}

void Builder::comment(const Twine &text) { append(Stmt::Comment).text = text.str(); }
void Builder::pragma(StringRef text) { append(Stmt::Pragma).text = text.str(); }
void Builder::note(const Twine &text) {
  assert(!function.body.empty() && function.body.back().kind == Stmt::Instruction &&
         "a note stands behind an instruction");
  function.body.back().inst.comment = text.str();
}
void Builder::blank() {
  if (!function.body.empty() && function.body.back().kind != Stmt::Blank)
    append(Stmt::Blank);
}

void Builder::setOrigin(SMRange range) {
  if (function.origins[origin].Start == range.Start && function.origins[origin].End == range.End)
    return;
  function.origins.push_back(range);
  origin = function.origins.size() - 1;
}

} // namespace gemmc::ptx
