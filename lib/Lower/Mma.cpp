// mma.sync: fragments from shared memory, products of a warp tile.
#include "Lowering.h"

namespace gemmc {

void Lowering::zero(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const SumWords words = sumWords(acc.type);
  for (const auto &block : acc.regs)
    for (const Val &reg : block)
      b(words.move, reg, words.zero());
}

/// Sums of integers become floats in their registers; what follows has an accumulator of that type.
void Lowering::convert(const Op &op) {
  AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  acc.type = *parseElem(op.word("to"));
  for (const auto &block : acc.regs)
    for (const Val &reg : block)
      b("cvt.rn.f32.s32", reg, reg);
}

struct Lowering::FragmentSource {
  const SharedView &shared;
  const SharedTile &tile;
  const tile::Ref &from;
  const std::vector<Val> &regs; ///< Of all blocks of the warp tile, block after block.
  bool isA;
  int64_t step, warpExtent; ///< warpExtent: lines (rows of A, columns of B) of the warp tile.
  Val depth;                ///< Where the warp's slice of k begins.
  Val warpIndex, warpStart; ///< Along the lines: which warp tile, and its first line.
  bool wholeRows = false;   ///< A lane's rows begin with a register's first.
  bool inChunk = false;     ///< The lane's part of a byte and 16 bytes of the register's make no carry.
  Val sliceByte = 0;        ///< Where its slice begins in a row of shared memory, where k lies along the rows.
  Val stage;                ///< Address of the stage in shared memory; a loader sets it when it needs it.
};

void Lowering::load(const Op &op) {
  if (isWgmma)
    return loadForWgmma(op);
  const Op &fragment = *kernel.declaration(op.subject.name);
  bool isA = fragment.word("operand") == "a";
  const SharedView &shared = buffers.find(op.ref("from").name)->second;
  const Op &acc = *kernel.declaration(fragment.ref("of").name);
  int64_t warpExtent = acc.item("warp", isA ? 0 : 1);
  int64_t warpsN = acc.item("tile", 1) / acc.item("warp", 1);
  Val warpIndex = isA ? divide(warpInSlice(), warpsN, "warp_m") : remainder(warpInSlice(), warpsN, "warp_n");
  FragmentSource source{shared,
                        shared.tile,
                        op.ref("from"),
                        fragments.find(op.subject.name)->second.regs[op.subject.index[0].constant()],
                        isA,
                        op.number("step"),
                        warpExtent,
                        mul(slice(), kernel.root.item("block", 2) / slices, "slice_start"),
                        warpIndex,
                        mul(warpIndex, warpExtent, "warp_start"),
                        false,
                        false,
                        0,
                        {}};
  if (op.word("via") != "lds")
    loadByLdmatrix(source);
  else if (shared.tile.kMajor)
    loadByWords(source);
  else
    loadByElements(source);
}

/// ldmatrix.x4 reads four 8x8 matrices of 16-bit elements, whose 32 row addresses the 32 lanes give; a lane gets 32
/// bits of each, just as the fragments of all types but f64 have them (PTX ISA 9.7.14.5.15). A fragment's registers are
/// matrices of 8 lines and 16 bytes of k, those of A in 16 lines at a time. The four of one x4 lie so:
///
///     16 bytes of k a step        (lines 0..7) (8..15) (16..23) (24..31)
///     32 bytes, A of m16          (lines 0..7, bytes 0..15) (8..15, 0..15) (0..7, 16..31) (8..15, 16..31)
///     32 bytes, B and A of m8     (lines 0..7, bytes 0..15) (0..7, 16..31) (8..15, 0..15) (8..15, 16..31)
///
/// Rows in shared memory are lines for a k-major tile; for an mn-major one they are k, and `.trans` turns each matrix.
/// What is left over at the end takes x2 or x1, of whose lanes the first 16 or 8 count.
void Lowering::loadByLdmatrix(FragmentSource &source) {
  const SharedTile &tile = source.tile;
  int64_t chunks = matrix->lineBytes() / 16;
  bool pairs = chunks == 2 && source.isA && matrix->m == 16;
  Val row, chunk; // of the lane's row in its group of four matrices, in shared memory
  if (chunks == 1 && tile.kMajor) {
    row = lane;
    chunk = 0;
  } else if (chunks == 1) {
    row = remainder(lane, 8, "lane_row");
    chunk = divide(lane, 8, "lane_chunk");
  } else if (pairs == tile.kMajor) {
    row = remainder(lane, 16, "lane_row");
    chunk = divide(lane, 16, "lane_chunk");
  } else {
    row = add(remainder(lane, 8, "lane_row"), mul(divide(lane, 16, "lane_half"), 8, "lane_half"), "lane_row");
    chunk = remainder(divide(lane, 8, "lane_eighth"), 2, "lane_chunk");
  }
  Val key = keyOf(tile, row); // steps of 8 rows leave the XOR alone, so it depends on the lane only
  source.stage = stageAddress(source.shared, source.from, "from_" + source.from.name);

  std::string form = tile.kMajor ? ".shared.b16" : ".trans.shared.b16";
  int64_t left = source.regs.size(), first = 0;
  while (left > 0) {
    int64_t count = left >= 4 ? 4 : left >= 2 ? 2 : 1, line = first / chunks * 8;
    Val sliceChunk = divide(mul(source.depth, bitsOf(matrix->type), "slice_bits"), 128, "slice_chunk");
    Val column = tile.kMajor ? add(add(chunk, chunks * source.step, "chunk"), sliceChunk, "chunk")
                             : add(add(mul(source.warpIndex, source.warpExtent / 8, "warp_chunk"), line / 8, "chunk"),
                                   chunk, "chunk");
    if (key.isReg())
      column = binary("xor.b32", inRegister(column, "chunk"), key, "chunk");
    Val fixed = add(tile.kMajor ? source.warpStart : source.depth, row, "row");
    Val offset = tile.layout == SharedLayout::blocked
                     ? sharedOffset(tile, fixed, mul(column, 16, "chunk_bytes"), 16)
                     : add(mul(fixed, tile.pitch, "row_bytes"), mul(column, 16, "chunk_bytes"), "lane_offset");
    Val address = add(offset, source.stage, "address");
    int64_t immediate = tile.kMajor ? line : matrix->k * source.step;
    immediate = tile.layout == SharedLayout::blocked ? tile.offset(immediate, 0) : immediate * tile.pitch;
    std::vector<Val> group(source.regs.begin() + first, source.regs.begin() + first + count);
    b("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + form, group, at(address, immediate));
    first += count;
    left -= count;
  }
}

/// Address of byte `byte + byteConst` of row `row + rowConst`.
Val Lowering::elementAddress(const FragmentSource &source, const Val &row, int64_t rowConst, const Val &byte,
                             int64_t byteConst) {
  const SharedTile &tile = source.tile;
  Val inSlices = add(byte, source.sliceByte, "byte");
  if (tile.layout == SharedLayout::blocked) // a lane's place and the constants stay within a block each
    return at(add(sharedOffset(tile, row, inSlices, 1), source.stage, "address"),
              tile.offset(rowConst, byteConst / tile.elemBytes));
  Val offset = mul(row, tile.pitch, "row_bytes");
  if (tile.layout != SharedLayout::xor_) {
    offset = add(offset, inSlices, "lane_offset");
    return at(add(offset, source.stage, "address"), rowConst * tile.pitch + byteConst);
  }
  // Chunks change places within 128 bytes: whole ones of these are a constant.
  const int64_t line = byteConst / 128 * 128, inLine = byteConst - line;
  Val chunk, rest; // of 16 bytes
  if (source.inChunk) {
    chunk = add(divide(source.sliceByte, 16, "slice_chunk"), inLine / 16, "chunk");
    rest = add(byte, inLine % 16, "rest");
  } else {
    Val inRow = add(inSlices, inLine, "byte");
    chunk = divide(inRow, 16, "chunk");
    rest = remainder(inRow, 16, "rest");
  }
  int64_t keyRow = rowConst % tile.swizzle.period();
  if (source.wholeRows) // `row` is the first one of those that share a key
    keyRow -= keyRow % tile.swizzle.rows;
  Val key = keyOf(tile, add(row, keyRow, "row"));
  if (!key.isImm(0))
    chunk = binary("xor.b32", inRegister(chunk, "chunk"), key, "chunk");
  offset = add(offset, add(mul(chunk, 16, "chunk_bytes"), rest, "in_row"), "lane_offset");
  return at(add(offset, source.stage, "address"), rowConst * tile.pitch + line);
}

/// The elements of a register are adjacent in shared memory: one load each.
void Lowering::loadByWords(FragmentSource &source) {
  FragmentMap map = fragmentMap(*matrix, source.isA ? MatrixRole::a : MatrixRole::b);
  int64_t bits = bitsOf(matrix->type), blockLines = source.isA ? matrix->rows() : matrix->columns();
  int64_t each = map.registers.size();
  Val row = add(source.warpStart, laneSum(map.line, "lane_row"), "row");
  for (LaneTerm &term : map.depth)
    term.times = term.times * bits / 8; // whole bytes: a lane begins with a register of its own
  Val byte = laneSum(map.depth, "lane_byte");
  source.inChunk = bits < 64; // four registers of 32 bits a chunk; of m8n8k4 two, and no lane's part
  source.sliceByte = divide(mul(source.depth, bits, "slice_bits"), 8, "slice_byte");
  source.stage = stageAddress(source.shared, source.from, "from_" + source.from.name);
  for (size_t i = 0; i < source.regs.size(); ++i) {
    const FragmentMap::Offset &place = map.registers[i % each];
    int64_t line = int64_t(i) / each * blockLines + place.line;
    int64_t byteConst = (place.depth + matrix->k * source.step) * bits / 8;
    b(bits == 64 ? "ld.shared.f64" : "ld.shared.b32", source.regs[i],
      elementAddress(source, row, line, byte, byteConst));
  }
}

/// Rows in shared memory are k, so each element is loaded by itself and packed.
void Lowering::loadByElements(FragmentSource &source) {
  FragmentMap map = fragmentMap(*matrix, source.isA ? MatrixRole::a : MatrixRole::b);
  int64_t bytes = bytesOf(matrix->type), blockLines = source.isA ? matrix->rows() : matrix->columns();
  int64_t each = map.registers.size();
  Val row = add(laneSum(map.depth, "lane_row"), source.depth, "lane_row");
  source.wholeRows = int64_t(map.perRegister) % source.tile.swizzle.rows == 0;
  Val byte = mul(add(source.warpStart, laneSum(map.line, "lane_col"), "col"), bytes, "col_bytes");
  source.stage = stageAddress(source.shared, source.from, "from_" + source.from.name);
  for (size_t i = 0; i < source.regs.size(); ++i) {
    const FragmentMap::Offset &place = map.registers[i % each];
    int64_t byteConst = (int64_t(i) / each * blockLines + place.line) * bytes;
    auto address = [&](int64_t element) {
      return elementAddress(source, row, place.depth + element + matrix->k * source.step, byte, byteConst);
    };
    const Val &reg = source.regs[i];
    if (map.perRegister == 1) {
      b(bytes == 8 ? "ld.shared.f64" : "ld.shared.b32", reg, address(0));
    } else if (bytes == 2) {
      Val lo = b.reg(Type::b16, "element"), hi = b.reg(Type::b16, "element");
      b("ld.shared.b16", lo, address(0));
      b("ld.shared.b16", hi, address(1));
      b("mov.b32", reg, Val(std::vector<Val>{lo, hi}));
    } else {
      Val packed;
      for (unsigned element = 0; element < map.perRegister; ++element) {
        Val part = b.reg(Type::b32, "element");
        b("ld.shared.u8", part, address(element));
        bool last = element + 1 == map.perRegister;
        Val next = element == 0 ? part : last ? reg : b.reg(Type::b32, "packed");
        if (element > 0)
          b("bfi.b32", next, part, packed, 8 * element, 8);
        packed = next;
      }
    }
  }
}

/// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`
static std::string mnemonicOf(const MatrixInstruction &matrix, llvm::StringRef bits) {
  llvm::StringRef sum = nameOf(matrix.accumulator), type = nameOf(matrix.type);
  std::string text =
      llvm::formatv("mma.sync.aligned.m{0}n{1}k{2}.row.col.{3}.{4}.{4}.{3}", matrix.m, matrix.n, matrix.k, sum, type);
  return bits.empty() ? text : text + "." + bits.str() + ".popc";
}

void Lowering::mma(const Op &op) {
  const AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const auto &a = fragments.find(op.ref("a").name)->second.regs[op.ref("a").index[0].constant()];
  const auto &bFrag = fragments.find(op.ref("b").name)->second.regs[op.ref("b").index[0].constant()];
  std::string mnemonic = mnemonicOf(*matrix, kernel.root.word("bits"));
  int64_t eachA = fragmentMap(*matrix, MatrixRole::a).registers.size();
  int64_t eachB = fragmentMap(*matrix, MatrixRole::b).registers.size();
  int64_t perTile = acc.map.registers.size(), tilesN = acc.warpN / acc.blockColumns;
  bool snake = op.word("order", "snake") == "snake";
  // Sums of 8-bit floats, of which the tensor cores keep 14 bits, are added up in f32.
  const bool promotes = kernel.root.has("promote");
  std::vector<Val> none;
  if (promotes) {
    none = b.regs(Type::f32, "none", perTile);
    for (const Val &reg : none)
      b("mov.f32", reg, Val(ptx::Operand::makeF32(0)));
  }
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t step = 0; step < tilesN; ++step) {
      int64_t j = snake && i % 2 ? tilesN - 1 - step : step; // back and forth: a B fragment is used twice in a row
      auto slice = [](const std::vector<Val> &regs, int64_t first, int64_t count) {
        return std::vector<Val>(regs.begin() + first, regs.begin() + first + count);
      };
      std::vector<Val> d = slice(acc.regs[i], j * perTile, perTile);
      const std::vector<Val> part = promotes ? b.regs(Type::f32, "part", perTile) : d;
      b(mnemonic, part, slice(a, eachA * i, eachA), slice(bFrag, eachB * j, eachB), promotes ? none : d);
      for (int64_t r = 0; promotes && r < perTile; ++r)
        b("add.rn.f32", d[r], d[r], part[r]);
    }
}

/// Pairs of neighbouring columns, as `store` finds them in the registers, into the tile of D at `to`.
void Lowering::mmaStage(const StagedTile &to, const AccumulatorView &acc) {
  const SharedTile &tile = to.tile;
  bool byRow = tile.kMajor;
  auto place = [&](int64_t row, int64_t col) { return byRow ? tile.offset(row, col) : tile.offset(col, row); };
  Val row = add(to.row0, laneSum(acc.map.line, "lane_row"), "row");
  Val col = add(to.col0, laneSum(acc.map.depth, "lane_col"), "col");
  Val start = add(mul(row, place(1, 0), "row_bytes"), mul(col, place(0, 1), "col_bytes"), "lane_start");
  start = add(start, to.address, "staged");
  llvm::StringRef type = acc.type == Elem::f32 ? "f32" : acc.type == Elem::f64 ? "f64" : "b32";
  int64_t each = acc.map.registers.size(), perPair = acc.half() ? 1 : 2;
  for (int64_t i = 0; i < int64_t(acc.regs.size()); ++i)
    for (int64_t r = 0; r < int64_t(acc.regs[i].size()); r += perPair) {
      const FragmentMap::Offset &in = acc.map.registers[r % each];
      int64_t first = place(i * acc.blockRows + in.line, r / each * acc.blockColumns + in.depth);
      std::vector<Val> pair(acc.regs[i].begin() + r, acc.regs[i].begin() + r + perPair);
      if (byRow) {
        b(("st.shared" + llvm::Twine(acc.half() ? ".b32" : ".v2.") + (acc.half() ? "" : type)).str(), at(start, first),
          acc.half() ? pair[0] : Val(pair));
        continue;
      }
      if (acc.half()) {
        std::vector<Val> halves = b.regs(Type::b16, "half", 2);
        b("mov.b32", Val(halves), pair[0]);
        pair = halves;
      }
      std::string one = ("st.shared." + (acc.half() ? llvm::StringRef("b16") : type)).str();
      b(one, at(start, first), pair[0]);
      b(one, at(start, first + place(0, 1)), pair[1]);
    }
}

} // namespace gemmc
