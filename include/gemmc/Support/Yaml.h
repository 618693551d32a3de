/// A strict YAML subset as a plain tree with source ranges: block and flow maps, lists and scalars, nothing else.
///
/// LLVM's YAML parser reads the text behind limits that keep hostile input cheap (rules: no anchors, aliases, tags,
/// merge keys, directives, second documents, duplicate keys, NUL bytes or invalid UTF-8; at most 1 MiB, depth 16, 10,000
/// nodes, 4 KiB a scalar). Every violation is a located diagnostic.
#pragma once
#include "gemmc/Support/Diag.h"
#include <optional>
#include <utility>
#include <vector>

namespace gemmc {

struct YamlNode {
  enum Kind : uint8_t { Null, Scalar, List, Map };
  Kind kind = Null;
  llvm::SMRange range;      ///< The node's text, quotes included.
  std::string text;         ///< Scalar: the value without quotes and escapes.
  bool quoted = false;      ///< Scalar: was written in quotes (then it is never a number or a keyword).
  std::vector<YamlNode> items; ///< List.
  std::vector<std::pair<YamlNode, YamlNode>> entries; ///< Map, in the order of the text; keys are scalars.

  const YamlNode *find(llvm::StringRef key) const;
};

/// Parses `text`, which must be a source held by `diags`. Nullopt after a reported error.
std::optional<YamlNode> parseYaml(llvm::StringRef text, Diags &diags);

/// The member of `known` nearest to `word` by edit distance, or an empty string when none is near.
llvm::StringRef nearest(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

} // namespace gemmc
