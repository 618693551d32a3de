#include "Banks.h"
#include "Lanes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <bit>

namespace gemmc::emu {

unsigned extraWavefronts(const uint32_t *addresses, unsigned count, unsigned bytes) {
  constexpr unsigned banks = 32;
  std::array<uint8_t, banks> depth{};
  std::array<std::array<uint32_t, numLanes>, banks> words; // the distinct ones of each bank
  unsigned worst = 1;
  for (unsigned i = 0; i < count; ++i)
    for (uint32_t word = addresses[i] / 4, end = (addresses[i] + bytes - 1) / 4; word <= end; ++word) {
      unsigned bank = word % banks, seen = 0;
      while (seen < depth[bank] && words[bank][seen] != word)
        ++seen;
      if (seen < depth[bank])
        continue;
      words[bank][depth[bank]++] = word;
      worst = std::max<unsigned>(worst, depth[bank]);
    }
  return worst - 1;
}

namespace {
unsigned conflicts(const std::array<uint64_t, numLanes> &addresses, unsigned bytes, Mask mask) {
  unsigned phase = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8, extra = 0;
  for (unsigned first = 0; first < numLanes; first += phase) {
    uint32_t active[numLanes];
    unsigned count = 0;
    for (unsigned l = first; l < first + phase; ++l)
      if (mask >> l & 1)
        active[count++] = static_cast<uint32_t>(addresses[l]);
    if (count > 1)
      extra += extraWavefronts(active, count, bytes);
  }
  return extra;
}

unsigned sectors(const std::array<uint64_t, numLanes> &addresses, unsigned bytes, Mask mask) {
  constexpr unsigned sector = 32;
  llvm::SmallVector<uint64_t, 2 * numLanes> touched;
  forLanes(mask, [&](unsigned l) {
    for (uint64_t at = addresses[l] / sector, end = (addresses[l] + bytes - 1) / sector; at <= end; ++at)
      if (touched.empty() || touched.back() != at)
        touched.push_back(at);
  });
  llvm::sort(touched);
  return static_cast<unsigned>(std::unique(touched.begin(), touched.end()) - touched.begin());
}
} // namespace

void countTraffic(Traffic &traffic, Where where, const std::array<uint64_t, numLanes> &addresses, unsigned bytes,
                  Mask mask) {
  if (where == Where::Generic)
    where = addresses[std::countr_zero(mask)] - window::shared < window::size ? Where::Shared : Where::Global;
  if (where == Where::Shared || where == Where::SharedCluster)
    traffic.bankConflicts += conflicts(addresses, bytes, mask);
  else if (where == Where::Global)
    traffic.sectors += sectors(addresses, bytes, mask);
}

} // namespace gemmc::emu
