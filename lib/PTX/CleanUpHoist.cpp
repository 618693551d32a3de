// What every turn of a loop computes anew from the same inputs moves in front of the loop.
#include "CleanUpWork.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::ptx {
namespace {
/// A result that lives through a loop costs a register there; these bounds keep a large unrolled body from spilling.
constexpr unsigned maxHoisted = 16, maxHoistedPredicates = 4;

class Hoister {
public:
  Hoister(Work &work, HoistCounts &counts)
      : work(work), counts(counts), definedIn(work.function.regs.size(), Flow::none),
        movedFrom(work.function.regs.size(), Flow::none), inLoop(work.flow.blocks.size()) {}

  void run() {
    auto loops = work.flow.loops();
    for (uint32_t i = 0; i < loops.size(); ++i)
      if (hasDoor(loops[i]))
        hoistFrom(loops[i], i);
  }

private:
  /// The loop is entered only from the statement above its label, so that what stands there runs once for each entry.
  bool hasDoor(const Flow::Loop &loop) const {
    const auto &blocks = work.flow.blocks;
    const Flow::Block &header = blocks[loop.header];
    if (work.function.body[header.begin].kind != Stmt::Label)
      return false;
    uint32_t above = loop.header - 1; // of the entry: no block at all
    if (llvm::is_contained(loop.latches, above))
      return false;
    for (uint32_t pred : header.preds)
      if (work.flow.reachable(pred) && pred != above && !llvm::is_contained(loop.latches, pred))
        return false;
    return loop.header == 0 || (blocks[above].fallsThrough && !jumpsTo(above, loop.header));
  }

  /// The last instruction of `block` names the label of `target`, which then has two ways in from there.
  bool jumpsTo(uint32_t block, uint32_t target) const {
    for (uint32_t i = work.flow.blocks[block].end; i-- > work.flow.blocks[block].begin;)
      if (work.live(i)) {
        const Inst &last = work.function.body[i].inst;
        return last.op == Op::Bra && last.ops[0].name == work.function.body[work.flow.blocks[target].begin].text;
      }
    return false;
  }

  void hoistFrom(const Flow::Loop &loop, uint32_t id) {
    std::fill(inLoop.begin(), inLoop.end(), false);
    for (uint32_t block : loop.blocks)
      inLoop[block] = true;
    forEachInst(
        loop, [&](uint32_t stmt, uint32_t) { visitWrites(work.inst(stmt), [&](RegId reg) { definedIn[reg] = id; }); });
    uint32_t label = work.flow.blocks[loop.header].begin;
    Work::Move move{placeAbove(label), {}};
    llvm::StringRef name = work.function.body[label].text;
    unsigned &count = counts[name], &predicates = counts[(name + " predicates").str()];
    forEachInst(loop, [&](uint32_t stmt, uint32_t block) {
      const Inst &inst = work.inst(stmt);
      bool everyTurn = llvm::all_of(loop.latches, [&](uint32_t latch) { return work.flow.dominates(block, latch); });
      if (!everyTurn || !isWorthKeeping(work, inst) || !isInvariant(inst, id))
        return;
      bool isPredicate = work.function.regs[inst.ops[0].reg].type == Type::pred;
      if (isPredicate ? predicates++ >= maxHoistedPredicates : count++ >= maxHoisted)
        return;
      movedFrom[inst.ops[0].reg] = id;
      work.remove(stmt);
      move.stmts.push_back(stmt);
    });
    if (!move.stmts.empty())
      work.moves.push_back(std::move(move));
  }

  /// Instructions of the loop, each behind its dominators.
  template <typename Visit> void forEachInst(const Flow::Loop &loop, Visit visit) {
    for (uint32_t block : work.flow.order)
      if (inLoop[block])
        for (uint32_t i = work.flow.blocks[block].begin; i < work.flow.blocks[block].end; ++i)
          if (work.live(i))
            visit(i, block);
  }

  /// Comments above the label speak of the loop and stay with it.
  uint32_t placeAbove(uint32_t label) const {
    while (label > 0 &&
           (work.function.body[label - 1].kind == Stmt::Comment || work.function.body[label - 1].kind == Stmt::Blank))
      --label;
    return label;
  }

  /// What another loop gave up stands in front of that loop, perhaps inside this one; the next round knows.
  bool isInvariant(const Inst &inst, uint32_t id) const {
    bool invariant = true;
    visitReads(inst, [&](RegId reg) {
      invariant &= movedFrom[reg] == id || (movedFrom[reg] == Flow::none && definedIn[reg] != id);
    });
    return invariant;
  }

  Work &work;
  HoistCounts &counts;
  std::vector<uint32_t> definedIn; ///< By register: the loop of this pass that was last seen to define it.
  std::vector<uint32_t> movedFrom; ///< By register: the loop that its definition was moved out of.
  std::vector<uint8_t> inLoop;     ///< By block.
};
} // namespace

void hoistLoopInvariants(Work &work, HoistCounts &counts) { Hoister(work, counts).run(); }

} // namespace gemmc::ptx
