#include "gemmc/PTX/Inline.h"
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace gemmc::ptx {
namespace {

/// A body that is being copied.
struct Frame {
  const Function *function = nullptr;
  const Frame *caller = nullptr;
  std::vector<RegId> regs;       ///< In the kernel.
  StringMap<std::string> names;  ///< Variables and parameters.
  StringMap<std::string> labels; ///< Made when they are first met.
  std::string end;               ///< Where `ret` goes; empty: this is the kernel itself.
};

class Inliner {
public:
  Inliner(const Module &module, Function &into, size_t maxStatements)
      : module(module), into(into), maxStatements(maxStatements) {}

  void run() {
    into.uniqueLabel("$L__kernel"); // labels are numbered while the body is still there
    Function original = into;
    Frame frame;
    frame.function = &original;
    for (RegId reg = 0; reg < into.regs.size(); ++reg)
      frame.regs.push_back(reg);
    body.reserve(original.body.size());
    into.body.clear();
    copy(frame);
    into.body = std::move(body);
  }

private:
  void copy(Frame &frame);
  void instruction(const Inst &inst, Frame &frame);
  void expand(const Inst &inst, const Function &callee, Frame &caller);
  void declare(const Function &callee, Frame &frame);
  const Function *target(const Inst &inst, const Frame &frame) const;
  void rename(Operand &operand, Frame &frame);
  std::string labelOf(StringRef name, Frame &frame);
  void place(StringRef name) {
    Stmt &stmt = body.emplace_back();
    stmt.kind = Stmt::Label;
    stmt.text = name.str();
  }
  void branch(StringRef to, const Inst &like, bool opposite);

  const Module &module;
  Function &into;
  size_t maxStatements;
  std::vector<Stmt> body;
  StringMap<std::string> statics; ///< `function/variable` -> its name in the kernel.
};

/// The function that a call copies; nullptr when it must stay a call.
const Function *Inliner::target(const Inst &inst, const Frame &frame) const {
  const Function *callee = module.find(inst.ops[1].name);
  if (!callee || callee->isEntry || !callee->hasBody || callee->params.size() != inst.ops[2].elems.size() ||
      callee->results.size() != inst.ops[0].elems.size() || body.size() + callee->body.size() > maxStatements)
    return nullptr;
  for (const Frame *at = &frame; at; at = at->caller)
    if (at->function == callee)
      return nullptr;
  auto isVariable = [](const Operand &op) { return op.kind == Operand::Symbol; };
  return all_of(inst.ops[0].elems, isVariable) && all_of(inst.ops[2].elems, isVariable) ? callee : nullptr;
}

std::string Inliner::labelOf(StringRef name, Frame &frame) {
  if (frame.end.empty())
    return name.str();
  std::string &unique = frame.labels[name];
  if (unique.empty())
    unique = into.uniqueLabel(name);
  return unique;
}

void Inliner::rename(Operand &operand, Frame &frame) {
  if (operand.kind == Operand::Reg || operand.hasReg)
    operand.reg = frame.regs[operand.reg];
  if (operand.kind == Operand::Label)
    operand.name = labelOf(operand.name, frame);
  if (operand.kind == Operand::Symbol || operand.kind == Operand::Address)
    if (auto found = frame.names.find(operand.name); found != frame.names.end())
      operand.name = found->second;
  for (Operand &elem : operand.elems)
    rename(elem, frame);
}

void Inliner::branch(StringRef to, const Inst &like, bool opposite) {
  Stmt &stmt = body.emplace_back();
  stmt.kind = Stmt::Instruction;
  stmt.inst.op = Op::Bra;
  stmt.inst.mods.assign(rowOf(Op::Bra).slots.size(), 0);
  stmt.inst.ops.push_back(Operand::makeLabel(to));
  stmt.inst.line = like.line;
  stmt.inst.guarded = like.guarded;
  stmt.inst.guard = like.guard;
  stmt.inst.guardNegated = like.guardNegated != opposite;
}

void Inliner::declare(const Function &callee, Frame &frame) {
  for (const Variable &variable : callee.vars) {
    bool own = variable.space == Space::local || variable.space == Space::param;
    std::string unique;
    std::string &name = own ? unique : statics[callee.name + "/" + variable.name];
    if (name.empty()) {
      name = into.uniqueLabel(variable.name);
      into.vars.push_back(variable);
      into.vars.back().name = name;
    }
    frame.names[variable.name] = name;
  }
  for (const Reg &reg : callee.regs)
    frame.regs.push_back(into.addReg(reg.type, reg.name));
}

/// `inst` has been renamed: its operands are the caller's.
void Inliner::expand(const Inst &inst, const Function &callee, Frame &caller) {
  Frame frame;
  frame.function = &callee;
  frame.caller = &caller;
  frame.end = into.uniqueLabel("$L__after_call");
  declare(callee, frame);
  for (auto [formal, actual] : zip(callee.results, inst.ops[0].elems))
    frame.names[formal.name] = actual.name;
  for (auto [formal, actual] : zip(callee.params, inst.ops[2].elems))
    frame.names[formal.name] = actual.name;
  if (inst.guarded)
    branch(frame.end, inst, true);
  copy(frame);
  place(frame.end);
}

void Inliner::instruction(const Inst &inst, Frame &frame) {
  Inst copied = inst;
  for (Operand &operand : copied.ops)
    rename(operand, frame);
  if (copied.guarded)
    copied.guard = frame.regs[copied.guard];
  if (inst.op == Op::Call)
    if (const Function *callee = target(inst, frame))
      return expand(copied, *callee, frame);
  if (inst.op == Op::Ret && !frame.end.empty())
    return branch(frame.end, copied, false);
  Stmt &stmt = body.emplace_back();
  stmt.kind = Stmt::Instruction;
  stmt.inst = std::move(copied);
}

void Inliner::copy(Frame &frame) {
  bool isKernel = frame.end.empty();
  for (const Stmt &stmt : frame.function->body)
    switch (stmt.kind) {
    case Stmt::Instruction:
      instruction(stmt.inst, frame);
      break;
    case Stmt::Label:
      place(labelOf(stmt.text, frame));
      break;
    case Stmt::Targets:
      body.push_back(stmt);
      for (Operand &label : body.back().inst.ops)
        rename(label, frame);
      break;
    default:
      if (isKernel)
        body.push_back(stmt);
    }
}
} // namespace

void inlineCalls(const Module &module, Function &kernel, size_t maxStatements) {
  auto isCall = [](const Stmt &stmt) { return stmt.kind == Stmt::Instruction && stmt.inst.op == Op::Call; };
  if (any_of(kernel.body, isCall))
    Inliner(module, kernel, maxStatements).run();
}

} // namespace gemmc::ptx
