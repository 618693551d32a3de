// Where `auto` takes its plan from: what is given, the database, the table, the model; and that nothing that is wrong
// with a measurement keeps a spec from being planned.
#include "gemmc/Tune/Choose.h"
#include "Temporary.h"
#include "gemmc/Plan/Key.h"

using namespace gemmc;
using namespace gemmc::tune;

namespace {
class ChooseTest : public ::testing::Test {
protected:
  ChooseTest() { options.database = path; }

  Spec read(const std::string &text) {
    auto spec = readSpec(diags.addSource("spec", text), {}, diags);
    EXPECT_TRUE(spec);
    return *spec;
  }
  /// Stores `choice` for `spec` as it is measured.
  void measure(const Spec &spec, const std::string &choice, int64_t kernels = kernelVersion, bool withGiven = true) {
    auto database = Database::open(path, Database::Mode::write);
    ASSERT_TRUE(bool(database)) << database.failure().str();
    Tuned tuned;
    tuned.device = "NVIDIA H200";
    tuned.problem = withGiven ? problemKey(spec)->text() : problemKey(spec)->problem;
    tuned.kernels = kernels;
    tuned.choice = choice;
    tuned.sizes = "4096x4096x4096";
    tuned.seconds = 203.2e-6, tuned.cublasSeconds = 207.5e-6;
    tuned.rounds = 11, tuned.date = "2026-11-21";
    EXPECT_FALSE(database->store(tuned));
  }
  Chosen chosen(const Spec &spec) {
    auto result = choose(spec, options, diags);
    EXPECT_TRUE(result);
    return std::move(*result);
  }
  std::vector<std::string> remarks() const {
    std::vector<std::string> names;
    for (const Problem &problem : diags.all())
      names.push_back(nameOf(problem.id).str());
    return names;
  }
  using Names = std::vector<std::string>;

  Temporary folder;
  std::string path = folder.file("tuning.db");
  ChooseOptions options;
  Diags diags;
  std::string cube = "problem: {m: 3072, n: 3072, k: 3072}\n";
  std::string tile = "pipeline.schedule=cooperative tile.block=[128,192,64] tile.warp=[64,192,64]";
};
using Names = std::vector<std::string>;
} // namespace

TEST_F(ChooseTest, WithoutADatabaseTheModelDecides) {
  options.database = "";
  setenv("GEMMC_TUNING", path.c_str(), 1);
  Spec spec = read(cube);
  Chosen result = chosen(spec);
  EXPECT_EQ(result.origin, Origin::model);
  EXPECT_EQ(printSpec(result.plan.spec, true), printSpec(makePlan(spec, diags)->spec, true));
  EXPECT_FALSE(llvm::sys::fs::exists(path)) << "nothing may be made by looking";
  EXPECT_EQ(remarks(), Names{"tuning_ignored"}) << "a file that is named is missed";
  measure(spec, tile); // the usual place counts, too
  EXPECT_EQ(chosen(spec).origin, Origin::database);
  unsetenv("GEMMC_TUNING");
}

TEST_F(ChooseTest, WhatWasMeasuredIsTakenWithItsReason) {
  Spec spec = read(cube);
  measure(spec, tile);
  Chosen result = chosen(spec);
  EXPECT_EQ(result.origin, Origin::database);
  EXPECT_EQ(*result.plan.spec.block, (std::array<int64_t, 3>{128, 192, 64}));
  EXPECT_FALSE(result.plan.spec.block.given);
  EXPECT_EQ(result.plan.spec.block.reason, "measured on NVIDIA H200 2026-11-21: 203.2 us, 1.021 of cuBLASLt's best");
  EXPECT_EQ(result.plan.spec.warp.reason, "of that measurement, see tile.block");
  EXPECT_FALSE(result.plan.spec.block.range.isValid());
  EXPECT_EQ(remarks(), Names());
  options.device = "NVIDIA H100";
  EXPECT_EQ(chosen(spec).origin, Origin::model);
  options.device = "", options.off = true;
  EXPECT_EQ(chosen(spec).origin, Origin::model);
  EXPECT_EQ(chosen(read(cube + "a: {type: f16}\naccumulator: f16\n")).origin, Origin::model);
}

TEST_F(ChooseTest, F16AndBf16ShareWhatWasMeasured) {
  std::string half = "a: {type: f16}\n";
  measure(read(cube), tile);
  Chosen other = chosen(read(cube + half));
  EXPECT_EQ(other.origin, Origin::database);
  EXPECT_EQ(*other.plan.spec.block, (std::array<int64_t, 3>{128, 192, 64}));
  EXPECT_EQ(other.plan.spec.block.reason, "measured on NVIDIA H200 2026-11-21: 203.2 us, 1.021 of cuBLASLt's best with "
                                          "bf16, whose kernels are as fast");
  EXPECT_EQ(*other.plan.spec.a.type, Elem::f16);
  Chosen given = chosen(read(cube + half + "pipeline: {stages: 3}\n")); // without what is given, and of the other type
  EXPECT_EQ(given.origin, Origin::database);
  // Its own measurement counts first, and other types are none of it.
  measure(read(cube + half), "tile.block=[128,128,64]");
  EXPECT_EQ((*chosen(read(cube + half)).plan.spec.block)[1], 128);
  EXPECT_EQ((*chosen(read(cube)).plan.spec.block)[1], 192);
  EXPECT_EQ(chosen(read(cube + half + "d: {type: f32}\n")).origin, Origin::model);
  EXPECT_EQ(chosen(read(cube + half + "accumulator: f16\n")).origin, Origin::model);
  EXPECT_EQ(chosen(read(cube + "a: {type: s8}\n")).origin, Origin::model);
  EXPECT_EQ(remarks(), Names());
}

TEST_F(ChooseTest, HowASpecIsWrittenMakesNoDifference) {
  measure(read(cube), tile);
  Spec same = read("target: sm_90a\nproblem: {k: 3072, n: 3072, m: 3072}\na: {type: bf16, ld: 3072, align: 128}\n"
                   "alpha: 1\nd: {layout: row}\nname: other\n");
  EXPECT_EQ(chosen(same).origin, Origin::database);
}

TEST_F(ChooseTest, WhatIsGivenStays) {
  measure(read(cube), tile);
  Chosen other = chosen(read(cube + "pipeline: {stages: 3}\n")); // nothing against the measured tile
  EXPECT_EQ(other.origin, Origin::database);
  EXPECT_EQ(*other.plan.spec.stages, 3);
  EXPECT_TRUE(other.plan.spec.stages.given);
  Spec against = read(cube + "tile: {block: [128, 128, 64]}\n");
  Chosen model = chosen(against);
  EXPECT_EQ(model.origin, Origin::model);
  EXPECT_EQ((*model.plan.spec.block)[1], 128);
  measure(against, "pipeline.schedule=pingpong"); // measured with that tile
  Chosen exact = chosen(against);
  EXPECT_EQ(exact.origin, Origin::database);
  EXPECT_EQ(*exact.plan.spec.schedule, Schedule::pingpong);
  EXPECT_EQ(remarks(), Names());
}

TEST_F(ChooseTest, ASpecThatLeavesNothingOpenIsGiven) {
  Spec spec = read(cube);
  std::string complete = printSpec(makePlan(spec, diags)->spec, false);
  EXPECT_EQ(chosen(read(complete)).origin, Origin::given);
}

TEST_F(ChooseTest, OldKernelsSayNothing) {
  Spec spec = read(cube);
  measure(spec, tile, kernelVersion + 1);
  Chosen result = chosen(spec);
  EXPECT_EQ(result.origin, Origin::model);
  EXPECT_TRUE(result.measured);
  EXPECT_EQ(remarks(), Names{"tuning_stale"});
}

TEST_F(ChooseTest, AChoiceThatNoLongerFitsIsRefused) {
  Spec spec = read(cube);
  for (const char *bad : {"tile.block=[128,999,64]", "tile.shape=[1,2,3]", "a.type=f16", "nonsense", "",
                          "tile.block=\x1b", "pipeline.stages=64", "tile.block=[128,192,64] tile.warp=[64,8,64]"}) {
    measure(spec, bad);
    EXPECT_EQ(chosen(spec).origin, Origin::model) << bad;
  }
  EXPECT_EQ(remarks(), Names(8, "tuning_refused"));
  EXPECT_FALSE(diags.hasErrors());
}

TEST_F(ChooseTest, ABrokenDatabaseBreaksNothing) {
  Spec spec = read(cube);
  EXPECT_EQ(chosen(spec).origin, Origin::model); // named, but not there
  folder.write("tuning.db", std::string(10000, 'x'));
  EXPECT_EQ(chosen(spec).origin, Origin::model);
  options.database = folder.file("");
  EXPECT_EQ(chosen(spec).origin, Origin::model);
  EXPECT_EQ(remarks(), Names(3, "tuning_ignored"));
  EXPECT_FALSE(diags.hasErrors());
}

TEST_F(ChooseTest, ErrorsOfTheSpecAreReportedOnce) {
  Spec spec = read(cube + "tile: {block: [128, 999, 64]}\n");
  EXPECT_FALSE(choose(spec, options, diags));
  EXPECT_TRUE(diags.hasErrors());
}

TEST_F(ChooseTest, WholeChoicesPlanToTheSameKernel) {
  Spec spec = read(cube + "raster: {group: 4}\n");
  std::string whole = wholeChoice(spec, tile);
  EXPECT_NE(whole.find("tile.block=[128,192,64]"), std::string::npos) << whole;
  EXPECT_NE(whole.find("pipeline.stages="), std::string::npos) << whole;
  EXPECT_EQ(whole.find("raster.group"), std::string::npos) << "that is given: " << whole;
  measure(spec, whole);
  Chosen result = chosen(spec);
  Spec with = spec;
  applyChoice(with, tile, diags);
  EXPECT_EQ(printSpec(result.plan.spec, false), printSpec(makePlan(with, diags)->spec, false));
  EXPECT_EQ(result.origin, Origin::database);
  // The planner's own choice, for all kinds of kernels.
  for (const char *more : {"target: sm_80\n", "d: {layout: col}\n", "a: {type: f64}\n", "beta: 1\n", ""}) {
    Spec each = read(cube + more);
    EXPECT_NE(wholeChoice(each, "").find("tile.block="), std::string::npos) << more;
    Spec again = each;
    ASSERT_TRUE(applyChoice(again, wholeChoice(each, ""), diags));
    EXPECT_EQ(printSpec(makePlan(again, diags)->spec, false), printSpec(makePlan(each, diags)->spec, false)) << more;
  }
}
