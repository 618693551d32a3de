#include "Rewrite.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::tile {
namespace {
constexpr int64_t leastBeyond = 8; ///< Rows of boxes that are worth a map of their own.

/// What the last tile of `tensor` has of its m or n; 0 where no row of a box, or too few, would lie beyond the matrix.
/// Where that side is contiguous a row that only ends beyond it costs nothing: whole spans count. Of an extent that is
/// given at launch all of them may lie beyond, or none. What a CTA brings in two boxes is brought whole.
Expr trimmedPart(const Kernel &kernel, const Op &tensor, const Op &shared) {
  const Expr &extent = tensor.expr(tensor.subject.name == "A" ? "rows" : "cols");
  const int64_t length = shared.item("extent", 0);
  if (tensor.has("shift"))
    return 0;
  const SharedTile tile = tileOf(shared);
  const int64_t sharing = kernel.root.item("cluster", tensor.subject.name == "A" ? 1 : 0);
  if (tile.kMajor && TileParts(tile.rows, sharing).mostRows() > mostBoxRows)
    return 0;
  if (!extent.isConst()) { // one box brings a span, which no CTAs share
    const bool alone = kernel.root.item("cluster", 0) * kernel.root.item("cluster", 1) == 1;
    return alone && (tile.kMajor || tile.spans > 1) ? lastPart(extent, length) : Expr(0);
  }
  const int64_t rest = lastPart(extent, length).constant();
  const int64_t least = extent.constant() < length ? 1 : leastBeyond; // the only tile has the only map
  bool trims = tile.kMajor ? length - rest >= least : int64_t(llvm::divideCeil(rest, tile.spanElems())) < tile.spans;
  return rest > 0 && trims ? rest : 0;
}

/// Consumers clear what they will read while the first copies are under way: if the CTA's first tile is a last one,
/// those do not go there, and if it has as many steps as there are stages, later tiles find all of them written. What
/// another CTA of a cluster copies for a later tile would have to be ordered behind the clearing, which its waits are
/// not.
bool consumersMayClear(const Kernel &kernel, const Op &tiles) {
  if (tiles.has("gives") || tiles.has("takes") || (tiles.has("parts") && tiles.word("parts") != "cluster"))
    return false;
  if (kernel.word("persistent") != "on")
    return true;
  if (kernel.root.item("cluster", 0) * kernel.root.item("cluster", 1) * kernel.root.number("cluster_k", 1) > 1)
    return false;
  const Expr &k = kernel.root.expr("k");
  return k.isConst() && k.constant() / kernel.root.item("block", 2) >= kernel.number("stages");
}
} // namespace

void trimEdges(Kernel &kernel) {
  if (kernel.word("copy") != "tma" || kernel.word("instruction") != "wgmma")
    return;
  std::vector<Op> clears;
  for (Op &op : kernel.body()) {
    if (op.kind != OpKind::Tensor || (op.subject.name != "A" && op.subject.name != "B"))
      continue;
    const std::string tile = "s" + op.subject.name;
    if (Expr rest = trimmedPart(kernel, op, *kernel.declaration(tile)); !rest.isConst(0)) {
      op.set("rest", rest);
      clears.push_back(Op(OpKind::Clear, tile));
    }
  }
  if (clears.empty())
    return;
  clears.back().set("meet", "yes");
  auto consumer = llvm::find_if(kernel.body(), [](const Op &op) { return op.subject.name == "consumer"; });
  const Op *tiles = consumer == kernel.body().end() ? nullptr : findIn(consumer->body, OpKind::Tiles);
  if (tiles && consumersMayClear(kernel, *tiles)) {
    Op first(OpKind::Tiles);
    if (tiles->has("parts"))
      first.set("parts", tiles->word("parts"));
    first.set("first", "yes");
    first.body = std::move(clears);
    consumer->body.insert(consumer->body.begin(), std::move(first));
    return;
  }
  std::vector<Op> &body = kernel.body();
  auto declaration = [](const Op &op) { return op.kind <= OpKind::Fragment; };
  body.insert(llvm::find_if_not(body, declaration), clears.begin(), clears.end());
}
} // namespace gemmc::tile
