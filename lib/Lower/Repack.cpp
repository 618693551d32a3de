// The kernel that copies operands to rows that TMA can read: any base and pitch in, lines at multiples of 128 bytes in
// the workspace out, both operands in one launch. It is written with the PTX builder, not as tile IR: it has no block
// tile, no shared memory and no pipeline, which is all that the tile IR talks about.
//
// Each warp moves one chunk of a line, `vectors` times 32 vectors of 16 bytes. It reads the aligned vectors around its
// bytes, lane by lane, and shifts them into place; what a lane misses at the end of its vector, the next lane has:
//
//     memory    ..|....abcd|efghijkl|mnop....|..    aligned vectors: lane 0, 1, 2
//     skew         <--->                            the same for all vectors of a line
//     workspace   |abcdefgh|ijklmnop|
//
// An aligned vector may begin before the matrix or end behind it, in the first and the last chunk: those that do are
// copied element by element. Between lines a vector may have bytes of the next line or of the gap; they are shifted out
// or land behind the copy's line, where nobody reads.
#include "CopyKernel.h"

namespace gemmc {
namespace {
constexpr unsigned vectorBytes = 16, warpBytes = 32 * vectorBytes;
class RepackKernel : CopyKernel {
public:
  RepackKernel(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes, CopyOverlaps overlaps)
      : CopyKernel(function, std::move(sources), elementBytes, overlaps) {
    // A line that is short leaves most of a large chunk empty.
    for (const CopySource &source : this->sources)
      vectors = std::max(vectors, !source.length.isConst() || source.length.constant() > 2 * warpBytes ? 4u
                                  : source.length.constant() > warpBytes                               ? 2u
                                                                                                       : 1u);
  }
  ptx::KernelInfo emit();

private:
  int64_t chunkBytes() const { return int64_t(vectors) * warpBytes; }
  Expr chunksOf(const CopySource &source) const { return ceilDiv(source.length, chunkBytes()); }
  Expr ctasOf(const CopySource &source) const { return ceilDiv(source.lines * chunksOf(source), warps); }

  void place();
  void copyVectors();
  void loadVectors();
  void storeShifted(unsigned vector);
  void copyElements();

  unsigned vectors = 1;
  Val lane, laneBytes;                 ///< b32.
  Val from, to;                        ///< b64, of the chunk's first byte.
  Val left, skew, span;                ///< b32 bytes: of the chunk, in front of it in its first vector, both together.
  Val aligned;                         ///< b64, of the first vector.
  Val elements, end;                   ///< Labels.
  std::vector<std::vector<Val>> words; ///< [vector][word]; the last vector is lane 0's alone.
  Val isFirstLane, nextLane, twoWords, oneWord, bits;
};

/// Which chunk of which line of which operand. A CTA's warps have neighbouring chunks, which is neighbouring memory: 2
/// to 4% faster than one chunk of neighbouring lines.
void RepackKernel::place() {
  Val tid = b.reg(Type::b32, "tid"), warp = b.reg(Type::b32, "warp"), cta = b.reg(Type::b32, "cta");
  lane = b.reg(Type::b32, "lane"), laneBytes = b.reg(Type::b32, "lane_bytes");
  b("mov.u32", tid, b.special("%tid.x"));
  b("and.b32", lane, tid, 31);
  b("shl.b32", laneBytes, lane, 4);
  b("shr.u32", warp, tid, 5);
  b("mov.u32", cta, b.special("%ctaid.x"));
  Val base = pickOperand(cta, [&](const CopySource &s) { return ctasOf(s); });
  Val workspace = pointer("workspace");
  Val chunks = pick(Type::b32, "chunks", [&](const CopySource &s) { return chunksOf(s); });
  Val chunk = b.reg(Type::b32, "chunk"), line = b.reg(Type::b32, "line");
  Val beyond = b.reg(Type::pred, "beyond"), wideLine = b.reg(Type::b64, "line");
  Val index = b.reg(Type::b32, "chunk_index");
  b("mad.lo.u32", index, cta, warps, warp);
  b("div.u32", line, index, chunks);
  b("rem.u32", chunk, index, chunks);
  b("setp.ge.u32", beyond, line, pick(Type::b32, "lines", [](const CopySource &s) { return s.lines; }));
  b.when(beyond)("bra", end);

  Val start = b.reg(Type::b64, "start"), rest = b.reg(Type::b64, "rest"), stop = b.reg(Type::b64, "stop");
  from = b.reg(Type::b64, "from"), to = b.reg(Type::b64, "to"), aligned = b.reg(Type::b64, "aligned");
  left = b.reg(Type::b32, "left"), skew = b.reg(Type::b32, "skew"), span = b.reg(Type::b32, "span");
  Val low = b.reg(Type::b32, "from_low");
  b("cvt.u64.u32", wideLine, line);
  b("mul.wide.u32", start, chunk, chunkBytes());
  b("sub.s64", rest, pick(Type::b64, "length", [](const CopySource &s) { return s.length; }), start);
  b("min.u64", rest, rest, chunkBytes());
  b("cvt.u32.u64", left, rest);
  b("mad.lo.u64", from, wideLine, pick(Type::b64, "pitch", [](const CopySource &s) { return s.pitch; }), start);
  b("add.s64", from, from, base);
  b("mad.lo.u64", to, wideLine, pick(Type::b64, "packed", [](const CopySource &s) { return s.packedPitch; }), start);
  b("add.s64", to, to, pick(Type::b64, "offset", [](const CopySource &s) { return s.offset; }));
  b("add.s64", to, to, workspace);
  moveToProduct(to);
  b("cvt.u32.u64", low, from);
  b("and.b32", skew, low, vectorBytes - 1);
  b("add.u32", span, skew, left);
  b("and.b64", aligned, from, -int64_t(vectorBytes));

  b.blank();
  b.comment("vectors that the matrix does not fill: element by element");
  Val outside = b.reg(Type::pred, "outside");
  b("setp.lt.u64", outside, aligned, base);
  b.when(outside)("bra", elements);
  b("add.s64", stop, base,
    pick(Type::b64, "bytes", [](const CopySource &s) { return (s.lines - 1) * s.pitch + s.length; }));
  Val wideSpan = b.reg(Type::b64, "span"), reach = b.reg(Type::b64, "reach");
  b("cvt.u64.u32", wideSpan, span);
  b("add.s64", reach, aligned, wideSpan);
  b("add.s64", reach, reach, vectorBytes - 1);
  b("and.b64", reach, reach, -int64_t(vectorBytes));
  b("setp.gt.u64", outside, reach, stop);
  b.when(outside)("bra", elements);
}

/// All loads first: so many vectors are in flight.
void RepackKernel::loadVectors() {
  Val address = b.reg(Type::b64, "address"), wideLane = b.reg(Type::b64, "lane_bytes");
  b("cvt.u64.u32", wideLane, laneBytes);
  b("add.s64", address, aligned, wideLane);
  for (unsigned i = 0; i <= vectors; ++i) {
    words.push_back(b.regs(Type::b32, "word" + std::to_string(i) + "_", 4));
    for (const Val &word : words[i])
      b("mov.b32", word, 0);
  }
  isFirstLane = b.reg(Type::pred, "first_lane");
  b("setp.eq.u32", isFirstLane, lane, 0);
  for (unsigned i = 0; i <= vectors; ++i) {
    Val needed = b.reg(Type::pred, "needed"), place = b.reg(Type::b32, "place");
    b("add.u32", place, laneBytes, i * warpBytes);
    if (i < vectors)
      b("setp.lt.u32", needed, place, span);
    else
      b("setp.lt.and.u32", needed, place, span, isFirstLane);
    b.when(needed)("ld.global.L1::no_allocate.v4.b32", Val(words[i]), at(address, i * warpBytes));
  }
}

/// 16 bytes of the lane's vector and the next one, from `skew` on.
void RepackKernel::storeShifted(unsigned vector) {
  std::vector<Val> all = words[vector];
  for (unsigned i = 0; i < 4; ++i) {
    Val given = b.reg(Type::b32, "given"), next = b.reg(Type::b32, "next");
    b("selp.b32", given, words[vector + 1][i], words[vector][i], isFirstLane);
    b("shfl.sync.idx.b32", next, given, nextLane, 31, -1);
    all.push_back(next);
  }
  for (auto [by, wanted] : {std::pair{2u, twoWords}, {1u, oneWord}}) {
    std::vector<Val> shifted;
    for (unsigned i = 0; i + by < all.size(); ++i) {
      shifted.push_back(b.reg(Type::b32, "shifted"));
      b("selp.b32", shifted.back(), all[i + by], all[i], wanted);
    }
    all = std::move(shifted);
  }
  std::vector<Val> out = b.regs(Type::b32, "out" + std::to_string(vector) + "_", 4);
  for (unsigned i = 0; i < 4; ++i)
    b("shf.r.wrap.b32", out[i], all[i], all[i + 1], bits);
  Val place = b.reg(Type::b32, "place"), inside = b.reg(Type::pred, "inside");
  b("add.u32", place, laneBytes, vector * warpBytes);
  b("setp.lt.u32", inside, place, left);
  b.when(inside)("st.global.v4.b32", at(to, vector * warpBytes), Val(out));
}

void RepackKernel::copyVectors() {
  b.blank();
  b.comment("aligned vectors, shifted by what the line is off");
  loadVectors();
  twoWords = b.reg(Type::pred, "two_words"), oneWord = b.reg(Type::pred, "one_word");
  bits = b.reg(Type::b32, "bits"), nextLane = b.reg(Type::b32, "next_lane");
  Val part = b.reg(Type::b32, "part"), wideLane = b.reg(Type::b64, "lane_bytes");
  b("and.b32", part, skew, 8);
  b("setp.ne.u32", twoWords, part, 0);
  b("and.b32", part, skew, 4);
  b("setp.ne.u32", oneWord, part, 0);
  b("and.b32", bits, skew, 3);
  b("shl.b32", bits, bits, 3);
  b("add.u32", nextLane, lane, 1);
  b("and.b32", nextLane, nextLane, 31);
  b("cvt.u64.u32", wideLane, laneBytes);
  b("add.s64", to, to, wideLane);
  for (unsigned i = 0; i < vectors; ++i)
    storeShifted(i);
  b("bra", end);
}

/// Many loads first here, too: a warp that waited for each element would be the last of the grid by far (32 waits for
/// 2048 bytes of 16-bit elements, 10 us on an H200). No more of them than leave the kernel at 32 registers.
void RepackKernel::copyElements() {
  constexpr unsigned together = 8;
  b.place(elements);
  std::string type = elementBytes == 1 ? "u8" : elementBytes == 2 ? "u16" : "u32";
  Val place = b.reg(Type::b32, "place"), wide = b.reg(Type::b64, "place"), done = b.reg(Type::pred, "done");
  Val source = b.reg(Type::b64, "source"), target = b.reg(Type::b64, "target"), next = b.label("next_elements");
  std::vector<Val> copied = b.regs(elementBytes == 4 ? Type::b32 : Type::b16, "element", together);
  std::vector<Val> inside = b.regs(Type::pred, "element_inside", together);
  const int64_t step = 32 * elementBytes;
  b("mul.lo.u32", place, lane, elementBytes);
  b.place(next);
  b("setp.ge.u32", done, place, left);
  b.when(done)("bra", end);
  b("cvt.u64.u32", wide, place);
  b("add.s64", source, from, wide);
  b("add.s64", target, to, wide);
  for (unsigned i = 0; i < together; ++i) {
    Val its = b.reg(Type::b32, "place");
    b("add.u32", its, place, i * step);
    b("setp.lt.u32", inside[i], its, left);
    b.when(inside[i])("ld.global." + type, copied[i], at(source, i * step));
  }
  for (unsigned i = 0; i < together; ++i)
    b.when(inside[i])("st.global." + type, at(target, i * step), copied[i]);
  b("add.u32", place, place, together * step);
  b("bra", next);
}

ptx::KernelInfo RepackKernel::emit() {
  configure([&](const CopySource &source) { return ctasOf(source); });
  elements = b.label("elements"), end = b.label("end");
  overlap();
  place();
  copyVectors();
  copyElements();
  b.place(end);
  b("ret");
  return std::move(info);
}
} // namespace

ptx::KernelInfo emitRepack(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                           CopyOverlaps overlaps) {
  return RepackKernel(function, std::move(sources), elementBytes, overlaps).emit();
}

} // namespace gemmc
