#include "Family.h"
#include "llvm/ADT/StringExtras.h"

namespace gemmc::microtests {

const char *const ptxHead = ".version 8.4\n.target sm_90a\n.address_size 64\n";

std::vector<Family> allFamilies() {
  std::vector<Family> families;
  addScalarFamilies(families);
  addAtomicFamilies(families);
  addMmaFamilies(families);
  addWmmaFamilies(families);
  addWgmmaFamilies(families);
  return families;
}

void fillElements(Random &random, Bytes bytes, size_t at, size_t count, ptx::Type type, const Style &style) {
  unsigned width = widthOf(type);
  if (width >= 8) {
    for (size_t i = 0; i < count; ++i)
      storeBits(bytes, at + i * width / 8, style.draw(random), width / 8);
    return;
  }
  for (size_t byte = 0; byte < count * width / 8; ++byte) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8 / width; ++i)
      value |= style.draw(random) << i * width;
    storeBits(bytes, at + byte, value, 1);
  }
}

void fillSmall(Random &random, Bytes bytes, size_t at, size_t count, ptx::Type type) {
  const Fields &fields = *fieldsOf(type);
  unsigned mantissa = fields.fraction + fields.padding;
  for (size_t i = 0; i < count; ++i) {
    uint64_t exponent = fields.bias() - 70 - random.below(18), sign = random.below(2);
    storeBits(bytes, at + i * fields.width() / 8,
              random.chance(3) ? 0 : exponent << mantissa | sign << (fields.width() - 1), fields.width() / 8);
  }
}

std::string hex(uint64_t value, unsigned bits) {
  unsigned digits = std::max(1u, bits / 4);
  std::string text = llvm::utohexstr(value, true);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

std::string dotText(llvm::ArrayRef<uint64_t> a, unsigned aBits, llvm::ArrayRef<uint64_t> b, unsigned bBits, uint64_t c,
                    unsigned cBits) {
  auto list = [](llvm::ArrayRef<uint64_t> values, unsigned bits) {
    std::string text;
    for (uint64_t value : values)
      text += (text.empty() || bits == 1 ? "" : " ") + hex(value, bits);
    return "[" + text + "]";
  };
  return "a=" + list(a, aBits) + " b=" + list(b, bBits) + " c=" + hex(c, cBits);
}

} // namespace gemmc::microtests
