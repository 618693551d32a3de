#include "Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace gemmc::ptx {

std::optional<Target> parseTarget(StringRef name) {
  Target target;
  if (!name.consume_front("sm_") || name.consumeInteger(10, target.sm) || target.sm < 75 || target.sm > 999)
    return std::nullopt;
  target.a = name == "a";
  if (!name.empty() && name != "a" && name != "f")
    return std::nullopt;
  return target;
}

namespace {
/// The PTX version that first knew a target (PTX ISA 11.1.2).
unsigned versionOfTarget(Target target) {
  static constexpr std::pair<unsigned, unsigned> table[] = {{75, 63}, {80, 70}, {86, 71}, {87, 74},
                                                            {89, 78}, {90, 78}, {100, 86}};
  unsigned version = target.a ? 80 : 63;
  for (auto [sm, ptx] : table)
    if (target.sm >= sm)
      version = std::max(version, ptx);
  return version;
}

std::string versionText(unsigned version) { return (Twine(version / 10) + "." + Twine(version % 10)).str(); }

std::string listed(ArrayRef<StringRef> names) {
  std::string text;
  for (auto [i, name] : enumerate(names))
    text += (i == 0 ? "`." : i + 1 == names.size() ? " or `." : ", `.") + name.str() + "`";
  return text;
}

/// Loads, stores and atomics outside of the small windows (shared, local, param, const) take 64-bit addresses.
bool wantsWideAddress(const Inst &inst) {
  if (!is_contained({Op::Ld, Op::St, Op::Atom, Op::AtomCas, Op::Red}, inst.op))
    return false;
  for (unsigned slot = 0; slot < inst.mods.size(); ++slot)
    if (StringRef mod = inst.mod(slot);
        mod.starts_with("shared") || mod.starts_with("param") || mod == "local" || mod == "const")
      return false;
  return true;
}

enum class Family : uint8_t { Pred, Bits, Int, Float };
Family familyOf(Type type) {
  if (type == Type::pred)
    return Family::Pred;
  if (type <= Type::b128)
    return Family::Bits;
  return type <= Type::s64 ? Family::Int : Family::Float;
}
} // namespace

SMRange SourceLines::operator[](uint32_t line) const {
  if (!line || text.empty())
    return {};
  if (starts.empty()) {
    starts.push_back(text.begin());
    for (const char &c : text)
      if (c == '\n')
        starts.push_back(&c + 1);
  }
  if (line > starts.size())
    return {};
  StringRef found(starts[line - 1], text.end() - starts[line - 1]);
  found = found.take_until([](char c) { return c == '\n'; });
  return rangeOf(found.take_front(found.find("//")).trim());
}

namespace {
/// The bytes of a small state space, variable by variable.
class SpaceRoom {
public:
  SpaceRoom(StringRef what, uint64_t most) : what(what), most(most) {}
  /// Reports the first variable that there is no room for.
  void take(const Variable &variable, Diags &diags, const SourceLines &lines) {
    used = alignTo(used, variable.alignment()) + variable.bytes();
    if (used > most && !full)
      diags.report(Diag::ptx_space_full, lines[variable.line], what, used, variable.name, most);
    full |= used > most;
  }

private:
  StringRef what;
  uint64_t most, used = 0;
  bool full = false;
};
} // namespace

void Checker::run() {
  setUp();
  directives();
  spaces();
  labels();
  for (const Stmt &stmt : function.body) {
    if (stmt.kind != Stmt::Instruction)
      continue;
    inst = &stmt.inst;
    row = &rowOf(inst->op);
    instruction();
  }
  inst = nullptr;
}

void Checker::setUp() {
  target = parseTarget(module.target).value_or(Target{999, true});
  version = module.versionMajor * 10 + module.versionMinor;
  for (const auto *list : {&module.vars, &function.vars, &function.params, &function.results})
    for (const Variable &variable : *list)
      names.insert(variable.name);
  StringSet<> registers;
  for (const Reg &reg : function.regs)
    if (!registers.insert(reg.name).second)
      fail(Diag::ptx_redeclared, reg.name);
    else if (reg.type == Type::none || reg.type == Type::bf16 || reg.type == Type::bf16x2 || reg.type == Type::tf32 ||
             reg.type > Type::f64)
      fail(Diag::ptx_bad_type, nameOf(reg.type), "a register");
}

void Checker::directives() {
  auto threads = [&](StringRef name, const std::array<unsigned, 3> &count) {
    uint64_t product = uint64_t(count[0]) * count[1] * count[2];
    if (product > 1024 || count[0] > 1024 || count[1] > 1024 || count[2] > 64)
      fail(Diag::ptx_directive_value, name, product, "at most 1024 threads, 64 in z");
  };
  threads("reqntid", function.reqntid);
  threads("maxntid", function.maxntid);
  const auto &cluster = function.reqnctapercluster;
  uint64_t ctas = uint64_t(cluster[0]) * cluster[1] * cluster[2];
  if (ctas > 16 || cluster[0] > 16 || cluster[1] > 16 || cluster[2] > 16)
    fail(Diag::ptx_directive_value, "reqnctapercluster", ctas, "at most 16 CTAs");
  if (ctas && function.maxclusterrank)
    fail(Diag::ptx_directive_value, "maxclusterrank", function.maxclusterrank, "none beside .reqnctapercluster");
  if ((ctas || function.explicitcluster || function.maxclusterrank) && (target.sm < 90 || version < 78))
    fail(Diag::ptx_needs_target, ".reqnctapercluster", "sm_90 and PTX 7.8", module.target);
}

/// CUDA Programming Guide, technical specifications per compute capability; PTX ISA 5.1.6 for parameters.
void Checker::spaces() {
  SpaceRoom local("`.local` variables of a thread", 512 * 1024), params("a kernel's parameters", 32764);
  for (const Variable &variable : function.vars)
    if (variable.space == Space::local)
      local.take(variable, diags, lines);
  if (function.isEntry)
    for (const Variable &param : function.params)
      params.take(param, diags, lines);
}

void Checker::labels() {
  StringSet<> defined;
  for (const Stmt &stmt : function.body)
    if (stmt.kind == Stmt::Label && !defined.insert(stmt.text).second)
      fail(Diag::ptx_redeclared, stmt.text);
  for (const Stmt &stmt : function.body) {
    if (stmt.kind != Stmt::Instruction && stmt.kind != Stmt::Targets)
      continue;
    inst = &stmt.inst;
    for (const Operand &operand : inst->ops)
      if (operand.kind == Operand::Label && !defined.contains(operand.name))
        fail(Diag::ptx_undefined_label, operand.name, "");
  }
}

void Checker::instruction() {
  if (inst->mods.size() != row->slots.size() || inst->ops.size() != row->operands.size())
    return fail(Diag::ptx_operand_missing, nameOf(inst->op), inst->ops.size(), row->operands.size());
  good = true;
  modifiers();
  if (inst->guarded && typeOf(inst->guard) != Type::pred)
    fail(Diag::ptx_guard, function.regs[inst->guard].name, nameOf(typeOf(inst->guard)));
  for (unsigned i = 0; i < inst->ops.size(); ++i)
    operand(i);
  if (Rule rule = ruleOf(inst->op); rule && good)
    rule(*this);
}

void Checker::limit(StringRef what, unsigned minSm, unsigned minPtx, bool archSpecific) {
  if (archSpecific ? target.sm != minSm || !target.a : target.sm < minSm)
    fail(Diag::ptx_needs_target, what, ("sm_" + Twine(minSm) + (archSpecific ? "a exactly" : " or higher")).str(),
         module.target);
  else if (version < minPtx)
    fail(Diag::ptx_needs_version, what, versionText(minPtx), versionText(version));
}

void Checker::modifiers() {
  bool whole =
      target.sm < row->minSm || (row->archSpecific && !(target.a && target.sm == row->minSm)) || version < row->minPtx;
  if (whole)
    limit(shown(), row->minSm, row->minPtx, row->archSpecific);
  for (auto [slot, mod] : zip(row->slots, inst->mods)) {
    if (!mod) {
      if (!slot.optional)
        fail(Diag::ptx_missing_modifier, shown(), listed(slot.choices));
      continue;
    }
    StringRef name = slot.choices[mod - 1];
    const ChoiceLimit &entry = slot.limits[mod - 1];
    if (!whole && (target.sm < entry.minSm || version < entry.minPtx))
      limit((shown() + "` with `." + name).str(), entry.minSm, entry.minPtx, false);
    for (const auto &condition : entry.conditions) {
      bool any = any_of(condition.any, [&](StringRef other) { return inst->has(other); });
      if (any == condition.negated)
        fail(condition.negated ? Diag::ptx_excludes_modifier : Diag::ptx_needs_modifier, name, listed(condition.any),
             shown());
    }
  }
}

// --- Operands

void Checker::operand(unsigned index) {
  const OperandForm &form = row->operands[index];
  const Operand &operand = op(index);
  std::optional<bool> presence = operandPresence(*inst, index);
  if (operand.kind == Operand::None) {
    if (presence.value_or(false))
      fail(Diag::ptx_operand_kind, form.name, shown(), "given");
    return;
  }
  if (presence == false)
    return fail(Diag::ptx_operand_kind, form.name, shown(), "left out without " + listed(form.with));
  if (form.isAddress)
    return address(form, operand);
  if (form.isList)
    return list(form, operand);
  if (form.rule == TypeRule::Function)
    return callee(operand);
  if (form.rule == TypeRule::Label) {
    bool hole = operand.kind == Operand::Hole && holes && holes->lookup(operand.name) == Type::none;
    if (operand.kind != Operand::Label && !hole)
      fail(Diag::ptx_operand_kind, form.name, shown(), "a label");
    return;
  }
  Type type = operandType(*inst, index);
  if (operand.kind != Operand::Vector) {
    if (form.isVector && !form.mayBeScalar)
      return fail(Diag::ptx_operand_kind, form.name, shown(), "a vector `{...}`");
    return scalar(form, operand, type);
  }
  if (!form.isVector)
    return fail(Diag::ptx_operand_kind, form.name, shown(), "no vector");
  if (type == Type::none) // an unpacking into parts that do not exist
    return fail(Diag::ptx_vector_length, form.name, shown(), operand.elems.size(), "2 or 4, each of 8 bits or more");
  for (const Operand &elem : operand.elems)
    scalar(form, elem, type);
}

/// What a call passes and gets: variables of the param space.
void Checker::list(const OperandForm &form, const Operand &operand) {
  for (const Operand &elem : operand.elems)
    if (elem.kind == Operand::Symbol && !elem.imm)
      symbol(elem);
    else
      fail(Diag::ptx_operand_kind, form.name, shown(), "a list of `.param` variables");
}

void Checker::callee(const Operand &operand) {
  const Function *called = module.find(operand.name);
  if (!called || called->isEntry)
    return fail(Diag::ptx_undeclared, operand.name, "");
  if (op(0).elems.size() != called->results.size())
    fail(Diag::ptx_vector_length, "r", shown(), op(0).elems.size(), called->results.size());
  if (op(2).elems.size() != called->params.size())
    fail(Diag::ptx_vector_length, "a", shown(), op(2).elems.size(), called->params.size());
}

/// Whether a register of type `have` may stand where `want` is asked for (PTX ISA 9.4, settled with ptxas).
bool Checker::fits(const OperandForm &form, Type want, Type have) const {
  Family wanted = familyOf(want), given = familyOf(have);
  if (wanted == Family::Pred || given == Family::Pred)
    return wanted == given;
  bool sameSize = bitsOf(want) == bitsOf(have);
  if (!sameSize && (!form.widerOk || bitsOf(have) < bitsOf(want) || given == Family::Float))
    return false;
  if (!sameSize && wanted == Family::Float && inst->op != Op::Ld && inst->op != Op::St)
    return false;
  if (wanted == Family::Bits || given == Family::Bits)
    return true;
  return wanted == Family::Int ? given == Family::Int : want == have;
}

void Checker::scalar(const OperandForm &form, const Operand &operand, Type type) {
  switch (operand.kind) {
  case Operand::Reg: {
    assert(operand.reg < function.regs.size() && "an operand names a register of another function");
    if (form.immediate)
      return fail(Diag::ptx_operand_kind, form.name, shown(), "an immediate");
    if (operand.negated && !form.negatable && !(type == Type::pred && form.access == Access::Read))
      return fail(Diag::ptx_operand_kind, form.name, shown(), "written without `!`");
    Type have = typeOf(operand.reg);
    bool good = form.rule == TypeRule::Address ? bitsOf(have) == 64 || bitsOf(have) == 32 : fits(form, type, have);
    if (!good)
      fail(Diag::ptx_operand_type, form.name, shown(), nameOf(type), function.regs[operand.reg].name, nameOf(have));
    return;
  }
  case Operand::Imm:
    return immediate(form, operand, type);
  case Operand::Sink:
    if (!form.sinkable)
      fail(Diag::ptx_operand_kind, form.name, shown(), "a register, not `_`");
    return;
  case Operand::Special: {
    auto have = specialType(operand.name);
    if (operand.name == "WARP_SZ" && form.access == Access::Read)
      return;
    if (!form.special || !have)
      return fail(Diag::ptx_operand_kind, form.name, shown(), "no special register: `mov` it to a register first");
    if (bitsOf(*have) != bitsOf(type))
      fail(Diag::ptx_special_type, operand.name, nameOf(*have), form.name, shown(), nameOf(type));
    return;
  }
  case Operand::Symbol:
    if (!form.symbol)
      return fail(Diag::ptx_operand_kind, form.name, shown(), "no variable: `mov` its address to a register first");
    return symbol(operand);
  case Operand::Hole: {
    auto found = holes ? holes->find(operand.name) : StringMap<Type>::const_iterator();
    if (holes && found != holes->end() && !fits(form, type, found->second))
      fail(Diag::ptx_operand_type, form.name, shown(), nameOf(type), "<" + operand.name + ">", nameOf(found->second));
    return;
  }
  default:
    fail(Diag::ptx_operand_kind, form.name, shown(), "a register or an immediate");
  }
}

void Checker::immediate(const OperandForm &form, const Operand &operand, Type type) {
  if (form.access != Access::Read)
    return fail(Diag::ptx_operand_kind, form.name, shown(), "a register");
  auto wrong = [&](StringRef rule) { fail(Diag::ptx_immediate_type, form.name, shown(), nameOf(type), rule); };
  if (type == Type::pred) {
    // nvcc writes `mov.pred %p, -1`; what others take as a predicate ptxas wants as 0 or 1.
    if (operand.floatBits || (operand.imm != 0 && operand.imm != 1 && inst->op != Op::Mov))
      wrong("an immediate is 0 or 1");
    return;
  }
  switch (familyOf(type)) {
  case Family::Float:
    if (type != Type::f32 && type != Type::f64)
      wrong("it takes no immediate");
    else if (!operand.floatBits)
      wrong("an immediate is written as a float, such as 0f3F800000 or 1.0");
    break;
  case Family::Int:
    if (operand.floatBits)
      wrong("an immediate is an integer");
    break;
  default:
    if (operand.floatBits && operand.floatBits != bitsOf(type))
      wrong("a float immediate has the operand's width");
  }
}

void Checker::symbol(const Operand &operand) {
  if (!names.contains(operand.name))
    fail(Diag::ptx_undeclared, operand.name, "");
}

void Checker::address(const OperandForm &form, const Operand &operand) {
  if (operand.kind == Operand::Hole)
    return;
  if (operand.kind != Operand::Address || operand.elems.empty() == form.hasCoords)
    return fail(Diag::ptx_operand_kind, form.name, shown(),
                form.hasCoords ? "`[map, {coordinates}]`" : "an address `[...]`");
  if (operand.imm != static_cast<int32_t>(operand.imm))
    fail(Diag::ptx_value, form.name, shown(), operand.imm, "an offset of 32 bits");
  if (operand.hasReg) {
    Type have = typeOf(operand.reg);
    bool narrow = bitsOf(have) == 32 && !form.type && !wantsWideAddress(*inst);
    if (familyOf(have) == Family::Float || (bitsOf(have) != 64 && !narrow))
      fail(Diag::ptx_operand_type, form.name, shown(), "b64", function.regs[operand.reg].name, nameOf(have));
  } else if (operand.name.empty()) {
    if (!inst->has("local"))
      fail(Diag::ptx_operand_kind, form.name, shown(), "based on a register or a variable");
  } else if (operand.name.front() != '<') {
    symbol(operand);
  }
  OperandForm coordinateForm;
  coordinateForm.name = "c";
  for (const Operand &coordinate : operand.elems)
    scalar(coordinateForm, coordinate, Type::s32);
}

void Checker::length(unsigned index, unsigned count) {
  const Operand &operand = op(index);
  if (operand.kind == Operand::Vector && operand.elems.size() != count)
    fail(Diag::ptx_vector_length, row->operands[index].name, shown(), operand.elems.size(), count);
}

void Checker::value(unsigned index, function_ref<bool(int64_t)> accept, StringRef rule) {
  const Operand &operand = op(index);
  if (operand.kind == Operand::Imm && !operand.floatBits && !accept(operand.imm))
    fail(Diag::ptx_value, row->operands[index].name, shown(), operand.imm, rule);
}

/// What `verify` and `verifyProgram` share.
static bool verify(const Module &module, Diags &diags, StringRef source, bool isProgram) {
  unsigned before = diags.numErrors();
  auto target = parseTarget(module.target);
  unsigned version = module.versionMajor * 10 + module.versionMinor;
  const SourceLines lines(source);
  if (!target)
    diags.report(Diag::ptx_bad_target, lines[module.targetLine], module.target);
  else if (unsigned needed = versionOfTarget(*target); version < needed)
    diags.report(Diag::ptx_target_version, lines[module.versionLine], module.target, versionText(needed),
                 versionText(version));
  SpaceRoom constants("`.const` variables of a module", 64 * 1024);
  auto takeConstants = [&](ArrayRef<Variable> variables) {
    for (const Variable &variable : variables)
      if (variable.space == Space::constant)
        constants.take(variable, diags, lines);
  };
  takeConstants(module.vars);
  for (const Function &function : module.functions)
    takeConstants(function.vars);
  for (const Function &function : module.functions) {
    unsigned errors = diags.numErrors();
    Checker checker(module, function, diags, lines, nullptr);
    checker.run();
    if (isProgram && diags.numErrors() == errors)
      checker.registers();
  }
  return diags.numErrors() == before;
}

bool verify(const Module &module, Diags &diags, StringRef source) { return verify(module, diags, source, false); }
bool verifyProgram(const Module &module, Diags &diags, StringRef source) { return verify(module, diags, source, true); }

} // namespace gemmc::ptx
