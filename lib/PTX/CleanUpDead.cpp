// Unused results, code that nothing reaches, branches to where control goes anyway, labels that nobody names.
#include "CleanUpWork.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace gemmc::ptx {
namespace {

/// Nothing but its results tells whether the instruction ran.
bool isRemovable(const Inst &inst) {
  Effect effect = effectOf(inst.op);
  if (effect != Effect::ReadMemory)
    return effect == Effect::Pure;
  return !inst.has("volatile") && !inst.has("relaxed") && !inst.has("acquire");
}

/// Keeps what is needed, starting from the instructions that have to stay. A register needs all its definitions.
class Sweeper {
public:
  explicit Sweeper(Work &work)
      : work(work), needed(work.function.regs.size()), chains(work.function.regs.size(), Flow::none),
        kept(work.function.body.size()) {}

  void run() {
    uint32_t size = work.function.body.size();
    for (uint32_t i = 0; i < size; ++i)
      if (work.live(i)) {
        if (isRemovable(work.inst(i)))
          chain(i);
        else
          keep(i);
      }
    while (!pending.empty()) {
      RegId reg = pending.back();
      pending.pop_back();
      for (uint32_t link = chains[reg]; link != Flow::none; link = links[link].next)
        keep(links[link].stmt);
    }
    for (uint32_t i = 0; i < size; ++i)
      if (work.live(i) && !kept[i])
        work.remove(i);
  }

private:
  struct Link {
    uint32_t stmt, next;
  };

  void chain(uint32_t stmt) {
    visitWrites(work.inst(stmt), [&](RegId reg) {
      links.push_back({stmt, chains[reg]});
      chains[reg] = links.size() - 1;
    });
  }
  void keep(uint32_t stmt) {
    if (std::exchange(kept[stmt], true))
      return;
    visitReads(work.inst(stmt), [&](RegId reg) {
      if (!std::exchange(needed[reg], true))
        pending.push_back(reg);
    });
  }

  Work &work;
  std::vector<uint8_t> needed;  ///< By register.
  std::vector<uint32_t> chains; ///< By register: its removable definitions, as a list in `links`.
  std::vector<Link> links;
  std::vector<uint8_t> kept; ///< By statement.
  std::vector<RegId> pending;
};

void removeUnreachable(Work &work) {
  for (uint32_t block = 0; block < work.flow.blocks.size(); ++block)
    if (!work.flow.reachable(block))
      for (uint32_t i = work.flow.blocks[block].begin; i < work.flow.blocks[block].end; ++i)
        if (work.live(i))
          work.remove(i);
}

/// Only labels stand between the branch and its target.
bool goesOnAnyway(const Work &work, uint32_t branch) {
  const auto &body = work.function.body;
  for (uint32_t i = branch + 1; i < body.size() && !work.live(i); ++i)
    if (body[i].kind == Stmt::Label && body[i].text == body[branch].inst.ops[0].name)
      return true;
  return false;
}

/// From the end, so that a branch that only jumps over another removed one is found in the same walk.
void removeIdleBranches(Work &work) {
  llvm::StringSet<> targets;
  for (uint32_t i = work.function.body.size(); i-- > 0;)
    if (work.live(i) && work.inst(i).op == Op::Bra) {
      if (goesOnAnyway(work, i))
        work.remove(i);
      else
        targets.insert(work.inst(i).ops[0].name);
    }
  for (uint32_t i = 0; i < work.function.body.size(); ++i) {
    const Stmt &stmt = work.function.body[i];
    if (stmt.kind == Stmt::Label && !work.gone[i] && !targets.contains(stmt.text))
      work.remove(i);
  }
}
} // namespace

void removeDeadCode(Work &work) {
  removeUnreachable(work);
  Sweeper(work).run();
  removeIdleBranches(work);
}

} // namespace gemmc::ptx
