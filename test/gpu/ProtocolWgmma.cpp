// Matrix descriptors: base offsets and addresses beyond their 18 bits (5.14: 7, 16).
#include "Protocol.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

/// A is chunks of 16 bytes whose f16 elements are the chunk's number; B is the unit matrix. So D's element (m, k) is
/// the number of the chunk from which A's element (m, k) came.
constexpr unsigned aBytes = 16384, imageBytes = aBytes + 2048, regs = 8;

struct Case {
  unsigned start, base; ///< Bytes behind the image's start; base offset.
  uint32_t stride;
};

std::string textOf(const std::vector<Case> &cases) {
  std::string text = begin(false, imageBytes) + "mad.wide.u32 %x1, %t, 16, %in;\nmad.lo.u32 %u1, %t, 16, %img;\n";
  for (unsigned at = 0; at < imageBytes; at += 2048)
    text += "ld.global.v4.b32 {%u2, %u3, %u4, %u5}, [%x1+" + std::to_string(at) + "];\nst.shared.v4.b32 [%u1+" +
            std::to_string(at) + "], {%u2, %u3, %u4, %u5};\n";
  text += "fence.proxy.async;\nbar.sync 0;\n.reg .f32 %d<8>;\nshr.u32 %u1, %img, 4;\ncvt.u64.u32 %x3, %u1;\n"
          "mad.wide.u32 %x2, %t, 4, %out;\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case &c = cases[i];
    uint64_t a =
        uint64_t(1) << 62 | uint64_t(c.base) << 49 | uint64_t(c.stride >> 4 & 0x3fff) << 32 | 1u << 16 | c.start >> 4;
    uint64_t b = uint64_t(256 >> 4) << 32 | uint64_t(128 >> 4) << 16 | aBytes >> 4;
    text += formatv("add.u64 %x4, %x3, {0};\nadd.u64 %x5, %x3, {1};\n", int64_t(a), int64_t(b));
    text += "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%d0, %d1, %d2, %d3, %d4, "
            "%d5, %d6, %d7}, %x4, %x5, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned "
            "0;\n";
    for (unsigned r = 0; r < regs; ++r)
      text += formatv("st.global.f32 [%x2+{0}], %d{1};\n", (i * regs + r) * 512, r);
  }
  return text + "ret;\n}\n";
}

Words image() {
  Words in(imageBytes / 4);
  auto half = [](unsigned value) -> uint32_t { // exact for 0..2047
    if (!value)
      return 0;
    unsigned top = 31 - __builtin_clz(value);
    return (top + 15) << 10 | ((value << (10 - top)) & 0x3ff);
  };
  for (unsigned at = 0; at < aBytes; at += 4)
    in[at / 4] = half(at / 16) * 0x10001u;
  for (unsigned i = 0; i < 16; ++i) // element (i, i): 8 lines by 16 bytes make 128 bytes, 256 for all of K
    storeBits(in.bytes(), aBytes + i / 8 * 256 + i % 8 * 16 + i / 8 * 128 + i % 8 * 2, 0x3c00, 2);
  return in;
}

/// The chunk that case `i` read for (row, k).
unsigned chunkOf(Words &out, size_t i, unsigned row, unsigned k) {
  unsigned thread = row / 16 * 32 + row % 8 * 4 + k % 8 / 2, reg = k / 8 * 4 + row % 16 / 8 * 2 + k % 2;
  return static_cast<unsigned>(std::bit_cast<float>(out[(i * regs + reg) * 128 + thread]));
}
template <typename Expected> bool matches(Words &out, size_t i, Expected expected) {
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned k = 0; k < 16; ++k)
      if (chunkOf(out, i, row, k) != expected(row, k) / 16)
        return false;
  return true;
}

Question::Answer baseOffsets(Card &card) {
  std::vector<Case> cases;
  for (unsigned start : {0, 128, 256, 512, 896})
    for (unsigned base = 0; base < 8; ++base)
      cases.push_back({start, base, 1024});
  Words in = image(), out(cases.size() * regs * 128);
  Trouble error = card.run(textOf(cases), {1, 128, 1, 0}, in.bytes(), out.bytes());
  if (!error.empty())
    return unsettled(error);
  std::string text;
  bool subtracts = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    auto [start, base, stride] = cases[i];
    auto model = [&, start = start, base = base](int sign) {
      return [=](unsigned row, unsigned k) {
        unsigned at = start + row % 8 * 128 + row / 8 * 1024 + k * 2;
        return at ^ (((at >> 7) + sign * static_cast<int>(base)) & 7) << 4;
      };
    };
    subtracts &= matches(out, i, model(-1));
    text += formatv("{0}/{1}:", start, base);
    if (matches(out, i, model(0)))
      text += " absolute";
    if (base && matches(out, i, model(-1)))
      text += " minus";
    if (base && matches(out, i, model(1)))
      text += " plus";
    if (text.back() == ':')
      text += formatv(" other, chunks {0} {1} {2} {3} {4}", chunkOf(out, i, 0, 0), chunkOf(out, i, 1, 0),
                      chunkOf(out, i, 2, 0), chunkOf(out, i, 7, 0), chunkOf(out, i, 8, 0));
    text += "; ";
  }
  return verdict(subtracts,
                 text + "(start/base: bits 6-4 exchanged by the absolute address's bits 9-7, minus or plus the base)");
}

Question::Answer wraparound(Card &card) {
  std::vector<Case> cases{{8192, 0, 0x40000 - 1024}};
  Words in = image(), out(regs * 128);
  Trouble error = card.run(textOf(cases), {1, 128, 1, 0}, in.bytes(), out.bytes());
  if (!error.empty()) // 700: an illegal address
    return StringRef(error).contains("(700)") ? verdict(true, error) : unsettled(error);
  auto wrapped = [](unsigned row, unsigned k) {
    unsigned at = 8192 + row % 8 * 128 - row / 8 * 1024 + k * 2;
    return at ^ (at >> 3 & 0x70);
  };
  std::string chunks;
  for (unsigned row : {0, 7, 8, 16, 63})
    chunks += formatv(" {0}", chunkOf(out, 0, row, 0));
  return verdict(false, (matches(out, 0, wrapped) ? "wraps at 2^18: the stride counts backwards" : "something else:") +
                            chunks);
}
} // namespace

void addWgmmaQuestions(std::vector<Question> &questions) {
  questions.push_back({"protocol/7 base offset", "what base offsets of 128-byte swizzled operands do",
                       "it is subtracted from bits 9-7 before they exchange; unmodelled unless 0", baseOffsets});
  questions.push_back({"protocol/16 wraparound", "a descriptor whose stride leads beyond 2^18",
                       "WG-10: outside of shared memory, an error", wraparound});
}

} // namespace gemmc::microtests
