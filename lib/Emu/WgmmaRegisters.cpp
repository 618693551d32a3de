#include "WgmmaRegisters.h"
#include "llvm/ADT/DenseMap.h"

namespace gemmc::emu {

static bool isWgmmaMma(const ptx::Inst &inst) {
  return ptx::effectOf(inst.op) == ptx::Effect::Tensor && ptx::nameOf(inst.op).starts_with("Wgmma");
}

WgmmaRegisters::WgmmaRegisters(const Program &program) : program(program) {
  llvm::DenseMap<uint32_t, uint16_t> index;
  touched.resize(program.code.size());
  wgmmas.resize(program.code.size());
  auto collect = [&](const ptx::Operand &operand, std::vector<uint16_t> &list) {
    for (const ptx::Operand &elem : operand.elems) {
      if (!elem.isReg())
        continue;
      auto [entry, fresh] = index.try_emplace(elem.reg, index.size());
      if (fresh)
        names.push_back(program.function.regs[elem.reg].name);
      list.push_back(entry->second);
    }
  };
  for (size_t pc = 0; pc < program.code.size(); ++pc)
    if (const ptx::Inst *inst = program.code[pc].inst; inst && isWgmmaMma(*inst)) {
      collect(inst->ops[0], wgmmas[pc].accumulators);
      if (inst->ops[1].kind == ptx::Operand::Vector)
        collect(inst->ops[1], wgmmas[pc].fragments);
    }
  for (size_t pc = 0; pc < program.code.size(); ++pc) {
    const ptx::Inst *inst = program.code[pc].inst;
    if (!inst || isWgmmaMma(*inst))
      continue;
    auto visit = [&](ptx::RegId reg) {
      if (auto found = index.find(reg); found != index.end())
        touched[pc].push_back(found->second);
    };
    ptx::forEachUse(*inst, visit);
    ptx::forEachDef(*inst, visit);
  }
}

WgmmaRegisters::State WgmmaRegisters::start() const {
  State state;
  state.registers.resize(names.size());
  for (State::Register &reg : state.registers)
    reg.touchedAt = 1; // before the first wgmma there must be a fence in any case
  return state;
}

std::optional<WgmmaRegisters::Broken> WgmmaRegisters::touch(State &state, const Code &code) const {
  uint32_t pc = &code - program.code.data();
  std::optional<Broken> broken;
  for (uint16_t index : touched[pc]) {
    State::Register &reg = state.registers[index];
    if (reg.group && !broken)
      broken = Broken{state.waitedAt > reg.issuedAt ? "WG-3" : "WG-2", names[index], reg.pc};
    reg.touchedAt = ++state.sequence;
    reg.touchedPc = pc;
    reg.shape = State::touchedShape;
  }
  return broken;
}

std::optional<WgmmaRegisters::Broken> WgmmaRegisters::issue(State &state, const Code &code, uint32_t group) const {
  uint32_t pc = &code - program.code.data();
  const sem::WgmmaForm &form = program.wgmmaForms[code.imm[0]];
  auto shape = static_cast<int32_t>(form.n << 16 | form.k << 1 | (form.d == Type::f16));
  std::optional<Broken> broken;
  auto check = [&](uint16_t index, bool accumulates) {
    State::Register &reg = state.registers[index];
    const int32_t use = accumulates ? shape : State::fragmentShape;
    const bool otherUse = reg.shape != State::touchedShape && reg.shape != use;
    if (reg.touchedAt > state.fencedAt && !broken)
      broken = Broken{"WG-1", names[index], reg.touchedPc};
    if (reg.group && otherUse && !broken)
      broken = Broken{"WG-2", names[index], reg.pc};
    if (reg.issuedAt > state.fencedAt && otherUse && !broken)
      broken = Broken{"WG-1", names[index], reg.pc};
    reg.group = group + 1;
    reg.pc = pc;
    reg.issuedAt = ++state.sequence;
    reg.shape = use;
  };
  for (uint16_t index : wgmmas[pc].accumulators)
    check(index, true);
  for (uint16_t index : wgmmas[pc].fragments)
    check(index, false);
  state.highestGroup = std::max(state.highestGroup, group + 1);
  return broken;
}

void WgmmaRegisters::wait(State &state, uint32_t groups) {
  state.waitedAt = ++state.sequence;
  if (!state.highestGroup)
    return;
  state.highestGroup = 0;
  for (State::Register &reg : state.registers) {
    if (reg.group && reg.group <= groups)
      reg.group = 0;
    state.highestGroup = std::max(state.highestGroup, reg.group);
  }
}

} // namespace gemmc::emu
