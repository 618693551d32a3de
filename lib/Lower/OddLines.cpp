// Lines of D that do not start at multiples of 16 bytes: a warp writes whole aligned words all the same, a line of a
// piece at a time, or several that are narrow. Where a line starts in the middle of a word, a lane writes the upper
// element of the staged word in front and the lower one of its own:
//
//     staged   |a b|c d| .. |y z|  |A B|C D| ..    a word a lane, piece after piece
//     even     |a b|c d| .. |y z|  |A B|C D| ..    the line starts at a multiple of 4
//     odd     .|a|b c| .. |x y|     |z A|B C| ..   it does not: the first element goes alone, and the last one of all
//
// The last element of a piece waits for the next one. A sector of the L2 that is written in parts costs it as much for
// each part: were that element written alone, a line of 128 bytes would cost seven sectors in the place of five
// (docs/hopper-l2.md, *Odd lines of D*).
#include "OddLines.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
constexpr int64_t lanes = 32, elementBytes = 2, pieceBytes = lanes * wordBytes;
} // namespace

SharedTile Lowering::OddLines::stagedPiece() {
  return SharedTile(lines, pieceColumns, true, elementBytes, SharedLayout::b128);
}

Lowering::OddLines::OddLines(Lowering &lowering, const TensorView &d, const Val &row0, const Val &col0)
    : l(lowering), b(lowering.b), d(d), row0(row0), col0(col0), pitches(lowering.b) {
  b.comment("lines at any multiple of 2 bytes, in whole words");
  step = pitches.of(d);
  start = b.reg(Type::b64, d.buffer + "_line");
  Val line = l.add64(l.wide(row0, step, "line_offset"), d.base, d.buffer + "_line");
  b("add.s64", start, line, l.wide(col0, elementBytes, "col_offset"));
}

bool Lowering::OddLines::stepIsKnown() const { return step.isImm() && step.op.imm * lines < maxOffset; }

std::vector<Lowering::LinePiece> Lowering::OddLines::pieces(int64_t columns) {
  std::vector<LinePiece> pieces;
  for (int64_t column = 0; column < columns; column += pieceColumns)
    pieces.push_back({column, std::min(pieceColumns, columns - column), pieceBytes});
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

/// A place of the first lines in that of other ones: `key` says where they are swizzled to.
Val Lowering::OddLines::keyed(const Val &place, int64_t key) {
  return key ? l.binary("xor.b32", place, key, "staged") : place;
}

/// The lane's word and line, where they are staged and where they go.
void Lowering::OddLines::place(Piece &piece, const Val &slot, const Val &slotBefore) {
  const SharedTile staged = stagedPiece();
  const bool several = piece.atOnce > 1;
  piece.word = several ? l.remainder(l.lane, piece.words, "word") : l.lane;
  piece.line = several ? l.divide(l.lane, piece.words, "line") : Val(0);
  Val byte = l.mul(piece.word, wordBytes, "word_byte");
  piece.own = l.add(l.sharedOffset(staged, piece.line, byte, wordBytes), slot, "staged");
  piece.begin = several ? l.add64(start, l.wide(piece.line, step, "line_offset"), d.buffer + "_line") : start;
  // Offsets that are constants are added to addresses, which all pieces have in common then. Of lines at unknown
  // distances there are as many addresses as lines: no more than one piece's are to be held.
  if (!stepIsKnown() && piece.number > 0)
    piece.begin = l.add64(piece.begin, piece.number * pieceBytes, d.buffer + "_line");
  if (!halves() || piece.number == 0)
    return;
  piece.firstWord = predicate("eq.u32", piece.word, 0, {}, "first_word");
  piece.tail = l.add(l.sharedOffset(staged, piece.line, pieceBytes - wordBytes, wordBytes), slotBefore, "tail");
}

/// `line`: b64, where the lane's begins.
Lowering::OddLines::Start Lowering::OddLines::startOf(const Piece &piece, const Val &line) {
  Val byte = l.mul(piece.word, wordBytes, "word_byte");
  if (!halves())
    return {l.add64(line, l.wide(piece.word, wordBytes, "word_place"), "words"), byte, {}};
  Start s;
  Val low = b.reg(Type::b32, "line_low"), wide = b.reg(Type::b64, "word_place");
  b("cvt.u32.u64", low, line);
  Val skew = l.binary("and.b32", low, elementBytes, "skew");
  s.offset = l.binary("sub.s32", byte, skew, "word_offset");
  b("cvt.s64.s32", wide, s.offset);
  s.address = l.add64(line, wide, "words");
  s.selector = b.reg(Type::b32, "selector");
  b("selp.b32", s.selector, 0x5432, 0x7654, predicate("ne.u32", skew, 0, {}, "odd"));
  return s;
}

Lowering::OddLines::Writers Lowering::OddLines::writersOf(const Piece &piece, const Start &s, const Edge *edge) {
  Writers writers;
  const int64_t bytes = piece.columns * elementBytes, ofLanes = piece.words * wordBytes;
  const bool first = piece.number == 0, ends = edge || bytes < ofLanes; // before the last lane's word does
  auto endWithout = [&](int64_t less) { return edge ? l.add(edge->bytes, -less, "end") : Val(bytes - less); };
  if (first && halves()) {
    writers.word = predicate("ge.s32", s.offset, 0, {}, "begun");
    writers.upper = predicate("eq.s32", s.offset, -elementBytes, {}, "upper");
    if (edge)
      writers.upper = predicate("ge.s32", edge->bytes, elementBytes, writers.upper, "upper");
  }
  Val begun = writers.word;
  if (ends)
    writers.word = predicate("le.s32", s.offset, endWithout(wordBytes), begun, "whole");
  if (ends && (edge || halves())) // a tile of whole words ends inside one only where its lines begin so
    writers.lower = predicate("eq.s32", s.offset, endWithout(elementBytes), begun, "lower");
  if (piece.last && halves() && bytes == ofLanes) {
    writers.behind = predicate("eq.s32", s.offset, bytes - wordBytes - elementBytes, {}, "behind");
    if (edge)
      writers.behind = predicate("ge.s32", edge->bytes, bytes, writers.behind, "behind");
  }
  return writers;
}

/// The word as it lies in memory, of the lane's staged one and the one in front: that of the lane before, or the last
/// one of the line in the piece before. `number`: of lane 0's line.
Val Lowering::OddLines::inMemory(const Piece &piece, const Start &s, const Val &own, int64_t number) {
  if (!halves())
    return own;
  Val before = b.reg(Type::b32, "before"), word = b.reg(Type::b32, "word");
  b("shfl.sync.up.b32", before, own, 1, 0, -1);
  if (piece.number > 0) {
    Val last = b.reg(Type::b32, "tail"), inFront = b.reg(Type::b32, "before");
    // Of a line at a time the swizzled place is a constant.
    const SharedTile staged = stagedPiece();
    const int64_t key = staged.xorOf(number) * 16, row = number * staged.pitch, byte = pieceBytes - wordBytes;
    if (piece.atOnce > 1)
      b("ld.shared.b32", last, at(keyed(piece.tail, key), row));
    else
      b("ld.shared.b32", last, at(piece.tail, row + (byte ^ key) - byte));
    b("selp.b32", inFront, last, before, piece.firstWord);
    before = inFront;
  }
  b("prmt.b32", word, before, own, s.selector);
  return word;
}

void Lowering::OddLines::put(const Start &s, const Writers &writers, int64_t place, const Val &own, const Val &word,
                             const Val &exists) {
  if (Val p = l.both(writers.word, exists); p.isReg())
    b.when(p);
  b("st.global.b32", at(s.address, place), word);
  auto putHalf = [&](const Val &p, int64_t beside, const Val &of, int64_t half) {
    if (!p.isReg())
      return;
    std::vector<Val> halves = b.regs(Type::b16, "half", 2);
    b("mov.b32", Val(halves), of);
    b.when(l.both(p, exists))("st.global.b16", at(s.address, place + beside), halves[half]);
  };
  putHalf(writers.upper, elementBytes, word, 1);
  putHalf(writers.lower, 0, word, 0);
  putHalf(writers.behind, wordBytes, own, 1);
}

void Lowering::OddLines::lay(const Piece &piece, const Edge *edge) {
  const SharedTile staged = stagedPiece();
  // With a known step there are two kinds of lines at most, in turn.
  const int64_t kinds = !stepIsKnown() ? 0 : step.op.imm * piece.atOnce % wordBytes ? 2 : 1;
  std::vector<Start> alike;
  std::vector<Writers> writers;
  for (int64_t kind = 0; kind < kinds; ++kind) {
    alike.push_back(startOf(piece, kind ? l.add64(piece.begin, pitches.of(d, piece.atOnce), "line") : piece.begin));
    writers.push_back(writersOf(piece, alike.back(), edge));
  }
  Val line = piece.begin, advance = kinds ? Val() : pitches.of(d, piece.atOnce);
  for (int64_t round = 0, first = 0; first < lines; ++round, first += piece.atOnce) {
    if (round > 0 && !kinds)
      line = l.add64(line, advance, "line");
    const Start s = kinds ? alike[round % kinds] : startOf(piece, line);
    const Writers who = kinds ? writers[round % kinds] : writersOf(piece, s, edge);
    const int64_t place = kinds ? piece.number * pieceBytes + (first - round % kinds * piece.atOnce) * step.op.imm : 0;
    Val own = b.reg(Type::b32, "pair");
    b("ld.shared.b32", own, at(keyed(piece.own, staged.xorOf(first) * 16), first * staged.pitch));
    Val exists = edge ? predicate("gt.s32", edge->lines, first, {}, "line_in") : Val();
    put(s, who, place, own, inMemory(piece, s, own, first), exists);
  }
}

void Lowering::OddLines::piece(int64_t column, int64_t columns, const Val &slot, const Val &slotBefore, bool last) {
  Piece piece{column / pieceColumns, columns, last, 0, 0, {}, {}, {}, {}, {}, {}};
  piece.words = int64_t(llvm::PowerOf2Ceil(uint64_t(columns * elementBytes / wordBytes)));
  piece.atOnce = lanes / piece.words;
  place(piece, slot, slotBefore);
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
  Edge edge{piece.line.isReg() ? l.binary("sub.s32", linesLeft, piece.line, "lines_left") : linesLeft,
            l.mul(l.binary("min.s32", colsLeft, columns, "cols_left"), elementBytes, "bytes_left")};
  lay(piece, &edge);
  b.place(done);
}

} // namespace gemmc
