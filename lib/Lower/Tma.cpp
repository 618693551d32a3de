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

  /// `visit` gets the coordinates of each box and its place in the stage.
  void each(Lowering &in, llvm::function_ref<void(const Val &x, const Val &y, int64_t offset)> visit) const {
    for (int64_t span = 0; span < tile.spans; ++span)
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
  }
  const auto &start = op.ref("from").index;
  Val inner = value(start[rowOrder ? 1 : 0]), outer = value(start[rowOrder ? 0 : 1]);
  return {tile, rows, boxRows, inner, outer};
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

  boxes.each(*this, [&](const Val &x, const Val &y, int64_t offset) {
    Val to = add(dst, offset, "box");
    loadBox(tensor.map, x, y, to, bar, policy, mask);
  });
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
