/// Forms of a launch file's nodes. Each reports what is wrong; the caller looks at the sink in the end.
#pragma once
#include "gemmc/Support/Expr.h"
#include "gemmc/Support/Yaml.h"

namespace gemmc::run {

/// "`a`, `b`".
std::string listed(llvm::ArrayRef<llvm::StringRef> names);

class ForeignForms {
protected:
  explicit ForeignForms(Diags &diags) : diags(diags) {}
  bool isMap(const YamlNode &node, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known,
             llvm::ArrayRef<llvm::StringRef> needed = {});
  const std::vector<YamlNode> &items(const YamlNode *node, llvm::StringRef key);
  std::optional<int64_t> integer(const YamlNode &node, llvm::StringRef key, int64_t low, int64_t high);
  std::optional<double> number(const YamlNode &node, llvm::StringRef key);
  int64_t integer(const YamlNode &map, llvm::StringRef key, int64_t low, int64_t high, int64_t otherwise) {
    const YamlNode *node = map.find(key);
    return node ? integer(*node, key, low, high).value_or(otherwise) : otherwise;
  }
  template <typename T>
  void word(const YamlNode &map, llvm::StringRef key, llvm::ArrayRef<std::pair<llvm::StringRef, T>> known, T &into);
  std::optional<Expr> formula(const YamlNode &node, llvm::StringRef key);
  std::vector<double> numbers(const YamlNode &node, llvm::StringRef key);

  Diags &diags;
};

template <typename T>
void ForeignForms::word(const YamlNode &map, llvm::StringRef key, llvm::ArrayRef<std::pair<llvm::StringRef, T>> known,
                        T &into) {
  const YamlNode *node = map.find(key);
  if (!node)
    return;
  std::vector<llvm::StringRef> names;
  for (const auto &[name, value] : known) {
    names.push_back(name);
    if (node->kind == YamlNode::Scalar && node->text == name) {
      into = value;
      return;
    }
  }
  diags.report(Diag::launch_word, node->range, key, node->text, listed(names));
}

} // namespace gemmc::run
