// From text to `Spec`: the tree of the file, then the overrides, then what is missing or does not fit together.
#include "Table.h"
#include "gemmc/Spec/Suite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using llvm::SMLoc;
using llvm::SMRange;
using llvm::StringRef;

namespace gemmc {
using namespace spec;
namespace {
constexpr unsigned maxProblems = 20;

/// The keys that may stand in a section ("": the file), in the order of the table.
std::vector<StringRef> keysOf(StringRef section) {
  std::vector<StringRef> keys;
  for (const Row &row : rows()) {
    StringRef path = row.path;
    if (!section.empty() && !(path.consume_front(section) && path.consume_front(".")))
      continue;
    StringRef key = path.split('.').first;
    if (!llvm::is_contained(keys, key))
      keys.push_back(key);
  }
  return keys;
}

std::string join(StringRef section, StringRef key) { return section.empty() ? key.str() : (section + "." + key).str(); }
std::string nameOfSection(StringRef section) { return section.empty() ? "a spec" : ("`" + section + "`").str(); }

class Reader {
public:
  explicit Reader(Diags &diags) : diags(diags), errorsBefore(diags.numErrors()) {}

  void readFile(StringRef text) {
    auto root = parseYaml(text, diags);
    readable = root.has_value();
    if (!root)
      return;
    if (root->kind == YamlNode::Map)
      for (const YamlEntry &entry : root->entries)
        if (const Section *section = findSection(entry.key.text))
          written[section->path] = entry.key.range;
    readSection("", *root);
  }

  /// Reads a map of a larger file, without the keys in `others`.
  void readPart(const YamlNode &node, llvm::ArrayRef<StringRef> others = {}) {
    readable = true;
    known = others;
    for (const YamlEntry &entry : node.entries)
      if (const Section *section = findSection(entry.key.text))
        written[section->path] = entry.key.range;
    readSection("", node);
    known = {};
  }

  void apply(const Override &override) {
    std::string line = override.path + "=" + override.value;
    StringRef source = diags.addSource("--set", line);
    StringRef path = source.take_front(override.path.size());
    auto [section, key] = path.contains('.') ? path.rsplit('.') : std::pair(StringRef(), path);
    if (!section.empty() && !findSection(section)) {
      unknownKey("", section, rangeOf(section));
      return;
    }
    if (auto value = parseYaml(source.drop_front(path.size() + 1), diags))
      readEntry(section, key, rangeOf(key), *value);
  }

  /// After everything was read: required fields, sizes, the name.
  std::optional<Spec> finish(StringRef text, StringRef baseName) {
    if (readable && !attempted.contains(""))
      checkRequired(text);
    if (diags.numErrors() == errorsBefore)
      checkSizes();
    if (diags.numErrors() != errorsBefore)
      return std::nullopt;
    spec.name.decide(goodName(baseName), "from the file name");
    return std::move(spec);
  }

private:
  /// Whether there is room for one more problem; the first that has none is reported as such.
  bool goOn(SMRange range) {
    if (diags.numErrors() - errorsBefore < maxProblems)
      return true;
    if (!full)
      diags.report(Diag::too_many_problems, range, maxProblems);
    full = true;
    return false;
  }

  void readSection(StringRef path, const YamlNode &node) {
    if (node.kind == YamlNode::Null) // a section whose entries are all commented out
      return;
    if (node.kind != YamlNode::Map) {
      diags.report(Diag::spec_expected_map, node.range, nameOfSection(path), listed(keysOf(path)), seenKind(node));
      attempted.insert(path);
      return;
    }
    for (const YamlEntry &entry : node.entries) {
      if (!goOn(entry.key.range))
        return;
      if (path.empty() && llvm::is_contained(known, entry.key.text))
        continue;
      readEntry(path, entry.key.text, entry.key.range, entry.value);
    }
  }

  void readEntry(StringRef section, StringRef key, SMRange keyRange, const YamlNode &value) {
    std::string path = join(section, key);
    const Row *row = key.contains('.') ? nullptr : findRow(path);
    if (row)
      readField(*row, value);
    else if (!key.contains('.') && findSection(path))
      readSection(path, value);
    else
      unknownKey(section, key, keyRange);
  }

  void readField(const Row &row, const YamlNode &value) {
    bool good = true;
    if (!isAuto(value)) {
      good = row.read(spec, value, row, diags);
    } else if (row.domain.required) {
      diags.report(Diag::spec_required_auto, value.range, row.path, describe(row.domain));
      good = false;
    } else {
      row.clear(spec);
    }
    if (!good)
      attempted.insert(row.path);
  }

  void unknownKey(StringRef section, StringRef key, SMRange range) {
    std::vector<StringRef> known = keysOf(section);
    if (section.empty())
      llvm::append_range(known, this->known);
    if (const Row *dotted = findRow(key); dotted && key.contains('.')) {
      diags.report(Diag::spec_dotted_key, range, key, dotted->section(), dotted->key());
      attempted.insert(key);
      return;
    }
    if (StringRef near = nearest(key, known); !near.empty()) {
      diags.report(Diag::spec_unknown_key_near, range, shown(key), near).fix(range, near);
      attempted.insert(join(section, near));
      return;
    }
    if (!section.empty() && llvm::any_of(rows(), [&](const Row &row) { return row.section() == key; })) {
      diags.report(Diag::spec_section_elsewhere, range, key, section);
      return;
    }
    auto elsewhere = llvm::find_if(rows(), [&](const Row &row) { return row.key() == key; });
    if (elsewhere != rows().end()) {
      diags.report(Diag::spec_key_elsewhere, range, key,
                   elsewhere->section().empty() ? "the top" : elsewhere->section());
      attempted.insert(elsewhere->path);
      return;
    }
    diags.report(Diag::spec_unknown_key, range, shown(key), nameOfSection(section), listed(known));
  }

  /// Required fields that nobody tried to write: one report a section, or one a field when the section is there.
  void checkRequired(StringRef text) {
    llvm::StringSet<> reported;
    for (const Row &row : rows()) {
      StringRef section = row.section();
      if (!row.domain.required || row.given(spec) || attempted.contains(row.path) || attempted.contains(section))
        continue;
      bool present = written.contains(section) || anyGiven(section);
      if (present)
        diags.report(Diag::spec_missing_field, written.lookup(section), row.path, describe(row.domain));
      else if (reported.insert(section).second)
        diags.report(Diag::spec_missing_section, rangeOf(text.take_front(0)), section, exampleOf(section));
    }
  }

  bool anyGiven(StringRef section) {
    return llvm::any_of(rows(), [&](const Row &row) { return row.section() == section && row.given(spec); });
  }

  static std::string exampleOf(StringRef section) {
    std::vector<std::string> entries;
    for (const Row &row : rows())
      if (row.section() == section && row.domain.required)
        entries.push_back((row.key() + ": " + row.example).str());
    return llvm::join(entries, ", ");
  }

  /// Matrices whose elements no 64-bit byte address could tell apart (with room to spare for every later product).
  void checkSizes() {
    struct Matrix {
      const char *name;
      const Field<Size> &rows, &columns;
      const OperandSpec &operand;
    };
    const Matrix matrices[] = {{"a", spec.m, spec.k, spec.a},
                               {"b", spec.k, spec.n, spec.b},
                               {"c", spec.m, spec.n, spec.c},
                               {"d", spec.m, spec.n, spec.d}};
    for (const Matrix &matrix : matrices) {
      if (!goOn(matrix.rows.range))
        return;
      bool byRow = matrix.operand.layout.value == Order::row;
      const Field<Size> &inner = byRow ? matrix.columns : matrix.rows, &outer = byRow ? matrix.rows : matrix.columns;
      const Field<Size> &ld = matrix.operand.ld;
      int64_t pitch = std::max(inner.value.fixed.value_or(1), ld.given ? ld.value.fixed.value_or(1) : 1);
      int64_t count = outer.value.fixed.value_or(1);
      if (static_cast<__int128>(pitch) * count > (__int128(1) << 44))
        diags.report(Diag::spec_too_large, outer.range, matrix.name, count, pitch);
      const int64_t batch = spec.batch.value.fixed.value_or(1);
      const Field<Size> &stride = matrix.operand.batchStride;
      const __int128 apart = stride.given ? stride.value.fixed.value_or(1) : static_cast<__int128>(pitch) * count;
      if (batch > 1 && (apart > maxExtent || apart * batch > (__int128(1) << 44)))
        diags.report(Diag::spec_batch_large, spec.batch.range, matrix.name, batch, llvm::Twine(int64_t(apart)));
    }
  }

  /// A kernel name as near to a file's name as the rules allow.
  static std::string goodName(StringRef base) {
    std::string name;
    for (char c : base.take_front(50))
      name += llvm::isAlnum(c) ? llvm::toLower(c) : '_';
    return isGoodName(name) ? name : "gemm_" + name;
  }

  Diags &diags;
  Spec spec;
  unsigned errorsBefore;
  bool readable = false; ///< The file's tree was read.
  bool full = false;
  llvm::ArrayRef<StringRef> known;  ///< Keys of the file that are somebody else's.
  llvm::StringSet<> attempted;      ///< Paths that were written in some wrong way: they are not missing.
  llvm::StringMap<SMRange> written; ///< Sections of the file, where their keys stand.
};
} // namespace

std::optional<Override> parseOverride(StringRef text, Diags &diags) {
  auto [path, value] = text.split('=');
  if (path.size() == text.size() || path.empty()) {
    StringRef source = diags.addSource("--set", text);
    diags.report(Diag::spec_set_syntax, rangeOf(source), shown(text));
    return std::nullopt;
  }
  return Override{path.str(), value.str()};
}

std::optional<Spec> readSpec(StringRef text, llvm::ArrayRef<Override> overrides, Diags &diags, StringRef baseName) {
  Reader reader(diags);
  reader.readFile(text);
  for (const Override &override : overrides)
    reader.apply(override);
  return reader.finish(text, baseName);
}

bool isSuite(StringRef text) {
  text = withoutMark(text);
  while (!text.empty()) {
    auto [key, rest] = text.split('\n');
    if (key.consume_front("{"))
      key = key.ltrim();
    const bool quoted = key.consume_front("\"") || key.consume_front("'");
    if (key.consume_front("problems") && key.drop_front(quoted && !key.empty()).ltrim().starts_with(":"))
      return true;
    text = rest;
  }
  return false;
}

namespace {
/// One entry; nullopt after a report.
std::optional<SuiteProblem> readProblem(const YamlNode &entry, const YamlNode *defaults, unsigned number,
                                        llvm::ArrayRef<Override> overrides, Diags &diags) {
  static constexpr StringRef others[] = {"class"};
  if (entry.kind != YamlNode::Map) {
    std::vector<StringRef> keys = keysOf("");
    llvm::append_range(keys, others);
    diags.report(Diag::spec_expected_map, entry.range, "a problem of a suite", listed(keys), seenKind(entry));
    return std::nullopt;
  }
  SuiteProblem problem;
  Reader reader(diags);
  if (defaults)
    reader.readPart(*defaults, others);
  reader.readPart(entry, others);
  for (const Override &override : overrides)
    reader.apply(override);
  StringRef text(entry.range.Start.getPointer(), 0);
  auto spec = reader.finish(text, llvm::formatv("problem_{0}", number).str());
  if (!spec)
    return std::nullopt;
  problem.spec = std::move(*spec);
  const YamlNode *group = entry.find("class");
  if (!group && defaults)
    group = defaults->find("class");
  if (group && group->kind != YamlNode::Scalar) {
    diags.report(Diag::spec_expected_value, group->range, "class", "a word", seenKind(*group));
    return std::nullopt;
  }
  if (group)
    problem.group = group->text;
  return problem;
}
} // namespace

std::optional<std::vector<SuiteProblem>> readSuite(StringRef text, llvm::ArrayRef<Override> overrides, Diags &diags) {
  auto root = parseYaml(text, diags);
  if (!root)
    return std::nullopt;
  unsigned before = diags.numErrors();
  static constexpr StringRef keys[] = {"defaults", "problems"};
  if (root->kind != YamlNode::Map) {
    diags.report(Diag::spec_expected_map, root->range, "a suite", listed(keys), seenKind(*root));
    return std::nullopt;
  }
  for (const YamlEntry &entry : root->entries)
    if (!llvm::is_contained(keys, entry.key.text))
      diags.report(Diag::spec_unknown_key, entry.key.range, shown(entry.key.text), "a suite", listed(keys));
  const YamlNode *defaults = root->find("defaults"), *list = root->find("problems");
  if (defaults && defaults->kind != YamlNode::Map) {
    diags.report(Diag::spec_expected_map, defaults->range, "`defaults`", listed(keysOf("")), seenKind(*defaults));
    defaults = nullptr;
  }
  if (!list || list->kind != YamlNode::List || list->items.empty()) {
    diags.report(Diag::suite_empty, list ? list->range : root->range);
    return std::nullopt;
  }
  std::vector<SuiteProblem> problems;
  llvm::StringMap<SMRange> names;
  for (const YamlNode &item : list->items) {
    auto problem = readProblem(item, defaults, problems.size() + 1, overrides, diags);
    if (diags.numErrors() - before >= maxProblems)
      break;
    if (!problem)
      continue;
    auto [first, added] = names.try_emplace(*problem->spec.name, item.range);
    if (!added)
      diags.report(Diag::suite_same_name, item.range, *problem->spec.name).note(Diag::yaml_first_given, first->second);
    problems.push_back(std::move(*problem));
  }
  return diags.numErrors() == before ? std::optional(std::move(problems)) : std::nullopt;
}

std::optional<std::vector<SuiteProblem>> onlyThose(std::vector<SuiteProblem> problems,
                                                   llvm::ArrayRef<std::string> texts, Diags &diags) {
  const auto has = [](const SuiteProblem &problem, StringRef text) {
    return StringRef(problem.group).contains(text) || StringRef(*problem.spec.name).contains(text);
  };
  bool allFound = true;
  for (const std::string &text : texts)
    if (llvm::none_of(problems, [&](const SuiteProblem &problem) { return has(problem, text); })) {
      diags.report(Diag::suite_only, {}, text);
      allFound = false;
    }
  if (!allFound)
    return std::nullopt;
  llvm::erase_if(problems, [&](const SuiteProblem &problem) {
    return llvm::none_of(texts, [&](const std::string &text) { return has(problem, text); });
  });
  return problems;
}

} // namespace gemmc
