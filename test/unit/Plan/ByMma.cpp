// Small products that mma reads as they lie, and what copies in front of wgmma take (H200, 2026-11-30,
// `utils/race-builds run` and `utils/race-kernels run`, medians of 5 and 7 rounds).
#include "Specs.h"
#include "gemmc/Plan/Analysis.h"
#include "gemmc/Plan/Fallback.h"
#include "llvm/ADT/StringRef.h"
#include <cmath>

using namespace gemmc;
using namespace gemmc::test;

namespace {
struct Product {
  int64_t m, n, k;
  const char *layouts; ///< Of A and B: `rc` is row, col.
  Elem type = Elem::f16;
  int64_t batch = 1;
};

Spec specOf(const Product &product) {
  return problem({product.m, product.n, product.k}, product.layouts, product.type, product.batch);
}

std::string textOf(const Product &product) {
  return std::to_string(product.batch) + " of " + std::to_string(product.m) + "x" + std::to_string(product.n) + "x" +
         std::to_string(product.k);
}

TEST(ByMma, IsTakenWhereItWasFaster) {
  struct Row {
    Product product;
    double byWgmma, byMma; ///< Microseconds.
  };
  const Row rows[] = {
      {{22, 2510, 6034, "rc", Elem::tf32}, 46.8, 22.6},
      {{1270, 2, 106, "cc", Elem::s8}, 4.7, 1.4},
      {{92, 2642, 278, "cc", Elem::bf16}, 4.5, 3.6},
      {{4, 2276, 420, "cc"}, 4.1, 2.6},
      {{692, 158, 104, "cr", Elem::bf16}, 3.6, 2.4},
      {{350, 14, 22, "rr", Elem::f16, 2991}, 228.8, 25.0},
      {{22, 38, 32, "cr", Elem::bf16, 2006}, 25.4, 5.4},
      {{26, 60, 36, "cr", Elem::s8, 2352}, 32.7, 10.9},
      {{25, 14, 41, "rr", Elem::tf32, 2700}, 24.6, 8.8},
      {{2, 332, 37, "rc", Elem::f16, 1003}, 69.0, 15.1},
      {{71, 1071, 1542, "rc"}, 5.0, 7.9},
      {{218, 159, 5215, "rc"}, 6.8, 14.3},
      {{176, 400, 1570, "rc"}, 5.0, 6.4},
      {{179, 473, 3849, "cc", Elem::tf32}, 14.1, 17.2},
      {{1020, 72, 1320, "cc", Elem::tf32}, 4.5, 6.8},
      {{8, 576, 1664, "rr", Elem::tf32}, 3.3, 4.7},
      {{88, 72, 296, "rr", Elem::tf32}, 2.4, 3.0},
      {{464, 2, 508, "cr", Elem::tf32}, 3.5, 4.4},
      {{50, 2047, 255, "rc", Elem::bf16, 24}, 18.9, 23.9},
      {{36, 95718, 142, "rr"}, 14.5, 18.1},
      {{40, 268, 72, "cr", Elem::s8, 267}, 12.5, 14.3},
      {{64, 4096, 4096, "rc"}, 6.3, 30.0},
      {{260, 72, 76, "rr", Elem::bf16, 478}, 34.5, 22.5}, // up to 80 wide
      {{66, 68, 342, "cr", Elem::bf16, 708}, 118.8, 37.8},
      {{154, 77, 68, "cc", Elem::bf16, 84}, 6.4, 8.8},
      {{124, 100, 48, "rr", Elem::bf16, 497}, 11.9, 15.2},
      {{120, 120, 184, "cr", Elem::tf32, 391}, 43.9, 28.2}, // words that both have to be turned
      {{400, 148, 272, "cr", Elem::tf32, 554}, 263.7, 236.2},
      {{96, 256, 416, "cr", Elem::tf32, 124}, 33.0, 24.6},
      {{100, 556, 280, "cr", Elem::tf32, 53}, 20.2, 25.1},
      {{3764, 1132, 1088, "cr", Elem::tf32}, 34.7, 92.5},
      {{3540, 3916, 12, "cr", Elem::tf32}, 22.3, 19.2}, // and lines of D that tiles cut
      {{2852, 15292, 16, "cr", Elem::tf32}, 68.0, 54.3},
  };
  for (const auto &[product, byWgmma, byMma] : rows) {
    const Plan plan = planOf(specOf(product));
    EXPECT_EQ(*plan.spec.instruction == Instruction::mma, byMma < byWgmma) << textOf(product);
    EXPECT_EQ(plan.asTheyLie, byMma < byWgmma) << textOf(product);
    if (!plan.asTheyLie)
      continue;
    EXPECT_FALSE(plan.a.repacked || plan.b.repacked) << textOf(product);
    EXPECT_TRUE(
        llvm::StringRef(plan.spec.instruction.reason).starts_with("mma reads a and b as they lie, an estimated"))
        << plan.spec.instruction.reason;
  }
}

/// Who says what multiplies, how operands are read or how D is cut, has it.
TEST(ByMma, LeavesWhatIsGiven) {
  const Product product{4, 2276, 420, "cc"};
  EXPECT_TRUE(planOf(specOf(product)).asTheyLie);
  Spec instruction = specOf(product), copy = specOf(product), repack = specOf(product), block = specOf(product);
  instruction.instruction = given(Instruction::wgmma);
  copy.copy = given(CopyKind::tma);
  repack.a.repack = given(Repack::on);
  block.block = given(Tile3{64, 16, 64});
  for (const Spec &spec : {instruction, copy, repack, block})
    EXPECT_EQ(*planOf(spec).spec.instruction, Instruction::wgmma);
}

/// Of pointers that start anywhere a product has no copy where mma is faster without: one kernel does for all.
TEST(ByMma, IsWhatLaunchesFallBackTo) {
  const Spec spec = specOf({16, 400, 160, "rc"});
  EXPECT_FALSE(planOf(spec).asTheyLie);
  const std::optional<Plan> fallback = makeRepackPlan(spec);
  ASSERT_TRUE(fallback);
  EXPECT_TRUE(fallback->asTheyLie);
  EXPECT_TRUE(fallback->requirements.empty());
  Spec launched = spec; // of sizes that a launch knows, planned for these
  launched.m = given(dynamic()), launched.typicalM = given<int64_t>(16);
  const std::optional<Plan> other = makeRepackPlan(launched);
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->asTheyLie);
}

TEST(ByMma, AThirdOfItsAlternativesAreOfWgmma) {
  Diags diags;
  const std::vector<Alternative> all = alternatives(specOf({4, 2276, 420, "cc"}), 12, diags);
  auto byMma = [](const Alternative &each) { return llvm::StringRef(each.choice).starts_with("instruction=mma "); };
  ASSERT_EQ(all.size(), 12u);
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + 8, byMma));
  EXPECT_TRUE(std::none_of(all.begin() + 8, all.end(), byMma));
  const double times = all[8].cost / all[0].cost;
  EXPECT_TRUE(times > 1.1 && times < 2) << times;
}

TEST(ByMma, CopiesTakeWhatTheyTook) {
  struct Row {
    Product product;
    double took; ///< Copies and product, microseconds.
  };
  constexpr double off = 0.05;
  const Row rows[] = {
      {{2032, 8, 120, "rc", Elem::s8}, 2.77},       // a launch
      {{25, 29, 97, "rr", Elem::f16, 560}, 14.55},  // a warp for each line
      {{28, 84, 300, "rc", Elem::bf16, 99}, 6.64},  // ... of lines that start at multiples of 8
      {{995, 1125, 5345, "rr", Elem::tf32}, 58.65}, // bytes
      {{5, 2746, 502, "cc", Elem::s8}, 5.08},       // turned bytes
      {{10, 1108, 382, "cc", Elem::tf32}, 5.31},    // turned words
      {{1331, 336, 619, "cc", Elem::bf16}, 5.47},   // lines that start at any element
  };
  for (const auto &[product, took] : rows) {
    Spec spec = specOf(product);
    spec.instruction = given(Instruction::wgmma);
    if (product.batch > 1) // else lines of the products are shifted
      spec.a.repack = spec.b.repack = given(Repack::on);
    const Analysis analysis = analyse(planOf(spec));
    const double expected = (analysis.seconds + analysis.copies) * 1e6;
    EXPECT_NEAR(std::log(expected / took), 0, off) << textOf(product) << ": " << expected << " for " << took;
  }
}
} // namespace
