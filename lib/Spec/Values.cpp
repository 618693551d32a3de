// One value of a spec from its YAML node, and back. Numbers are read strictly: what two readers could understand
// differently (`010`, `1_000`, `1e3`) is refused with the rule.
#include "Table.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>
#include <limits>

using llvm::StringRef;

namespace gemmc::spec {
namespace {

/// Reports `node` as none of the words that `row` knows; proposes the nearest.
bool failWord(const YamlNode &node, const Row &row, Diags &diags) {
  std::vector<StringRef> known = row.domain.words;
  if (!row.domain.required)
    known.push_back("auto");
  if (row.domain.kind == Domain::Extent || row.domain.kind == Domain::Scale)
    known.push_back("dynamic");
  StringRef near = nearest(node.text, known);
  if (isSwitch(row.domain) && (node.text == "yes" || node.text == "no"))
    near = node.text == "yes" ? "on" : "off";
  if (near.empty())
    diags.report(Diag::spec_word, node.range, row.path, describe(row.domain), shown(node.text));
  else
    diags.report(Diag::spec_word_near, node.range, row.path, describe(row.domain), shown(node.text), near)
        .fix(node.range, near);
  return false;
}

/// Quotes make text, and text is no number.
bool expectPlain(const YamlNode &node, const Row &row, Diags &diags) {
  if (!node.quoted)
    return true;
  diags.report(Diag::spec_quoted_number, node.range, row.path, describe(row.domain)).fix(node.range, node.text);
  return false;
}

bool startsLikeNumber(StringRef text) {
  text.consume_front("-") || text.consume_front("+");
  return !text.empty() && (llvm::isDigit(text[0]) || text[0] == '.');
}

/// Decimal digits, perhaps behind a minus, without a leading zero.
bool isDecimal(StringRef text) {
  text.consume_front("-");
  return !text.empty() && llvm::all_of(text, llvm::isDigit) && (text.size() == 1 || text[0] != '0');
}

/// What the user meant by `1_000`, `+5` or `4096.0`, or nothing.
std::string decimalOf(StringRef text) {
  std::string digits;
  text.consume_front("+");
  if (auto [whole, fraction] = text.split('.'); !fraction.empty() && fraction.find_first_not_of('0') == StringRef::npos)
    text = whole;
  for (char c : text)
    if (c != '_')
      digits += c;
  return isDecimal(digits) ? digits : "";
}

/// A number of `domain.lo..hi`. `what` names it in messages.
bool readInteger(const YamlNode &node, const Row &row, StringRef what, Diags &diags, int64_t &value) {
  if (!expectPlain(node, row, diags))
    return false;
  StringRef text = node.text;
  if (!startsLikeNumber(text))
    return failWord(node, row, diags);
  if (!isDecimal(text)) {
    Problem &problem = diags.report(Diag::spec_integer, node.range, what, describe(row.domain), shown(text));
    if (std::string digits = decimalOf(text); !digits.empty())
      problem.fix(node.range, digits);
    return false;
  }
  int64_t number = 0;
  auto result = std::from_chars(text.begin(), text.end(), number);
  if (result.ec != std::errc() || number < row.domain.lo || number > row.domain.hi) {
    diags.report(Diag::spec_range, node.range, what, shown(text), row.domain.lo, row.domain.hi);
    return false;
  }
  value = number;
  return true;
}

/// A JSON number: `-1`, `0.5`, `2.5e-3`.
bool isNumber(StringRef text) {
  text.consume_front("-");
  auto digits = [&] {
    size_t count = text.find_if_not(llvm::isDigit);
    count = count == StringRef::npos ? text.size() : count;
    text = text.drop_front(count);
    return count;
  };
  bool leadingZero = text.starts_with("0");
  size_t whole = digits();
  if (whole == 0 || (leadingZero && whole > 1) || (text.consume_front(".") && !digits()))
    return false;
  if (text.consume_front("e") || text.consume_front("E")) {
    text.consume_front("-") || text.consume_front("+");
    return digits() && text.empty();
  }
  return text.empty();
}

bool isNotFinite(StringRef text) {
  text.consume_front("-") || text.consume_front("+");
  text.consume_front(".");
  return text.equals_insensitive("nan") || text.equals_insensitive("inf") || text.equals_insensitive("infinity");
}
} // namespace

std::string shown(StringRef text) {
  constexpr size_t most = 40;
  std::string result;
  for (char c : text.take_front(most))
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (text.size() <= most)
    return result;
  while (!result.empty() && (result.back() & 0xc0) == 0x80) // not inside a UTF-8 character
    result.pop_back();
  if (!result.empty() && (result.back() & 0x80))
    result.pop_back();
  return result + "...";
}

std::string seenKind(const YamlNode &node) {
  switch (node.kind) {
  case YamlNode::Null:
    return "nothing";
  case YamlNode::Scalar:
    return llvm::formatv("`{0}`", shown(node.text));
  case YamlNode::List:
    return "a list";
  case YamlNode::Map:
    return "a map";
  }
  llvm_unreachable("unknown kind of node");
}

bool isAuto(const YamlNode &node) { return node.kind == YamlNode::Scalar && node.text == "auto"; }

bool expectScalar(const YamlNode &node, const Row &row, Diags &diags) {
  if (node.kind == YamlNode::Scalar)
    return true;
  if (node.kind == YamlNode::Null)
    diags.report(Diag::spec_missing_value, node.range, row.path, describe(row.domain));
  else
    diags.report(Diag::spec_expected_value, node.range, row.path, describe(row.domain), seenKind(node));
  return false;
}

bool readWord(const YamlNode &node, const Row &row, Diags &diags, unsigned &index) {
  if (!expectScalar(node, row, diags))
    return false;
  StringRef text = node.text;
  if (isSwitch(row.domain) && !node.quoted && (text == "true" || text == "false"))
    text = text == "true" ? "on" : "off";
  auto found = llvm::find(row.domain.words, text);
  if (found == row.domain.words.end())
    return failWord(node, row, diags);
  index = found - row.domain.words.begin();
  return true;
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, std::string &name) {
  if (!expectScalar(node, row, diags))
    return false;
  if (isGoodName(node.text)) {
    name = node.text;
    return true;
  }
  diags.report(isReservedName(node.text) ? Diag::spec_name_reserved : Diag::spec_name, node.range, shown(node.text));
  return false;
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, Size &size) {
  if (!expectScalar(node, row, diags))
    return false;
  int64_t value = 0;
  if (node.text == "dynamic")
    size.fixed.reset();
  else if (readInteger(node, row, row.path, diags, value))
    size.fixed = value;
  else
    return false;
  return true;
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, int64_t &value) {
  return expectScalar(node, row, diags) && readInteger(node, row, row.path, diags, value);
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, unsigned &value) {
  assert(row.domain.kind == Domain::Power && row.domain.hi <= std::numeric_limits<unsigned>::max());
  int64_t number = 0;
  if (!readValue(node, row, diags, number))
    return false;
  if (number & (number - 1)) {
    diags.report(Diag::spec_power, node.range, row.path, number, row.domain.lo, row.domain.hi);
    return false;
  }
  value = number;
  return true;
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, std::array<int64_t, 3> &values) {
  if (node.kind != YamlNode::List || node.items.size() != values.size()) {
    if (node.kind == YamlNode::Null)
      return expectScalar(node, row, diags);
    if (node.kind == YamlNode::Scalar && !startsLikeNumber(node.text))
      return failWord(node, row, diags);
    std::string got = seenKind(node);
    if (node.kind == YamlNode::List)
      got += llvm::formatv(" of {0}", node.items.size());
    diags.report(Diag::spec_triple, node.range, row.path, describe(row.domain), got);
    return false;
  }
  std::array<int64_t, 3> numbers{};
  bool good = true;
  for (auto [index, item] : llvm::enumerate(node.items)) {
    std::string what = (row.path + " " + StringRef("mnk").substr(index, 1)).str();
    if (item.kind != YamlNode::Scalar) {
      diags.report(Diag::spec_triple, item.range, row.path, describe(row.domain), seenKind(item) + " in it");
      good = false;
    } else if (!readInteger(item, row, what, diags, numbers[index])) {
      good = false;
    }
  }
  if (good)
    values = numbers;
  return good;
}

bool readValue(const YamlNode &node, const Row &row, Diags &diags, Scale &scale) {
  if (!expectScalar(node, row, diags))
    return false;
  StringRef text = node.text;
  if (text == "dynamic") {
    scale.fixed.reset();
    return true;
  }
  auto fail = [&](auto &&...report) {
    diags.report(report...);
    return false;
  };
  if (isNotFinite(text)) {
    diags.report(Diag::spec_scale_finite, node.range, row.path, text).fix(node.range, "dynamic");
    return false;
  }
  if (!expectPlain(node, row, diags))
    return false;
  if (!startsLikeNumber(text))
    return failWord(node, row, diags);
  if (!isNumber(text))
    return fail(Diag::spec_scale, node.range, row.path, describe(row.domain), shown(text));
  double value = 0;
  auto result = std::from_chars(text.begin(), text.end(), value);
  // A subnormal factor would lose digits, and one that rounds to 0 would change which matrices are read.
  double size = std::fabs(value);
  if (result.ec != std::errc() || size > std::numeric_limits<float>::max() ||
      (size != 0 && size < std::numeric_limits<float>::min()))
    return fail(Diag::spec_scale_range, node.range, row.path, shown(text));
  scale.fixed = value;
  return true;
}

std::string printValue(const std::string &name) { return name; }
std::string printValue(int64_t value) { return std::to_string(value); }
std::string printValue(unsigned value) { return std::to_string(value); }
std::string printValue(const Size &size) { return size.fixed ? std::to_string(*size.fixed) : "dynamic"; }
std::string printValue(const std::array<int64_t, 3> &values) {
  return llvm::formatv("[{0}, {1}, {2}]", values[0], values[1], values[2]);
}
std::string printValue(const Scale &scale) {
  if (!scale.fixed)
    return "dynamic";
  char text[32]; // the shortest text that reads back as the same double
  return std::string(text, std::to_chars(text, std::end(text), *scale.fixed).ptr);
}

} // namespace gemmc::spec
