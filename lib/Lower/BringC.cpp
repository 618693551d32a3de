// C by TMA. It comes in the chunks in which D leaves, and into the buffers through which D leaves: a warp finds each
// element of C where it will put that of D. A warpgroup has a ring of buffers, one chunk of its four warps each:
//
//     producer:   wait `left`    64 rows of C into the buffer, signal `brought`
//     consumers:  wait `brought` take C out, put D in, store it by TMA; when that has been read, arrive at `left`
//
// Chunk i of each tile goes to buffer i % buffers. How often a buffer is used in a tile is known here; the parity of
// its phases follows from that and from the parity of the tile's number.
#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t groupLines = 64;
} // namespace

Lowering::BufferOfC Lowering::bufferOfC(const Op &op, llvm::StringRef shared, const Val &ring, int64_t number,
                                        int64_t chunks) {
  int64_t buffers = kernel.number("store_buffers"), buffer = number % buffers, turn = number / buffers;
  int64_t turnsOfTile = (chunks - buffer + buffers - 1) / buffers;
  auto placeIn = [&](int64_t offset, int64_t bytes, llvm::StringRef name) {
    return add(add(mul(ring, buffers * bytes, name), sharedBase, name), offset + buffer * bytes, name);
  };
  auto barrier = [&](llvm::StringRef key) {
    return placeIn(kernel.declaration(op.ref(key).name)->number("offset"), barrierBytes, key);
  };
  auto parity = [&](int64_t phase) -> Val {
    if (turnsOfTile % 2 == 0)
      return inRegister(Val(phase % 2), "phase");
    const Val &tile = cursors[op.expr("cursor").name()].phase;
    return phase % 2 ? binary("xor.b32", tile, 1, "phase") : tile;
  };
  bool brings = op.kind == OpKind::Bring;
  BufferOfC result;
  result.brought = barrier(brings ? "signal" : "after");
  result.left = barrier(brings ? "after" : "signal");
  // `left` starts out free: the first wait asks for the phase before the first.
  result.parity = parity(brings ? turn + 1 : turn);
  result.place = placeIn(this->buffers.find(shared)->second.offset, groupLines * lineBytes, "place");
  return result;
}

/// One thread for all warpgroups. It waits for buffers in the order in which tiles reach their ends.
void Lowering::bringByTma(const Op &op) {
  const TensorView &c = tensors.find(op.ref("from").name)->second;
  const Op &acc = *kernel.declaration(op.ref("to").name);
  int64_t warpM = acc.item("warp", 0), warpN = acc.item("warp", 1);
  int64_t across = acc.item("tile", 1) / warpN, blocks = warpM / groupLines;
  bool alternates = kernel.word("schedule") == "pingpong";
  int64_t rings = alternates ? 1 : kernel.number("consumers");
  std::vector<LinePiece> pieces = linePieces(warpN, c.elemBytes());
  int64_t chunks = blocks * int64_t(pieces.size());
  b.blank();
  b.comment("C into the buffers that D leaves through");
  bool always = op.word("beta") != "dynamic";
  Val end;
  if (!always) {
    end = b.label("brought_c");
    Val isZero = b.reg(Type::pred, "beta_is_zero");
    compareBeta("eq", isZero);
    b.when(isZero)("bra", end);
  }
  Val row0 = value(op.ref("from").index[0]), col0 = value(op.ref("from").index[1]);
  struct Box {
    Val map;
    std::vector<Val> at;
  };
  auto boxOf = [&](int64_t number, int64_t unit) -> Box {
    const LinePiece &piece = pieces[number % pieces.size()];
    int64_t row = unit / across * warpM + number / int64_t(pieces.size()) * groupLines;
    Val x = inRegister(add(col0, unit % across * warpN + piece.column, "x"), "x");
    Val y = inRegister(add(row0, row, "y"), "y");
    return {variables[pieceMap(c.buffer, piece.bytes)], boxAt(c, x, y)};
  };
  // What must wait for a buffer waits for it in the L2. Pieces of many widths need more registers for that than a
  // producer has.
  bool oneWidth = pieces.front().bytes == pieces.back().bytes;
  for (int64_t number = kernel.number("store_buffers"); oneWidth && number < chunks; ++number)
    for (int64_t unit = 0; unit < rings; ++unit) {
      Box box = boxOf(number, unit);
      prefetchBox(box.map, box.at);
    }
  for (int64_t number = 0; number < chunks; ++number)
    for (int64_t unit = 0; unit < rings; ++unit) {
      Val ring = alternates ? cursors[op.expr("cursor").name()].slot : Val(unit);
      BufferOfC to = bufferOfC(op, op.subject.name, ring, number, chunks);
      int64_t bytes = groupLines * pieces[number % pieces.size()].bytes;
      b.expand("sm90/mbar_wait", {{"bar", to.left}, {"parity", to.parity}});
      b("mbarrier.arrive.expect_tx.shared::cta.b64", b.sink(), at(to.brought), bytes);
      Box box = boxOf(number, unit);
      loadBox(box.map, box.at, to.place, to.brought);
    }
  if (!always)
    b.place(end);
}

} // namespace gemmc
