/// Findings, each pair of instructions once, in whatever CTA, cluster or schedule it was seen.
#pragma once
#include "gemmc/Emu/Emulator.h"
#include <set>
#include <tuple>

namespace gemmc::run {

class Once {
public:
  /// Whether no finding of the same rule at the same two lines came before.
  bool isNew(const emu::Finding &finding) {
    return seen.insert({finding.code, finding.line, finding.other.line}).second;
  }

private:
  std::set<std::tuple<std::string, uint32_t, uint32_t>> seen;
};

} // namespace gemmc::run
