// Registers that are read though nothing can have written them: on no path from the entry stands a write before the
// read. A plain copy of such a register is none of it, but does not count as a write.
//
// A guarded write counts, and so does one on a single path of many: whatever is reported is wrong for all data. Most
// reads have a write in front of them from which the code just falls on to them; the registers of the others are
// followed along all jumps, 64 at a time, a word for each block.
#include "Flow.h"
#include "Registers.h"
#include "Verify.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>

using namespace llvm;

namespace gemmc::ptx {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;
constexpr unsigned wordBits = 64;

using Block = Flow::Block;

/// By block: which of the registers may have been written when it is entered; nullopt when it never is.
std::vector<std::optional<uint64_t>> follow(ArrayRef<Block> blocks, ArrayRef<uint64_t> writes) {
  std::vector<std::optional<uint64_t>> entered(blocks.size());
  std::vector<bool> waits(blocks.size());
  std::deque<uint32_t> queue{0};
  entered[0] = 0;
  while (!queue.empty()) {
    uint32_t b = queue.front();
    queue.pop_front();
    waits[b] = false;
    uint64_t left = *entered[b] | writes[b];
    for (uint32_t next : blocks[b].succs) {
      if (entered[next] && !(left & ~*entered[next]))
        continue;
      entered[next] = entered[next].value_or(0) | left;
      if (!waits[next])
        queue.push_back(next);
      waits[next] = true;
    }
  }
  return entered;
}

/// The accumulators of a wgmma are read only if it adds to them, which a predicate may deny.
bool readsAccumulators(const Inst &inst) {
  for (auto [form, operand] : zip(rowOf(inst.op).operands, inst.ops))
    if (form.name == "scaled")
      return operand.kind == Operand::Imm && operand.imm != 0;
  return true;
}

/// `// implicit-def: %r5`: what LLVM prints where any value will do.
StringRef definedByComment(const Stmt &stmt) {
  StringRef text = stmt.kind == Stmt::Comment ? StringRef(stmt.text).trim() : "";
  return text.consume_front("implicit-def:") ? text.trim() : "";
}

struct Event {
  RegId reg;
  uint32_t block, stmt;
};
/// The first write of each register in a block, and the first read, if no write is known to come before it.
struct Events {
  std::vector<Event> reads, writes;
};

/// The register of which the instruction is a plain copy, or another lane's. That of one which nothing has written
/// harms nobody as long as the copy is not read, either: CUTLASS's guarded loads begin so, with what they leave where
/// the guard says no, and CUB shuffles the bytes between the members of a structure.
std::optional<RegId> copied(const Inst &inst) {
  const bool shuffles =
      inst.op == Op::Shfl && inst.ops[1].kind == Operand::None; // without a predicate beside the value
  const Operand *from = inst.op == Op::Mov ? &inst.ops[1] : shuffles ? &inst.ops[2] : nullptr;
  return from && from->isReg() ? std::optional(from->reg) : std::nullopt;
}

/// Of the blocks that are ever entered. `empty`: copies of what nothing has written, which neither read it nor write.
Events eventsOf(const Function &function, ArrayRef<Block> blocks, const DenseSet<const Inst *> &empty) {
  Events events;
  const auto entered = follow(blocks, std::vector<uint64_t>(blocks.size()));
  uint32_t chain = 0; // the first of the blocks from which control falls on to this one
  std::vector<uint32_t> read(function.regs.size(), nowhere), written(function.regs.size(), nowhere);
  std::vector<bool> always(function.regs.size()); // written by the first block
  StringMap<RegId> byName;
  auto noteWrite = [&](RegId reg, uint32_t block, uint32_t stmt) {
    if (written[reg] == block)
      return;
    written[reg] = block;
    if (block == 0 ? read[reg] == 0 : !always[reg])
      events.writes.push_back({reg, block, stmt});
    always[reg] = always[reg] || block == 0;
  };
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    if (b && (!entered[b - 1] || !is_contained(blocks[b - 1].succs, b)))
      chain = b;
    for (uint32_t i = blocks[b].begin; entered[b] && i < blocks[b].end; ++i) {
      const Stmt &stmt = function.body[i];
      if (StringRef name = definedByComment(stmt); !name.empty()) {
        if (byName.empty())
          for (RegId reg = 0; reg < function.regs.size(); ++reg)
            byName[function.regs[reg].name] = reg;
        if (auto found = byName.find(name); found != byName.end())
          noteWrite(found->second, b, i);
      }
      if (stmt.kind != Stmt::Instruction)
        continue;
      const bool copiesNothing = empty.contains(&stmt.inst);
      visitRegisters(stmt.inst, [&](RegId reg, Access access) {
        if (copiesNothing && reg == copied(stmt.inst))
          return;
        bool behind = written[reg] != nowhere && written[reg] >= chain;
        if (access == Access::Write || always[reg] || behind || read[reg] == b ||
            (access == Access::ReadWrite && !readsAccumulators(stmt.inst)))
          return;
        read[reg] = b;
        events.reads.push_back({reg, b, i});
      });
      if (!copiesNothing)
        visitWrites(stmt.inst, [&](RegId reg) { noteWrite(reg, b, i); });
    }
  }
  return events;
}

/// Those reads that no write can have come before.
std::vector<Event> unwritten(const Function &function, const std::vector<Block> &blocks, const Events &events) {
  std::vector<uint32_t> slots(function.regs.size(), nowhere);
  std::vector<SmallVector<Event, 0>> reads, writes; // by word
  uint32_t numSlots = 0;
  for (const Event &event : events.reads) {
    uint32_t &slot = slots[event.reg];
    slot = slot == nowhere ? numSlots++ : slot;
    reads.resize((numSlots + wordBits - 1) / wordBits);
    reads[slot / wordBits].push_back(event);
  }
  writes.resize(reads.size());
  for (const Event &event : events.writes)
    if (uint32_t slot = slots[event.reg]; slot != nowhere)
      writes[slot / wordBits].push_back(event);
  std::vector<Event> found;
  for (size_t word = 0; word < reads.size(); ++word) {
    auto bit = [&](const Event &event) { return uint64_t(1) << slots[event.reg] % wordBits; };
    std::vector<uint64_t> written(blocks.size());
    for (const Event &event : writes[word])
      written[event.block] |= bit(event);
    auto entered = follow(blocks, written);
    for (const Event &event : reads[word])
      if (!(*entered[event.block] & bit(event)))
        found.push_back(event);
  }
  sort(found, [](const Event &a, const Event &b) { return a.stmt < b.stmt; });
  return found;
}
} // namespace

/// Where the statement spells the register; the statement itself where it is spelled otherwise.
SMRange Checker::spelled(RegId reg) const {
  SMRange range = line();
  if (!range.isValid())
    return range;
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  StringRef name = function.regs[reg].name;
  auto inName = [](char c) { return isAlnum(c) || c == '_' || c == '$' || c == '%'; };
  bool isWritten = false;
  visitWrites(*inst, [&](RegId other) { isWritten |= other == reg; });
  StringRef best;
  for (size_t at = text.find(name); at != StringRef::npos; at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at && inName(text[at - 1])) || (end < text.size() && inName(text[end])))
      continue;
    bool destination = best.empty() && isWritten;
    best = text.substr(at, name.size());
    if (!destination)
      break;
  }
  if (best.empty())
    return range;
  return rangeOf(best);
}

void Checker::registers() {
  const std::vector<Block> blocks = Flow::blocksOf(function);
  DenseSet<const Inst *> empty;
  std::vector<Event> found;
  for (size_t before = SIZE_MAX; before != empty.size();) {
    before = empty.size();
    found = unwritten(function, blocks, eventsOf(function, blocks, empty));
    for (const Event &event : found)
      if (const Inst &copy = function.body[event.stmt].inst; copied(copy) == event.reg)
        empty.insert(&copy);
  }
  if (found.empty())
    return;
  std::vector<std::pair<const Inst *, const Inst *>> writes(function.regs.size()); // the first one and the last one
  for (const Stmt &stmt : function.body)
    if (stmt.kind == Stmt::Instruction && !empty.contains(&stmt.inst))
      visitWrites(stmt.inst, [&](RegId reg) {
        auto &[first, last] = writes[reg];
        first = first ? first : &stmt.inst;
        last = &stmt.inst;
      });
  std::vector<bool> told(function.regs.size());
  for (const Event &event : found) {
    if (told[event.reg])
      continue;
    told[event.reg] = true;
    inst = &function.body[event.stmt].inst;
    const Reg &reg = function.regs[event.reg];
    auto [first, last] = writes[event.reg];
    const Inst *other = first == inst ? last : first;
    std::string where = "nothing does";
    if (other && other != inst)
      where = other->line ? formatv("line {0} does, on no path to here", other->line).str()
                          : "what does is on no path to here";
    std::string bits = reg.type == Type::pred ? "pred" : ("b" + Twine(bitsOf(reg.type))).str();
    diags.report(Diag::ptx_unwritten, spelled(event.reg), reg.name, where, bits);
  }
  inst = nullptr;
}

} // namespace gemmc::ptx
