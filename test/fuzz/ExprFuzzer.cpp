// Any bytes: the expression reader ends with an expression or a located error; an expression's text reads back as the
// same tree, and evaluating it never overflows.
#include "gemmc/Support/Expr.h"
#include "llvm/Support/ErrorHandling.h"

using namespace gemmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Diags diags;
  llvm::StringRef text = diags.addSource("fuzz.expr", {reinterpret_cast<const char *>(data), size});
  auto expr = Expr::parse(text, diags);
  if (!expr) {
    if (!diags.hasErrors())
      llvm::report_fatal_error("no expression and no error");
    return 0;
  }
  auto again = Expr::parse(diags.addSource("again.expr", expr->str()), diags);
  if (!again || !(*again == *expr))
    llvm::report_fatal_error("the text of an expression does not read back");
  for (int64_t value : {int64_t(0), int64_t(-1), int64_t(7), INT64_MAX, INT64_MIN})
    expr->eval([value](llvm::StringRef) { return std::optional(value); });
  return 0;
}
