// The lazy ranking against the plain one: every shape of every outline estimated, and all of them sorted.
#include "../../../lib/Plan/Ranking.h"
#include "Specs.h"
#include "gemmc/Plan/Key.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace gemmc;
using namespace gemmc::test;
using namespace gemmc::plan;

namespace {
/// DrawnProducts of all sizes, row starts, layouts and types, with and without C.
class DrawnProducts {
public:
  Spec next() {
    const int64_t step = pick({1, 2, 4, 8, 8, 64});
    const Elem input = pick({Elem::bf16, Elem::bf16, Elem::f16, Elem::e4m3, Elem::s8, Elem::tf32, Elem::f64});
    Spec spec = problem(size(9000, step), size(9000, step), size(12000, step));
    spec.target = given(Target::sm_90a);
    spec.a.type = given(input), spec.b.type = given(input);
    spec.a.layout = given(pick({Order::row, Order::col})), spec.b.layout = given(pick({Order::row, Order::col}));
    spec.d.layout = given(pick({Order::row, Order::row, Order::col}));
    if (bitsOf(input) == 16)
      spec.d.type = given(pick({input, input, Elem::f32}));
    spec.beta = given(Scale{pick({0.0, 0.0, 1.0})});
    if (pick({0, 0, 0, 0, 1}))
      spec.batch = given(fixed(pick({2, 7, 40})));
    if (pick({0, 0, 0, 0, 1}))
      spec.inFlight = given<int64_t>(pick({2, 3}));
    if (pick({0, 0, 0, 0, 1}))
      spec.stages = given<int64_t>(2); // of which fewer are in flight: with two of them no shape fits
    return spec;
  }

private:
  Size size(double most, int64_t step) {
    std::uniform_real_distribution<double> exponent(std::log(8.0), std::log(most));
    return fixed(std::max<int64_t>(1, int64_t(std::exp(exponent(source))) / step) * step);
  }
  template <typename T> T pick(std::initializer_list<T> values) { return values.begin()[source() % values.size()]; }

  std::mt19937 source{20261129};
};

/// As the planner has it when it ranks; nullopt where no kernel is planned so.
std::optional<Draft> rankedDraft(const Spec &spec, Way way, Diags &scratch) {
  Draft draft = draftOf(spec, scratch, way);
  decideProblem(draft);
  if (!decideFamily(draft))
    return std::nullopt;
  decideStream(draft);
  decideSplit(draft);
  decideEpilogue(draft);
  return draft;
}

struct Looked {
  size_t drafts = 0, outlines = 0, bounded = 0, shapes = 0;
};

void expectSameOrder(const Draft &draft, Looked &counts) {
  const Candidates candidates(draft);
  const Premises on(draft);
  std::vector<std::pair<double, size_t>> plain;
  std::vector<Shape> shapes = candidates.shapes();
  for (const auto &[place, shape] : llvm::enumerate(shapes))
    plain.push_back({!sane(shape)                  ? std::numeric_limits<double>::infinity()
                     : draft.wgmma() || place == 0 ? estimate(on, shape).cost
                                                   : estimate(on, shape).cost / 0.98,
                     place});
  llvm::sort(plain);
  for (const Outline &outline : candidates.outlines()) {
    const double bound = leastCost(on, outline);
    const Candidates::Shapes its = candidates.shapesOf(outline);
    for (const auto *each : {&its.fit, &its.unfit})
      for (const Shape &shape : *each)
        if (sane(shape)) {
          EXPECT_LE(bound, estimate(on, shape).cost)
              << shape.m << "x" << shape.n << " of " << shape.warpM << "x" << shape.warpN << ", cluster "
              << shape.clusterM << "x" << shape.clusterN << "x" << shape.clusterK;
        }
    counts.bounded += bound > 0;
  }
  Ranking ranking(draft);
  for (auto [key, place] : plain) {
    const Ranked *next = ranking.next();
    ASSERT_NE(next, nullptr);
    const Shape &x = next->shape, &y = shapes[place];
    ASSERT_EQ(std::tuple(x.m, x.n, x.k, x.warpM, x.warpN, x.warpK, x.clusterM, x.clusterN, x.clusterK, x.stages),
              std::tuple(y.m, y.n, y.k, y.warpM, y.warpN, y.warpK, y.clusterM, y.clusterN, y.clusterK, y.stages));
  }
  EXPECT_EQ(ranking.next(), nullptr);
  ++counts.drafts, counts.outlines += candidates.outlines().size(), counts.shapes += shapes.size();
}
} // namespace

TEST(Ranking, IsThatOfAllShapes) {
  DrawnProducts products;
  Looked counts;
  for (int i = 0; i < 600; ++i) {
    const Spec spec = products.next();
    SCOPED_TRACE(problemKey(spec)->text());
    Diags scratch;
    std::optional<Draft> asItLies = rankedDraft(spec, {}, scratch);
    if (!asItLies)
      continue;
    expectSameOrder(*asItLies, counts);
    for (const Way &way : otherWays(*asItLies))
      if (std::optional<Draft> draft = rankedDraft(spec, way, scratch))
        expectSameOrder(*draft, counts);
    if (HasFailure())
      return;
  }
  std::printf("%zu drafts, %zu outlines (%zu with a bound), %zu shapes\n", counts.drafts, counts.outlines,
              counts.bounded, counts.shapes);
  EXPECT_GT(counts.bounded, counts.outlines / 2);
}

TEST(Ranking, StopsAtWhatIsAskedFor) {
  Diags scratch;
  Spec spec = cube(4096);
  spec.target = given(Target::sm_90a);
  std::optional<Draft> draft = rankedDraft(spec, {}, scratch);
  ASSERT_TRUE(draft);
  Ranking all(*draft);
  const double first = all.next()->estimate.cost;
  EXPECT_EQ(Ranking(*draft).next(first), nullptr);
  EXPECT_NE(Ranking(*draft).next(first * 1.001), nullptr);
}
