// Value numbering: a pure instruction whose twin dominates it is removed, and its result replaced by the twin's.
#include "CleanUpWork.h"
#include "Registers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::ptx {
namespace {

/// Values that a loop takes from in front of it, where its first turn was peeled, live through all its turns, like
/// those that were moved out of it. Beyond so many it computes them anew, sooner where the kernel has many sums: of 680
/// mma kernels whose warps have 96 to 144 a thread 139 spilled without a bound, 80 with it. Of what the planner chooses
/// by itself this changes next to nothing, a bound of 32 a third of all mma kernels (2026-11-28).
unsigned mostTaken(const Work &work) {
  constexpr unsigned least = 64, all = 256, forEach = 2;
  unsigned carried = 0; // registers that are written more than once: sums, counters
  for (RegId reg = 0; reg < work.function.regs.size(); ++reg)
    carried += !work.flow.isValue(reg);
  return std::max(least, all - std::min(all, forEach * carried));
}

class Sharer {
public:
  Sharer(Work &work, HoistCounts &counts)
      : work(work), maxTaken(mostTaken(work)), twinOf(work.function.regs.size(), Flow::none),
        lastDef(work.function.regs.size(), Flow::none), takenFrom(work.function.regs.size(), Flow::none),
        loopOf(work.flow.blocks.size(), Flow::none) {
    auto loops = work.flow.loops();
    for (uint32_t i = loops.size(); i-- > 0;) // inner ones, which come first, have the last word
      for (uint32_t block : loops[i].blocks)
        loopOf[block] = i;
    for (const Flow::Loop &loop : loops)
      taken.push_back(&counts[(work.function.body[work.flow.blocks[loop.header].begin].text + " taken")]);
  }

  void run() {
    for (uint32_t block : work.flow.order)
      for (uint32_t i = work.flow.blocks[block].begin; i < work.flow.blocks[block].end; ++i)
        if (work.live(i))
          visit(i);
  }

private:
  void visit(uint32_t stmt) {
    Inst &inst = work.inst(stmt);
    if (replaced)
      rename(inst);
    if (isWorthKeeping(work, inst)) {
      auto [entry, fresh] = seen.try_emplace(hash(inst), stmt);
      if (!fresh && same(entry->second, stmt) && mayTake(entry->second, stmt)) {
        twinOf[inst.ops[0].reg] = work.inst(entry->second).ops[0].reg;
        replaced = true;
        return work.remove(stmt);
      }
      entry->second = stmt; // nearer to what follows than one that was no twin
    }
    visitWrites(inst, [&](RegId reg) { lastDef[reg] = stmt; });
  }

  void rename(Inst &inst) {
    visitRegisters(inst, [&](RegId &reg, Access access) {
      if (access == Access::Read && twinOf[reg] != Flow::none)
        reg = twinOf[reg];
    });
  }

  static llvm::hash_code hash(const Operand &op) {
    llvm::hash_code code = llvm::hash_combine(op.kind, op.negated, op.hasReg, op.reg, op.imm, op.name);
    for (const Operand &elem : op.elems)
      code = llvm::hash_combine(code, hash(elem));
    return code;
  }
  static uint64_t hash(const Inst &inst) {
    llvm::hash_code code = llvm::hash_combine(inst.op, llvm::hash_combine_range(inst.mods.begin(), inst.mods.end()));
    unsigned first = 1;
    if (commutes(inst.op)) {
      code = llvm::hash_combine(code, uint64_t(hash(inst.ops[1])) + uint64_t(hash(inst.ops[2])));
      first = 3;
    }
    for (unsigned i = first; i < inst.ops.size(); ++i)
      code = llvm::hash_combine(code, hash(inst.ops[i]));
    return code >> 2; // the largest numbers are the map's own marks
  }

  /// Whether `stmt` computes what its candidate did, with the candidate's result still good there.
  bool same(uint32_t earlier, uint32_t stmt) {
    const Inst &a = work.inst(earlier), &b = work.inst(stmt);
    uint32_t from = work.flow.blockOf[earlier], to = work.flow.blockOf[stmt];
    if (a.op != b.op || a.mods != b.mods || a.ops.size() != b.ops.size() || !work.flow.dominates(from, to))
      return false;
    const auto &regs = work.function.regs;
    Type type = regs[a.ops[0].reg].type;
    if (type != regs[b.ops[0].reg].type || (type == Type::pred && from != to)) // few predicates can be kept for long
      return false;
    bool equal = std::equal(a.ops.begin() + 1, a.ops.end(), b.ops.begin() + 1);
    if (!equal && commutes(a.op))
      equal =
          a.ops[1] == b.ops[2] && a.ops[2] == b.ops[1] && std::equal(a.ops.begin() + 3, a.ops.end(), b.ops.begin() + 3);
    if (!equal)
      return false;
    bool unchanged = true;
    visitReads(b, [&](RegId reg) {
      if (!work.flow.isValue(reg))
        unchanged &= from == to &&
                     (lastDef[reg] == Flow::none || lastDef[reg] < earlier || work.flow.blockOf[lastDef[reg]] != to);
    });
    return unchanged;
  }

  /// Whether the loop around `stmt`, if it is not around `earlier`, too, may have one more value from in front of it.
  bool mayTake(uint32_t earlier, uint32_t stmt) {
    const uint32_t from = loopOf[work.flow.blockOf[earlier]], to = loopOf[work.flow.blockOf[stmt]];
    const RegId value = work.inst(earlier).ops[0].reg;
    if (to == from || to == Flow::none || takenFrom[value] == to)
      return true;
    if (*taken[to] >= maxTaken)
      return false;
    ++*taken[to];
    takenFrom[value] = to;
    return true;
  }

  Work &work;
  const unsigned maxTaken;                 ///< By one loop.
  llvm::DenseMap<uint64_t, uint32_t> seen; ///< Hash of an instruction -> its statement.
  std::vector<uint32_t> twinOf;            ///< By register: what it is replaced by, or none.
  std::vector<uint32_t> lastDef;           ///< By register: the definition seen last in the walk.
  std::vector<uint32_t> takenFrom;         ///< By register: the loop that took it last.
  std::vector<uint32_t> loopOf;            ///< By block: the innermost loop around it, or none.
  std::vector<unsigned *> taken;           ///< By loop: how many values it has taken.
  bool replaced = false;
};
} // namespace

void shareCommonExpressions(Work &work, HoistCounts &counts) { Sharer(work, counts).run(); }

} // namespace gemmc::ptx
