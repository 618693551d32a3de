// C in another type or order than D, or at the wish of a spec: it cannot come to where D will lie. A lane loads the
// elements that it has sums of, so that D leaves as it does without C. Of a column in memory eight lanes read
// neighbours, of a row four of them two each: sectors of the L2 are read whole, if not by one access. Loads of many
// elements go out before the first is used, and before a piece is stored more of them: no load passes a store that may
// be to the same place.
#include "FragmentsOfC.h"

namespace gemmc {
namespace {
constexpr int64_t lines = 16;
/// Registers that addresses and the store of lines take beside sums, more of them where beta may be 0, which ptxas 13
/// pays twice, and where sums are f16, which become f32 on their way.
constexpr int64_t others = 72, forBoth = 64, forHalves = 32;
} // namespace

Lowering::FragmentsOfC::FragmentsOfC(Lowering &lowering, const TensorView &c, const AccumulatorView &acc,
                                     const Val &reads)
    : l(lowering), b(lowering.b), c(c), reads(reads),
      spare(l.registersOfThread() - acc.registers() - others - (reads.isReg() ? forBoth : 0) -
            (acc.half() ? forHalves : 0)),
      pitches(b) {
  pitches.of(c); // here, because not all paths read C
}

Type Lowering::FragmentsOfC::type() const { return halves() ? Type::b16 : c.type == Elem::s32 ? Type::b32 : Type::f32; }
const char *Lowering::FragmentsOfC::word() const { return halves() ? "b16" : c.type == Elem::s32 ? "b32" : "f32"; }

void Lowering::FragmentsOfC::begin(const Val &tileRow, const Val &tileCol, std::vector<Piece> ofTile) {
  row = tileRow;
  col = tileCol;
  pieces = std::move(ofTile);
}

Lowering::FragmentsOfC::Pair Lowering::FragmentsOfC::pair(int64_t j, int64_t h) {
  if (j == groupsAsked()) {
    constexpr int64_t ofStmatrix = 2;
    const int64_t room = spare / registersOfGroup() / ofStmatrix * ofStmatrix;
    fetch(std::min(std::clamp(room, ofStmatrix, groupsAtOnce()), groupsOfPiece() - j));
  }
  return pairs[2 * j + h];
}

void Lowering::FragmentsOfC::staged() {
  pairs.clear();
  if (++done == pieces.size() || l.gathers())
    return;
  const int64_t next = std::min(groupsAtOnce(), groupsOfPiece());
  if (next * registersOfGroup() <= spare)
    fetch(next);
}

void Lowering::FragmentsOfC::clear(llvm::ArrayRef<Pair> to) {
  const Type of = inWords() ? Type::b32 : type();
  for (const Pair &pair : to)
    for (const Val &reg : {pair.first, pair.second})
      if (reg.isReg())
        b(of == Type::f32   ? "mov.f32"
          : of == Type::b32 ? "mov.b32"
                            : "mov.b16",
          reg, of == Type::f32 ? Val(ptx::Operand::makeF32(0)) : Val(0));
}

void Lowering::FragmentsOfC::fetch(int64_t groups) {
  const Piece &piece = pieces[done];
  const int64_t column = piece.column + groupsAsked() * groupColumns;
  std::vector<Pair> to;
  for (int64_t i = 0; i < 2 * groups; ++i)
    to.push_back(inWords() ? Pair(b.reg(Type::b32, "c"), Val()) : Pair(b.reg(type(), "c"), b.reg(type(), "c")));
  pairs.insert(pairs.end(), to.begin(), to.end());
  const Val row0 = l.add(row, piece.row, "row"), col0 = l.add(col, column, "col");
  Val end = b.label("fragments_of_c");
  if (reads.isReg()) {
    clear(to);
    b.unless(reads)("bra", end);
  }
  const Val laneRow = l.add(row0, l.divide(l.lane, 4, "lane_row"), "row"),
            laneCol = l.add(col0, l.mul(l.remainder(l.lane, 4, "lane_pair"), 2, "lane_col"), "col");
  const Val &slow = byRow() ? laneRow : laneCol, &fast = byRow() ? laneCol : laneRow;
  Val start = l.add64(l.wide(slow, pitches.of(c), "line_offset"), c.base, c.buffer + "_line");
  start = l.add64(start, l.wide(fast, c.elemBytes(), "element_offset"), c.buffer + "_fragment");
  if (l.tilesCover(c)) {
    load(to, start, nullptr);
    if (reads.isReg())
      b.place(end);
    return;
  }
  Val across = b.label("edge_of_c");
  auto leaves = [&](const Val &from, int64_t size, const Expr &extent) {
    Val outside = b.reg(Type::pred, "outside");
    b("setp.gt.s32", outside, l.inRegister(l.add(from, size, "piece_end"), "piece_end"), l.value(extent));
    b.when(outside)("bra", across);
  };
  leaves(row0, lines, c.rows);
  leaves(col0, groups * groupColumns, c.cols);
  load(to, start, nullptr);
  b("bra", end);
  b.place(across);
  const Edge edge{l.binary("sub.s32", l.inRegister(l.value(c.rows), "rows"), laneRow, "rows_left"),
                  l.binary("sub.s32", l.inRegister(l.value(c.cols), "cols"), laneCol, "cols_left")};
  if (!reads.isReg())
    clear(to);
  load(to, start, &edge);
  b.place(end);
}

void Lowering::FragmentsOfC::loadOne(const Val &to, const Val &address, int64_t offset, const Val &guard) {
  if (guard.isReg())
    b.when(guard);
  b(std::string("ld.global.") + word(), to, at(address, offset));
}

/// Two neighbours, which both are there or not.
void Lowering::FragmentsOfC::loadPair(const Pair &to, const Val address[2], const int64_t offset[2], const Val &guard) {
  if (!inPairs()) {
    loadOne(to.first, address[0], offset[0], guard);
    loadOne(to.second, address[1], offset[1], guard);
    return;
  }
  if (guard.isReg())
    b.when(guard);
  if (inWords())
    b("ld.global.b32", to.first, at(address[0], offset[0]));
  else
    b(std::string("ld.global.v2.") + word(), Val(std::vector<Val>{to.first, to.second}), at(address[0], offset[0]));
}

void Lowering::FragmentsOfC::load(llvm::ArrayRef<Pair> to, const Val &start, const Edge *edge) {
  const Val pitch = pitches.of(c);
  const int64_t groups = int64_t(to.size()) / 2, farthest = byRow() ? lines : groups * groupColumns;
  const bool known = pitch.isImm() && pitch.op.imm * farthest < maxOffset;
  // Two lines that are walked: halves of the 16 rows, or neighbouring columns.
  const Val advance = known ? Val() : pitches.of(c, groupColumns);
  Val line[2] = {start, known ? start : l.add64(start, byRow() ? advance : pitch, c.buffer + "_line")};
  Val rowIn[2];
  for (int64_t h = 0; edge && h < 2; ++h) {
    rowIn[h] = b.reg(Type::pred, "row_in");
    b("setp.gt.s32", rowIn[h], edge->rows, 8 * h);
  }
  auto colIn = [&](int64_t column, int64_t h) {
    Val in = b.reg(Type::pred, "in");
    b("setp.gt.and.s32", in, edge->cols, column, rowIn[h]);
    return in;
  };
  for (int64_t j = 0; j < groups; ++j) {
    if (!known && !byRow() && j > 0)
      for (Val &one : line)
        one = l.add64(one, advance, c.buffer + "_line");
    for (int64_t h = 0; h < 2; ++h) {
      const Pair &two = to[2 * j + h];
      const Val address[2] = {line[byRow() ? h : 0], line[byRow() ? h : 1]};
      int64_t offset[2];
      for (int64_t e = 0; e < 2; ++e) {
        const int64_t column = j * groupColumns + e, slow = byRow() ? 8 * h : column, fast = byRow() ? column : 8 * h;
        offset[e] = (known ? slow * pitch.op.imm : 0) + fast * c.elemBytes();
      }
      const int64_t column = j * groupColumns;
      if (!edge || covers(c.cols, 2)) {
        loadPair(two, address, offset, edge ? colIn(column, h) : Val());
        continue;
      }
      const std::vector<Val> each = inWords() ? b.regs(Type::b16, "half", 2) : std::vector<Val>{two.first, two.second};
      for (int64_t e = 0; e < 2; ++e) {
        if (inWords())
          b("mov.b16", each[e], 0);
        loadOne(each[e], address[e], offset[e], colIn(column + e, h));
      }
      if (inWords())
        b("mov.b32", two.first, Val(each));
    }
  }
}

} // namespace gemmc
