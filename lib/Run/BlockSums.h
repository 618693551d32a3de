/// For each row of D the sums of blocks of 32 columns with random signs, of the reference: what blocks of a result are
/// compared with. One wrong tile anywhere moves some of them.
#pragma once
#include "gemmc/Run/Reference.h"

namespace gemmc::run {

class BlockSums {
public:
  /// Takes m x n / 32 x k multiply-adds, once for all results that are compared.
  explicit BlockSums(const Reference &reference);

  /// Whether the sums of `d`'s elements differ by no more than their bounds do in sum; else `row` is the first where
  /// they do.
  bool hold(const HostMatrix &d, int64_t &row) const;

private:
  static constexpr int64_t width = 32;
  void product();
  void addC();

  const Reference &reference;
  int64_t blocks;
  std::vector<double> signs;           ///< One a column.
  std::vector<double> wanted, allowed; ///< Row by row; what the rounding to D's type may add is not in `allowed`.
};

} // namespace gemmc::run
