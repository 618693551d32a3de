#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t rowsPerInstruction = 64;

/// Bits 62 and 63 of a matrix descriptor (PTX ISA 9.7.15.5.1.2.2).
uint64_t modeOf(SharedLayout layout) {
  switch (layout) {
  case SharedLayout::b128:
    return 1;
  case SharedLayout::b64:
    return 2;
  case SharedLayout::b32:
    return 3;
  default:
    return 0;
  }
}
} // namespace

/// Everything of a descriptor but the start address. An atom is eight rows of one span:
///
///                 K-major                                MN-major
///     swizzled    SBO = atom to atom along mn            LBO = span to span along mn, SBO = atom to atom along k
///     none        SBO = atom to atom along mn,           SBO = span to span along mn, LBO = atom to atom along k
///                 LBO = span to span along k
uint64_t Lowering::descriptorBits(const SharedView &shared) const {
  const SharedTile &tile = shared.tile;
  int64_t atom = 8 * tile.pitch, span = tile.spanStride();
  bool swizzled = tile.layout != SharedLayout::none;
  int64_t leading = span, stride = atom;
  if (tile.kMajor && swizzled)
    leading = 16; // not used
  if (!tile.kMajor && !swizzled)
    std::swap(leading, stride);
  return uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | modeOf(tile.layout) << 62;
}

Val Lowering::groupAlong(const Op &acc, bool m) {
  int64_t groupsN = acc.item("tile", 1) / acc.item("warp", 1), groupsM = acc.item("tile", 0) / acc.item("warp", 0);
  Val wg = variables.count("wg") ? variables["wg"] : divide(warp, 4, "wg");
  if (m)
    return groupsM > 1 ? divide(wg, groupsN, "group_m") : Val(0);
  return groupsN > 1 ? remainder(wg, groupsN, "group_n") : Val(0);
}

/// One k step of A into registers: of each 64 rows a warp holds 16, as the A fragment of m16n8k16 (PTX ISA
/// 9.7.15.5.1.1). Lane l points into row l % 16 and k chunk l / 16 of a k-major tile; where m is contiguous rows are k,
/// and `.trans` turns each 8 x 8 matrix.
void Lowering::loadForWgmma(const Op &op) {
  const SharedView &shared = buffers.find(op.ref("from").name)->second;
  const SharedTile &tile = shared.tile;
  const Op &acc = *kernel.declaration(kernel.declaration(op.subject.name)->ref("of").name);
  const auto &regs = fragments.find(op.subject.name)->second.regs[op.subject.index[0].constant()];
  int64_t step = op.number("step"), stepK = wgmmaDepthBytes / tile.elemBytes;
  Val start = mul(groupAlong(acc, true), acc.item("warp", 0), "group_row");
  start = add(start, mul(remainder(warp, 4, "warp_in_group"), 16, "warp_row"), "warp_row");
  Val stage = stageAddress(shared, op.ref("from"), "from_sA");
  if (op.word("via") == "lds")
    return loadTurned(tile, start, stage, regs, step);
  Val row16 = remainder(lane, 16, "lane_row"), half = divide(lane, 16, "lane_half");
  Val row8 = add(remainder(lane, 8, "lane_row"), mul(half, 8, "lane_half"), "lane_row");
  Val eighth = remainder(divide(lane, 8, "lane_eighth"), 2, "lane_eighth");
  for (int64_t i = 0; i < int64_t(regs.size()) / 4; ++i) {
    Val m = add(start, rowsPerInstruction * i, "m");
    Val row = tile.kMajor ? add(m, row16, "row") : add(row8, stepK * step, "row");
    Val byte = tile.kMajor ? add(mul(half, 16, "chunk"), stepK * step * tile.elemBytes, "byte")
                           : add(mul(m, tile.elemBytes, "byte"), mul(eighth, 16, "chunk"), "byte");
    Val address = add(sharedOffset(tile, row, byte, 16), stage, "address");
    std::vector<Val> four(regs.begin() + 4 * i, regs.begin() + 4 * i + 4);
    b(tile.kMajor ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16" : "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", four,
      at(address));
  }
}

/// One k step of A of 32-bit elements whose m is contiguous: rows of shared memory are k, and of each 64 rows of A a
/// warp holds 16 as mma.sync does (PTX ISA 9.7.15.5.1.1), lane 4g + j rows g and g + 8 at k of j and j + 4. In one load
/// all lanes of even j read k of j and those of odd j read j + 4, in the next one the others: the swizzle has rows k of
/// 0, 5, 2, 7 in eight different groups of four banks, those of 0 to 3 in four.
void Lowering::loadTurned(const SharedTile &tile, const Val &start, const Val &stage, const std::vector<Val> &regs,
                          int64_t step) {
  const MatrixInstruction &like = *findInstruction(matrixInstructions(), 16, 8, 8, Elem::tf32, Elem::f32);
  const FragmentMap map = fragmentMap(like, MatrixRole::a);
  const Val inGroup = laneSum(map.depth, "lane_k"), group = laneSum(map.line, "lane_row");
  const int64_t half = map.registers[2].depth; // of two registers with the same rows
  const Val odd = remainder(lane, 2, "lane_odd"), skip = mul(odd, half, "lane_skip");
  const Val swaps = b.reg(Type::pred, "lane_swaps");
  b("setp.ne.u32", swaps, odd, 0);
  const Val first = add(inGroup, skip, "k"), second = binary("xor.b32", inRegister(first, "k"), half, "k");
  auto addressOf = [&](const Val &k, int64_t row) {
    const Val byte = mul(add(add(start, group, "row"), row, "row"), tile.elemBytes, "row_byte");
    return add(sharedOffset(tile, k, byte, 4), stage, "address");
  };
  const int64_t lower = map.registers[1].line;
  const Val places[2][2] = {{addressOf(first, 0), addressOf(second, 0)},
                            {addressOf(first, lower), addressOf(second, lower)}};
  for (size_t i = 0; i < regs.size() / 4; ++i)
    for (int64_t row : {0, 1}) {
      const int64_t in = tile.offset(like.k * step, rowsPerInstruction * int64_t(i));
      const Val one = b.reg(Type::b32, "element"), other = b.reg(Type::b32, "element");
      b("ld.shared.b32", one, at(places[row][0], in));
      b("ld.shared.b32", other, at(places[row][1], in));
      b("selp.b32", regs[4 * i + row], other, one, swaps);
      b("selp.b32", regs[4 * i + row + 2], one, other, swaps);
    }
}

/// What a stage's products sum up to is added to the sums so far.
void Lowering::promote(const Op &op) {
  const AccumulatorView &to = accumulators.find(op.subject.name)->second,
                        &from = accumulators.find(op.ref("from").name)->second;
  const SumWords words = sumWords(to.type);
  for (const auto &[sums, parts] : llvm::zip_equal(to.regs, from.regs))
    for (const auto &[sum, part] : llvm::zip_equal(sums, parts))
      b(words.add, sum, sum, part);
}

void Lowering::wgmma(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const Op &decl = *kernel.declaration(op.subject.name);
  auto fragment = fragments.find(op.ref("a").name);
  bool fromRegisters = fragment != fragments.end();
  const SharedView &a = buffers.find(fromRegisters ? "sA" : op.ref("a").name)->second;
  const SharedView &bView = buffers.find(op.ref("b").name)->second;
  Val groupM = groupAlong(decl, true), groupN = groupAlong(decl, false);

  // Byte offset of (mn, k) inside a stage; both multiples of what keeps the swizzle's phase.
  auto offsetOf = [](const SharedTile &tile, int64_t mn, int64_t k) {
    int64_t row = tile.kMajor ? mn : k, byte = (tile.kMajor ? k : mn) * tile.elemBytes;
    return byte / tile.spanBytes * tile.spanStride() + row * tile.pitch + byte % tile.spanBytes;
  };
  auto descriptor = [&](const SharedView &view, const tile::Ref &ref, const Val &group, int64_t extent,
                        const char *name) {
    Val start = stageAddress(view, ref, name);
    start = add(start, mul(group, offsetOf(view.tile, extent, 0), name), name);
    // Bits 4 to 17 of the address: a CTA's own addresses may carry its rank in the cluster above them.
    Val low = b.reg(Type::b32, name), full = b.reg(Type::b64, name);
    b("bfe.u32", low, start, 4, 14);
    b("cvt.u64.u32", full, low);
    b("or.b64", full, full, int64_t(descriptorBits(view)));
    return full;
  };
  Val descA = fromRegisters ? Val(0) : descriptor(a, op.ref("a"), groupM, acc.warpM, "desc_a");
  Val descB = descriptor(bView, op.ref("b"), groupN, acc.warpN, "desc_b");

  const TensorView &tensor = tensors.find("A")->second;
  const int64_t stepK = wgmmaDepthBytes / tensor.elemBytes();
  const std::string type = nameOf(tensor.type).str();
  const std::string mnemonic = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(acc.warpN) + "k" +
                               std::to_string(stepK) + "." + nameOf(acc.type).str() + "." + type + "." + type;
  Val accumulate = b.reg(Type::pred, "accumulate");
  bool adds = op.word("accumulate") == "yes";
  if (op.word("accumulate") == "later")
    b("setp.ne.u32", accumulate, variables["kt"], 0);
  else
    b("setp.ne.u32", accumulate, adds ? 1 : 0, 0);

  llvm::StringRef negate = op.word("negate");
  int64_t signA = negate.contains('a') ? -1 : 1, signB = negate.contains('b') ? -1 : 1;
  // What follows the operands: integers have no signs, and only 16 bits may have m or n contiguous (PTX
  // ISA 9.7.15.5.2).
  auto multiply = [&](const std::vector<Val> &sums, const Val &left, const Val &right, const Val &keep, bool turnsA) {
    if (isInteger(tensor.type))
      b(mnemonic, sums, left, right, keep);
    else if (tensor.elemBytes() != 2)
      b(mnemonic, sums, left, right, keep, signA, signB);
    else if (fromRegisters)
      b(mnemonic, sums, left, right, keep, signA, signB, bView.tile.kMajor ? 0 : 1);
    else
      b(mnemonic, sums, left, right, keep, signA, signB, turnsA ? 1 : 0, bView.tile.kMajor ? 0 : 1);
  };
  b("wgmma.fence.sync.aligned");
  const int64_t begin = fromRegisters ? op.ref("a").index[0].constant() : 0;
  const int64_t end = begin + op.number("steps", kernel.root.item("block", 2) / stepK);
  for (int64_t step = begin; step < end; ++step) {
    Val keep = accumulate;
    if (step > begin && !adds) {
      keep = b.reg(Type::pred, "accumulate");
      b("setp.ne.u32", keep, 1, 0);
    }
    for (int64_t i = op.number("block", 0); i <= op.number("block", int64_t(acc.regs.size()) - 1); ++i) {
      int64_t shiftA = offsetOf(a.tile, rowsPerInstruction * i, stepK * step) >> 4;
      int64_t shiftB = offsetOf(bView.tile, 0, stepK * step) >> 4;
      Val stepB = add64(descB, shiftB, "desc_b");
      if (fromRegisters) {
        const auto &regs = fragment->second.regs[step];
        std::vector<Val> four(regs.begin() + 4 * i, regs.begin() + 4 * i + 4);
        multiply(acc.regs[i], four, stepB, keep, false);
        continue;
      }
      Val stepA = add64(descA, shiftA, "desc_a");
      multiply(acc.regs[i], stepA, stepB, keep, !a.tile.kMajor);
    }
  }
  b("wgmma.commit_group.sync.aligned");
}

} // namespace gemmc
