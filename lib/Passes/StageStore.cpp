#include "Rewrite.h"
#include "gemmc/Support/Types.h"

namespace gemmc::tile {
namespace {

/// D's block tile in the accumulator's type. Eight elements of padding a line: the four lanes that a fragment puts next
/// to each other hold two each, so eight lines of them meet all banks.
Op stageBuffer(const Kernel &kernel, const Op &store) {
  const Op &acc = *kernel.declaration("acc"), &d = *kernel.declaration(store.subject.name);
  return Op(OpKind::Shared, "sD")
      .set("type", acc.word("type"))
      .set("extent", std::vector<Expr>{acc.item("tile", 0), acc.item("tile", 1)})
      .set("major", d.word("order") == "row" ? "k" : "mn")
      .set("swizzle", "padded")
      .set("padding", 8 * int64_t(bytesOf(*parseElem(acc.word("type")))))
      .set("over", "operands");
}

/// C comes in through the tile that D leaves through; what is stored then is complete.
size_t combineWithC(std::vector<Op> &tile, size_t at) {
  Op &store = tile.back();
  Op bring = Op(OpKind::Bring, Ref{"sD", {0}}).set("from", store.ref("c")).set("beta", store.word("beta"));
  Op combine = Op(OpKind::Combine, "acc")
                   .set("c", Ref{"sD", {0}})
                   .set("alpha", store.word("alpha"))
                   .set("beta", store.word("beta"));
  store.erase("c");
  store.set("alpha", "1").set("beta", "0");
  tile.insert(tile.begin() + at, {std::move(bring), Op(OpKind::Sync), std::move(combine), Op(OpKind::Sync)});
  return at + 4;
}
} // namespace

void stageStore(Kernel &kernel) {
  if (kernel.word("store") != "staged" || kernel.word("instruction") == "wgmma")
    return;
  declareShared(kernel, stageBuffer(kernel, findIn(kernel.body(), OpKind::Tiles)->body.back()));
  std::vector<Op> &tile = findIn(kernel.body(), OpKind::Tiles)->body;
  tile.back().set("from", Ref{"sD", {0}});
  size_t at = finishReads(kernel, tile);
  if (kernel.root.word("load_c") == "staged")
    at = combineWithC(tile, at);
  tile.insert(tile.begin() + at, {Op(OpKind::Stage, Ref{"sD", {0}}).set("from", Ref{"acc", {}}), Op(OpKind::Sync)});
  // The next tile's copies must not meet lines that are still read.
  if (kernel.word("persistent") == "on")
    tile.push_back(Op(OpKind::Sync));
}
} // namespace gemmc::tile
