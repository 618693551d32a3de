#include "Decoder.h"

namespace gemmc::emu {
#define GEMMC_UNMODELLED(Name)                                                                                         \
  Exec exec##Name(Decoder &) { return unmodelled; }
#include "Unmodelled.def"
} // namespace gemmc::emu
