// Random specs, most of them wrong somewhere: each is either refused with a reason or gives a plan that keeps all
// rules.
#include "../Pace.h"
#include "Describe.h"
#include "Specs.h"
#include <random>
#include <type_traits>

using namespace gemmc;
using namespace gemmc::test;

namespace {
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  Spec spec() {
    // Half of the specs leave nearly all open, so that legal ones are frequent.
    rate = below(2) ? 8 : 2;
    Spec s = problem(extent(), extent(), extent());
    maybe(s.target, {Target::sm_80, Target::sm_86, Target::sm_89, Target::sm_90a});
    for (OperandSpec *operand : {&s.a, &s.b, &s.c, &s.d}) {
      maybe(operand->layout, {Order::row, Order::col});
      maybe(operand->ld, {Size{}, Size{1}, Size{64}, Size{4097}, Size{8192}, Size{int64_t(1) << 40}});
      maybe(operand->align, {1u, 2u, 4u, 8u, 16u, 128u});
    }
    rate *= 2;
    maybe(s.a.repack, {Repack::off, Repack::on, Repack::inside});
    maybe(s.b.repack, {Repack::off, Repack::on, Repack::inside});
    maybe(s.a.type, {Elem::f16, Elem::bf16, Elem::e4m3, Elem::e5m2, Elem::tf32, Elem::f64, Elem::s8, Elem::u8, Elem::u4,
                     Elem::b1});
    if (below(4))
      s.b.type = s.a.type;
    maybe(s.b.type, {Elem::f16, Elem::bf16});
    maybe(s.matrixShape, {{16, 8, 16}, {16, 8, 8}, {8, 8, 4}, {16, 8, 32}, {8, 8, 128}, {64, 176, 16}});
    maybe(s.fragmentsA, {FragmentLoad::ldmatrix, FragmentLoad::lds, FragmentLoad::descriptor});
    maybe(s.fragmentsB, {FragmentLoad::ldmatrix, FragmentLoad::lds, FragmentLoad::descriptor});
    maybe(s.fragmentBuffers, {1, 2});
    maybe(s.fragmentOrder, {FragmentOrder::snake, FragmentOrder::plain});
    maybe(s.bitOperation, {BitOperation::none, BitOperation::xor_, BitOperation::and_});
    maybe(s.c.type, {Elem::f16, Elem::bf16, Elem::f32});
    maybe(s.d.type, {Elem::f16, Elem::f32});
    maybe(s.accumulator, {Elem::f32, Elem::f16, Elem::f64});
    maybe(s.alpha, {Scale{}, Scale{0.0}, Scale{2.0}});
    maybe(s.beta, {Scale{}, Scale{-0.0}, Scale{1.0}});
    maybe(s.block, {triple(64), triple(16), {128, 256, 64}, {64, 64, 32}, {256, 128, 64}, {128, 176, 64}});
    maybe(s.warp, {triple(64), triple(16), {64, 64, 64}, {32, 32, 32}, {32, 32, 16}, {64, 256, 64}, {128, 176, 64}});
    maybe(s.cluster, {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {4, 4, 1}, {3, 1, 2}});
    maybe(s.instruction, {Instruction::mma, Instruction::wgmma, Instruction::wmma});
    maybe(s.copy, {CopyKind::ld, CopyKind::cp_async, CopyKind::tma});
    maybe(s.stages, {1, 2, 3, 4, 5, 8, 64});
    maybe(s.schedule, {Schedule::pipelined, Schedule::cooperative, Schedule::pingpong});
    maybe(s.swizzle,
          {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128, Swizzle::padded, Swizzle::xor_, Swizzle::blocked});
    maybe(s.padding, {0, 8, 16, 32});
    maybe(s.copyBytes, {1, 2, 4, 8, 16});
    maybe(s.rasterOrder, {RasterOrder::along_m, RasterOrder::along_n, RasterOrder::hilbert});
    maybe(s.scheduler, {Scheduler::fixed, Scheduler::dynamic});
    maybe(s.rasterGroup, {1, 8, 65536});
    maybe(s.persistent, {Persistence::off, Persistence::on});
    maybe(s.store, {StoreKind::direct, StoreKind::staged, StoreKind::tma});
    maybe(s.loadC, {StoreKind::direct, StoreKind::staged, StoreKind::tma});
    maybe(s.swapOperands, {Persistence::off, Persistence::on});
    return s;
  }

private:
  std::mt19937 random;
  unsigned rate = 2;

  unsigned below(unsigned end) { return unsigned(random() % end); }
  Size extent() {
    static constexpr int64_t sizes[] = {0, 1, 7, 8, 64, 65, 127, 128, 1000, 2048, 4096, 4095, int64_t(1) << 40};
    unsigned i = below(std::size(sizes) + 3);
    return i < std::size(sizes) ? Size{sizes[i]} : Size{};
  }
  /// A multiple of `step` three times out of four.
  std::array<int64_t, 3> triple(int64_t step) {
    std::array<int64_t, 3> values;
    for (int64_t &value : values)
      value = below(4) ? step * (1 + below(5)) : 1 + below(4096);
    return values;
  }
  template <typename T> void maybe(Field<T> &field, std::initializer_list<std::type_identity_t<T>> values) {
    if (below(rate) == 0)
      field = given(T(values.begin()[below(values.size())]));
  }
};

/// The rules that every plan keeps, restated without the planner's functions.
void expectSound(const Plan &p) {
  TargetLimits limits = limitsOf(*p.spec.target);
  EXPECT_LE(p.sharedBytes, limits.sharedPerBlock);
  EXPECT_LE(p.threads, limits.maxThreads);
  EXPECT_EQ(p.threads % 32, 0u);
  EXPECT_GT(p.threads, 0u);
  EXPECT_EQ(p.blockM % p.warpM, 0);
  EXPECT_EQ(p.blockN % p.warpN, 0);
  const auto &shape = *p.spec.matrixShape;
  EXPECT_EQ(p.blockK % shape[2], 0);
  EXPECT_LE(p.clusterM * p.clusterN, 8);
  bool wgmma = *p.spec.instruction == Instruction::wgmma;
  EXPECT_EQ(p.warpM % shape[0], 0);
  EXPECT_EQ(p.warpN % shape[1], 0);
  // Operand tiles alone are a lower bound of the shared memory, but where threads load what they multiply.
  const bool fma = *p.spec.instruction == Instruction::fma;
  EXPECT_GE(p.sharedBytes, fma ? 1 : *p.spec.stages * (p.blockM + p.blockN) * p.blockK * bitsOf(p.a.type) / 8);
  // No thread holds more accumulators than it has registers, and the CTA fits in an SM's register file.
  EXPECT_LE(p.warpM * p.warpN * bitsOf(*p.spec.accumulator) / 32 / (wgmma ? 128 : 32), 255 - 32);
  EXPECT_TRUE(*p.spec.fragmentBuffers == 1 || (*p.spec.stages > 2 && p.warpK / shape[2] % 2 == 0));
  if (p.producerRegs) {
    // Who shifts lines keeps its share of the launch.
    const unsigned shifters = p.shiftedStages ? 1 : 0, groups = p.consumerWarpgroups + 1 + shifters;
    EXPECT_EQ(p.threads, 128 * groups);
    const unsigned share = limits.registersPerSM / p.threads / 8 * 8;
    EXPECT_LE(p.producerRegs + shifters * share + p.consumerWarpgroups * p.consumerRegs, groups * share);
  }
  bool tma = *p.spec.copy == CopyKind::tma;
  EXPECT_EQ(tma, wgmma);
  for (const PlanOperand *operand : {&p.a, &p.b}) {
    EXPECT_EQ(tma && !operand->shifted ? operand->align % 16 : 0, 0u);
    EXPECT_TRUE(!operand->shifted || (tma && p.shiftedStages > *p.spec.inFlight && p.threads == 384));
    const Expr &ld = operand->repacked ? operand->packedLd : operand->ld;
    EXPECT_TRUE(!operand->repacked || tma);
    const bool isVector = fma && operand == &p.b; // one line, wherever the next one would start
    EXPECT_EQ(ld.isConst() && !isVector ? ld.constant() * bitsOf(operand->type) / 8 % operand->align : 0, 0);
  }
  EXPECT_TRUE(p.a.align % p.copyBytesA == 0 || p.a.shifted);
  EXPECT_TRUE(p.b.align % p.copyBytesB == 0 || p.b.shifted);
  forEachField(p.spec, [](const auto &field) { EXPECT_TRUE(field.given || !field.reason.empty()); });
}

/// What printing and reading a plan's spec does to it: the same values, all given.
Spec allGiven(Spec spec) {
  forEachField(spec, [](auto &field) { field.given = true, field.reason.clear(); });
  return spec;
}
} // namespace

TEST(PlanRandom, RefusedOrSound) {
  unsigned legal = 0;
  for (unsigned seed = 0; seed < test::cases(20000) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Spec spec = Generator(seed).spec();
    Diags diags;
    std::optional<Plan> plan = makePlan(spec, diags);
    ASSERT_EQ(plan.has_value(), !diags.hasErrors());
    if (!plan)
      continue;
    ++legal;
    expectSound(*plan);
    Diags again;
    std::optional<Plan> second = makePlan(allGiven(plan->spec), again);
    for (const Problem &problem : again.all())
      ADD_FAILURE() << problem.message << "\n" << printSpec(plan->spec, false);
    ASSERT_TRUE(second);
    EXPECT_EQ(describe(*plan), describe(*second));
  }
  EXPECT_GT(legal, test::cases(2000)); // the generator has not drifted into nonsense
}

TEST(PlanRandom, PrintedPlansPlanToThemselves) {
  for (unsigned seed = 0; seed < test::cases(4000) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Diags diags;
    std::optional<Plan> plan = makePlan(Generator(seed).spec(), diags);
    if (!plan)
      continue;
    Diags again;
    std::string text = printSpec(plan->spec, seed % 2);
    std::optional<Spec> read = readSpec(again.addSource("plan", text), {}, again);
    if (!read) // the reader refuses sizes that no memory holds
      continue;
    std::optional<Plan> second = makePlan(*read, again);
    ASSERT_TRUE(second) << text << again.all().front().message;
    EXPECT_EQ(describe(*plan), describe(*second)) << text;
  }
}

TEST(PlanRandom, FallbackOfEveryLegalSpec) {
  for (unsigned seed = 0; seed < test::cases(20000) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Spec spec = Generator(seed).spec();
    Diags diags;
    std::optional<Plan> plan = makePlan(spec, diags);
    if (!plan)
      continue;
    std::optional<Plan> fallback = makeFallbackPlan(spec, diags);
    ASSERT_TRUE(fallback) << diags.all().front().message;
    if (perByte(plan->a.type) == 1) {
      EXPECT_TRUE(fallback->requirements.empty());
    }
    EXPECT_EQ(*fallback->spec.copy, CopyKind::ld);
    // The user's operands; which one the kernel calls A is its own affair.
    for (auto operand : {&Spec::a, &Spec::b, &Spec::c, &Spec::d}) {
      const OperandSpec &was = plan->spec.*operand, &is = fallback->spec.*operand;
      EXPECT_EQ(*was.type, *is.type);
      EXPECT_EQ(*was.layout, *is.layout);
      EXPECT_EQ(*was.ld, *is.ld);
    }
    expectSound(*fallback);
  }
}
