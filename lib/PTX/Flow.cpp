#include "Flow.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

namespace gemmc::ptx {

Flow::Flow(const Function &function) : blocks(blocksOf(function)), blockOf(function.body.size()) {
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i)
      blockOf[i] = b;
  sort();
  findDominators();
  findValues(function);
}

/// A trap does not count: it is no end that the passes need to know, and what follows it stays as it was written.
static bool endsBlock(Op op) { return op == Op::Bra || op == Op::BrxIdx || op == Op::Ret || op == Op::Exit; }

static std::vector<Flow::Block> split(const Function &function) {
  std::vector<Flow::Block> blocks{{0, 0, {}, {}}};
  bool ended = false;
  for (uint32_t i = 0; i < function.body.size(); ++i) {
    const Stmt &stmt = function.body[i];
    bool starts = stmt.kind == Stmt::Label || (ended && stmt.kind == Stmt::Instruction);
    if (starts && i != 0) {
      blocks.back().end = i;
      blocks.push_back({i, i, {}, {}});
    }
    if (starts)
      ended = false;
    if (stmt.kind == Stmt::Instruction && endsBlock(stmt.inst.op)) {
      ended = true;
      blocks.back().fallsThrough = stmt.inst.guarded;
    }
  }
  blocks.back().end = function.body.size();
  return blocks;
}

std::vector<Flow::Block> Flow::blocksOf(const Function &function) {
  std::vector<Block> blocks = split(function);
  llvm::StringMap<uint32_t> labels, tables; // tables: the statement with the targets
  llvm::StringRef label;
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i)
      if (const Stmt &stmt = function.body[i]; stmt.kind == Stmt::Label)
        labels[label = stmt.text] = b;
      else if (stmt.kind == Stmt::Targets)
        tables[label] = i;
  auto edge = [&](uint32_t from, uint32_t to) {
    if (llvm::is_contained(blocks[from].succs, to))
      return;
    blocks[from].succs.push_back(to);
    blocks[to].preds.push_back(from);
  };
  auto jump = [&](uint32_t from, const Operand &operand) {
    if (auto target = labels.find(operand.name); operand.kind == Operand::Label && target != labels.end())
      edge(from, target->second);
  };
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t i = blocks[b].end; i-- > blocks[b].begin;) {
      const Stmt &stmt = function.body[i];
      if (stmt.kind != Stmt::Instruction)
        continue;
      if (endsBlock(stmt.inst.op)) // only the last instruction of a block leaves it
        for (const Operand &operand : stmt.inst.ops) {
          auto table = operand.kind == Operand::Label ? tables.find(operand.name) : tables.end();
          llvm::ArrayRef<Operand> targets = operand;
          if (table != tables.end())
            targets = function.body[table->second].inst.ops;
          for (const Operand &target : targets)
            jump(b, target);
        }
      break;
    }
    if (blocks[b].fallsThrough && b + 1 < blocks.size())
      edge(b, b + 1);
  }
  return blocks;
}

/// Reverse postorder from the entry.
void Flow::sort() {
  rank.assign(blocks.size(), none);
  std::vector<std::pair<uint32_t, unsigned>> path{{0, 0}};
  rank[0] = 0;
  while (!path.empty()) {
    auto &[block, next] = path.back();
    if (next == blocks[block].succs.size()) {
      order.push_back(block);
      path.pop_back();
    } else if (uint32_t succ = blocks[block].succs[next++]; rank[succ] == none) {
      rank[succ] = 0;
      path.push_back({succ, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  for (uint32_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
}

/// Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
void Flow::findDominators() {
  blocks[0].dominator = 0;
  auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b)
      rank[a] > rank[b] ? a = blocks[a].dominator : b = blocks[b].dominator;
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b : llvm::drop_begin(order)) {
      uint32_t nearest = none;
      for (uint32_t pred : blocks[b].preds)
        if (blocks[pred].dominator != none)
          nearest = nearest == none ? pred : meet(nearest, pred);
      changed |= blocks[b].dominator != nearest;
      blocks[b].dominator = nearest;
    }
  }
  // Intervals: `leave` first counts a block's subtree, and each block then takes its place behind its elder siblings.
  for (uint32_t b : llvm::reverse(order)) {
    blocks[b].leave += 1;
    if (b != 0)
      blocks[blocks[b].dominator].leave += blocks[b].leave;
  }
  std::vector<uint32_t> next(blocks.size());
  for (uint32_t b : order) {
    uint32_t size = blocks[b].leave;
    blocks[b].enter = b == 0 ? 0 : std::exchange(next[blocks[b].dominator], next[blocks[b].dominator] + size);
    next[b] = blocks[b].enter + 1;
    blocks[b].leave = blocks[b].enter + size;
  }
}

void Flow::findValues(const Function &function) {
  defOf.assign(function.regs.size(), none);
  values.assign(function.regs.size(), true);
  for (uint32_t i = 0; i < function.body.size(); ++i)
    if (const Stmt &stmt = function.body[i]; stmt.kind == Stmt::Instruction)
      visitWrites(stmt.inst, [&](RegId reg) {
        values[reg] &= defOf[reg] == none && !stmt.inst.guarded && reachable(blockOf[i]);
        defOf[reg] = defOf[reg] == none ? i : many;
      });
  for (uint32_t i = 0; i < function.body.size(); ++i)
    if (const Stmt &stmt = function.body[i]; stmt.kind == Stmt::Instruction && reachable(blockOf[i]))
      visitReads(stmt.inst, [&](RegId reg) {
        uint32_t def = defOf[reg];
        if (!values[reg])
          return;
        values[reg] = def < many && (blockOf[def] == blockOf[i] ? def < i : dominates(blockOf[def], blockOf[i]));
      });
}

std::vector<Flow::Loop> Flow::loops() const {
  std::vector<Loop> found;
  std::vector<uint32_t> seen(blocks.size(), none);
  for (uint32_t header : order) {
    Loop loop{header, {header}, {}};
    for (uint32_t pred : blocks[header].preds)
      if (reachable(pred) && dominates(header, pred))
        loop.latches.push_back(pred);
    if (loop.latches.empty())
      continue;
    seen[header] = header;
    auto take = [&](uint32_t block) {
      if (std::exchange(seen[block], header) != header)
        loop.blocks.push_back(block);
    };
    llvm::for_each(loop.latches, take);
    for (size_t i = 1; i < loop.blocks.size(); ++i)
      for (uint32_t pred : blocks[loop.blocks[i]].preds)
        if (reachable(pred))
          take(pred);
    found.push_back(std::move(loop));
  }
  llvm::stable_sort(found, [](const Loop &a, const Loop &b) { return a.blocks.size() < b.blocks.size(); });
  return found;
}

} // namespace gemmc::ptx
