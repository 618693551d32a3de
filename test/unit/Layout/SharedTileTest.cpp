// How a tile lies in shared memory, against the hardware's own words: address bits for the swizzles (PTX ISA 5.5.7),
// banks for what a warp reads at once, and plain bookkeeping: every element has a place of its own.
#include "gemmc/Layout/SharedTile.h"
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace gemmc;

namespace {
constexpr SharedLayout allLayouts[] = {SharedLayout::none, SharedLayout::b32,     SharedLayout::b64,
                                       SharedLayout::b128, SharedLayout::rows,    SharedLayout::padded,
                                       SharedLayout::xor_, SharedLayout::blocked, SharedLayout::eighths};

/// Rows of 16 to 2048 bytes, up to 256 of them: mn and k in both roles.
template <typename Visit> void forEachTile(SharedLayout layout, Visit visit) {
  for (int64_t elemBytes : {1, 2, 4, 8})
    for (bool kMajor : {true, false})
      for (int64_t mn : {8, 16, 64, 96, 128, 176, 256})
        for (int64_t k : {16, 32, 48, 64, 128})
          visit(SharedTile(mn, k, kMajor, elemBytes, layout), kMajor ? mn : k, kMajor ? k : mn);
}

std::string describe(const SharedTile &tile, int64_t row, int64_t col) {
  return nameOf(tile.layout).str() + (tile.kMajor ? " k-major, " : " mn-major, ") + std::to_string(tile.rows) +
         " rows, span " + std::to_string(tile.spanBytes) + ", at " + std::to_string(row) + ", " + std::to_string(col);
}

class Layouts : public testing::TestWithParam<SharedLayout> {};

TEST_P(Layouts, EveryElementHasItsPlaceInTheStage) {
  forEachTile(GetParam(), [](const SharedTile &tile, int64_t rows, int64_t cols) {
    ASSERT_EQ(tile.rows, rows);
    std::vector<bool> taken(tile.stageBytes());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col) {
        int64_t at = tile.offset(row, col);
        ASSERT_TRUE(at >= 0 && at + tile.elemBytes <= tile.stageBytes()) << describe(tile, row, col);
        ASSERT_EQ(at % tile.elemBytes, 0) << describe(tile, row, col);
        ASSERT_FALSE(taken[at]) << describe(tile, row, col);
        taken[at] = true;
      }
  });
}

TEST_P(Layouts, ChunksOfSixteenBytesStayWhole) {
  forEachTile(GetParam(), [](const SharedTile &tile, int64_t rows, int64_t cols) {
    int64_t perChunk = 16 / tile.elemBytes;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col) {
        int64_t chunk = tile.offset(row, col / perChunk * perChunk);
        ASSERT_EQ(chunk % 16, 0) << describe(tile, row, col);
        ASSERT_EQ(tile.offset(row, col), chunk + col % perChunk * tile.elemBytes) << describe(tile, row, col);
      }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(allLayouts),
                         [](const auto &info) { return "of_" + nameOf(info.param).str(); });

/// Where TMA puts a box without a swizzle: spans one behind the other, rows a span's width apart.
int64_t unswizzled(int64_t spanBytes, int64_t rows, int64_t row, int64_t byte) {
  return byte / spanBytes * (spanBytes * rows) + row * spanBytes + byte % spanBytes;
}

/// The swizzles are permutations of the *address*: bits 4.. are XORed with bits 7.., as many as the width has chunks.
TEST(SharedTile, SwizzlesAreTheAddressBitsOfTheManual) {
  struct Mode {
    SharedLayout layout;
    int64_t width;
    uint64_t bits;
  };
  for (Mode mode : {Mode{SharedLayout::none, 16, 0},
                    {SharedLayout::b32, 32, 1},
                    {SharedLayout::b64, 64, 3},
                    {SharedLayout::b128, 128, 7}})
    forEachTile(mode.layout, [&](const SharedTile &tile, int64_t rows, int64_t cols) {
      // The third stage, placed where the allocation may place it.
      uint64_t base = 3 * tile.alignment();
      ASSERT_EQ(tile.alignment() % std::max<int64_t>(128, 8 * mode.width), 0);
      ASSERT_EQ(tile.spanBytes, mode.width);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          uint64_t address = base + unswizzled(mode.width, rows, row, col * tile.elemBytes);
          uint64_t swizzled = address ^ ((address >> 7 & mode.bits) << 4);
          ASSERT_EQ(base + tile.offset(row, col), swizzled) << describe(tile, row, col);
        }
    });
}

/// ldmatrix reads eight rows of 16 bytes at once: free of conflicts when they meet eight different groups of four
/// banks.
TEST(SharedTile, EightRowsOfAColumnMeetEightBankGroups) {
  for (SharedLayout layout : {SharedLayout::xor_, SharedLayout::b128, SharedLayout::padded})
    for (int64_t rowBytes : {32, 64, 96, 128, 160, 192, 256, 352, 384, 512}) {
      // An odd number of 16-byte chunks between rows is what padding makes of an even one; `padded` promises no more.
      if (layout == SharedLayout::padded && rowBytes / 16 % 2)
        continue;
      SharedTile tile(64, rowBytes / 2, true, 2, layout);
      for (int64_t first = 0; first < 64; first += 8)
        for (int64_t col = 0; col < rowBytes / 2; col += 8) {
          std::set<int64_t> groups;
          for (int64_t row = first; row < first + 8; ++row)
            groups.insert(tile.offset(row, col) / 16 % 8);
          ASSERT_EQ(groups.size(), 8u) << rowBytes << " bytes a row, " << describe(tile, first, col);
        }
    }
}

/// Wavefronts of 128 bytes that a warp's load of a fragment takes: lane l reads `bytes` of row `rowOf(l)` from column
/// `colOf(l)` on, `lanes` of them are served at once.
template <typename Row, typename Col>
unsigned mostInABank(const SharedTile &tile, unsigned lanes, int64_t bytes, Row rowOf, Col colOf) {
  unsigned most = 0;
  for (unsigned first = 0; first < 32; first += lanes) {
    std::map<int64_t, std::set<int64_t>> words; // of a bank
    for (unsigned lane = first; lane < first + lanes; ++lane) {
      int64_t word = tile.offset(rowOf(lane), colOf(lane)) / 4;
      for (int64_t i = 0; i < std::max<int64_t>(1, bytes / 4); ++i)
        words[(word + i) % 32].insert(word + i);
    }
    for (const auto &[bank, different] : words)
      most = std::max(most, unsigned(different.size()));
  }
  return most;
}

/// PTX ISA 9.7.14.5: lane 4g + j of an operand's fragment has line g, and of k the j-th part.
TEST(SharedTile, FragmentsMeetNoBankTwice) {
  for (int64_t extent : {16, 32, 48, 64, 96, 128, 256}) {
    for (int64_t k : {8, 16, 32}) // f64: half a warp at a time
      for (int64_t line : {0, 8, 24})
        for (int64_t depth : {0, 4}) {
          if (extent < line + 8)
            continue;
          SharedTile along(extent, k, true, 8, SharedLayout::xor_), across(extent, k, false, 8, SharedLayout::xor_);
          auto g = [&](unsigned lane) { return line + lane / 4; };
          auto j = [&](unsigned lane) { return depth + lane % 4; };
          EXPECT_EQ(mostInABank(along, 16, 8, g, j), 1u) << extent << " x " << k;
          EXPECT_EQ(mostInABank(across, 16, 8, j, g), 1u) << extent << " x " << k;
        }
    for (int64_t k : {32, 64}) { // tf32 and bytes across k; a register has a byte of each of four rows
      SharedTile words(extent, k, false, 4, SharedLayout::xor_), bytes(4 * extent, 4 * k, false, 1, SharedLayout::xor_);
      auto g = [](unsigned lane) { return lane / 4; };
      EXPECT_EQ(mostInABank(words, 32, 4, [](unsigned lane) { return 4 + lane % 4; }, g), 1u) << extent << " x " << k;
      for (int64_t byte : {0, 3, 17})
        EXPECT_EQ(mostInABank(
                      bytes, 32, 1, [&](unsigned lane) { return byte + 4 * (lane % 4); }, g),
                  1u)
            << extent << " x " << k;
    }
  }
}

/// The header's table, worked by hand.
TEST(SharedTile, WorkedExamples) {
  // 128B: row 3 XORs chunk numbers with 3, so its chunk 1 (elements 8..15) becomes chunk 2.
  SharedTile b128(64, 128, true, 2, SharedLayout::b128);
  EXPECT_EQ(b128.spans, 2);
  EXPECT_EQ(b128.offset(3, 8), 3 * 128 + 2 * 16);
  EXPECT_EQ(b128.offset(3, 64 + 9), 64 * 128 + 3 * 128 + 2 * 16 + 2); // the second span lies behind all 64 rows
  EXPECT_EQ(b128.offset(11, 8), 11 * 128 + 2 * 16);                   // the pattern repeats after 8 rows
  // 64B: two rows share 128 bytes, so it is row / 2 that counts, modulo 4.
  SharedTile b64(64, 32, true, 2, SharedLayout::b64);
  EXPECT_EQ(b64.offset(1, 0), 64);
  EXPECT_EQ(b64.offset(2, 0), 128 + 16);
  EXPECT_EQ(b64.offset(7, 24), 7 * 64 + (3 ^ 3) * 16);
  // 32B: row / 4, modulo 2.
  SharedTile b32(64, 16, true, 2, SharedLayout::b32);
  EXPECT_EQ(b32.offset(3, 8), 3 * 32 + 16);
  EXPECT_EQ(b32.offset(4, 8), 4 * 32);
  // none: columns of 16 bytes.
  SharedTile none(64, 32, true, 2, SharedLayout::none);
  EXPECT_EQ(none.offset(5, 17), 2 * (64 * 16) + 5 * 16 + 2);
  // rows and padded: 48 elements are 96 bytes, 112 with the padding.
  EXPECT_EQ(SharedTile(32, 48, true, 2, SharedLayout::rows).offset(2, 5), 2 * 96 + 10);
  EXPECT_EQ(SharedTile(32, 48, true, 2, SharedLayout::padded).offset(2, 5), 2 * 112 + 10);
  EXPECT_EQ(SharedTile(32, 48, true, 2, SharedLayout::padded).stageBytes(), 32 * 112);
  // xor: rows of 96 bytes are padded to 128, rows of 160 to 256; rows of 64 bytes differ by pairs.
  EXPECT_EQ(SharedTile(32, 48, true, 2, SharedLayout::xor_).pitch, 128);
  EXPECT_EQ(SharedTile(32, 80, true, 2, SharedLayout::xor_).pitch, 256);
  EXPECT_EQ(SharedTile(32, 80, true, 2, SharedLayout::xor_).offset(9, 64), 9 * 256 + (8 ^ 1) * 16);
  EXPECT_EQ(SharedTile(32, 32, true, 2, SharedLayout::xor_).offset(6, 8), 6 * 64 + (1 ^ 3) * 16);
  // mn-major: the rows are k.
  SharedTile mnMajor(128, 16, false, 2, SharedLayout::xor_);
  EXPECT_EQ(mnMajor.rows, 16);
  EXPECT_EQ(mnMajor.offset(2, 8), 2 * 256 + (1 ^ 2) * 16);
  // f64: chunks move in pairs, by row % 4; rows of 64 bytes by row / 2 % 2. Bytes across k: by row / 4.
  EXPECT_EQ(SharedTile(32, 16, true, 8, SharedLayout::xor_).offset(7, 3), 7 * 128 + (1 ^ 6) * 16 + 8);
  EXPECT_EQ(SharedTile(32, 8, true, 8, SharedLayout::xor_).offset(6, 0), 6 * 64 + 2 * 16);
  EXPECT_EQ(SharedTile(128, 64, false, 1, SharedLayout::xor_).offset(45, 16), 45 * 128 + (1 ^ 3) * 16);
}

/// Where mn is contiguous, of all layouts whose span holds a row and whose stage is a whole number of patterns the
/// first, at most the widest.
TEST(SharedTile, FittingLayoutIsTheNarrowestThatHoldsARow) {
  constexpr SharedLayout order[] = {SharedLayout::none, SharedLayout::b32, SharedLayout::b64, SharedLayout::b128};
  constexpr int64_t spans[] = {16, 32, 64, 128};
  for (int widest = 0; widest < 4; ++widest)
    for (int64_t k : {16, 32, 64, 128, 192})
      for (int64_t mn = 8; mn <= 256; mn += 8) {
        int expected = 0;
        while (expected < widest && (spans[expected] < 2 * mn || k * spans[expected] % 1024 != 0))
          ++expected;
        EXPECT_EQ(fittingLayout(order[widest], mn, k, false, 2), order[expected]) << widest << " " << k << " " << mn;
        EXPECT_EQ(fittingLayout(order[widest], mn, k, true, 2), order[widest]);
      }
  for (SharedLayout layout :
       {SharedLayout::rows, SharedLayout::padded, SharedLayout::xor_, SharedLayout::blocked, SharedLayout::eighths})
    EXPECT_EQ(fittingLayout(layout, 8, 64, false, 2), layout);
}

/// Parts follow each other, are whole eights, and differ by one of them at most.
TEST(TileParts, AreEvenAndWhole) {
  for (int64_t ctas : {2, 4, 8})
    for (int64_t rows = 8; rows <= 256; rows += 8) {
      const TileParts parts(rows, ctas);
      int64_t most = 0, bringing = 0;
      for (int64_t cta = 0; cta < ctas; ++cta) {
        const int64_t own = parts.start(cta + 1) - parts.start(cta);
        EXPECT_EQ(own % 8, 0);
        EXPECT_LE(own - rows / ctas, 8);
        EXPECT_LE(rows / ctas - own, 8);
        EXPECT_TRUE(cta == 0 || own <= most); // the first ones are the larger ones
        most = std::max(most, own), bringing += own > 0;
      }
      EXPECT_EQ(parts.start(0), 0);
      EXPECT_EQ(parts.start(ctas), rows);
      EXPECT_EQ(parts.mostRows(), most);
      EXPECT_EQ(parts.bringers(), bringing);
      for (int64_t rest = 1; rest < rows; ++rest) {
        int64_t whole = 0, some = 0;
        for (int64_t cta = 0; cta < ctas; ++cta) {
          const int64_t from = parts.start(cta), to = parts.start(cta + 1);
          whole += to > from && to <= rest, some += to > from && from < rest;
        }
        EXPECT_EQ(parts.wholeOf(rest), whole);
        EXPECT_EQ(parts.bringersOf(rest), some);
      }
    }
  EXPECT_EQ(TileParts(100, 1).mostRows(), 100); // alone: as it is
}

TEST(SharedTile, NamesReadBack) {
  for (SharedLayout layout : allLayouts)
    EXPECT_EQ(parseSharedLayout(nameOf(layout)), layout);
  EXPECT_FALSE(parseSharedLayout("128b"));
  EXPECT_FALSE(parseSharedLayout(""));
}
/// What eight TMA boxes leave, each of every eighth row: 5 rows of 272 bytes are 1360, and a box begins at 128.
TEST(SharedTile, EighthsAreBoxesOfEveryEighthRow) {
  SharedTile tile(40, 136, true, 2, SharedLayout::eighths);
  EXPECT_EQ(tile.groupStride(), 1408);
  EXPECT_EQ(tile.stageBytes(), 8 * 1408);
  for (int64_t row = 0; row < 40; ++row)
    for (int64_t col = 0; col < 136; ++col)
      ASSERT_EQ(tile.offset(row, col), row % 8 * 1408 + row / 8 * 272 + 2 * col);
  EXPECT_EQ(SharedTile(64, 72, true, 2, SharedLayout::eighths).stageBytes(), 64 * 144); // nothing between
}

/// Seed 004, section 2: smem[row / 16 * (2 * 16 * 16) + col / 16 * (16 * 16) + row % 16 * 16 + col % 16] for 128 x 32.
TEST(SharedTile, BlockedIsTheSeedsFormula) {
  SharedTile tile(128, 32, true, 2, SharedLayout::blocked);
  EXPECT_EQ(tile.stageBytes(), 128 * 32 * 2);
  for (int64_t row = 0; row < 128; ++row)
    for (int64_t col = 0; col < 32; ++col)
      ASSERT_EQ(tile.offset(row, col), 2 * (row / 16 * 512 + col / 16 * 256 + row % 16 * 16 + col % 16));
}

/// Seed 004, section 8: two rows of 32 elements are folded into one of 64, whose column is XORed with (row & 3) << 3.
TEST(SharedTile, XorOfSixtyFourByteRowsIsTheSeedsCrosswise) {
  SharedTile tile(128, 32, true, 2, SharedLayout::xor_);
  for (int64_t row = 0; row < 128; ++row)
    for (int64_t col = 0; col < 32; ++col) {
      int64_t folded = row / 2, wide = (row % 2 * 32 + col) ^ ((folded & 3) << 3);
      ASSERT_EQ(tile.offset(row, col), 2 * (folded * 64 + wide)) << describe(tile, row, col);
    }
}

/// Seed 001: rows of 64 halves are skewed by 16 halves.
TEST(SharedTile, PaddingIsAsWideAsAskedFor) {
  SharedTile tile(128, 64, true, 2, SharedLayout::padded, 32);
  EXPECT_EQ(tile.pitch, 160);
  EXPECT_EQ(tile.offset(3, 5), 3 * 160 + 10);
}
} // namespace
