// Operands whose lines start anywhere, shifted into place between TMA and wgmma.
//
// TMA reads from multiples of 16 bytes. Lines eight apart lie alike to them (eight pitches are 16 bytes times the ld),
// so a tensor map for each eighth of the lines begins at the multiple of 16 bytes in front of its first one. A box
// brings the lines with what lies around them, a warpgroup writes them where a swizzled box would have put them:
//
//     memory      ..|...abcde|fghijklm|nop.....|..    pieces of 16 bytes; the line begins at `a`
//     box         |...abcde|fghijklm|nop.....|        `skew` bytes too many in front, the same for all lines of a map
//     tile        |abcdefgh|ijklmnop|                 what two words hold, shifted
//
// Beyond the matrix TMA fills zeros, along both directions. Of fewer than eight lines of m or n the first one stands
// for those that are missing, whose rows of D nobody stores. All of this is for 16-bit elements and a matrix that
// starts at a multiple of 16 bytes; lines are those of the tile in shared memory: rows of m or n where k is contiguous,
// else of k.
//
// Of a batch each map has the matrices as its last dimension where they lie alike to multiples of 16 bytes. Where they
// do not, an eighth of the lines lies in another way in each: then there is a map for each way to lie, whose last
// dimension is the 16 bytes in which a line begins, and each matrix finds its eight among them.
#include "Lowering.h"
#include <numeric>

namespace gemmc {
namespace {
constexpr int64_t maps = SharedTile::groups, chunkBytes = 16;

/// The lines of a tensor that are shifted, and how its matrices lie.
struct Lines {
  explicit Lines(const Op &tensor)
      : each(bytesOf(*parseElem(tensor.word("type")))), chunk(chunkBytes / each), pitch(tensor.number("ld")),
        stride(tensor.has("batch") ? tensor.number("batch") : 0) {
    const bool rows = tensor.word("order") == "row";
    length = tensor.expr(rows ? "cols" : "rows"), count = tensor.expr(rows ? "rows" : "cols");
  }

  int64_t each, chunk;   ///< Bytes of an element, elements of 16 bytes.
  int64_t pitch, stride; ///< Elements from line to line, and from matrix to matrix.
  Expr length, count;

  bool wander() const { return stride % chunk != 0; } ///< Matrices lie in different ways to multiples of 16 bytes.
  /// The line whose place box `i` begins at.
  int64_t first(int64_t box) const { return count.isConst() && box >= count.constant() ? 0 : box; }
  Expr linesFrom(int64_t line) const { return ceilDiv(count - Expr(line), maps); }

  // Where matrices wander. Lines begin 0, `step`, 2 x `step`... elements behind a multiple of 16 bytes; where some
  // boxes have a line less than the first one, their maps come behind those of the others.
  int64_t step() const { return std::gcd(std::gcd(stride, pitch), chunk); }
  int64_t ways() const { return chunk / step(); }
  bool isShorter(int64_t box) const { return linesFrom(first(box)) != linesFrom(0); }
};
} // namespace

std::vector<ptx::TensorMapInfo> Lowering::lineMaps(const Op &tensor) const {
  std::vector<ptx::TensorMapInfo> result;
  if (!tensor.has("shift"))
    return result;
  const Op &raw = *kernel.declaration("r" + tensor.subject.name);
  const bool kMajor = raw.word("major") == "k";
  const Lines lines(tensor);
  // Of lines that begin `skew` elements behind multiples of 16 bytes.
  auto mapOf = [&](int64_t skew, const Expr &count) {
    ptx::TensorMapInfo map;
    map.name = (tensor.word("buffer") + "_map" + llvm::Twine(result.size())).str();
    map.buffer = tensor.word("buffer").str();
    map.type = *parseElem(tensor.word("type"));
    map.dims = {lines.length + Expr(skew), count};
    map.strides = {Expr(maps * lines.pitch * lines.each)};
    map.box = {raw.item("extent", kMajor ? 1 : 0), raw.item("extent", kMajor ? 0 : 1) / maps};
    return map;
  };
  if (!lines.wander()) {
    for (int64_t box = 0; box < maps; ++box) {
      const int64_t start = lines.first(box) * lines.pitch, skew = start % lines.chunk;
      ptx::TensorMapInfo map = mapOf(skew, lines.linesFrom(lines.first(box)));
      map.offset = (start - skew) * lines.each;
      addProducts(tensor, map);
      result.push_back(std::move(map));
    }
    return result;
  }
  const Expr pieces = ceilDiv(products() * lines.stride + Expr(maps * lines.pitch), lines.chunk);
  for (int64_t box : {int64_t(0), maps - 1}) {
    if (box > 0 && !lines.isShorter(box))
      break;
    for (int64_t skew = 0; skew < lines.chunk; skew += lines.step()) {
      ptx::TensorMapInfo map = mapOf(skew, lines.linesFrom(lines.first(box)));
      map.dims.push_back(pieces);
      map.strides.push_back(Expr(chunkBytes));
      map.box.push_back(1);
      result.push_back(std::move(map));
    }
  }
  return result;
}

/// In pieces of 16 bytes and the elements behind them; no product of both is larger than the first one.
std::pair<Val, Val> Lowering::startOfMatrix(int64_t stride, int64_t chunk) {
  const Val &product = variables["product"];
  Val odd = mul(binary("and.b32", product, chunk - 1, "product_of_few"), stride % chunk, "start");
  Val even = mul(divide(product, chunk, "products"), stride % chunk, "pieces");
  Val pieces = add(add(mul(product, stride / chunk, "pieces"), even, "pieces"), divide(odd, chunk, "pieces"), "pieces");
  return {pieces, binary("and.b32", odd, chunk - 1, "start")};
}

/// Box i has the lines i, i + 8, ... of the tile, one behind the other.
void Lowering::copyLines(const Op &op, const TensorView &tensor, const SharedView &raw) {
  const bool rows = tensor.order == Order::row;
  const auto &start = op.ref("from").index;
  Val inner = inRegister(value(start[rows ? 1 : 0]), "x"),
      outer = inRegister(divide(value(start[rows ? 0 : 1]), maps, "y"), "y");
  Val dst = stageAddress(raw, op.subject, "to_" + op.subject.name), bar = barrierAddress(op.ref("signal"), "full");
  Val policy = cachePolicy(op);
  const Lines lines(*kernel.declaration(op.ref("from").name));
  auto [pieces, elements] = lines.wander() ? startOfMatrix(lines.stride, lines.chunk) : std::pair<Val, Val>();
  for (int64_t i = 0; i < maps; ++i) {
    Val to = add(dst, i * raw.tile.groupStride(), "box");
    if (!lines.wander()) {
      loadBox(variables[tensor.buffer + "_map" + std::to_string(i)], boxAt(tensor, inner, outer), to, bar, policy);
      continue;
    }
    // The pieces in front of the line, the elements behind them, and of those the pieces that they are.
    const int64_t line = lines.first(i) * lines.pitch, before = lines.isShorter(i) ? lines.ways() : 0;
    Val piece = add(pieces, line / lines.chunk, "piece"), way = elements;
    if (line % lines.chunk != 0) {
      Val begin = add(elements, line % lines.chunk, "begin");
      piece = add(piece, divide(begin, lines.chunk, "piece"), "piece");
      way = binary("and.b32", begin, lines.chunk - 1, "way");
    }
    // The maps of a tensor are parameters in a row.
    Val map = add64(wide(way, tensorMapBytes / lines.step(), "map_of_way"),
                    variables[tensor.buffer + "_map" + std::to_string(before)], "map");
    loadBox(map, {inner, outer, inRegister(piece, "z")}, to, bar, policy);
  }
}

namespace {
/// A word of a lane: where it lies, one more behind it where lines are off by less than a word, and where it belongs.
struct Word {
  Val from, bits, to;
  int64_t fromOffset, toOffset;
};
} // namespace

/// A lane has a word of each 128 bytes; a warp has the lines of two boxes. Lines eight apart are shifted alike and
/// swizzled alike, so that all their places are constants from there on.
void Lowering::shift(llvm::ArrayRef<Op> operands) {
  const int64_t warps = 4;
  Val roleWarp = add(warp, -this->roleWarp, "role_warp");
  Val laneBytes = mul(lane, wordBytes, "lane_bytes");
  Val piece = binary("shr.u32", lane, 2, "lane_piece"), inPiece = binary("and.b32", laneBytes, 12, "lane_word");
  std::vector<Word> words;
  for (const Op &op : operands) {
    const SharedView &to = buffers.find(op.subject.name)->second, &from = buffers.find(op.ref("from").name)->second;
    const SharedTile &tile = to.tile, &raw = from.tile;
    const int64_t lines = tile.rows / maps, pitch = op.number("pitch") % chunkBytes, stride = op.number("stride", 0);
    Val begin; // of the product's matrix, bytes behind a multiple of 16
    if (stride % chunkBytes != 0)
      begin = binary("and.b32", mul(variables["product"], stride % chunkBytes, "begin"), chunkBytes - 1, "begin");
    Val source = add(stageAddress(from, op.ref("from"), "from_" + op.ref("from").name), laneBytes, "from");
    Val target = stageAddress(to, op.subject, "to_" + op.subject.name);
    for (int64_t half = 0; half < maps / warps; ++half) {
      Val box = add(roleWarp, half * warps, "box");
      Val skew = mul(box, pitch, "skew");
      if (begin.isReg())
        skew = add(skew, begin, "skew");
      skew = binary("and.b32", skew, chunkBytes - 1, "skew");
      Val first = add(add(source, mul(box, raw.groupStride(), "box_place"), "from"),
                      binary("and.b32", skew, chunkBytes - wordBytes, "skew_words"), "from");
      Val swizzled = mul(binary("xor.b32", piece, box, "swizzled"), chunkBytes, "swizzled");
      Val place = add(add(add(target, mul(box, lineBytes, "line"), "to"), swizzled, "to"), inPiece, "to");
      Val bits;
      if (pitch % wordBytes != 0 || stride % wordBytes != 0)
        bits = mul(binary("and.b32", skew, wordBytes - 1, "skew_bytes"), 8, "skew_bits");
      for (int64_t i = 0; i < lines * tile.spans; ++i)
        words.push_back({first, bits, place, i / tile.spans * raw.pitch + i % tile.spans * lineBytes,
                         i / tile.spans * maps * tile.pitch + i % tile.spans * tile.spanStride()});
    }
  }
  // Several loads are on their way before the first store needs its value.
  constexpr size_t together = 8;
  for (llvm::ArrayRef<Word> left = words; !left.empty(); left = left.drop_front(std::min(together, left.size()))) {
    const auto batch = left.take_front(together);
    std::vector<std::pair<Val, Val>> loaded;
    for (const Word &word : batch) {
      Val low = b.reg(Type::b32, "word"), high;
      b("ld.shared.u32", low, at(word.from, word.fromOffset));
      if (word.bits.isReg()) {
        high = b.reg(Type::b32, "next_word");
        b("ld.shared.u32", high, at(word.from, word.fromOffset + wordBytes));
      }
      loaded.push_back({low, high});
    }
    for (auto [word, values] : llvm::zip_equal(batch, loaded)) {
      auto [value, high] = values;
      if (word.bits.isReg()) {
        Val shifted = b.reg(Type::b32, "shifted");
        b("shf.r.wrap.b32", shifted, value, high, word.bits);
        value = shifted;
      }
      b("st.shared.u32", at(word.to, word.toOffset), value);
    }
  }
}
} // namespace gemmc
