// Products of other widths by wgmma: planned as those of 16 bits that read the same bytes.
#include "Specs.h"
#include <random>

using namespace gemmc;
using namespace gemmc::test;

namespace {
/// What a plan has decided about speed, lengths along k in bytes.
std::string choiceOf(const Plan &plan) {
  const Spec &s = plan.spec;
  std::string text;
  llvm::raw_string_ostream os(text);
  const int64_t bytes = bytesOf(*s.a.type);
  os << nameOf(*s.instruction) << ", block";
  for (const auto *tile : {&s.block, &s.warp})
    os << ' ' << (**tile)[0] << 'x' << (**tile)[1] << 'x' << (**tile)[2] * bytes << " bytes";
  os << ", instruction " << (*s.matrixShape)[0] << 'x' << (*s.matrixShape)[1] << 'x' << (*s.matrixShape)[2] * bytes;
  os << ", cluster";
  for (int64_t ctas : *s.cluster)
    os << ' ' << ctas;
  os << ", " << nameOf(*s.schedule) << ' ' << *s.stages << ' ' << *s.inFlight << ", swizzle " << nameOf(*s.swizzle);
  os << ", split " << nameOf(*s.split) << ' ' << *s.splitSlices << ' ' << nameOf(*s.splitThrough);
  os << ", raster " << nameOf(*s.rasterOrder) << ' ' << *s.rasterGroup << ' ' << nameOf(*s.persistent);
  os << ", store " << nameOf(*s.store) << ' ' << nameOf(*s.loadC) << ", swap " << nameOf(*s.swapOperands);
  os << ", repack " << nameOf(*s.a.repack) << ' ' << nameOf(*s.b.repack);
  return text;
}

/// Random products of 16-bit inputs with k contiguous, of all kinds that the planner knows: large, few rows or columns,
/// of known sizes or not.
class Products {
public:
  explicit Products(unsigned seed) : random(seed) {}

  Spec next() {
    Spec spec = problem(fixed(extent()), fixed(extent()), fixed(8 * (1 + below(below(2) ? 64 : 1024))));
    spec.a.layout = given(Order::row), spec.b.layout = given(Order::col);
    spec.d.type = given(below(2) ? Elem::f32 : Elem::bf16);
    if (below(4) == 0)
      spec.d.layout = given(Order::col);
    if (below(5) == 0)
      spec.beta = given(Scale{2.0});
    if (below(4) == 0)
      spec.typicalM = given(*(*spec.m).fixed), spec.m = given(dynamic());
    return spec;
  }

private:
  std::mt19937 random;
  unsigned below(unsigned end) { return unsigned(random() % end); }
  int64_t extent() {
    constexpr unsigned ends[] = {16, 128, 1024, 8192};
    const int64_t most = ends[below(4)], size = 1 + below(unsigned(most));
    return below(2) ? std::max<int64_t>(2, size) : (size + 7) / 8 * 8; // one row or column is for multiply-adds
  }
};

Spec withType(Spec spec, Elem type) {
  spec.a.type = given(type), spec.b.type = given(type);
  spec.k = given(fixed(*(*spec.k).fixed * 2 / bytesOf(type)));
  return spec;
}
} // namespace

TEST(PlanSixteenBits, SameBytesSamePlan) {
  Products products(1);
  std::set<std::string> kinds;
  for (int i = 0; i < 200; ++i) {
    const Spec spec = products.next();
    const Plan sixteen = planOf(withType(spec, Elem::bf16));
    kinds.insert(choiceOf(sixteen));
    for (Elem type : {Elem::e4m3, Elem::e5m2, Elem::tf32}) {
      const Plan plan = planOf(withType(spec, type));
      EXPECT_EQ(choiceOf(plan), choiceOf(sixteen))
          << nameOf(type).str() << " " << printSpec(withType(spec, type), false);
      EXPECT_EQ(plan.swapped, sixteen.swapped);
      EXPECT_EQ(plan.sharedBytes, sixteen.sharedBytes);
      EXPECT_EQ(plan.threads, sixteen.threads);
    }
  }
  EXPECT_GT(kinds.size(), 50u) << "the products are all alike";
}

// Of integers wgmma has 8, 16, 24, 32, then multiples of 16 columns (PTX ISA 9.7.15.2); all else is as with other
// bytes.
TEST(PlanSixteenBits, IntegersHaveTheirColumns) {
  Products products(2);
  unsigned alike = 0;
  for (int i = 0; i < 200; ++i) {
    Spec spec = products.next();
    spec.d.type = given(Elem::f32);
    const Plan sixteen = planOf(withType(spec, Elem::bf16));
    spec.d.type = {};
    for (Elem type : {Elem::s8, Elem::u8}) {
      const Plan plan = planOf(withType(spec, type));
      EXPECT_EQ(*plan.spec.instruction, Instruction::wgmma);
      EXPECT_EQ(*plan.spec.d.type, Elem::s32);
      const int64_t columns = (*plan.spec.matrixShape)[1];
      EXPECT_TRUE(columns % 16 == 0 || columns == 8 || columns == 24) << printSpec(plan.spec, false);
      alike += choiceOf(plan) == choiceOf(sixteen);
    }
  }
  EXPECT_GT(alike, 200u);
}

// What a copy has turned, so that k is contiguous, is planned as if it had been so from the start.
TEST(PlanSixteenBits, TurnedOperands) {
  for (Elem type : {Elem::e4m3, Elem::s8}) {
    SCOPED_TRACE(nameOf(type).str());
    Spec spec = withType(problem(fixed(4096), fixed(4096), fixed(4096)), type);
    spec.b.layout = given(Order::col);
    const Plan lies = planOf(spec);
    EXPECT_FALSE(lies.a.turned || lies.b.turned);
    spec.a.layout = given(Order::col), spec.b.layout = given(Order::row);
    const Plan turned = planOf(spec);
    EXPECT_TRUE(turned.a.turned && turned.b.turned && turned.a.repacked && turned.b.repacked);
    EXPECT_EQ(turned.a.order, lies.a.order);
    EXPECT_EQ(turned.b.order, lies.b.order);
    EXPECT_EQ(*turned.spec.block, *lies.spec.block);
    EXPECT_EQ(*turned.spec.schedule, *lies.spec.schedule);
  }
}

// Of 32 bits lanes turn one operand where that is estimated to be faster: wgmma takes it as its A, from registers, and
// a cluster shares nothing that they read. What the planner decides is what it does where a spec says so.
TEST(PlanSixteenBits, TurnedInside) {
  Products products(3);
  unsigned turnedA = 0, turnedB = 0, copied = 0;
  for (int i = 0; i < 150; ++i) {
    Spec spec = withType(products.next(), Elem::tf32);
    if (i % 3 != 0)
      spec.b.layout = given(Order::row);
    if (i % 3 != 1)
      spec.a.layout = given(Order::col);
    const Plan plan = planOf(spec);
    SCOPED_TRACE(printSpec(plan.spec, false));
    if (*plan.spec.instruction != Instruction::wgmma) // a small product, which mma reads as it lies
      continue;
    const bool a = *plan.spec.a.repack == Repack::inside, b = *plan.spec.b.repack == Repack::inside;
    turnedA += a, turnedB += b, copied += !a && !b;
    EXPECT_FALSE(a && b);
    EXPECT_EQ(plan.loadA, a || b ? FragmentLoad::lds : FragmentLoad::descriptor);
    EXPECT_EQ(plan.loadB, FragmentLoad::descriptor);
    if (!a && !b)
      continue;
    EXPECT_EQ(plan.swapped, b);
    EXPECT_EQ(plan.a.order, Order::col); // m contiguous
    EXPECT_FALSE(plan.a.turned || plan.a.repacked || plan.a.shifted);
    EXPECT_EQ(plan.clusterN, 1);
    EXPECT_EQ(plan.warpN, plan.blockN); // nobody loads the same rows of A
    (a ? spec.a : spec.b).repack = given(Repack::inside);
    EXPECT_EQ(choiceOf(planOf(spec)), choiceOf(plan));
  }
  EXPECT_GT(turnedA, 20u);
  EXPECT_GT(turnedB, 20u);
  EXPECT_GT(copied, 5u); // rows that TMA does not read, for one
}

// The registers that hold A are not there for sums: 64 rows of 256 bytes of k are 32 of them.
TEST(PlanSixteenBits, HeldRegisters) {
  Spec spec = withType(problem(fixed(4096), fixed(4096), fixed(2048)), Elem::tf32);
  spec.b.layout = given(Order::row);
  spec.b.repack = given(Repack::inside);
  spec.block = given(Tile3{192, 128, 32}); // two warpgroups of 64 rows, 96 sums a thread
  EXPECT_EQ(*planOf(spec).spec.warp, (Tile3{192, 64, 32}));
  spec.warp = given(Tile3{192, 128, 32}); // 192 sums of one, of which 32 registers of A leave 168
  EXPECT_EQ(problemsOf(spec), (std::vector<std::string>{"plan_registers"}));
  // Beside parts of sums that are scaled there is less.
  spec.block = given(Tile3{128, 256, 32}), spec.warp = {};
  EXPECT_EQ(problemsOf(spec), (std::vector<std::string>{}));
  spec.beta = given(Scale{0.5}), spec.split = given(SplitMode::split_k);
  EXPECT_EQ(problemsOf(spec), (std::vector<std::string>{"plan_registers"}));
}

// Rows that start inside sectors of the L2 have CTAs of a stream share tiles, but not those that lanes read: a cut that
// would is none to look at.
TEST(PlanSixteenBits, StreamsShareWhatLanesDoNotRead) {
  Spec spec = withType(problem(fixed(3248), fixed(188), fixed(18632)), Elem::tf32);
  spec.a.layout = given(Order::col), spec.b.layout = given(Order::row);
  spec.b.repack = given(Repack::inside);
  EXPECT_EQ(*planOf(spec).spec.cluster, (Tile3{1, 1, 1}));
}

// What starts anywhere is copied, and the product of the copies is planned as ever.
TEST(PlanSixteenBits, OperandsThatStartAtAnyByte) {
  Spec spec = problem(fixed(4096), fixed(4096), fixed(4095));
  spec.a.type = given(Elem::e4m3);
  spec.b.layout = given(Order::col);
  const Plan aligned = planOf(spec);
  for (unsigned align : {1u, 2u, 4u}) {
    spec.a.align = spec.b.align = given(align);
    EXPECT_EQ(choiceOf(planOf(spec)), choiceOf(aligned)) << align;
  }
}

TEST(PlanSixteenBits, GivenTilesAndOddLines) {
  Spec spec = problem(fixed(512), fixed(512), fixed(2048));
  spec.a.type = given(Elem::e4m3);
  spec.b.layout = given(Order::col);
  spec.block = given(Tile3{128, 128, 256});
  EXPECT_EQ(*planOf(spec).spec.block, (Tile3{128, 128, 256}));
  spec.block = given(Tile3{128, 128, 80});
  EXPECT_EQ(problemsOf(spec), (std::vector<std::string>{"plan_block_multiple"}));
  spec.block = {};
  spec.k = given(fixed(2049)); // no line starts at a multiple of 16 bytes: copies
  const Plan odd = planOf(spec);
  EXPECT_TRUE(odd.a.repacked && odd.b.repacked);
  EXPECT_EQ(*odd.spec.instruction, Instruction::wgmma);
  EXPECT_GE(odd.a.packedLd.constant(), 2049);
  EXPECT_EQ(odd.a.packedLd.constant() % 16, 0);
}
