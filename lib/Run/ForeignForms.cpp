#include "ForeignForms.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace gemmc::run {

std::string listed(ArrayRef<StringRef> names) { return "`" + join(names, "`, `") + "`"; }

bool ForeignForms::isMap(const YamlNode &node, StringRef what, ArrayRef<StringRef> known, ArrayRef<StringRef> needed) {
  if (node.kind != YamlNode::Map) {
    diags.report(Diag::launch_kind, node.range, what, "a map with the keys " + listed(known));
    return false;
  }
  bool good = true;
  for (const YamlEntry &one : node.entries)
    if (!is_contained(known, one.key.text)) {
      diags.report(Diag::launch_unknown_key, one.key.range, one.key.text, listed(known));
      good = false;
    }
  for (StringRef key : needed)
    if (!node.find(key)) {
      diags.report(Diag::launch_missing_key, node.range, key);
      good = false;
    }
  return good;
}

const std::vector<YamlNode> &ForeignForms::items(const YamlNode *node, StringRef key) {
  static const std::vector<YamlNode> none;
  if (node && node->kind != YamlNode::List)
    diags.report(Diag::launch_kind, node->range, key, "a list");
  return node && node->kind == YamlNode::List ? node->items : none;
}

std::optional<int64_t> ForeignForms::integer(const YamlNode &node, StringRef key, int64_t low, int64_t high) {
  int64_t value = 0;
  if (node.kind != YamlNode::Scalar || node.quoted || StringRef(node.text).getAsInteger(0, value)) {
    diags.report(Diag::launch_kind, node.range, key, "a whole number");
    return std::nullopt;
  }
  if (value >= low && value <= high)
    return value;
  diags.report(Diag::launch_range, node.range, key, value, low, high);
  return std::nullopt;
}

std::optional<double> ForeignForms::number(const YamlNode &node, StringRef key) {
  double value = 0;
  if (node.kind == YamlNode::Scalar && !node.quoted &&
      (node.text == "inf" || node.text == "-inf" || node.text == "nan" || isDigit(StringRef(node.text).back()) ||
       StringRef(node.text).ends_with(".")) &&
      !StringRef(node.text).getAsDouble(value))
    return value;
  diags.report(Diag::launch_kind, node.range, key, "a number");
  return std::nullopt;
}

std::optional<Expr> ForeignForms::formula(const YamlNode &node, StringRef key) {
  if (node.kind != YamlNode::Scalar || node.text.empty()) {
    diags.report(Diag::launch_kind, node.range, key,
                 "a formula such as `i % 7`, over i (the element's index) and size");
    return std::nullopt;
  }
  StringRef text(node.range.Start.getPointer(), node.range.End.getPointer() - node.range.Start.getPointer());
  text = text.trim("\"'");
  auto made = Expr::parse(text, diags);
  if (made)
    made->forEachVar([&](StringRef name) {
      if (name != "i" && name != "size")
        diags.report(Diag::launch_variable, node.range, name, "i, size");
    });
  return made;
}

std::vector<double> ForeignForms::numbers(const YamlNode &node, StringRef key) {
  std::vector<double> list;
  for (const YamlNode &item : items(&node, key))
    list.push_back(number(item, key).value_or(0));
  if (list.empty() && node.kind == YamlNode::List)
    diags.report(Diag::launch_kind, node.range, key, "a list of at least one number");
  return list;
}

} // namespace gemmc::run
