#include "RowLines.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <map>

using namespace llvm;

namespace gemmc::ptx::test {
namespace {

constexpr Type registerTypes[] = {Type::pred, Type::b8,  Type::b16,   Type::b32, Type::b64,
                                  Type::b128, Type::f16, Type::f16x2, Type::f32, Type::f64};

/// Registers and variables that lines may use.
std::string declarations(unsigned version) {
  std::string text;
  for (Type type : registerTypes)
    if (type != Type::b128 || version >= 83)
      text += (".reg ." + nameOf(type) + " %" + nameOf(type) + "_<160>;\n").str();
  return text + ".shared .align 128 .b8 sm[1024];\n.param .align 16 .b8 passed[16];\n.param .b32 word;\n";
}

/// The register type that fits an operand of `type`.
Type registerFor(Type type) {
  switch (type) {
  case Type::pred:
  case Type::f16:
  case Type::f16x2:
  case Type::f32:
  case Type::f64:
    return type;
  default:
    break;
  }
  switch (bitsOf(type)) {
  case 64:
    return Type::b64;
  case 128:
    return Type::b128;
  case 32:
    return Type::b32;
  default:
    return Type::b16;
  }
}

/// Only packing knows registers of 8 bits.
Type elementFor(const Inst &inst, unsigned index) {
  Type type = operandType(inst, index);
  return type == Type::b8 && rowOf(inst.op).operands[index].rule == TypeRule::Part ? type : registerFor(type);
}

/// Immediates by the name of their operand.
int64_t immediateFor(const Inst &inst, StringRef name) {
  if (name == "size")
    return nameOf(inst.op) == "FenceTensormapAcquire" || nameOf(inst.op) == "TensormapCopy" ? 128 : 16;
  if (name == "scalea" || name == "scaleb")
    return 1;
  if (name == "n" && nameOf(inst.op) == "SetMaxNReg")
    return 64;
  return name == "lut" ? 0x96 : 0;
}

/// Writes the instruction's operands; vectors have the lengths of `lengths` (2 where nothing is said).
class Writer {
public:
  Writer(Inst &inst, const std::map<std::string, unsigned> &lengths) : inst(inst), lengths(lengths) {}

  std::string line() {
    const Row &row = rowOf(inst.op);
    inst.ops.assign(row.operands.size(), Operand());
    std::string text;
    if (row.effect == Effect::Control && row.name != "Bra")
      text = "@%pred_0 "; // what follows shall be reached
    text += inst.mnemonic();
    const char *separator = " ";
    for (unsigned i = 0; i < row.operands.size(); ++i) {
      if (operandPresence(inst, i) == false)
        continue;
      text += (row.operands[i].afterBar ? "|" : separator) + operand(row.operands[i], i);
      separator = ", ";
    }
    return text + ";";
  }

private:
  std::string reg(Type type) { return ("%" + nameOf(type) + "_" + Twine(next[type]++)).str(); }

  unsigned lengthOf(const OperandForm &form) {
    auto found = lengths.find(form.name.str());
    return found == lengths.end() ? 2 : found->second;
  }

  std::string operand(const OperandForm &form, unsigned index) {
    if (form.isAddress)
      return address(form);
    if (form.rule == TypeRule::Label)
      return inst.op == Op::BrxIdx ? "ways" : "done";
    if (form.isList)
      return "(word)";
    if (form.rule == TypeRule::Function)
      return "twice";
    if (form.immediate)
      return std::to_string(immediateFor(inst, form.name));
    bool vector = form.isVector && (!form.mayBeScalar || lengths.count(form.name.str()));
    if (form.isVector && form.mayBeScalar)
      for (const char *count : {"v2", "v4", "v8"})
        vector |= inst.has(count);
    if (form.sinkable && inst.has("shared::cluster"))
      return "_";
    if (vector) {
      std::string text = "{";
      unsigned count = lengthOf(form);
      inst.ops[index].elems.resize(count);
      for (unsigned i = 0; i < count; ++i)
        text += (i ? ", " : "") + reg(elementFor(inst, index));
      return text + "}";
    }
    return reg(registerFor(operandType(inst, index)));
  }

  std::string address(const OperandForm &form) {
    bool narrow = form.name == "mbar" || inst.has("shared") || inst.has("shared::cta") || inst.has("shared::cluster");
    bool source = form.name == "src";
    if (form.name == "map" || (source && inst.has("global") && !storesBulk()) || (form.name == "dst" && storesBulk()))
      narrow = false;
    if (nameOf(inst.op) == "TensormapCopy")
      narrow = source;
    std::string base = reg(narrow ? Type::b32 : Type::b64);
    if (inst.has("param") || inst.has("param::entry"))
      base = "map";
    if (inst.has("const"))
      base = "constants";
    if (inst.has("param::func") || (inst.has("param") && inst.op == Op::St))
      base = "passed";
    if (inst.has("param::entry") || inst.has("param::func") || inst.has("const") || base == "passed")
      return "[" + base + "]";
    if (inst.has("param"))
      return nameOf(inst.op) == "PrefetchMap" ? "[" + reg(Type::b64) + "]" : "[map+8]";
    if (!form.hasCoords)
      return "[" + base + (next.size() % 2 ? "+16]" : "]");
    std::string text = "[" + base + ", {";
    unsigned rank = 1;
    for (unsigned slot = 0; slot < inst.mods.size(); ++slot)
      if (StringRef mod = inst.mod(slot); mod.size() == 2 && mod[1] == 'd' && isDigit(mod[0]))
        rank = mod[0] - '0';
    for (unsigned i = 0; i < rank; ++i)
      text += (i ? ", " : "") + reg(Type::b32);
    return text + "}]";
  }

  /// Bulk copies out of shared memory name the global side first.
  bool storesBulk() const { return inst.has("bulk_group"); }

  Inst &inst;
  const std::map<std::string, unsigned> &lengths;
  std::map<Type, unsigned> next;
};

/// A module that has been verified; false with the problems' texts.
bool accepted(const std::string &line, StringRef target, unsigned version, std::vector<std::string> &problems) {
  Diags diags;
  StringRef source = diags.addSource("line", moduleOf({line}, target, version));
  auto module = parse(source, diags);
  if (module && verify(*module, diags, source))
    return true;
  for (const Problem &problem : diags.all())
    problems.push_back(problem.message);
  return false;
}

/// The verifier's messages about a vector's length say which one it wants.
bool learnLengths(ArrayRef<std::string> problems, std::map<std::string, unsigned> &lengths) {
  bool learned = false;
  for (StringRef problem : problems) {
    auto [before, after] = problem.split("; it must have ");
    StringRef name = before.split("operand `").second.split('`').first;
    unsigned count = 0;
    if (after.empty() || after.consumeInteger(10, count) || !count)
      continue;
    learned |= lengths[name.str()] != count;
    lengths[name.str()] = count;
  }
  return learned;
}

/// The line of `inst`, when the newest target takes it.
std::optional<std::string> verifiedLine(Inst inst) {
  const Row &row = rowOf(inst.op);
  // Conditions are cheap to check and rule out most combinations.
  for (unsigned slot = 0; slot < row.slots.size(); ++slot)
    if (inst.mods[slot])
      for (const auto &condition : row.slots[slot].limits[inst.mods[slot] - 1].conditions)
        if (any_of(condition.any, [&](StringRef other) { return inst.has(other); }) == condition.negated)
          return std::nullopt;
  std::map<std::string, unsigned> lengths;
  for (unsigned attempt = 0; attempt < 4; ++attempt) {
    Inst copy = inst;
    std::string line = Writer(copy, lengths).line();
    std::vector<std::string> problems;
    if (accepted(line, "sm_90a", 88, problems))
      return line;
    if (!learnLengths(problems, lengths))
      return std::nullopt;
  }
  return std::nullopt;
}

/// Varies up to `depth` other slots until the instruction verifies.
std::optional<std::string> vary(Inst &inst, unsigned fixed, unsigned from, unsigned depth) {
  if (auto line = verifiedLine(inst))
    return line;
  if (!depth)
    return std::nullopt;
  const Row &row = rowOf(inst.op);
  for (unsigned slot = from; slot < row.slots.size(); ++slot) {
    if (slot == fixed)
      continue;
    uint8_t kept = inst.mods[slot];
    for (unsigned choice = !row.slots[slot].optional; choice <= row.slots[slot].choices.size(); ++choice) {
      if (choice == kept)
        continue;
      inst.mods[slot] = choice;
      if (auto line = vary(inst, fixed, slot + 1, depth - 1))
        return line;
    }
    inst.mods[slot] = kept;
  }
  return std::nullopt;
}

/// What a version takes later ones take as well.
void lowestTarget(RowLine &line) {
  static constexpr const char *targets[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"};
  static constexpr unsigned versions[] = {63, 64, 65, 70, 71, 72, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 86, 87, 88};
  std::vector<std::string> problems;
  for (const char *target : targets) {
    if (!accepted(line.text, target, std::end(versions)[-1], problems))
      continue;
    line.target = target;
    line.version =
        *partition_point(versions, [&](unsigned version) { return !accepted(line.text, target, version, problems); });
    return;
  }
}
} // namespace

/// A wgmma binds many registers; ptxas 13.0 crashes where a parameter that no call takes meets a jump table.
static bool isAlone(StringRef line) { return line.starts_with("wgmma.mma") || line.contains("passed"); }

std::string moduleOf(ArrayRef<std::string> lines, StringRef target, unsigned version) {
  std::string text = (".version " + Twine(version / 10) + "." + Twine(version % 10) + "\n.target " + target +
                      "\n.address_size 64\n.const .align 16 .b8 constants[64];\n")
                         .str();
  if (any_of(lines, [](StringRef line) { return line.contains("twice"); }))
    text += ".func (.param .b32 result) twice(.param .b32 x) { ret; }\n";
  auto loadsResult = [](StringRef line) { return line.starts_with("ld.param::func"); };
  if (any_of(lines, loadsResult)) // ptxas 13.0 crashes when no call has given it
    text += ".func (.param .align 16 .b8 result[16]) give() { ret; }\n";
  for (unsigned kernel = 0; !lines.empty(); ++kernel) {
    text +=
        ".visible .entry k" + std::to_string(kernel) + "(.param .align 64 .b8 map[128]) {\n" + declarations(version);
    size_t count = 1;
    if (!isAlone(lines.front()))
      while (count < std::min<size_t>(lines.size(), 32) && !isAlone(lines[count]))
        ++count;
    bool jumps = any_of(lines.take_front(count), [](StringRef line) { return line.contains("brx"); });
    text += loadsResult(lines.front()) ? "call (passed), give;\n" : "";
    text += jumps ? "ways: .branchtargets done, over;\n" : "";
    for (const std::string &line : lines.take_front(count))
      text += line + "\n";
    text += jumps ? "over:\n" : "";
    lines = lines.drop_front(count);
    text += "done:\nret;\n}\n";
  }
  return text;
}

std::vector<RowLine> allRowLines(std::vector<std::string> &missing) {
  std::vector<RowLine> lines;
  for (unsigned index = 0; index < numOps; ++index) {
    auto op = static_cast<Op>(index);
    const Row &row = rowOf(op);
    Inst base;
    base.op = op;
    for (const ModSlot &slot : row.slots)
      base.mods.push_back(!slot.optional);
    auto add = [&](Inst inst, unsigned fixed, const std::string &name) {
      for (unsigned depth = 0; depth <= 3; ++depth) {
        Inst attempt = inst;
        if (auto line = vary(attempt, fixed, 0, depth)) {
          if (none_of(lines, [&](const RowLine &one) { return one.text == *line; })) {
            lines.push_back({op, *line, "", 0});
            lowestTarget(lines.back());
          }
          return;
        }
      }
      missing.push_back(name);
    };
    add(base, ~0u, row.name.str());
    for (unsigned slot = 0; slot < row.slots.size(); ++slot)
      for (unsigned choice = 1; choice <= row.slots[slot].choices.size(); ++choice) {
        Inst inst = base;
        inst.mods[slot] = choice;
        add(inst, slot, (row.name + "." + row.slots[slot].choices[choice - 1]).str());
      }
  }
  return lines;
}

std::string problemsOf(const Diags &diags) {
  std::string text;
  raw_string_ostream os(text);
  diags.print(os);
  return text;
}

std::optional<Module> parseOrFail(StringRef text, Diags &diags) {
  auto module = parse(text, diags);
  EXPECT_TRUE(module) << problemsOf(diags) << text.take_front(4000).str();
  return module;
}

} // namespace gemmc::ptx::test
