#include "Rewrite.h"
#include "gemmc/Support/Types.h"

namespace gemmc::tile {
namespace {

/// What a tile's sums are when they are stored.
llvm::StringRef typeOfSums(const Kernel &kernel) {
  llvm::StringRef type = kernel.declaration("acc")->word("type");
  walk(kernel.root.body, [&](const Op &op) { type = op.kind == OpKind::Convert ? op.word("to") : type; });
  return type;
}

/// D's block tile in the type of the sums. Eight elements of padding a line: the four lanes that a fragment puts next
/// to each other hold two each, so eight lines of them meet all banks.
Op stageBuffer(const Kernel &kernel, const Op &store) {
  const Op &acc = *kernel.declaration("acc"), &d = *kernel.declaration(store.subject.name);
  return Op(OpKind::Shared, "sD")
      .set("type", typeOfSums(kernel))
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

/// 16 lines of 128 bytes for each buffer of each consumer warp. With a C that is added to lines on the way out the sums
/// themselves are staged and become D there; else D is.
Op warpBuffers(const Kernel &kernel, const Op &store) {
  constexpr int64_t lines = 16, lineBytes = 128;
  bool sums = store.has("c") && kernel.root.word("load_c", "direct") == "direct";
  llvm::StringRef type = sums ? typeOfSums(kernel) : kernel.declaration(store.subject.name)->word("type");
  int64_t buffers = kernel.number("consumers") * warpsOfGroup * kernel.number("store_buffers");
  return Op(OpKind::Shared, "sD")
      .set("type", type)
      .set("extent", std::vector<Expr>{buffers * lines, lineBytes / int64_t(bytesOf(*parseElem(type)))})
      .set("major", "k")
      .set("swizzle", "128B");
}

/// Sends the store in `outer` (a role, or the kernel) through sD; a CTA stays until what it gave to TMA has been
/// written.
bool throughShared(Kernel &kernel, std::vector<Op> &outer) {
  size_t tiles = indexOf(outer, OpKind::Tiles);
  Op *store = nullptr;
  if (tiles < outer.size())
    walk(outer[tiles].body, [&](Op &op) { store = op.kind == OpKind::Store ? &op : store; });
  if (!store)
    return false;
  store->set("through", Ref{"sD", {0}});
  if (store->word("via") == "tma")
    outer.insert(outer.begin() + tiles + 1, Op(OpKind::WaitStore).set("pending", 0));
  return true;
}

void stageByWarps(Kernel &kernel) {
  const Op *found = nullptr;
  walk(kernel.body(), [&](const Op &op) { found = op.kind == OpKind::Store ? &op : found; });
  if (!found)
    return;
  Op buffers = warpBuffers(kernel, *found);
  if (!throughShared(kernel, kernel.body()))
    for (Op &op : kernel.body())
      throughShared(kernel, op.body);
  declareShared(kernel, std::move(buffers));
}
} // namespace

void stageStore(Kernel &kernel) {
  if (kernel.word("store") == "direct")
    return;
  if (kernel.word("instruction") == "wgmma")
    return stageByWarps(kernel);
  declareShared(kernel, stageBuffer(kernel, storing(findIn(kernel.body(), OpKind::Tiles)->body).back()));
  std::vector<Op> &whole = findIn(kernel.body(), OpKind::Tiles)->body, &tile = storing(whole);
  tile.back().set("from", Ref{"sD", {0}});
  size_t at = finishReads(kernel, tile);
  if (tile[at].kind == OpKind::Convert)
    ++at;
  if (kernel.root.word("load_c") == "staged")
    at = combineWithC(tile, at);
  tile.insert(tile.begin() + at, {Op(OpKind::Stage, Ref{"sD", {0}}).set("from", Ref{"acc", {}}), Op(OpKind::Sync)});
  // The next tile's copies must not meet lines that are still read.
  if (kernel.word("persistent") == "on")
    whole.push_back(Op(OpKind::Sync));
}
} // namespace gemmc::tile
