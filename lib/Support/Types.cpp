#include "gemmc/Support/Types.h"
#include <iterator>

namespace gemmc {
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

llvm::StringRef nameOf(Elem type) { return elemRows[static_cast<unsigned>(type)].name; }

std::optional<Elem> parseElem(llvm::StringRef name) {
  for (unsigned i = 0; i < std::size(elemRows); ++i)
    if (name == elemRows[i].name)
      return static_cast<Elem>(i);
  return std::nullopt;
}
} // namespace gemmc
