#include "CleanUpWork.h"
#include "Registers.h"

namespace gemmc::ptx {
namespace {

/// Enough for loops nested as deep as a kernel's; each round but the last changes something.
constexpr unsigned maxRounds = 8;

template <typename Pass> bool runAlone(Function &function, Pass pass) {
  Work work(function);
  pass(work);
  work.apply();
  return work.changed;
}

bool runRound(Function &function, HoistCounts &counts) {
  return runAlone(function, [&](Work &work) {
    foldConstants(work);
    foldAddresses(work);
    shareCommonExpressions(work, counts);
    removeDeadCode(work); // what folding and sharing left unused need not be moved
    hoistLoopInvariants(work, counts);
  });
}

void dropUnusedRegisters(Function &function) {
  std::vector<uint8_t> used(function.regs.size());
  auto forEachReg = [&](auto visit) {
    for (Stmt &stmt : function.body)
      if (stmt.kind == Stmt::Instruction)
        visitRegisters(stmt.inst, [&](RegId &reg, Access) { visit(reg); });
  };
  forEachReg([&](RegId &reg) { used[reg] = true; });
  std::vector<RegId> renamed(function.regs.size());
  RegId next = 0;
  for (RegId reg = 0; reg < function.regs.size(); ++reg)
    if (used[reg]) {
      renamed[reg] = next;
      if (reg != next)
        function.regs[next] = std::move(function.regs[reg]);
      ++next;
    }
  if (next == function.regs.size())
    return;
  forEachReg([&](RegId &reg) { reg = renamed[reg]; });
  function.regs.resize(next, {});
  function.names = {};
}
} // namespace

bool foldConstants(Function &function) {
  return runAlone(function, [](Work &work) { foldConstants(work); });
}
bool foldAddresses(Function &function) {
  return runAlone(function, [](Work &work) { foldAddresses(work); });
}
bool shareCommonExpressions(Function &function) {
  HoistCounts counts;
  return runAlone(function, [&](Work &work) { shareCommonExpressions(work, counts); });
}
bool hoistLoopInvariants(Function &function) {
  HoistCounts counts;
  return runAlone(function, [&](Work &work) { hoistLoopInvariants(work, counts); });
}
bool removeDeadCode(Function &function) {
  return runAlone(function, [](Work &work) { removeDeadCode(work); });
}

void cleanUp(Function &function) {
  HoistCounts counts;
  for (unsigned round = 0; round < maxRounds && runRound(function, counts); ++round)
    ;
  dropUnusedRegisters(function);
}

} // namespace gemmc::ptx
