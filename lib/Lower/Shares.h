// The registers of a tile's sums, cut into shares of a warpgroup's columns: CTAs that have parts of the tile each own
// one, and go on with it as with a narrower tile.
#pragma once
#include "Lowering.h"

namespace gemmc {

struct SumShares {
  SumShares(const AccumulatorView &acc, int64_t owners) : columns(shareColumns(acc.warpN, owners)), acc(acc) {}

  const ColumnShares columns;
  int64_t owners() const { return columns.owners; }
  int64_t last() const { return columns.owners - 1; }
  int64_t columnsOf(int64_t owner) const { return owner == last() ? columns.last : columns.each; }

  /// Blocks of rows, and a thread's registers of all of them.
  int64_t blocks() const { return int64_t(acc.regs.size()); }
  int64_t registers() const { return blocks() * int64_t(acc.regs[0].size()); }
  int64_t ofBlock(int64_t ofColumns) const { return int64_t(acc.regs[0].size()) * ofColumns / acc.warpN; }
  int64_t registersOf(int64_t ofColumns) const { return blocks() * ofBlock(ofColumns); }

  /// Registers that go together into one vector, at most `most` (4 or 2).
  int64_t width(int64_t most) const {
    const bool even =
        owners() == 1 ? registers() % 4 == 0 : ofBlock(columns.each) % 4 == 0 && ofBlock(columns.last) % 4 == 0;
    return even ? most : 2;
  }

  std::vector<Val> all() const {
    std::vector<Val> out;
    for (const auto &block : acc.regs)
      out.insert(out.end(), block.begin(), block.end());
    return out;
  }
  std::vector<Val> of(int64_t owner) const { return from(owner * columns.each, columnsOf(owner)); }
  /// Those of the first columns, and of all others.
  std::vector<Val> first(int64_t ofColumns) const { return from(0, ofColumns); }
  std::vector<Val> behind(int64_t ofColumns) const { return from(ofColumns, acc.warpN - ofColumns); }

  /// The accumulator of so many columns, whose sums are in `regs`.
  AccumulatorView with(const std::vector<Val> &regs, int64_t ofColumns) const {
    AccumulatorView out = acc;
    const int64_t each = ofBlock(ofColumns);
    out.warpN = ofColumns;
    for (int64_t i = 0; i < blocks(); ++i)
      out.regs[i].assign(regs.begin() + i * each, regs.begin() + (i + 1) * each);
    return out;
  }

private:
  std::vector<Val> from(int64_t column, int64_t ofColumns) const {
    std::vector<Val> out;
    for (const auto &block : acc.regs) {
      auto first = block.begin() + ofBlock(column);
      out.insert(out.end(), first, first + ofBlock(ofColumns));
    }
    return out;
  }

  const AccumulatorView &acc;
};

} // namespace gemmc
