// wgmma: one warpgroup a CTA. Operands in shared memory are copied there byte by byte as the host laid them out.
#include "gemmc/Emu/Wgmma.h"
#include "Family.h"
#include "gemmc/Emu/Mma.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using emu::sem::WgmmaDescriptor;
using emu::sem::WgmmaForm;
using ptx::Type;

constexpr unsigned groupThreads = 128;

struct Wgmma {
  WgmmaForm form;
  bool registers = false, accumulate = true;
  WgmmaDescriptor::Swizzle swizzle = WgmmaDescriptor::none;
  WgmmaDescriptor a, b; ///< Starts are offsets in the image.
  unsigned aBytes = 0, imageBytes = 0, cAt = 0, inBytes = 0;
};

constexpr unsigned spans[] = {16, 128, 64, 32}; // by the encoding of the swizzle
constexpr unsigned align(unsigned value, unsigned to) { return (value + to - 1) / to * to; }

/// Matrices as small as the layout allows: for its offsets see `elementAddress`.
WgmmaDescriptor layoutOf(const Wgmma &wgmma, bool mnMajor) {
  WgmmaDescriptor layout;
  unsigned span = spans[wgmma.swizzle];
  layout.swizzle = wgmma.swizzle;
  if (wgmma.swizzle == WgmmaDescriptor::none)
    layout.leading = 128, layout.stride = 256;
  else if (!mnMajor)
    layout.leading = 16, layout.stride = 8 * span;
  else
    layout.stride = 8 * span, layout.leading = 16 * span;
  return layout;
}
unsigned extentOf(const WgmmaForm &form, const WgmmaDescriptor &layout, bool isB) {
  unsigned lines = isB ? form.n : 64, bits = widthOf(isB ? form.b : form.a), end = 0;
  for (unsigned line = 0; line < lines; ++line)
    for (unsigned k = 0; k < form.k; k += std::max(1u, 8 / bits))
      end = std::max(end, emu::sem::elementAddress(layout, isB ? form.transB : form.transA, bits, line, k) +
                              std::max(1u, bits / 8));
  return align(end, 1024);
}

std::string vectorOf(char name, unsigned regs) {
  std::string text = "{";
  for (unsigned i = 0; i < regs; ++i)
    text += formatv("{0}%{1}{2}", i ? ", " : "", name, i).str();
  return text + "}";
}
uint64_t descriptorBits(const WgmmaDescriptor &layout) {
  return uint64_t(layout.leading >> 4) << 16 | uint64_t(layout.stride >> 4) << 32 | uint64_t(layout.swizzle) << 62;
}

std::string mnemonicOf(const WgmmaForm &form) {
  std::string end = form.a == Type::b1 ? ".and.popc" : "";
  return formatv("wgmma.mma_async.sync.aligned.m64n{0}k{1}{2}.{3}.{4}.{5}{6}", form.n, form.k,
                 form.satfinite ? ".satfinite" : "", ptx::nameOf(form.d), ptx::nameOf(form.a), ptx::nameOf(form.b), end)
      .str();
}
bool isInteger(Type type) { return type == Type::s8 || type == Type::u8 || type == Type::b1; }

std::string operandsOf(const Wgmma &wgmma) {
  const WgmmaForm &form = wgmma.form;
  std::string text = formatv("{0}, {1}, %bd, {2}", vectorOf('d', wgmmaRegsD(form)),
                             wgmma.registers ? vectorOf('a', 4) : "%ad", wgmma.accumulate ? "1" : "0")
                         .str();
  if (isInteger(form.a))
    return text;
  text += formatv(", {0}, {1}", form.negateA ? -1 : 1, form.negateB ? -1 : 1).str();
  if (form.k == 16 && !wgmma.registers)
    text += formatv(", {0}", int(form.transA)).str();
  if (form.k == 16)
    text += formatv(", {0}", int(form.transB)).str();
  return text;
}

std::string textOf(const Wgmma &wgmma) {
  unsigned regs = wgmmaRegsD(wgmma.form);
  std::string out = ptxHead;
  raw_string_ostream os(out);
  os << ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
     << formatv(".shared .align 1024 .b8 image[{0}];\n", wgmma.imageBytes)
     << ".reg .b64 %in, %out, %x, %ad, %bd, %s;\n.reg .b32 %t, %c, %u, %v<4>;\n.reg .b32 %a<4>;\n"
     << formatv(".reg .b32 %d<{0}>;\n", regs)
     << "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
     << formatv("mad.wide.u32 %in, %c, {0}, %in;\nmad.wide.u32 %out, %c, {1}, %out;\n", wgmma.inBytes,
                regs * groupThreads * 4)
     << "mad.wide.u32 %x, %t, 16, %in;\nmov.u32 %u, image;\nmad.lo.u32 %u, %t, 16, %u;\n";
  for (unsigned at = 0; at < wgmma.imageBytes; at += 16 * groupThreads)
    os << "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%x+" << at << "];\nst.shared.v4.b32 [%u+" << at
       << "], {%v0, %v1, %v2, %v3};\n";
  os << "fence.proxy.async;\nbar.sync 0;\nmad.wide.u32 %x, %t, 4, %in;\n";
  if (wgmma.registers)
    for (unsigned i = 0; i < 4; ++i)
      os << formatv("ld.global.b32 %a{0}, [%x+{1}];\n", i, wgmma.imageBytes + i * groupThreads * 4);
  for (unsigned i = 0; i < regs; ++i)
    os << formatv("ld.global.b32 %d{0}, [%x+{1}];\n", i, wgmma.cAt + i * groupThreads * 4);
  os << "mov.u32 %u, image;\nshr.u32 %u, %u, 4;\ncvt.u64.u32 %s, %u;\n"
     << formatv("add.u64 %ad, %s, {0};\nadd.u64 %bd, %s, {1};\n", int64_t(descriptorBits(wgmma.a)),
                int64_t(descriptorBits(wgmma.b) + (wgmma.aBytes >> 4)))
     << "wgmma.fence.sync.aligned;\n"
     << mnemonicOf(wgmma.form) << " " << operandsOf(wgmma)
     << ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmad.wide.u32 %x, %t, 4, %out;\n";
  for (unsigned i = 0; i < regs; ++i)
    os << formatv("st.global.b32 [%x+{0}], %d{1};\n", i * groupThreads * 4, i);
  os << "ret;\n}\n";
  return out;
}

/// A from registers: as mma.sync's m16 of the same K holds it, one warp after the other.
uint64_t elementInRegisters(const Wgmma &wgmma, ConstBytes in, unsigned row, unsigned k) {
  unsigned width = widthOf(wgmma.form.a), per = 32 / width;
  unsigned lane = row % 8 * 4 + k / per % 4, reg = row % 16 / 8 + k / (4 * per) * 2;
  size_t at = wgmma.imageBytes + (size_t(reg) * groupThreads + row / 16 * 32 + lane) * 4;
  return loadBits(in, at, 4) >> k % per * width & (width == 32 ? ~0u : (1u << width) - 1);
}

std::string describe(const Wgmma &wgmma, ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
  const WgmmaForm &form = wgmma.form;
  unsigned reg = word / groupThreads, thread = word % groupThreads, lane = thread % 32;
  bool packed = form.d == Type::f16, upper = packed && (gpu & 0xffff) == (emulator & 0xffff);
  unsigned i = packed ? reg * 2 + upper : reg;
  unsigned row = thread / 32 * 16 + lane / 4 + 8 * (i >> 1 & 1), column = 8 * (i >> 2) + 2 * (lane % 4) + (i & 1);
  auto fromImage = [&](const WgmmaDescriptor &layout, bool trans, unsigned base, Type type, unsigned line, unsigned k) {
    unsigned bits = widthOf(type);
    uint32_t at = base + emu::sem::elementAddress(layout, trans, bits, line, k);
    return bits < 8 ? loadBits(in, at, 1) >> k % 8 & 1 : loadBits(in, at, bits / 8);
  };
  std::vector<uint64_t> a, b;
  for (unsigned k = 0; k < form.k; ++k) {
    a.push_back(wgmma.registers ? elementInRegisters(wgmma, in, row, k)
                                : fromImage(wgmma.a, form.transA, 0, form.a, row, k));
    b.push_back(fromImage(wgmma.b, form.transB, wgmma.aBytes, form.b, column, k));
  }
  uint64_t c = loadBits(in, wgmma.cAt + size_t(word) * 4, 4);
  c = packed ? c >> (upper ? 16 : 0) & 0xffff : c;
  return formatv("row {0} column {1} {2}", row, column,
                 dotText(a, widthOf(form.a), b, widthOf(form.b), wgmma.accumulate ? c : 0, packed ? 16 : 32))
      .str();
}

void fill(const Wgmma &wgmma, Random &random, Bytes in) {
  const WgmmaForm &form = wgmma.form;
  int ea = random.between(-9, 9), eb = random.between(-9, 9);
  auto elements = [](unsigned bytes, Type type) { return bytes * 8 / widthOf(type); };
  Style a(random, form.a, ea), b(random, form.b, eb);
  if (wgmma.registers)
    fillElements(random, in, wgmma.imageBytes, elements(4 * groupThreads * 4, form.a), form.a, a);
  else
    fillElements(random, in, 0, elements(wgmma.aBytes, form.a), form.a, a);
  unsigned bBytes = wgmma.imageBytes - wgmma.aBytes;
  fillElements(random, in, wgmma.aBytes, elements(bBytes, form.b), form.b, b);
  fillElements(random, in, wgmma.cAt, elements(wgmma.inBytes - wgmma.cAt, form.d), form.d,
               Style::addend(random, form.d, ea + eb));
}

void add(std::vector<Family> &families, Wgmma made) {
  if (!emu::sem::isWgmma(made.form))
    return;
  auto wgmma = std::make_shared<Wgmma>(made);
  const WgmmaForm &form = wgmma->form;
  wgmma->a = layoutOf(*wgmma, form.transA), wgmma->b = layoutOf(*wgmma, form.transB);
  wgmma->aBytes = wgmma->registers ? 0 : extentOf(form, wgmma->a, false);
  wgmma->imageBytes = align(wgmma->aBytes + extentOf(form, wgmma->b, true), 16 * groupThreads);
  wgmma->cAt = wgmma->imageBytes + (wgmma->registers ? 4 * groupThreads * 4 : 0);
  unsigned outBytes = wgmmaRegsD(form) * groupThreads * 4;
  wgmma->inBytes = wgmma->cAt + outBytes;
  Family family;
  static constexpr const char *names[] = {"", " 128B", " 64B", " 32B"};
  family.name =
      formatv("wgmma/{0} {1}{2}{3}{4}{5}{6}{7}", mnemonicOf(form).substr(strlen("wgmma.mma_async.sync.aligned.")),
              wgmma->registers ? "RS" : "SS", names[wgmma->swizzle], form.transA ? " transA" : "",
              form.transB ? " transB" : "", form.negateA ? " -A" : "", form.negateB ? " -B" : "",
              wgmma->accumulate ? "" : " fresh")
          .str();
  family.ptx = textOf(*wgmma);
  family.threads = groupThreads;
  family.inBytes = wgmma->inBytes;
  family.outBytes = outBytes;
  family.vectors = 64 * form.n;
  family.fill = [wgmma](Random &random, Bytes in) { fill(*wgmma, random, in); };
  if (form.a == Type::tf32 || form.a == Type::bf16)
    family.fillSmall = [wgmma](Random &random, Bytes in) {
      fillSmall(random, in, 0, wgmma->cAt * 8 / widthOf(wgmma->form.a), wgmma->form.a);
    };
  family.describe = [wgmma](ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
    return describe(*wgmma, in, word, gpu, emulator);
  };
  families.push_back(std::move(family));
}

Wgmma make(Type d, Type a, Type b, unsigned n) {
  Wgmma wgmma;
  wgmma.form.d = d, wgmma.form.a = a, wgmma.form.b = b, wgmma.form.n = n;
  wgmma.form.k = a == Type::b1 ? 256 : 256 / widthOf(a);
  return wgmma;
}

/// Everything that only 16-bit factors have: transposition; and all layouts.
void addLayouts(std::vector<Family> &families, Type d, Type a) {
  for (unsigned swizzle = 0; swizzle < 4; ++swizzle)
    for (unsigned trans = 0; trans < 4; ++trans)
      for (bool registers : {false, true}) {
        Wgmma wgmma = make(d, a, a, 64);
        wgmma.swizzle = static_cast<WgmmaDescriptor::Swizzle>(swizzle);
        wgmma.form.transA = trans & 1, wgmma.form.transB = trans & 2;
        wgmma.registers = registers;
        if (!(registers && wgmma.form.transA) && (swizzle || trans))
          add(families, wgmma);
      }
}
} // namespace

void addWgmmaFamilies(std::vector<Family> &families) {
  constexpr Type f16 = Type::f16, bf16 = Type::bf16, f32 = Type::f32, tf32 = Type::tf32, s32 = Type::s32, s8 = Type::s8,
                 u8 = Type::u8, e4 = Type::e4m3, e5 = Type::e5m2;
  const std::array<Type, 3> types[] = {{f32, f16, f16},
                                       {f16, f16, f16},
                                       {f32, bf16, bf16},
                                       {f32, tf32, tf32},
                                       {f32, e4, e4},
                                       {f32, e4, e5},
                                       {f32, e5, e4},
                                       {f32, e5, e5},
                                       {f16, e4, e4},
                                       {f16, e4, e5},
                                       {f16, e5, e4},
                                       {f16, e5, e5},
                                       {s32, s8, s8},
                                       {s32, s8, u8},
                                       {s32, u8, s8},
                                       {s32, u8, u8},
                                       {s32, Type::b1, Type::b1}};
  for (auto [d, a, b] : types)
    for (bool registers : {false, true}) {
      Wgmma plain = make(d, a, b, 64);
      plain.registers = registers;
      add(families, plain);
      Wgmma fresh = plain;
      fresh.accumulate = false;
      add(families, fresh);
      for (unsigned negate = 1; negate < 4 && !isInteger(a); ++negate) {
        Wgmma negated = plain;
        negated.form.negateA = negate & 1, negated.form.negateB = negate & 2;
        add(families, negated);
      }
      if (a == s8 || a == u8) {
        Wgmma clamped = plain;
        clamped.form.satfinite = true;
        add(families, clamped);
      }
    }
  for (unsigned n : {8, 16, 24, 40, 88, 128, 192, 256})
    for (auto [d, a, b] : types)
      if (a == b)
        add(families, make(d, a, b, n));
  addLayouts(families, f32, f16);
  addLayouts(families, f16, f16);
  addLayouts(families, f32, bf16);
  for (unsigned swizzle = 1; swizzle < 4; ++swizzle)
    for (Type a : {tf32, e4, s8, Type::b1}) {
      Wgmma wgmma = make(isInteger(a) ? s32 : f32, a, a, 64);
      wgmma.swizzle = static_cast<WgmmaDescriptor::Swizzle>(swizzle);
      add(families, wgmma);
    }
}

} // namespace gemmc::microtests
