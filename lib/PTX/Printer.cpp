/// PTX text from a module. Lines are put together a paragraph (between labels and blank lines) at a time, so that the
/// operands and the trailing comments of a paragraph stand below each other.
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <map>

using namespace llvm;

namespace gemmc::ptx {
namespace {
constexpr unsigned indent = 4;
constexpr unsigned width = 120;      ///< Lines are wrapped before this column where operands allow it.
constexpr unsigned alignedHead = 36; ///< Longer mnemonics do not push the operands of their paragraph further.
constexpr unsigned alignedNote = 88; ///< The same for trailing comments.

void append(std::string &out, StringRef text) { out.append(text.data(), text.size()); }
void append(std::string &out, const Twine &text) {
  SmallString<64> buffer;
  append(out, text.toStringRef(buffer));
}

void appendNumber(std::string &out, int64_t value) {
  char buffer[24];
  bool hex = value >= (1 << 20); // masks and bit patterns read better so
  if (hex)
    out += "0x";
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, hex ? 16 : 10).ptr;
  out.append(buffer, end);
}

void appendFloat(std::string &out, uint64_t bits, unsigned floatBits) {
  out += floatBits == 32 ? "0f" : "0d";
  for (unsigned shift = floatBits; shift != 0; shift -= 4)
    out += hexdigit((bits >> (shift - 4)) & 15);
}

void appendString(std::string &out, StringRef text) {
  out += '"';
  append(out, text);
  out += '"';
}

/// `// text`, on one line whatever the text holds; a space is put in front of words.
void appendComment(std::string &out, StringRef text) {
  out += "//";
  text = text.rtrim(StringRef(" \t\n\v\f\r\0", 7));
  if (!text.empty() && (isAlnum(text.front()) || StringRef("`'\"([{<%$@_.*&#").contains(text.front())))
    out += ' ';
  for (char c : text)
    out += c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
}

void appendComments(std::string &out, ArrayRef<std::string> lines, unsigned column) {
  for (StringRef line : lines) {
    SmallVector<StringRef, 1> parts;
    line.split(parts, '\n');
    for (StringRef part : parts) {
      out.append(column, ' ');
      appendComment(out, part);
      out += '\n';
    }
  }
}

StringRef spaceName(Space space) {
  static constexpr const char *names[] = {"reg", "param", "shared", "global", "const", "local"};
  return names[static_cast<unsigned>(space)];
}

// --- Register declarations

/// Registers of one type that share a stem: `%acc0`, `%acc1`...
struct Stem {
  std::vector<uint64_t> numbers;
  std::vector<StringRef> names;
};

/// Splits `%acc12` into `%acc` and 12; no number when there is none or it has a leading zero.
std::pair<StringRef, std::optional<uint64_t>> splitNumber(StringRef name) {
  size_t digits = name.size() - name.rtrim("0123456789").size();
  StringRef number = name.take_back(digits);
  uint64_t value = 0;
  if (!digits || digits == name.size() || digits > 8 || (digits > 1 && number.front() == '0') ||
      number.getAsInteger(10, value))
    return {name, std::nullopt};
  return {name.drop_back(digits), value};
}

class Printer {
public:
  explicit Printer(std::string &out) : out(out) {}
  void module(const Module &module);

private:
  void variable(const Variable &variable, unsigned column);
  void initialiser(const Variable &variable, ArrayRef<uint64_t> extents, size_t &next);
  void reference(const Reference &reference);
  void parameters(ArrayRef<Variable> list);
  void function(const Function &function);
  void directives(const Function &function);
  void registers(const Function &function);
  BitVector usedRegs(const Function &function) const;
  void body(const Function &function);
  void paragraph(ArrayRef<Stmt> stmts);
  void instruction(const Inst &inst, unsigned operandColumn);
  void wrapOperands(const Inst &inst);
  void head(const Inst &inst);
  size_t headLength(const Inst &inst) const;
  void operands(const Inst &inst);
  void operand(const Operand &operand);
  void elements(ArrayRef<Operand> elems, char open = '{', char close = '}');
  void list(StringRef separator, bool &first) {
    if (!std::exchange(first, false))
      append(out, separator);
  }

  std::string &out;
  const Function *current = nullptr;
  std::string scratch;
};

void Printer::module(const Module &module) {
  appendComments(out, module.header, 0);
  append(out, ".version " + Twine(module.versionMajor) + "." + Twine(module.versionMinor) + "\n.target " +
                  module.target + "\n.address_size " + Twine(module.addressSize) + "\n");
  if (!module.vars.empty())
    out += '\n';
  for (const Variable &one : module.vars) {
    appendComments(out, one.comments, 0);
    variable(one, 0);
    out += ";\n";
  }
  for (const Function &one : module.functions)
    function(one);
}

void Printer::variable(const Variable &one, unsigned column) {
  out.append(column, ' ');
  if (one.isExtern)
    out += ".extern ";
  if (one.isVisible)
    out += ".visible ";
  if (one.isWeak)
    out += ".weak ";
  out += '.';
  append(out, spaceName(one.space));
  if (one.align && !one.ptrSpace)
    append(out, " .align " + Twine(one.align));
  out += " .";
  append(out, nameOf(one.type));
  if (one.ptrSpace) {
    out += " .ptr";
    if (*one.ptrSpace != Space::reg)
      append(out, " ." + spaceName(*one.ptrSpace));
    if (one.ptrAlign)
      append(out, " .align " + Twine(one.ptrAlign));
  }
  out += ' ';
  out += one.name;
  for (size_t i = 0; i < one.extent.size(); ++i)
    append(out, one.extent[i] || i ? "[" + Twine(one.extent[i]) + "]" : Twine("[]"));
  if (one.init.empty())
    return;
  out += " = ";
  size_t next = 0;
  initialiser(one, one.extent, next);
}

void Printer::initialiser(const Variable &one, ArrayRef<uint64_t> extents, size_t &next) {
  if (extents.empty()) {
    auto found = find_if(one.references, [&](const Reference &reference) { return reference.index == next; });
    if (found != one.references.end()) {
      ++next;
      return reference(*found);
    }
    uint64_t value = next < one.init.size() ? one.init[next] : 0;
    ++next;
    if (one.type == Type::f32 || one.type == Type::f64)
      return appendFloat(out, value, bitsOf(one.type));
    return appendNumber(out, static_cast<int64_t>(value));
  }
  out += '{';
  bool first = true;
  // An array may be longer than its initialiser: the rest is zero.
  for (uint64_t i = 0; (i < extents.front() || !extents.front()) && next < one.init.size(); ++i) {
    list(", ", first);
    initialiser(one, extents.drop_front(), next);
  }
  out += '}';
}

void Printer::reference(const Reference &one) {
  bool masked = one.mask != ~uint64_t(0);
  if (masked)
    append(out, "0x" + Twine::utohexstr(one.mask) + "(");
  append(out, one.isGeneric ? "generic(" + Twine(one.name) + ")" : Twine(one.name));
  if (one.offset > 0)
    out += '+';
  if (one.offset)
    appendNumber(out, one.offset);
  if (masked)
    out += ')';
}

void Printer::parameters(ArrayRef<Variable> list) {
  out += '(';
  for (const Variable &param : list) {
    out += &param == &list.front() ? "\n" : ",\n";
    appendComments(out, param.comments, indent);
    variable(param, indent);
  }
  out += list.empty() ? ")" : "\n)";
}

void Printer::function(const Function &one) {
  current = &one;
  out += '\n';
  appendComments(out, one.comments, 0);
  out += one.isExtern ? ".extern " : one.weak ? ".weak " : one.visible ? ".visible " : "";
  out += one.isEntry ? ".entry " : ".func ";
  if (!one.results.empty()) {
    parameters(one.results);
    out += ' ';
  }
  out += one.name;
  parameters(one.params);
  out += '\n';
  directives(one);
  if (!one.hasBody) {
    out += ";\n";
    return;
  }
  out += "{\n";
  size_t start = out.size();
  registers(one);
  for (const Variable &var : one.vars) {
    appendComments(out, var.comments, indent);
    variable(var, indent);
    out += ";\n";
  }
  if (out.size() != start && !one.body.empty())
    out += '\n';
  body(one);
  out += "}\n";
}

void Printer::directives(const Function &one) {
  auto triple = [&](StringRef name, const std::array<unsigned, 3> &v) {
    if (v[0])
      append(out, "." + name + " " + Twine(v[0]) + ", " + Twine(v[1]) + ", " + Twine(v[2]) + "\n");
  };
  auto number = [&](StringRef name, unsigned v) {
    if (v)
      append(out, "." + name + " " + Twine(v) + "\n");
  };
  triple("maxntid", one.maxntid);
  triple("reqntid", one.reqntid);
  if (one.explicitcluster)
    out += ".explicitcluster\n";
  triple("reqnctapercluster", one.reqnctapercluster);
  number("maxclusterrank", one.maxclusterrank);
  number("minnctapersm", one.minnctapersm);
  number("maxnreg", one.maxnreg);
  if (one.noreturn)
    out += ".noreturn\n";
  for (StringRef pragma : one.pragmas)
    append(out, ".pragma \"" + pragma + "\";\n");
}

BitVector Printer::usedRegs(const Function &one) const {
  BitVector used(one.regs.size());
  auto take = [&](const Operand &op) {
    if (op.kind == Operand::Reg || op.hasReg)
      used.set(op.reg);
  };
  for (const Stmt &stmt : one.body) {
    if (stmt.kind != Stmt::Instruction)
      continue;
    if (stmt.inst.guarded)
      used.set(stmt.inst.guard);
    for (const Operand &op : stmt.inst.ops) {
      take(op);
      for (const Operand &elem : op.elems)
        take(elem);
    }
  }
  return used;
}

/// One `.reg` line a type (more when it grows long): ranges `%acc<128>` for numbered families, then single names.
void Printer::registers(const Function &one) {
  std::map<std::pair<Type, StringRef>, Stem> stems;
  std::map<StringRef, unsigned> typesOfStem;
  BitVector used = usedRegs(one);
  for (unsigned id : used.set_bits()) {
    auto [stem, number] = splitNumber(one.regs[id].name);
    Stem &entry = stems[{one.regs[id].type, stem}];
    typesOfStem[stem] += entry.names.empty();
    entry.names.push_back(one.regs[id].name);
    if (number)
      entry.numbers.push_back(*number);
  }
  Type lineType = Type::none;
  size_t lineStart = 0;
  auto declare = [&](Type type, const Twine &text) {
    if (type != lineType || out.size() - lineStart > 90) {
      out += lineType == Type::none ? "" : ";\n";
      lineType = type;
      lineStart = out.size();
      out.append(indent, ' ');
      out += ".reg .";
      append(out, nameOf(type));
      out.append(std::max<size_t>(6, nameOf(type).size() + 1) - nameOf(type).size(), ' ');
    } else {
      out += ", ";
    }
    append(out, text);
  };
  for (auto &[key, stem] : stems) {
    auto [type, name] = key;
    uint64_t count = stem.numbers.empty() ? 0 : *llvm::max_element(stem.numbers) + 1;
    // A range also declares the numbers in between; that must not redeclare a name of another type or a special one.
    bool range = stem.numbers.size() == stem.names.size() && stem.numbers.size() > 1 &&
                 count <= 2 * stem.numbers.size() + 1 && typesOfStem[name] == 1 && name.starts_with("%") &&
                 name.size() > 1 && !is_contained({"%envreg", "%pm", "%clock"}, name);
    if (range)
      declare(type, name + "<" + Twine(count) + ">");
    else
      for (StringRef single : stem.names)
        declare(type, single);
  }
  out += lineType == Type::none ? "" : ";\n";
}

void Printer::body(const Function &one) {
  // Blank lines at both ends would vanish when the text is read again, and so would a second one in a row.
  auto isBlank = [](const Stmt &stmt) { return stmt.kind == Stmt::Blank; };
  ArrayRef<Stmt> rest = one.body;
  while (!rest.empty() && isBlank(rest.back()))
    rest = rest.drop_back();
  while (!rest.empty() && isBlank(rest.front()))
    rest = rest.drop_front();
  while (!rest.empty()) {
    size_t count = 0;
    while (count < rest.size() && rest[count].kind != Stmt::Label && rest[count].kind != Stmt::Blank)
      ++count;
    paragraph(rest.take_front(count));
    rest = rest.drop_front(count);
    if (rest.empty())
      break;
    if (rest.front().kind == Stmt::Label)
      append(out, Twine(rest.front().text) + ":");
    out += '\n';
    bool blank = isBlank(rest.front());
    do
      rest = rest.drop_front();
    while (blank && isBlank(rest.front()));
  }
}

void Printer::paragraph(ArrayRef<Stmt> stmts) {
  size_t column = 0;
  bool notes = false;
  for (const Stmt &stmt : stmts)
    if (stmt.kind == Stmt::Instruction) {
      notes |= !stmt.inst.comment.empty();
      if (size_t length = headLength(stmt.inst); length <= alignedHead && !stmt.inst.ops.empty())
        column = std::max(column, length);
    }
  struct Note {
    size_t at;
    size_t column;
    StringRef text;
  };
  SmallVector<Note, 8> pending;
  size_t noteColumn = 0;
  for (const Stmt &stmt : stmts) {
    switch (stmt.kind) {
    case Stmt::Comment:
      appendComments(out, stmt.text, indent);
      break;
    case Stmt::Pragma:
      out.append(indent, ' ');
      out += ".pragma ";
      appendString(out, stmt.text);
      out += ";\n";
      break;
    case Stmt::Targets: {
      out.append(indent, ' ');
      out += ".branchtargets ";
      bool first = true;
      for (const Operand &label : stmt.inst.ops) {
        list(", ", first);
        operand(label);
      }
      out += ";\n";
      break;
    }
    case Stmt::Instruction: {
      instruction(stmt.inst, indent + column + 1);
      if (!stmt.inst.comment.empty()) {
        size_t length = out.size() - out.rfind('\n') - 1;
        pending.push_back({out.size(), length, stmt.inst.comment});
        if (length <= alignedNote)
          noteColumn = std::max(noteColumn, length);
      }
      out += '\n';
      break;
    }
    default:
      break;
    }
  }
  if (!notes)
    return;
  scratch.assign(out, pending.front().at);
  size_t base = pending.front().at;
  out.resize(base);
  for (size_t i = 0; i < pending.size(); ++i) {
    out.append(pending[i].column < noteColumn ? noteColumn - pending[i].column + 2 : 2, ' ');
    appendComment(out, pending[i].text);
    size_t from = pending[i].at - base, to = i + 1 < pending.size() ? pending[i + 1].at - base : scratch.size();
    out.append(scratch, from, to - from);
  }
}

size_t Printer::headLength(const Inst &inst) const {
  const Row &row = rowOf(inst.op);
  size_t length = row.root.size();
  for (auto [slot, choice] : zip(row.slots, inst.mods))
    if (choice)
      length += slot.choices[choice - 1].size() + 1;
  if (inst.guarded)
    length += current->regs[inst.guard].name.size() + 2 + inst.guardNegated;
  return length;
}

void Printer::head(const Inst &inst) {
  if (inst.guarded) {
    out += inst.guardNegated ? "@!" : "@";
    out += current->regs[inst.guard].name;
    out += ' ';
  }
  const Row &row = rowOf(inst.op);
  append(out, row.root);
  for (auto [slot, choice] : zip(row.slots, inst.mods))
    if (choice) {
      out += '.';
      append(out, slot.choices[choice - 1]);
    }
}

void Printer::instruction(const Inst &inst, unsigned operandColumn) {
  size_t start = out.size();
  out.append(indent, ' ');
  head(inst);
  if (any_of(inst.ops, [](const Operand &op) { return op.kind != Operand::None; })) {
    size_t headEnd = out.size();
    out.append(headEnd - start < operandColumn ? operandColumn - (headEnd - start) : 1, ' ');
    operands(inst);
    if (out.size() - start >= width) {
      out.resize(headEnd);
      wrapOperands(inst);
    }
  }
  out += ';';
}

/// Operands on lines of their own, further in; a long vector ends its line.
void Printer::wrapOperands(const Inst &inst) {
  std::string all;
  std::swap(all, out);
  operands(inst);
  std::swap(all, out);
  size_t column = width;
  bool inVector = false;
  unsigned commas = 0;
  for (StringRef rest = all; !rest.empty();) {
    size_t comma = rest.find(", ");
    StringRef atom = comma == StringRef::npos ? rest : rest.take_front(comma + 1);
    rest = rest.drop_front(std::min(rest.size(), atom.size() + 1));
    if (column + 1 + atom.size() >= width) {
      out += '\n';
      column = 2 * indent + (inVector && !atom.starts_with("{"));
      out.append(column, ' ');
    } else {
      out += ' ';
      ++column;
    }
    append(out, atom);
    column += atom.size();
    if (atom.starts_with("{")) {
      inVector = true;
      commas = 0;
    }
    ++commas;
    if (atom.contains('}')) {
      inVector = false;
      if (commas > 8)
        column = width;
    }
  }
}

void Printer::operands(const Inst &inst) {
  const Row &row = rowOf(inst.op);
  bool first = true;
  for (auto [op, form] : zip(inst.ops, row.operands)) {
    if (op.kind == Operand::None)
      continue;
    list(form.afterBar ? "|" : ", ", first);
    operand(op);
  }
}

void Printer::elements(ArrayRef<Operand> elems, char open, char close) {
  out += open;
  bool first = true;
  for (const Operand &elem : elems) {
    list(", ", first);
    operand(elem);
  }
  out += close;
}

void Printer::operand(const Operand &op) {
  switch (op.kind) {
  case Operand::None:
    break;
  case Operand::Reg:
    if (op.negated)
      out += '!';
    out += current->regs[op.reg].name;
    break;
  case Operand::Imm:
    if (op.floatBits)
      appendFloat(out, op.imm, op.floatBits);
    else
      appendNumber(out, op.imm);
    break;
  case Operand::Special:
  case Operand::Label:
    out += op.name;
    break;
  case Operand::Symbol:
    out += op.name;
    if (op.imm) {
      out += '+';
      appendNumber(out, op.imm);
    }
    break;
  case Operand::Vector:
    elements(op.elems);
    break;
  case Operand::List:
    elements(op.elems, '(', ')');
    break;
  case Operand::Address: {
    out += '[';
    bool based = op.hasReg || !op.name.empty();
    out += op.hasReg ? current->regs[op.reg].name : op.name;
    if (based && op.imm)
      out += '+';
    if (!based || op.imm)
      appendNumber(out, op.imm);
    if (!op.elems.empty()) {
      out += ", ";
      elements(op.elems);
    }
    out += ']';
    break;
  }
  case Operand::Sink:
    out += '_';
    break;
  case Operand::Hole:
    append(out, "<" + Twine(op.name) + ">");
    break;
  }
}
} // namespace

std::string print(const Module &module) {
  std::string out;
  size_t statements = 0;
  for (const Function &function : module.functions)
    statements += function.body.size();
  out.reserve(4096 + statements * 64);
  Printer(out).module(module);
  return out;
}

} // namespace gemmc::ptx
