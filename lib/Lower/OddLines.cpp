// Lines of D that do not start at multiples of 16 bytes: a warp writes whole aligned words all the same, a line of a
// piece at a time. Where a line starts in the middle of a word, a lane writes the upper element of the staged word
// before its own and the lower one of its own:
//
//     staged   |a b|c d| .. |y z|  |A B|C D| ..    a word a lane, piece after piece
//     even     |a b|c d| .. |y z|  |A B|C D| ..    the line starts at a multiple of 4
//     odd     .|a|b c| .. |x y|     |z A|B C| ..   it does not: the first element goes alone, and the last one of all
//
// The last element of a piece waits for the next one. A sector of the L2 that is written in parts costs it as much for
// each part: were that element written alone, a line of 128 bytes would cost seven sectors in the place of five.
#include "OddLines.h"

namespace gemmc {
namespace {
constexpr int64_t lanes = 32, wordBytes = 4, elementBytes = 2, pieceBytes = lanes * wordBytes;
constexpr int64_t maxOffset = int64_t(1) << 30; // an address holds 32 bits of offset
} // namespace

Lowering::OddLines::OddLines(Lowering &lowering, const TensorView &d, const Val &row0, const Val &col0)
    : l(lowering), b(lowering.b), d(d), row0(row0), col0(col0), kept(b.regs(Type::b32, "kept", lines)) {
  b.comment("lines at any multiple of 2 bytes, in whole words");
  laneByte = l.mul(l.lane, wordBytes, "lane_byte");
  if (halves()) {
    laneBefore = l.binary("and.b32", l.add(l.lane, lanes - 1, "lane_before"), lanes - 1, "lane_before");
    lastLane = predicate("eq.u32", l.lane, lanes - 1, {}, "last_lane");
  }
  step = Pitches(b).of(d);
  start = b.reg(Type::b64, d.buffer + "_line");
  Val line = l.add64(l.wide(row0, step, "line_offset"), d.base, d.buffer + "_line");
  b("add.s64", start, line, l.wide(col0, elementBytes, "col_offset"));
  if (!known())
    return;
  alike.push_back(startOf(start));
  if (step.op.imm % wordBytes)
    alike.push_back(startOf(l.add64(start, step, "line")));
}

bool Lowering::OddLines::known() const { return step.isImm() && step.op.imm * lines < maxOffset; }

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

/// None is true.
Val Lowering::OddLines::both(const Val &p, const Val &q) {
  if (!p.isReg() || !q.isReg())
    return p.isReg() ? p : q;
  Val both = b.reg(Type::pred, "both");
  b("and.pred", both, p, q);
  return both;
}

/// `line`: b64, where it begins.
Lowering::OddLines::Start Lowering::OddLines::startOf(const Val &line) {
  Start s{l.add64(line, l.wide(l.lane, wordBytes, "word_place"), "words"), laneByte, {}, {}};
  if (!halves())
    return s;
  Val low = b.reg(Type::b32, "line_low"), wide = b.reg(Type::b64, "skew");
  b("cvt.u32.u64", low, line);
  Val skew = l.binary("and.b32", low, elementBytes, "skew");
  s.word = l.binary("sub.s32", laneByte, skew, "word");
  b("cvt.s64.s32", wide, s.word);
  s.address = l.add64(line, wide, "words");
  s.odd = predicate("ne.u32", skew, 0, {}, "odd");
  s.selector = b.reg(Type::b32, "selector");
  b("selp.b32", s.selector, 0x5432, 0x7654, s.odd);
  return s;
}

Lowering::OddLines::Writers Lowering::OddLines::writersOf(const Start &s, int64_t columns, bool first, bool last,
                                                          const Edge *edge) {
  Writers writers;
  const int64_t bytes = columns * elementBytes;
  const bool ends = edge || columns < pieceColumns; // before the last lane's word
  auto endWithout = [&](int64_t less) { return edge ? l.add(edge->bytes, -less, "end") : Val(bytes - less); };
  if (first && halves()) {
    writers.word = predicate("ge.s32", s.word, 0, {}, "begun");
    writers.upper = predicate("eq.s32", s.word, -elementBytes, {}, "upper");
    if (edge)
      writers.upper = predicate("ge.s32", edge->bytes, elementBytes, writers.upper, "upper");
  }
  Val begun = writers.word;
  if (ends)
    writers.word = predicate("le.s32", s.word, endWithout(wordBytes), begun, "whole");
  if (ends && (edge || halves())) // tiles end with words
    writers.lower = predicate("eq.s32", s.word, endWithout(elementBytes), begun, "lower");
  if (last && halves() && columns == pieceColumns) {
    writers.behind = predicate("eq.s32", s.word, pieceBytes - wordBytes - elementBytes, {}, "behind");
    if (edge)
      writers.behind = predicate("ge.s32", edge->bytes, pieceBytes, writers.behind, "behind");
  }
  return writers;
}

/// The word as it lies in memory; what is before lane 0's is the last lane's of the piece before.
Val Lowering::OddLines::inMemory(const Start &s, const Val &own, const Val &ofLastLane) {
  if (!halves())
    return own;
  Val given = own, before = b.reg(Type::b32, "before"), word = b.reg(Type::b32, "word");
  if (ofLastLane.isReg()) {
    given = b.reg(Type::b32, "given");
    b("selp.b32", given, ofLastLane, own, lastLane);
  }
  b("shfl.sync.idx.b32", before, given, laneBefore, 31, -1);
  b("prmt.b32", word, before, own, s.selector);
  return word;
}

void Lowering::OddLines::put(const Start &s, const Writers &writers, int64_t offset, const Val &own, const Val &word,
                             const Val &exists) {
  if (Val p = both(writers.word, exists); p.isReg())
    b.when(p);
  b("st.global.b32", at(s.address, offset), word);
  auto putHalf = [&](const Val &p, int64_t place, const Val &of, int64_t half) {
    if (!p.isReg())
      return;
    std::vector<Val> halves = b.regs(Type::b16, "half", 2);
    b("mov.b32", Val(halves), of);
    b.when(both(p, exists))("st.global.b16", at(s.address, offset + place), halves[half]);
  };
  putHalf(writers.upper, elementBytes, word, 1);
  putHalf(writers.lower, 0, word, 0);
  putHalf(writers.behind, wordBytes, own, 1);
}

void Lowering::OddLines::lay(int64_t number, int64_t columns, const Val &slot, bool last, const Edge *edge) {
  const SharedTile staged(lines, pieceColumns, true, elementBytes, SharedLayout::b128);
  const int64_t kinds = int64_t(alike.size());
  std::vector<Writers> writers;
  for (const Start &each : alike)
    writers.push_back(writersOf(each, columns, number == 0, last, edge));
  Val line = start, place = l.sharedOffset(staged, 0, laneByte, wordBytes);
  for (int64_t i = 0; i < lines; ++i) {
    if (i > 0 && !kinds)
      line = l.add64(line, step, "line");
    const Start s = kinds ? alike[i % kinds] : startOf(line);
    const Writers who = kinds ? writers[i % kinds] : writersOf(s, columns, number == 0, last, edge);
    const int64_t key = staged.xorOf(i) * 16, offset = kinds ? (i - i % kinds) * step.op.imm : 0;
    Val own = b.reg(Type::b32, "pair"),
        from = l.add(key ? l.binary("xor.b32", place, key, "place") : place, slot, "staged");
    b("ld.shared.b32", own, at(from, i * staged.pitch));
    Val exists = edge ? predicate("gt.s32", edge->lines, i, {}, "line_in") : Val();
    put(s, who, number * pieceBytes + offset, own, inMemory(s, own, number > 0 ? kept[i] : Val()), exists);
    if (!last && halves())
      b("mov.b32", kept[i], own);
  }
}

void Lowering::OddLines::piece(int64_t column, int64_t columns, const Val &slot, bool last) {
  const int64_t number = column / pieceColumns;
  const int64_t tileM = l.kernel.root.item("block", 0) * l.clusterM,
                tileN = l.kernel.root.item("block", 1) * l.clusterN;
  if (covers(d.rows, tileM) && covers(d.cols, tileN))
    return lay(number, columns, slot, last, nullptr);
  Val across = b.label("edge"), done = b.label("stored"), firstColumn = l.add(col0, column, "col");
  Edge edge{l.binary("sub.s32", l.inRegister(l.value(d.rows), "rows"), row0, "lines_left"),
            l.binary("sub.s32", l.inRegister(l.value(d.cols), "cols"), firstColumn, "cols_left")};
  b.when(predicate("lt.s32", edge.lines, lines, {}, "outside"))("bra", across);
  b.when(predicate("lt.s32", edge.bytes, columns, {}, "outside"))("bra", across);
  lay(number, columns, slot, last, nullptr);
  b("bra", done);
  b.place(across);
  edge.bytes = l.mul(l.binary("min.s32", edge.bytes, columns, "cols_left"), elementBytes, "bytes_left");
  lay(number, columns, slot, last, &edge);
  b.place(done);
}

} // namespace gemmc
