// Lines of D that start at any multiple of 2 bytes: a warp writes whole aligned words all the same. Each lane reads the
// aligned word of the staged line that has its number; where the line in memory begins in the middle of a word, all
// words move by one element, and the first and the last element go alone:
//
//     staged    |a b|c d|e f|g h|         a word a lane
//     even      |a b|c d|e f|g h|         the line starts at a multiple of 4
//     odd      .|a|b c|d e|f g|h|         it does not: lane i writes its lower and lane i - 1's upper element
//
// So a line of 128 bytes leaves in one store of a word by all lanes, and whole sectors are written.
#include "Lowering.h"

namespace gemmc {
namespace {
constexpr int64_t warpLanes = 32, wordBytes = 4, elementBytes = 2;
constexpr int64_t maxOffset = int64_t(1) << 30; // an address holds 32 bits of offset
} // namespace

struct Lowering::OddLines {
  Lowering &l;
  ptx::Builder &b;
  const StagedTile &from;
  const TensorView &d;
  Val line0, col0;                                        ///< Of the tile's first element, along D's lines.
  Val linesLeft, colsLeft;                                ///< Of D from there on; None: the whole tile lies inside.
  int64_t words = from.length * elementBytes / wordBytes; ///< Of a line.
  int64_t step = warpLanes / words;                       ///< Lines at a time.
  Val word{}, line{};                                     ///< The lane's.
  Val wordIsFirst{}, wordIsEnd{};
  Val endElement{}; ///< What the lanes at both ends write alone: the line's first or last element.

  /// What depends on where a line begins.
  struct Start {
    Val words, ends;     ///< b64: where the lane's word and its single element go.
    Val selector;        ///< prmt: the lane's word of the line in memory from lane i - 1's and its own.
    Val whole, end, cut; ///< Which lanes write a word, an end, the lower element of a word that D's edge cuts.
  };

  bool atEdge() const { return colsLeft.isReg(); }

  Val predicate(llvm::StringRef mnemonic, const Val &x, const Val &y, llvm::StringRef name) {
    Val p = b.reg(Type::pred, name);
    b(mnemonic, p, x, y);
    return p;
  }

  void prepare() {
    word = step > 1 ? l.remainder(from.thread, words, "word") : from.thread;
    line = step > 1 ? l.divide(from.thread, words, "line") : Val(0);
    wordIsFirst = predicate("setp.eq.u32", word, 0, "first_word");
    Val last = predicate("setp.eq.u32", word, words - 1, "last_word");
    wordIsEnd = b.reg(Type::pred, "end_word");
    b("or.pred", wordIsEnd, wordIsFirst, last);
    endElement = b.reg(Type::b32, "end_element");
    b("selp.b32", endElement, 0, 2 * words - 1, wordIsFirst);
    if (!atEdge())
      return;
    Val inside = predicate("setp.lt.s32", endElement, colsLeft, "end_in");
    b("and.pred", wordIsEnd, wordIsEnd, inside);
  }

  /// `at`: b64, where the line begins.
  Start startAt(const Val &at) {
    Start s;
    Val low = b.reg(Type::b32, "line_low"), shift = b.reg(Type::b32, "shift"), place = b.reg(Type::b32, "word_place");
    Val wide = b.reg(Type::b64, "word_place"), odd = b.reg(Type::pred, "odd");
    b("cvt.u32.u64", low, at);
    b("and.b32", shift, low, elementBytes);
    b("setp.ne.u32", odd, shift, 0);
    s.selector = b.reg(Type::b32, "selector");
    b("selp.b32", s.selector, 0x5432, 0x7654, odd);
    b("shl.b32", place, word, 2);
    b("sub.s32", place, place, shift);
    b("cvt.s64.s32", wide, place);
    s.words = l.add64(at, wide, "words");
    s.ends = l.add64(at, l.wide(endElement, elementBytes, "end_place"), "ends");
    s.whole = b.reg(Type::pred, "whole");
    b("setp.ne.or.u32", s.whole, word, 0, !odd);
    s.end = b.reg(Type::pred, "end");
    b("and.pred", s.end, odd, wordIsEnd);
    if (!atEdge())
      return s;
    Val second = b.reg(Type::b32, "second"), all = s.whole; // the word's second element
    b("shr.u32", second, shift, 1);
    b("sub.s32", second, 1, second);
    b("mad.lo.s32", second, word, 2, second);
    s.whole = b.reg(Type::pred, "whole");
    s.cut = b.reg(Type::pred, "cut");
    b("setp.lt.and.s32", s.whole, second, colsLeft, all);
    b("setp.eq.and.s32", s.cut, second, colsLeft, all);
    return s;
  }

  /// `p`, where the line exists.
  Val where(const Val &p, const Val &lineIn) {
    if (!lineIn.isReg())
      return p;
    Val both = b.reg(Type::pred, "both");
    b("and.pred", both, p, lineIn);
    return both;
  }

  void put(const Start &s, int64_t offset, const Val &staged, const Val &lineIn) {
    Val before = b.reg(Type::b32, "before"), moved = b.reg(Type::b32, "moved"), single = b.reg(Type::b32, "single");
    std::vector<Val> halves = b.regs(Type::b16, "half", 2);
    b("shfl.sync.up.b32", before, staged, 1, 0, -1);
    b("prmt.b32", moved, before, staged, s.selector);
    b.when(where(s.whole, lineIn))("st.global.b32", at(s.words, offset), moved);
    b("mov.b32", Val(halves), staged);
    Val half = b.reg(Type::b16, "single");
    b("selp.b16", half, halves[0], halves[1], wordIsFirst);
    b.when(where(s.end, lineIn))("st.global.b16", at(s.ends, offset), half);
    if (!atEdge())
      return;
    std::vector<Val> parts = b.regs(Type::b16, "half", 2);
    b("mov.b32", Val(parts), moved);
    b.when(where(s.cut, lineIn))("st.global.b16", at(s.words, offset), parts[0]);
  }

  void run() {
    b.comment("lines at any multiple of 2 bytes, in whole words");
    prepare();
    Val shared0 =
        l.add(l.sharedOffset(from.tile, line, l.mul(word, wordBytes, "word_byte"), wordBytes), from.address, "staged");
    Pitches pitches(b);
    Val pitch = pitches.of(d);
    Val start = l.add64(l.wide(l.add(line0, line, "line"), pitch, "line_offset"), d.base, d.buffer + "_line");
    start = l.add64(start, l.wide(col0, elementBytes, "col_offset"), d.buffer + "_line");
    start = wideRegister(start);
    int64_t rounds = from.lines / step;
    // With a fixed pitch there are two kinds of lines, in turn.
    bool fixed = pitch.isImm() && pitch.op.imm * from.lines < maxOffset;
    int64_t bytes = pitch.isImm() ? pitch.op.imm * step : 0;
    Start starts[2];
    if (!fixed && pitch.isReg() && step > 1) {
      Val many = b.reg(Type::b64, "lines_step");
      b("mul.lo.u64", many, pitch, step);
      pitch = many;
    } else if (!fixed && pitch.isImm()) {
      pitch = bytes;
    }
    for (int64_t round = 0; round < rounds; ++round) {
      int64_t kind = fixed && bytes % wordBytes ? round % 2 : 0;
      if (!fixed && round > 0)
        start = l.add64(start, pitch, "line");
      if (!fixed || round == kind)
        if (!fixed || !starts[kind].words.isReg())
          starts[kind] = startAt(kind ? l.add64(start, bytes, "line") : start);
      int64_t key = from.tile.xorOf(round * step) * 16;
      Val address = key ? l.binary("xor.b32", shared0, key, "staged") : shared0, staged = b.reg(Type::b32, "pair");
      b("ld.shared.b32", staged, at(address, round * step * from.tile.pitch));
      Val lineIn;
      if (linesLeft.isReg())
        lineIn =
            predicate("setp.lt.s32", l.inRegister(l.add(line, round * step, "line"), "line"), linesLeft, "line_in");
      put(starts[kind], fixed ? (round - kind) * bytes : 0, staged, lineIn);
    }
  }

  Val wideRegister(const Val &value) {
    if (value.isReg())
      return value;
    Val reg = b.reg(Type::b64, "line");
    b("mov.b64", reg, value);
    return reg;
  }
};

bool Lowering::writesOddLines(const StagedTile &from, const TensorView &d) {
  int64_t bytes = from.length * elementBytes;
  bool spans = bytes == 128 || bytes == 64 || bytes == 32 || bytes == 16;
  return d.elemBytes() == elementBytes && d.align % wordBytes != 0 && from.type == d.type && from.finished &&
         from.threads == warpLanes && spans && from.lines % (warpLanes / (bytes / wordBytes)) == 0;
}

void Lowering::copyOddLines(const StagedTile &from, const TensorView &d, const Val &line0, const Val &col0,
                            const Val &linesLeft, const Val &colsLeft) {
  OddLines{*this, b, from, d, line0, col0, linesLeft, colsLeft}.run();
}

} // namespace gemmc
