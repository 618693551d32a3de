// Lines of a tile into the L2, one `prefetch` for each 128 bytes of them.
#include "Lowering.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {
/// A thread takes every `threads`-th prefetch: pieces of one row of the tile (a column, where the tensor is in column
/// order), then of the next. Rows that start inside a line have one piece more, at their last element.
void Lowering::prefetchLines(const Op &op) {
  const TensorView &t = tensors.find(op.subject.name)->second;
  const bool byRow = t.order == Order::row, alternates = kernel.word("schedule") == "pingpong";
  const int64_t rows = op.number("rows"), cols = op.number("cols"), element = t.elemBytes();
  const int64_t lines = byRow ? rows : cols, bytes = (byRow ? cols : rows) * element;
  const int64_t threads = alternates ? groupThreads : roleWarps * 32;
  Pitches pitches(b);
  b.blank();
  b.comment("lines of " + op.subject.name + " into the L2, for the end of the tile");
  Val reads;
  if (op.word("beta") == "dynamic") {
    reads = b.reg(Type::pred, "reads_c");
    compareBeta("neu", reads);
  }
  const Val pitch = pitches.of(t);
  const bool aligned = pitch.isImm() && pitch.op.imm % lineBytes == 0 && bytes % lineBytes == 0;
  const int64_t pieces = llvm::divideCeil(bytes, lineBytes) + (aligned ? 0 : 1), all = lines * pieces;
  Val row0 = value(op.subject.index[0]), col0 = value(op.subject.index[1]);
  const Val line0 = byRow ? row0 : col0, start0 = byRow ? col0 : row0;
  const Expr &lineExtent = byRow ? t.rows : t.cols, &extent = byRow ? t.cols : t.rows;
  const Val thread =
      alternates ? binary("and.b32", tid, groupThreads - 1, "group_thread") : add(tid, -roleWarp * 32, "role_thread");
  for (int64_t first = 0; first < all; first += threads) {
    Val number = add(thread, first, "piece_number"), there = reads;
    auto onlyBelow = [&](const Val &value, const Val &limit) {
      Val both = b.reg(Type::pred, "there");
      if (there.isReg())
        b("setp.lt.and.u32", both, inRegister(value, "value"), limit, there);
      else
        b("setp.lt.u32", both, inRegister(value, "value"), limit);
      there = both;
    };
    if (first + threads > all)
      onlyBelow(number, all);
    Val line = add(line0, divide(number, pieces, "line"), "line");
    Val byte = mul(remainder(number, pieces, "piece"), lineBytes, "piece_byte");
    if (pieces * lineBytes > bytes)
      byte = binary("min.u32", inRegister(byte, "piece_byte"), bytes - element, "piece_byte");
    Val column = add(start0, divide(byte, element, "column"), "column");
    if (!covers(lineExtent, lines * (byRow ? clusterM : clusterN))) // a cluster's tile may lie beyond
      onlyBelow(line, value(lineExtent));
    if (!covers(extent, byRow ? cols * clusterN : rows * clusterM))
      onlyBelow(column, value(extent));
    Val address = add64(wide(line, pitch, "line_offset"), t.base, t.buffer + "_line");
    address = add64(wide(column, element, "column_offset"), address, t.buffer + "_piece");
    if (there.isReg())
      b.when(there);
    b("prefetch.global.L2", at(address));
  }
}

} // namespace gemmc
