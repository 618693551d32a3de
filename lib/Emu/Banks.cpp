#include "Banks.h"
#include "Lanes.h"
#include "MmaParts.h"
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

/// Sectors of which a store of so many bytes a lane, at multiples of them, writes some.
unsigned parts(const std::array<uint64_t, numLanes> &addresses, unsigned bytes, Mask mask) {
  constexpr uint64_t sector = 32, all = (uint64_t(1) << sector) - 1;
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, numLanes> written; // sector, its bytes
  forLanes(mask, [&](unsigned l) {
    const uint64_t own = ((uint64_t(1) << bytes) - 1) << addresses[l] % sector;
    if (written.empty() || written.back().first != addresses[l] / sector)
      written.push_back({addresses[l] / sector, 0});
    written.back().second |= own;
  });
  llvm::sort(written);
  unsigned count = 0;
  for (size_t i = 0; i < written.size();) {
    uint64_t whole = 0;
    const uint64_t at = written[i].first;
    for (; i < written.size() && written[i].first == at; ++i)
      whole |= written[i].second;
    count += whole != all;
  }
  return count;
}
} // namespace

Traffic trafficOf(Where where, const std::array<uint64_t, numLanes> &addresses, unsigned bytes, Mask mask,
                  bool stores) {
  if (where == Where::Generic)
    where = addresses[std::countr_zero(mask)] - window::shared < window::size ? Where::Shared : Where::Global;
  if (where == Where::Shared || where == Where::SharedCluster)
    return {conflicts(addresses, bytes, mask), 0};
  if (where == Where::Global)
    return {0, sectors(addresses, bytes, mask), stores ? parts(addresses, bytes, mask) : 0};
  return {};
}

namespace {
/// One access of a warp, or a phase of it: `bytes` of each of `lines` lines, `step` lines apart.
struct WmmaAccess {
  unsigned lines, step, bytes;
};

/// Lane l holds what mma.sync gives it: of a factor row (column) l / 4 and the l % 4th part of a step's k, of the sums
/// row l / 4 and columns 2 (l % 4) and the next. m8n32 is computed as the transpose of m32n8.
WmmaAccess accessOf(const sem::MmaForm &form, sem::Role role, Order order) {
  unsigned bits = ptx::bitsOf(sem::typeOf(form, role));
  bool isFactor = role == sem::Role::a || role == sem::Role::b;
  if (bits == 16)
    return {8, 1, 16}; // ldmatrix, stmatrix
  if (!isFactor) {
    bool pairsInLine = (order == Order::row) != (form.m == 8 && form.n == 32);
    return !pairsInLine ? WmmaAccess{4, 2, 32} : bits == 64 ? WmmaAccess{2, 1, 64} : WmmaAccess{4, 1, 32};
  }
  bool alongK = (role == sem::Role::a) == (order == Order::row);
  if (bits == 64 || (bits == 32 && !alongK))
    return {4, 1, 32};
  return alongK ? WmmaAccess{8, 1, 16} : WmmaAccess{4, 4, 8}; // bytes across k come one by one
}
} // namespace

unsigned wmmaConflicts(const sem::MmaForm &form, sem::Role role, Order order, llvm::ArrayRef<uint64_t> lines) {
  auto [count, step, bytes] = accessOf(form, role, order);
  unsigned extra = 0, lineBytes = sem::wmmaLines(form, role, order).bytes;
  for (unsigned first = 0; first < lines.size(); first += count * step)
    for (unsigned offset = 0; offset < step; ++offset)
      for (unsigned at = 0; at < lineBytes; at += bytes) {
        uint32_t starts[8];
        for (unsigned i = 0; i < count; ++i)
          starts[i] = static_cast<uint32_t>(lines[first + offset + i * step]) + at;
        extra += extraWavefronts(starts, count, bytes);
      }
  return extra;
}

} // namespace gemmc::emu
