// LaunchInfo -> the lines of the comment block.
#include "LaunchFields.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

namespace gemmc::ptx {
namespace {
using namespace launch;

/// Plain where YAML and our reader agree that it is one word or number; in quotes otherwise.
std::string text(llvm::StringRef word) {
  bool plain = !word.empty() && llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  assert(!word.contains('"') && !word.contains('\\') && "no PTX name and no expression has these");
  return plain ? word.str() : ("\"" + word + "\"").str();
}
std::string text(const std::string &word) { return text(llvm::StringRef(word)); }
std::string text(const Expr &e) { return e.isConst() ? e.str() : text(llvm::StringRef(e.str())); }
std::string text(Elem type) { return nameOf(type).str(); }
std::string text(Type type) { return nameOf(type).str(); }
std::string text(Order order) { return nameOf(order).str(); }
std::string text(BitProduct bits) { return nameOf(bits).str(); }
std::string text(TmaSwizzle swizzle) { return nameOf(swizzle).str(); }
std::string text(uint32_t value) { return std::to_string(value); }

/// The shortest decimal that reads back as the same double.
std::string text(const std::optional<double> &scale) {
  if (!scale)
    return "dynamic";
  char digits[32];
  return std::string(digits, std::to_chars(digits, std::end(digits), *scale).ptr);
}

template <typename Range> std::string flowList(const Range &values) {
  std::string list;
  for (const auto &value : values)
    list += (list.empty() ? "" : ", ") + text(value);
  return ("[" + llvm::Twine(list) + "]").str();
}
template <typename T> std::string text(const std::vector<T> &values) { return flowList(values); }
std::string text(const std::vector<std::pair<std::string, uint32_t>> &numbers) {
  std::string map;
  for (const auto &[key, number] : numbers)
    map += (map.empty() ? "" : ", ") + key + ": " + text(number);
  return ("{" + llvm::Twine(map) + "}").str();
}
template <typename T, size_t N> std::string text(const std::array<T, N> &values) { return flowList(values); }

/// Writes `key: value` pairs of one struct, either as lines or as the inside of a `{...}`.
class FieldWriter {
public:
  template <typename T, typename... Limits> void operator()(llvm::StringRef key, T &value, const Limits &...) {
    entries.push_back((key + ": " + text(value)).str());
  }
  /// Only what is there.
  template <typename T, typename... Limits> void optional(llvm::StringRef key, T &value, const Limits &...limits) {
    if (value != T())
      (*this)(key, value, limits...);
  }
  /// ... and of that what is not as usual.
  template <typename T, typename... Limits>
  void unless(const T &usual, llvm::StringRef key, T &value, const Limits &...limits) {
    if (value != usual)
      (*this)(key, value, limits...);
  }
  void operator()(llvm::StringRef key, SpecInfo &value) { entries.push_back((key + ": " + inFlow(value)).str()); }
  void operator()(llvm::StringRef key, OperandInfo &value) { entries.push_back((key + ": " + inFlow(value)).str()); }
  /// Conditions have a line each: they are read one by one.
  void operator()(llvm::StringRef key, std::vector<Expr> &conditions) {
    list(key, conditions, [&](const Expr &e) { item(text(e)); });
  }
  void operator()(llvm::StringRef key, std::vector<TensorMapInfo> &maps) {
    list(key, maps, [&](TensorMapInfo &map) { item(inFlow(map)); });
  }
  void operator()(llvm::StringRef key, std::vector<ParamInfo> &params) {
    list(key, params, [&](ParamInfo &param) { item(inFlow(param)); });
  }
  void operator()(llvm::StringRef key, std::vector<RegionInfo> &regions) {
    list(key, regions, [&](RegionInfo &region) { item(inFlow(region)); });
  }
  void operator()(llvm::StringRef key, std::vector<KernelInfo> &kernels) {
    list(key, kernels, [&](KernelInfo &kernel) {
      FieldWriter inner;
      describe(inner, kernel);
      for (const std::string &line : inner.entries)
        &line == &inner.entries.front() ? item(line) : entries.push_back(("    " + llvm::Twine(line)).str());
    });
  }
  void source(ParamInfo &param) {
    switch (param.kind) {
    case ParamInfo::Pointer:
      return (*this)("pointer", param.source);
    case ParamInfo::Int:
      return (*this)("int", param.value, nonNegative);
    case ParamInfo::Float:
      return (*this)("float", param.source);
    case ParamInfo::TensorMap:
      return (*this)("map", param.source);
    }
  }

  std::vector<std::string> entries;

private:
  void item(llvm::StringRef text) { entries.push_back(("  - " + text).str()); }
  template <typename T, typename Each> void list(llvm::StringRef key, std::vector<T> &values, Each each) {
    entries.push_back((key + (values.empty() ? ": []" : ":")).str());
    for (T &value : values)
      each(value);
  }
  template <typename T> static std::string inFlow(T &value) {
    FieldWriter inner;
    describe(inner, value);
    return ("{" + llvm::Twine(llvm::join(inner.entries, ", ")) + "}").str();
  }
};
} // namespace

llvm::StringRef nameOf(BitProduct bits) {
  constexpr llvm::StringLiteral names[] = {"none", "xor", "and"};
  return names[static_cast<unsigned>(bits)];
}

llvm::StringRef nameOf(TmaSwizzle swizzle) {
  constexpr llvm::StringLiteral names[] = {"none", "32B", "64B", "128B"};
  return names[static_cast<unsigned>(swizzle)];
}

std::vector<std::string> toHeader(const LaunchInfo &info) {
  FieldWriter fields;
  LaunchInfo copy = info; // `describe` serves the reader as well and wants something writable
  describe(fields, copy);
  std::vector<std::string> lines{(firstLine + llvm::Twine(version)).str()};
  for (const std::string &entry : fields.entries)
    lines.push_back(("! " + llvm::Twine(entry)).str());
  return lines;
}

} // namespace gemmc::ptx
