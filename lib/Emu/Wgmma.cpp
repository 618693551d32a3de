#include "gemmc/Emu/Wgmma.h"
#include "MmaParts.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

namespace gemmc::emu::sem {

namespace {

using ptx::Type;

bool isFloat(Type type) { return type != Type::s8 && type != Type::u8 && type != Type::b1; }

/// Bytes of a row of the swizzle's atom: 16 << number of address bits exchanged.
unsigned spanOf(WgmmaDescriptor::Swizzle swizzle) {
  switch (swizzle) {
  case WgmmaDescriptor::b128:
    return 128;
  case WgmmaDescriptor::b64:
    return 64;
  case WgmmaDescriptor::b32:
    return 32;
  default:
    return 16;
  }
}

/// Chunks of 16 bytes are exchanged by address bits 7 and up.
uint32_t swizzle(uint32_t address, unsigned span) { return address ^ (address >> 3 & (span / 16 - 1) << 4); }

/// Every operand of every type is 32 bytes along K, or 16 elements of 16 bits: what one chunk of 16 bytes holds.
struct Chunk {
  unsigned line, k, elements;
};
template <typename Visit>
void forEachChunk(const WgmmaForm &form, bool isB, unsigned firstLine, unsigned lines, Visit visit) {
  unsigned elements = 128 / elementBits(isB ? form.b : form.a);
  if (isB ? form.transB : form.transA) {
    for (unsigned k = 0; k < form.k; ++k)
      for (unsigned line = firstLine; line < firstLine + lines; line += elements)
        visit(Chunk{line, k, elements});
  } else {
    for (unsigned line = firstLine; line < firstLine + lines; ++line)
      for (unsigned k = 0; k < form.k; k += elements)
        visit(Chunk{line, k, elements});
  }
}

/// Where gathered elements go. All of `WgmmaOperand` but the kind in use stays empty.
struct Sink {
  const WgmmaForm &form;
  Type type;
  bool negate;
  WgmmaOperand &operand;

  Sink(const WgmmaForm &form, bool isB, unsigned lines, WgmmaOperand &operand)
      : form(form), type(isB ? form.b : form.a), negate(isB ? form.negateB : form.negateA), operand(operand) {
    if (isFloat(type))
      operand.factors.resize(lines, form.k);
    else if (type == Type::b1)
      operand.bits.resize(lines * form.k / 32);
    else
      operand.integers.resize(lines * form.k);
  }
  void put(unsigned line, unsigned k, unsigned count, const void *data, bool alongLines) {
    if (isFloat(type))
      return operand.factors.fill(line, k, count, type, data, alongLines, negate);
    if (type == Type::b1) {
      std::memcpy(&operand.bits[(line * form.k + k) / 32], data, count / 8);
      return;
    }
    const auto *bytes = static_cast<const uint8_t *>(data);
    for (unsigned i = 0; i < count; ++i)
      operand.integers[line * form.k + k + i] = type == Type::s8 ? static_cast<int8_t>(bytes[i]) : bytes[i];
  }
  void finish() {
    if (isFloat(type))
      operand.factors.finish();
  }
};

/// Element i of a lane's D (f16 packs two to a register): its row among the warp's 16, and its column.
struct Cell {
  unsigned row, column;
};
Cell cellOf(unsigned lane, unsigned i) {
  return {lane / 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (lane % 4) + (i & 1)};
}

void loadD(const WgmmaForm &form, const uint32_t *const *d, uint32_t *acc) {
  bool packed = form.d == Type::f16;
  for (unsigned i = 0; i < form.n / 2; ++i)
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto [row, column] = cellOf(lane, i);
      acc[row * form.n + column] = packed ? d[i / 2][lane] >> (i & 1) * 16 & 0xffff : d[i][lane];
    }
}

void storeD(const WgmmaForm &form, const uint32_t *acc, uint32_t *const *d) {
  bool packed = form.d == Type::f16;
  for (unsigned i = 0; i < form.n / 2; i += packed ? 2 : 1)
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto [row, column] = cellOf(lane, i);
      const uint32_t *at = acc + row * form.n + column;
      d[packed ? i / 2 : i][lane] = packed ? at[0] | at[1] << 16 : at[0];
    }
}

} // namespace

Broken decodeDescriptor(uint64_t bits, WgmmaDescriptor &descriptor) {
  constexpr uint64_t field = 0x3fff, used = field | field << 16 | field << 32 | uint64_t(7) << 49 | uint64_t(3) << 62;
  descriptor.start = (bits & field) << 4;
  descriptor.leading = (bits >> 16 & field) << 4;
  descriptor.stride = (bits >> 32 & field) << 4;
  descriptor.baseOffset = bits >> 49 & 7;
  descriptor.swizzle = static_cast<WgmmaDescriptor::Swizzle>(bits >> 62);
  if (bits & ~used)
    return {
        "WG-12",
        llvm::formatv("the matrix descriptor {0:x} has bits outside of its fields: {1:x}", bits, bits & ~used).str()};
  if (descriptor.baseOffset && descriptor.swizzle != WgmmaDescriptor::none)
    return {"unmodelled", llvm::formatv("a matrix descriptor with base offset {0}", descriptor.baseOffset).str()};
  return {};
}

bool isWgmma(const WgmmaForm &form) {
  bool same = form.a == form.b, half = form.d == Type::f16, single = form.d == Type::f32;
  bool anyN = form.n >= 8 && form.n <= 256 && form.n % 8 == 0;
  bool integerN = anyN && (form.n % 16 == 0 || form.n == 8 || form.n == 24);
  auto both = [&](Type x, Type y) { return (form.a == x || form.a == y) && (form.b == x || form.b == y); };
  bool plain = !form.transA && !form.transB;
  bool integerForm = form.d == Type::s32 && integerN && plain && !form.negateA && !form.negateB;
  switch (form.a) {
  case Type::f16:
    return same && form.k == 16 && anyN && (half || single);
  case Type::bf16:
    return same && form.k == 16 && anyN && single;
  case Type::tf32:
    return same && form.k == 8 && anyN && single && plain;
  case Type::e4m3:
  case Type::e5m2:
    return both(Type::e4m3, Type::e5m2) && form.k == 32 && anyN && (half || single) && plain;
  case Type::s8:
  case Type::u8:
    return both(Type::s8, Type::u8) && form.k == 32 && integerForm;
  case Type::b1:
    return same && form.k == 256 && integerForm;
  default:
    return false;
  }
}

unsigned wgmmaRegsD(const WgmmaForm &form) { return form.d == Type::f16 ? form.n / 4 : form.n / 2; }

/// The canonical layouts of 9.7.15.5.1.2.1.3 in bytes; span is 16, 32, 64 or 128.
///
///   K-major, none      (line % 8) * 16   + (line / 8) * SBO + (chunk of k) * LBO
///   K-major, swizzled  (line % 8) * span + (line / 8) * SBO + bytes of k
///   MN-major, none     bytes of (line % 8) + (line / 8) * SBO + (k % 8) * 16 + (k / 8) * LBO
///   MN-major, swizzled bytes of (line within span) + (line / span) * LBO + (k % 8) * span + (k / 8) * SBO
uint32_t elementAddress(const WgmmaDescriptor &descriptor, bool mnMajor, unsigned bits, unsigned line, unsigned k) {
  unsigned span = spanOf(descriptor.swizzle), perChunk = 128 / bits;
  bool none = descriptor.swizzle == WgmmaDescriptor::none;
  uint32_t offset;
  if (!mnMajor) {
    offset = line % 8 * span + line / 8 * descriptor.stride;
    offset += none ? k / perChunk * descriptor.leading + k % perChunk * bits / 8 : k * bits / 8;
  } else {
    unsigned perSpan = span * 8 / bits;
    offset = line % perSpan * bits / 8 + k % 8 * span;
    offset += line / perSpan * (none ? descriptor.stride : descriptor.leading);
    offset += k / 8 * (none ? descriptor.leading : descriptor.stride);
  }
  return swizzle(descriptor.start + offset, span);
}

WgmmaExtent operandExtent(const WgmmaForm &form, bool isB, const WgmmaDescriptor &descriptor, unsigned firstLine,
                          unsigned lines) {
  unsigned bits = elementBits(isB ? form.b : form.a);
  WgmmaExtent extent{~0u, 0};
  forEachChunk(form, isB, firstLine, lines, [&](Chunk chunk) {
    uint32_t at = elementAddress(descriptor, isB ? form.transB : form.transA, bits, chunk.line, chunk.k);
    extent.begin = std::min(extent.begin, at);
    extent.end = std::max(extent.end, at + 16);
  });
  return extent;
}

Broken gatherShared(const WgmmaForm &form, bool isB, const WgmmaDescriptor &descriptor, unsigned firstLine,
                    unsigned lines, llvm::ArrayRef<std::byte> shared, WgmmaOperand &operand, uint32_t begin) {
  bool mnMajor = isB ? form.transB : form.transA;
  unsigned bits = elementBits(isB ? form.b : form.a);
  Sink sink(form, isB, lines, operand);
  Broken broken;
  forEachChunk(form, isB, firstLine, lines, [&](Chunk chunk) {
    uint32_t at = elementAddress(descriptor, mnMajor, bits, chunk.line, chunk.k);
    if (at >= begin && size_t(at) + 16 <= shared.size())
      sink.put(chunk.line - firstLine, chunk.k, chunk.elements, shared.data() + at, mnMajor);
    else if (!broken)
      broken = {
          "WG-10",
          llvm::formatv("element ({0}, {1}) of {2} lies at {3:x}, {4}", isB ? chunk.k : chunk.line,
                        isB ? chunk.line : chunk.k, isB ? "B" : "A", at,
                        at < begin
                            ? llvm::formatv("in front of the CTA's shared memory, which begins at {0:x}", begin).str()
                            : llvm::formatv("beyond the {0} bytes of shared memory", shared.size()).str())
              .str()};
  });
  sink.finish();
  return broken;
}

void gatherRegisters(const WgmmaForm &form, const uint32_t *const *regs, WgmmaOperand &operand) {
  Lines lines;
  lines.resize(16, form.k, elementBits(form.a));
  gatherBlocks(regs, 4, 2, lines);
  Sink sink(form, false, 16, operand);
  for (unsigned row = 0; row < 16; ++row)
    sink.put(row, 0, form.k, lines.line(row), false);
  sink.finish();
}

void wgmma(const WgmmaForm &form, const WgmmaOperand &a, const WgmmaOperand &b, bool accumulate, uint32_t *const *d) {
  static thread_local std::vector<uint32_t> acc;
  acc.assign(16 * form.n, 0);
  if (accumulate)
    loadD(form, d, acc.data());
  if (isFloat(form.a))
    fusedDots(dotModel(Chip::hopper, true, form.a, form.d, form.k), a.factors, b.factors, acc.data(), form.n);
  else if (form.a == Type::b1)
    bitDots(a.bits.data(), 16, b.bits.data(), form.n, form.k / 32, false, acc.data(), form.n);
  else
    integerDots(a.integers.data(), 16, b.integers.data(), form.n, form.k, form.satfinite, acc.data(), form.n);
  storeD(form, acc.data(), d);
}

} // namespace gemmc::emu::sem
