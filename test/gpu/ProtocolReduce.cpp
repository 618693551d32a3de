// Reductions through tensor maps, and where an integer wgmma clamps (5.14: 17, 20): the card beside the emulator.
#include "Protocol.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using ptx::Type;

// --- 17: reductions through tensor maps

/// A CTA has a box of its own: 16 rows of 256 bytes.
constexpr unsigned reducedBytes = 4096, boxes = 64, rows = 16, rowBytes = reducedBytes / rows;

struct Reduced {
  const char *name;
  Elem elem;
  int driverType;
  Type type; ///< As which values are drawn.
  const char *ops;
};
const Reduced reduced[] = {
    {"f16", Elem::f16, cuda::mapF16, Type::f16, "add min max"},
    {"bf16", Elem::bf16, cuda::mapBF16, Type::bf16, "add min max"},
    {"f32", Elem::f32, cuda::mapF32, Type::f32, "add"},
    {"f64", Elem::f64, cuda::mapF64, Type::f64, "add"},
    {"s32", Elem::s32, cuda::mapS32, Type::s32, "add min max and or xor"},
};

/// `in` holds the tensor, box by box, and behind it the operands; the tensor's bytes go to `out` in the end.
std::string reduceText(StringRef op) {
  std::string text = begin(true, reducedBytes) + "setp.eq.u32 %p7, %t, 0;\n";
  text += formatv("mad.wide.u32 %x1, %cta, {0}, %in;\nmad.wide.u32 %x1, %t, 16, %x1;\nmad.lo.u32 %u1, %t, 16, %img;\n"
                  "mad.wide.u32 %x2, %cta, {0}, %out;\nmad.wide.u32 %x2, %t, 16, %x2;\n",
                  reducedBytes);
  for (unsigned at = 0; at < reducedBytes; at += 2048)
    text += formatv("ld.global.v4.b32 {{%u2, %u3, %u4, %u5}, [%x1+{0}];\nst.shared.v4.b32 [%u1+{1}], {{%u2, %u3, %u4, "
                    "%u5};\n",
                    boxes * reducedBytes + at, at);
  text += formatv("fence.proxy.async;\nbar.sync 0;\n@!%p7 bra ISSUED;\nmov.u32 %u4, 0;\nmul.lo.u32 %u6, %cta, 16;\n"
                  "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{0}.tile.bulk_group [%map, {{%u4, %u6}], [%img];\n"
                  "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nISSUED:\nbar.sync 0;\n",
                  op);
  for (unsigned at = 0; at < reducedBytes; at += 2048)
    text += formatv("ld.global.v4.b32 {{%u2, %u3, %u4, %u5}, [%x1+{0}];\nst.global.v4.b32 [%x2+{0}], {{%u2, %u3, %u4, "
                    "%u5};\n",
                    at);
  return text + "ret;\n}\n";
}

MapRequest mapOf(const Reduced &how) {
  unsigned elements = rowBytes * 8 / widthOf(how.type);
  MapRequest map;
  map.type = how.elem, map.driverType = how.driverType;
  map.dims = {elements, boxes * rows}, map.strides = {rowBytes}, map.box = {elements, rows};
  return map;
}

Question::Answer reduceTensor(Card &card, const Reduced &how) {
  unsigned bytes = widthOf(how.type) / 8;
  Random random(17);
  Words in(size_t(2) * boxes * reducedBytes / 4);
  for (size_t i = 0; i < size_t(boxes) * reducedBytes / bytes; ++i) {
    uint64_t place = drawScalar(random, how.type);
    storeBits(in.bytes(), i * bytes, place, bytes);
    storeBits(in.bytes(), size_t(boxes) * reducedBytes + i * bytes,
              random.chance(4) ? drawNear(random, how.type, place) : drawScalar(random, how.type), bytes);
  }
  MapRequest map = mapOf(how);
  SmallVector<StringRef> ops;
  StringRef(how.ops).split(ops, ' ');
  std::string told;
  bool same = true;
  for (StringRef op : ops) {
    std::string text = reduceText(op);
    Words gpu(size_t(boxes) * reducedBytes / 4), emulated(gpu.data.size());
    Trouble error = card.run(text, {boxes, 128, 1, 0}, in.bytes(), gpu.bytes(), &map);
    if (error.empty())
      error = emulate(text, {boxes, 128, 1, 0}, in.bytes(), emulated.bytes(), 1, &map);
    if (!error.empty())
      return unsettled((op + ": " + error).str());
    unsigned differ = 0, count = boxes * reducedBytes / bytes;
    std::string example;
    for (unsigned i = 0; i < count; ++i) {
      uint64_t x = loadBits(gpu.bytes(), size_t(i) * bytes, bytes),
               y = loadBits(emulated.bytes(), size_t(i) * bytes, bytes);
      if (x == y)
        continue;
      ++differ;
      if (example.empty())
        example = formatv(" (place {0} operand {1}: card {2}, emulator {3})",
                          hex(loadBits(in.bytes(), size_t(i) * bytes, bytes), bytes * 8),
                          hex(loadBits(in.bytes(), size_t(boxes) * reducedBytes + size_t(i) * bytes, bytes), bytes * 8),
                          hex(x, bytes * 8), hex(y, bytes * 8))
                      .str();
    }
    told += formatv("{0}{1}: {2} of {3} differ{4}", told.empty() ? "" : "; ", op, differ, count, example).str();
    same &= !differ;
  }
  return verdict(same, told);
}

// --- 20: where an integer wgmma clamps

/// Which of the 32 products of a dot are +127 * 127; the others are its negative, so that the sum is that of c.
const std::pair<const char *, uint32_t> orders[] = {
    {"first half", 0x0000ffff}, {"second half", 0xffff0000}, {"even", 0x55555555},       {"odd", 0xaaaaaaaa},
    {"first of 4", 0x0f0f0f0f}, {"second of 4", 0xf0f0f0f0}, {"first of 8", 0x00ff00ff}, {"second of 8", 0xff00ff00}};

/// m64n8k32 of s8, K-major and without a swizzle: lines of 16 bytes, 8 of them together, 128 bytes to the next K half.
std::string clampText() {
  std::string text = begin(false, 4096) + "mad.wide.u32 %x1, %t, 16, %in;\nmad.lo.u32 %u1, %t, 16, %img;\n";
  text += "ld.global.v4.b32 {%u2, %u3, %u4, %u5}, [%x1];\nst.shared.v4.b32 [%u1], {%u2, %u3, %u4, %u5};\n"
          "setp.lt.u32 %p1, %t, 16;\n@%p1 ld.global.v4.b32 {%u2, %u3, %u4, %u5}, [%x1+2048];\n"
          "@%p1 st.shared.v4.b32 [%u1+2048], {%u2, %u3, %u4, %u5};\n";
  text += "fence.proxy.async;\nbar.sync 0;\n.reg .b32 %d<4>;\nshr.u32 %u1, %img, 4;\ncvt.u64.u32 %x3, %u1;\n"
          "mad.wide.u32 %x2, %t, 16, %out;\nld.global.b32 %d0, [%in+2304];\nmov.b32 %d1, %d0;\nmov.b32 %d2, %d0;\n"
          "mov.b32 %d3, %d0;\n";
  uint64_t strides = uint64_t(256 >> 4) << 32 | uint64_t(128 >> 4) << 16;
  text += formatv("add.u64 %x4, %x3, {0};\nadd.u64 %x5, %x3, {1};\n", strides, strides | 2048 >> 4);
  text += "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.s8.s8 {%d0, %d1, %d2, %d3}, "
          "%x4, %x5, 1;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  return text + "st.global.v4.b32 [%x2], {%d0, %d1, %d2, %d3};\nret;\n}\n";
}

Question::Answer clampsOnce(Card &card) {
  std::string told, text = clampText();
  bool once = true;
  for (int32_t c : {0x7fffffff - 100, -0x7fffffff + 100})
    for (auto &[name, positive] : orders) {
      Words in((2304 + 16) / 4), gpu(512), emulated(512);
      for (unsigned line = 0; line < 64 + 8; ++line)
        for (unsigned k = 0; k < 32; ++k) {
          bool isB = line >= 64;
          unsigned at = (isB ? 2048 : 0) + (line % 64) / 8 * 256 + k / 16 * 128 + line % 8 * 16 + k % 16;
          storeBits(in.bytes(), at, isB || positive >> k & 1 ? 127 : 0x81, 1);
        }
      in[2304 / 4] = c;
      Trouble error = card.run(text, {1, 128, 1, 0}, in.bytes(), gpu.bytes());
      if (error.empty())
        error = emulate(text, {1, 128, 1, 0}, in.bytes(), emulated.bytes(), 1);
      if (!error.empty())
        return unsettled(std::string(name) + ": " + error);
      unsigned differ = 0;
      for (unsigned i = 0; i < 512; ++i)
        differ += gpu[i] != emulated[i] || gpu[i] != static_cast<uint32_t>(c);
      told += formatv("{0}{1} with c = {2}: {3} of 512 differ", told.empty() ? "" : "; ", name, c, differ).str();
      if (differ)
        told += formatv(" (card {0}, emulator {1})", int32_t(gpu[0]), int32_t(emulated[0])).str();
      once &= !differ;
    }
  return verdict(once, told);
}
// --- 23: whose shared memory a copy from shared::cta to shared::cluster may write

enum class Target { alone, own, mapped, other };

/// 256 words of 5, then 768 of 3; the former go to words 512 to 767 of the target, and are counted there.
std::string remoteText(StringRef mnemonic, Target target) {
  std::string text = begin(false, 4096) + prepare(4096, 3);
  text += "mad.lo.u32 %u6, %t, 8, %img;\nmov.u32 %u7, 5;\nst.shared.v2.b32 [%u6], {%u7, %u7};\nfence.proxy.async;\n"
          "@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 1024;\n"
          "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmov.u32 %u6, %img;\nmov.u32 %u7, %bar;\n";
  if (target == Target::mapped || target == Target::other)
    text += formatv("mov.u32 %u8, %cluster_ctarank;\nxor.b32 %u8, %u8, {0};\nmapa.shared::cluster.u32 %u6, %u6, %u8;\n"
                    "mapa.shared::cluster.u32 %u7, %u7, %u8;\n",
                    target == Target::other ? 1 : 0);
  text += formatv("@%p7 {0} [%u6+2048], [%img], 1024, [%u7];\n", mnemonic).str() + boundedWait("A");
  text += "mad.wide.u32 %out, %cta, 4096, %out;\n" + dump(4096, 0);
  return text + "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n";
}

/// What the emulator takes (TM-16).
bool isAllowed(bool reduces, Target target) { return target == Target::other || (reduces && target != Target::alone); }

Question::Answer writesRemote(Card &card, bool reduces, Target target) {
  std::string mnemonic = formatv("cp.{0}async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{1}",
                                 reduces ? "reduce." : "", reduces ? ".add.u32" : "")
                             .str();
  Words in(64), out(2048);
  Trouble error =
      card.run(remoteText(mnemonic, target), {2, 128, target == Target::alone ? 1u : 2u, 0}, in.bytes(), out.bytes());
  unsigned wrong = 0;
  for (unsigned i = 0; i < 2048; ++i)
    wrong += out[i] != (i % 1024 < 256 ? 5u : i % 1024 / 256 == 2 ? (reduces ? 8u : 5u) : 3u);
  bool works = error.empty() && !wrong;
  std::string told = !error.empty() ? error : formatv("it ends; {0} of 2048 words are wrong", wrong).str();
  return verdict(works == isAllowed(reduces, target), told);
}
} // namespace

void addReduceQuestions(std::vector<Question> &questions) {
  for (const Reduced &how : reduced)
    questions.push_back({std::string("protocol/17 tensor reduce ") + how.name,
                         std::string("cp.reduce.async.bulk.tensor of ") + how.name + ": rounding, NaN, subnormals",
                         "as cp.reduce.async.bulk (9.7.9.25.4.2)",
                         [&how](Card &card) { return reduceTensor(card, how); }});
  const std::tuple<const char *, const char *, Target> targets[] = {
      {"alone", "the executing CTA, no cluster", Target::alone},
      {"own", "the executing CTA of a pair", Target::own},
      {"mapa", "the executing CTA of a pair, its address by mapa", Target::mapped},
      {"other", "the other CTA of a pair", Target::other}};
  for (auto &[name, whose, target] : targets)
    for (bool reduces : {false, true})
      questions.push_back(
          {formatv("protocol/23 {0} {1}", reduces ? "reduce" : "copy", name),
           formatv("a bulk {0} from shared::cta to shared::cluster into {1}", reduces ? "reduction" : "copy", whose),
           isAllowed(reduces, target) ? "works" : "TM-16: an error",
           [=, target = target](Card &card) { return writesRemote(card, reduces, target); }});
  questions.push_back({"protocol/20 satfinite",
                       "whether wgmma of s8 clamps within a dot whose sum fits and whose partial sums do not",
                       "once, the exact sum with c", clampsOnce});
}

} // namespace gemmc::microtests
