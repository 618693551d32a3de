// How the planner cuts products for an H200: streams, slices of k, shared tiles; what races have said.
#include "Cuts.h"

using namespace gemmc;
using namespace gemmc::test;

/// Where m or n is contiguous cooperative warpgroups cost 3%, three of them 2% more (docs/hopper-shapes.md, *The
/// model*). Each has another cut without one of both.
TEST(PlanCuts, TurnsAndThreeWarpgroupsWhereKIsNotContiguous) {
  const Plan turns = expectCut({5120, 5120, 2560, {128, 160, 64}, {1, 1, 1}, Order::col, Order::col});
  EXPECT_EQ(*turns.spec.schedule, Schedule::pingpong);
  const Plan three = expectCut({3360, 3456, 5344, {192, 120, 64}, {1, 1, 1}, Order::col, Order::col});
  EXPECT_EQ((*three.spec.warp)[0], 192);
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
      {312, 312, 8488, {56, 64, 64}, {2, 1, 4}},     {696, 472, 10376, {192, 80, 64}, {2, 2, 1}},
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
/// than the choice that did not know (docs/hopper-l2.md, *Parts of lines*); where k is 15368 a long main loop decides.
TEST(PlanCuts, PartsOfLines) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {3640, 2672, 1808, {152, 128, 64}, {1, 1, 1}},
      {6600, 7840, 792, {176, 256, 64}, {2, 1, 1}, col, col},
      {2304, 7776, 1920, {128, 192, 64}, {1, 1, 1}, col, row},
      {1512, 1632, 1176, {152, 128, 64}, {2, 1, 1}},
      {4440, 7824, 15368, {256, 184, 32}, {1, 2, 1}, col, row},
  };
  expectCuts(cuts);
}

/// Rows of boxes that reach into a second line cost the L2 more: larger tiles in slices, or fours that share. Each was
/// 13 to 23% faster on an H200 than the choice that did not know (docs/hopper-shapes.md, *Rows across two lines*).
TEST(PlanCuts, RowsAcrossTwoLines) {
  const Cut cuts[] = {
      {160, 7248, 6800, {160, 64, 64}, {1, 4, 1}},   {240, 3584, 7216, {128, 64, 64}, {1, 4, 1}},
      {160, 3024, 10080, {160, 128, 64}, {1, 1, 1}}, {168, 7968, 10096, {168, 128, 64}, {1, 1, 2}},
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
      {192, 3584, 18944, {192, 112, 64}, {1, 1, 1}}, // four slices in memory
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
      {216, 2048, 7168, {216, 128, 64}, {1, 4, 1}, col, row},
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

/// Slices of deep products meet in memory. Of skinny ones in clusters 256x1024x16384 took 24.7 us in the place of 19.3
/// (docs/hopper-l2.md, *Slices that meet in memory*); since they share out the sum, larger tiles in more slices 18.2,
/// and the seven 6% less to 4% more, 384x384x16384 13% less (*Slices that share out the sum*).
TEST(PlanCuts, SlicesMeetInMemory) {
  struct Row {
    Cut cut;
    int64_t slices;
  };
  const Row rows[] = {
      {{256, 1024, 16384, {128, 96, 64}, {1, 1, 1}}, 6}, {{128, 1024, 16384, {128, 64, 64}, {1, 1, 1}}, 8},
      {{200, 1280, 10240, {200, 64, 64}, {1, 1, 1}}, 6}, {{256, 1280, 32768, {128, 160, 64}, {1, 1, 1}}, 8},
      {{512, 512, 8192, {64, 128, 64}, {1, 1, 1}}, 4},   {{384, 384, 16384, {64, 128, 64}, {1, 1, 1}}, 7},
      {{512, 640, 24576, {64, 160, 64}, {1, 1, 1}}, 4},
  };
  for (const Row &row : rows) {
    const Plan plan = expectCut(row.cut);
    EXPECT_EQ(*plan.spec.splitThrough, SplitThrough::workspace);
    EXPECT_EQ(*plan.spec.splitSlices, row.slices);
    const bool shares = plan.blockM < plan.m.constant() && plan.blockN < plan.n.constant(); // tiles, of the long side
    EXPECT_EQ(*plan.spec.trigger == Trigger::end, shares); // 4 to 16% less than launched one by one
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

/// k contiguous in one operand and not in the other, rows of one inside sectors: the L2 sends more than it does
/// elsewhere and CTAs that share tiles gain less. The first seven took 4 to 10% less on an H200 than the choice before,
/// but one (1160 x 3792 x 4072) 1%. By constants like these 408 x 9536 x 4536 takes 32% longer than this, 808 x 1472 x
/// 2232 13% and 2600 x 4192 x 816 10% (docs/hopper-shapes.md, *Rows along k beside others*).
TEST(PlanCuts, RowsAlongKBesideOthers) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {1632, 2136, 10872, {128, 216, 64}, {1, 1, 1}, col, col}, {1112, 3616, 6536, {192, 176, 64}, {1, 1, 1}, row, row},
      {4552, 1392, 2904, {192, 128, 64}, {2, 1, 1}, row, row},  {2304, 1240, 6408, {192, 120, 64}, {1, 1, 1}, col, col},
      {6304, 784, 2872, {256, 160, 64}, {1, 1, 1}, row, row},   {1160, 3792, 4072, {152, 256, 64}, {1, 1, 1}, row, row},
      {6024, 6912, 15528, {184, 192, 64}, {1, 2, 1}, col, col}, {408, 9536, 4536, {136, 256, 64}, {1, 4, 1}, row, row},
      {808, 1472, 2232, {88, 128, 64}, {1, 4, 1}, row, row},    {2600, 4192, 816, {176, 256, 64}, {1, 1, 1}, col, col},
  };
  expectCuts(cuts);
  // Nobody has measured it with C, D in 32 bits, sums in f16, in a batch, and where lanes turn tf32.
  auto clusterOf = [&](int64_t m, int64_t n, int64_t k, Order layout, auto &&change) {
    Spec spec = problem(fixed(m), fixed(n), fixed(k));
    spec.a.layout = given(layout), spec.b.layout = given(layout);
    change(spec);
    return *planOf(spec).spec.cluster;
  };
  auto changed = [&](auto &&change) { return clusterOf(2304, 1240, 6408, col, change); };
  EXPECT_EQ(changed([](Spec &) {}), (Tile3{1, 1, 1}));
  EXPECT_EQ(changed([](Spec &spec) { spec.beta = given(Scale{1.0}); }), (Tile3{4, 1, 1}));
  EXPECT_EQ(changed([](Spec &spec) { spec.d.type = given(Elem::f32); }), (Tile3{4, 1, 1}));
  EXPECT_EQ(changed([](Spec &spec) { spec.a.type = given(Elem::f16), spec.accumulator = given(Elem::f16); }),
            (Tile3{4, 1, 1}));
  EXPECT_EQ(changed([](Spec &spec) { spec.batch = given(fixed(2)); }), (Tile3{4, 1, 1}));
  EXPECT_EQ(clusterOf(2180, 1660, 2196, row,
                      [](Spec &spec) { spec.a.type = given(Elem::tf32), spec.d.type = given(Elem::bf16); }),
            (Tile3{1, 2, 1}));
}

/// Slices of tiles that are larger, and fewer, where rows start inside sectors or lines of the L2: each was 10 to 36%
/// faster on an H200 than the choice before. Of 144 usual tiles they took 9% longer; where they promise little (1472 x
/// 608 x 3184: 8%) they are not taken (docs/hopper-shapes.md, *Slices of larger tiles*).
TEST(PlanCuts, SlicesOfLargerTiles) {
  constexpr Order row = Order::row, col = Order::col;
  const Cut cuts[] = {
      {904, 1160, 13296, {128, 232, 64}, {4, 1, 1}, col, row}, {1288, 872, 8928, {192, 112, 64}, {1, 4, 2}, col, row},
      {376, 3576, 10704, {192, 120, 64}, {2, 2, 2}, col, row}, {1304, 1272, 11856, {112, 256, 64}, {4, 1, 1}, col, row},
      {3488, 272, 14624, {256, 96, 64}, {1, 1, 1}, col, row},  {464, 2128, 6528, {128, 144, 64}, {4, 1, 2}, row, row},
      {1432, 1424, 8200, {128, 144, 64}, {2, 2, 1}, col, col}, {1472, 608, 3184, {128, 64, 64}, {4, 2, 1}, row, row},
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
  const Plan deep = expectCut({824, 584, 12784, {208, 128, 64}, {4, 1, 1}, Order::col, Order::row});
  EXPECT_EQ(*deep.spec.splitThrough, SplitThrough::workspace);
  EXPECT_EQ(*deep.spec.splitSlices, 6);
  const Plan wide = expectCut({1400, 272, 16352, {128, 136, 64}, {1, 2, 1}, Order::col, Order::col});
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
