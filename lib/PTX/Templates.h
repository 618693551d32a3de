/// Templates as they are kept: read once, expanded often.
#pragma once
#include "gemmc/PTX/Builder.h"

namespace gemmc::ptx {

/// Written by cmake/EmbedTemplates.cmake; a row without a name ends the table.
struct EmbeddedTemplate {
  const char *name; ///< "sm90/mbar_wait"
  const char *text;
};
extern const EmbeddedTemplate embeddedTemplates[];

struct Hole {
  std::string name;
  Type type = Type::none; ///< none = a label.
  friend bool operator==(const Hole &, const Hole &) = default;
};
struct Template {
  std::string name;
  std::vector<Hole> holes; ///< Sorted by name.
  Function function;       ///< Its registers and its body, with holes as operands.
};

/// Reads and verifies one template, which has the holes of `original` if that is given. `text` must be a source held
/// by `diags`.
std::unique_ptr<Template> readTemplate(llvm::StringRef name, llvm::StringRef text, Diags &diags,
                                       const Template *original = nullptr);

} // namespace gemmc::ptx
