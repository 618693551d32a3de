#include "CopyKernel.h"

namespace gemmc {
namespace {
constexpr int64_t workspaceAlign = 256;
constexpr int64_t fewCtas = 330; ///< 2.5 for each SM of an H200.

/// Whether the product gains where its CTAs begin as places fall free. Two of them may end up on one SM where they fit
/// (511^3 4.3 -> 4.7 us); neighbours that share tiles of many k no longer ask for them together (189x4096x4480 16.4 ->
/// 21.0), but those of a cluster. With these rules 28 of 28 take 0.88 to 1.00 of the time (H200, 2026-11-27,
/// docs/hopper-l2.md, *Copies that let the product begin*); shifted lines have their own figures there.
bool mayBeginUnder(const tile::Kernel &kernel) {
  constexpr int64_t sharedOfSM = 228 * 1024, ofEachCta = 1024, fewK = 1024;
  const Expr &k = kernel.root.expr("k");
  const bool alone = 2 * (kernel.number("shared") + ofEachCta) > sharedOfSM;
  const bool together = kernel.root.number("cluster_k", 1) > 1 || (k.isConst() && k.constant() <= fewK);
  return (alone && together) || !kernel.shiftedTensors().empty();
}
} // namespace

Val CopyKernel::pointer(llvm::StringRef buffer) {
  std::string name = (buffer + "_ptr").str();
  addParam(function, info, {ptx::ParamInfo::Pointer, name, Type::u64, buffer.str(), 0});
  Val raw = b.reg(Type::b64, name), address = b.reg(Type::b64, (buffer + "_base").str());
  b("ld.param.u64", raw, at(b.symbol(name)));
  b("cvta.to.global.u64", address, raw);
  return address;
}

Val CopyKernel::value(const Expr &expr, Type type, const std::string &name) {
  if (expr.isConst())
    return expr.constant();
  bool wide = type == Type::b64;
  addParam(function, info, {ptx::ParamInfo::Int, name, wide ? Type::u64 : Type::u32, "", expr});
  Val reg = b.reg(type, name);
  b(wide ? "ld.param.u64" : "ld.param.u32", reg, at(b.symbol(name)));
  return reg;
}

Val CopyKernel::pick(Type type, llvm::StringRef name, llvm::function_ref<Expr(const CopySource &)> of) {
  auto valueOf = [&](const CopySource &source) { return value(of(source), type, source.buffer + "_" + name.str()); };
  if (sources.size() == 1)
    return valueOf(sources[0]);
  if (of(sources[0]) == of(sources[1]))
    return valueOf(sources[0]);
  Val mine = b.reg(type, name), first = valueOf(sources[0]), other = valueOf(sources[1]);
  b(type == Type::b64 ? "selp.b64" : "selp.b32", mine, other, first, second);
  return mine;
}

Val CopyKernel::pickOperand(const Val &cta, llvm::function_ref<Expr(const CopySource &)> ctasOf) {
  std::vector<Val> bases;
  for (const CopySource &source : sources)
    bases.push_back(pointer(source.buffer));
  if (sources.size() == 1)
    return ofProduct(bases[0]);
  Val ctas = value(ctasOf(sources[0]), Type::b32, sources[0].buffer + "_ctas");
  second = b.reg(Type::pred, "second");
  b("setp.ge.u32", second, cta, ctas);
  b.when(second)("sub.u32", cta, cta, ctas);
  Val base = b.reg(Type::b64, "base");
  b("selp.b64", base, bases[1], bases[0], second);
  return ofProduct(base);
}

/// The CTA's row says which product; an operand that all of them share is copied once.
Val CopyKernel::ofProduct(const Val &base) {
  if (info.grid[1].isConst(1))
    return base;
  Val row = b.reg(Type::b32, "row"), none = b.reg(Type::pred, "no_product"), address = b.reg(Type::b64, "matrix");
  product = b.reg(Type::b64, "product");
  b("mov.u32", row, b.special("%ctaid.y"));
  b("setp.ge.u32", none, row, pick(Type::b32, "products", [](const CopySource &s) { return s.products; }));
  b.when(none)("ret");
  b("cvt.u64.u32", product, row);
  b("mad.lo.u64", address, product, pick(Type::b64, "stride", [](const CopySource &s) { return s.stride; }), base);
  return address;
}

void CopyKernel::moveToProduct(const Val &place) {
  if (product.isReg())
    b("mad.lo.u64", place, product,
      pick(Type::b64, "packed_stride", [](const CopySource &s) { return s.packedStride; }), place);
}

void CopyKernel::overlap() {
  if (overlaps != CopyOverlaps::nobody)
    waitForKernelInFront(b);
  const Expr ctas = info.grid[0] * info.grid[1];
  if (overlaps == CopyOverlaps::both && ctas.isConst() && ctas.constant() <= fewCtas)
    b("griddepcontrol.launch_dependents");
}

void CopyKernel::configure(llvm::function_ref<Expr(const CopySource &)> ctasOf) {
  info.name = function.name;
  info.block = {threads, 1, 1};
  Expr rows = 1;
  for (const CopySource &source : sources)
    if (!source.products.isConst(1))
      rows = source.products;
  function.reqntid = {threads, 1, 1};
  for (const CopySource &source : sources)
    info.grid[0] = &source == &sources[0] ? ctasOf(source) : info.grid[0] + ctasOf(source);
  info.grid[1] = rows;
}

/// The copies lie behind what else the workspace has; the tensor maps of the product point there.
void Lowering::repackOperands() {
  std::vector<CopySource> straight, turned;
  const CopyOverlaps overlaps = !isDependent()          ? CopyOverlaps::nobody
                                : mayBeginUnder(kernel) ? CopyOverlaps::both
                                                        : CopyOverlaps::inFront;
  int64_t elementBytes = 1;
  for (const Op &op : kernel.body()) {
    if (op.kind != OpKind::Tensor || !op.has("repack"))
      continue;
    const bool turns = op.has("turn"), rows = (op.word("order") == "row") != turns;
    elementBytes = bytesOf(*parseElem(op.word("type")));
    CopySource source;
    source.buffer = op.word("buffer").str();
    source.lines = op.expr(rows ? "rows" : "cols");
    source.length = op.expr(rows ? "cols" : "rows") * elementBytes;
    source.pitch = op.expr("repack") * elementBytes;
    source.packedPitch = op.expr("ld") * elementBytes;
    source.offset = ceilDiv(result.workspace, workspaceAlign) * workspaceAlign;
    const Expr bytes = op.expr(rows == turns ? "cols" : "rows") * source.packedPitch;
    if (op.has("batch")) {
      source.products = products();
      source.stride = op.expr("batch") * elementBytes;
      source.packedStride = bytes;
    }
    result.workspace = source.offset + bytes * source.products;
    for (ptx::TensorMapInfo &map : result.kernel.maps)
      if (map.buffer == source.buffer) {
        map.buffer = "workspace";
        map.offset = source.offset;
      }
    (turns ? turned : straight).push_back(std::move(source));
  }
  auto copy = [&](std::vector<CopySource> sources, const char *suffix, auto emit) {
    if (sources.empty())
      return;
    ptx::Function &function = result.module.functions.emplace_back();
    function.name = kernel.name().str() + suffix;
    result.before.push_back(emit(function, std::move(sources), elementBytes, overlaps));
  };
  copy(std::move(straight), "_repack", emitRepack);
  copy(std::move(turned), "_turn", emitTurn);
}

} // namespace gemmc
