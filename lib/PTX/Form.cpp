#include "Form.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"

using namespace llvm;

namespace gemmc::ptx {
namespace {

struct Class {
  StringLiteral name;
  StringLiteral choices;
};
constexpr Class classes[] = {
#define PTX_CLASS(Name, Choices) {#Name, Choices},
#include "gemmc/PTX/Ops.def"
};

StringRef classChoices(StringRef name) {
  for (const Class &entry : classes)
    if (name == entry.name)
      return entry.choices;
  llvm_unreachable("a form names an unknown class");
}

/// A row and the spellings that its number ranges gave rise to.
struct OwningRow : Row {
  BumpPtrAllocator memory;
  StringSaver saver{memory};
};

struct FormReader {
  OwningRow &row;
  StringRef rest;

  void mnemonic();
  void operands();

private:
  bool take(StringRef text) { return rest.consume_front(text); }
  void need(StringRef text) {
    bool found = take(text);
    assert(found && "a form of Ops.def is malformed");
    (void)found;
  }
  /// The text up to one of `stops` that is outside of brackets and number ranges.
  StringRef until(StringRef stops);
  void slot(bool optional);
  void choices(StringRef list, ModSlot &slot, StringRef outerSuffix);
  void choice(StringRef text, ModSlot &slot, StringRef outerSuffix);
  void addChoice(StringRef name, ModSlot &slot, StringRef suffix, StringRef outerSuffix);
  void limit(StringRef suffix, ChoiceLimit &limit);
  void condition(StringRef list, ChoiceLimit::Condition &condition);
  void operand(bool optional);
  void operandType(StringRef name, OperandForm &form);
};

StringRef FormReader::until(StringRef stops) {
  bool bracket = false, range = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    char c = rest[i];
    if (isAlnum(c) || c == ':') // most are
      continue;
    bracket = c == '[' || (bracket && c != ']');
    range ^= c == '#';
    if (!bracket && !range && stops.contains(c)) {
      StringRef found = rest.take_front(i);
      rest = rest.drop_front(i);
      return found;
    }
  }
  return std::exchange(rest, StringRef());
}

void FormReader::mnemonic() {
  row.root = until(".( ");
  while (!rest.empty() && rest.front() != ' ') {
    bool optional = take("(");
    need(".");
    slot(optional);
    if (optional)
      need(")");
  }
}

void FormReader::slot(bool optional) {
  ModSlot &slot = row.slots.emplace_back();
  slot.optional = optional;
  choices(until(optional ? ")" : ".( "), slot, "");
  slot.isType = slot.limits.front().type != Type::none;
}

void FormReader::choices(StringRef list, ModSlot &slot, StringRef outerSuffix) {
  StringRef saved = std::exchange(rest, list);
  size_t count = list.count('|') + 1;
  slot.choices.reserve(slot.choices.size() + count);
  slot.limits.reserve(slot.limits.size() + count);
  while (!rest.empty()) {
    choice(until("|"), slot, outerSuffix);
    take("|");
  }
  rest = saved;
}

/// `name`, `$class` or `m64n#8..256/8#k16`, with its suffix.
void FormReader::choice(StringRef text, ModSlot &slot, StringRef outerSuffix) {
  size_t split = text.find_first_of("@[");
  StringRef name = text.take_front(split), suffix = split == StringRef::npos ? "" : text.drop_front(split);
  if (name.consume_front("$"))
    return choices(classChoices(name), slot, suffix);
  auto [stem, range] = name.split('#');
  if (range.empty())
    return addChoice(name, slot, suffix, outerSuffix);
  auto [numbers, tail] = range.split('#');
  unsigned low = 0, high = 0, step = 0;
  bool failed = numbers.consumeInteger(10, low) || !numbers.consume_front("..") || numbers.consumeInteger(10, high) ||
                !numbers.consume_front("/") || numbers.consumeInteger(10, step);
  assert(!failed && step && "a number range of Ops.def is malformed");
  (void)failed;
  for (unsigned n = low; n <= high; n += step)
    addChoice(row.saver.save(stem + Twine(n) + tail), slot, suffix, outerSuffix);
}

void FormReader::addChoice(StringRef name, ModSlot &slot, StringRef suffix, StringRef outerSuffix) {
  slot.choices.push_back(name);
  ChoiceLimit &entry = slot.limits.emplace_back();
  entry.type = parseType(name).value_or(Type::none);
  limit(suffix, entry);
  limit(outerSuffix, entry);
  assert(slot.choices.size() < 256 && "Inst::mods counts choices in a byte");
}

/// `@80/71`, `[f32,f64]`, `[!f64]`.
void FormReader::limit(StringRef suffix, ChoiceLimit &limit) {
  if (suffix.consume_front("@")) {
    suffix.consumeInteger(10, limit.minSm);
    if (suffix.consume_front("/"))
      suffix.consumeInteger(10, limit.minPtx);
  }
  while (suffix.consume_front("[")) {
    ChoiceLimit::Condition &entry = limit.conditions.emplace_back();
    entry.negated = suffix.consume_front("!");
    auto [list, tail] = suffix.split(']');
    condition(list, entry);
    suffix = tail;
  }
  assert(suffix.empty() && "a limit of Ops.def is malformed");
}

void FormReader::condition(StringRef list, ChoiceLimit::Condition &condition) {
  SmallVector<StringRef, 4> names;
  list.split(names, ',');
  for (StringRef name : names)
    if (name.consume_front("$")) {
      SmallVector<StringRef, 8> choices;
      classChoices(name).split(choices, '|');
      for (StringRef choice : choices)
        condition.any.push_back(choice.take_until([](char c) { return c == '@' || c == '['; }));
    } else {
      condition.any.push_back(name);
    }
}

void FormReader::operands() {
  if (!take(" "))
    return;
  while (!rest.empty()) {
    bool optional = take("(");
    take(", "); // a bar instead is the operand's own mark
    operand(optional);
    if (optional)
      need(")");
  }
}

void FormReader::operand(bool optional) {
  OperandForm &form = row.operands.emplace_back();
  form.optional = optional;
  form.afterBar = take("|");
  auto marks = [&] {
    for (bool more = true; more;) {
      more = false;
      auto mark = [&](StringRef text, auto &&set) {
        if (take(text)) {
          set();
          more = true;
        }
      };
      mark("_=", [&] { form.sinkable = true, form.access = Access::Write; });
      mark("_", [&] { form.sinkable = true; });
      mark("=", [&] { form.access = Access::Write; });
      mark("+", [&] { form.access = Access::ReadWrite; });
      mark("!", [&] { form.negatable = true; });
      mark("#", [&] { form.immediate = true; });
      mark("~", [&] { form.widerOk = true; });
      mark("%", [&] { form.special = true; });
      mark("&", [&] { form.symbol = true; });
    }
  };
  auto name = [&] {
    form.name = rest.take_while([](char c) { return isAlnum(c); });
    assert(!form.name.empty() && "an operand of Ops.def has no name");
    rest = rest.drop_front(form.name.size());
    if (take(":")) {
      StringRef type = rest.take_while([](char c) { return isAlnum(c); });
      rest = rest.drop_front(type.size());
      operandType(type, form);
    }
  };
  marks();
  if (take("[")) {
    form.isAddress = true;
    name();
    form.hasCoords = take(", {c}");
    need("]");
  } else if (take("{")) {
    form.isVector = true;
    marks();
    name();
    need("}");
    form.mayBeScalar = take("?");
  } else if (take("<")) {
    form.isList = true;
    name();
    need(">");
  } else {
    name();
  }
  if (form.immediate && form.rule == TypeRule::Inst) {
    form.rule = TypeRule::Fixed;
    form.type = Type::s32;
  }
  if (take(" with ")) {
    StringRef list = rest.take_until([](char c) { return c == ')'; });
    rest = rest.drop_front(list.size());
    list.split(form.with, '|');
  }
}

void FormReader::operandType(StringRef name, OperandForm &form) {
  form.rule = StringSwitch<TypeRule>(name)
                  .Case("wide", TypeRule::Wide)
                  .Case("part", TypeRule::Part)
                  .Case("address", TypeRule::Address)
                  .Case("flag", TypeRule::Flag)
                  .Case("label", TypeRule::Label)
                  .Case("function", TypeRule::Function)
                  .StartsWith("T", TypeRule::Nth)
                  .StartsWith("frag", TypeRule::Frag)
                  .Default(TypeRule::Fixed);
  if (form.rule == TypeRule::Nth || form.rule == TypeRule::Frag)
    form.typeIndex = name.back() - '0';
  if (form.rule == TypeRule::Fixed) {
    form.type = parseType(name);
    assert(form.type && "an operand of Ops.def has an unknown type");
  }
}
} // namespace

const Row *parseForm(const RowText &text) {
  auto *row = new OwningRow;
  row->name = text.name;
  row->form = text.form;
  StringRef sm = text.sm;
  sm.consumeInteger(10, row->minSm);
  row->archSpecific = sm == "a";
  row->minPtx = text.ptx;
  row->effect = text.effect;
  row->slots.reserve(StringRef(text.form).count('.'));
  row->operands.reserve(8);
  FormReader reader{*row, row->form};
  reader.mnemonic();
  reader.operands();
  return row;
}

void freeForm(const Row *row) { delete static_cast<const OwningRow *>(row); }

} // namespace gemmc::ptx
