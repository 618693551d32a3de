// How the planner cuts products for an H200: streams, slices of k, shared tiles; what races have said.
#include "Describe.h"
#include "Specs.h"

using namespace gemmc;
using namespace gemmc::test;

/// A product with k contiguous in both operands, and what a failure calls it.
static std::pair<Spec, std::string> kContiguous(int64_t m, int64_t n, int64_t k) {
  Spec spec = problem(fixed(m), fixed(n), fixed(k));
  spec.b.layout = given(Order::col);
  return {spec, std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k)};
}

/// Each is what won on an H200, or within 4% of it, but for one (docs/hopper.md, *What brought how much*).
TEST(PlanCuts, SkinnyProducts) {
  struct Row {
    int64_t m, n, k;
    Tile3 block;
    int64_t slices;
    Persistence swapped;
    Trigger trigger;
    int64_t inFlight;
  };
  constexpr auto on = Persistence::on, off = Persistence::off;
  constexpr auto start = Trigger::start, sums = Trigger::sums, end = Trigger::end;
  const Row rows[] = {
      {1, 4096, 4096, {8, 64, 128}, 2, on, start, 1},
      {16, 4096, 4096, {16, 64, 128}, 2, on, start, 1},
      {64, 4096, 4096, {64, 32, 128}, 1, off, start, 1},
      {64, 2112, 7168, {64, 32, 128}, 2, off, start, 1},
      {48, 5120, 5120, {48, 64, 128}, 1, on, sums, 2}, // 80 CTAs leave SMs idle
      {26, 9216, 5120, {32, 128, 64}, 1, on, sums, 3},
      {96, 4096, 4096, {48, 64, 128}, 1, on, sums, 1},  // no rows outside, and two CTAs read the same rows of B
      {192, 5120, 5120, {64, 120, 64}, 1, off, end, 1}, // three of them
      {128, 8192, 8192, {64, 128, 64}, 1, off, end, 1},
      {16, 14336, 4096, {16, 128, 64}, 1, on, sums, 3},
      // Parts of a ragged side are equal, and columns; an eighth of the rows may be empty.
      {144, 4096, 4096, {72, 64, 64}, 1, on, end, 1},
      {112, 4096, 11008, {112, 64, 64}, 2, on, end, 1}, // long slices: their CTAs begin together
      // 40 tiles of 64 in three slices were more clusters than there is room for: 24.9 us, this 17.4 (64x40
      // whole 16.2).
      {128, 2560, 9216, {128, 96, 64}, 4, off, start, 1},
      {128, 1792, 7168, {128, 64, 64}, 4, off, start, 1},
      {200, 2048, 8192, {56, 64, 64}, 1, on, sums, 1},   // 128 CTAs, four of which read the same rows
      {104, 2048, 2048, {64, 32, 128}, 1, off, sums, 1}, // the short side wastes rows, and fills all SMs: 5.1 -> 4.7 us
      {256, 1024, 1024, {64, 32, 128}, 1, off, start, 1}, // 3 us: the launch counts
  };
  for (const Row &row : rows) {
    auto [spec, name] = kContiguous(row.m, row.n, row.k);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.block, row.block) << name;
    EXPECT_EQ(*plan.spec.splitSlices, row.slices) << name;
    EXPECT_EQ(*plan.spec.swapOperands, row.swapped) << name;
    EXPECT_EQ(*plan.spec.dependent, on) << name;
    EXPECT_EQ(*plan.spec.trigger, row.trigger) << name;
    EXPECT_EQ(*plan.spec.inFlight, row.inFlight) << name;
    EXPECT_EQ(*plan.spec.rasterOrder, RasterOrder::along_m) << name; // neighbours read the same rows of B
  }
}

namespace {
/// How the planner cuts a product.
struct Cut {
  int64_t m, n, k;
  Tile3 block, cluster;
  Order a = Order::row, b = Order::col; ///< As they are: k is contiguous in both.
};
Plan expectCut(const Cut &cut) {
  auto [spec, name] = kContiguous(cut.m, cut.n, cut.k);
  spec.a.layout = given(cut.a), spec.b.layout = given(cut.b);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.block, cut.block) << name;
  EXPECT_EQ(*plan.spec.cluster, cut.cluster) << name;
  return plan;
}
void expectCuts(llvm::ArrayRef<Cut> cuts) {
  for (const Cut &cut : cuts)
    expectCut(cut);
}
} // namespace

/// Where m or n is contiguous cooperative warpgroups cost 3%, three of them 2% more (docs/hopper-shapes.md, *The
/// model*). Each has another cut without one of both.
TEST(PlanCuts, TurnsAndThreeWarpgroupsWhereKIsNotContiguous) {
  const Plan turns = expectCut({5120, 5120, 2560, {128, 160, 64}, {1, 1, 1}, Order::col, Order::col});
  EXPECT_EQ(*turns.spec.schedule, Schedule::pingpong);
  const Plan three = expectCut({3880, 2224, 4304, {184, 192, 64}, {1, 2, 1}, Order::col, Order::col});
  EXPECT_EQ((*three.spec.warp)[1], 64);
}

/// Few stages are halved where neither operand has k contiguous. Each was 4 to 15% faster on an H200 than in stages of
/// 64 (docs/hopper-l2.md, *Half steps*).
TEST(PlanCuts, HalfSteps) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {464, 8792, 4336, {256, 136, 32}, {2, 1, 1}, col, row}, {5376, 1872, 608, {256, 160, 32}, {1, 1, 1}, col, row},
      {3712, 1280, 640, {144, 256, 32}, {1, 1, 1}, col, row}, {240, 16128, 1544, {128, 256, 32}, {1, 1, 1}, col, row},
      {1240, 2080, 272, {104, 192, 32}, {1, 1, 1}, col, row}, // five of 64
  };
  for (const Cut &cut : cuts)
    EXPECT_GE(*expectCut(cut).spec.stages, 6);
  // Half of a tile is stored under as much of k as elsewhere.
  EXPECT_EQ(*expectCut({8192, 8192, 8192, {256, 200, 32}, {1, 1, 1}, col, row}).spec.storeOverlap, 4);
  Spec quarters = problem(fixed(2048), fixed(2304), fixed(1024));
  quarters.a.layout = given(col), quarters.b.layout = given(row), quarters.block = given(Tile3{256, 128, 16});
  quarters.warp = given(Tile3{128, 128, 16});
  EXPECT_EQ(*planOf(quarters).spec.storeOverlap, 4); // the most that a spec may say
  // Where k is short few stages are filled, but more would fit.
  expectCut({744, 400, 64, {64, 48, 64}, {1, 1, 1}, col, row});
  // Rows along k would be half as long. What a spec gives stays.
  Spec spec = problem(fixed(464), fixed(8792), fixed(4336));
  spec.a.layout = given(col), spec.b.layout = given(col);
  EXPECT_EQ((*planOf(spec).spec.block)[2], 64);
  spec.b.layout = given(row), spec.stages = given(int64_t(3));
  EXPECT_EQ((*planOf(spec).spec.block)[2], 64);
}

/// Rows of 16-byte pitch start inside sectors of the L2 and cost it twice: CTAs share them, in clusters that all fit on
/// the card at a time. Each is within 11% of what won on an H200 (docs/hopper-l2.md, *Pitches of 16 bytes*), or, where
/// tiles come in turns, faster than that on an H100 (1024x2056x4104 32.1 us, 34.8; 904x2504x5000 39.6, 40.5; *Eights*).
/// The last two share nothing since *Streams, once more*: 7.0 -> 6.7 us and 12.5 -> 11.5.
TEST(PlanCuts, SharedWhereRowsSplitSectors) {
  const Cut cuts[] = {
      {1024, 2056, 4104, {128, 144, 64}, {4, 1, 1}}, {520, 4104, 1032, {88, 192, 64}, {2, 1, 1}},
      {600, 600, 3000, {104, 64, 64}, {2, 2, 2}},    {256, 7168, 2056, {128, 128, 64}, {2, 2, 1}},
      {1480, 2408, 1336, {128, 224, 64}, {2, 1, 1}}, {1544, 1544, 3080, {128, 160, 64}, {1, 2, 1}},
      {904, 2504, 5000, {152, 128, 64}, {2, 2, 1}},  {4096, 4096, 4104, {128, 256, 64}, {2, 1, 1}},
      {312, 312, 8488, {56, 64, 64}, {2, 1, 4}},     {696, 472, 10376, {64, 96, 64}, {4, 1, 2}},
      {128, 4096, 7176, {64, 144, 64}, {2, 2, 2}},   {64, 4096, 4104, {64, 80, 64}, {1, 4, 2}},
      {32, 8192, 1032, {32, 128, 64}, {1, 1, 1}},    {8, 6152, 3000, {8, 64, 128}, {1, 1, 1}},
  };
  for (const Cut &cut : cuts) {
    Plan plan = expectCut(cut);
    auto [spec, name] = kContiguous(cut.m, cut.n, (cut.k / 64 + 1) * 64);
    // As the winners of the finals; of a short k parts of lines decide: 1480x2408x1336 in 128x224 is 64x224 twice.
    if (!plan.swapped && plan.blockM == 128 && cut.n != 2408) {
      EXPECT_EQ(plan.warpM, 128) << name;
    }
    // A pitch of whole lines leaves nothing to share.
    spec.split = given(SplitMode::none);
    plan = planOf(spec);
    EXPECT_EQ(plan.clusterM * plan.clusterN, 1) << name;
  }
}

/// Parts of lines leave by themselves, and stores beside few steps crowd each other. Each took 3 to 13% less on an H200
/// than the choice that did not know (docs/hopper-l2.md, *Parts of lines*); where k is 15528 a long main loop decides.
TEST(PlanCuts, PartsOfLines) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {3640, 2672, 1808, {152, 128, 64}, {1, 1, 1}},
      {6600, 7840, 792, {176, 256, 64}, {2, 1, 1}, col, col},
      {2304, 7776, 1920, {128, 192, 64}, {1, 1, 1}, col, row},
      {1512, 1632, 1176, {152, 128, 64}, {2, 1, 1}},
      {6024, 6912, 15528, {256, 160, 64}, {1, 2, 1}, col, col},
  };
  expectCuts(cuts);
}

/// Rows of boxes that reach into a second line cost the L2 more: larger tiles in slices, or fours that share. Each was
/// 13 to 23% faster on an H200 than the choice that did not know (docs/hopper-shapes.md, *Rows across two lines*).
TEST(PlanCuts, RowsAcrossTwoLines) {
  const Cut cuts[] = {
      {160, 7248, 6800, {160, 64, 64}, {1, 4, 1}},   {240, 3584, 7216, {128, 64, 64}, {1, 4, 1}},
      {160, 3024, 10080, {160, 128, 64}, {1, 1, 4}}, {168, 7968, 10096, {168, 128, 64}, {1, 1, 2}},
      {160, 7168, 6784, {80, 128, 64}, {1, 1, 1}}, // whole lines: fours of 160x64 take 7% longer than alone, and those
                                                   // 2%
  };
  expectCuts(cuts);
}

/// Few rows or columns of few k are streams where the other side is long: 30% faster each on an H200 than as other
/// products are planned (docs/hopper-shapes.md, *Few of k*).
TEST(PlanCuts, StreamsOfFewK) {
  constexpr Order row = Order::row, col = Order::col;
  auto isStream = [](const Plan &plan) { return plan.spec.block.reason.find("are streamed") != std::string::npos; };
  EXPECT_TRUE(isStream(expectCut({16, 1432, 144, {16, 64, 128}, {1, 1, 1}, col, col})));
  EXPECT_TRUE(isStream(expectCut({5392, 40, 192, {64, 40, 128}, {4, 1, 1}, col, row})));
  for (auto [m, n, k] : {Tile3{16, 760, 144}, {72, 1432, 144}, {16, 1432, 88}}) // too short, too wide, too few k
    EXPECT_FALSE(isStream(planOf(kContiguous(m, n, k).first))) << m << "x" << n << "x" << k;
}

/// Rows that are whole lines, many or long. But for the last three, each was 2 to 9% faster on an H200 than the choice
/// of before (docs/hopper-shapes.md, *Large weights*, *Rows side by side*).
TEST(PlanCuts, LargeWeights) {
  const Cut cuts[] = {
      {128, 16384, 8192, {64, 256, 64}, {1, 1, 1}}, // two tiles of the short side
      {96, 8192, 28672, {48, 128, 64}, {1, 1, 1}},
      {16, 57344, 8192, {16, 64, 128}, {1, 1, 1}}, // fewer rows at a time
      {2, 40768, 8064, {8, 64, 128}, {1, 1, 2}},
      {1, 49152, 12288, {8, 64, 128}, {1, 1, 2}},
      {112, 32768, 6144, {64, 256, 64}, {1, 1, 1}},
      {148, 57472, 6528, {80, 128, 64}, {1, 1, 1}}, // two tiles, of several waves: 243.5 us in 152x64, in these 218.3
      {100, 28672, 8192, {64, 224, 64}, {1, 1, 1}},
      {80, 51136, 3328, {128, 80, 64}, {1, 1, 1}},   // 48 rows that are not there: 87.1 us, in 80x256 92.4
      {176, 50112, 6912, {176, 128, 64}, {1, 1, 1}}, // beside so many not: 208.9 us, in 88x192 222.8
      {168, 19648, 2944, {192, 152, 64}, {1, 1, 1}}, // 40.7 us in 64x224
      {88, 7168, 7168, {88, 64, 64}, {1, 1, 1}},     // of one wave: 2% slower in 64x112
      {48, 151936, 3584, {48, 192, 128}, {1, 1, 1}}, // more of each
      {24, 58144, 3184, {24, 64, 128}, {1, 1, 1}},   // 228 tiles of 256: the last 96 on a part of the GPCs
      {192, 3584, 18944, {64, 88, 64}, {1, 1, 1}},   // four slices of 192x120
      {160, 28672, 8192, {160, 128, 64}, {1, 1, 1}}, // four stages of 80x256: 10% slower
      {112, 4096, 11008, {112, 64, 64}, {1, 1, 2}},  // two tiles of 56x64: 2% slower
      {104, 8192, 8192, {56, 128, 64}, {1, 1, 1}},   // 104x64: 3% slower
  };
  expectCuts(cuts);
}

/// A contiguous short side whose rows start inside sectors: an SM's port takes lines, not bytes. Each was 19 to 31%
/// faster on an H200 than the choice or the cut beside it that counts bytes (docs/hopper-shapes.md, *Line by line*).
TEST(PlanCuts, LineByLine) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {248, 3584, 3072, {64, 128, 64}, {2, 4, 1}, col, col},
      {232, 4096, 7168, {64, 144, 64}, {2, 2, 1}, col, col},
      {216, 2048, 7168, {128, 128, 64}, {1, 2, 3}, col, row},
      {136, 3072, 2560, {136, 64, 64}, {1, 4, 2}, col, col},
  };
  expectCuts(cuts);
}

/// Slices of few tiles, whose CTAs share tiles: fewer of them read the same rows at the same time. Each won its race on
/// an H200, or was within 3% of who did (docs/hopper-l2.md, *Promotion, and slices that share*).
TEST(PlanCuts, SlicesShare) {
  const Cut cuts[] = {
      {368, 608, 5648, {64, 64, 64}, {2, 2, 2}},   {800, 640, 5344, {136, 64, 64}, {2, 2, 2}},
      {320, 640, 6016, {64, 56, 64}, {1, 4, 2}},   {640, 640, 10240, {64, 112, 64}, {2, 2, 2}},
      {512, 768, 2368, {64, 48, 64}, {1, 1, 1}},   {1024, 1024, 8192, {64, 128, 64}, {1, 1, 1}}, // whole
      {768, 1280, 6144, {64, 120, 64}, {1, 1, 1}}, // 60 tiles of 128x128: slices took 14% longer
  };
  expectCuts(cuts);
}

/// Slices of deep products meet in memory. Each won its race on an H200, or was within 3% of who did; of skinny ones in
/// clusters 256x1024x16384 took 24.7 us in the place of 19.3 (docs/hopper-l2.md, *Slices that meet in memory*).
TEST(PlanCuts, SlicesMeetInMemory) {
  struct Row {
    Cut cut;
    int64_t slices;
  };
  const Row rows[] = {
      {{256, 1024, 16384, {64, 128, 64}, {1, 1, 1}}, 4}, {{128, 1024, 16384, {64, 64, 128}, {1, 1, 1}}, 4},
      {{200, 1280, 10240, {104, 64, 64}, {1, 1, 1}}, 3}, {{256, 1280, 32768, {128, 80, 64}, {1, 1, 1}}, 4},
      {{512, 512, 8192, {64, 128, 64}, {1, 1, 1}}, 4},   {{384, 384, 16384, {64, 96, 64}, {1, 1, 1}}, 5},
      {{512, 640, 24576, {64, 160, 64}, {1, 1, 1}}, 4},
  };
  for (const Row &row : rows) {
    const Plan plan = expectCut(row.cut);
    EXPECT_EQ(*plan.spec.splitThrough, SplitThrough::workspace);
    EXPECT_EQ(*plan.spec.splitSlices, row.slices);
    EXPECT_EQ(*plan.spec.trigger, Trigger::end); // 4 to 16% less than launched one by one
  }
  // Where k is shorter, or the long side fills the SMs by itself, they do not pay.
  for (const Cut &cut :
       {Cut{256, 1024, 4096, {64, 32, 128}, {1, 1, 1}}, Cut{128, 4096, 14336, {128, 64, 64}, {1, 1, 2}}})
    EXPECT_TRUE(expectCut(cut).spec.splitSlices.value == cut.cluster[2]);
}

/// Tiles come in steps of 8 along wgmma's n. Each was 4 to 15% faster on an H200 than the planner's choice in steps of
/// 16 (docs/hopper-l2.md, *Tiles in steps of 8*).
TEST(PlanCuts, TilesInStepsOfEight) {
  const Cut cuts[] = {
      {1032, 1032, 4104, {128, 88, 64}, {1, 4, 1}},  {664, 1672, 5064, {64, 168, 64}, {4, 1, 1}},
      {1280, 768, 6400, {120, 64, 64}, {1, 1, 1}},   {1792, 1408, 4864, {152, 128, 64}, {1, 1, 1}},
      {4096, 6656, 4096, {128, 136, 64}, {1, 1, 1}}, // in 128x208 it takes 2.6% longer: stores hide under long loops
      {1920, 1920, 1920, {152, 192, 64}, {1, 1, 1}}, // and not under short ones: in 64x152 16% longer
  };
  expectCuts(cuts);
  // What the columns' eights cannot be shared out for is added by fewer CTAs: such tiles are not cut in two.
  Spec spec = problem(fixed(616), fixed(1096), fixed(1720));
  spec.a.layout = given(Order::col), spec.b.layout = given(Order::row);
  Plan plan = planOf(spec);
  EXPECT_EQ(plan.blockN / 8 % *plan.spec.splitSlices, 0);
}

/// What the races of an H200 moved (docs/hopper-shapes.md, *Seen on an H200*): each has another cut with one constant
/// of before, what arrives at an SM, slices inside sectors. Not raced one by one.
TEST(PlanCuts, ConstantsOfAnH200) {
  expectCut({1880, 672, 3216, {64, 168, 64}, {2, 4, 1}});
  expectCut({1384, 440, 6632, {128, 112, 64}, {2, 2, 2}, Order::col, Order::col});
}

/// Four CTAs in a row that share tiles wait less for each other than pairs, squares and eights. Each was 8 to 25%
/// faster on an H200 than the choice before (docs/hopper-l2.md, *Fours in a row*).
TEST(PlanCuts, WhoSharesTiles) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {1656, 376, 736, {64, 96, 64}, {4, 1, 1}, col, row},    {3008, 472, 8632, {128, 96, 64}, {4, 1, 1}, col, row},
      {1048, 1192, 1608, {176, 64, 64}, {1, 4, 1}, col, col}, {504, 1952, 3968, {64, 144, 64}, {2, 2, 1}, col, col},
      {2336, 288, 1352, {64, 96, 64}, {4, 1, 1}, row, col},   {488, 2152, 1072, {72, 128, 64}, {1, 1, 1}, row, col},
  };
  expectCuts(cuts);
}

/// Slices of tiles that are larger, and fewer, where rows start inside sectors or lines of the L2: each was 10 to 36%
/// faster on an H200 than the choice before. Of 144 usual tiles they took 9% longer; where they promise little (1472 x
/// 608 x 3184: 8%) they are not taken (docs/hopper-shapes.md, *Slices of larger tiles*).
TEST(PlanCuts, SlicesOfLargerTiles) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {904, 1160, 13296, {152, 128, 64}, {2, 2, 2}, col, row}, {1288, 872, 8928, {192, 112, 64}, {1, 4, 2}, col, row},
      {376, 3576, 10704, {192, 120, 64}, {2, 2, 2}, col, row}, {1304, 1272, 11856, {224, 128, 64}, {2, 2, 2}, col, row},
      {3488, 272, 14624, {128, 144, 64}, {2, 2, 2}, col, row}, {464, 2128, 6528, {128, 144, 64}, {4, 1, 2}, row, row},
      {1432, 1424, 8200, {128, 144, 64}, {4, 1, 1}, col, col}, {1472, 608, 3184, {128, 64, 64}, {4, 2, 1}, row, row},
  };
  expectCuts(cuts);
  const Plan inMemory = expectCut({4208, 272, 12928, {128, 136, 64}, {1, 1, 1}, col, col});
  EXPECT_EQ(*inMemory.spec.splitSlices, 2);
}

/// Tiles of D^T whose warpgroups have 64 columns of D each leave faster, which is much of the time where k is short:
/// each was 10 to 18% faster on an H200 than the choice before; with 600 of k such a tile took 10% longer
/// (docs/hopper-shapes.md, *Few of k*).
TEST(PlanCuts, ColumnsOfDWhereKIsShort) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {7344, 6232, 200, {184, 192, 64}, {2, 1, 1}, row, row}, {9200, 4376, 280, {184, 192, 64}, {2, 1, 1}, row, col},
      {3456, 6800, 216, {192, 192, 64}, {1, 2, 1}, row, row}, {3112, 4024, 408, {176, 192, 32}, {2, 1, 1}, col, row},
      {7912, 8152, 600, {200, 256, 64}, {2, 1, 1}, col, col},
  };
  expectCuts(cuts);
}

/// Deep slices whose rows start inside sectors meet in memory and share tiles: 36.1 -> 31.9 us and 33.3 -> 31.5 on an
/// H200. Where k is contiguous in both operands such slices would ask for too many rows: 984x728x10280 takes 36.1 us in
/// them and 30.0 in a cluster's (docs/hopper-l2.md, *Fours in a row*).
TEST(PlanCuts, SlicesInMemoryShare) {
  const Plan deep = expectCut({824, 584, 12784, {104, 128, 64}, {4, 1, 1}, Order::col, Order::row});
  EXPECT_EQ(*deep.spec.splitThrough, SplitThrough::workspace);
  EXPECT_EQ(*deep.spec.splitSlices, 3);
  const Plan wide = expectCut({1400, 272, 16352, {64, 136, 64}, {1, 2, 1}, Order::col, Order::col});
  EXPECT_EQ(*wide.spec.splitThrough, SplitThrough::workspace);
  auto [known, name] = kContiguous(984, 728, 10280);
  EXPECT_EQ(*planOf(known).spec.splitThrough, SplitThrough::cluster);
  // Parts of their tiles may be unlike, but not where slices meet in memory: 16.4 us with 64x112 in pairs, 14.3 in
  // fours.
  expectCut({1248, 336, 7488, {64, 112, 64}, {4, 1, 2}, Order::col, Order::col});
}

/// Rows that reach into a second line and tiles that CTAs share, in the estimate of streams: each was 8 to 25% faster
/// on an H200 than the choice before (docs/hopper-shapes.md, *Streams, once more*).
TEST(PlanCuts, StreamsOnceMore) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {100, 1840, 1296, {56, 64, 64}, {1, 1, 1}, row, row},  {224, 7776, 2928, {112, 128, 64}, {1, 1, 1}, row, row},
      {240, 9184, 4160, {80, 256, 64}, {1, 1, 1}, row, row}, {192, 2080, 2464, {64, 64, 64}, {1, 1, 1}, col, row},
      {160, 2608, 880, {80, 64, 64}, {1, 1, 1}, row, col},   {216, 3936, 2560, {64, 144, 64}, {2, 4, 1}, col, col},
      {2352, 200, 5488, {80, 128, 64}, {2, 2, 2}, row, row}, {1688, 176, 8624, {64, 176, 64}, {2, 1, 4}, col, col},
  };
  expectCuts(cuts);
}

/// mma has no signs for its operands; alpha has them, given now or at launch.
TEST(PlanCuts, SignsBesideADynamicAlpha) {
  Spec spec = problem(fixed(1500), fixed(600), fixed(60));
  spec.a.layout = given(Order::col), spec.b.layout = given(Order::row), spec.a.negate = given(Persistence::on);
  EXPECT_EQ(*planOf(spec).spec.instruction, Instruction::mma);
  spec.alpha = given(Scale{std::nullopt});
  EXPECT_EQ(*planOf(spec).spec.instruction, Instruction::mma);
}

/// A short side may be either side of the kernel: the long one's tiles come in other steps.
/// D^T won its race on an H200 by 6 to 17% where it is taken here.
TEST(PlanCuts, SkinnyProductsEitherWay) {
  struct Row {
    int64_t m, n, k;
    Order b;
    Persistence swapped;
  };
  constexpr auto on = Persistence::on, off = Persistence::off;
  const Row rows[] = {
      {12160, 192, 1856, Order::row, on}, {3328, 192, 3328, Order::row, on},  {6144, 192, 4096, Order::col, on},
      {2112, 64, 7168, Order::col, on},   {4096, 128, 7168, Order::col, off}, {8192, 64, 4096, Order::col, off},
      {4096, 256, 4096, Order::row, off}, {192, 6144, 4096, Order::col, off},
  };
  for (const Row &row : rows) {
    Spec spec = problem(fixed(row.m), fixed(row.n), fixed(row.k));
    spec.b.layout = given(row.b);
    EXPECT_EQ(*planOf(spec).spec.swapOperands, row.swapped) << row.m << "x" << row.n << "x" << row.k;
    // Who says which side is which is asked no more.
    spec.swapOperands = given(off);
    EXPECT_EQ(*planOf(spec).spec.swapOperands, off);
  }
  // With C nobody has measured it. D in columns: the other way is D itself.
  Spec spec = problem(fixed(6144), fixed(192), fixed(4096));
  spec.b.layout = given(Order::col), spec.d.type = given(Elem::bf16), spec.beta = given(Scale{1.0});
  EXPECT_EQ(*planOf(spec).spec.swapOperands, off);
  spec = problem(fixed(256), fixed(4384), fixed(7712));
  spec.a.layout = spec.b.layout = spec.d.layout = given(Order::col);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.swapOperands, off);
  EXPECT_EQ(plan.spec.swapOperands.reason.find("tiles of D itself fit better"), 0u) << plan.spec.swapOperands.reason;
}

/// A long operand whose m or n is contiguous comes in rows that start inside sectors where its pitch is 16 bytes: CTAs
/// that multiply them with other parts of the short one share them. Each was 12 to 49% faster on an H200 than what did
/// not (docs/hopper-shapes.md, *A short side that is contiguous*).
TEST(PlanCuts, LongOperandsInSplitRowsAreShared) {
  const Cut cuts[] = {
      {176, 3176, 10600, {176, 64, 64}, {1, 4, 2}, Order::col, Order::row},
      {160, 15896, 4968, {160, 128, 64}, {1, 2, 1}, Order::col, Order::row},
      {144, 3240, 7800, {144, 64, 64}, {1, 4, 2}, Order::col, Order::row},
      {4856, 216, 7704, {192, 128, 64}, {2, 2, 2}, Order::col, Order::row},
  };
  expectCuts(cuts);
}

/// Where the fastest cut of a stream does not fit the next one is taken; what TMA brings C for is not sliced.
TEST(PlanCuts, TheNextCutOfAStream) {
  Spec spec = problem(fixed(3528), fixed(152), fixed(9656)); // four slices of a wide tile leave no room for two stages
  spec.d.layout = given(Order::col);
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.block, (Tile3{64, 152, 64}));
  EXPECT_EQ(*plan.spec.cluster, (Tile3{4, 1, 2}));
  spec = problem(fixed(10881), fixed(149), fixed(8336)); // the fastest cut has three stages
  spec.a.layout = given(Order::col), spec.a.ld = given(fixed(10888)), spec.b.ld = given(fixed(152));
  spec.d.layout = given(Order::col), spec.d.type = given(Elem::f32), spec.d.ld = given(fixed(10888));
  spec.swapOperands = given(Persistence::off);
  EXPECT_EQ(*planOf(spec).spec.stages, 3);
  spec.inFlight = given(int64_t(3));
  EXPECT_GT(*planOf(spec).spec.stages, 3);
  spec = problem(fixed(2112), fixed(64), fixed(7168));
  spec.b.layout = given(Order::col), spec.d.type = given(Elem::bf16), spec.beta = given(Scale{1.0});
  EXPECT_EQ(*planOf(spec).spec.splitSlices, 3);
  spec.loadC = given(StoreKind::tma);
  EXPECT_EQ(*planOf(spec).spec.splitSlices, 1);
}

/// A short side that is contiguous: whole lines of it, half lines, or all of it; CTAs share rows that start inside
/// sectors. Each is within 7% of the fastest of 4 to 54 cuts on an H200 (docs/hopper-shapes.md, *A short side that is
/// contiguous*).
TEST(PlanCuts, SkinnyProductsWhoseShortSideIsContiguous) {
  struct Row {
    int64_t m, n, k;
    Order b; ///< A is in column order where m is the short side.
    Tile3 block, cluster;
  };
  const Row rows[] = {
      {8, 7232, 1216, Order::row, {8, 64, 128}, {1, 4, 1}},    {24, 5568, 4480, Order::row, {24, 64, 128}, {1, 4, 1}},
      {48, 5824, 3840, Order::row, {48, 128, 64}, {1, 1, 2}},  {64, 8192, 8192, Order::col, {64, 64, 128}, {1, 1, 1}},
      {128, 8192, 8192, Order::col, {64, 128, 64}, {1, 1, 1}}, {128, 7488, 6912, Order::row, {64, 128, 64}, {1, 1, 1}},
      {14336, 32, 4096, Order::row, {128, 32, 64}, {1, 1, 1}}, {160, 3072, 3072, Order::row, {32, 128, 64}, {1, 1, 1}},
      {96, 4864, 1728, Order::row, {32, 128, 64}, {1, 1, 1}},  {160, 3328, 6656, Order::row, {160, 128, 64}, {1, 1, 4}},
  };
  for (const Row &row : rows) {
    Spec spec = problem(fixed(row.m), fixed(row.n), fixed(row.k));
    spec.a.layout = given(Order::col);
    spec.b.layout = given(row.b);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.block, row.block) << row.m << "x" << row.n << "x" << row.k;
    EXPECT_EQ(*plan.spec.cluster, row.cluster) << row.m << "x" << row.n << "x" << row.k;
  }
  // The long operand alone: tiles of whole lines.
  Spec spec = problem(fixed(128), fixed(2496), fixed(5312));
  spec.b.layout = given(Order::row);
  EXPECT_EQ((*planOf(spec).spec.block)[1] % 64, 0);
}

/// When the kernel behind is launched: each as measured on an H200, one to 34% before the other two
/// (docs/hopper-clock.md, *Launched together*).
TEST(PlanCuts, WhenTheNextKernelIsLaunched) {
  struct Row {
    int64_t m, n, k;
    Order a, b;
    Trigger trigger;
  };
  constexpr auto row = Order::row, col = Order::col;
  constexpr auto start = Trigger::start, sums = Trigger::sums, end = Trigger::end;
  const Row rows[] = {
      {256, 256, 256, row, col, start},   {16, 4096, 576, row, col, start}, // 17 and 13% faster than alone
      {1024, 1024, 192, row, col, start},                                   // four steps: sums +17%
      {128, 8192, 768, row, col, sums},                                     // start +9%
      {96, 5120, 2048, row, col, sums},                                     // start +17%, end +3%
      {8, 1536, 6144, row, col, sums},                                      // in slices; start +6%, end +5%
      {128, 5120, 8192, row, col, end},                                     // many steps: sums +4%, start +27%
      {48, 5824, 3840, col, row, end},                                      // m and n contiguous: sums +14%
  };
  for (const Row &each : rows) {
    auto [spec, name] = kContiguous(each.m, each.n, each.k);
    spec.a.layout = given(each.a), spec.b.layout = given(each.b);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.dependent, Persistence::on) << name;
    EXPECT_EQ(*plan.spec.trigger, each.trigger) << name;
  }
}

// Who says when the kernel behind is launched wants launches to overlap.
TEST(PlanCuts, ATriggerOverlaps) {
  Spec spec = problem(fixed(8192), fixed(8192), fixed(8192));
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::off);
  spec.trigger = given(Trigger::start);
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::off);
  spec.trigger = given(Trigger::end);
  EXPECT_EQ(*planOf(spec).spec.dependent, Persistence::on);
}

// Tiles of too few stages are no candidates for who wants more of them under way.
TEST(PlanCuts, InFlightChoosesTheTile) {
  for (int64_t size : {2000, 9000, 12000}) {
    Spec spec = problem(fixed(size), fixed(size), fixed(size));
    spec.inFlight = given(int64_t(4));
    EXPECT_GT(*planOf(spec).spec.stages, 4) << size;
  }
}

// A deep product of one wave is walked by GPCs, and nobody takes turns with a single tile; behind a repack ping-pong
// does.
TEST(PlanCuts, OneWave) {
  Spec spec = problem(fixed(1024), fixed(1024), fixed(65536));
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative);
  EXPECT_EQ(*plan.spec.rasterGroup, 4);
  EXPECT_EQ(*planOf(problem(fixed(6001), fixed(6001), fixed(1001))).spec.schedule, Schedule::pingpong);
}

/// Which way the long operand takes where TMA cannot read it: the faster one of two that were measured
/// (docs/hopper-l2.md, *Lines that start anywhere*).
TEST(PlanCuts, LongOperandsAreShifted) {
  struct Row {
    int64_t m, n, k;
    Repack a, b;
    Order layoutA, layoutB;
  };
  constexpr Order row = Order::row, col = Order::col;
  const Row rows[] = {
      {16, 4095, 4095, Repack::on, Repack::inside, row, col},
      {65, 4095, 4095, Repack::on, Repack::inside, row, col},
      {128, 24575, 1535, Repack::on, Repack::inside, row, col},
      {64, 2111, 7167, Repack::on, Repack::inside, row, col},
      {224, 2055, 5127, Repack::on, Repack::inside, row, col},
      {4095, 16, 4095, Repack::inside, Repack::on, row, col},
      {16, 4095, 4096, Repack::off, Repack::off, row, col},
      {7, 1025, 513, Repack::inside, Repack::inside, row, col},
      {33, 1031, 517, Repack::inside, Repack::inside, row, col},
      {100, 2047, 1023, Repack::on, Repack::on, row, col},
      {2047, 2047, 2047, Repack::on, Repack::on, row, col},
      // Lines of k: rows of n, or columns of m.
      {8, 10239, 8191, Repack::on, Repack::inside, row, row},
      {128, 24575, 1535, Repack::on, Repack::inside, row, row},
      {255, 4095, 4095, Repack::on, Repack::inside, row, row},
      {32, 1535, 6143, Repack::on, Repack::inside, row, row},
      {100, 2047, 1023, Repack::on, Repack::on, row, row},
      {33, 1031, 517, Repack::inside, Repack::inside, row, row},
      {16, 4098, 4096, Repack::off, Repack::inside, row, row},
      {10239, 8, 8191, Repack::inside, Repack::off, col, row},
      {7167, 100, 4095, Repack::inside, Repack::on, col, row},
      {2047, 2047, 2047, Repack::on, Repack::on, col, row},
  };
  for (const Row &one : rows) {
    Spec spec = problem(fixed(one.m), fixed(one.n), fixed(one.k));
    spec.a.layout = given(one.layoutA), spec.b.layout = given(one.layoutB);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.a.repack, one.a) << one.m << "x" << one.n << "x" << one.k;
    EXPECT_EQ(*plan.spec.b.repack, one.b) << one.m << "x" << one.n << "x" << one.k;
  }
  // A first line that may start anywhere is not shifted.
  Spec spec = problem(fixed(16), fixed(4095), fixed(4095));
  spec.b.layout = given(Order::col), spec.b.align = given(2u);
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::on);
  spec.b.align = given(16u);
  EXPECT_EQ(requirementsOf(planOf(spec)), (Texts{"b_ptr % 16 == 0"}));
  spec.m = given(fixed(100)), spec.a.repack = given(Repack::inside); // the other one stays open
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::inside);
  // Both operands take part in the choice: none is shifted where the other one stays as it is, or for mma.
  spec.a.repack = given(Repack::off);
  EXPECT_EQ(*planOf(spec).spec.b.repack, Repack::off);
  for (int64_t m : {1, 8, 64, 200})
    for (int64_t n : {1024, 1032, 2048, 4096, 8192})
      for (int64_t k : {514, 516, 524, 1026, 1028, 1036, 2050, 2052}) {
        Spec small = problem(fixed(m), fixed(n), fixed(k));
        small.b.layout = given(Order::col);
        Plan plan = planOf(small);
        EXPECT_EQ(*plan.spec.a.repack == Repack::off, *plan.spec.b.repack == Repack::off);
        EXPECT_EQ(*plan.spec.instruction == Instruction::wgmma, *plan.spec.b.repack != Repack::off);
      }
}

/// C comes by TMA beside shifted lines, too: their tiles count where its buffers are fitted in.
TEST(PlanCuts, ShiftedLinesBesideC) {
  Spec spec = problem(fixed(8192), fixed(16), fixed(4095));
  spec.d.type = given(Elem::bf16), spec.beta = given(Scale{0.5});
  Plan plan = planOf(spec);
  EXPECT_EQ(*plan.spec.a.repack, Repack::inside);
  EXPECT_EQ(*plan.spec.loadC, StoreKind::tma);
}

// The rows that one CTA reads, once, are not kept.
TEST(PlanCuts, RowsThatAreReadOnce) {
  auto cacheOfB = [](int64_t m, int64_t n, int64_t k) {
    Spec spec = problem(fixed(m), fixed(n), fixed(k));
    spec.b.layout = given(Order::col);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.a.cache, CachePolicy::normal);
    return *plan.spec.b.cache;
  };
  EXPECT_EQ(cacheOfB(64, 2112, 7168), CachePolicy::evict_first);
  EXPECT_EQ(cacheOfB(16, 4096, 4096), CachePolicy::evict_first);
  EXPECT_EQ(cacheOfB(128, 4096, 7168), CachePolicy::normal);  // two CTAs read them
  EXPECT_EQ(cacheOfB(128, 24576, 1536), CachePolicy::normal); // CTAs of several tiles
  EXPECT_EQ(cacheOfB(4096, 4096, 4096), CachePolicy::normal);
}

// What a spec says of the cut of a skinny product changes nothing else.
TEST(PlanCuts, SkinnyProductsWithAGivenTile) {
  for (auto [m, n, k] : {Tile3{200, 4096, 4096}, Tile3{64, 2112, 7168}, Tile3{128, 4096, 7168}}) {
    Spec spec = problem(fixed(m), fixed(n), fixed(k));
    spec.b.layout = given(Order::col);
    Plan chosen = planOf(spec);
    spec.swapOperands = given(*chosen.spec.swapOperands);
    spec.block = given(*chosen.spec.block);
    spec.cluster = given(*chosen.spec.cluster);
    Plan plan = planOf(spec);
    EXPECT_EQ(*plan.spec.stages, *chosen.spec.stages) << m;
    EXPECT_EQ(*plan.spec.store, *chosen.spec.store) << m;
    EXPECT_EQ(*plan.spec.rasterOrder, *chosen.spec.rasterOrder) << m;
    EXPECT_EQ(*plan.spec.splitSlices, *chosen.spec.splitSlices) << m;
    EXPECT_EQ(*plan.spec.dependent, *chosen.spec.dependent) << m;
    EXPECT_EQ(*plan.spec.schedule, Schedule::cooperative) << m;
  }
}
