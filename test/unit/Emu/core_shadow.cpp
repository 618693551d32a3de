// Cells that neighbours share against a cell for each granule: the same history, and each change seen by its own
// granules alone.
#include "../../../lib/Emu/Shadow.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>

namespace gemmc::emu::test {
namespace {
constexpr unsigned granuleBits = 2;
constexpr uint64_t numBytes = 256;

/// What an access of this kind makes of a cell.
void change(Cell &cell, const Access &access) {
  if (!access.write) {
    cell.readers.push_back(access);
    return;
  }
  if (access.strong) {
    if (!cell.earlier)
      cell.earlier = std::make_unique<std::vector<Access>>();
    cell.earlier->push_back(cell.write);
  } else {
    cell.earlier.reset();
  }
  cell.readers.clear();
  cell.write = access;
}

std::vector<uint32_t> told(const Cell &cell) {
  std::vector<uint32_t> out{cell.write.pc};
  for (const Access &reader : cell.readers)
    out.push_back(reader.pc);
  out.push_back(~0u);
  for (size_t i = 0; cell.earlier && i < cell.earlier->size(); ++i)
    out.push_back((*cell.earlier)[i].pc);
  return out;
}
} // namespace

TEST(EmuShadow, SharedCellsAreAsGoodAsOwnOnes) {
  std::mt19937 source(1);
  for (int trial = 0; trial < 50; ++trial) {
    ShadowRange range(numBytes, granuleBits);
    std::vector<Cell> own((numBytes >> granuleBits) + 1);
    for (uint32_t step = 1; step < 60; ++step) {
      Access access;
      access.pc = step, access.write = source() % 2, access.strong = source() % 4 == 0;
      const uint64_t offset = source() % numBytes, bytes = source() % (numBytes - offset + 8);
      const bool holds = source() % 3;
      std::vector<uint64_t> looked;
      range.use(
          offset, bytes, access.write && !access.strong,
          [&](const Cell &cell, uint64_t at) {
            EXPECT_EQ(told(cell), told(own[at >> granuleBits]));
            looked.push_back(at >> granuleBits);
            return holds;
          },
          [&](Cell &cell) { change(cell, access); });
      const uint64_t first = offset >> granuleBits;
      const uint64_t end = bytes ? std::min<uint64_t>(((offset + bytes - 1) >> granuleBits) + 1, own.size()) : first;
      if (!holds)
        EXPECT_EQ(looked.size(), end - first);
      for (uint64_t i = first; i < end; ++i) { // who was not asked is like the one asked last
        auto asked = std::upper_bound(looked.begin(), looked.end(), i);
        ASSERT_NE(asked, looked.begin());
        EXPECT_EQ(told(own[*std::prev(asked)]), told(own[i]));
      }
      for (uint64_t i = first; i < end; ++i)
        change(own[i], access);
    }
    uint64_t i = 0;
    range.see(0, numBytes, [&](const Cell &cell) { EXPECT_EQ(told(cell), told(own[i++])); });
    EXPECT_EQ(i, numBytes >> granuleBits);
  }
}
} // namespace gemmc::emu::test
