#include "Decoder.h"
#include "gemmc/PTX/Inline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include <bit>
#include <cstring>

using namespace llvm;

namespace gemmc::emu {

const char *nameOf(Where where) {
  static constexpr const char *names[] = {"generic", "shared", "shared::cluster", "global", "local", "param", "const"};
  return names[static_cast<unsigned>(where)];
}

const Place *Program::place(StringRef name) const {
  auto found = find_if(places, [&](const auto &entry) { return entry.first == name; });
  return found == places.end() ? nullptr : &found->second;
}

std::string Program::roleOf(unsigned warp) const {
  auto found = find_if(roles, [&](const Role &role) { return warp >= role.first && warp <= role.last; });
  return found == roles.end() ? "" : found->name;
}

/// `producer: warps 0 to 3`
static std::optional<Program::Role> readRole(StringRef comment) {
  auto [name, rest] = comment.trim().split(": warps ");
  auto [first, last] = rest.split(" to ");
  Program::Role role{name.str(), 0, 0};
  if (name.empty() || first.getAsInteger(10, role.first) || last.trim().getAsInteger(10, role.last))
    return std::nullopt;
  return role;
}

std::unique_ptr<Program> decode(const ptx::Module &module, StringRef entry) {
  const ptx::Function *function = module.find(entry);
  if (!function)
    return nullptr;
  auto program = std::make_unique<Program>();
  program->function = *function;
  ptx::inlineCalls(module, program->function);
  for (const ptx::Stmt &stmt : function->body)
    if (stmt.kind == ptx::Stmt::Comment)
      if (auto role = readRole(stmt.text))
        program->roles.push_back(*role);
  StringRef digits = StringRef(module.target).drop_until(isDigit);
  digits.consumeInteger(10, program->sm);
  Decoder(*program, module).run();
  return program;
}

Decoder::Decoder(Program &program, const ptx::Module &module) : program(program) { layOut(module); }

// --- Variables

static uint64_t alignTo(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }
static unsigned bytesOf(Type type) { return std::max(1u, ptx::bitsOf(type) / 8); }
static bool isDynamic(const ptx::Variable &variable) { return !variable.extent.empty() && !variable.extent.front(); }

/// The first multiple of `align` from `size` on that is no multiple of more, below 1024.
static uint64_t exactlyAligned(uint64_t size, uint64_t align) {
  uint64_t offset = alignTo(size, align);
  return align < window::sharedBase && !(offset & align) ? offset + align : offset;
}

void Decoder::placeVariable(const ptx::Variable &variable) {
  auto take = [&](uint32_t &size) {
    uint64_t offset = alignTo(size, variable.alignment());
    size = offset + variable.bytes();
    return offset;
  };
  switch (variable.space) {
  case ptx::Space::shared:
    if (!isDynamic(variable)) {
      uint32_t offset = take(program.staticShared), exact = exactlyAligned(program.exactShared, variable.alignment());
      program.exactShared = exact + variable.bytes();
      program.places.push_back(
          {variable.name, {Where::Shared, window::sharedBase + offset, variable.bytes(), exact - offset}});
    }
    break;
  case ptx::Space::local:
  case ptx::Space::param: // of a call
    program.places.push_back({variable.name, {Where::Local, take(program.localBytes), variable.bytes()}});
    break;
  default:
    break; // registers are `Function::regs`; the rest was laid out with the module
  }
}

void Decoder::layOutModule(const ptx::Module &module) {
  std::vector<std::byte> &image = program.moduleBytes;
  auto placeAll = [&](ptx::Space space, Where where, ArrayRef<ptx::Variable> variables) {
    for (const ptx::Variable &variable : variables)
      if (variable.space == space) {
        uint64_t offset = alignTo(image.size(), std::max(variable.alignment(), 16u));
        unsigned width = bytesOf(variable.type);
        image.resize(offset + variable.bytes());
        for (auto [i, value] : enumerate(variable.init))
          std::memcpy(image.data() + offset + i * width, &value, std::min(width, 8u));
        program.places.push_back({variable.name, {where, window::module + offset, variable.bytes()}});
      }
  };
  placeAll(ptx::Space::constant, Where::Const, module.vars);
  placeAll(ptx::Space::constant, Where::Const, program.function.vars);
  program.constBytes = image.size();
  placeAll(ptx::Space::global, Where::Global, module.vars);
  placeAll(ptx::Space::global, Where::Global, program.function.vars);
  for (ArrayRef<ptx::Variable> list : {ArrayRef<ptx::Variable>(module.vars), ArrayRef(program.function.vars)})
    for (const ptx::Variable &variable : list)
      resolve(variable);
}

/// Addresses in an initialiser; what has none here (a function) stays 0.
void Decoder::resolve(const ptx::Variable &variable) {
  const Place *to = program.place(variable.name);
  unsigned width = bytesOf(variable.type);
  for (const ptx::Reference &reference : variable.references)
    if (const Place *target = program.place(reference.name)) {
      uint64_t value = (target->offset + reference.offset) & reference.mask;
      value >>= reference.mask ? countr_zero(reference.mask) : 0;
      std::memcpy(program.moduleBytes.data() + to->offset % window::size + reference.index * width, &value,
                  std::min(width, 8u));
    }
}

/// The block begins at a multiple of the greatest alignment in it, and of no more below that of a tensor map.
void Decoder::layOutParams() {
  constexpr unsigned mapAlign = 64;
  unsigned most = 1;
  for (const ptx::Variable &param : program.function.params)
    most = std::max(most, param.alignment());
  program.paramBase = most < mapAlign ? most : 0;
  uint64_t offset = 0;
  for (const ptx::Variable &param : program.function.params) {
    offset = alignTo(offset, param.alignment());
    program.places.push_back({param.name, {Where::Param, window::param + program.paramBase + offset, param.bytes()}});
    offset += param.bytes();
  }
  program.paramBytes = offset;
}

/// Names that the kernel's statements mention.
static StringSet<> namesIn(const ptx::Function &function) {
  StringSet<> names;
  for (const ptx::Stmt &stmt : function.body)
    for (const ptx::Operand &op : stmt.inst.ops)
      if (!op.name.empty())
        names.insert(op.name);
  return names;
}

/// A kernel gets only those shared variables of the module that it uses.
/// Dynamic shared memory begins behind the static variables, at the largest alignment that one of its names asks for.
void Decoder::layOut(const ptx::Module &module) {
  layOutModule(module);
  layOutParams();
  StringSet<> used = namesIn(program.function);
  std::vector<ptx::Variable> ofModule;
  for (const ptx::Variable &variable : module.vars)
    if (variable.space != ptx::Space::shared || used.contains(variable.name))
      ofModule.push_back(variable);
  auto both = {ArrayRef<ptx::Variable>(ofModule), ArrayRef<ptx::Variable>(program.function.vars)};
  uint64_t dynamicAlign = 16;
  for (ArrayRef<ptx::Variable> list : both)
    for (const ptx::Variable &variable : list) {
      placeVariable(variable);
      if (variable.space == ptx::Space::shared && isDynamic(variable))
        dynamicAlign = std::max<uint64_t>(dynamicAlign, variable.alignment());
    }
  program.dynamicOffset = alignTo(program.staticShared, dynamicAlign);
  program.exactDynamic = exactlyAligned(program.exactShared, dynamicAlign);
  for (ArrayRef<ptx::Variable> list : both)
    for (const ptx::Variable &variable : list)
      if (variable.space == ptx::Space::shared && isDynamic(variable))
        program.places.push_back({variable.name,
                                  {Where::Shared, window::sharedBase + program.dynamicOffset, 0,
                                   program.exactDynamic - program.dynamicOffset}});
}

// --- Operands

uint32_t Decoder::newRows(unsigned bits) {
  uint32_t first = program.numRows;
  program.numRows += bits > 64 ? 4 : bits > 32 ? 2 : 1;
  return first;
}

Arg Decoder::scratch(Type type) {
  Arg arg;
  if (type == Type::pred) {
    arg.kind = Arg::Pred;
    arg.slot = program.numPreds++;
    return arg;
  }
  arg.kind = Arg::Value;
  arg.bits = ptx::bitsOf(type) ? ptx::bitsOf(type) : 64;
  arg.slot = newRows(arg.bits);
  return arg;
}

Arg Decoder::constant(uint64_t value, unsigned bits) {
  if (bits < 64)
    value &= (uint64_t(1) << bits) - 1;
  Arg arg;
  arg.kind = Arg::Value;
  arg.bits = bits;
  arg.constant = true;
  auto [entry, fresh] = constants.try_emplace({value, bits > 32 ? 2 : 1}, program.constants.size());
  arg.slot = entry->second;
  if (!fresh)
    return arg;
  program.constants.resize(program.constants.size() + (bits > 32 ? 2 : 1));
  auto *rows = program.constants.data() + arg.slot;
  for (unsigned l = 0; l < numLanes; ++l) {
    auto low = static_cast<uint32_t>(value);
    if (bits > 32)
      std::memcpy(reinterpret_cast<std::byte *>(rows) + 8 * l, &value, 8);
    else
      rows->lane[l] = low;
  }
  return arg;
}

/// Float literals carry bits of their own width; an integer literal in a floating-point place means its value.
Arg Decoder::immediateArg(const ptx::Operand &operand, Type type) {
  if (type == Type::pred) {
    Arg arg;
    arg.kind = Arg::Pred;
    arg.slot = operand.imm != 0;
    return arg;
  }
  auto bits = static_cast<uint64_t>(operand.imm);
  if (type == Type::f32 && operand.floatBits != 32) {
    double value = operand.floatBits ? std::bit_cast<double>(bits) : static_cast<double>(operand.imm);
    bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  } else if (type == Type::f64 && operand.floatBits != 64) {
    double value =
        operand.floatBits ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : static_cast<double>(operand.imm);
    bits = std::bit_cast<uint64_t>(value);
  }
  return constant(bits, ptx::bitsOf(type) ? ptx::bitsOf(type) : 64);
}

Arg Decoder::special(StringRef name, unsigned bits) {
  auto found = find_if(program.specials, [&](const SpecialSlot &one) { return one.name == name && one.bits == bits; });
  Arg arg;
  arg.kind = Arg::Value;
  arg.bits = bits;
  if (found == program.specials.end()) {
    program.specials.push_back({name.str(), newRows(bits), static_cast<uint8_t>(bits)});
    found = std::prev(program.specials.end());
  }
  arg.slot = found->slot;
  return arg;
}

Arg Decoder::symbol(StringRef name, int64_t offset, unsigned bits) {
  const Place *place = program.place(name);
  if (!place)
    return constant(0, bits); // the verifier's business; whoever uses the address gets a finding
  uint64_t target = place->offset + offset;
  if (place->where != Where::Shared)
    return constant(target, bits);
  auto same = [&](const SymbolSlot &one) {
    return one.offset == target && one.bits == bits && one.shift == place->shift;
  };
  auto found = find_if(program.symbols, same);
  if (found == program.symbols.end()) {
    program.symbols.push_back({newRows(bits), static_cast<uint8_t>(bits), place->where, target, place->shift});
    found = std::prev(program.symbols.end());
  }
  Arg arg;
  arg.kind = Arg::Value;
  arg.bits = bits;
  arg.slot = found->slot;
  return arg;
}

Arg Decoder::scalar(const ptx::Operand &operand, Type type) {
  unsigned bits = ptx::bitsOf(type) ? ptx::bitsOf(type) : 64;
  switch (operand.kind) {
  case ptx::Operand::Reg: {
    Arg arg = regs[operand.reg];
    arg.negated = operand.negated;
    return arg;
  }
  case ptx::Operand::Imm:
    return immediateArg(operand, type);
  case ptx::Operand::Special:
    if (operand.name == "WARP_SZ")
      return constant(numLanes, bits);
    return special(operand.name, bits);
  case ptx::Operand::Symbol:
    return symbol(operand.name, operand.imm, bits);
  case ptx::Operand::Sink:
    return scratch(type);
  case ptx::Operand::Vector:
    return vector(operand, type);
  case ptx::Operand::Address:
    return address(operand);
  default:
    return Arg();
  }
}

Arg Decoder::vector(const ptx::Operand &operand, Type type) {
  SmallVector<Arg, 8> elems;
  for (const ptx::Operand &elem : operand.elems)
    elems.push_back(scalar(elem, type));
  Arg arg;
  arg.kind = Arg::Vector;
  arg.first = program.args.size();
  arg.count = elems.size();
  program.args.insert(program.args.end(), elems.begin(), elems.end());
  return arg;
}

Arg Decoder::address(const ptx::Operand &operand) {
  uint32_t first = program.args.size();
  for (const ptx::Operand &coord : operand.elems)
    program.args.push_back(scalar(coord, Type::s32));
  Arg arg;
  if (operand.hasReg) {
    arg = regs[operand.reg];
    arg.offset = operand.imm;
  } else if (!operand.name.empty()) {
    arg = symbol(operand.name, 0, 64);
    arg.offset = operand.imm;
  } else
    arg = constant(operand.imm, 64);
  arg.kind = Arg::Address;
  arg.first = first;
  arg.count = operand.elems.size();
  return arg;
}

Type Decoder::typeAt(unsigned n) const {
  const ptx::Row &row = ptx::rowOf(inst->op);
  for (auto [slot, choice] : zip(row.slots, inst->mods))
    if (slot.isType && !--n)
      return choice ? slot.limits[choice - 1].type : Type::none;
  return Type::none;
}

std::optional<unsigned> Decoder::jumpTable() const {
  for (const ptx::Operand &op : inst->ops)
    if (auto found = jumpTables.find(op.name); op.kind == ptx::Operand::Label && found != jumpTables.end())
      return found->second;
  return std::nullopt;
}

Where Decoder::where(Where otherwise) const {
  auto ofCall = [&](const ptx::Operand &op) { // not the kernel's
    const Place *place = op.kind == ptx::Operand::Address && !op.name.empty() ? program.place(op.name) : nullptr;
    return place && place->where == Where::Local;
  };
  for (unsigned i = 0; i < inst->mods.size(); ++i) {
    auto found =
        StringSwitch<std::optional<Where>>(inst->mod(i))
            .Cases("shared", "shared::cta", Where::Shared)
            .Case("shared::cluster", Where::SharedCluster)
            .Case("global", Where::Global)
            .Case("local", Where::Local)
            .Cases("param", "param::entry", "param::func", any_of(inst->ops, ofCall) ? Where::Local : Where::Param)
            .Case("const", Where::Const)
            .Default(std::nullopt);
    if (found)
      return *found;
  }
  return otherwise;
}

// --- Instructions

static Exec choose(Decoder &d) {
  switch (d.inst->op) { // no default: a row without its function does not link
#define PTX_OP(Name, ...)                                                                                              \
  case ptx::Op::Name:                                                                                                  \
    return exec##Name(d);
#include "gemmc/PTX/Ops.def"
  }
  return unmodelled;
}

/// `args` holds the index of the first operand until all are there.
Ordering::Ordering(const ptx::Inst *inst) {
  if (!inst)
    return;
  acquires = inst->has("acquire") || inst->has("acq_rel");
  releases = inst->has("release") || inst->has("acq_rel");
  relaxed = inst->has("relaxed");
  atCta = inst->has("cta");
  atCluster = inst->has("cluster");
}

void Decoder::decodeInst(const ptx::Inst &one) {
  inst = &one;
  SmallVector<Arg, 8> list;
  for (unsigned i = 0; i < one.ops.size(); ++i) {
    const ptx::Operand &op = one.ops[i];
    if (op.kind == ptx::Operand::Label)
      list.push_back(Arg());
    else
      list.push_back(scalar(op, ptx::operandType(one, i)));
  }
  firstArg = program.args.size();
  program.args.insert(program.args.end(), list.begin(), list.end());

  Code &made = program.code.emplace_back();
  code = &made;
  made.inst = inst;
  made.ordering = Ordering(inst);
  made.line = one.line;
  made.type = one.type();
  made.bytes = bytesOf(made.type);
  if (one.guarded) {
    made.guard = regs[one.guard].slot;
    made.guardNegated = one.guardNegated;
  }
  for (const ptx::Operand &op : one.ops)
    if (op.kind == ptx::Operand::Label) {
      auto found = labels.find(op.name);
      made.target = found == labels.end() ? 0 : found->second;
    }
  made.run = choose(*this);
  made.args = reinterpret_cast<const Arg *>(firstArg);
}

static Step runExit(Warp &warp, const Code &, Mask mask) { return warp.exit(mask); }

void Decoder::findLabels() {
  uint32_t index = 0;
  StringRef last;
  std::vector<const ptx::Inst *> tables;
  for (const ptx::Stmt &stmt : program.function.body) {
    if (stmt.kind == ptx::Stmt::Label)
      labels[stmt.text] = index, last = stmt.text;
    if (stmt.kind == ptx::Stmt::Targets) {
      jumpTables[last.str()] = tables.size();
      tables.push_back(&stmt.inst);
    }
    index += stmt.kind == ptx::Stmt::Instruction;
  }
  for (const ptx::Inst *table : tables) {
    std::vector<uint32_t> &to = program.jumpTables.emplace_back();
    for (const ptx::Operand &label : table->ops)
      to.push_back(labels[label.name]);
  }
}

void Decoder::run() {
  const ptx::Function &function = program.function;
  for (const ptx::Reg &reg : function.regs)
    regs.push_back(scratch(reg.type));
  findLabels();
  uint32_t line = 0;
  for (const ptx::Stmt &stmt : function.body)
    if (stmt.kind == ptx::Stmt::Instruction) {
      decodeInst(stmt.inst);
      line = stmt.inst.line;
    }
  Code &end = program.code.emplace_back();
  end.run = runExit;
  end.line = line;
  for (Code &one : program.code)
    one.args = program.args.data() + reinterpret_cast<size_t>(one.args);
}

} // namespace gemmc::emu
