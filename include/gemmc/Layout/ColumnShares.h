/// How the CTAs of a cluster that have multiplied slices of k share out the columns of a tile's sums.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gemmc {

/// Each of `owners` CTAs adds up and stores `each` columns of a warpgroup's tile, the last one `last`, which may be
/// fewer.
struct ColumnShares {
  int64_t owners, each, last;
};

/// Where parts meet in the workspace: as many owners as the counter of a tile has bits for (lib/Lower/Gather.cpp); the
/// range of `split.owners` ends there, too.
constexpr int64_t mostOwners = 16;

/// Of `columns` columns, a multiple of 8, among at most `ctas` CTAs: in eights, as wgmma's accumulators hold them (PTX
/// ISA 9.7.15.5.1.1), and so that the largest share is as small as can be. The same for `ctas` as for the owners there
/// are.
constexpr ColumnShares shareColumns(int64_t columns, int64_t ctas) {
  constexpr int64_t unit = 8;
  const int64_t groups = std::max<int64_t>(1, columns / unit), each = (groups + ctas - 1) / ctas;
  const int64_t owners = (groups + each - 1) / each;
  return {owners, each * unit, (groups - (owners - 1) * each) * unit};
}

} // namespace gemmc
