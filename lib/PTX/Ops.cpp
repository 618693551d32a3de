#include "gemmc/PTX/Ops.h"
#include "Form.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <atomic>

using namespace llvm;

namespace gemmc::ptx {
namespace {

constexpr RowText texts[] = {
#define PTX_OP(Name, Form, Sm, Ptx, Eff) {#Name, Form, #Sm, Ptx, Effect::Eff},
#include "gemmc/PTX/Ops.def"
};
static_assert(std::size(texts) == numOps);

constexpr std::string_view rootOf(std::string_view form) { return form.substr(0, form.find_first_of(".( ")); }

/// Rows sorted by root (and in table order within one), so that a mnemonic finds its candidates without parsing a row.
constexpr std::array<uint16_t, numOps> sortByRoot() {
  std::array<uint16_t, numOps> order{};
  for (unsigned i = 0; i < numOps; ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [](uint16_t a, uint16_t b) {
    auto left = rootOf(texts[a].form), right = rootOf(texts[b].form);
    return left != right ? left < right : a < b;
  });
  return order;
}
constexpr auto byRoot = sortByRoot();

std::atomic<const Row *> parsed[numOps];

const Row *parseOnce(unsigned index) {
  const Row *mine = parseForm(texts[index]);
  const Row *expected = nullptr;
  if (parsed[index].compare_exchange_strong(expected, mine, std::memory_order_acq_rel))
    return mine;
  freeForm(mine); // another thread was faster
  return expected;
}

ArrayRef<uint16_t> rowsOf(StringRef root) {
  auto less = [](uint16_t index, StringRef name) { return StringRef(rootOf(texts[index].form)) < name; };
  auto begin = std::lower_bound(byRoot.begin(), byRoot.end(), root, less);
  auto end = begin;
  while (end != byRoot.end() && StringRef(rootOf(texts[*end].form)) == root)
    ++end;
  return ArrayRef<uint16_t>(&*byRoot.begin() + (begin - byRoot.begin()), end - begin);
}

/// Walks slots and tokens together; an optional slot first tries to take the token.
bool matchSlots(const Row &row, ArrayRef<StringRef> tokens, unsigned slot, SmallVectorImpl<uint8_t> &mods) {
  if (slot == row.slots.size())
    return tokens.empty();
  if (tokens.size() > row.slots.size() - slot)
    return false;
  const ModSlot &form = row.slots[slot];
  if (!tokens.empty()) {
    const auto *found = llvm::find(form.choices, tokens.front());
    if (found != form.choices.end()) {
      mods[slot] = found - form.choices.begin() + 1;
      if (matchSlots(row, tokens.drop_front(), slot + 1, mods))
        return true;
    }
  }
  mods[slot] = 0;
  return form.optional && matchSlots(row, tokens, slot + 1, mods);
}

/// Calls `visit` for each matching row until it returns false.
void forEachMatch(StringRef text, function_ref<bool(Match)> visit) {
  SmallVector<StringRef, 12> tokens;
  text.split(tokens, '.', 32);
  for (uint16_t index : rowsOf(tokens.front())) {
    const Row &row = rowOf(static_cast<Op>(index));
    Match match{static_cast<Op>(index), {}};
    match.mods.assign(row.slots.size(), 0);
    if (matchSlots(row, ArrayRef(tokens).drop_front(), 0, match.mods) && !visit(std::move(match)))
      return;
  }
}

void visitRegs(const Operand &operand, Access access, function_ref<void(RegId)> use, function_ref<void(RegId)> def) {
  auto take = [&](const Operand &one) {
    if (one.kind == Operand::Reg && access != Access::Write)
      use(one.reg);
    if (one.kind == Operand::Reg && access != Access::Read)
      def(one.reg);
  };
  take(operand);
  if (operand.kind == Operand::Address && operand.hasReg)
    use(operand.reg);
  for (const Operand &elem : operand.elems)
    take(elem);
}
} // namespace

const Row &rowOf(Op op) {
  auto index = static_cast<unsigned>(op);
  const Row *row = parsed[index].load(std::memory_order_acquire);
  return row ? *row : *parseOnce(index);
}
StringRef nameOf(Op op) { return texts[static_cast<unsigned>(op)].name; }
Effect effectOf(Op op) { return texts[static_cast<unsigned>(op)].effect; }
StringRef nameOf(Effect effect) {
  static constexpr const char *names[] = {"Pure",   "ReadMemory", "WriteMemory", "AsyncCopy",
                                          "Tensor", "Order",      "Warp",        "Control"};
  return names[static_cast<unsigned>(effect)];
}

void forEachUse(const Inst &inst, function_ref<void(RegId)> visit) {
  if (inst.guarded)
    visit(inst.guard);
  const Row &row = rowOf(inst.op);
  for (auto [operand, form] : zip(inst.ops, row.operands))
    visitRegs(operand, form.access, visit, [](RegId) {});
}

void forEachDef(const Inst &inst, function_ref<void(RegId)> visit) {
  const Row &row = rowOf(inst.op);
  for (auto [operand, form] : zip(inst.ops, row.operands))
    if (form.access != Access::Read)
      visitRegs(operand, form.access, [](RegId) {}, visit);
}

void forEachOperand(Inst &inst, function_ref<void(Operand &, Access)> visit) {
  const Row &row = rowOf(inst.op);
  for (auto [operand, form] : zip(inst.ops, row.operands)) {
    if (operand.kind != Operand::Vector)
      visit(operand, operand.kind == Operand::Address ? Access::Read : form.access);
    for (Operand &elem : operand.elems)
      visit(elem, operand.kind == Operand::Address ? Access::Read : form.access);
  }
}

std::optional<bool> operandPresence(const Inst &inst, unsigned index) {
  const OperandForm &form = rowOf(inst.op).operands[index];
  if (!form.optional)
    return true;
  if (form.with.empty())
    return std::nullopt;
  return any_of(form.with, [&](StringRef modifier) { return inst.has(modifier); });
}

std::optional<Match> matchMnemonic(StringRef text) {
  std::optional<Match> found;
  forEachMatch(text, [&](Match match) {
    found = std::move(match);
    return false;
  });
  return found;
}

SmallVector<Match, 2> matchMnemonics(StringRef text) {
  SmallVector<Match, 2> found;
  forEachMatch(text, [&](Match match) {
    found.push_back(std::move(match));
    return true;
  });
  return found;
}

namespace {
/// Like matchSlots, but notes how far any reading gets and what could have stood there.
void explore(const Row &row, ArrayRef<StringRef> tokens, unsigned token, unsigned slot, unsigned &furthest,
             SmallVectorImpl<StringRef> &expected) {
  if (slot == row.slots.size())
    return;
  const ModSlot &form = row.slots[slot];
  if (token > furthest) {
    furthest = token;
    expected.clear();
  }
  if (token == furthest)
    for (StringRef choice : form.choices)
      if (!is_contained(expected, choice))
        expected.push_back(choice);
  if (token < tokens.size() && is_contained(form.choices, tokens[token]))
    explore(row, tokens, token + 1, slot + 1, furthest, expected);
  if (form.optional)
    explore(row, tokens, token, slot + 1, furthest, expected);
}
} // namespace

MnemonicFault explainMnemonic(StringRef text) {
  SmallVector<StringRef, 12> tokens;
  text.split(tokens, '.', 32);
  MnemonicFault fault;
  auto rows = rowsOf(tokens.front());
  if (rows.empty()) {
    fault.unknownRoot = true;
    fault.token = tokens.front();
    fault.expected.assign(allRoots().begin(), allRoots().end());
    return fault;
  }
  unsigned furthest = 0;
  auto modifiers = ArrayRef(tokens).drop_front();
  for (uint16_t index : rows)
    explore(rowOf(static_cast<Op>(index)), modifiers, 0, 0, furthest, fault.expected);
  if (furthest < modifiers.size())
    fault.token = modifiers[furthest];
  return fault;
}

std::string syntaxOf(const Match &match) {
  Inst inst;
  inst.op = match.op;
  inst.mods = match.mods;
  std::string text = inst.mnemonic();
  const Row &row = rowOf(match.op);
  for (unsigned i = 0; i < row.operands.size(); ++i) {
    const OperandForm &form = row.operands[i];
    std::optional<bool> presence = operandPresence(inst, i);
    if (presence == false)
      continue;
    text += presence ? "" : "(";
    text += form.afterBar ? "|" : i ? ", " : " ";
    StringRef name = form.name;
    if (form.isAddress)
      text += ("[" + name + (form.hasCoords ? ", {c0, ...}]" : "]")).str();
    else if (form.isVector && !form.mayBeScalar)
      text += ("{" + name + ", ...}").str();
    else if (form.isList)
      text += ("(" + name + ", ...)").str();
    else
      text += (form.immediate ? "#" + name : Twine(name)).str();
    text += presence ? "" : ")";
  }
  return text;
}

SmallVector<Op, 4> rowsWithRoot(StringRef root) {
  SmallVector<Op, 4> ops;
  for (uint16_t index : rowsOf(root))
    ops.push_back(static_cast<Op>(index));
  return ops;
}

ArrayRef<StringRef> allRoots() {
  static const std::vector<StringRef> roots = [] {
    std::vector<StringRef> list;
    for (uint16_t index : byRoot)
      if (StringRef root = rootOf(texts[index].form); list.empty() || list.back() != root)
        list.push_back(root);
    return list;
  }();
  return roots;
}

// --- Types of operands

namespace {
Type nthType(const Inst &inst, unsigned wanted) {
  const Row &row = rowOf(inst.op);
  unsigned seen = 0;
  for (auto [slot, mod] : zip(row.slots, inst.mods))
    if (slot.isType && ++seen == wanted)
      return mod ? slot.limits[mod - 1].type : Type::none;
  return Type::none;
}

/// The register type in which a fragment of `type` travels: small elements are packed into 32 bits.
Type fragmentType(Type type) { return bitsOf(type) < 32 || type == Type::tf32 ? Type::b32 : type; }

Type bitsType(unsigned bits) {
  switch (bits) {
  case 8:
    return Type::b8;
  case 16:
    return Type::b16;
  case 32:
    return Type::b32;
  case 64:
    return Type::b64;
  case 128:
    return Type::b128;
  default:
    return Type::none;
  }
}

Type doubled(Type type) {
  switch (type) {
  case Type::u16:
    return Type::u32;
  case Type::s16:
    return Type::s32;
  case Type::u32:
    return Type::u64;
  case Type::s32:
    return Type::s64;
  default:
    return Type::none;
  }
}
} // namespace

Type operandType(const Inst &inst, unsigned index) {
  const OperandForm &form = rowOf(inst.op).operands[index];
  if (form.isAddress || form.isList)
    return Type::none;
  switch (form.rule) {
  case TypeRule::Inst:
    return inst.type();
  case TypeRule::Fixed:
    return *form.type;
  case TypeRule::Nth:
    return nthType(inst, form.typeIndex);
  case TypeRule::Frag:
    return fragmentType(nthType(inst, form.typeIndex));
  case TypeRule::Wide:
    return doubled(inst.type());
  case TypeRule::Part: {
    size_t parts = index < inst.ops.size() ? inst.ops[index].elems.size() : 0;
    return parts ? bitsType(bitsOf(inst.type()) / parts) : Type::none;
  }
  case TypeRule::Address:
    return Type::b64;
  case TypeRule::Flag:
    return Type::pred;
  case TypeRule::Label:
  case TypeRule::Function:
    return Type::none;
  }
  llvm_unreachable("unknown type rule");
}

// --- Operands of the text onto the form

namespace {
bool predMatches(const Inst &inst, unsigned index, const Operand &operand, function_ref<bool(RegId)> isPred) {
  if (operand.kind != Operand::Reg || !isPred)
    return true;
  return isPred(operand.reg) == (operandType(inst, index) == Type::pred);
}

bool shapeFits(const Inst &inst, unsigned index, Operand &operand, function_ref<bool(RegId)> isPred) {
  const OperandForm &form = rowOf(inst.op).operands[index];
  if (form.rule == TypeRule::Label && operand.kind == Operand::Symbol && !operand.imm)
    operand.kind = Operand::Label; // a bare name: only the form tells that it is a label
  if (form.isList || form.rule == TypeRule::Function)
    return operand.kind == (form.isList ? Operand::List : Operand::Symbol) && !operand.imm;
  switch (operand.kind) {
  case Operand::None:
  case Operand::List:
    return false;
  case Operand::Hole:
    return true;
  case Operand::Address:
    return form.isAddress && form.hasCoords == !operand.elems.empty();
  case Operand::Vector:
    return form.isVector;
  case Operand::Label:
    return form.rule == TypeRule::Label;
  case Operand::Sink:
    return form.sinkable && (!form.isVector || form.mayBeScalar);
  case Operand::Imm:
    return !form.isAddress && form.access == Access::Read && form.rule != TypeRule::Label &&
           (!form.isVector || form.mayBeScalar);
  case Operand::Reg:
  case Operand::Special:
  case Operand::Symbol:
    return !form.isAddress && !form.immediate && form.rule != TypeRule::Label && (!form.isVector || form.mayBeScalar) &&
           predMatches(inst, index, operand, isPred);
  }
  llvm_unreachable("unknown operand kind");
}
} // namespace

bool placeOperands(Inst &inst, MutableArrayRef<TextOperand> given, function_ref<bool(RegId)> isPred) {
  const Row &row = rowOf(inst.op);
  size_t required = 0;
  for (unsigned i = 0; i < row.operands.size(); ++i)
    required += operandPresence(inst, i).value_or(false);
  if (given.size() < required)
    return false;
  size_t extra = given.size() - required, next = 0;
  inst.ops.clear();
  for (unsigned i = 0; i < row.operands.size(); ++i) {
    const OperandForm &form = row.operands[i];
    std::optional<bool> presence = operandPresence(inst, i);
    bool here = presence.value_or(extra > 0 && next < given.size() && given[next].afterBar == form.afterBar &&
                                  form.isList == (given[next].op.kind == Operand::List));
    extra -= here && !presence;
    if (!here) {
      inst.ops.emplace_back();
      continue;
    }
    if (next == given.size() || given[next].afterBar != form.afterBar || !shapeFits(inst, i, given[next].op, isPred))
      return false;
    inst.ops.push_back(given[next++].op);
  }
  return next == given.size();
}

} // namespace gemmc::ptx
