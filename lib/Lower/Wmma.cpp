// wmma (PTX ISA 9.7.14.4): whole fragments are loaded from shared memory, multiplied, and stored to shared memory.
// Which lane holds what is not known, so all of a fragment's registers are treated alike.
#include "Lowering.h"
#include "llvm/Support/FormatVariadic.h"

namespace gemmc {
namespace {

/// How a fragment is laid out in memory, in the instruction's words: k-major rows of A are rows, of B columns.
const char *orderOf(bool isA, bool kMajor) { return isA == kMajor ? "row" : "col"; }

/// Byte offset of (mn, k); both are where fragments begin. Packed elements lie along k, as many as a byte holds.
int64_t offsetOf(const SharedTile &tile, int64_t mn, int64_t k, Elem type) {
  k /= perByte(type);
  return tile.kMajor ? tile.offset(mn, k) : tile.offset(k, mn);
}

Type registerOf(Elem type) { return type == Elem::f64 ? Type::f64 : type == Elem::f32 ? Type::f32 : Type::b32; }

std::string shapeOf(const MatrixInstruction &matrix) {
  return llvm::formatv("m{0}n{1}k{2}", matrix.m, matrix.n, matrix.k);
}

/// Elements from one row (column) of a fragment to the next.
int64_t strideOf(const SharedTile &tile, Elem type) { return tile.pitch * 8 / bitsOf(type); }

std::vector<Val> part(const std::vector<Val> &regs, int64_t index, int64_t count) {
  return {regs.begin() + index * count, regs.begin() + (index + 1) * count};
}
} // namespace

AccumulatorView Lowering::wmmaAccumulator(const Op &op) {
  AccumulatorView view{matrix->accumulator, op.item("warp", 0), op.item("warp", 1), matrix->m, matrix->n, {}, {}, {}};
  int64_t perBlock = view.warpN / matrix->n * wmmaAccumulatorRegisters(*matrix);
  for (int64_t i = 0; i < view.warpM / matrix->m; ++i)
    view.regs.push_back(b.regs(registerOf(view.type), ("acc" + llvm::Twine(i) + "_").str(), perBlock));
  return view;
}

FragmentView Lowering::wmmaFragment(const Op &op) {
  bool isA = op.word("operand") == "a";
  int64_t extent = kernel.declaration(op.ref("of").name)->item("warp", isA ? 0 : 1);
  int64_t count = extent / (isA ? matrix->m : matrix->n) * wmmaOperandRegisters(*matrix, isA);
  FragmentView view;
  for (int64_t i = 0; i < op.number("buffers"); ++i)
    view.regs.push_back(b.regs(matrix->type == Elem::f64 ? Type::f64 : Type::b32,
                               (op.word("operand") + "frag" + llvm::Twine(i) + "_").str(), count));
  return view;
}

/// All fragments of one k step of the warp tile. Fragments begin at whole blocks and nothing is permuted, so the place
/// of a fragment is the place of the warp's first one plus a constant.
void Lowering::wmmaLoad(const Op &op) {
  const Op &fragment = *kernel.declaration(op.subject.name), &acc = *kernel.declaration(fragment.ref("of").name);
  bool isA = fragment.word("operand") == "a";
  const SharedView &shared = buffers.find(op.ref("from").name)->second;
  const SharedTile &tile = shared.tile;
  const auto &regs = fragments.find(op.subject.name)->second.regs[op.subject.index[0].constant()];
  int64_t extent = acc.item("warp", isA ? 0 : 1), lines = isA ? matrix->m : matrix->n,
          count = wmmaOperandRegisters(*matrix, isA);
  int64_t across = acc.item("tile", 1) / acc.item("warp", 1), sliceDepth = kernel.root.item("block", 2) / slices;

  Val place = isA ? divide(warpInSlice(), across, "warp_m") : remainder(warpInSlice(), across, "warp_n");
  if (acc.item("tile", isA ? 0 : 1) == extent)
    place = 0;
  Val start = stageAddress(shared, op.ref("from"), "from_" + op.ref("from").name);
  start = add(mul(place, offsetOf(tile, extent, 0, matrix->type), "warp_start"), start, "fragments");
  start = add(mul(slice(), offsetOf(tile, 0, sliceDepth, matrix->type), "slice_start"), start, "fragments");
  std::string mnemonic = std::string("wmma.load.") + (isA ? "a" : "b") + ".sync.aligned." + orderOf(isA, tile.kMajor) +
                         "." + shapeOf(*matrix) + ".shared." + nameOf(matrix->type).str();
  for (int64_t i = 0; i < extent / lines; ++i)
    b(mnemonic, part(regs, i, count), at(start, offsetOf(tile, i * lines, op.number("step") * matrix->k, matrix->type)),
      strideOf(tile, matrix->type));
}

void Lowering::wmmaMultiply(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  auto fragmentOf = [&](llvm::StringRef key) -> const std::vector<Val> & {
    return fragments.find(op.ref(key).name)->second.regs[op.ref(key).index[0].constant()];
  };
  auto kMajor = [&](llvm::StringRef key) {
    return buffers.find(kernel.declaration(op.ref(key).name)->ref("from").name)->second.tile.kMajor;
  };
  std::string type = nameOf(matrix->type).str(), sum = nameOf(matrix->accumulator).str();
  llvm::StringRef bits = kernel.root.word("bits");
  std::string types = matrix->type == Elem::f16 ? sum + "." + sum : sum + "." + type + "." + type + "." + sum;
  std::string mnemonic = (bits.empty() ? "wmma.mma.sync.aligned." : "wmma.mma." + bits.str() + ".popc.sync.aligned.") +
                         orderOf(true, kMajor("a")) + "." + orderOf(false, kMajor("b")) + "." + shapeOf(*matrix) + "." +
                         types;
  int64_t across = acc.warpN / matrix->n, perTile = wmmaAccumulatorRegisters(*matrix);
  bool snake = op.word("order", "snake") == "snake";
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t step = 0; step < across; ++step) {
      int64_t j = snake && i % 2 ? across - 1 - step : step; // back and forth: a B fragment is used twice in a row
      std::vector<Val> d = part(acc.regs[i], j, perTile);
      b(mnemonic, d, part(fragmentOf("a"), i, wmmaOperandRegisters(*matrix, true)),
        part(fragmentOf("b"), j, wmmaOperandRegisters(*matrix, false)), d);
    }
}

/// A fragment's registers hold the same elements of C as of the sums, whatever these are (9.7.14.4.1).
void Lowering::combine(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const SharedView &view = buffers.find(op.ref("c").name)->second;
  StagedTile from = warpTile(view, op.ref("c"), acc, *kernel.declaration(op.subject.name));
  Val alphaFactor = factorInRegister(fixedScale(op.word("alpha")), alpha, acc.type);
  Val betaFactor = factorInRegister(fixedScale(op.word("beta")), beta, acc.type);
  bool isF64 = acc.type == Elem::f64, isS32 = acc.type == Elem::s32;
  const char *fma = isF64 ? "fma.rn.f64" : isS32 ? "mad.lo.s32" : "fma.rn.f32";
  Val zero = isF64 ? Val(ptx::Operand::makeF64(0)) : isS32 ? Val(0) : Val(ptx::Operand::makeF32(0));
  bool scales = op.word("alpha") != "1";
  forEachFragment(from, acc, [&](const Val &address, const std::vector<Val> &sums, const std::string &form) {
    std::vector<Val> c = b.regs(registerOf(acc.type), "c", sums.size());
    b("wmma.load.c" + form, c, address, strideOf(from.tile, acc.type));
    for (size_t i = 0; i < sums.size(); ++i) {
      if (scales)
        b(fma, sums[i], sums[i], alphaFactor, zero);
      b(fma, sums[i], c[i], betaFactor, sums[i]);
    }
  });
}

void Lowering::forEachFragment(
    const StagedTile &to, const AccumulatorView &acc,
    llvm::function_ref<void(const Val &address, const std::vector<Val> &regs, const std::string &form)> visit) {
  bool byRow = to.tile.kMajor;
  auto place = [&](int64_t row, int64_t col) { return byRow ? to.tile.offset(row, col) : to.tile.offset(col, row); };
  Val start = add(mul(to.row0, place(1, 0), "warp_row"), mul(to.col0, place(0, 1), "warp_col"), "warp_start");
  start = add(start, to.address, "fragments");
  std::string form =
      std::string(".sync.aligned.") + (byRow ? "row." : "col.") + shapeOf(*matrix) + ".shared." + nameOf(to.type).str();
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t j = 0; j < acc.warpN / matrix->n; ++j)
      visit(at(start, place(i * matrix->m, j * matrix->n)), part(acc.regs[i], j, wmmaAccumulatorRegisters(*matrix)),
            form);
}

/// Stores the warp's accumulators into the tile of D at `to`.
void Lowering::wmmaStage(const StagedTile &to, const AccumulatorView &acc) {
  forEachFragment(to, acc, [&](const Val &address, const std::vector<Val> &regs, const std::string &form) {
    b("wmma.store.d" + form, address, regs, strideOf(to.tile, to.type));
  });
}

} // namespace gemmc
