#include "Decoder.h"

namespace gemmc::emu {
#define GEMMC_UNMODELLED(Name)                                                                                         \
  Exec exec##Name(Decoder &) { return unmodelled; }
#include "Unmodelled.def"
#undef GEMMC_UNMODELLED

bool isModelled(ptx::Op op) {
  switch (op) {
#define GEMMC_UNMODELLED(Name) case ptx::Op::Name:
#include "Unmodelled.def"
#undef GEMMC_UNMODELLED
    return false;
  default:
    return true;
  }
}
} // namespace gemmc::emu
