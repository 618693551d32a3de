// wmma (PTX ISA 9.7.14.4): whole fragments are loaded from shared memory, multiplied, and stored to shared memory.
// Which lane holds what is not known, so all of a fragment's registers are treated alike.
#include "Lowering.h"

namespace gemmc {
namespace {

/// How a fragment is laid out in memory, in the instruction's words: k-major rows of A are rows, of B columns.
const char *orderOf(bool isA, bool kMajor) { return isA == kMajor ? "row" : "col"; }

/// Byte offset of (mn, k); both are where fragments begin.
int64_t offsetOf(const SharedTile &tile, int64_t mn, int64_t k) {
  return tile.kMajor ? tile.offset(mn, k) : tile.offset(k, mn);
}

/// Elements from one row (column) of a fragment to the next.
int64_t strideOf(const SharedTile &tile) { return tile.pitch / tile.elemBytes; }

std::vector<Val> part(const std::vector<Val> &regs, int64_t index, int64_t count) {
  return {regs.begin() + index * count, regs.begin() + (index + 1) * count};
}
} // namespace

void Lowering::declareWmma(const Op &op) {
  bool isAccumulator = op.kind == OpKind::Accumulator;
  if (!isAccumulator && op.kind != OpKind::Fragment)
    return;
  Elem type = isAccumulator ? wmma->accumulator : wmma->type;
  Type reg = type == Elem::f64 ? Type::f64 : type == Elem::f32 ? Type::f32 : Type::b32;
  if (isAccumulator) {
    AccumulatorView view{type == Elem::f16, op.item("warp", 0), op.item("warp", 1), wmma->m, {}, type};
    for (int64_t i = 0; i < view.warpM / wmma->m; ++i)
      view.regs.push_back(
          b.regs(reg, ("acc" + llvm::Twine(i) + "_").str(), view.warpN / wmma->n * wmma->accumulatorRegisters()));
    accumulators.try_emplace(op.subject.name, std::move(view));
    return;
  }
  bool isA = op.word("operand") == "a";
  int64_t extent = kernel.declaration(op.ref("of").name)->item("warp", isA ? 0 : 1);
  FragmentView view;
  for (int64_t i = 0; i < op.number("buffers"); ++i)
    view.regs.push_back(b.regs(reg, (op.word("operand") + "frag" + llvm::Twine(i) + "_").str(),
                               extent / (isA ? wmma->m : wmma->n) * wmma->operandRegisters(isA)));
  fragments.try_emplace(op.subject.name, std::move(view));
}

/// All fragments of one k step of the warp tile. Fragments begin at whole blocks and nothing is permuted, so the place
/// of a fragment is the place of the warp's first one plus a constant.
void Lowering::wmmaLoad(const Op &op) {
  const Op &fragment = *kernel.declaration(op.subject.name), &acc = *kernel.declaration(fragment.ref("of").name);
  bool isA = fragment.word("operand") == "a";
  const SharedView &shared = buffers.find(op.ref("from").name)->second;
  const SharedTile &tile = shared.tile;
  const auto &regs = fragments.find(op.subject.name)->second.regs[op.subject.index[0].constant()];
  int64_t extent = acc.item("warp", isA ? 0 : 1), lines = isA ? wmma->m : wmma->n, count = wmma->operandRegisters(isA);
  int64_t across = acc.item("tile", 1) / acc.item("warp", 1), sliceDepth = kernel.root.item("block", 2) / slices;

  Val place = isA ? divide(warpInSlice(), across, "warp_m") : remainder(warpInSlice(), across, "warp_n");
  if (acc.item("tile", isA ? 0 : 1) == extent)
    place = 0;
  Val start = stageAddress(shared, op.ref("from"), "from_" + op.ref("from").name);
  start = add(mul(place, offsetOf(tile, extent, 0), "warp_start"), start, "fragments");
  start = add(mul(slice(), offsetOf(tile, 0, sliceDepth), "slice_start"), start, "fragments");
  std::string mnemonic = std::string("wmma.load.") + (isA ? "a" : "b") + ".sync.aligned." + orderOf(isA, tile.kMajor) +
                         "." + wmma->shape() + ".shared." + nameOf(wmma->type).str();
  for (int64_t i = 0; i < extent / lines; ++i)
    b(mnemonic, part(regs, i, count), at(start, offsetOf(tile, i * lines, op.number("step") * wmma->k)),
      strideOf(tile));
}

void Lowering::wmmaMultiply(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  auto fragmentOf = [&](llvm::StringRef key) -> const std::vector<Val> & {
    return fragments.find(op.ref(key).name)->second.regs[op.ref(key).index[0].constant()];
  };
  auto kMajor = [&](llvm::StringRef key) {
    return buffers.find(kernel.declaration(op.ref(key).name)->ref("from").name)->second.tile.kMajor;
  };
  std::string type = nameOf(wmma->type).str(), sum = nameOf(wmma->accumulator).str();
  std::string types = wmma->type == Elem::f16 ? sum + "." + sum : sum + "." + type + "." + type + "." + sum;
  std::string mnemonic = std::string("wmma.mma.sync.aligned.") + orderOf(true, kMajor("a")) + "." +
                         orderOf(false, kMajor("b")) + "." + wmma->shape() + "." + types;
  int64_t across = acc.warpN / wmma->n, perTile = wmma->accumulatorRegisters();
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t step = 0; step < across; ++step) {
      int64_t j = i % 2 ? across - 1 - step : step; // back and forth: each B fragment is used twice in a row
      std::vector<Val> d = part(acc.regs[i], j, perTile);
      b(mnemonic, d, part(fragmentOf("a"), i, wmma->operandRegisters(true)),
        part(fragmentOf("b"), j, wmma->operandRegisters(false)), d);
    }
}

/// Stores the warp's accumulators into the tile of D at `to`.
void Lowering::wmmaStage(const StagedTile &to, const AccumulatorView &acc) {
  bool byRow = to.tile.kMajor;
  auto place = [&](int64_t row, int64_t col) { return byRow ? to.tile.offset(row, col) : to.tile.offset(col, row); };
  Val start = add(mul(to.row0, place(1, 0), "warp_row"), mul(to.col0, place(0, 1), "warp_col"), "warp_start");
  start = add(start, to.address, "fragments");
  std::string mnemonic = std::string("wmma.store.d.sync.aligned.") + (byRow ? "row." : "col.") + wmma->shape() +
                         ".shared." + nameOf(to.type).str();
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t j = 0; j < acc.warpN / wmma->n; ++j)
      b(mnemonic, at(start, place(i * wmma->m, j * wmma->n)), part(acc.regs[i], j, wmma->accumulatorRegisters()),
        strideOf(to.tile));
}

} // namespace gemmc
