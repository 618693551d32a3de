// Lines of D that start inside sectors of the L2, or may. A sector that two requests write parts of takes as long as
// several whole ones (docs/hopper-l2.md, *Odd lines of D*). So a warp writes whole sectors, 16 bytes a lane, from
// multiples of 32 bytes on, whatever the line starts at: what a piece has of its last sector waits for the next piece.
//
//     in memory    |. . . . a b c d|e f g h i j k l|...|y z A B C D E F|...    sectors; here of 8 elements
//     staged              |a b c d  e f g h  i j k l ..  y z|A B C D  E F ..   pieces
//
// What is left in front of a tile's first 16 bytes and behind its last ones leaves element by element.
#include "OddLines.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace gemmc {
namespace {
constexpr int64_t lanes = 32, chunkBytes = 16, pieceBytes = lineBytes;
constexpr int64_t wordsOfChunk = chunkBytes / wordBytes;
} // namespace

SharedTile Lowering::OddLines::stagedPiece() const {
  return SharedTile(lines, pieceBytes / elementBytes, true, elementBytes, SharedLayout::b128);
}

Lowering::OddLines::OddLines(Lowering &lowering, const TensorView &d, const Val &row0, const Val &col0)
    : l(lowering), b(lowering.b), d(d), row0(row0), col0(col0), elementBytes(d.elemBytes()), pitches(lowering.b) {
  b.comment("lines that may start inside sectors, in whole ones");
  step = pitches.of(d);
  start = b.reg(Type::b64, d.buffer + "_line");
  Val line = l.add64(l.wide(row0, step, "line_offset"), d.base, d.buffer + "_line");
  b("add.s64", start, line, l.wide(col0, elementBytes, "col_offset"));
}

bool Lowering::OddLines::stepIsKnown() const { return step.isImm() && step.op.imm * lines < maxOffset; }

std::vector<Lowering::LinePiece> Lowering::OddLines::pieces(int64_t columns, int64_t elementBytes) {
  std::vector<LinePiece> pieces;
  const int64_t most = pieceBytes / elementBytes;
  for (int64_t column = 0; column < columns; column += most)
    pieces.push_back({column, std::min(most, columns - column), pieceBytes});
  return pieces;
}

/// x `compare` y, and `also` unless that is None.
Val Lowering::OddLines::predicate(llvm::StringRef compare, const Val &x, const Val &y, const Val &also,
                                  llvm::StringRef name) {
  Val p = b.reg(Type::pred, name);
  auto [relation, type] = compare.split('.');
  if (also.isReg())
    b(("setp." + relation + ".and." + type).str(), p, x, y, also);
  else
    b(("setp." + compare).str(), p, x, y);
  return p;
}

int64_t Lowering::OddLines::Lanes::firstOf(int64_t round) const {
  return round % stride + round / stride * stride * atOnce;
}

/// Of `each` lanes to a line. Lines that the warp reads at once are to lie unlike, and so in different banks.
Lowering::OddLines::Lanes Lowering::OddLines::lanesOf(const Piece &piece, int64_t each) {
  const SharedTile staged = stagedPiece();
  Lanes share;
  share.ofLine = each, share.atOnce = std::min(lanes / each, lines);
  share.stride = std::min<int64_t>(halves() ? 2 : 1, lines / share.atOnce);
  share.unit = l.remainder(l.lane, each, "unit");
  Val line = each > 1 ? l.divide(l.lane, each, "line") : l.remainder(l.lane, lines, "line"); // two do the same
  share.line = l.mul(line, share.stride, "line");
  Val row = l.mul(share.line, staged.pitch, "line_byte");
  share.key = l.mul(l.remainder(share.line, pieceBytes / chunkBytes, "key"), chunkBytes, "key");
  share.own = l.add(piece.slot, row, "staged");
  if (piece.number > 0)
    share.before = l.add(piece.slotBefore, row, "staged_before");
  share.begin = l.add64(start, l.wide(share.line, step, "line_offset"), d.buffer + "_line");
  // Offsets that are constants are added to addresses, which all pieces have in common then. Of lines at unknown
  // distances there are as many addresses as lines: no more than one piece's are to be held.
  if (!stepIsKnown() && piece.number > 0)
    share.begin = l.add64(share.begin, piece.number * pieceBytes, d.buffer + "_line");
  return share;
}

/// Calls `put` for the lanes' lines of each round.
void Lowering::OddLines::eachRound(const Piece &piece, const Lanes &share, const Edge *edge,
                                   llvm::function_ref<void(const Line &line)> put) {
  const SharedTile staged = stagedPiece();
  const bool known = stepIsKnown();
  std::map<int64_t, Line> alike; // lines that begin alike in their sectors
  Val begin = share.begin;
  for (int64_t round = 0; round < lines / share.atOnce; ++round) {
    const int64_t first = share.firstOf(round), offset = known ? first * step.op.imm : 0;
    if (!known && round > 0)
      begin = l.add64(begin, pitches.of(d, first - share.firstOf(round - 1)), "line");
    auto [found, isNew] = alike.try_emplace(known ? offset % sectorBytes : round);
    Line &line = found->second;
    if (isNew) {
      Val low = b.reg(Type::b32, "line_low");
      b("cvt.u32.u64", low, begin);
      line.skew = l.binary("and.b32", l.add(low, offset % sectorBytes, "line_low"), sectorBytes - 1, "skew");
      line.begin = begin;
    }
    line.place = known ? piece.number * pieceBytes + offset : 0;
    line.row = first * staged.pitch, line.key = staged.xorOf(first) * chunkBytes;
    if (edge)
      line.exists =
          predicate("gt.s32", l.binary("sub.s32", edge->lines, share.line, "lines_left"), first, {}, "line_in");
    put(line);
  }
}

/// Where the byte at `offset` of the lane's line is staged. In the piece before, if that is negative and `before` is
/// not None.
Val Lowering::OddLines::stagedAt(const Lanes &share, const Line &line, const Val &offset, const Val &own,
                                 const Val &before) {
  Val place = l.binary("and.b32", offset, pieceBytes - 1, "staged_byte");
  place = l.binary("xor.b32", place, share.key, "staged_byte");
  if (line.key)
    place = l.binary("xor.b32", place, line.key, "staged_byte");
  Val slot = own;
  if (before.isReg()) {
    slot = b.reg(Type::b32, "slot");
    b("selp.b32", slot, before, own, predicate("lt.s32", offset, 0, {}, "before"));
  }
  return l.add(place, slot, "staged");
}

/// The 16 bytes at `offset` of a line as they lie in memory. They are staged in two chunks.
std::vector<Val> Lowering::OddLines::inMemory(const Lanes &share, const Line &line, const Val &offset) {
  if (!unaligned()) {
    std::vector<Val> words = b.regs(Type::b32, "word", wordsOfChunk);
    b("ld.shared.v4.b32", Val(words), at(stagedAt(share, line, offset, share.own, share.before), line.row));
    return words;
  }
  // Where a chunk begins in the middle of a word, that word is the first one.
  Val firstWord = halves() ? l.binary("and.b32", offset, -wordBytes, "first_word") : offset;
  Val inChunk = l.binary("and.b32", firstWord, chunkBytes - wordBytes, "in_chunk");
  auto back = [&](const Val &slot) { return slot.isReg() ? l.add(slot, -chunkBytes, "staged") : slot; };
  Val left = stagedAt(share, line, firstWord, share.own, share.before);
  Val right = stagedAt(share, line, l.add(firstWord, chunkBytes, "next_chunk"), back(share.own), back(share.before));
  const int64_t count = halves() ? wordsOfChunk + 1 : wordsOfChunk;
  std::vector<Val> words = b.regs(Type::b32, "pair", count);
  for (int64_t i = 0; i < count; ++i) {
    Val place = i == 0 ? left : right;
    if (i > 0 && i < wordsOfChunk) {
      place = b.reg(Type::b32, "staged");
      b("selp.b32", place, left, right, predicate("lt.u32", inChunk, chunkBytes - i * wordBytes, {}, "left"));
    }
    b("ld.shared.b32", words[i], at(place, line.row + i * wordBytes));
  }
  if (!halves())
    return words;
  Val selector = b.reg(Type::b32, "selector"); // of the elements of two words, those in the middle or the first ones
  b("mad.lo.u32", selector, l.binary("and.b32", line.skew, elementBytes, "half"), 0x1111, 0x3210);
  std::vector<Val> shifted = b.regs(Type::b32, "word", wordsOfChunk);
  for (int64_t i = 0; i < wordsOfChunk; ++i)
    b("prmt.b32", shifted[i], words[i], words[i + 1], selector);
  return shifted;
}

/// Chunk number `first` of a line and those behind it, one for each of its lanes.
void Lowering::OddLines::putChunks(const Piece &piece, const Lanes &share, int64_t first, const Edge *edge) {
  const int64_t bytes = piece.columns * elementBytes;
  Val place = l.mul(l.add(share.unit, first, "chunk"), chunkBytes, "chunk_byte");
  eachRound(piece, share, edge, [&](const Line &line) {
    Val whole = line.exists, offset = l.binary("sub.s32", place, line.skew, "chunk_offset");
    if (piece.number == 0 && first == 0)
      whole = predicate("ge.s32", offset, 0, whole, "whole");
    if (edge || bytes < (first + share.ofLine) * chunkBytes)
      whole = predicate("le.s32", offset, l.add(edge ? edge->bytes : Val(bytes), -chunkBytes, "end"), whole, "whole");
    std::vector<Val> words = inMemory(share, line, offset);
    Val wide = b.reg(Type::b64, "chunk_offset"), address = b.reg(Type::b64, "chunk");
    b("cvt.s64.s32", wide, offset);
    b("add.s64", address, line.begin, wide);
    if (whole.isReg())
      b.when(whole);
    b("st.global.v4.b32", at(address, line.place), Val(words));
  });
}

/// All that is complete, 16 bytes a lane.
void Lowering::OddLines::putChunks(const Piece &piece, const Edge *edge) {
  const int64_t all = (piece.columns * elementBytes + mostSkew()) / chunkBytes, ofPiece = pieceBytes / chunkBytes;
  putChunks(piece, lanesOf(piece, int64_t(llvm::PowerOf2Ceil(uint64_t(std::min(all, ofPiece))))), 0, edge);
  if (all > ofPiece && piece.last)
    putChunks(piece, lanesOf(piece, 1), ofPiece, edge);
}

/// The lane's element at `offset` of a line, where it `exists`; `before`: as of `stagedAt`.
void Lowering::OddLines::putElement(const Lanes &share, const Line &line, const Val &offset, const Val &before,
                                    const Val &exists) {
  const std::string type = elementBytes == 2 ? ".b16" : ".b32";
  Val element = b.reg(elementBytes == 2 ? Type::b16 : Type::b32, "element"), wide = b.reg(Type::b64, "offset"),
      address = b.reg(Type::b64, "element");
  b("ld.shared" + type, element, at(stagedAt(share, line, offset, share.own, before), line.row));
  b("cvt.s64.s32", wide, offset);
  b("add.s64", address, line.begin, wide);
  if (exists.isReg())
    b.when(exists);
  b("st.global" + type, at(address, line.place), element);
}

/// What is in front of a line's first 16 bytes and behind its last ones, an element a lane.
void Lowering::OddLines::putEnds(const Piece &piece, const Edge *edge) {
  const int64_t elementsOfChunk = chunkBytes / elementBytes;
  const int64_t bytes = piece.columns * elementBytes;
  const Val end = edge ? edge->bytes : Val(bytes);
  const Lanes share = lanesOf(piece, elementsOfChunk);
  Val byte = l.mul(share.unit, elementBytes, "element_byte");
  if (piece.number == 0 && unaligned())
    eachRound(piece, share, edge, [&](const Line &line) {
      Val head = l.binary("and.b32", l.binary("sub.s32", 0, line.skew, "head"), chunkBytes - 1, "head");
      Val inHead = predicate("lt.s32", byte, head, line.exists, "in_head");
      putElement(share, line, byte, {}, edge ? predicate("lt.s32", byte, end, inHead, "in_head") : inHead);
    });
  if (edge ? covers(d.cols, elementsOfChunk) && !unaligned() : !piece.last || !unaligned())
    return;
  eachRound(piece, share, edge, [&](const Line &line) {
    // From the sector in which the piece begins to the end of D or of the piece.
    Val all = l.add(line.skew, end, "until"), whole = l.binary("and.b32", all, -chunkBytes, "chunks_until");
    Val tail = l.binary("sub.s32", whole, line.skew, "tail"), exists = line.exists;
    if (piece.number == 0 && edge) // else the head is all there is
      exists = predicate("ge.s32", tail, 0, exists, "has_tail");
    else if (edge) // else the piece before had it
      exists = predicate("ge.s32", all, 0, exists, "has_tail");
    if (!piece.last) // else the next piece has it
      exists = predicate("lt.s32", all, pieceBytes, exists, "has_tail");
    Val inTail = predicate("lt.s32", byte, l.binary("sub.s32", all, whole, "tail_bytes"), exists, "in_tail");
    putElement(share, line, l.add(tail, byte, "tail_byte"), edge ? share.before : Val(), inTail);
  });
}

/// Of a tile as narrow as a sector most of these have parts of two lines: all elements as they lie, several lines at
/// once.
void Lowering::OddLines::putElements(const Piece &piece, const Edge *edge) {
  const Lanes share = lanesOf(piece, int64_t(llvm::PowerOf2Ceil(uint64_t(piece.columns))));
  Val byte = l.mul(share.unit, elementBytes, "element_byte");
  eachRound(piece, share, edge, [&](const Line &line) {
    putElement(share, line, byte, {}, edge ? predicate("lt.s32", byte, edge->bytes, line.exists, "in_line") : Val());
  });
}

void Lowering::OddLines::lay(const Piece &piece, const Edge *edge) {
  if (piece.number == 0 && piece.last && piece.columns * elementBytes <= sectorBytes)
    return putElements(piece, edge);
  putChunks(piece, edge);
  if (piece.number == 0 || piece.last || edge)
    putEnds(piece, edge);
}

void Lowering::OddLines::piece(int64_t column, int64_t columns, const Val &slot, const Val &slotBefore, bool last) {
  const Piece piece{column * elementBytes / pieceBytes, columns, last, slot, slotBefore};
  if (l.tilesCover(d))
    return lay(piece, nullptr);
  Val across = b.label("edge"), done = b.label("stored"), firstColumn = l.add(col0, column, "col");
  Val linesLeft = l.binary("sub.s32", l.inRegister(l.value(d.rows), "rows"), row0, "lines_left");
  Val colsLeft = l.binary("sub.s32", l.inRegister(l.value(d.cols), "cols"), firstColumn, "cols_left");
  b.when(predicate("lt.s32", linesLeft, lines, {}, "outside"))("bra", across);
  b.when(predicate("lt.s32", colsLeft, columns, {}, "outside"))("bra", across);
  lay(piece, nullptr);
  b("bra", done);
  b.place(across);
  // Of the piece before nothing waits for one that begins behind D and a sector.
  const int64_t waits = piece.number > 0 ? mostSkew() / elementBytes : 0;
  b.when(predicate("le.s32", linesLeft, 0, {}, "beyond"))("bra", done);
  b.when(predicate("le.s32", colsLeft, -waits - 1, {}, "beyond"))("bra", done);
  Edge edge{linesLeft, l.mul(l.binary("min.s32", colsLeft, columns, "cols_left"), elementBytes, "bytes_left")};
  lay(piece, &edge);
  b.place(done);
}

} // namespace gemmc
