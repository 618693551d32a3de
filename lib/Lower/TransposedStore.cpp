// The epilogue of wgmma kernels through shared memory where D is in column order (so it is for a row-major D when the
// operands are swapped). A line of D then runs along m, of which a warp has 16 in a block and its warpgroup 64: the
// four warps stage a block together, one line for each column, and write it in whole lines.
//
//     staged     line n     | 16 rows of warp 0 | of warp 1 | of warp 2 | of warp 3 |    64 elements, 128B swizzle
#include "StagedSums.h"

namespace gemmc {
namespace {
constexpr int64_t blockRows = 64, groupThreads = 128, groupBytes = 16 * 1024, firstBarrier = 3;

struct Columns {
  int64_t block, first, count; ///< Which 64 rows; which columns.
};
} // namespace

void Lowering::storeTransposed(const Op &op, StagedSums &sums, const Val &row0, const Val &col0, const Val &slots) {
  const AccumulatorView &acc = sums.acc;
  const int64_t elemBytes = bytesOf(sums.type), most = groupBytes / (blockRows * elemBytes);
  const Val group = variables.count("wg") ? variables["wg"] : divide(warp, 4, "wg");
  const Val barrier = add(group, firstBarrier, "store_barrier");
  const Val warpRow = mul(remainder(warp, 4, "warp_in_group"), 16, "warp_row");
  const SharedTile whole(most, blockRows, true, elemBytes, SharedLayout::b128);

  /// stmatrix.trans (PTX ISA 9.7.14.5.16): its row l % 8 of matrix l / 8 is column l % 8 of the matrix. Matrices are
  /// halves 0 and 1 of column group j, then of j + 1.
  auto stageHalves = [&](const Columns &columns) {
    Val line = add(remainder(lane, 8, "lane_line"), mul(divide(lane, 16, "lane_group"), 8, "lane_line"), "lane_line");
    Val half = remainder(divide(lane, 8, "lane_half"), 2, "lane_half");
    Val row = add(warpRow, mul(half, 8, "lane_row"), "lane_row");
    Val start = add(sharedOffset(whole, line, mul(row, elemBytes, "lane_byte"), 16), slots, "lane_place");
    int64_t first = columns.first / 8, groups = columns.count / 8;
    for (int64_t j = 0; j < groups; j += 2) {
      std::vector<Val> regs;
      for (int64_t part = 0; part < 4 && j + part / 2 < groups; ++part)
        regs.push_back(sums.packed(columns.block, first + j + part / 2, part % 2));
      b(regs.size() == 4 ? "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
                         : "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        at(start, 8 * j * whole.pitch), Val(regs));
    }
  };
  /// Four lanes of a row write lines 0, 2, 4, 6 (then 1, 3, 5, 7) of a group: the swizzle parts their banks.
  auto stageWords = [&](const Columns &columns) {
    Val line = mul(remainder(lane, 4, "lane_pair"), 2, "lane_line"),
        row = add(warpRow, divide(lane, 4, "lane_row"), "row");
    int64_t first = columns.first / 8, groups = columns.count / 8;
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t next = 0; next < 2; ++next) {
        Val byte = mul(add(row, 8 * h, "lane_row"), elemBytes, "lane_byte");
        Val start = add(sharedOffset(whole, add(line, next, "lane_line"), byte, elemBytes), slots, "lane_place");
        for (int64_t j = 0; j < groups; ++j) {
          auto [x, y] = sums.sums(columns.block, first + j, h);
          b("st.shared.f32", at(start, 8 * j * whole.pitch), next ? y : x);
        }
      }
  };

  Val thread = binary("and.b32", tid, groupThreads - 1, "group_thread");
  for (int64_t block = 0; block < int64_t(acc.regs.size()); ++block)
    for (int64_t first = 0; first < acc.warpN; first += most) {
      Columns columns{block, first, std::min(most, acc.warpN - first)};
      b("bar.sync", barrier, groupThreads); // what was staged before has been read
      elemBytes == 2 ? stageHalves(columns) : stageWords(columns);
      b("bar.sync", barrier, groupThreads);
      copyOut(op, {whole, columns.count, blockRows, sums.type, sums.finished, slots, thread, groupThreads,
                   add(row0, block * blockRows, "row"), add(col0, first, "col")});
    }
}

} // namespace gemmc
