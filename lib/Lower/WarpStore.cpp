// The epilogue of wgmma kernels through shared memory. A warp holds 16 rows of each 64-row block of its warpgroup's
// tile; it stages 16 lines of up to 128 bytes at a time in buffers of its own, so that no warp waits for another one.
#include "LinesOfC.h"
#include "OddLines.h"
#include "StagedSums.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
constexpr int64_t lines = 16, warpBufferBytes = lines * lineBytes;

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
} // namespace

std::string Lowering::pieceMap(llvm::StringRef buffer, int64_t bytes) {
  return (buffer + "_map" + llvm::Twine(bytes)).str();
}

/// Lines are cut into whole swizzled spans: 128 bytes while there are as many, then 64, 32, 16.
std::vector<Lowering::LinePiece> Lowering::linePieces(int64_t columns, int64_t elemBytes) {
  std::vector<LinePiece> pieces;
  int64_t at = 0, end = columns * elemBytes;
  for (int64_t bytes = lineBytes; bytes >= 16; bytes /= 2)
    for (; end - at >= bytes; at += bytes)
      pieces.push_back({at / elemBytes, bytes / elemBytes, bytes});
  return pieces;
}

/// One for each width of a piece. D leaves in the 16 rows of a warp, C comes in the 64 of its warpgroup.
std::vector<ptx::TensorMapInfo> Lowering::pieceMaps(const Op &tensor) const {
  llvm::StringRef name = tensor.subject.name;
  const Op *acc = nullptr;
  int64_t rows = 0;
  bool mayBeAbsent = false;
  tile::walk(kernel.body(), [&](const Op &op) {
    if (op.kind == OpKind::Store && op.word("via") == "tma" && op.subject.name == name)
      acc = kernel.declaration(op.ref("from").name), rows = lines;
    if (op.kind == OpKind::Bring && op.word("via") == "tma" && op.ref("from").name == name) {
      acc = kernel.declaration(op.ref("to").name), rows = 4 * lines;
      mayBeAbsent = op.word("beta") == "dynamic";
    }
  });
  std::vector<ptx::TensorMapInfo> maps;
  if (!acc)
    return maps;
  if (tensor.word("order") == "col")
    return turnedMaps(tensor);
  Elem type = *parseElem(tensor.word("type"));
  // Where C is not there, its ld may be anything, but a map has strides of whole rows.
  Expr ld = tensor.expr("ld");
  if (mayBeAbsent && !ld.isConst())
    ld = maxOf(ld, tensor.expr("cols"));
  const ColumnShares columns = storedColumns();
  std::vector<LinePiece> pieces = linePieces(columns.each, bytesOf(type));
  llvm::append_range(pieces, linePieces(columns.last, bytesOf(type)));
  for (const LinePiece &piece : pieces) {
    std::string mapName = pieceMap(tensor.word("buffer"), piece.bytes);
    if (llvm::any_of(maps, [&](const ptx::TensorMapInfo &map) { return map.name == mapName; }))
      continue;
    ptx::TensorMapInfo map;
    map.name = mapName;
    map.buffer = tensor.word("buffer");
    map.type = type;
    map.dims = {tensor.expr("cols"), tensor.expr("rows")};
    map.strides = {ld * int64_t(bytesOf(type))};
    map.box = {piece.columns, rows};
    addProducts(tensor, map);
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
  bool bringsC = false;                       ///< TMA brings C into the buffers of the warpgroup `group`...
  Val group, readsC;                          ///< ...unless beta, given at launch, is 0.
  std::optional<LinesOfC> linesOfC{};         ///< A C that the warp itself brings there.
  std::optional<LinesOfC::Fetched> fetched{}; ///< Its next chunk, under way.
  std::optional<OddLines> oddLines{};         ///< Of the block that is being stored.
  Val slotBefore{};                           ///< Of its last piece.

  /// One piece of 16 lines: which sums, and where it is staged.
  struct Chunk {
    int64_t block;
    LinePiece piece;
    Val slot;
    BufferOfC c;
  };
  const Chunk *next = nullptr; ///< Behind the one that is being stored.

  int64_t elemBytes() const { return bytesOf(type); }
  bool odd() const { return !tma && finished && op.word("sectors", "") == "whole"; }
  SharedTile tileOf(const LinePiece &piece) const {
    return SharedTile(lines, piece.columns, true, elemBytes(), layoutOf(piece.bytes));
  }
  Val xored(const Val &a, const Val &c, llvm::StringRef name) {
    if (a.isImm() && c.isImm())
      return a.op.imm ^ c.op.imm;
    if (a.isImm(0) || c.isImm(0))
      return a.isImm(0) ? c : a;
    return a.isImm() ? l.binary("xor.b32", c, a, name) : l.binary("xor.b32", a, c, name);
  }

  // C from shared memory to registers ---------------------------------------------------------------------------------

  /// C of a chunk is put into its place; that of the next one is asked for, where registers are left for it.
  void putLines(const Chunk &chunk) {
    if (!fetched)
      fetchLines(chunk);
    linesOfC->put(*fetched, tileOf(chunk.piece), chunk.slot);
    fetched.reset();
    warpSync();
  }
  /// Whether a thread has registers for that beside its sums: what is left is for addresses and the lines of D, more of
  /// it where beta may be 0, which ptxas 13 pays twice, and all of it where parts of a tile are gathered.
  bool holdsNext() const {
    constexpr int64_t others = 72, forBoth = 64;
    const int64_t needed = readsC.isReg() ? others + forBoth : others;
    return !l.gathers() && acc.registers() + linesOfC->registers() + needed <= l.registersOfThread();
  }
  void fetchLines(const Chunk &chunk) { fetched = linesOfC->fetch(chunk.piece.columns, rowOf(chunk), colOf(chunk)); }

  /// Calls `load` for registers of a chunk of C once it has come; they are zero when beta is.
  void takeC(const Chunk &chunk, int64_t count, Type registers,
             llvm::function_ref<void(const std::vector<Val> &regs)> load) {
    if (!bringsC && !linesOfC)
      return;
    std::vector<Val> regs = b.regs(registers, "c", count);
    Val none;
    if (readsC.isReg()) {
      none = b.label("no_c");
      for (const Val &reg : regs)
        b(registers == Type::f32 ? "mov.f32" : "mov.b32", reg,
          registers == Type::f32 ? Val(ptx::Operand::makeF32(0)) : Val(0));
      b.unless(readsC)("bra", none);
    }
    if (bringsC)
      b.expand("sm90/mbar_wait", {{"bar", chunk.c.brought}, {"parity", chunk.c.parity}});
    else
      putLines(chunk);
    load(regs);
    if (linesOfC && next && holdsNext())
      fetchLines(*next);
    if (readsC.isReg())
      b.place(none);
  }

  /// The fragments of C as stmatrix will leave those of D, whose places other lanes take: all have C first.
  std::vector<Val> takeHalves(const Chunk &chunk, const Val &start, int64_t groups) {
    std::vector<Val> c;
    takeC(chunk, 2 * groups, Type::b32, [&](const std::vector<Val> &regs) {
      c = regs;
      for (int64_t j = 0; j < groups; j += 2) {
        bool four = j + 2 <= groups;
        b(four ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16" : "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
          Val(std::vector<Val>(regs.begin() + 2 * j, regs.begin() + 2 * j + (four ? 4 : 2))),
          at(xored(start, 16 * j, "place")));
      }
    });
    if (!c.empty())
      warpSync();
    return c;
  }

  // Registers to shared memory ---------------------------------------------------------------------------------------

  /// stmatrix.x4: lane l points at row l % 16 of column group l / 16. Eight rows of one group lie in different banks,
  /// as the swizzle sees to it.
  void stageHalves(const Chunk &chunk) {
    SharedTile tile = tileOf(chunk.piece);
    Val row = l.remainder(l.lane, lines, "lane_row");
    Val group = xored(l.divide(l.lane, lines, "lane_group"), l.keyOf(tile, row), "lane_chunk");
    Val start = l.add(l.mul(row, tile.pitch, "lane_line"), l.mul(group, 16, "lane_chunk"), "lane_place");
    start = l.add(start, chunk.slot, "lane_place");
    int64_t first = chunk.piece.column / 8, groups = chunk.piece.columns / 8;
    std::vector<Val> c = takeHalves(chunk, start, groups);
    auto ofC = [&](int64_t j, int64_t h) { return c.empty() ? fragmentOfC(j, h) : Pair(c[2 * j + h], Val()); };
    for (int64_t j = 0; j < groups; j += 2) {
      std::vector<Val> regs;
      for (int64_t part = 0; part < 4 && j + part / 2 < groups; ++part)
        regs.push_back(packed(chunk.block, first + j + part / 2, part % 2, ofC(j + part / 2, part % 2)));
      const char *mnemonic =
          regs.size() == 4 ? "stmatrix.sync.aligned.m8n8.x4.shared.b16" : "stmatrix.sync.aligned.m8n8.x2.shared.b16";
      b(mnemonic, at(xored(start, 16 * j, "place")), Val(regs));
    }
  }

  /// Words: 16 lanes write four rows of 32 bytes at a time. The swizzle leaves some of these rows on each other's
  /// banks; their lanes take another column group first (`turned`), which parts them.
  void stageWords(const Chunk &chunk) {
    SharedTile tile = tileOf(chunk.piece);
    int64_t groups = chunk.piece.columns / 8, first = chunk.piece.column / 8;
    const int64_t turn = llvm::isPowerOf2_64(uint64_t(groups)) ? groups / 2 : 0; // three have nobody to turn with
    Val row = l.divide(l.lane, 4, "lane_row"), lanePair = l.divide(l.remainder(l.lane, 4, "lane_pair"), 2, "lane_pair");
    Val group = xored(lanePair, l.keyOf(tile, row), "lane_chunk");
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
    using Pairs = std::vector<Pair>;
    auto inTurn = [&](const Pairs &pairs, int64_t j) {
      if (!turn)
        return pairs[j];
      std::vector<Val> two = b.regs(wordType(), "turn", 2);
      const std::string select = std::string("selp.") + word();
      b(select, two[0], pairs[j ^ turn].first, pairs[j].first, turned);
      b(select, two[1], pairs[j ^ turn].second, pairs[j].second, turned);
      return std::pair{two[0], two[1]};
    };
    auto placeOf = [&](int64_t j, int64_t h) { return at(xored(start, 32 * j, "place"), 8 * h * tile.pitch); };
    // A lane takes C from where it will put D.
    Pairs c;
    const std::string two = std::string(".shared.v2.") + word();
    takeC(chunk, 4 * groups, wordType(), [&](const std::vector<Val> &regs) {
      for (int64_t i = 0; i < 2 * groups; ++i) {
        c.push_back({regs[2 * i], regs[2 * i + 1]});
        b("ld" + two, Val(std::vector<Val>{regs[2 * i], regs[2 * i + 1]}), placeOf(i % groups, i / groups));
      }
    });
    Pairs own; // or has that of its sums
    for (int64_t i = 0; fragmentsOfC && i < 2 * groups; ++i)
      own.push_back(fragmentOfC(i / 2, i % 2));
    for (int64_t h = 0; h < 2; ++h) {
      Pairs pairs, added(c.begin() + (c.empty() ? 0 : h * groups), c.begin() + (c.empty() ? 0 : (h + 1) * groups));
      for (int64_t j = 0; j < groups; ++j) {
        pairs.push_back(sums(chunk.block, first + j, h));
        if (!c.empty())
          pairs[j] = plus(pairs[j], inTurn(added, j));
        else if (fragmentsOfC)
          pairs[j] = plus(pairs[j], widened(own[2 * j + h]));
      }
      for (int64_t j = 0; j < groups; ++j) {
        auto [x, y] = inTurn(pairs, j);
        b("st" + two, placeOf(j, h), Val(std::vector<Val>{x, y}));
      }
    }
  }

  void stage(const Chunk &chunk) {
    elemBytes() == 2 ? stageHalves(chunk) : stageWords(chunk);
    if (fragmentsOfC)
      fragmentsOfC->staged();
  }

  // Shared memory to D -----------------------------------------------------------------------------------------------

  void warpSync() { b("bar.warp.sync", -1); }

  Val rowOf(const Chunk &chunk) { return l.add(row0, chunk.block * acc.blockRows, "row"); }
  Val colOf(const Chunk &chunk) { return l.add(col0, chunk.piece.column, "col"); }

  /// One lane gives the piece to TMA, which leaves out what lies beyond D's edges.
  void sendByTma(const Chunk &chunk) {
    // What lanes have read of C may be what TMA writes next.
    b(linesOfC ? "fence.proxy.async" : "fence.proxy.async.shared::cta");
    warpSync();
    Val elected = b.reg(Type::pred, "elected");
    b("elect.sync", ptx::pair(b.sink(), elected), -1);
    Val map = l.variables[pieceMap(d.buffer, chunk.piece.bytes)];
    const Val x = l.inRegister(colOf(chunk), "x"), y = l.inRegister(rowOf(chunk), "y");
    const std::vector<Val> box = l.boxAt(d, x, y);
    b.when(elected)(storeBox(box), at(map, 0, box), at(chunk.slot));
    b.when(elected)("cp.async.bulk.commit_group");
  }

  /// All lanes write lines, up to 16 bytes at a time, words of odd ones.
  void sendByLanes(const Chunk &chunk) {
    warpSync();
    if (odd()) {
      const LinePiece &piece = chunk.piece;
      if (piece.column == 0)
        oddLines.emplace(l, d, rowOf(chunk), colOf(chunk));
      oddLines->piece(piece.column, piece.columns, chunk.slot, slotBefore, piece.column + piece.columns == acc.warpN);
      slotBefore = chunk.slot;
      return;
    }
    l.copyOut(op, {tileOf(chunk.piece), lines, chunk.piece.columns, type, finished, chunk.slot, l.lane, 32,
                   rowOf(chunk), colOf(chunk)});
  }

  /// Before buffer number `chunk` of a tile is written: whoever read it has finished. Bulk groups finish in order, and
  /// only the lane that committed one waits for it.
  void reuse(int64_t number, int64_t chunks) {
    if (bringsC)
      return; // C came into it
    if (!tma) {
      if (number == 0 || odd()) // odd lines are made of two pieces
        warpSync();
      return;
    }
    bool inTurn = chunks % buffers == 0; // tile after tile
    b("cp.async.bulk.wait_group.read", number == 0 && !inTurn ? 0 : buffers - 1);
    warpSync();
  }

  /// Gives the buffer of a chunk back to those who bring C, once all but the newest `pending` stores have been read. So
  /// it is free as well when no C comes: a tile ends with nothing pending.
  void leave(const Chunk &chunk, int64_t pending) {
    b("cp.async.bulk.wait_group.read", pending);
    warpSync();
    Val first = b.reg(Type::pred, "first_lane");
    if (readsC.isReg())
      b("setp.eq.and.u32", first, l.lane, 0, readsC);
    else
      b("setp.eq.u32", first, l.lane, 0);
    b.when(first)("mbarrier.arrive.shared::cta.b64", b.sink(), at(chunk.c.left));
  }

  /// C comes as one box, line behind line. Where none comes nothing keeps the warps together: each has a place of its
  /// own, whatever the piece.
  Val warpsPart(const LinePiece &piece) {
    Val warpOfGroup = l.remainder(l.warp, 4, "warp_in_group");
    Val inBox = l.mul(warpOfGroup, lines * piece.bytes, "part");
    if (!readsC.isReg() || piece.bytes == lineBytes)
      return inBox;
    Val own = l.mul(warpOfGroup, warpBufferBytes, "part"), part = b.reg(Type::b32, "part");
    b("selp.b32", part, inBox, own, readsC);
    return part;
  }

  std::vector<Chunk> chunksOfTile() {
    std::vector<LinePiece> pieces =
        odd() ? OddLines::pieces(acc.warpN, elemBytes()) : linePieces(acc.warpN, elemBytes());
    int64_t count = int64_t(acc.regs.size() * pieces.size());
    std::vector<Chunk> chunks;
    for (int64_t number = 0; number < count; ++number) {
      Chunk chunk{number / int64_t(pieces.size()), pieces[number % pieces.size()], {}, {}};
      if (bringsC) {
        chunk.c = l.bufferOfC(op, op.ref("through").name, group, number, count);
        chunk.slot = l.add(chunk.c.place, warpsPart(chunk.piece), "slot");
      } else {
        chunk.slot = l.add(slots, number % buffers * warpBufferBytes, "slot");
      }
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  void run() {
    std::vector<Chunk> chunks = chunksOfTile();
    std::vector<FragmentsOfC::Piece> pieces;
    for (const Chunk &chunk : chunks)
      pieces.push_back({chunk.block * acc.blockRows, chunk.piece.column, chunk.piece.columns});
    if (fragmentsOfC)
      fragmentsOfC->begin(row0, col0, std::move(pieces));
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (op.has("block") && op.number("block") != chunks[i].block)
        continue;
      next = i + 1 < chunks.size() ? &chunks[i + 1] : nullptr;
      reuse(int64_t(i), int64_t(chunks.size()));
      stage(chunks[i]);
      tma ? sendByTma(chunks[i]) : sendByLanes(chunks[i]);
      if (bringsC && i > 0)
        leave(chunks[i - 1], 1);
    }
    if (bringsC)
      leave(chunks.back(), 0);
  }
};

int64_t Lowering::registersOfThread() const {
  constexpr int64_t ofSM = 65536, most = 255, unit = 8;
  return kernel.root.number("consumer_regs", std::min(most, ofSM / kernel.number("threads") / unit * unit));
}

void Lowering::keep(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const Elem type = *parseElem(op.word("type"));
  StagedSums sums{*this, b, acc, true, type, type, fixedScale(op.word("alpha")), {}};
  int64_t block = op.number("block");
  const std::vector<Val> &kept = acc.kept.find(block)->second;
  b.blank();
  b.comment("rows that are stored under the next tile's products");
  for (size_t i = 0; i < kept.size(); ++i)
    sums.packInto(kept[i], block, int64_t(i / 2), int64_t(i % 2));
}

void Lowering::storeThroughShared(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  const SharedView &view = buffers.find(op.ref("through").name)->second;
  const TensorView &d = tensors.find(op.subject.name)->second;
  const Op &decl = *kernel.declaration(op.ref("from").name);
  Elem type = *parseElem(kernel.declaration(op.ref("through").name)->word("type"));
  bool tma = op.word("via") == "tma", brought = op.has("after");
  const llvm::StringRef loadC = kernel.root.word("load_c", "direct");
  bool byLines = op.has("c") && loadC == "staged", fragments = op.has("c") && loadC == "fragments";
  b.blank();
  b.comment(llvm::Twine(op.has("c") ? "D = alpha * A B + beta * C" : "D = alpha * A B") +
            (tma ? ", through shared memory by TMA" : ", through shared memory, line by line"));
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
  const TensorView *c = op.has("c") ? &tensors.find(op.ref("c").name)->second : nullptr;
  StagedSums sums{*this,
                  b,
                  acc,
                  brought || byLines || fragments || !c,
                  type,
                  fragments ? c->type : type,
                  fixedScale(op.word("alpha")),
                  fixedScale(op.word("beta"))};
  auto readsC = [&] {
    Val reads;
    if ((brought || byLines || fragments) && !sums.beta) {
      reads = b.reg(Type::pred, "reads_c");
      compareBeta("neu", reads);
    }
    return reads;
  };
  if (d.order == Order::col) {
    if (fragments)
      sums.fragmentsOfC.emplace(*this, *c, acc, readsC());
    return storeTransposed(
        op, sums, unit, row0, col0,
        add(stageAddress(view, op.ref("through"), "slots"), mul(unit, 4 * each * warpBufferBytes, "slots"), "slots"));
  }
  row0 = add(row0, mul(remainder(warp, 4, "warp_in_group"), lines, "warp_row"), "row0");

  Val consumer = add(warp, -roleWarp, "consumer_warp");
  Val slots =
      add(stageAddress(view, op.ref("through"), "slots"), mul(consumer, each * warpBufferBytes, "slots"), "slots");
  WarpStore store{sums, op, d, tma, row0, col0, slots, each, brought, unit, {}};
  if (byLines)
    store.linesOfC.emplace(*this, *c);
  store.readsC = readsC();
  if (fragments)
    store.fragmentsOfC.emplace(*this, *c, acc, store.readsC);
  store.run();
}

} // namespace gemmc
