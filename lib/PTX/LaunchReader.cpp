// The comment block -> LaunchInfo. Strict: whatever is not exactly as the writer would have put it is a diagnostic,
// because what is wrong here would make a launch read or write where it must not.
#include "LaunchFields.h"
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <charconv>
#include <cmath>

namespace gemmc::ptx {
namespace {
using namespace launch;

template <typename Names> std::string listed(const Names &names) {
  std::string list;
  for (llvm::StringRef name : names)
    list += (list.empty() ? "`" : ", `") + name.str() + "`";
  return list;
}

/// The first place where `name` is a whole word in `text`, which has it.
llvm::StringRef wordIn(llvm::StringRef text, llvm::StringRef name) {
  auto inWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  size_t at = text.find(name);
  while ((at && inWord(text[at - 1])) || (at + name.size() < text.size() && inWord(text[at + name.size()])))
    at = text.find(name, at + 1);
  return text.substr(at, name.size());
}

/// One node at a time: checks its form and converts it. A report is enough; the caller looks at the sink at the end.
class Values {
public:
  explicit Values(Diags &diags) : diags(diags) {}

  void read(llvm::StringRef key, const YamlNode &node, std::string &value) {
    if (scalar(key, node, "a name"))
      value = node.text;
  }
  void read(llvm::StringRef key, const YamlNode &node, std::string &value, llvm::ArrayRef<llvm::StringLiteral> known) {
    if (scalar(key, node, "a name") && oneOf(key, node, known))
      value = node.text;
  }
  void read(llvm::StringRef key, const YamlNode &node, Elem &value) { named(key, node, value, Elem::f16, lastElem); }
  void read(llvm::StringRef key, const YamlNode &node, Order &value) {
    named(key, node, value, Order::row, Order::col);
  }
  void read(llvm::StringRef key, const YamlNode &node, BitProduct &value) {
    named(key, node, value, BitProduct::xor_, BitProduct::and_);
  }
  void read(llvm::StringRef key, const YamlNode &node, TmaSwizzle &value) {
    named(key, node, value, TmaSwizzle::none, TmaSwizzle::b128);
  }
  void read(llvm::StringRef key, const YamlNode &node, Type &value) {
    named(key, node, value, Type::pred, Type::e5m2x2);
  }
  void read(llvm::StringRef key, const YamlNode &node, uint32_t &value, Limits limits) {
    int64_t wide;
    if (!scalar(key, node, "a number"))
      return;
    if (node.quoted || llvm::StringRef(node.text).getAsInteger(10, wide))
      diags.report(Diag::launch_kind, node.range, key, "a number");
    else if (within(key, node.range, wide, limits))
      value = static_cast<uint32_t>(wide);
  }
  void read(llvm::StringRef key, const YamlNode &node, std::optional<double> &value);
  void read(llvm::StringRef key, const YamlNode &node, Expr &value, Limits limits = {INT64_MIN, INT64_MAX});
  void read(llvm::StringRef key, const YamlNode &node, std::array<uint32_t, 3> &values, Product product);
  void read(llvm::StringRef key, const YamlNode &node, std::array<Expr, 3> &values, Limits limits) {
    if (triple(key, node))
      for (unsigned i = 0; i < 3; ++i)
        read(key, node.items[i], values[i], i == 0 ? limits : Limits{limits.low, 65535});
  }
  template <typename T, typename... Bounds>
  void read(llvm::StringRef key, const YamlNode &node, std::vector<T> &values, const Bounds &...bounds) {
    if (node.kind != YamlNode::List)
      return (void)diags.report(Diag::launch_kind, node.range, key, "a list");
    for (const YamlNode &item : node.items)
      read(key, item, values.emplace_back(), bounds...);
  }
  void read(llvm::StringRef key, const YamlNode &node, std::vector<std::pair<std::string, uint32_t>> &numbers,
            Limits limits) {
    if (node.kind != YamlNode::Map)
      return (void)diags.report(Diag::launch_kind, node.range, key, "a map");
    for (const YamlEntry &entry : node.entries)
      read(entry.key.text, entry.value, numbers.emplace_back(entry.key.text, 0).second, limits);
  }
  /// A struct: its `describe` asks for the fields.
  template <typename T> void read(llvm::StringRef key, const YamlNode &node, T &value);

  Diags &diags;

private:
  bool scalar(llvm::StringRef key, const YamlNode &node, llvm::StringRef what) {
    bool good = node.kind == YamlNode::Scalar && !node.text.empty();
    if (!good)
      diags.report(Diag::launch_kind, node.range, key, what);
    return good;
  }
  template <typename Names> bool oneOf(llvm::StringRef key, const YamlNode &node, const Names &known) {
    bool found = llvm::any_of(known, [&](llvm::StringRef name) { return name == node.text; });
    if (!found)
      diags.report(Diag::launch_word, node.range, key, node.text, listed(known));
    return found;
  }
  bool within(llvm::StringRef key, llvm::SMRange range, int64_t value, Limits limits) {
    bool good = limits.low <= value && value <= limits.high;
    if (!good)
      diags.report(Diag::launch_range, range, key, value, limits.low, limits.high);
    return good;
  }
  bool triple(llvm::StringRef key, const YamlNode &node) {
    if (node.kind != YamlNode::List)
      diags.report(Diag::launch_kind, node.range, key, "a list");
    else if (node.items.size() != 3)
      diags.report(Diag::launch_length, node.range, key, node.items.size(), 3);
    return node.kind == YamlNode::List && node.items.size() == 3;
  }
  /// An enum whose members from `first` to `last` have names.
  template <typename Enum> void named(llvm::StringRef key, const YamlNode &node, Enum &value, Enum first, Enum last) {
    std::vector<llvm::StringRef> names;
    for (unsigned i = unsigned(first); i <= unsigned(last); ++i)
      names.push_back(nameOf(static_cast<Enum>(i)));
    if (scalar(key, node, "a name") && oneOf(key, node, names))
      value = static_cast<Enum>(unsigned(first) + (llvm::find(names, node.text) - names.begin()));
  }
};

/// The fields of one map. Remembers what was asked for, so that the rest is unknown.
class FieldReader {
public:
  FieldReader(const YamlNode &map, Values &values) : map(map), values(values) {}

  template <typename T, typename... Bounds> void operator()(llvm::StringRef key, T &value, const Bounds &...bounds) {
    known.push_back(key);
    if (const YamlNode *node = map.find(key))
      values.read(key, *node, value, bounds...);
    else
      values.diags.report(Diag::launch_missing_key, map.range, key);
  }
  template <typename T, typename... Bounds> void optional(llvm::StringRef key, T &value, const Bounds &...bounds) {
    if (map.find(key))
      (*this)(key, value, bounds...);
    else
      known.push_back(key);
  }
  template <typename T, typename... Bounds>
  void unless(const T &, llvm::StringRef key, T &value, const Bounds &...bounds) {
    optional(key, value, bounds...);
  }
  void source(ParamInfo &param);
  void refuseUnknown() {
    for (const YamlEntry &entry : map.entries)
      if (!llvm::is_contained(known, entry.key.text)) {
        Problem &problem =
            values.diags.report(Diag::launch_unknown_key, entry.key.range, entry.key.text, listed(known));
        if (llvm::StringRef near = nearest(entry.key.text, known); !near.empty())
          problem.fix(entry.key.range, near);
      }
  }

private:
  const YamlNode &map;
  Values &values;
  std::vector<llvm::StringRef> known;
};

/// What each kind of parameter is called, and the PTX types it can have.
struct ParamForm {
  llvm::StringLiteral key, meaning, types;
};
constexpr ParamForm paramForms[] = {{"pointer", "a pointer", "u64"},
                                    {"int", "an integer", "u32, s32, u64 or s64"},
                                    {"float", "a factor", "f32 or f64"},
                                    {"map", "a tensor map", "b8"}};

bool takes(ParamInfo::Kind kind, Type type) {
  switch (kind) {
  case ParamInfo::Pointer:
    return type == Type::u64;
  case ParamInfo::Int:
    return type == Type::u32 || type == Type::s32 || type == Type::u64 || type == Type::s64;
  case ParamInfo::Float:
    return type == Type::f32 || type == Type::f64;
  case ParamInfo::TensorMap:
    return type == Type::b8;
  }
  llvm_unreachable("unknown kind of parameter");
}

void FieldReader::source(ParamInfo &param) {
  llvm::SmallVector<ParamInfo::Kind> given;
  for (unsigned i = 0; i < std::size(paramForms); ++i) {
    known.push_back(paramForms[i].key);
    if (map.find(paramForms[i].key))
      given.push_back(static_cast<ParamInfo::Kind>(i));
  }
  if (given.size() != 1)
    return (void)values.diags.report(Diag::launch_param_kind, map.range, param.name, given.size());
  param.kind = given.front();
  const ParamForm &form = paramForms[param.kind];
  const YamlNode &node = *map.find(form.key);
  if (param.kind == ParamInfo::Int)
    values.read(form.key, node, param.value);
  else if (param.kind == ParamInfo::TensorMap)
    values.read(form.key, node, param.source);
  else
    values.read(form.key, node, param.source,
                param.kind == ParamInfo::Float ? llvm::ArrayRef(scales) : llvm::ArrayRef(buffers));
  if (!takes(param.kind, param.type))
    values.diags.report(Diag::launch_param_type, map.range, param.name, nameOf(param.type), form.meaning, form.types);
}

void Values::read(llvm::StringRef key, const YamlNode &node, std::optional<double> &value) {
  if (!scalar(key, node, "a number or `dynamic`") || node.text == "dynamic")
    return;
  double number;
  const char *end = node.text.data() + node.text.size();
  auto [stop, error] = std::from_chars(node.text.data(), end, number);
  if (node.quoted || error != std::errc() || stop != end || !std::isfinite(number))
    diags.report(Diag::launch_kind, node.range, key, "a finite number or `dynamic`");
  else
    value = number;
}

void Values::read(llvm::StringRef key, const YamlNode &node, Expr &value, Limits limits) {
  if (!scalar(key, node, "an integer expression"))
    return;
  // The expression is read where it stands, so that its own problems have their places.
  const char *begin = node.range.Start.getPointer();
  llvm::StringRef raw(begin, node.range.End.getPointer() - begin);
  if (node.quoted)
    raw = raw.drop_front().drop_back();
  if (raw != node.text)
    return (void)diags.report(Diag::launch_kind, node.range, key, "an integer expression without escapes");
  auto read = Expr::parse(raw, diags);
  if (!read || (read->isConst() && !within(key, node.range, read->constant(), limits)))
    return;
  llvm::StringSet<> reported;
  read->forEachVar([&](llvm::StringRef name) {
    if (!llvm::is_contained(variables, name) && reported.insert(name).second)
      diags.report(Diag::launch_variable, rangeOf(wordIn(raw, name)), name, listed(variables));
  });
  value = *read;
}

void Values::read(llvm::StringRef key, const YamlNode &node, std::array<uint32_t, 3> &values, Product product) {
  if (!triple(key, node))
    return;
  unsigned before = diags.numErrors();
  for (unsigned i = 0; i < 3; ++i)
    read(key, node.items[i], values[i], Limits{1, product.most});
  uint64_t all = uint64_t(values[0]) * values[1] * values[2]; // each at most 1024
  if (diags.numErrors() == before && all > product.most)
    diags.report(Diag::launch_product, node.range, key,
                 llvm::formatv("{0} x {1} x {2}", values[0], values[1], values[2]).str(), all, product.unit,
                 product.most);
}

/// What fields of one struct must have in common.
void check(const YamlNode &, const OperandInfo &, Diags &) {}
void check(const YamlNode &, const ParamInfo &, Diags &) {}
void check(const YamlNode &, const RegionInfo &, Diags &) {}
void check(const YamlNode &, const SpecInfo &, Diags &) {}

void check(const YamlNode &node, const TensorMapInfo &map, Diags &diags) {
  auto length = [&](llvm::StringRef key, size_t actual, size_t wanted) {
    if (actual != wanted)
      diags.report(Diag::launch_length, node.find(key)->range, key, actual, wanted);
  };
  size_t rank = map.dims.size();
  if (rank < 1 || rank > maxRank)
    return (void)diags.report(Diag::launch_length, node.find("dims")->range, "dims", rank, "1 to 5");
  length("strides", map.strides.size(), rank - 1);
  length("box", map.box.size(), rank);
}

/// Reports the second of two equal names among the maps in the list `node`.
void refuseTwice(const YamlNode *node, llvm::StringRef what, Diags &diags) {
  llvm::StringSet<> names;
  for (const YamlNode &item : node->items)
    if (const YamlNode *name = item.find("name"); name && !names.insert(name->text).second)
      diags.report(Diag::launch_duplicate, name->range, what, name->text);
}

void check(const YamlNode &node, const KernelInfo &kernel, Diags &diags) {
  refuseTwice(node.find("maps"), "tensor map", diags);
  refuseTwice(node.find("params"), "parameter", diags);
  if (const YamlNode *memory = node.find("memory")) {
    refuseTwice(memory, "region", diags);
    for (auto [item, region] : llvm::zip_equal(memory->items, kernel.memory))
      if (int64_t end = region.offset + int64_t(region.bytes) * region.stages; end > kernel.dynamicShared)
        diags.report(Diag::launch_range, item.range, "memory", end, 0, kernel.dynamicShared);
  }
  for (auto [item, param] : llvm::zip_equal(node.find("params")->items, kernel.params))
    if (param.kind == ParamInfo::TensorMap &&
        llvm::none_of(kernel.maps, [&](const TensorMapInfo &map) { return map.name == param.source; }))
      diags.report(Diag::launch_no_map, item.find("map")->range, kernel.name, param.source);
}

void check(const YamlNode &node, const LaunchInfo &, Diags &diags) {
  refuseTwice(node.find("kernels"), "kernel", diags);
}

template <typename T> void Values::read(llvm::StringRef key, const YamlNode &node, T &value) {
  if (node.kind != YamlNode::Map)
    return (void)diags.report(Diag::launch_kind, node.range, key, "a map");
  unsigned before = diags.numErrors();
  FieldReader fields(node, *this);
  describe(fields, value);
  fields.refuseUnknown();
  if (diags.numErrors() == before)
    check(node, value, diags);
}

/// A launch passes exactly what the entry declares, byte for byte.
void checkEntry(const YamlNode &node, const KernelInfo &kernel, const Module &module, Diags &diags) {
  const Function *entry = module.find(kernel.name);
  if (!entry)
    return (void)diags.report(Diag::launch_no_entry, node.find("name")->range, kernel.name);
  const YamlNode &params = *node.find("params");
  if (entry->params.size() != kernel.params.size())
    return (void)diags.report(Diag::launch_param_count, params.range, kernel.name, entry->params.size(),
                              kernel.params.size());
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const Variable &declared = entry->params[i];
    const ParamInfo &given = kernel.params[i];
    uint64_t bytes = given.kind == ParamInfo::TensorMap ? 128 : bitsOf(given.type) / 8;
    if (declared.name != given.name || declared.bytes() != bytes)
      diags.report(Diag::launch_param_differs, params.items[i].range, i, kernel.name, declared.name, declared.bytes(),
                   given.name, bytes);
  }
}

/// The block as YAML in a source of its own, in which each character keeps the line and column it has in the PTX: `//!`
/// becomes blanks, and the lines around the block become empty. Also checks the version.
std::optional<llvm::StringRef> yamlOf(const Module &module, Diags &diags, llvm::StringRef name) {
  const auto &lines = module.header;
  auto first = llvm::find_if(lines, [](llvm::StringRef line) { return line.starts_with(firstLine); });
  if (first == lines.end()) {
    diags.report(Diag::launch_missing, {}, version);
    return std::nullopt;
  }
  std::string text(first - lines.begin(), '\n');
  text += "  #" + first->substr(1) + "\n";
  auto last = std::find_if(first, lines.end(), [](llvm::StringRef line) { return !line.starts_with("!"); });
  for (auto line = first + 1; line != last; ++line)
    text += "   " + line->substr(1) + "\n";
  llvm::StringRef source = diags.addSource(name, text);
  size_t number = source.find(firstLine.substr(1)) + firstLine.size() - 1;
  llvm::StringRef written = source.substr(number).split('\n').first.rtrim();
  if (written == llvm::Twine(version).str())
    return source;
  diags.report(Diag::launch_version, rangeOf(written), written, version);
  return std::nullopt;
}
} // namespace

std::optional<LaunchInfo> fromHeader(const Module &module, Diags &diags, llvm::StringRef file) {
  auto text = yamlOf(module, diags, file);
  auto tree = text ? parseYaml(*text, diags) : std::nullopt;
  if (!tree)
    return std::nullopt;
  unsigned before = diags.numErrors();
  LaunchInfo info;
  Values(diags).read("launch information", *tree, info);
  if (diags.numErrors() == before)
    for (auto [node, kernel] : llvm::zip_equal(tree->find("kernels")->items, info.kernels))
      checkEntry(node, kernel, module, diags);
  return diags.numErrors() == before ? std::optional(std::move(info)) : std::nullopt;
}

} // namespace gemmc::ptx
