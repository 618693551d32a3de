/// The registers of an instruction, inlined: `forEachUse` and its kin (PTX/Ops.h) for the clean-up passes, which walk
/// over a kernel dozens of times.
#pragma once
#include "gemmc/PTX/Ops.h"

namespace gemmc::ptx {

/// Calls `visit(RegId &, Access)` for the guard and each register among the operands, vectors and addresses included.
template <typename InstType, typename Visit> void visitRegisters(InstType &inst, Visit visit) {
  if (inst.guarded)
    visit(inst.guard, Access::Read);
  const OperandForm *form = rowOf(inst.op).operands.begin();
  for (auto &operand : inst.ops) {
    bool isAddress = operand.kind == Operand::Address;
    Access access = isAddress ? Access::Read : form->access;
    if (operand.kind == Operand::Reg || (isAddress && operand.hasReg))
      visit(operand.reg, access);
    for (auto &elem : operand.elems)
      if (elem.kind == Operand::Reg)
        visit(elem.reg, access);
    ++form;
  }
}

template <typename Visit> void visitReads(const Inst &inst, Visit visit) {
  visitRegisters(inst, [&](RegId reg, Access access) {
    if (access != Access::Write)
      visit(reg);
  });
}

template <typename Visit> void visitWrites(const Inst &inst, Visit visit) {
  visitRegisters(inst, [&](RegId reg, Access access) {
    if (access != Access::Read)
      visit(reg);
  });
}

} // namespace gemmc::ptx
