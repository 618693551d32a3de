/// The body of a kernel as basic blocks, with dominators and natural loops, and what is known of its registers.
///
/// PTX is not SSA: loop variables are written several times. The passes reason about *values*: registers with exactly
/// one definition, unguarded, that dominates every use. Everything that is true of SSA names is true of these; all
/// other registers are only followed inside one block.
#pragma once
#include "gemmc/PTX/Ops.h"

namespace gemmc::ptx {

class Flow {
public:
  explicit Flow(const Function &function);

  static constexpr uint32_t none = UINT32_MAX, many = UINT32_MAX - 1;
  struct Block {
    uint32_t begin, end; ///< Statements.
    llvm::SmallVector<uint32_t, 2> succs, preds;
    uint32_t dominator = none;     ///< Nearest one; the entry is its own. None when the block cannot be reached.
    uint32_t enter = 0, leave = 0; ///< Interval in a walk over the dominator tree.
    bool fallsThrough = true;      ///< Control may go on into the next block of the text.
  };
  struct Loop {
    uint32_t header;
    std::vector<uint32_t> blocks, latches; ///< Blocks: the header included. Latches: where the back edges start.
  };

  /// The blocks and their edges alone, without dominators.
  static std::vector<Block> blocksOf(const Function &function);

  std::vector<Block> blocks;     ///< In the order of the text; 0 is the entry.
  std::vector<uint32_t> order;   ///< The reachable ones; each behind its dominators.
  std::vector<uint32_t> blockOf; ///< By statement.
  std::vector<uint32_t> defOf;   ///< By register: the statement of its only definition, `none` or `many`.

  bool reachable(uint32_t block) const { return blocks[block].dominator != none; }
  bool dominates(uint32_t a, uint32_t b) const {
    return blocks[a].enter <= blocks[b].enter && blocks[b].leave <= blocks[a].leave;
  }
  bool isValue(RegId reg) const { return values[reg]; }
  std::vector<Loop> loops() const; ///< Inner loops before those around them.

private:
  void sort();
  void findDominators();
  void findValues(const Function &function);

  std::vector<uint32_t> rank;  ///< By block: its place in `order`.
  std::vector<uint8_t> values; ///< By register.
};

} // namespace gemmc::ptx
