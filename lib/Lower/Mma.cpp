#include "Lowering.h"

namespace gemmc {

void Lowering::zero(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  for (const auto &block : acc.regs)
    for (const Val &reg : block) {
      if (acc.half)
        b("mov.b32", reg, 0);
      else
        b("mov.f32", reg, Val(ptx::Operand::makeF32(0)));
    }
}

/// ldmatrix.x4 reads four 8x8 matrices, whose 32 row addresses the 32 lanes give. In the fragments of m16n8k16 (PTX ISA
/// 9.7.14.5.8) the four are
///
///     A: (m 0..7, k 0..7) (m 8..15, k 0..7) (m 0..7, k 8..15) (m 8..15, k 8..15)
///     B: (n 0..7, k 0..7) (n 0..7, k 8..15) (n 8..15, k 0..7) (n 8..15, k 8..15)        two n8 tiles
///
/// so lane l points into row l % 16 (chunk l / 16) where the matrices follow each other along the rows first, else into
/// row l % 8 + 8 * (l / 16) (chunk l / 8 % 2). Rows are mn for a k-major tile; for an mn-major one they are k, and
/// `.trans` turns each matrix.
void Lowering::load(const Op &op) {
  const Op &fragment = *kernel.declaration(op.subject.name);
  bool isA = fragment.word("operand") == "a";
  const SharedView &shared = buffers.find(op.ref("from").name)->second;
  const SharedTile &tile = shared.tile;
  const Op &acc = *kernel.declaration(fragment.ref("of").name);
  int64_t warpExtent = acc.item("warp", isA ? 0 : 1), step = op.number("step");
  int64_t warpsN = acc.item("tile", 1) / acc.item("warp", 1);
  const auto &regs = fragments.find(op.subject.name)->second.regs[op.subject.index[0].constant()];

  Val warpIndex = isA ? divide(warpInSlice(), warpsN, "warp_m") : remainder(warpInSlice(), warpsN, "warp_n");
  Val warpStart = mul(warpIndex, warpExtent, "warp_start");
  bool rowsFirst = isA == tile.kMajor;
  Val row, chunk;
  if (rowsFirst) {
    row = remainder(lane, 16, "lane_row");
    chunk = divide(lane, 16, "lane_chunk");
  } else {
    row = add(remainder(lane, 8, "lane_row"), mul(divide(lane, 16, "lane_half"), 8, "lane_half"), "lane_row");
    chunk = remainder(divide(lane, 8, "lane_eighth"), 2, "lane_chunk");
  }
  // Steps of 16 rows leave the XOR alone, so it depends on the lane only.
  Val key;
  if (tile.layout == SharedLayout::xor_)
    key = tile.pitch >= 128 ? remainder(row, 8, "key")
                            : remainder(divide(row, 128 / tile.pitch, "key"), tile.pitch / 16, "key");
  Val stage = stageAddress(shared, op.ref("from"), "from_" + op.ref("from").name);

  const char *mnemonic =
      tile.kMajor ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16" : "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16";
  for (int64_t i = 0; i < warpExtent / 16; ++i) {
    Val column = tile.kMajor ? add(chunk, 2 * step, "chunk")
                             : add(add(mul(warpIndex, warpExtent / 8, "warp_chunk"), 2 * i, "chunk"), chunk, "chunk");
    if (key.isReg())
      column = binary("xor.b32", inRegister(column, "chunk"), key, "chunk");
    Val fixed = tile.kMajor ? add(warpStart, row, "row") : row;
    Val offset = add(mul(fixed, tile.pitch, "row_bytes"), mul(column, 16, "chunk_bytes"), "lane_offset");
    Val address = add(offset, stage, "address");
    int64_t immediate = (tile.kMajor ? 16 * i : 16 * step) * tile.pitch;
    std::vector<Val> four(regs.begin() + 4 * i, regs.begin() + 4 * i + 4);
    b(mnemonic, four, at(address, immediate));
  }
}

void Lowering::mma(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const auto &a = fragments.find(op.ref("a").name)->second.regs[op.ref("a").index[0].constant()];
  const auto &bFrag = fragments.find(op.ref("b").name)->second.regs[op.ref("b").index[0].constant()];
  bool bf16 = tensors.find("A")->second.type == Elem::bf16;
  const char *mnemonic = bf16       ? "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
                         : acc.half ? "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
                                    : "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
  int64_t perTile = acc.half ? 2 : 4, tilesN = acc.warpN / 8;
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t step = 0; step < tilesN; ++step) {
      int64_t j = i % 2 ? tilesN - 1 - step : step; // back and forth: each B fragment is used twice in a row
      auto slice = [](const std::vector<Val> &regs, int64_t first, int64_t count) {
        return std::vector<Val>(regs.begin() + first, regs.begin() + first + count);
      };
      std::vector<Val> d = slice(acc.regs[i], j * perTile, perTile);
      b(mnemonic, d, slice(a, 4 * i, 4), slice(bFrag, 2 * j, 2), d);
    }
}

/// Pairs of neighbouring columns, as `store` finds them in the registers, into the tile of D at `to`.
void Lowering::mmaStage(const StagedTile &to, const AccumulatorView &acc) {
  const SharedTile &tile = to.tile;
  bool byRow = tile.kMajor;
  auto place = [&](int64_t row, int64_t col) { return byRow ? tile.offset(row, col) : tile.offset(col, row); };
  Val row = add(to.row0, divide(lane, 4, "lane_row"), "row");
  Val col = add(to.col0, mul(remainder(lane, 4, "lane_col"), 2, "lane_col"), "col");
  Val start = add(mul(row, place(1, 0), "row_bytes"), mul(col, place(0, 1), "col_bytes"), "lane_start");
  start = add(start, to.address, "staged");
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t j = 0; j < acc.warpN / 8; ++j) {
        int64_t first = place(i * acc.blockRows + 8 * h, 8 * j), second = first + place(0, 1);
        if (acc.half && byRow) {
          b("st.shared.b32", at(start, first), acc.regs[i][2 * j + h]);
        } else if (acc.half) {
          std::vector<Val> halves = b.regs(Type::b16, "half", 2);
          b("mov.b32", Val(halves), acc.regs[i][2 * j + h]);
          b("st.shared.b16", at(start, first), halves[0]);
          b("st.shared.b16", at(start, second), halves[1]);
        } else if (byRow) {
          b("st.shared.v2.f32", at(start, first),
            Val(std::vector<Val>{acc.regs[i][4 * j + 2 * h], acc.regs[i][4 * j + 2 * h + 1]}));
        } else {
          b("st.shared.f32", at(start, first), acc.regs[i][4 * j + 2 * h]);
          b("st.shared.f32", at(start, second), acc.regs[i][4 * j + 2 * h + 1]);
        }
      }
}

} // namespace gemmc
