/// The operators of integer expressions as text: the one table that printer and parser share.
#pragma once
#include "gemmc/Support/Expr.h"

namespace gemmc {

struct ExprOperator {
  Expr::Kind kind;
  llvm::StringRef spelling;
  unsigned level;       ///< Higher binds tighter, as in C; 0 = written as a call.
  bool chains = true;   ///< `a op b op c` is `(a op b) op c`; otherwise it is an error.
  bool swapped = false; ///< Read-only spelling: `a > b` is `b < a`.

  static constexpr unsigned unary = 7;
  bool isCall() const { return level == 0; }
  static const ExprOperator &of(Expr::Kind kind); ///< The spelling that is printed.
};

} // namespace gemmc
