// The epilogue of wgmma kernels through shared memory. A warp holds 16 rows of each 64-row block of its warpgroup's
// tile; it stages 16 lines of up to 128 bytes at a time in buffers of its own, so that no warp waits for another one.
#include "StagedSums.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
constexpr int64_t lines = 16, lineBytes = 128, bufferBytes = lines * lineBytes;

SharedLayout layoutOf(int64_t bytes) {
  switch (bytes) {
  case 128:
    return SharedLayout::b128;
  case 64:
    return SharedLayout::b64;
  case 32:
    return SharedLayout::b32;
  default:
    return SharedLayout::none;
  }
}
std::string mapName(llvm::StringRef buffer, int64_t bytes) { return (buffer + "_map" + llvm::Twine(bytes)).str(); }
} // namespace

/// Lines are cut into whole swizzled spans: 128 bytes while there are as many, then 64, 32, 16.
std::vector<Lowering::LinePiece> Lowering::linePieces(int64_t columns, int64_t elemBytes) {
  std::vector<LinePiece> pieces;
  int64_t at = 0, end = columns * elemBytes;
  for (int64_t bytes = lineBytes; bytes >= 16; bytes /= 2)
    for (; end - at >= bytes; at += bytes)
      pieces.push_back({at / elemBytes, bytes / elemBytes, bytes});
  return pieces;
}

/// A tensor map of D for each width of a piece, 16 rows high.
std::vector<ptx::TensorMapInfo> Lowering::storeMaps(const Op &store) const {
  const Op &d = *kernel.declaration(store.subject.name), &acc = *kernel.declaration(store.ref("from").name);
  Elem type = *parseElem(d.word("type"));
  std::vector<ptx::TensorMapInfo> maps;
  for (const LinePiece &piece : linePieces(storedColumns(acc), bytesOf(type))) {
    std::string name = mapName(d.word("buffer"), piece.bytes);
    if (!maps.empty() && maps.back().name == name)
      continue;
    ptx::TensorMapInfo map;
    map.name = name;
    map.buffer = d.word("buffer").str();
    map.type = type;
    map.dims = {d.expr("cols"), d.expr("rows")};
    map.strides = {d.expr("ld") * int64_t(bytesOf(type))};
    map.box = {uint32_t(piece.columns), uint32_t(lines)};
    map.swizzle = tmaSwizzle(layoutOf(piece.bytes));
    maps.push_back(map);
  }
  return maps;
}

struct Lowering::WarpStore : StagedSums {
  const Op &op;
  const TensorView &d;
  bool tma;
  Val row0, col0; ///< Of the warp's first element, in D.
  Val slots;      ///< b32: the warp's buffers.
  int64_t buffers;

  /// One piece of 16 lines: which sums, and where it is staged.
  struct Chunk {
    int64_t block;
    LinePiece piece;
    Val slot;
  };

  int64_t elemBytes() const { return bytesOf(type); }
  SharedTile tileOf(const LinePiece &piece) const {
    return SharedTile(lines, piece.columns, true, elemBytes(), layoutOf(piece.bytes));
  }
  /// The lane's row xor of a tile, for row `row`.
  Val keyOf(const SharedTile &tile, const Val &row) {
    if (tile.layout == SharedLayout::none)
      return 0;
    Val line = tile.pitch >= lineBytes ? row : l.divide(row, lineBytes / tile.pitch, "key");
    return l.remainder(line, tile.pitch / 16, "key");
  }
  Val xored(const Val &a, const Val &c, llvm::StringRef name) {
    if (a.isImm() && c.isImm())
      return a.op.imm ^ c.op.imm;
    if (a.isImm(0) || c.isImm(0))
      return a.isImm(0) ? c : a;
    return a.isImm() ? l.binary("xor.b32", c, a, name) : l.binary("xor.b32", a, c, name);
  }

  // Registers to shared memory ---------------------------------------------------------------------------------------

  /// stmatrix.x4: lane l points at row l % 16 of column group l / 16. Eight rows of one group lie in different banks,
  /// as the swizzle sees to it.
  void stageHalves(const Chunk &chunk) {
    SharedTile tile = tileOf(chunk.piece);
    Val row = l.remainder(l.lane, lines, "lane_row");
    Val group = xored(l.divide(l.lane, lines, "lane_group"), keyOf(tile, row), "lane_chunk");
    Val start = l.add(l.mul(row, tile.pitch, "lane_line"), l.mul(group, 16, "lane_chunk"), "lane_place");
    start = l.add(start, chunk.slot, "lane_place");
    int64_t first = chunk.piece.column / 8, groups = chunk.piece.columns / 8;
    for (int64_t j = 0; j < groups; j += 2) {
      std::vector<Val> regs;
      for (int64_t part = 0; part < 4 && j + part / 2 < groups; ++part)
        regs.push_back(packed(chunk.block, first + j + part / 2, part % 2));
      const char *mnemonic =
          regs.size() == 4 ? "stmatrix.sync.aligned.m8n8.x4.shared.b16" : "stmatrix.sync.aligned.m8n8.x2.shared.b16";
      b(mnemonic, at(xored(start, 16 * j, "place")), Val(regs));
    }
  }

  /// Words: 16 lanes write four rows of 32 bytes at a time. The swizzle leaves some of these rows on each other's
  /// banks; their lanes take another column group first (`turned`), which parts them.
  void stageWords(const Chunk &chunk) {
    SharedTile tile = tileOf(chunk.piece);
    int64_t groups = chunk.piece.columns / 8, first = chunk.piece.column / 8, turn = groups / 2;
    Val row = l.divide(l.lane, 4, "lane_row"), lanePair = l.divide(l.remainder(l.lane, 4, "lane_pair"), 2, "lane_pair");
    Val group = xored(lanePair, keyOf(tile, row), "lane_chunk");
    Val turned;
    if (turn) {
      Val odd = l.remainder(groups == 4 ? row : l.divide(row, 2, "lane_turn"), 2, "lane_turn");
      turned = b.reg(Type::pred, "turned");
      b("setp.ne.u32", turned, odd, 0);
      group = xored(group, l.mul(odd, 2 * turn, "lane_turn"), "lane_chunk");
    }
    Val start = l.add(l.mul(row, tile.pitch, "lane_line"), l.mul(group, 16, "lane_chunk"), "lane_place");
    start = l.add(start, l.mul(l.remainder(l.lane, 2, "lane_half"), 8, "lane_half"), "lane_place");
    start = l.add(start, chunk.slot, "lane_place");
    for (int64_t h = 0; h < 2; ++h) {
      std::vector<std::pair<Val, Val>> pairs;
      for (int64_t j = 0; j < groups; ++j)
        pairs.push_back(sums(chunk.block, first + j, h));
      for (int64_t j = 0; j < groups; ++j) {
        std::vector<Val> two{pairs[j].first, pairs[j].second};
        if (turn) {
          two = b.regs(Type::f32, "turn", 2);
          b("selp.f32", two[0], pairs[j ^ turn].first, pairs[j].first, turned);
          b("selp.f32", two[1], pairs[j ^ turn].second, pairs[j].second, turned);
        }
        b("st.shared.v2.f32", at(xored(start, 32 * j, "place"), 8 * h * tile.pitch), Val(two));
      }
    }
  }

  void stage(const Chunk &chunk) { elemBytes() == 2 ? stageHalves(chunk) : stageWords(chunk); }

  // Shared memory to D -----------------------------------------------------------------------------------------------

  void warpSync() { b("bar.warp.sync", -1); }

  Val rowOf(const Chunk &chunk) { return l.add(row0, chunk.block * acc.blockRows, "row"); }
  Val colOf(const Chunk &chunk) { return l.add(col0, chunk.piece.column, "col"); }

  /// One lane gives the piece to TMA, which leaves out what lies beyond D's edges.
  void sendByTma(const Chunk &chunk) {
    b("fence.proxy.async.shared::cta");
    warpSync();
    Val elected = b.reg(Type::pred, "elected");
    b("elect.sync", ptx::pair(b.sink(), elected), -1);
    Val map = l.variables[mapName(d.buffer, chunk.piece.bytes)];
    Val x = l.inRegister(colOf(chunk), "x"), y = l.inRegister(rowOf(chunk), "y");
    Val coords[] = {x, y};
    b.when(elected)("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", at(map, 0, coords), at(chunk.slot));
    b.when(elected)("cp.async.bulk.commit_group");
  }

  /// All lanes write lines, up to 16 bytes at a time.
  void sendByLanes(const Chunk &chunk) {
    warpSync();
    l.copyOut(op, {tileOf(chunk.piece), lines, chunk.piece.columns, type, finished, chunk.slot, l.lane, 32,
                   rowOf(chunk), colOf(chunk)});
  }

  /// Before buffer number `chunk` of a tile is written: whoever read it has finished. Bulk groups finish in order, and
  /// only the lane that committed one waits for it.
  void reuse(int64_t number, int64_t chunks) {
    if (!tma) {
      if (number == 0)
        warpSync();
      return;
    }
    bool inTurn = chunks % buffers == 0; // tile after tile
    b("cp.async.bulk.wait_group.read", number == 0 && !inTurn ? 0 : buffers - 1);
    warpSync();
  }

  void run() {
    std::vector<Chunk> chunks;
    for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
      for (const LinePiece &piece : linePieces(acc.warpN, elemBytes())) {
        int64_t buffer = int64_t(chunks.size()) % buffers;
        chunks.push_back({i, piece, l.add(slots, buffer * bufferBytes, "slot")});
      }
    for (size_t i = 0; i < chunks.size(); ++i) {
      reuse(int64_t(i), int64_t(chunks.size()));
      stage(chunks[i]);
      tma ? sendByTma(chunks[i]) : sendByLanes(chunks[i]);
    }
  }
};

void Lowering::storeThroughShared(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  const SharedView &view = buffers.find(op.ref("through").name)->second;
  const TensorView &d = tensors.find(op.subject.name)->second;
  const Op &decl = *kernel.declaration(op.ref("from").name);
  Elem type = *parseElem(kernel.declaration(op.ref("through").name)->word("type"));
  bool tma = op.word("via") == "tma";
  std::optional<float> alpha;
  if (double fixed; !op.word("alpha").getAsDouble(fixed))
    alpha = float(fixed);
  b.blank();
  b.comment(tma ? "D = alpha * A B, through shared memory by TMA"
                : "D = alpha * A B + beta * C, through shared memory, line by line");
  // Where this warp's part of the tile begins.
  int64_t warpN = decl.item("warp", 1), across = decl.item("tile", 1) / warpN, down = decl.item("tile", 0) / acc.warpM;
  bool alternates = kernel.word("schedule") == "pingpong";
  Val unit = variables.count("wg") ? variables["wg"] : divide(warp, 4, "wg");
  Val unitM = down > 1 && !alternates ? divide(unit, across, "unit_m") : Val(0);
  Val unitN = across > 1 && !alternates ? remainder(unit, across, "unit_n") : Val(0);
  Val row0 = add(value(op.subject.index[0]), mul(unitM, acc.warpM, "unit_row"), "row0");
  Val col0 = add(value(op.subject.index[1]), mul(unitN, warpN, "unit_col"), "col0");
  col0 = add(col0, ownColumn, "col0");
  int64_t each = kernel.number("store_buffers");
  StagedSums sums{*this, b, acc, !op.has("c"), type, alpha};
  if (d.order == Order::col)
    return storeTransposed(
        op, sums, row0, col0,
        add(stageAddress(view, op.ref("through"), "slots"), mul(unit, 4 * each * bufferBytes, "slots"), "slots"));
  row0 = add(row0, mul(remainder(warp, 4, "warp_in_group"), lines, "warp_row"), "row0");

  Val consumer = add(warp, -roleWarp, "consumer_warp");
  Val slots = add(stageAddress(view, op.ref("through"), "slots"), mul(consumer, each * bufferBytes, "slots"), "slots");
  WarpStore{sums, op, d, tma, row0, col0, slots, each}.run();
}

} // namespace gemmc
