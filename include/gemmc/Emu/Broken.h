/// A rule of the machine that an operation breaks, as the pure functions of `gemmc::emu::sem` report it.
#pragma once
#include "llvm/Support/FormatVariadic.h"
#include <string>

namespace gemmc::emu::sem {

/// Nothing broken: converts to false. `rule` is an ID as findings carry it (MB-5, TM-9, WG-5...), or `unmodelled` when
/// the manual leaves the meaning open and the emulator does not guess.
struct Broken {
  const char *rule = nullptr;
  std::string text; ///< The rule with its numbers; lower case, no full stop.
  explicit operator bool() const { return rule != nullptr; }
};

/// `format` with its arguments, the text.
template <typename... Args> Broken broken(const char *rule, const char *format, Args &&...args) {
  return {rule, llvm::formatv(format, std::forward<Args>(args)...).str()};
}

} // namespace gemmc::emu::sem
