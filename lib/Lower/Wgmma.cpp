#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t stepK = 16, rowsPerInstruction = 64;

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

void Lowering::wgmma(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const SharedView &a = buffers.find(op.ref("a").name)->second, &bView = buffers.find(op.ref("b").name)->second;
  const Op &decl = *kernel.declaration(op.subject.name);
  int64_t groupsN = decl.item("tile", 1) / acc.warpN, groupsM = decl.item("tile", 0) / acc.warpM;
  Val wg = variables.count("wg") ? variables["wg"] : divide(warp, 4, "wg");
  Val groupM = groupsM > 1 ? divide(wg, groupsN, "group_m") : Val(0);
  Val groupN = groupsN > 1 ? remainder(wg, groupsN, "group_n") : Val(0);

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
  Val descA = descriptor(a, op.ref("a"), groupM, acc.warpM, "desc_a");
  Val descB = descriptor(bView, op.ref("b"), groupN, acc.warpN, "desc_b");

  const TensorView &tensor = tensors.find("A")->second;
  std::string type = nameOf(tensor.type).str();
  std::string mnemonic = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(acc.warpN) + "k16." +
                         (acc.half() ? "f16." : "f32.") + type + "." + type;
  Val accumulate = b.reg(Type::pred, "accumulate");
  bool adds = op.word("accumulate") == "yes";
  if (op.word("accumulate") == "later")
    b("setp.ne.u32", accumulate, variables["kt"], 0);
  else
    b("setp.ne.u32", accumulate, adds ? 1 : 0, 0);

  b("wgmma.fence.sync.aligned");
  int64_t steps = kernel.root.item("block", 2) / stepK;
  for (int64_t step = 0; step < steps; ++step) {
    Val keep = accumulate;
    if (step > 0 && !adds) {
      keep = b.reg(Type::pred, "accumulate");
      b("setp.ne.u32", keep, 1, 0);
    }
    for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i) {
      int64_t shiftA = offsetOf(a.tile, rowsPerInstruction * i, stepK * step) >> 4;
      int64_t shiftB = offsetOf(bView.tile, 0, stepK * step) >> 4;
      Val stepA = add64(descA, shiftA, "desc_a"), stepB = add64(descB, shiftB, "desc_b");
      b(mnemonic, acc.regs[i], stepA, stepB, keep, 1, 1, a.tile.kMajor ? 0 : 1, bView.tile.kMajor ? 0 : 1);
    }
  }
  b("wgmma.commit_group.sync.aligned");
}

} // namespace gemmc
