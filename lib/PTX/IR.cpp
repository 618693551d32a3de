#include "gemmc/PTX/IR.h"
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <bit>

using namespace llvm;

namespace gemmc::ptx {
namespace {
struct TypeRow {
  StringLiteral name;
  unsigned bits;
};
/// Indexed by `Type`.
constexpr TypeRow types[] = {{"none", 0},    {"pred", 1},  {"b8", 8},   {"b16", 16}, {"b32", 32},    {"b64", 64},
                             {"b128", 128},  {"u8", 8},    {"u16", 16}, {"u32", 32}, {"u64", 64},    {"s8", 8},
                             {"s16", 16},    {"s32", 32},  {"s64", 64}, {"f16", 16}, {"f16x2", 32},  {"bf16", 16},
                             {"bf16x2", 32}, {"tf32", 32}, {"f32", 32}, {"f64", 64}, {"e4m3x2", 16}, {"e5m2x2", 16},
                             {"e4m3", 8},    {"e5m2", 8},  {"s4", 4},   {"u4", 4},   {"b1", 1}};
static_assert(std::size(types) == static_cast<unsigned>(Type::b1) + 1);
} // namespace

unsigned bitsOf(Type type) { return types[static_cast<unsigned>(type)].bits; }
StringRef nameOf(Type type) { return types[static_cast<unsigned>(type)].name; }
std::optional<Type> parseType(StringRef name) {
  if (name.size() < 2 || name.size() > 6 || !StringRef("pbusfte").contains(name.front()))
    return std::nullopt;
  for (unsigned i = 1; i < std::size(types); ++i)
    if (name == types[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

// --- Operands

Operand Operand::makeReg(RegId reg, bool negated) {
  Operand op;
  op.kind = Reg;
  op.reg = reg;
  op.negated = negated;
  return op;
}
Operand Operand::makeImm(int64_t value) {
  Operand op;
  op.kind = Imm;
  op.imm = value;
  return op;
}
Operand Operand::makeF32(float value) {
  Operand op = makeImm(std::bit_cast<uint32_t>(value));
  op.floatBits = 32;
  return op;
}
Operand Operand::makeF64(double value) {
  Operand op = makeImm(std::bit_cast<int64_t>(value));
  op.floatBits = 64;
  return op;
}
static Operand makeNamed(Operand::Kind kind, StringRef name, int64_t imm = 0) {
  Operand op;
  op.kind = kind;
  op.name = name.str();
  op.imm = imm;
  return op;
}
Operand Operand::makeSymbol(StringRef name, int64_t offset) { return makeNamed(Symbol, name, offset); }
Operand Operand::makeSpecial(StringRef name) { return makeNamed(Special, name); }
Operand Operand::makeLabel(StringRef name) { return makeNamed(Label, name); }
Operand Operand::makeHole(StringRef name) { return makeNamed(Hole, name); }
Operand Operand::makeSink() { return makeNamed(Sink, ""); }
Operand Operand::makeVector(std::vector<Operand> elems) {
  Operand op;
  op.kind = Vector;
  op.elems = std::move(elems);
  return op;
}
Operand Operand::makeList(std::vector<Operand> elems) {
  Operand op = makeVector(std::move(elems));
  op.kind = List;
  return op;
}
Operand Operand::makeAddress(const Operand &base, int64_t offset, std::vector<Operand> coords) {
  assert((base.kind == Reg || base.kind == Imm || base.kind == Symbol || base.kind == Address || base.kind == Hole) &&
         "an address is a register, a symbol or a number");
  Operand op = base;
  op.kind = Address;
  op.hasReg = base.kind == Reg || base.hasReg;
  if (base.kind == Hole)
    op.name = "<" + base.name + ">";
  op.imm += offset;
  op.elems = std::move(coords);
  return op;
}

// --- Instructions

StringRef Inst::mod(unsigned slot) const {
  return slot < mods.size() && mods[slot] ? rowOf(op).slots[slot].choices[mods[slot] - 1] : StringRef();
}
bool Inst::has(StringRef modifier) const {
  const Row &row = rowOf(op);
  for (auto [slot, choice] : zip(row.slots, mods))
    if (choice && slot.choices[choice - 1] == modifier)
      return true;
  return false;
}
Type Inst::type() const {
  const Row &row = rowOf(op);
  for (unsigned i = mods.size(); i-- > 0;)
    if (mods[i])
      if (Type type = row.slots[i].limits[mods[i] - 1].type; type != Type::none)
        return type;
  return Type::none;
}
std::string Inst::mnemonic() const {
  const Row &row = rowOf(op);
  std::string text = row.root.str();
  for (auto [slot, choice] : zip(row.slots, mods))
    if (choice) {
      text += '.';
      text += slot.choices[choice - 1];
    }
  return text;
}

// --- Variables, functions, modules

unsigned Variable::alignment() const { return std::max({align, bitsOf(type) / 8, 1u}); }

uint64_t Variable::bytes() const {
  uint64_t total = (bitsOf(type) + 7) / 8;
  for (uint64_t count : extent)
    if (__builtin_mul_overflow(total, count, &total))
      return UINT64_MAX;
  return total;
}

/// `stem`, or with the first free number behind it; notes it in `taken`.
static std::string makeUnique(StringMap<unsigned> &taken, StringRef stem) {
  auto [entry, fresh] = taken.try_emplace(stem, 1);
  if (fresh)
    return stem.str();
  for (;;) {
    std::string name = (stem + "_" + Twine(entry->second++)).str();
    if (taken.try_emplace(name, 1).second)
      return name;
    entry = taken.find(stem);
  }
}

RegId Function::addReg(Type type, StringRef name) {
  if (names.seenRegs != regs.size()) {
    names.regs.clear();
    for (const Reg &reg : regs)
      names.regs.try_emplace(reg.name, 1);
  }
  if (specialType(name))
    names.regs.try_emplace(name, 1); // `%tid` must not be declared
  regs.push_back({makeUnique(names.regs, name), type});
  names.seenRegs = regs.size();
  return regs.size() - 1;
}

std::string Function::uniqueLabel(StringRef name) {
  if (!names.seenLabels)
    for (const Stmt &stmt : body)
      if (stmt.kind == Stmt::Label)
        names.labels.try_emplace(stmt.text, 1);
  names.seenLabels = true;
  return makeUnique(names.labels, name);
}

std::string Function::freshLabel(StringRef stem) {
  // The prefix keeps labels apart from the names of variables and from PTX's keywords.
  return uniqueLabel(stem.starts_with("L_") || stem.starts_with("$") ? stem.str() : ("L_" + stem).str());
}

template <typename List> static auto *findIn(List &list, StringRef name) {
  auto found = find_if(list, [&](const auto &one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}
Function *Module::find(StringRef name) {
  auto found = find_if(functions, [&](const Function &one) { return one.name == name && one.hasBody; });
  return found == functions.end() ? findIn(functions, name) : &*found;
}
const Function *Module::find(StringRef name) const { return const_cast<Module *>(this)->find(name); }

// --- Special registers (PTX ISA 10)

std::optional<Type> specialType(StringRef name) {
  if (name == "WARP_SZ")
    return Type::u32;
  if (!name.consume_front("%"))
    return std::nullopt;
  auto [stem, component] = name.split('.');
  bool vector = StringSwitch<bool>(stem)
                    .Cases("tid", "ntid", "ctaid", "nctaid", true)
                    .Cases("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", true)
                    .Default(false);
  if (vector)
    return component.size() <= 1 && StringRef("xyzw").contains(component) ? std::optional(Type::u32) : std::nullopt;
  unsigned number = 0;
  StringRef digits = stem;
  if (digits.consume_front("envreg"))
    return !digits.getAsInteger(10, number) && number < 32 ? std::optional(Type::b32) : std::nullopt;
  return StringSwitch<std::optional<Type>>(name)
      .Cases("laneid", "warpid", "nwarpid", "smid", "nsmid", Type::u32)
      .Cases("lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", Type::u32)
      .Cases("cluster_ctarank", "cluster_nctarank", "clock", "clock_hi", Type::u32)
      .Cases("globaltimer_lo", "globaltimer_hi", "total_smem_size", "aggr_smem_size", "dynamic_smem_size", Type::u32)
      .Cases("reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
             "reserved_smem_offset_0", "reserved_smem_offset_1", Type::b32)
      .Cases("clock64", "globaltimer", "gridid", "current_graph_exec", Type::u64)
      .Case("is_explicit_cluster", Type::pred)
      .Default(std::nullopt);
}

} // namespace gemmc::ptx
