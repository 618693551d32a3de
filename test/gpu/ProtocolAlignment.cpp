// The smallest exponent at which terms of a dot are aligned (24): random dots of tiny products, on the card and by a
// model with each of some exponents.
#include "Protocol.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cmath>

using namespace llvm;

namespace gemmc::microtests {
namespace {

constexpr int none = -1000, lowest = -150, highest = -115;
constexpr unsigned fraction = 25;

/// `a=[...]` and `b=[...]` of a family's description.
std::vector<double> operandsOf(StringRef text, StringRef name) {
  SmallVector<StringRef> words;
  text.split((name + "=[").str()).second.split("]").first.split(words, ' ', -1, false);
  std::vector<double> values;
  for (StringRef word : words) {
    uint32_t bits = 0;
    word.getAsInteger(16, bits);
    bits <<= word.size() == 4 ? 16 : 0; // bf16
    float value;
    std::memcpy(&value, &bits, 4);
    values.push_back(value);
  }
  return values;
}

/// d as f32 bits: the terms of `step` elements at a time are cut at 2^-fraction of the largest, or of 2^smallest.
uint32_t dotOf(const std::vector<double> &a, const std::vector<double> &b, size_t step, int smallest) {
  double d = 0;
  for (size_t from = 0; from < a.size(); from += step) {
    int top = std::max(smallest, d != 0 ? std::max(std::ilogb(d), -126) : none);
    for (size_t i = from; i < from + step; ++i)
      if (a[i] * b[i] != 0)
        top = std::max(top, std::ilogb(a[i]) + std::ilogb(b[i]));
    double sum = std::trunc(std::ldexp(d, int(fraction) - top));
    for (size_t i = from; i < from + step; ++i)
      sum += std::trunc(std::ldexp(a[i] * b[i], int(fraction) - top));
    sum = std::ldexp(sum, top - int(fraction));
    int unit = std::max(sum != 0 ? std::ilogb(sum) : -126, -126) - 23;
    d = std::ldexp(std::trunc(std::ldexp(sum, -unit)), unit);
  }
  auto result = static_cast<float>(d);
  uint32_t bits;
  std::memcpy(&bits, &result, 4);
  return d == 0 ? 0 : bits;
}

Question::Answer smallestAlignment(Card &card, const Family &family) {
  constexpr unsigned ctas = 8;
  Random random(24);
  std::vector<std::byte> in(size_t(ctas) * family.inBytes), gpu(size_t(ctas) * family.outBytes), emulated(gpu.size());
  for (unsigned cta = 0; cta < ctas; ++cta)
    family.fillSmall(random, Bytes(in).slice(size_t(cta) * family.inBytes, family.inBytes));
  Trouble error = card.run(family.ptx, {ctas, family.threads, 1, 0}, in, gpu);
  if (error.empty())
    error = emulate(family.ptx, {ctas, family.threads, 1, 0}, in, emulated, 1);
  if (!error.empty())
    return unsettled(error);
  std::vector<unsigned> differ(highest - lowest + 1);
  unsigned withNone = 0, words = gpu.size() / 4, differs = 0;
  for (unsigned i = 0; i < words; ++i) {
    unsigned cta = i * 4 / family.outBytes;
    auto want = static_cast<uint32_t>(loadBits(gpu, size_t(i) * 4, 4));
    differs += want != loadBits(emulated, size_t(i) * 4, 4);
    std::string text = family.describe(ConstBytes(in).slice(size_t(cta) * family.inBytes, family.inBytes),
                                       i % (family.outBytes / 4), 0, 0);
    std::vector<double> a = operandsOf(text, "a"), b = operandsOf(text, "b");
    size_t step = StringRef(family.name).starts_with("wmma/") && StringRef(family.name).contains("tf32") ? 4 : a.size();
    withNone += dotOf(a, b, step, none) != want;
    for (int at = lowest; at <= highest; ++at)
      differ[at - lowest] += dotOf(a, b, step, at) != want;
  }
  std::string told;
  for (int at = lowest; at <= highest; ++at)
    if (!differ[at - lowest])
      told += formatv("{0}{1}", told.empty() ? "2^" : ", 2^", at).str();
  told = formatv(
      "{0} of {1} differ from the emulator; explained by: {2}{3}; unexplained with no such exponent: {4}, with ",
      differs, words, told.empty() ? "none of them" : told, withNone ? "" : " (and by none)", withNone);
  for (int at = -134; at <= -130; ++at)
    told += formatv("{0}2^{1}: {2}", at > -134 ? ", " : "", at, differ[at - lowest]).str();
  return verdict(!differs, told);
}
} // namespace

void addAlignmentQuestions(std::vector<Question> &questions) {
  for (Family &family : allFamilies()) {
    StringRef name = family.name;
    bool plain =
        name.starts_with("mma/") || name.contains("row.col") || (name.contains("n64k") && name.ends_with("SS"));
    if (!family.fillSmall || !plain)
      continue;
    questions.push_back(
        {"protocol/24 " + family.name, "the smallest exponent at which terms are aligned (" + family.name + ")",
         "as in lib/Emu/TensorCore.cpp", [family](Card &card) { return smallestAlignment(card, family); }});
  }
}

} // namespace gemmc::microtests
