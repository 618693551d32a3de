/// The rules that the emulator checks: Rules.def as data. docs/rules.md is generated from it.
#pragma once
#include "gemmc/Emu/Emulator.h"

namespace gemmc::emu {
/// Of a finding with this ID: error, review, or one of them by who made the PTX. Unknown IDs are errors.
Verdict severityOf(llvm::StringRef rule, bool foreign);
} // namespace gemmc::emu
