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

/// A stage is a row of boxes, one a span; a box of more than 256 rows is split. With multicast each CTA of the group
/// takes its part of the rows (`TileParts`), one box of at most `boxRows`.
struct Lowering::Boxes {
  const SharedTile &tile;
  int64_t rows, boxRows;
  Val inner, outer; ///< The first element, along the contiguous dimension and the other one.

  /// `visit` gets the coordinates of each box of spans `from` to `to` and its place in the stage.
  void each(Lowering &in, int64_t from, int64_t to,
            llvm::function_ref<void(const Val &x, const Val &y, int64_t offset)> visit) const {
    for (int64_t span = from; span < to; ++span)
      for (int64_t row = 0; row < rows; row += boxRows) {
        Val x = in.inRegister(in.add(inner, span * tile.spanElems(), "x"), "x");
        Val y = in.inRegister(in.add(outer, row, "y"), "y");
        visit(x, y, span * tile.spanStride() + row * tile.pitch);
      }
  }
};

/// Of an operand whose m or n ends inside its last tile (tensor with `rest`), or may do so: it is given at launch.
/// Where k is contiguous its rows are rows of boxes: the first `whole` of the CTAs that share a tile bring their parts,
/// the next one `part` rows, by a map of its own unless there is no other tile, and those behind none. Where m or n is
/// contiguous the spans from `spans` on are not brought.
struct Lowering::Edge {
  bool atLaunch = false; ///< It is known when the kernel is launched (and no CTAs share a tile).
  int64_t whole = 0;
  Expr part = 0;
  bool only = false; ///< Of an operand with one tile, which no CTAs share.
  int64_t spans = 0; ///< 0: at launch.
  Expr bytes = 0;    ///< That a stage has less.
};

TileParts Lowering::partsOf(llvm::StringRef operand) const {
  const bool isA = operand == "A";
  return {tile::tileOf(*kernel.declaration(isA ? "sA" : "sB")).rows, isA ? clusterN : clusterM};
}

Lowering::Edge Lowering::edgeOf(const Op &tensor) const {
  const bool isA = tensor.subject.name == "A";
  const SharedTile tile = tile::tileOf(*kernel.declaration(isA ? "sA" : "sB"));
  const Expr &restOf = tensor.expr("rest");
  Edge result;
  result.spans = tile.spans;
  if (result.atLaunch = !restOf.isConst(); result.atLaunch) {
    if (!tile.kMajor)
      result.spans = 0;
    result.part = tile.kMajor ? restOf : Expr(0);
    result.bytes = tile.kMajor ? (tile.rows - restOf) * (tile.pitch * tile.spans)
                               : (tile.spans - ceilDiv(restOf, tile.spanElems())) * tile.spanStride();
    return result;
  }
  const int64_t rest = restOf.constant();
  if (tile.kMajor) {
    const TileParts parts = partsOf(tensor.subject.name);
    result.whole = parts.wholeOf(rest);
    result.part = rest - parts.start(result.whole);
    result.only = rest == tensor.number(isA ? "rows" : "cols") && parts.ctas == 1;
    result.bytes = (tile.rows - rest) * tile.pitch * tile.spans;
  } else {
    result.spans = llvm::divideCeil(rest, tile.spanElems());
    result.bytes = (tile.spans - result.spans) * tile.spanStride();
  }
  return result;
}

Lowering::Boxes Lowering::boxesOf(const Op &op, const TensorView &tensor, const SharedView &shared) {
  const SharedTile &tile = shared.tile;
  const Op &source = *kernel.declaration(op.ref("from").name);
  int64_t rows = partsOf(source.subject.name).mostRows(), boxRows = rows;
  while (boxRows > mostBoxRows)
    boxRows /= 2;

  bool rowOrder = tensor.order == Order::row;
  if (source.has("rest") && edgeOf(source).only)
    rows = boxRows = edgeOf(source).part.constant();
  if (llvm::none_of(result.kernel.maps, [&](const auto &map) { return map.buffer == tensor.buffer; })) {
    ptx::TensorMapInfo map;
    map.buffer = tensor.buffer;
    map.type = tensor.type == Elem::tf32 ? Elem::f32 : tensor.type; // as it lies: wgmma drops bits, TMA would round
    map.dims = {rowOrder ? tensor.cols : tensor.rows, rowOrder ? tensor.rows : tensor.cols};
    map.strides = {kernel.declaration(op.ref("from").name)->expr("ld") * tensor.elemBytes()};
    map.swizzle = tmaSwizzle(tile.layout);
    auto add = [&](std::string name, std::vector<Expr> box) {
      ptx::TensorMapInfo its = map;
      its.name = std::move(name);
      its.box = std::move(box);
      addProducts(source, its);
      result.kernel.maps.push_back(std::move(its));
    };
    add(tensor.buffer + "_map", {tile.spanElems(), boxRows});
    for (const ptx::TensorMapInfo &other : moreMaps(source))
      add(other.name, other.box);
  }
  const auto &start = op.ref("from").index;
  Val inner = value(start[rowOrder ? 1 : 0]), outer = value(start[rowOrder ? 0 : 1]);
  return {tile, rows, boxRows, inner, outer};
}

/// Of boxes as high as the part that is there: name and box.
std::optional<ptx::TensorMapInfo> Lowering::edgeMap(const Op &tensor) const {
  if (!tensor.has("rest"))
    return std::nullopt;
  const Edge edge = edgeOf(tensor);
  if (edge.part.isConst(0) || edge.only)
    return std::nullopt;
  ptx::TensorMapInfo map;
  map.name = tensor.word("buffer").str() + "_edge_map";
  const SharedTile tile = tile::tileOf(*kernel.declaration("s" + tensor.subject.name));
  map.box = {tile.spanElems(), edge.part};
  return map;
}

/// Of boxes as high as most parts, where the first CTAs have larger ones.
std::optional<ptx::TensorMapInfo> Lowering::partMap(const Op &tensor) const {
  const TileParts parts = partsOf(tensor.subject.name);
  if (!parts.larger || !parts.rows)
    return std::nullopt;
  ptx::TensorMapInfo map;
  map.name = tensor.word("buffer").str() + "_part_map";
  map.box = {tile::tileOf(*kernel.declaration("s" + tensor.subject.name)).spanElems(), parts.rows};
  return map;
}

std::vector<ptx::TensorMapInfo> Lowering::moreMaps(const Op &tensor) const {
  std::vector<ptx::TensorMapInfo> maps;
  if (tensor.subject.name != "A" && tensor.subject.name != "B")
    return maps;
  for (auto &map : {partMap(tensor), edgeMap(tensor)})
    if (map)
      maps.push_back(*map);
  return maps;
}

/// Of an edge that is known at launch, what kernels are told: the number of its tile, and by how many bytes a stage has
/// less than others; of a contiguous m or n also what the tile has of it.
std::vector<std::pair<std::string, Expr>> Lowering::edgeNumbers(const Op &tensor) const {
  if (!tensor.has("rest") || !edgeOf(tensor).atLaunch)
    return {};
  const bool isA = tensor.subject.name == "A";
  const Expr last = (tensor.expr(isA ? "rows" : "cols") - 1) / kernel.root.item("block", isA ? 0 : 1);
  const std::string name = tensor.word("buffer").str();
  std::vector<std::pair<std::string, Expr>> numbers{{name + "_last", last}, {name + "_less", edgeOf(tensor).bytes}};
  if (!edgeOf(tensor).spans)
    numbers.push_back({name + "_rest", tensor.expr("rest")});
  return numbers;
}

/// Whether the tile is the last one along the operand's m or n, or one that a cluster has behind it.
Val Lowering::isLastTile(const Op &tensor) {
  const bool isA = tensor.subject.name == "A";
  const std::string name = tensor.word("buffer").str();
  Val last = b.reg(Type::pred, "last_of_" + name), tile = inRegister(variables[isA ? "tm" : "tn"], "tile");
  b("setp.ge.u32", last, tile,
    edgeOf(tensor).atLaunch ? variables[name + "_last"]
                            : Val(tensor.number(isA ? "rows" : "cols") / kernel.root.item("block", isA ? 0 : 1)));
  return last;
}

/// All boxes of this CTA's part of a tile, or those that are there.
void Lowering::copyBoxes(const Op &op, const Boxes &boxes, const TensorView &tensor, CopyBox copy) {
  const Op &source = *kernel.declaration(op.ref("from").name);
  const TileParts parts = partsOf(source.subject.name);
  if (!parts.larger)
    return copyPart(op, boxes, tensor, tensor.map, copy);
  Val smaller = b.reg(Type::pred, "smaller");
  b("setp.ge.u32", smaller, placeOf(op), parts.larger);
  if (auto part = partMap(source)) {
    Val map = b.reg(Type::b64, tensor.buffer + "_map");
    b("selp.b64", map, variables[part->name], tensor.map, smaller);
    return copyPart(op, boxes, tensor, map, copy);
  }
  Val none = b.label("no_part");
  b.when(smaller)("bra", none);
  copyPart(op, boxes, tensor, tensor.map, copy);
  b.place(none);
}

/// The boxes of `whole`, or those that are there of a last tile.
void Lowering::copyPart(const Op &op, const Boxes &boxes, const TensorView &tensor, const Val &whole, CopyBox copy) {
  auto spans = [&](const Val &map, int64_t from, int64_t to) {
    boxes.each(*this, from, to, [&](const Val &x, const Val &y, int64_t offset) { copy(map, x, y, offset); });
  };
  const Op &source = *kernel.declaration(op.ref("from").name);
  if (!source.has("rest") || edgeOf(source).only)
    return spans(whole, 0, boxes.tile.spans);
  const TileParts parts = partsOf(source.subject.name);
  const Val place = placeOf(op);
  const Edge edge = edgeOf(source);
  Val last = isLastTile(source), map = whole, end = b.label("copied");
  auto both = [&](const char *mnemonic, const Val &x, int64_t bound) {
    Val result = b.reg(Type::pred, "last_of_" + tensor.buffer);
    b(mnemonic, result, x, bound, last);
    return result;
  };
  const bool shared = boxes.tile.kMajor && parts.ctas > 1;
  if (!edge.part.isConst(0)) {
    map = b.reg(Type::b64, tensor.buffer + "_map");
    b("selp.b64", map, variables[edgeMap(source)->name], whole,
      shared ? both("setp.eq.and.u32", place, edge.whole) : last);
  }
  if (const int64_t none = edge.whole + !edge.part.isConst(0); shared && none < parts.bringers())
    b.when(both("setp.ge.and.u32", place, none))("bra", end);
  if (!edge.spans) { // the first one is always there
    for (int64_t span = 0; span < boxes.tile.spans; ++span) {
      if (span) {
        Val beyond = b.reg(Type::pred, "beyond");
        b("setp.le.and.u32", beyond, variables[tensor.buffer + "_rest"], span * boxes.tile.spanElems(), last);
        b.when(beyond)("bra", end);
      }
      spans(map, span, span + 1);
    }
    return b.place(end);
  }
  spans(map, 0, edge.spans);
  if (edge.spans < boxes.tile.spans) {
    b.when(last)("bra", end);
    spans(map, edge.spans, boxes.tile.spans);
  }
  b.place(end);
}

Val Lowering::bytesExpected(int64_t whole) {
  Val bytes = whole;
  for (const Op &tensor : kernel.body()) {
    if (tensor.kind != OpKind::Tensor || !tensor.has("rest"))
      continue;
    const Edge edge = edgeOf(tensor);
    if (edge.only) {
      bytes = add(bytes, -edge.bytes.constant(), "bytes");
      continue;
    }
    Val less = b.reg(Type::b32, "bytes"), last = isLastTile(tensor);
    b("selp.b32", less, edge.atLaunch ? variables[tensor.word("buffer").str() + "_less"] : Val(edge.bytes.constant()),
      0, last);
    bytes = binary("sub.u32", inRegister(bytes, "bytes"), less, "bytes");
  }
  return bytes;
}

/// wgmma reads whole tiles, and asynchronous reads need memory that was written; what is read there changes no element
/// of D. In a role its threads meet before they read it.
void Lowering::clear(const Op &op) {
  constexpr int64_t pieceBytes = 16, warpThreads = 32;
  const Op &shared = *kernel.declaration(op.subject.name), &tensor = *kernel.declaration(op.subject.name.substr(1));
  const SharedTile tile = tile::tileOf(shared);
  const Edge edge = edgeOf(tensor);
  // In each stage one region, of each span where spans have rows beyond.
  const int64_t regions = tile.kMajor ? tile.spans : 1;
  const int64_t threads = roleWarps ? roleWarps * warpThreads : kernel.number("threads");
  b.blank();
  b.comment("no copy brings what lies beyond " + tensor.word("buffer"));
  Val end = b.label("cleared");
  if (roleWarps && !edge.only)
    b.unless(isLastTile(tensor))("bra", end);
  Val thread = add(tid, -roleWarp * warpThreads, "thread"), piece = mul(thread, pieceBytes, "piece");
  // `visit` gets the place of each region.
  auto each = [&](llvm::function_ref<void(int64_t offset)> visit) {
    for (int64_t stage = 0; stage < shared.number("stages"); ++stage)
      for (int64_t region = 0; region < regions; ++region)
        visit(shared.number("offset") + stage * tile.stageBytes() + region * tile.spanStride());
  };
  auto zero = [&](const Val &place, int64_t offset) {
    b("st.shared.v4.b32", at(place, offset), llvm::ArrayRef<Val>{0, 0, 0, 0});
  };
  if (edge.atLaunch) {
    const int64_t regionBytes = tile.kMajor ? tile.rows * tile.pitch : tile.spans * tile.spanStride();
    Val bytes = divide(variables[tensor.word("buffer").str() + "_less"], regions, "beyond"), again = b.label("clear");
    Val at = b.reg(Type::b32, "at"), done = b.reg(Type::pred, "done");
    b("sub.u32", at, regionBytes, inRegister(bytes, "beyond"));
    b("add.u32", at, at, piece);
    b.place(again);
    b("setp.ge.u32", done, at, regionBytes);
    b.when(done)("bra", end);
    Val place = add(at, sharedBase, "place");
    each([&](int64_t offset) { zero(place, offset); });
    b("add.u32", at, at, threads * pieceBytes);
    b("bra", again);
  } else {
    const int64_t pieces = edge.bytes.constant() / regions / pieceBytes;
    const int64_t first = tile.kMajor ? tensor.number("rest") * tile.pitch : edge.spans * tile.spanStride();
    Val place = add(piece, sharedBase, "piece");
    each([&](int64_t offset) {
      for (int64_t number = 0; number < pieces; number += threads) {
        if (pieces - number < threads) {
          Val mine = b.reg(Type::pred, "mine");
          b("setp.lt.u32", mine, thread, pieces - number);
          b.when(mine);
        }
        zero(place, offset + first + number * pieceBytes);
      }
    });
  }
  b.place(end);
  if (!op.has("meet"))
    return;
  b("fence.proxy.async.shared::cta");
  if (roleWarps) // else all meet when the barriers are ready
    b("bar.sync", barriers::clear, threads);
}

Val Lowering::placeOf(const Op &copy) const {
  return !copy.has("multicast") ? Val(0) : copy.word("multicast") == "m" ? rankM : rankN;
}

Val Lowering::startOfPart(const Op &copy, int64_t each) {
  if (!copy.has("multicast"))
    return 0;
  const TileParts parts = partsOf(copy.ref("from").name);
  const Val place = placeOf(copy), start = mul(place, parts.rows * each, "share");
  if (!parts.larger)
    return start;
  Val larger = b.reg(Type::b32, "larger");
  b("min.u32", larger, place, parts.larger);
  return add(start, mul(larger, TileParts::groupRows * each, "share"), "share");
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

namespace {
/// An idiom that copies a box, with where the box is.
struct BoxIdiom {
  std::string name;
  std::vector<std::pair<llvm::StringRef, Val>> holes;

  BoxIdiom(llvm::StringRef stem, const Val &map, llvm::ArrayRef<Val> at) : name(stem), holes{{"map", map}} {
    constexpr llvm::StringLiteral coordinates[] = {"x", "y", "z"};
    for (size_t i = 0; i < at.size(); ++i)
      holes.push_back({coordinates[i], at[i]});
    if (at.size() > 2)
      name += "_3d";
  }
};
} // namespace

llvm::StringLiteral Lowering::storeBox(llvm::ArrayRef<Val> at) {
  return at.size() > 2 ? llvm::StringLiteral("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group")
                       : llvm::StringLiteral("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group");
}

void Lowering::prefetchBox(const Val &map, llvm::ArrayRef<Val> at) {
  BoxIdiom idiom("sm90/tma_prefetch", map, at);
  b.expand(idiom.name, idiom.holes);
}

void Lowering::loadBox(const Val &map, llvm::ArrayRef<Val> at, const Val &to, const Val &bar, const Val &policy,
                       const Val &mask) {
  auto [idiom, holes] = BoxIdiom("sm90/tma_load", map, at);
  holes.push_back({"dst", to});
  holes.push_back({"bar", bar});
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
    boxes.outer = add(boxes.outer, startOfPart(op, 1), "outer");
    dst = add(dst, startOfPart(op, shared.tile.pitch), "to_" + op.subject.name);
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

  copyBoxes(op, boxes, tensor, [&](const Val &map, const Val &x, const Val &y, int64_t offset) {
    loadBox(map, boxAt(tensor, x, y), add(dst, offset, "box"), bar, policy, mask);
  });
}

void Lowering::prefetch(const Op &op) {
  const TensorView &tensor = tensors.find(op.ref("from").name)->second;
  Boxes boxes = boxesOf(op, tensor, buffers.find(op.subject.name)->second);
  boxes.outer = add(boxes.outer, startOfPart(op, 1), "outer");
  copyBoxes(op, boxes, tensor,
            [&](const Val &map, const Val &x, const Val &y, int64_t) { prefetchBox(map, boxAt(tensor, x, y)); });
}

} // namespace gemmc
