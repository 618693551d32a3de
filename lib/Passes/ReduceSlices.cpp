#include "Rewrite.h"

namespace gemmc::tile {
namespace {

/// One line of 32 words for each register of a warp and each warp of a slice: lanes side by side meet no bank twice.
Op exchangeBuffer(const Kernel &kernel, int64_t slices) {
  const Op &acc = *kernel.declaration("acc");
  int64_t lanes = 32, perLane = acc.item("warp", 0) * acc.item("warp", 1) / lanes;
  int64_t warps = kernel.number("threads") / lanes / slices;
  bool packed = acc.word("type") == "f16";
  return Op(OpKind::Shared, "sR")
      .set("type", packed ? llvm::StringRef("f32") : acc.word("type"))
      .set("extent", std::vector<Expr>{warps * perLane / (packed ? 2 : 1), lanes})
      .set("major", "k")
      .set("swizzle", "rows")
      .set("over", "operands");
}
} // namespace

void reduceSlices(Kernel &kernel) {
  int64_t slices = kernel.root.number("slices", 1);
  if (slices == 1)
    return;
  declareShared(kernel, exchangeBuffer(kernel, slices));
  std::vector<Op> &tile = findIn(kernel.body(), OpKind::Tiles)->body;
  std::vector<Op> sum;
  for (int64_t slice = 1; slice < slices; ++slice) {
    sum.push_back(Op(OpKind::Send, Ref{"sR", {0}}).set("from", Ref{"acc", {}}).set("slice", slice));
    sum.push_back(Op(OpKind::Sync));
    sum.push_back(Op(OpKind::Receive, "acc").set("from", Ref{"sR", {0}}));
    sum.push_back(Op(OpKind::Sync)); // what comes next writes where slice 0 has just read
  }
  size_t at = finishReads(kernel, tile);
  tile.insert(tile.begin() + at, sum.begin(), sum.end());
}
} // namespace gemmc::tile
