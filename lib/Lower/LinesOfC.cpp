// C on its way to the sums, for a warp that fetches it by itself: lines start anywhere, and lanes read up to 16 bytes
// of them at a time, whole lines side by side. They come to where D will be staged, so a lane then finds each element
// of C where it will put that of D (WarpStore.cpp, as with a C that TMA brings).
//
//     C         .|a|b c|d e| ..     halves, where lines start at multiples of 2 bytes: words lie across those of memory
//     staged     |a b|c d| ..
#include "LinesOfC.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
namespace {
constexpr int64_t warpLanes = 32, mostBytes = 16;

Val oneOrAll(const std::vector<Val> &regs) { return regs.size() == 1 ? regs[0] : Val(regs); }
} // namespace

Lowering::LinesOfC::LinesOfC(Lowering &lowering, const TensorView &c)
    : l(lowering), b(lowering.b), c(c), pitches(lowering.b) {
  pitches.of(c); // here, because not all paths read C
}

Lowering::LinesOfC::Lanes Lowering::LinesOfC::lanesOf(int64_t lineBytes) {
  Lanes lanes{wordBytes, 0, 0, {}, {}, {}};
  // Two parts a line at least: 16 lines have work for all lanes.
  for (int64_t twice = 2 * wordBytes; twice <= mostBytes; twice *= 2)
    if (c.align % twice == 0 && lineBytes % (2 * twice) == 0)
      lanes.bytes = twice;
  lanes.parts = lineBytes / lanes.bytes;
  const int64_t ofLine = int64_t(llvm::PowerOf2Ceil(uint64_t(lanes.parts)));
  lanes.atOnce = warpLanes / ofLine;
  lanes.part = lanes.atOnce > 1 ? l.remainder(l.lane, ofLine, "part") : l.lane;
  lanes.line = lanes.atOnce > 1 ? l.divide(l.lane, ofLine, "line") : Val(0);
  if (lanes.parts < ofLine) {
    lanes.there = b.reg(Type::pred, "part_in");
    b("setp.lt.u32", lanes.there, lanes.part, lanes.parts);
  }
  return lanes;
}

void Lowering::LinesOfC::element(const Val &to, const Val &address, int64_t offset, const Val &exists,
                                 const Val &colsLeft, int64_t number) {
  const bool half = c.elemBytes() == 2;
  Val in = b.reg(Type::pred, "in");
  b("setp.gt.s32", in, colsLeft, number);
  b(half ? "mov.b16" : "mov.b32", to, 0);
  b.when(l.both(exists, in))(half ? "ld.global.b16" : "ld.global.b32", to,
                             at(address, offset + number * c.elemBytes()));
}

/// A part across the edge of C.
void Lowering::LinesOfC::loadElements(const std::vector<Val> &part, const Val &address, int64_t offset,
                                      const Val &exists, const Val &colsLeft) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (c.elemBytes() != 2 || halves()) {
      element(part[i], address, offset, exists, colsLeft, int64_t(i));
      continue;
    }
    std::vector<Val> pair = b.regs(Type::b16, "half", 2);
    for (int64_t h = 0; h < 2; ++h)
      element(pair[h], address, offset, exists, colsLeft, 2 * int64_t(i) + h);
    b("mov.b32", part[i], Val(pair));
  }
}

void Lowering::LinesOfC::load(Fetched &to, const Start &start, bool atEdge) {
  const Lanes &lanes = to.lanes;
  const Val step = pitches.of(c);
  const bool known = step.isImm() && step.op.imm * lines < maxOffset;
  Val address = start.address, advance = known ? Val() : pitches.of(c, lanes.atOnce);
  for (int64_t round = 0; round < int64_t(to.parts.size()); ++round) {
    const std::vector<Val> &part = to.parts[round];
    const int64_t first = round * lanes.atOnce, offset = known ? first * step.op.imm : 0;
    if (round > 0 && !known)
      address = l.add64(address, advance, c.buffer + "_line");
    if (atEdge) {
      Val in = b.reg(Type::pred, "line_in");
      b("setp.gt.s32", in, start.linesLeft, first);
      loadElements(part, address, offset, l.both(lanes.there, in), start.colsLeft);
      continue;
    }
    auto fetch = [&](llvm::StringRef mnemonic, const Val &regs, int64_t byte) {
      if (lanes.there.isReg())
        b.when(lanes.there);
      b(mnemonic.str(), regs, at(address, offset + byte));
    };
    if (lanes.there.isReg())
      for (const Val &reg : part)
        b(halves() ? "mov.b16" : "mov.b32", reg, 0);
    if (!halves())
      fetch(vectorOf("ld.global", int64_t(part.size()), "b32"), oneOrAll(part), 0);
    else
      for (size_t i = 0; i < part.size(); ++i)
        fetch("ld.global.b16", part[i], int64_t(i) * c.elemBytes());
  }
}

Lowering::LinesOfC::Fetched Lowering::LinesOfC::fetch(int64_t columns, const Val &row, const Val &col) {
  const int64_t element = c.elemBytes();
  Fetched to{lanesOf(columns * element), {}};
  for (int64_t line = 0; line < lines; line += to.lanes.atOnce)
    to.parts.push_back(halves() ? b.regs(Type::b16, "c", 2) : b.regs(Type::b32, "c", to.lanes.bytes / wordBytes));
  Start start;
  start.row = l.add(row, to.lanes.line, "row");
  start.col = l.add(col, l.mul(to.lanes.part, to.lanes.bytes / element, "part_col"), "col");
  start.address = l.add64(l.wide(start.row, pitches.of(c), "line_offset"), c.base, c.buffer + "_line");
  start.address = l.add64(start.address, l.wide(start.col, element, "col_offset"), c.buffer + "_part");
  if (l.tilesCover(c)) {
    load(to, start, false);
    return to;
  }
  Val across = b.label("edge_of_c"), done = b.label("lines_of_c");
  auto leaves = [&](const Val &from, int64_t size, const Expr &extent) {
    Val outside = b.reg(Type::pred, "outside");
    b("setp.gt.s32", outside, l.inRegister(l.add(from, size, "piece_end"), "piece_end"), l.value(extent));
    b.when(outside)("bra", across);
  };
  leaves(row, lines, c.rows);
  leaves(col, columns, c.cols);
  load(to, start, false);
  b("bra", done);
  b.place(across);
  start.linesLeft = l.binary("sub.s32", l.inRegister(l.value(c.rows), "rows"), start.row, "lines_left");
  start.colsLeft = l.binary("sub.s32", l.inRegister(l.value(c.cols), "cols"), start.col, "cols_left");
  load(to, start, true);
  b.place(done);
  return to;
}

/// Lanes that have no part put zeros behind the line's columns, where nobody looks.
void Lowering::LinesOfC::put(const Fetched &fetched, const SharedTile &staged, const Val &slot) {
  const Lanes &lanes = fetched.lanes;
  const Val byte = l.mul(lanes.part, lanes.bytes, "part_byte");
  const Val own = l.add(l.sharedOffset(staged, lanes.line, byte, lanes.bytes), slot, "staged");
  for (int64_t round = 0; round < int64_t(fetched.parts.size()); ++round) {
    std::vector<Val> words = fetched.parts[round];
    if (halves()) {
      Val word = b.reg(Type::b32, "c");
      b("mov.b32", word, Val(words));
      words = {word};
    }
    const int64_t first = round * lanes.atOnce, key = staged.xorOf(first) * 16;
    const Val place = key ? l.binary("xor.b32", own, key, "staged") : own;
    b(vectorOf("st.shared", int64_t(words.size()), "b32"), at(place, first * staged.pitch), oneOrAll(words));
  }
}

} // namespace gemmc
