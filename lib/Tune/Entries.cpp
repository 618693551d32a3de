// Measurements to YAML and back, strictly; and the tables that gemmc ships, of which one line is read.
#include "gemmc/Tune/Entries.h"
#include "Tables.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <charconv>
#include <cmath>
#include <functional>

using llvm::formatv;
using llvm::StringRef;

namespace gemmc::tune {
namespace {
/// A key of an entry: how its value is written and read.
struct Key {
  StringRef name, takes;
  std::function<std::string(const Tuned &)> print;
  std::function<bool(const YamlNode &, Tuned &)> read;
};

std::string quoted(StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string microseconds(double seconds) { return formatv("{0:f3}", seconds * 1e6).str(); }

template <typename T> bool readNumber(const YamlNode &node, T &value) {
  const char *begin = node.text.data(), *end = begin + node.text.size();
  T number{};
  auto result = std::from_chars(begin, end, number);
  if (node.quoted || result.ec != std::errc() || result.ptr != end)
    return false;
  value = number;
  return true;
}

bool readMicroseconds(const YamlNode &node, double &seconds) {
  double value = 0;
  if (!readNumber(node, value) || !std::isfinite(value) || value < 0 || value > 1e12)
    return false;
  seconds = value * 1e-6;
  return true;
}

/// Texts end up in one line of a message or a plan's comment.
bool readText(const YamlNode &node, std::string &text) {
  if (node.text.empty() || node.text.size() > 4096)
    return false;
  text = node.text;
  return true;
}

/// What was multiplied: `4096x4096x4096`, of a batch `4 of 64x64x64`.
struct Sizes {
  int64_t products = 1;
  std::array<int64_t, 3> of{};
};

std::optional<Sizes> parseSizes(StringRef text) {
  auto isSize = [](StringRef word, int64_t &size) { return !word.getAsInteger(10, size) && size >= 0; };
  Sizes sizes;
  auto [products, of] = text.split(" of ");
  if (of.empty())
    of = text;
  else if (!isSize(products, sizes.products))
    return std::nullopt;
  llvm::SmallVector<StringRef> numbers;
  of.split(numbers, 'x');
  if (numbers.size() != sizes.of.size() || !llvm::all_of(llvm::zip_equal(numbers, sizes.of), [&](auto pair) {
        return isSize(std::get<0>(pair), std::get<1>(pair));
      }))
    return std::nullopt;
  return sizes;
}

bool readSizes(const YamlNode &node, std::string &sizes) {
  if (!parseSizes(node.text))
    return false;
  sizes = node.text;
  return true;
}

bool readDate(const YamlNode &node, std::string &date) {
  StringRef text = node.text;
  bool good = text.size() == 10;
  for (size_t i = 0; good && i < 10; ++i)
    good = i == 4 || i == 7 ? text[i] == '-' : llvm::isDigit(text[i]);
  unsigned month = 0, day = 0;
  good = good && !text.substr(5, 2).getAsInteger(10, month) && !text.substr(8, 2).getAsInteger(10, day) && month >= 1 &&
         month <= 12 && day >= 1 && day <= 31;
  if (good)
    date = text.str();
  return good;
}

const std::vector<Key> &keys() {
  static const std::vector<Key> list = {
      {"device", "a device's name", [](const Tuned &t) { return quoted(t.device); },
       [](const YamlNode &node, Tuned &t) { return readText(node, t.device); }},
      {"kernels", "a version of gemmc's kernels", [](const Tuned &t) { return std::to_string(t.kernels); },
       [](const YamlNode &node, Tuned &t) { return readNumber(node, t.kernels) && t.kernels > 0; }},
      {"problem", "a problem's text", [](const Tuned &t) { return quoted(t.problem); },
       [](const YamlNode &node, Tuned &t) { return readText(node, t.problem); }},
      {"sizes", "three sizes like 4096x4096x4096, of a batch `16 of 64x64x64`", [](const Tuned &t) { return t.sizes; },
       [](const YamlNode &node, Tuned &t) { return readSizes(node, t.sizes); }},
      {"choice", "words `path=value`", [](const Tuned &t) { return quoted(t.choice); },
       [](const YamlNode &node, Tuned &t) { return readText(node, t.choice); }},
      {"us", "microseconds", [](const Tuned &t) { return microseconds(t.seconds); },
       [](const YamlNode &node, Tuned &t) { return readMicroseconds(node, t.seconds); }},
      {"cublaslt_us", "microseconds, 0 when cuBLASLt was not measured",
       [](const Tuned &t) { return microseconds(t.cublasSeconds); },
       [](const YamlNode &node, Tuned &t) { return readMicroseconds(node, t.cublasSeconds); }},
      {"rounds", "a number of rounds", [](const Tuned &t) { return std::to_string(t.rounds); },
       [](const YamlNode &node, Tuned &t) { return readNumber(node, t.rounds) && t.rounds > 0; }},
      {"date", "a date like 2026-11-21", [](const Tuned &t) { return t.date; },
       [](const YamlNode &node, Tuned &t) { return readDate(node, t.date); }},
  };
  return list;
}

std::string listOfKeys() {
  std::string text;
  for (const Key &key : keys())
    text += (text.empty() ? "`" : ", `") + key.name.str() + "`";
  return text;
}

std::string seen(const YamlNode &node) {
  switch (node.kind) {
  case YamlNode::Null:
    return "nothing";
  case YamlNode::List:
    return "a list";
  case YamlNode::Map:
    return "a map";
  case YamlNode::Scalar:
    return "`" + StringRef(node.text).take_front(60).str() + "`";
  }
  llvm_unreachable("unknown kind of node");
}

/// Whether a problem is one of the sizes that it was measured with: `sm_90a 64x4096xdynamic~128 a=... batch=4 ...`.
bool hasSizes(const Tuned &tuned) {
  const Sizes sizes = *parseSizes(tuned.sizes);
  auto isSize = [](StringRef wanted, int64_t size) { return isOpenSize(wanted) || wanted == std::to_string(size); };
  auto isProduct = [&](const std::array<int64_t, 3> &of) {
    return llvm::all_of(llvm::zip_equal(sizesOfProblem(tuned.problem), of),
                        [&](auto pair) { return isSize(std::get<0>(pair), std::get<1>(pair)); });
  };
  const StringRef batch = StringRef(tuned.problem).split(" batch=").second.split(' ').first;
  if (!batch.empty())
    return isSize(batch, sizes.products) && isProduct(sizes.of);
  auto [m, n, k] = sizes.of;
  auto times = [&](int64_t size) { // a size that overflows is nobody's
    int64_t all = 0;
    return llvm::MulOverflow(size, sizes.products, all) ? -1 : all;
  };
  // Of a batch that was one product older databases have its own sizes.
  return isProduct({times(m), n, k}) || isProduct({m, times(n), k});
}

std::optional<Tuned> readEntry(const YamlNode &node, Diags &diags) {
  unsigned before = diags.numErrors();
  if (node.kind != YamlNode::Map) {
    diags.report(Diag::spec_expected_map, node.range, "an entry", listOfKeys(), seen(node));
    return std::nullopt;
  }
  for (const YamlEntry &entry : node.entries)
    if (llvm::none_of(keys(), [&](const Key &key) { return key.name == entry.key.text; }))
      diags.report(Diag::spec_unknown_key, entry.key.range, StringRef(entry.key.text).take_front(60), "an entry",
                   listOfKeys());
  Tuned tuned;
  for (const Key &key : keys()) {
    const YamlNode *value = node.find(key.name);
    if (!value)
      diags.report(Diag::spec_missing_field, node.range, key.name, key.takes);
    else if (value->kind != YamlNode::Scalar || !key.read(*value, tuned))
      diags.report(Diag::spec_expected_value, value->range, key.name, key.takes, seen(*value));
  }
  if (diags.numErrors() != before)
    return std::nullopt;
  if (!hasSizes(tuned)) {
    diags.report(Diag::tuning_sizes, node.find("problem")->range, StringRef(tuned.problem).take_front(60), tuned.sizes);
    return std::nullopt;
  }
  if (auto why = whyNoChoice(tuned.choice)) {
    diags.report(Diag::tuning_choice, node.find("choice")->range, tuned.choice, *why);
    return std::nullopt;
  }
  return tuned;
}
} // namespace

std::array<StringRef, 3> sizesOfProblem(StringRef problem) {
  auto [m, others] = problem.split(' ').second.split(' ').first.split('x');
  auto [n, k] = others.split('x');
  return {m, n, k};
}

std::optional<std::string> whyNoChoice(StringRef choice) {
  llvm::SmallVector<StringRef> words;
  choice.split(words, ' ', -1, /*KeepEmpty=*/false);
  if (words.empty())
    return "it has no word `path=value`";
  llvm::SmallDenseSet<StringRef, 32> paths;
  for (StringRef word : words) {
    const StringRef path = word.split('=').first;
    if (isProblemField(path))
      return formatv("it sets `{0}`, which says what is computed", path).str();
    if (!paths.insert(path).second)
      return formatv("it sets `{0}` twice", path).str();
  }
  Diags scratch;
  Spec spec;
  if (applyChoice(spec, choice, scratch))
    return std::nullopt;
  return scratch.all().front().message;
}

std::string printEntries(llvm::ArrayRef<Tuned> entries) {
  if (entries.empty())
    return "entries: []\n";
  std::string text = "entries:\n";
  for (const Tuned &tuned : entries) {
    std::string line;
    for (const Key &key : keys())
      line += (line.empty() ? "" : ", ") + key.name.str() + ": " + key.print(tuned);
    text += "  - {" + line + "}\n";
  }
  return text;
}

StringRef headComment(StringRef text) {
  size_t end = 0;
  while (end < text.size() && (text[end] == '#' || text[end] == '\n'))
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.take_front(end);
}

std::optional<std::vector<Tuned>> readEntries(StringRef text, Diags &diags) {
  constexpr unsigned nodes = 2000000, maxProblems = 20;
  auto root = parseYaml(text, diags, {size_t(32) << 20, nodes});
  if (!root)
    return std::nullopt;
  unsigned before = diags.numErrors();
  const YamlNode *list = root->find("entries");
  if (root->kind != YamlNode::Map || !list || list->kind != YamlNode::List) {
    diags.report(Diag::spec_expected_map, root->range, "a table of choices", "`entries` (a list)", seen(*root));
    return std::nullopt;
  }
  for (const YamlEntry &entry : root->entries)
    if (entry.key.text != "entries")
      diags.report(Diag::spec_unknown_key, entry.key.range, StringRef(entry.key.text).take_front(60),
                   "a table of choices", "`entries`");
  std::vector<Tuned> out;
  for (const YamlNode &node : list->items) {
    if (auto tuned = readEntry(node, diags))
      out.push_back(std::move(*tuned));
    if (diags.numErrors() - before >= maxProblems)
      break;
  }
  return diags.numErrors() == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Tuned> findBuiltIn(StringRef device, StringRef problem) {
  std::string wanted = "problem: " + quoted(problem) + ",", deviceText = "device: " + quoted(device) + ",";
  for (const EmbeddedTable *table = embeddedTables; table->name; ++table) {
    StringRef text = table->text;
    for (size_t at = text.find(wanted); at != StringRef::npos; at = text.find(wanted, at + 1)) {
      StringRef line = text.substr(text.take_front(at).rfind('\n') + 1).take_until([](char c) { return c == '\n'; });
      Diags scratch;
      line = line.ltrim();
      if (!line.consume_front("- ") || !line.contains(deviceText))
        continue;
      auto node = parseYaml(scratch.addSource(table->name, line), scratch);
      if (auto tuned = node ? readEntry(*node, scratch) : std::nullopt)
        return tuned;
    }
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> builtInTables() {
  std::vector<std::pair<std::string, std::string>> tables;
  for (const EmbeddedTable *table = embeddedTables; table->name; ++table)
    tables.emplace_back(table->name, table->text);
  return tables;
}

} // namespace gemmc::tune
