#include "Lowering.h"

namespace gemmc {
ptx::TmaSwizzle tmaSwizzle(SharedLayout layout) {
  switch (layout) {
  case SharedLayout::b32:
    return ptx::TmaSwizzle::b32;
  case SharedLayout::b64:
    return ptx::TmaSwizzle::b64;
  case SharedLayout::b128:
    return ptx::TmaSwizzle::b128;
  default:
    return ptx::TmaSwizzle::none;
  }
}

namespace {
constexpr int64_t maxBoxRows = 256;
} // namespace

/// A stage is a row of boxes, one a span; a box of more than 256 rows is split. With multicast each CTA of the group
/// takes its share of the rows.
struct Lowering::Boxes {
  const SharedTile &tile;
  int64_t rows, boxRows;
  Val inner, outer; ///< The first element, along the contiguous dimension and the other one.

  /// `visit` gets the coordinates of each box and its place in the stage, of spans `from` to `to` (0: all).
  void each(Lowering &in, llvm::function_ref<void(const Val &x, const Val &y, int64_t offset)> visit, int64_t from = 0,
            int64_t to = 0) const {
    for (int64_t span = from; span < (to ? to : tile.spans); ++span)
      for (int64_t row = 0; row < rows; row += boxRows) {
        Val x = in.inRegister(in.add(inner, span * tile.spanElems(), "x"), "x");
        Val y = in.inRegister(in.add(outer, row, "y"), "y");
        visit(x, y, span * tile.spanStride() + row * tile.pitch);
      }
  }
};

Lowering::Boxes Lowering::boxesOf(const Op &op, const TensorView &tensor, const SharedView &shared) {
  const SharedTile &tile = shared.tile;
  bool alongM = op.word("multicast") == "m";
  int64_t rows = tile.rows / (op.has("multicast") ? (alongM ? clusterM : clusterN) : 1), boxRows = rows;
  while (boxRows > maxBoxRows)
    boxRows /= 2;

  bool rowOrder = tensor.order == Order::row;
  if (llvm::none_of(result.kernel.maps, [&](const auto &map) { return map.buffer == tensor.buffer; })) {
    ptx::TensorMapInfo map;
    map.name = tensor.buffer + "_map";
    map.buffer = tensor.buffer;
    map.type = tensor.type;
    map.dims = {rowOrder ? tensor.cols : tensor.rows, rowOrder ? tensor.rows : tensor.cols};
    map.strides = {kernel.declaration(op.ref("from").name)->expr("ld") * tensor.elemBytes()};
    map.box = {uint32_t(tile.spanElems()), uint32_t(boxRows)};
    map.swizzle = tmaSwizzle(tile.layout);
    result.kernel.maps.push_back(map);
    if (auto rest = restMap(*kernel.declaration(op.ref("from").name))) {
      map.name = rest->name;
      map.box = rest->box;
      result.kernel.maps.push_back(map);
    }
  }
  const auto &start = op.ref("from").index;
  Val inner = value(start[rowOrder ? 1 : 0]), outer = value(start[rowOrder ? 0 : 1]);
  return {tile, rows, boxRows, inner, outer};
}

/// Of an operand whose m or n ends inside its last tile (tensor with `rest`). Where k is contiguous its rows are rows of
/// boxes: each of the CTAs that share a tile brings `share` of them, the first `whole` CTAs all, the next one `part`, by
/// a map of its own, and those behind none. Where m or n is contiguous the spans from `spans` on are not brought.
struct Lowering::Rest {
  int64_t share = 0, whole = 0, part = 0;
  int64_t spans = 0;
  int64_t bytes = 0; ///< That a stage has less.
};

Lowering::Rest Lowering::restOf(const Op &tensor) const {
  const bool isA = tensor.subject.name == "A";
  const SharedTile tile = sharedTile(*kernel.declaration(isA ? "sA" : "sB"));
  const int64_t rest = tensor.number("rest");
  Rest result;
  if (tile.kMajor) {
    result.share = tile.rows / (isA ? clusterN : clusterM);
    result.whole = rest / result.share;
    result.part = rest % result.share;
    result.spans = tile.spans;
    result.bytes = (tile.rows - rest) * tile.pitch * tile.spans;
  } else {
    result.spans = llvm::divideCeil(rest, tile.spanElems());
    result.bytes = (tile.spans - result.spans) * tile.spanStride();
  }
  return result;
}

/// Of boxes as high as the part that is there: name and box.
std::optional<ptx::TensorMapInfo> Lowering::restMap(const Op &tensor) const {
  if (!tensor.has("rest"))
    return std::nullopt;
  const Rest rest = restOf(tensor);
  if (!rest.part)
    return std::nullopt;
  ptx::TensorMapInfo map;
  map.name = tensor.word("buffer").str() + "_rest_map";
  const SharedTile tile = sharedTile(*kernel.declaration("s" + tensor.subject.name));
  map.box = {uint32_t(tile.spanElems()), uint32_t(rest.part)};
  return map;
}

/// Whether the tile is the last one along the operand's m or n, or one that a cluster has behind it.
Val Lowering::isLastTile(const Op &tensor) {
  const bool isA = tensor.subject.name == "A";
  Val last = b.reg(Type::pred, "last_of_" + tensor.word("buffer").str());
  b("setp.ge.u32", last, inRegister(variables[isA ? "tm" : "tn"], "tile"),
    tensor.number(isA ? "rows" : "cols") / kernel.root.item("block", isA ? 0 : 1));
  return last;
}

void Lowering::copyRest(const Op &op, const Boxes &boxes, const TensorView &tensor,
                        llvm::function_ref<void(const Val &map, const Val &x, const Val &y, int64_t offset)> copy) {
  const Op &source = *kernel.declaration(op.ref("from").name);
  const Rest rest = restOf(source);
  Val last = isLastTile(source), map = tensor.map, end = b.label("copied");
  auto all = [&](const Val &first, const char *mnemonic, const Val &x, int64_t bound) {
    Val both = b.reg(Type::pred, "last_of_" + tensor.buffer);
    b((llvm::Twine(mnemonic) + ".and.u32").str(), both, x, bound, first);
    return both;
  };
  const bool shared = op.has("multicast") && boxes.tile.kMajor;
  Val rank = !shared ? Val() : op.word("multicast") == "m" ? rankM : rankN;
  if (rest.part) {
    map = b.reg(Type::b64, tensor.buffer + "_map");
    b("selp.b64", map, variables[restMap(source)->name], tensor.map,
      shared ? all(last, "setp.eq", rank, rest.whole) : last);
  }
  if (const int64_t least = rest.whole + (rest.part > 0); shared && least < boxes.tile.rows / rest.share)
    b.when(all(last, "setp.ge", rank, least))("bra", end);
  boxes.each(*this, [&](const Val &x, const Val &y, int64_t offset) { copy(map, x, y, offset); }, 0, rest.spans);
  if (rest.spans < boxes.tile.spans) {
    b.when(last)("bra", end);
    boxes.each(*this, [&](const Val &x, const Val &y, int64_t offset) { copy(map, x, y, offset); }, rest.spans);
  }
  b.place(end);
}

Val Lowering::bytesExpected(int64_t whole) {
  Val bytes = whole;
  for (const Op &tensor : kernel.body()) {
    if (tensor.kind != OpKind::Tensor || !tensor.has("rest"))
      continue;
    Val less = b.reg(Type::b32, "bytes"), last = isLastTile(tensor);
    b("selp.b32", less, restOf(tensor).bytes, 0, last);
    bytes = binary("sub.u32", inRegister(bytes, "bytes"), less, "bytes");
  }
  return bytes;
}

/// wgmma reads whole tiles, and asynchronous reads need memory that was written. The sums are not D's.
void Lowering::clearBeyond() {
  const int64_t threads = kernel.number("threads"), pieceBytes = 16;
  bool any = false;
  for (const Op &tensor : kernel.body()) {
    if (tensor.kind != OpKind::Tensor || !tensor.has("rest"))
      continue;
    const Op &shared = *kernel.declaration("s" + tensor.subject.name);
    const SharedTile tile = sharedTile(shared);
    // In each stage one region, of each span where spans have rows beyond.
    const int64_t regions = tile.kMajor ? tile.spans : 1, bytes = restOf(tensor).bytes / regions,
                  first = tile.kMajor ? tensor.number("rest") * tile.pitch : restOf(tensor).spans * tile.spanStride();
    if (!any) {
      b.blank();
      b.comment("no copy brings what lies beyond the matrix");
    }
    any = true;
    Val place = add(mul(tid, pieceBytes, "piece"), sharedBase, "piece");
    for (int64_t stage = 0; stage < shared.number("stages"); ++stage)
      for (int64_t region = 0; region < regions; ++region)
        for (int64_t piece = 0; piece < bytes / pieceBytes; piece += threads) {
          const int64_t left = bytes / pieceBytes - piece;
          if (left < threads) {
            Val mine = b.reg(Type::pred, "mine");
            b("setp.lt.u32", mine, tid, left);
            b.when(mine);
          }
          b("st.shared.v4.b32",
            at(place, shared.number("offset") + stage * tile.stageBytes() + region * tile.spanStride() + first +
                          piece * pieceBytes),
            llvm::ArrayRef<Val>{0, 0, 0, 0});
        }
  }
  if (any)
    b("fence.proxy.async.shared::cta");
}

/// The rows' share of this CTA; its stage has them where they lie in the whole tile.
Val Lowering::shareOf(const Op &op, int64_t each) {
  return op.has("multicast") ? mul(op.word("multicast") == "m" ? rankM : rankN, each, "share") : Val(0);
}

/// What a copy tells the L2; None: nothing.
Val Lowering::cachePolicy(const Op &op) {
  Val policy;
  if (op.has("cache")) {
    policy = b.reg(Type::b64, "policy");
    b(("createpolicy.fractional.L2::" + op.word("cache") + ".b64").str(), policy, Val(ptx::Operand::makeF32(1)));
  }
  return policy;
}

void Lowering::loadBox(const Val &map, const Val &x, const Val &y, const Val &to, const Val &bar, const Val &policy,
                       const Val &mask) {
  std::vector<std::pair<llvm::StringRef, Val>> holes = {{"dst", to}, {"map", map}, {"x", x}, {"y", y}, {"bar", bar}};
  std::string idiom = "sm90/tma_load";
  if (mask.isReg()) {
    idiom += "_multicast";
    holes.push_back({"mask", mask});
  }
  if (policy.isReg()) {
    idiom += "_hint";
    holes.push_back({"policy", policy});
  }
  b.expand(idiom, holes);
}

/// All CTAs of the group receive each other's shares, at the same place.
void Lowering::copyByTma(const Op &op, const TensorView &tensor, const SharedView &shared) {
  if (kernel.declaration(op.ref("from").name)->has("shift"))
    return copyLines(op, tensor, shared);
  Boxes boxes = boxesOf(op, tensor, shared);
  bool multicast = op.has("multicast"), alongM = op.word("multicast") == "m";
  Val dst = stageAddress(shared, op.subject, "to_" + op.subject.name);
  Val bar = barrierAddress(op.ref("signal"), "full");
  Val policy = cachePolicy(op);
  Val mask;
  if (multicast) {
    boxes.outer = add(boxes.outer, shareOf(op, boxes.rows), "outer");
    dst = add(dst, shareOf(op, boxes.rows * shared.tile.pitch), "to_" + op.subject.name);
    mask = b.reg(Type::b16, "group");
    Val wideMask, peers = clusterK > 1 ? mul(rankK, clusterM * clusterN, "peers") : Val(0);
    if (alongM) {
      wideMask = binary("shl.b32", inRegister(Val((int64_t(1) << clusterM) - 1), "group_m"),
                        add(mul(rankN, clusterM, "row"), peers, "row"), "group_mask");
    } else {
      int64_t bits = 0;
      for (int64_t j = 0; j < clusterN; ++j)
        bits |= int64_t(1) << (j * clusterM);
      wideMask = binary("shl.b32", inRegister(Val(bits), "group_n"), add(rankM, peers, "column"), "group_mask");
    }
    b("cvt.u16.u32", mask, wideMask);
  }

  auto load = [&](const Val &map, const Val &x, const Val &y, int64_t offset) {
    loadBox(map, x, y, add(dst, offset, "box"), bar, policy, mask);
  };
  if (kernel.declaration(op.ref("from").name)->has("rest"))
    return copyRest(op, boxes, tensor, load);
  boxes.each(*this, [&](const Val &x, const Val &y, int64_t offset) { load(tensor.map, x, y, offset); });
}

void Lowering::prefetch(const Op &op) {
  const TensorView &tensor = tensors.find(op.ref("from").name)->second;
  Boxes boxes = boxesOf(op, tensor, buffers.find(op.subject.name)->second);
  boxes.outer = add(boxes.outer, shareOf(op, boxes.rows), "outer");
  boxes.each(*this, [&](const Val &x, const Val &y, int64_t) {
    b.expand("sm90/tma_prefetch", {{"map", tensor.map}, {"x", x}, {"y", y}});
  });
}

} // namespace gemmc
