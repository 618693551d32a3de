#include "Rewrite.h"

namespace gemmc::tile {
namespace {
constexpr int64_t leastBeyond = 8; ///< Rows that are worth a map of their own.

/// Of the m or n of `tensor` that lies in its last tile of `tile.rows` (or columns): 0 where no row of a box, or too
/// few, would lie beyond the matrix. Where that side is contiguous a row that only ends beyond it costs nothing.
int64_t restOf(const Op &tensor, const Op &shared) {
  const Expr &extent = tensor.expr(tensor.subject.name == "A" ? "rows" : "cols");
  const int64_t length = shared.item("extent", 0);
  if (!extent.isConst() || tensor.has("shift"))
    return 0;
  const int64_t rest = extent.constant() % length;
  const SharedTile tile = tileOf(shared);
  const int64_t unit = tile.kMajor ? leastBeyond : tile.spanElems();
  return rest > 0 && length - rest >= unit ? rest : 0;
}
} // namespace

void trimEdges(Kernel &kernel) {
  if (kernel.word("copy") != "tma" || kernel.word("instruction") != "wgmma")
    return;
  for (Op &op : kernel.body())
    if (op.kind == OpKind::Tensor && (op.subject.name == "A" || op.subject.name == "B"))
      if (int64_t rest = restOf(op, *kernel.declaration("s" + op.subject.name)))
        op.set("rest", rest);
}
} // namespace gemmc::tile
