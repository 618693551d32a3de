/// Reads one form of `Ops.def` (grammar: PTX/Ops.h) into a `Row`. A malformed form is our own fault: assert.
#pragma once
#include "gemmc/PTX/Ops.h"
#include <string_view>

namespace gemmc::ptx {

/// A row as it stands in the table.
struct RowText {
  const char *name;
  std::string_view form;
  const char *sm; ///< "80" or "90a".
  unsigned ptx;
  Effect effect;
};
/// The caller owns the row and gives it back through `freeForm`.
const Row *parseForm(const RowText &text);
void freeForm(const Row *row);

} // namespace gemmc::ptx
