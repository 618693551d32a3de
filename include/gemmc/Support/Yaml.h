/// A strict YAML subset as a plain tree with source ranges: block and flow maps, lists and scalars, nothing else.
///
/// Limits keep hostile input cheap: at most 1 MiB, 16 KiB a line, depth 16, 10,000 nodes, 4 KiB a scalar. Not read are
/// anchors, aliases, tags, merge keys, directives, second documents, block text (`|`), scalars over several lines,
/// duplicate keys, control characters and invalid UTF-8. Every violation is a located diagnostic with a way out.
#pragma once
#include "gemmc/Support/Diag.h"
#include <optional>
#include <vector>

namespace gemmc {

struct YamlEntry;

struct YamlNode {
  enum Kind : uint8_t { Null, Scalar, List, Map };
  Kind kind = Null;
  llvm::SMRange range;            ///< The node's text, quotes included.
  std::string text;               ///< Scalar: the value without quotes and escapes.
  bool quoted = false;            ///< Scalar: was written in quotes (then it is never a number).
  std::vector<YamlNode> items;    ///< List.
  std::vector<YamlEntry> entries; ///< Map, in the order of the text; keys are scalars.

  const YamlNode *find(llvm::StringRef key) const;
};

struct YamlEntry {
  YamlNode key, value;
};

/// How much is read. Lists that gemmc writes itself (lib/Tune/Entries.cpp) may be longer than specs.
struct YamlLimits {
  size_t bytes = 1 << 20;
  unsigned nodes = 10000;
};

/// Parses `text`, which must be a source held by `diags`. Nullopt after a reported error.
std::optional<YamlNode> parseYaml(llvm::StringRef text, Diags &diags);
std::optional<YamlNode> parseYaml(llvm::StringRef text, Diags &diags, const YamlLimits &limits);

/// `text` behind the byte order mark that an editor may have put in front.
inline llvm::StringRef withoutMark(llvm::StringRef text) {
  text.consume_front("\xEF\xBB\xBF");
  return text;
}

/// The member of `known` that `word` is probably a misspelling of, or an empty string.
llvm::StringRef nearest(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

} // namespace gemmc
