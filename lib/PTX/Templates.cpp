#include "Templates.h"
#include "Parser.h"
#include "Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <map>
#include <mutex>

using namespace llvm;

namespace gemmc::ptx {
namespace {

StringRef firstLine(StringRef text) {
  return text.take_until([](char c) { return c == '\n'; });
}

std::string describe(Type type) { return type == Type::none ? "label" : nameOf(type).str(); }
std::string describe(ArrayRef<Hole> holes) {
  std::string text;
  for (const Hole &hole : holes)
    text += (text.empty() ? "" : ", ") + hole.name + ": " + describe(hole.type);
  return text;
}

using Places = StringMap<StringRef>; ///< By hole: its declaration.

/// The `//! hole NAME: TYPE` lines.
bool readHoles(StringRef text, std::vector<Hole> &holes, Places &places, Diags &diags) {
  bool good = true;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    StringRef words = line.trim();
    if (!words.consume_front("//!"))
      continue;
    words = words.ltrim();
    auto [name, type] = words.drop_front(std::min<size_t>(5, words.size())).split(':');
    name = name.trim();
    type = type.trim();
    auto parsed = type == "label" ? Type::none : parseType(type);
    if (words.starts_with("hole ") && !name.empty() && parsed && places.try_emplace(name, line.trim()).second) {
      holes.push_back({name.str(), *parsed});
    } else {
      diags.report(Diag::ptx_template_hole, rangeOf(line.trim()));
      good = false;
    }
  }
  llvm::sort(holes, [](const Hole &a, const Hole &b) { return a.name < b.name; });
  return good;
}

/// A template that stands for the built-in one has its holes: whoever expands it gives them values.
bool compareHoles(const Template &made, const Template &original, const Places &places, StringRef text, Diags &diags) {
  unsigned before = diags.numErrors();
  auto complain = [&](StringRef at, const std::string &what) {
    diags.report(Diag::ptx_template_differs, rangeOf(at), made.name, describe(original.holes), what);
  };
  auto find = [](const Template &in, StringRef name) {
    return find_if(in.holes, [&](const Hole &hole) { return hole.name == name; });
  };
  SmallVector<std::string, 4> missing;
  for (const Hole &hole : original.holes)
    if (auto own = find(made, hole.name); own == made.holes.end())
      missing.push_back("`" + hole.name + "`");
    else if (own->type != hole.type)
      complain(places.lookup(hole.name), "`" + hole.name + "` is " + describe(hole.type) + " there");
  if (!missing.empty())
    complain(firstLine(text), "it lacks " + join(missing, ", "));
  for (const Hole &hole : made.holes)
    if (find(original, hole.name) == original.holes.end())
      complain(places.lookup(hole.name), "`" + hole.name + "` is none of them");
  return diags.numErrors() == before;
}

void forEachHole(const Operand &operand, function_ref<void(StringRef)> visit) {
  if (operand.kind == Operand::Hole)
    visit(operand.name);
  StringRef base = operand.name;
  if (operand.kind == Operand::Address && base.consume_front("<") && base.consume_back(">"))
    visit(base);
  for (const Operand &elem : operand.elems)
    forEachHole(elem, visit);
}

/// Where the instruction at `line` names a hole first; its mnemonic where blanks or comments stand between.
StringRef placeOf(StringRef text, unsigned line, StringRef hole) {
  while (--line)
    text = text.split('\n').second;
  size_t at = text.find(("<" + hole + ">").str());
  return at == StringRef::npos ? firstLine(text).trim() : text.substr(at, hole.size() + 2);
}

/// Every hole is declared, every declared hole is used.
bool checkHoles(const Template &made, const Places &places, StringRef text, Diags &diags) {
  unsigned before = diags.numErrors();
  StringMap<Type> known;
  SmallVector<StringRef, 8> names;
  for (const Hole &hole : made.holes) {
    known[hole.name] = hole.type;
    names.push_back(hole.name);
  }
  StringSet<> used;
  for (const Stmt &stmt : made.function.body)
    for (const Operand &operand : stmt.inst.ops)
      forEachHole(operand, [&](StringRef name) {
        if (used.insert(name).second && !known.contains(name))
          diags.report(Diag::ptx_template_unknown_hole, rangeOf(placeOf(text, stmt.inst.line, name)), made.name, name,
                       suggest(name, names));
      });
  for (StringRef name : names)
    if (!used.contains(name))
      diags.report(Diag::ptx_template_unused_hole, rangeOf(places.lookup(name)), made.name, name);
  if (diags.numErrors() != before)
    return false;
  Module module; // the architecture is the folder: sm90/...
  module.versionMajor = 8;
  module.versionMinor = 8;
  module.target = StringRef(made.name).starts_with("sm90/") ? "sm_90a" : "sm_80";
  const SourceLines lines(text);
  Checker(module, made.function, diags, lines, &known).run();
  return diags.numErrors() == before;
}

/// All templates of the process. Templates of a directory stand before the embedded ones.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Template>, std::less<>> embedded, overriding;

  const EmbeddedTemplate *find(StringRef name) const {
    for (const EmbeddedTemplate *entry = embeddedTemplates; entry->name; ++entry)
      if (name == entry->name)
        return entry;
    return nullptr;
  }
  /// The built-in template; nullptr when there is none. A bad one is our own fault and ends in `diags`.
  const Template *builtIn(StringRef name, Diags &diags) {
    auto found = embedded.find(name);
    if (found != embedded.end())
      return found->second.get();
    const EmbeddedTemplate *entry = find(name);
    if (!entry)
      return nullptr;
    auto made = readTemplate(name, diags.addSource(("ptx_templates/" + name + ".ptx").str(), entry->text), diags);
    return made ? (embedded[name.str()] = std::move(made)).get() : nullptr;
  }
};
Registry &registry() {
  static Registry one;
  return one;
}

[[noreturn]] void misuse(StringRef name, const Twine &why) {
  errs() << "internal error: template `" << name << "`: " << why << '\n';
  std::abort();
}

const Template &get(StringRef name) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.overriding.find(name);
  if (found != all.overriding.end())
    return *found->second;
  Diags diags;
  const Template *made = all.builtIn(name, diags);
  diags.print(errs());
  if (!made)
    misuse(name, "it does not exist or cannot be read");
  return *made;
}

/// Reads one file of a template directory into `into`.
void readOverride(Registry &all, StringRef directory, StringRef path, Diags &diags,
                  std::map<std::string, std::unique_ptr<Template>, std::less<>> &into) {
  SmallString<64> name(path.drop_front(directory.size()).ltrim('/'));
  sys::path::replace_extension(name, "");
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    diags.report(Diag::ptx_template_directory, {}, path, buffer.getError().message());
    return;
  }
  StringRef text = diags.addSource(path, (*buffer)->getBuffer());
  const Template *original = all.builtIn(name, diags);
  if (!original) {
    SmallVector<StringRef, 16> known;
    for (const EmbeddedTemplate *entry = embeddedTemplates; entry->name; ++entry)
      known.push_back(entry->name);
    diags.report(Diag::ptx_template_unknown, rangeOf(firstLine(text)), name, suggest(name, known), join(known, ", "));
    return;
  }
  if (auto made = readTemplate(name, text, diags, original))
    into[std::string(name)] = std::move(made);
}

// --- Expansion

class Expansion {
public:
  Expansion(Builder &builder, const Template &source, ArrayRef<std::pair<StringRef, Val>> values);
  void operand(Operand &op) const;
  RegId reg(RegId old) const { return regs[old]; }
  const std::string &label(StringRef old) const { return labels.find(old)->second; }

private:
  void checkValue(const Function &function, const Hole &hole, const Operand &value) const;

  const Template &source;
  std::vector<RegId> regs;
  StringMap<std::string> labels;
  StringMap<Operand> values;
};

Expansion::Expansion(Builder &builder, const Template &source, ArrayRef<std::pair<StringRef, Val>> given)
    : source(source) {
  for (const auto &[name, value] : given) {
    auto hole = find_if(source.holes, [name = name](const Hole &one) { return one.name == name; });
    if (hole == source.holes.end())
      misuse(source.name, "it has no hole `" + name + "`, only " + describe(source.holes));
    checkValue(builder.fn(), *hole, value.op);
    values[name] = value.op;
  }
  if (values.size() != source.holes.size())
    misuse(source.name, "its holes are " + describe(source.holes) + "; " + Twine(values.size()) + " were given");
  for (const Reg &reg : source.function.regs)
    regs.push_back(builder.reg(reg.type, reg.name).op.reg);
  for (const Stmt &stmt : source.function.body)
    if (stmt.kind == Stmt::Label)
      labels[stmt.text] = builder.label(stmt.text).op.name;
}

/// Right kind and width: an integer immediate fits any hole but a predicate or a label.
void Expansion::checkValue(const Function &function, const Hole &hole, const Operand &value) const {
  bool good = false;
  if (hole.type == Type::none)
    good = value.kind == Operand::Label;
  else if (value.kind == Operand::Reg)
    good = bitsOf(function.regs[value.reg].type) == bitsOf(hole.type);
  else if (value.kind == Operand::Imm)
    good = hole.type != Type::pred;
  else
    good = value.kind == Operand::Symbol && (bitsOf(hole.type) == 32 || bitsOf(hole.type) == 64);
  if (!good)
    misuse(source.name, "hole `" + hole.name + "` takes " + describe(hole));
}

void Expansion::operand(Operand &op) const {
  for (Operand &elem : op.elems)
    operand(elem);
  if (op.kind == Operand::Reg || op.hasReg)
    op.reg = regs[op.reg];
  else if (op.kind == Operand::Label)
    op.name = label(op.name);
  else if (op.kind == Operand::Hole) {
    bool negated = op.negated;
    op = values.find(op.name)->second;
    op.negated = op.negated != negated;
  } else if (op.kind == Operand::Address && !op.name.empty())
    op = Operand::makeAddress(values.find(StringRef(op.name).drop_front().drop_back())->second, op.imm,
                              std::move(op.elems));
}
} // namespace

std::unique_ptr<Template> readTemplate(StringRef name, StringRef text, Diags &diags, const Template *original) {
  auto made = std::make_unique<Template>();
  made->name = name.str();
  Places places;
  bool good = readHoles(text, made->holes, places, diags);
  good &= Parser(text, diags, true).statements(made->function);
  good = good && (!original || compareHoles(*made, *original, places, text, diags));
  if (!good || !checkHoles(*made, places, text, diags))
    return nullptr;
  // What stands in front of the first statement describes the template, not its use.
  auto &body = made->function.body;
  auto first = find_if(body, [](const Stmt &stmt) { return stmt.kind != Stmt::Comment && stmt.kind != Stmt::Blank; });
  body.erase(body.begin(), first);
  return made;
}

void Builder::expand(StringRef name, ArrayRef<std::pair<StringRef, Val>> holes) {
  assert(!pending && "a template takes no guard");
  const Template &source = get(name);
  Expansion expansion(*this, source, holes);
  for (const Stmt &original : source.function.body) {
    Stmt &stmt = function.body.emplace_back(original);
    if (stmt.kind == Stmt::Label)
      stmt.text = expansion.label(stmt.text);
    if (stmt.kind != Stmt::Instruction)
      continue;
    stmt.inst.line = 0;
    stmt.inst.origin = origin;
    if (stmt.inst.guarded)
      stmt.inst.guard = expansion.reg(stmt.inst.guard);
    for (Operand &operand : stmt.inst.ops)
      expansion.operand(operand);
  }
}

bool setTemplateDirectory(StringRef directory, Diags &diags) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  unsigned before = diags.numErrors();
  std::map<std::string, std::unique_ptr<Template>, std::less<>> made;
  std::error_code error;
  std::vector<std::string> files;
  for (sys::fs::recursive_directory_iterator at(directory, error), end; !error && at != end && files.size() < 1000;
       at.increment(error))
    if (sys::path::extension(at->path()) == ".ptx")
      files.push_back(at->path());
  if (error)
    diags.report(Diag::ptx_template_directory, {}, directory, error.message());
  llvm::sort(files);
  for (StringRef file : files)
    readOverride(all, directory, file, diags, made);
  if (diags.numErrors() != before)
    return false;
  all.overriding = std::move(made);
  return true;
}

bool checkTemplates(Diags &diags) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  unsigned before = diags.numErrors();
  for (const EmbeddedTemplate *entry = embeddedTemplates; entry->name; ++entry)
    all.builtIn(entry->name, diags);
  return diags.numErrors() == before;
}

} // namespace gemmc::ptx
