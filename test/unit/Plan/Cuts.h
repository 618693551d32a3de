/// How the planner cuts products, as the tests of cuts ask for it.
#pragma once
#include "Specs.h"

namespace gemmc::test {

/// A product with k contiguous in both operands, and what a failure calls it; a vector as tensor cores multiply it.
inline std::pair<Spec, std::string> kContiguous(int64_t m, int64_t n, int64_t k) {
  Spec spec = problem(fixed(m), fixed(n), fixed(k));
  spec.b.layout = given(Order::col);
  if (m == 1 || n == 1)
    spec.instruction = given(Instruction::wgmma);
  return {spec, std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k)};
}

/// How the planner cuts a product.
struct Cut {
  int64_t m, n, k;
  Tile3 block, cluster;
  Order a = Order::row, b = Order::col; ///< As they are: k is contiguous in both.
};
inline Plan expectCut(const Cut &cut) {
  auto [spec, name] = kContiguous(cut.m, cut.n, cut.k);
  spec.a.layout = given(cut.a), spec.b.layout = given(cut.b);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.block, cut.block) << name;
  EXPECT_EQ(*plan.spec.cluster, cut.cluster) << name;
  return plan;
}
inline void expectCuts(llvm::ArrayRef<Cut> cuts) {
  for (const Cut &cut : cuts)
    expectCut(cut);
}

} // namespace gemmc::test
