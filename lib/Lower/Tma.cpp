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
/// loads its share of the rows and all of them receive it, at the same place.
void Lowering::copyByTma(const Op &op, const TensorView &tensor, const SharedView &shared) {
  const SharedTile &tile = shared.tile;
  bool multicast = op.has("multicast"), alongM = op.word("multicast") == "m";
  int64_t share = multicast ? (alongM ? clusterM : clusterN) : 1;
  int64_t rows = tile.rows / share;
  int64_t boxRows = rows;
  while (boxRows > maxBoxRows)
    boxRows /= 2;

  if (llvm::none_of(result.kernel.maps, [&](const auto &map) { return map.buffer == tensor.buffer; })) {
    bool rowOrder = tensor.order == Order::row;
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
  bool rowOrder = tensor.order == Order::row;
  Val inner = value(start[rowOrder ? 1 : 0]), outer = value(start[rowOrder ? 0 : 1]);
  Val dst = stageAddress(shared, op.subject, "to_" + op.subject.name);
  Val bar = barrierAddress(op.ref("signal"), "full");
  Val policy;
  if (op.has("cache")) {
    policy = b.reg(Type::b64, "policy");
    b(("createpolicy.fractional.L2::" + op.word("cache") + ".b64").str(), policy, Val(ptx::Operand::makeF32(1)));
  }
  Val mask;
  if (multicast) {
    const Val &index = alongM ? rankM : rankN;
    outer = add(outer, mul(index, rows, "share"), "outer");
    dst = add(dst, mul(index, rows * tile.pitch, "share"), "to_" + op.subject.name);
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

  for (int64_t span = 0; span < tile.spans; ++span)
    for (int64_t row = 0; row < rows; row += boxRows) {
      Val x = inRegister(add(inner, span * tile.spanElems(), "x"), "x"), y = inRegister(add(outer, row, "y"), "y");
      Val to = add(dst, span * tile.spanStride() + row * tile.pitch, "box");
      std::vector<std::pair<llvm::StringRef, Val>> holes = {
          {"dst", to}, {"map", tensor.map}, {"x", x}, {"y", y}, {"bar", bar}};
      std::string idiom = "sm90/tma_load";
      if (multicast) {
        idiom += "_multicast";
        holes.push_back({"mask", mask});
      }
      if (policy.isReg()) {
        idiom += "_hint";
        holes.push_back({"policy", policy});
      }
      b.expand(idiom, holes);
    }
}

} // namespace gemmc
