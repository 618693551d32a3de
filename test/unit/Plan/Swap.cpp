// Swapped operands: the kernel computes D^T = B^T A^T, the spec stays the user's.
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;
using Tile3 = std::array<int64_t, 3>;

namespace {
Spec columnProblem() {
  Spec spec = problem(fixed(1000), fixed(2000), dynamic());
  spec.d.layout = given(Order::col);
  return spec;
}
} // namespace

TEST(PlanSwap, ColumnResultSwaps) {
  Plan plan = planOf(columnProblem());
  EXPECT_TRUE(plan.swapped);
  EXPECT_TRUE(plan.m.isConst(2000));
  EXPECT_TRUE(plan.n.isConst(1000));
  EXPECT_EQ(plan.a.buffer, "b");
  EXPECT_EQ(plan.b.buffer, "a");
  // b is k x n by rows; B^T is n x k by columns.
  EXPECT_EQ(plan.a.order, Order::col);
  EXPECT_EQ(plan.d.order, Order::row);
  EXPECT_EQ(plan.c.order, Order::row);
  EXPECT_TRUE(plan.d.ld.isConst(1000));
  EXPECT_TRUE(plan.a.ld.isConst(2000));
  EXPECT_EQ(plan.b.ld.str(), "lda");
}

// By itself; the planner may find that tiles of D^T fit better, but not for whoever gives the tile.
TEST(PlanSwap, RowResultDoesNot) {
  Spec spec = cube(256);
  spec.block = given(Tile3{128, 64, 64});
  Plan plan = planOf(spec);
  EXPECT_FALSE(plan.swapped);
  EXPECT_EQ(plan.a.buffer, "a");
  EXPECT_EQ(plan.a.order, Order::row);
}

TEST(PlanSwap, TilesAreTheUsers) {
  Spec spec = columnProblem();
  spec.block = given(Tile3{256, 128, 64});
  spec.warp = given(Tile3{256, 64, 64});
  spec.cluster = given(Tile3{1, 2, 1});
  spec.rasterOrder = given(RasterOrder::along_n);
  Plan plan = planOf(spec);
  EXPECT_EQ(plan.blockM, 128);
  EXPECT_EQ(plan.blockN, 256);
  EXPECT_EQ(plan.warpM, 64);
  EXPECT_EQ(*plan.spec.warp, (Tile3{256, 64, 64}));
  EXPECT_EQ(plan.clusterM, 2);
  EXPECT_EQ(plan.clusterN, 1);
  EXPECT_EQ(plan.rasterOrder, RasterOrder::along_m);
}

TEST(PlanSwap, DecidedTilesAreTheTransposedProblems) {
  Plan plain = planOf(problem(fixed(512), fixed(8192), fixed(1024)));
  Spec spec = problem(fixed(8192), fixed(512), fixed(1024));
  spec.d.layout = given(Order::col);
  spec.a.layout = given(Order::col), spec.b.layout = given(Order::col);
  Plan swapped = planOf(spec);
  EXPECT_EQ(plain.blockM, swapped.blockM);
  EXPECT_EQ(plain.blockN, swapped.blockN);
  EXPECT_EQ((*plain.spec.block)[0], (*swapped.spec.block)[1]);
}
