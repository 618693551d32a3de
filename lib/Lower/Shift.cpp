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
#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t maps = SharedTile::groups, chunkBytes = 16;
} // namespace

std::vector<ptx::TensorMapInfo> Lowering::lineMaps(const Op &tensor) const {
  std::vector<ptx::TensorMapInfo> result;
  if (!tensor.has("shift"))
    return result;
  const Op &raw = *kernel.declaration("r" + tensor.subject.name);
  const bool rows = tensor.word("order") == "row", kMajor = raw.word("major") == "k";
  const int64_t each = bytesOf(*parseElem(tensor.word("type"))), pitch = tensor.number("ld") * each;
  const Expr &length = tensor.expr(rows ? "cols" : "rows"), &lines = tensor.expr(rows ? "rows" : "cols");
  for (int64_t box = 0; box < maps; ++box) {
    const int64_t first = lines.isConst() && box >= lines.constant() ? 0 : box;
    const int64_t skew = first * pitch % chunkBytes;
    ptx::TensorMapInfo map;
    map.name = (tensor.word("buffer") + "_map" + llvm::Twine(box)).str();
    map.buffer = tensor.word("buffer").str();
    map.type = *parseElem(tensor.word("type"));
    map.dims = {length + Expr(skew / each), ceilDiv(lines - Expr(first), maps)};
    map.strides = {Expr(maps * pitch)};
    map.box = {raw.item("extent", kMajor ? 1 : 0), raw.item("extent", kMajor ? 0 : 1) / maps};
    map.offset = first * pitch - skew;
    result.push_back(std::move(map));
  }
  return result;
}

/// Box i has the lines i, i + 8, ... of the tile, one behind the other.
void Lowering::copyLines(const Op &op, const TensorView &tensor, const SharedView &raw) {
  const bool rows = tensor.order == Order::row;
  const auto &start = op.ref("from").index;
  Val inner = inRegister(value(start[rows ? 1 : 0]), "x"),
      outer = inRegister(divide(value(start[rows ? 0 : 1]), maps, "y"), "y");
  Val dst = stageAddress(raw, op.subject, "to_" + op.subject.name), bar = barrierAddress(op.ref("signal"), "full");
  Val policy = cachePolicy(op);
  for (int64_t i = 0; i < maps; ++i) {
    Val to = add(dst, i * raw.tile.groupStride(), "box");
    loadBox(variables[tensor.buffer + "_map" + std::to_string(i)], {inner, outer}, to, bar, policy);
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
    const int64_t lines = tile.rows / maps, pitch = op.number("pitch") % chunkBytes;
    Val source = add(stageAddress(from, op.ref("from"), "from_" + op.ref("from").name), laneBytes, "from");
    Val target = stageAddress(to, op.subject, "to_" + op.subject.name);
    for (int64_t half = 0; half < maps / warps; ++half) {
      Val box = add(roleWarp, half * warps, "box");
      Val skew = binary("and.b32", mul(box, pitch, "skew"), chunkBytes - 1, "skew");
      Val first = add(add(source, mul(box, raw.groupStride(), "box_place"), "from"),
                      binary("and.b32", skew, chunkBytes - wordBytes, "skew_words"), "from");
      Val swizzled = mul(binary("xor.b32", piece, box, "swizzled"), chunkBytes, "swizzled");
      Val place = add(add(add(target, mul(box, lineBytes, "line"), "to"), swizzled, "to"), inPiece, "to");
      Val bits;
      if (pitch % wordBytes != 0)
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
