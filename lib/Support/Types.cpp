#include "gemmc/Support/Types.h"
#include <iterator>

namespace gemmc {
namespace {
struct ElemRow {
  const char *name;
  unsigned bits;
};
/// Indexed by `Elem`.
constexpr ElemRow elems[] = {{"f16", 16}, {"bf16", 16}, {"f32", 32}, {"f64", 64}, {"tf32", 32},
                             {"e4m3", 8}, {"e5m2", 8},  {"s8", 8},   {"u8", 8},   {"s32", 32},
                             {"s4", 4},   {"u4", 4},    {"b1", 1}};
} // namespace

unsigned bitsOf(Elem type) { return elems[static_cast<unsigned>(type)].bits; }

bool isInteger(Elem type) {
  switch (type) {
  case Elem::s8:
  case Elem::u8:
  case Elem::s32:
  case Elem::s4:
  case Elem::u4:
  case Elem::b1:
    return true;
  default:
    return false;
  }
}

llvm::StringRef nameOf(Elem type) { return elems[static_cast<unsigned>(type)].name; }

std::optional<Elem> parseElem(llvm::StringRef name) {
  for (unsigned i = 0; i < std::size(elems); ++i)
    if (name == elems[i].name)
      return static_cast<Elem>(i);
  return std::nullopt;
}
} // namespace gemmc
