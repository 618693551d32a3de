// The epilogue of wgmma kernels through shared memory where D is in column order (so it is for a row-major D when the
// operands are swapped). A line of D then runs along m, of which a warp has 16 in a block and its warpgroup 64: the
// four warps stage a block together, one line for each column, and either write it in whole lines or give it to TMA.
//
//     staged     line n     | 16 rows of warp 0 | of warp 1 | of warp 2 | of warp 3 |    64 elements, 128B swizzle
#include "StagedSums.h"

namespace gemmc {
namespace {
constexpr int64_t blockRows = 64, spanBytes = 128;
constexpr int64_t bufferBytes = 4 * 16 * 128; ///< What the four warps have for one buffer.

/// Lines that `buffers` hold.
int64_t linesIn(int64_t buffers, int64_t elemBytes) { return buffers * bufferBytes / (blockRows * elemBytes); }

/// TMA takes a buffer at a time, while the next one is filled; lanes write all that there is room for.
constexpr int64_t buffersOfLanes = 2;

std::string turnedMap(llvm::StringRef buffer, int64_t lines) { return (buffer + "_lines" + llvm::Twine(lines)).str(); }
} // namespace

/// One for whole buffers and one for what is left of a warpgroup's columns, or of each share of them.
std::vector<ptx::TensorMapInfo> Lowering::turnedMaps(const Op &tensor) const {
  const Elem type = *parseElem(tensor.word("type"));
  const auto [owners, each, last] = storedColumns();
  const int64_t most = linesIn(1, bytesOf(type));
  std::vector<ptx::TensorMapInfo> maps;
  for (int64_t lines : {each >= most ? most : 0, each % most, last % most}) {
    auto isHere = [&](const ptx::TensorMapInfo &map) { return map.box[1] == lines; };
    if (!lines || llvm::any_of(maps, isHere))
      continue;
    ptx::TensorMapInfo map;
    map.name = turnedMap(tensor.word("buffer"), lines);
    map.buffer = tensor.word("buffer");
    map.type = type;
    map.dims = {tensor.expr("rows"), tensor.expr("cols")};
    map.strides = {tensor.expr("ld") * int64_t(bytesOf(type))};
    map.box = {spanBytes / bytesOf(type), lines};
    addProducts(tensor, map);
    map.swizzle = tmaSwizzle(SharedLayout::b128);
    maps.push_back(map);
  }
  return maps;
}

struct Lowering::TransposedStore : StagedSums {
  const Op &op;
  const TensorView &d;
  bool tma;
  Val row0, col0; ///< Of the warpgroup's first element, in D.
  Val slots;      ///< b32: its buffers.
  int64_t buffers;
  Val barrier;      ///< Of the warpgroup's threads.
  Val warpRow;      ///< Of the warp's first row, in a block.
  SharedTile whole; ///< What lies in a buffer.

  /// Columns of 64 rows, and where they are staged.
  struct Chunk {
    int64_t block, column, columns;
    Val slot;
  };

  TransposedStore(const StagedSums &sums, const Op &op, const TensorView &d, const Val &unit, const Val &row0,
                  const Val &col0, const Val &slots, int64_t buffers)
      : StagedSums(sums), op(op), d(d), tma(op.word("via") == "tma"), row0(row0), col0(col0), slots(slots),
        buffers(tma ? buffers : 1), barrier(l.add(unit, barriers::stores, "store_barrier")),
        warpRow(l.mul(l.remainder(l.warp, 4, "warp_in_group"), 16, "warp_row")),
        whole(linesIn(tma ? 1 : buffersOfLanes, bytesOf(type)), blockRows, true, bytesOf(type), SharedLayout::b128) {}

  int64_t elemBytes() const { return bytesOf(type); }
  Val rowOf(const Chunk &chunk) { return l.add(row0, chunk.block * blockRows, "row"); }
  Val colOf(const Chunk &chunk) { return l.add(col0, chunk.column, "col"); }
  void meet() { b("bar.sync", barrier, groupThreads); }

  /// stmatrix.trans (PTX ISA 9.7.14.5.16): its row l % 8 of matrix l / 8 is column l % 8 of the matrix. Matrices are
  /// halves 0 and 1 of column group j, then of j + 1.
  void stageHalves(const Chunk &chunk) {
    Val line = l.add(l.remainder(l.lane, 8, "lane_line"), l.mul(l.divide(l.lane, 16, "lane_group"), 8, "lane_line"),
                     "lane_line");
    Val half = l.remainder(l.divide(l.lane, 8, "lane_half"), 2, "lane_half");
    Val row = l.add(warpRow, l.mul(half, 8, "lane_row"), "lane_row");
    Val start = l.add(l.sharedOffset(whole, line, l.mul(row, elemBytes(), "lane_byte"), 16), chunk.slot, "lane_place");
    int64_t first = chunk.column / 8, groups = chunk.columns / 8;
    for (int64_t j = 0; j < groups; j += 2) {
      std::vector<Val> regs;
      for (int64_t part = 0; part < 4 && j + part / 2 < groups; ++part)
        regs.push_back(packed(chunk.block, first + j + part / 2, part % 2, fragmentOfC(j + part / 2, part % 2)));
      b(regs.size() == 4 ? "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
                         : "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        at(start, 8 * j * whole.pitch), Val(regs));
    }
  }

  /// Four lanes of a row write lines 0, 2, 4, 6 (then 1, 3, 5, 7) of a group: the swizzle parts their banks.
  void stageWords(const Chunk &chunk) {
    Val line = l.mul(l.remainder(l.lane, 4, "lane_pair"), 2, "lane_line"),
        row = l.add(warpRow, l.divide(l.lane, 4, "lane_row"), "row");
    int64_t first = chunk.column / 8, groups = chunk.columns / 8;
    std::vector<Pair> added;
    for (int64_t i = 0; fragmentsOfC && i < 2 * groups; ++i)
      added.push_back(widened(fragmentOfC(i / 2, i % 2)));
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t next = 0; next < 2; ++next) {
        Val byte = l.mul(l.add(row, 8 * h, "lane_row"), elemBytes(), "lane_byte");
        Val start =
            l.add(l.sharedOffset(whole, l.add(line, next, "lane_line"), byte, elemBytes()), chunk.slot, "lane_place");
        for (int64_t j = 0; j < groups; ++j) {
          auto [x, y] = sums(chunk.block, first + j, h);
          if (!added.empty())
            std::tie(x, y) = plus({x, y}, added[2 * j + h]);
          b(std::string("st.shared.") + word(), at(start, 8 * j * whole.pitch), next ? y : x);
        }
      }
  }

  /// A thread of the first warp gives the chunk to TMA, span by span; what lies beyond D's edges is left out.
  void sendByTma(const Chunk &chunk) {
    b("fence.proxy.async.shared::cta");
    meet();
    Val skip = b.label("others"), elected = b.reg(Type::pred, "elected");
    Val other = b.reg(Type::pred, "other_warp");
    b("setp.ne.u32", other, l.inRegister(warpRow, "warp_row"), 0);
    b.when(other)("bra", skip);
    b("elect.sync", ptx::pair(b.sink(), elected), -1);
    Val map = l.variables[turnedMap(d.buffer, chunk.columns)], y = l.inRegister(colOf(chunk), "y");
    for (int64_t span = 0; span < whole.spans; ++span) {
      const std::vector<Val> box = l.boxAt(d, l.add(rowOf(chunk), span * whole.spanElems(), "x"), y);
      b.when(elected)(storeBox(box), at(map, 0, box), at(chunk.slot, span * whole.spanStride()));
    }
    b.when(elected)("cp.async.bulk.commit_group");
    b.place(skip);
  }

  void sendByLanes(const Chunk &chunk) {
    meet();
    Val thread = l.binary("and.b32", l.tid, groupThreads - 1, "group_thread");
    l.copyOut(op, {whole, chunk.columns, blockRows, type, finished, chunk.slot, thread, groupThreads, rowOf(chunk),
                   colOf(chunk)});
  }

  /// Before chunk `number` of the `chunks` of a tile is staged: whoever read it has finished. Bulk groups finish in
  /// order, and only the lane that committed one waits for it.
  void reuse(int64_t number, int64_t chunks) {
    if (tma)
      b("cp.async.bulk.wait_group.read", number == 0 && chunks % buffers != 0 ? 0 : buffers - 1);
    meet();
  }

  void stage(const Chunk &chunk) {
    elemBytes() == 2 ? stageHalves(chunk) : stageWords(chunk);
    if (fragmentsOfC)
      fragmentsOfC->staged();
  }

  void run() {
    std::vector<Chunk> chunks;
    for (int64_t block = 0; block < int64_t(acc.regs.size()); ++block)
      for (int64_t column = 0; column < acc.warpN; column += whole.rows)
        chunks.push_back({block, column, std::min(whole.rows, acc.warpN - column),
                          l.add(slots, int64_t(chunks.size()) % buffers * bufferBytes, "slot")});
    std::vector<FragmentsOfC::Piece> pieces;
    for (const Chunk &chunk : chunks)
      pieces.push_back({chunk.block * blockRows, chunk.column, chunk.columns});
    if (fragmentsOfC)
      fragmentsOfC->begin(l.add(row0, warpRow, "row"), col0, std::move(pieces));
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (op.has("block") && op.number("block") != chunks[i].block)
        continue;
      reuse(int64_t(i), int64_t(chunks.size()));
      stage(chunks[i]);
      tma ? sendByTma(chunks[i]) : sendByLanes(chunks[i]);
    }
  }
};

void Lowering::storeTransposed(const Op &op, StagedSums &sums, const Val &unit, const Val &row0, const Val &col0,
                               const Val &slots) {
  const TensorView &d = tensors.find(op.subject.name)->second;
  TransposedStore(sums, op, d, unit, row0, col0, slots, kernel.number("store_buffers")).run();
}

} // namespace gemmc
