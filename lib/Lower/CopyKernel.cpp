#include "CopyKernel.h"

namespace gemmc {
namespace {
constexpr int64_t workspaceAlign = 256;
}

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
    return bases[0];
  Val ctas = value(ctasOf(sources[0]), Type::b32, sources[0].buffer + "_ctas");
  second = b.reg(Type::pred, "second");
  b("setp.ge.u32", second, cta, ctas);
  b.when(second)("sub.u32", cta, cta, ctas);
  Val base = b.reg(Type::b64, "base");
  b("selp.b64", base, bases[1], bases[0], second);
  return base;
}

void CopyKernel::overlap() {
  if (overlaps != CopyOverlaps::nobody)
    waitForKernelInFront(b);
  if (overlaps == CopyOverlaps::both)
    b("griddepcontrol.launch_dependents");
}

void CopyKernel::configure(unsigned threads, llvm::function_ref<Expr(const CopySource &)> ctasOf) {
  info.name = function.name;
  info.block = {threads, 1, 1};
  function.reqntid = {threads, 1, 1};
  for (const CopySource &source : sources)
    info.grid[0] = &source == &sources[0] ? ctasOf(source) : info.grid[0] + ctasOf(source);
}

/// The copies lie behind what else the workspace has; the tensor maps of the product point there.
void Lowering::repackOperands() {
  std::vector<CopySource> straight, turned;
  // What the planner has copied beside lines that are shifted is the short operand; a spec may ask otherwise.
  const CopyOverlaps overlaps = !isDependent()                     ? CopyOverlaps::nobody
                                : !kernel.shiftedTensors().empty() ? CopyOverlaps::both
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
    result.workspace = source.offset + op.expr(rows == turns ? "cols" : "rows") * source.packedPitch;
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
