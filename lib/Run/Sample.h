/// Which clusters of a grid run where not all do.
#pragma once
#include "gemmc/Run/Numbers.h"
#include <set>
#include <vector>

namespace gemmc::run {

/// Distinct cluster indices below `total`: the last, the first, and others by `seed`.
inline std::vector<uint64_t> sampleOf(uint64_t total, uint64_t wanted, uint64_t seed) {
  std::set<uint64_t> chosen;
  if (wanted >= total) {
    for (uint64_t i = 0; i < total; ++i)
      chosen.insert(i);
  } else {
    Random random(seed);
    if (wanted > 1)
      chosen.insert(0);
    chosen.insert(total - 1);
    while (chosen.size() < wanted)
      chosen.insert(random.below(total));
  }
  return {chosen.begin(), chosen.end()};
}

} // namespace gemmc::run
