// A batch: products of one kind, each with matrices of its own, or shared ones. The tiles of the first product have the
// first numbers, then those of the second one, so that a persistent CTA goes from product to product as it goes from
// tile to tile. What threads read and write is reached from the matrix of the tile's product; tensor maps have the
// products as their last dimension.
#include "Lowering.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {

/// Along m and n; tiles of one cluster lie side by side, so edges are filled up with tiles beyond the matrix.
std::array<Expr, 2> Lowering::clusterCounts() const {
  const Op &root = kernel.root;
  return {ceilDiv(ceilDiv(root.expr("m"), root.item("block", 0)), clusterM),
          ceilDiv(ceilDiv(root.expr("n"), root.item("block", 1)), clusterN)};
}

Expr Lowering::clusterCount() const {
  auto [m, n] = clusterCounts();
  return m * n * products();
}

Expr Lowering::tileCount() const { return clusterCount() * clusterSize(); }

Val Lowering::counted(const Expr &count) { return count.isConst(0) ? Val(1) : value(count); }

Val Lowering::tilesOfAll(const Val &tilesM, const Val &tilesN) {
  return mul(mul(tilesM, tilesN, "tiles"), counted(products()), "tiles_of_all");
}

void Lowering::placeTile(const Val &id, const Val &tilesM, const Val &tilesN) {
  if (!isBatch())
    return placeTileOfProduct(id, tilesM, tilesN);
  Val ofOne = mul(tilesM, tilesN, "tiles_of_one");
  enterProduct(divide(id, ofOne, "batch_index"));
  placeTileOfProduct(remainder(id, ofOne, "tile_of_one"), tilesM, tilesN);
}

void Lowering::enterProduct(const Val &product) {
  variables["product"] = product;
  for (const Op &op : kernel.body()) {
    if (op.kind != OpKind::Tensor || !op.has("batch"))
      continue;
    TensorView &tensor = tensors.find(op.subject.name)->second;
    if (!tensor.first.isReg())
      continue;
    Val bytes =
        tensor.stride.isImm() ? Val(tensor.stride.op.imm * bitsOf(tensor.type) / 8) : b.reg(Type::b64, "stride");
    if (!tensor.stride.isImm() && bitsOf(tensor.type) >= 8)
      b("mul.lo.u64", bytes, tensor.stride, tensor.elemBytes());
    else if (!tensor.stride.isImm())
      b("shr.u64", bytes, tensor.stride, int64_t(llvm::Log2_64(perByte(tensor.type))));
    tensor.base = add64(wide(product, bytes, tensor.buffer + "_offset"), tensor.first, tensor.buffer + "_of_index");
  }
}

std::vector<Val> Lowering::boxAt(const TensorView &tensor, const Val &x, const Val &y) {
  std::vector<Val> at{inRegister(x, "x"), inRegister(y, "y")};
  if (tensor.perProduct)
    at.push_back(inRegister(variables["product"], "batch_index"));
  return at;
}

Expr Lowering::strideInMemory(const Op &tensor) const {
  return tensor.has("repack") ? tensor.expr(tensor.word("order") == "row" ? "rows" : "cols") * tensor.expr("ld")
                              : tensor.expr("batch");
}

void Lowering::addProducts(const Op &tensor, ptx::TensorMapInfo &map) const {
  if (!tensor.has("batch"))
    return;
  map.dims.push_back(products());
  map.strides.push_back(strideInMemory(tensor) * int64_t(bytesOf(map.type)));
  map.box.push_back(1);
}

} // namespace gemmc
