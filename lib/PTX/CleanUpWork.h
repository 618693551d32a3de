/// What the clean-up passes share: the flow of the kernel as it was when the round began, and the edits so far.
///
/// Passes rewrite instructions in place but never take a statement out: they mark it as gone or moved, so that
/// positions stay good and the body is rebuilt once a round. The facts in `flow` stay true under all edits that passes
/// make: a use is only replaced by a value whose definition dominates it, definitions only become fewer, edges only
/// vanish.
#pragma once
#include "Flow.h"
#include "gemmc/PTX/CleanUp.h"

namespace gemmc::ptx {

/// How many instructions have been moved out of each loop (by its label), how many predicates of them, and how many
/// values it takes from in front of it (by its label and a word); lasts over the rounds.
using HoistCounts = llvm::StringMap<unsigned>;

struct Work {
  explicit Work(Function &function) : function(function), flow(function), gone(function.body.size()) {}

  Function &function;
  Flow flow;
  bool changed = false;
  std::vector<uint8_t> gone; ///< By statement: removed, or moved elsewhere.
  struct Move {
    uint32_t before; ///< The statement in front of which they now stand.
    std::vector<uint32_t> stmts;
  };
  std::vector<Move> moves; ///< Sorted by `apply`.

  bool live(uint32_t stmt) const { return !gone[stmt] && function.body[stmt].kind == Stmt::Instruction; }
  Inst &inst(uint32_t stmt) { return function.body[stmt].inst; }
  void remove(uint32_t stmt) {
    gone[stmt] = true;
    changed = true;
  }
  /// Rebuilds the body from the edits. A comment whose instructions are all gone goes as well; when some of them were
  /// moved, it stands in front of the first of those.
  void apply();

private:
  void settleComments();
};

void foldConstants(Work &work);
void foldAddresses(Work &work);
void shareCommonExpressions(Work &work, HoistCounts &counts);
void hoistLoopInvariants(Work &work, HoistCounts &counts);
void removeDeadCode(Work &work);

/// Whether the first two sources may be exchanged.
bool commutes(Op op);
/// Whether the instruction gives the same single result, a value, whenever it runs, and is more than a constant or a
/// copy, which are cheaper to have twice than to keep in a register.
bool isWorthKeeping(const Work &work, const Inst &inst);

} // namespace gemmc::ptx
