// The kernel that turns operands: wgmma reads elements of 8 and of 32 bits with k contiguous, and where m or n is, a
// copy in the workspace has it so. A CTA turns a square of 32 words of 4 bytes in either direction, by way of shared
// memory:
//
//     memory, lines of n (or m)        shared memory              workspace, lines of k
//     k     ....aaaa bbbb....          n    ....                  n    ....
//     k + 1 ....cccc dddd....    ->    n    a c e g   (32 words   n    a c e g ...
//     k + 2 ....eeee ffff....          n+1  a c e g    and one)   n+1  a c e g ...
//
// A lane reads a word of each of the lines that a word of the copy takes (four of 8-bit elements, one of 32-bit ones),
// turns the square of bytes in registers and puts words of k into shared memory. Lines of the operand start anywhere:
// where they do not start and end at words, it reads elements.
#include "CopyKernel.h"

namespace gemmc {
namespace {
constexpr unsigned side = 32, pitch = side + 1;

class TurnKernel : CopyKernel {
public:
  TurnKernel(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes, CopyOverlaps overlaps)
      : CopyKernel(function, std::move(sources), elementBytes, overlaps) {}
  ptx::KernelInfo emit();

private:
  static constexpr unsigned each = side / warps; ///< Lines of a square that a warp takes.

  /// Elements of a word, of the side of a square.
  unsigned packed() const { return wordBytes / elementBytes; }
  int64_t extent() const { return side * packed(); }
  Expr tilesAlong(const CopySource &s) const { return ceilDiv(s.length, extent() * int64_t(elementBytes)); }
  Expr ctasOf(const CopySource &s) const { return tilesAlong(s) * ceilDiv(s.lines, extent()); }

  void place();
  void aim();
  void readWords();
  void readElements();
  void stage(std::vector<Val> words, int64_t offset); ///< Behind `to`.
  void write();

  Val lane, warp;         ///< b32.
  Val line, column;       ///< b32: first element of the square, along k and along what is contiguous.
  Val lines, length;      ///< b32, elements.
  Val base, linePitch;    ///< b64; bytes.
  Val shared;             ///< b32.
  Val first, its, inside; ///< b32: the warp's first line, the lane's first column; whether that is there.
  Val from;               ///< b64: where they meet.
  Val to;                 ///< b32: the place in shared memory of the lane's first word.
  Val elements, staged;   ///< Labels.
};

void TurnKernel::place() {
  Val tid = b.reg(Type::b32, "tid"), cta = b.reg(Type::b32, "cta"), row = b.reg(Type::b32, "tile_row");
  lane = b.reg(Type::b32, "lane"), warp = b.reg(Type::b32, "warp");
  b("mov.u32", tid, b.special("%tid.x"));
  b("and.b32", lane, tid, side - 1);
  b("shr.u32", warp, tid, 5);
  b("mov.u32", cta, b.special("%ctaid.x"));
  base = pickOperand(cta, [&](const CopySource &s) { return ctasOf(s); });
  Val along = pick(Type::b32, "tiles", [&](const CopySource &s) { return tilesAlong(s); });
  lines = pick(Type::b32, "lines", [](const CopySource &s) { return s.lines; });
  length = pick(Type::b32, "length", [&](const CopySource &s) { return s.length / int64_t(elementBytes); });
  linePitch = pick(Type::b64, "pitch", [](const CopySource &s) { return s.pitch; });
  line = b.reg(Type::b32, "line"), column = b.reg(Type::b32, "column");
  b("div.u32", row, cta, along);
  b("rem.u32", column, cta, along);
  b("mul.lo.u32", line, row, extent());
  b("mul.lo.u32", column, column, extent());

  ptx::Variable square;
  square.space = ptx::Space::shared;
  square.type = Type::b8;
  square.align = wordBytes;
  square.name = "square";
  square.extent = {uint64_t(packed() * side * pitch * wordBytes)};
  function.vars.push_back(square);
  shared = b.reg(Type::b32, "square");
  b("mov.u32", shared, b.symbol(square.name));
}

/// Words of one square of `packed` lines, each of `packed` neighbours, become words of k; word j is of neighbour j.
void TurnKernel::stage(std::vector<Val> words, int64_t offset) {
  if (packed() == 4) {
    std::vector<Val> pairs = b.regs(Type::b32, "pair", 4), turned = b.regs(Type::b32, "turned", 4);
    for (unsigned i = 0; i < 4; ++i)
      b("prmt.b32", pairs[i], words[i % 2 * 2], words[i % 2 * 2 + 1], i < 2 ? 0x5140 : 0x7362);
    for (unsigned i = 0; i < 4; ++i)
      b("prmt.b32", turned[i], pairs[i / 2 * 2], pairs[i / 2 * 2 + 1], i % 2 ? 0x7632 : 0x5410);
    words = std::move(turned);
  }
  // Lines of k in shared memory: neighbour j of all lanes, then the next one. Pitches of 33 words meet no bank twice.
  for (size_t j = 0; j < words.size(); ++j)
    b("st.shared.b32", at(to, offset + int64_t(j * side * pitch * wordBytes)), words[j]);
}

/// What a lane reads and where it goes.
void TurnKernel::aim() {
  Val wide = b.reg(Type::b64, "line"), offset = b.reg(Type::b64, "offset");
  first = b.reg(Type::b32, "first"), its = b.reg(Type::b32, "its_column"), inside = b.reg(Type::pred, "inside");
  to = b.reg(Type::b32, "to"), from = b.reg(Type::b64, "from");
  b("mad.lo.u32", first, warp, packed(), line);
  b("mad.lo.u32", its, lane, packed(), column);
  b("setp.lt.u32", inside, its, length);
  b("mad.lo.u32", to, lane, pitch * wordBytes, shared);
  b("mad.lo.u32", to, warp, wordBytes, to);
  b("cvt.u64.u32", wide, first);
  b("mad.lo.u64", from, wide, linePitch, base);
  b("mul.wide.u32", offset, its, elementBytes);
  b("add.s64", from, from, offset);
}

/// All loads first: so many are under way.
void TurnKernel::readWords() {
  std::vector<std::vector<Val>> words;
  Val address = from, far = b.reg(Type::b64, "far");
  b("mul.lo.u64", far, linePitch, (warps - 1) * packed() + 1);
  for (unsigned i = 0; i < each; ++i) {
    words.push_back(b.regs(Type::b32, "word" + std::to_string(i) + "_", packed()));
    for (unsigned k = 0; k < packed(); ++k) {
      Val number = b.reg(Type::b32, "line"), present = b.reg(Type::pred, "present"), next = b.reg(Type::b64, "address");
      b("add.u32", number, first, i * warps * packed() + k);
      b("setp.lt.and.u32", present, number, lines, inside);
      b("mov.b32", words[i][k], 0);
      b.when(present)("ld.global.L1::no_allocate.b32", words[i][k], at(address));
      b("add.s64", next, address, k + 1 < packed() ? linePitch : far);
      address = next;
    }
  }
  for (unsigned i = 0; i < each; ++i)
    stage(words[i], int64_t(i * warps * wordBytes));
}

void TurnKernel::readElements() {
  b.blank();
  b.comment("lines that are no whole words: element by element");
  b.place(elements);
  Val round = b.reg(Type::b32, "round"), again = b.label("next_elements"), more = b.reg(Type::pred, "more");
  b("mov.u32", round, 0);
  b.place(again);
  b.pragma("nounroll");
  std::vector<Val> words;
  Val address = from;
  for (unsigned k = 0; k < packed(); ++k) {
    Val number = b.reg(Type::b32, "line"), exists = b.reg(Type::pred, "exists");
    b("add.u32", number, first, k);
    b("setp.lt.u32", exists, number, lines);
    std::vector<Val> parts = b.regs(Type::b16, "part", packed()), bytes = b.regs(Type::b32, "byte", packed());
    for (unsigned j = 0; j < packed(); ++j) {
      Val neighbour = b.reg(Type::b32, "its_column"), present = b.reg(Type::pred, "present");
      b("add.u32", neighbour, its, j);
      b("setp.lt.and.u32", present, neighbour, length, exists);
      b("mov.b16", parts[j], 0);
      b.when(present)("ld.global.u8", parts[j], at(address, j));
    }
    for (unsigned j = 0; j < packed(); ++j)
      b("cvt.u32.u16", bytes[j], parts[j]);
    Val low = b.reg(Type::b32, "half"), high = b.reg(Type::b32, "half"), next = b.reg(Type::b64, "address");
    words.push_back(b.reg(Type::b32, "word"));
    b("prmt.b32", low, bytes[0], bytes[1], 0x5140);
    b("prmt.b32", high, bytes[2], bytes[3], 0x5140);
    b("prmt.b32", words.back(), low, high, 0x5410);
    b("add.s64", next, address, linePitch);
    address = next;
  }
  stage(words, 0);
  Val far = b.reg(Type::b64, "far");
  b("mul.lo.u64", far, linePitch, warps * packed());
  b("add.s64", from, from, far);
  b("add.u32", first, first, warps * packed());
  b("add.u32", to, to, warps * wordBytes);
  b("add.u32", round, round, 1);
  b("setp.lt.u32", more, round, each);
  b.when(more)("bra", again);
}

/// Each warp writes 128 bytes of a line at a time; what lies behind the last k nobody reads.
void TurnKernel::write() {
  Val to = b.reg(Type::b64, "copy"),
      distance = pick(Type::b64, "packed", [](const CopySource &s) { return s.packedPitch; });
  Val start = b.reg(Type::b32, "start"), offset = b.reg(Type::b64, "offset"), read = b.reg(Type::b32, "read");
  Val workspace = pointer("workspace");
  b("mad.lo.u32", start, warp, packed(), column);
  b("mad.lo.u32", read, warp, pitch * wordBytes, shared);
  b("mad.lo.u32", read, lane, wordBytes, read);
  b("add.s64", to, workspace, pick(Type::b64, "offset", [](const CopySource &s) { return s.offset; }));
  moveToProduct(to);
  b("mul.wide.u32", offset, line, elementBytes);
  b("add.s64", to, to, offset);
  b("mul.wide.u32", offset, lane, wordBytes);
  b("add.s64", to, to, offset);
  for (unsigned i = 0; i < each; ++i)
    for (unsigned j = 0; j < packed(); ++j) {
      Val number = b.reg(Type::b32, "its_line"), present = b.reg(Type::pred, "present"),
          word = b.reg(Type::b32, "word");
      Val wide = b.reg(Type::b64, "its_line"), address = b.reg(Type::b64, "address");
      b("add.u32", number, start, int64_t(i * warps * packed() + j));
      b("setp.lt.u32", present, number, length);
      b("cvt.u64.u32", wide, number);
      b("mad.lo.u64", address, wide, distance, to);
      b("ld.shared.b32", word, at(read, int64_t((j * side + i * warps) * pitch * wordBytes)));
      b.when(present)("st.global.b32", at(address), word);
    }
}

ptx::KernelInfo TurnKernel::emit() {
  configure([&](const CopySource &source) { return ctasOf(source); });
  elements = b.label("elements"), staged = b.label("staged");
  overlap();
  place();
  aim();
  const bool words = elementBytes == wordBytes;
  if (!words) {
    Val all = b.reg(Type::b64, "aligned"), low = b.reg(Type::b32, "aligned"), odd = b.reg(Type::pred, "odd");
    b("or.b64", all, base, linePitch);
    b("cvt.u32.u64", low, all);
    b("or.b32", low, low, length);
    b("and.b32", low, low, wordBytes - 1);
    b("setp.ne.u32", odd, low, 0);
    b.when(odd)("bra", elements);
  }
  readWords();
  if (!words) {
    b("bra", staged);
    readElements();
    b.place(staged);
  }
  b("bar.sync", 0);
  write();
  b("ret");
  return std::move(info);
}
} // namespace

ptx::KernelInfo emitTurn(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                         CopyOverlaps overlaps) {
  return TurnKernel(function, std::move(sources), elementBytes, overlaps).emit();
}

} // namespace gemmc
