#include "gemmc/Spec/Spec.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace gemmc;
using llvm::StringRef;

namespace {
const char *complete = R"(
name: my_gemm            # the kernel
target: sm_90a
problem: {m: 4096, n: dynamic, k: 0}
a: {type: bf16, layout: row, ld: 8192, align: 16}
b: {type: e4m3, layout: col, ld: dynamic, align: 1}
c: {type: f32, layout: row, ld: 1073741824, align: 128}
d: {type: f16, layout: col, ld: 1, align: 2}
accumulator: f32
alpha: -2.5e-3
bit_operation: xor
beta: dynamic
tile: {block: [128, 256, 64], warp: [64, 256, 64], cluster: [2, 1, 1], instruction: [64, 256, 16]}
fragments: {a: lds, b: ldmatrix, buffers: 2, order: snake}
instruction: wgmma
copy: tma
pipeline: {stages: 4, schedule: pingpong}
swizzle: 128B
raster: {order: along_n, group: 8, persistent: on}
epilogue: {store: staged}
swap_operands: false
)";
const char *smallest = "problem: {m: 1, n: 2, k: 3}\n";

struct Reading {
  Diags diags;
  std::optional<Spec> spec;
  explicit Reading(StringRef text, std::vector<Override> overrides = {}) {
    spec = readSpec(diags.addSource("t", text), overrides, diags, "base");
    EXPECT_EQ(spec.has_value(), !diags.hasErrors());
  }
  /// `name place`, one a problem, in the order they were found.
  std::vector<std::string> problems() const {
    std::vector<std::string> list;
    for (const Problem &problem : diags.all())
      list.push_back((nameOf(problem.id) + " " + diags.place(problem.range.Start)).str());
    return list;
  }
};

TEST(Spec, ReadsEveryField) {
  Reading reading(complete);
  ASSERT_TRUE(reading.spec) << reading.problems()[0];
  const Spec &spec = *reading.spec;
  EXPECT_EQ(*spec.name, "my_gemm");
  EXPECT_EQ(*spec.target, Target::sm_90a);
  EXPECT_EQ(spec.m.value.fixed, 4096);
  EXPECT_TRUE(spec.n.value.dynamic());
  EXPECT_EQ(spec.k.value.fixed, 0);
  EXPECT_EQ(*spec.a.type, Elem::bf16);
  EXPECT_EQ(*spec.b.type, Elem::e4m3);
  EXPECT_EQ(*spec.d.layout, Order::col);
  EXPECT_EQ(*spec.bitOperation, BitOperation::xor_);
  EXPECT_EQ((*spec.matrixShape)[1], 256);
  EXPECT_EQ(*spec.fragmentsA, FragmentLoad::lds);
  EXPECT_EQ(*spec.fragmentsB, FragmentLoad::ldmatrix);
  EXPECT_EQ(*spec.fragmentBuffers, 2);
  EXPECT_EQ(*spec.fragmentOrder, FragmentOrder::snake);
  EXPECT_EQ(spec.a.ld.value.fixed, 8192);
  EXPECT_TRUE(spec.b.ld.value.dynamic());
  EXPECT_EQ(spec.c.ld.value.fixed, int64_t(1) << 30);
  EXPECT_EQ(*spec.c.align, 128u);
  EXPECT_EQ(*spec.accumulator, Elem::f32);
  EXPECT_EQ(spec.alpha.value.fixed, -0.0025);
  EXPECT_TRUE(spec.beta.value.dynamic());
  EXPECT_EQ(*spec.block, (std::array<int64_t, 3>{128, 256, 64}));
  EXPECT_EQ(*spec.warp, (std::array<int64_t, 3>{64, 256, 64}));
  EXPECT_EQ(*spec.cluster, (std::array<int64_t, 3>{2, 1, 1}));
  EXPECT_EQ(*spec.instruction, Instruction::wgmma);
  EXPECT_EQ(*spec.copy, CopyKind::tma);
  EXPECT_EQ(*spec.stages, 4);
  EXPECT_EQ(*spec.schedule, Schedule::pingpong);
  EXPECT_EQ(*spec.swizzle, Swizzle::b128);
  EXPECT_EQ(*spec.rasterOrder, RasterOrder::along_n);
  EXPECT_EQ(*spec.rasterGroup, 8);
  EXPECT_EQ(*spec.persistent, Persistence::on);
  EXPECT_EQ(*spec.store, StoreKind::staged);
  EXPECT_EQ(*spec.swapOperands, Persistence::off);
  EXPECT_TRUE(spec.swapOperands.given);
  EXPECT_EQ(reading.diags.place(spec.block.range.Start), "t:13:15");
}

TEST(Spec, OnlyTheProblemIsRequired) {
  Reading reading(smallest);
  ASSERT_TRUE(reading.spec);
  EXPECT_EQ(*reading.spec->name, "base");
  EXPECT_FALSE(reading.spec->name.given);
  EXPECT_FALSE(reading.spec->target.given);
  EXPECT_FALSE(reading.spec->block.given);
}

// What is printed reads back to the same text; with reasons, too, and then every field is given.
TEST(Spec, PrintRoundTrip) {
  Reading first(complete);
  ASSERT_TRUE(first.spec);
  std::string text = printSpec(*first.spec, false);
  Reading second(text);
  ASSERT_TRUE(second.spec);
  EXPECT_EQ(printSpec(*second.spec, false), text);
  EXPECT_NE(text.find("tile: {block: [128, 256, 64], warp: [64, 256, 64], cluster: [2, 1, 1], instruction: [64, "
                      "256, 16]}\n"),
            std::string::npos);
  EXPECT_NE(text.find("alpha: -0.0025\n"), std::string::npos);

  Reading open(smallest);
  open.spec->stages.decide(3, "as many as fit:\n3 x 64 KiB");
  Reading decided(printSpec(*open.spec, true));
  ASSERT_TRUE(decided.spec);
  EXPECT_EQ(*decided.spec->stages, 3);
  EXPECT_TRUE(decided.spec->stages.given);
  EXPECT_FALSE(decided.spec->schedule.given); // was printed as auto
  EXPECT_EQ(*decided.spec->name, "base");
}

TEST(Spec, ReasonsAreComments) {
  Reading reading(smallest);
  reading.spec->stages.decide(3, "as many as fit");
  std::string text = printSpec(*reading.spec, true);
  EXPECT_NE(text.find("pipeline:\n  stages: 3  # as many as fit\n  schedule: auto\n"), std::string::npos) << text;
  EXPECT_EQ(printSpec(*reading.spec, false).find('#'), std::string::npos);
}

TEST(Spec, OverridesTakeThePlaceOfTheFile) {
  Reading reading(complete, {{"tile.block", "[64,128,32]"},
                             {"problem.k", "17"},
                             {"copy", "auto"},
                             {"pipeline", "{stages: 2, schedule: auto}"},
                             {"pipeline.stages", "5"}});
  ASSERT_TRUE(reading.spec) << reading.problems()[0];
  EXPECT_EQ(*reading.spec->block, (std::array<int64_t, 3>{64, 128, 32}));
  EXPECT_EQ(reading.diags.place(reading.spec->block.range.Start), "--set:1:12");
  EXPECT_EQ(reading.spec->k.value.fixed, 17);
  EXPECT_FALSE(reading.spec->copy.given);
  EXPECT_FALSE(reading.spec->schedule.given);
  EXPECT_EQ(*reading.spec->stages, 5);
}

// An override may give what the file lacks.
TEST(Spec, OverridesCanBeTheProblem) {
  Reading reading("", {{"problem.m", "1"}, {"problem.n", "2"}, {"problem.k", "dynamic"}});
  EXPECT_TRUE(reading.spec) << reading.problems()[0];
}

TEST(Spec, BadOverridesAreLocatedInThem) {
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {"tile.blok", "1", "spec_unknown_key_near --set:1:6"},  {"x.y", "1", "spec_unknown_key --set:1:1"},
      {"stages", "1", "spec_key_elsewhere --set:1:1"},        {"tile.block", "[1,2,x]", "spec_word --set:1:17"},
      {"tile.block", "[1,2", "yaml_unclosed --set:1:12"},     {"tile.block", "", "spec_missing_value --set:1:12"},
      {"tile", "1", "spec_expected_map --set:1:6"},           {"name", "a: b", "spec_expected_value --set:1:6"},
      {"problem.m", "auto", "spec_required_auto --set:1:11"}, {"problem.m", "1\n---\n2", "yaml_documents --set:2:1"},
  };
  for (auto [path, value, expected] : cases)
    EXPECT_EQ(Reading(smallest, {{path, value}}).problems(), std::vector<std::string>{expected})
        << path << '=' << value;
}

TEST(Spec, OverrideSyntax) {
  Diags diags;
  auto good = parseOverride("a.b=c=d", diags);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->path, "a.b");
  EXPECT_EQ(good->value, "c=d");
  EXPECT_FALSE(parseOverride("tile.block", diags));
  EXPECT_FALSE(parseOverride("=1", diags));
  EXPECT_EQ(diags.numErrors(), 2u);
  EXPECT_EQ(diags.all()[0].id, Diag::spec_set_syntax);
}

// One line of a spec, after a good problem, and its one problem.
TEST(Spec, RefusesWithNameAndPlace) {
  const std::pair<const char *, const char *> cases[] = {
      {"tyle: {}", "spec_unknown_key_near t:2:1"},
      {"foo: 1", "spec_unknown_key t:2:1"},
      {"block: [1, 1, 1]", "spec_key_elsewhere t:2:1"},
      {"a: {target: sm_80}", "spec_key_elsewhere t:2:5"},
      {"tile.block: [1, 1, 1]", "spec_dotted_key t:2:1"},
      {"a: {tpye: f16}", "spec_unknown_key_near t:2:5"},
      {"a: bf16", "spec_expected_map t:2:4"},
      {"a: []", "spec_expected_map t:2:4"},
      {"target:", "spec_missing_value t:2:8"},
      {"target: {}", "spec_expected_value t:2:9"},
      {"target: sm_90", "spec_word_near t:2:9"},
      {"target: cpu", "spec_word t:2:9"},
      {"raster: {persistent: yes}", "spec_word_near t:2:22"},
      {"name: NO", "spec_name t:2:7"},
      {"name: ''", "spec_name t:2:7"},
      {"name: __x", "spec_name t:2:7"},
      {"name: ../x", "spec_name t:2:7"},
      {"name: \"k(.param .u64 p){ ret; }\"", "spec_name t:2:7"},
      {"name: wgmma", "spec_name_reserved t:2:7"},
      {"a: {ld: 010}", "spec_integer t:2:9"},
      {"a: {ld: 1_000}", "spec_integer t:2:9"},
      {"a: {ld: 1e3}", "spec_integer t:2:9"},
      {"a: {ld: 0x10}", "spec_integer t:2:9"},
      {"a: {ld: 12abc}", "spec_integer t:2:9"},
      {"a: {ld: +5}", "spec_integer t:2:9"},
      {"a: {ld: 4.0}", "spec_integer t:2:9"},
      {"a: {ld: '5'}", "spec_quoted_number t:2:9"},
      {"a: {ld: 0}", "spec_range t:2:9"},
      {"a: {ld: -1}", "spec_range t:2:9"},
      {"a: {ld: 1099511627777}", "spec_range t:2:9"},
      {"a: {ld: 99999999999999999999}", "spec_range t:2:9"},
      {"a: {ld: dynamc}", "spec_word_near t:2:9"},
      {"a: {align: 12}", "spec_power t:2:12"},
      {"a: {align: 256}", "spec_range t:2:12"},
      {"tile: {block: 128}", "spec_triple t:2:15"},
      {"tile: {block: [1, 2]}", "spec_triple t:2:15"},
      {"tile: {block: [1, 2, 3, 4]}", "spec_triple t:2:15"},
      {"tile: {block: [1, [2], 3]}", "spec_triple t:2:19"},
      {"tile: {block: [1, 2, 0]}", "spec_range t:2:22"},
      {"tile: {block: auot}", "spec_word_near t:2:15"},
      {"alpha: .nan", "spec_scale_finite t:2:8"},
      {"alpha: -Inf", "spec_scale_finite t:2:8"},
      {"alpha: 1e400", "spec_scale_range t:2:8"},
      {"alpha: 1e39", "spec_scale_range t:2:8"},
      {"alpha: 1e-40", "spec_scale_range t:2:8"},
      {"alpha: 01", "spec_scale t:2:8"},
      {"alpha: 1.", "spec_scale t:2:8"},
      {"alpha: .5", "spec_scale t:2:8"},
      {"alpha: 1e", "spec_scale t:2:8"},
      {"alpha: '1'", "spec_quoted_number t:2:8"},
      {"alpha: one", "spec_word t:2:8"},
  };
  for (auto [line, expected] : cases)
    EXPECT_EQ(Reading(std::string(smallest) + line).problems(), std::vector<std::string>{expected}) << line;
}

TEST(Spec, MissingParts) {
  using List = std::vector<std::string>;
  EXPECT_EQ(Reading("").problems(), List{"spec_missing_section t:1:1"});
  EXPECT_EQ(Reading("target: sm_80").problems(), List{"spec_missing_section t:1:1"});
  EXPECT_EQ(Reading("problem: {m: 1, n: 1}").problems(), List{"spec_missing_field t:1:1"});
  EXPECT_EQ(Reading("problem:").problems().size(), 3u);
  EXPECT_EQ(Reading("problem: {m: 1, n: 1, k: x}").problems(), List{"spec_word t:1:26"});
  // What was misspelt is not missing as well.
  EXPECT_EQ(Reading("probelm: {m: 1, n: 1, k: 1}").problems(), List{"spec_unknown_key_near t:1:1"});
  EXPECT_EQ(Reading("problem: {M: 1, n: 1, k: 1}").problems(), List{"spec_unknown_key_near t:1:11"});
  EXPECT_EQ(Reading("problem: 3").problems(), List{"spec_expected_map t:1:10"});
  EXPECT_EQ(Reading("[1, 2]").problems(), List{"spec_expected_map t:1:1"});
}

TEST(Spec, AllProblemsAtOnceButNotMoreThanTwenty) {
  EXPECT_EQ(Reading("target: x\nproblem: {m: -1, n: 1.0}\ntile: {blok: 1}\n").problems().size(), 5u);
  std::string many = smallest;
  for (int i = 0; i < 4000; ++i)
    many += "unknown_key_" + std::to_string(i) + ":\n";
  EXPECT_EQ(Reading(many).problems().size(), 21u);
}

TEST(Spec, MatricesMustBeAddressable) {
  EXPECT_EQ(Reading("problem: {m: 17592186044416, n: 1, k: 1}").problems(),
            std::vector<std::string>{"spec_range t:1:14"});                              // 2^44
  EXPECT_EQ(Reading("problem: {m: 1099511627776, n: 17, k: 16}").problems().size(), 2u); // c and d
  EXPECT_TRUE(Reading("problem: {m: 1099511627776, n: 16, k: 16}").spec);
  EXPECT_EQ(Reading("problem: {m: 17, n: 1, k: 1}\na: {ld: 1099511627776}").problems(),
            std::vector<std::string>{"spec_too_large t:1:14"});
}

// Each fix-it, applied, gets the spec past its problem.
TEST(Spec, FixItsFix) {
  const char *lines[] = {"tyle: {}",       "target: sm_90", "a: {layout: rwo}", "a: {ld: 1_000}",
                         "a: {ld: +5}",    "a: {ld: 4.0}",  "a: {ld: '5'}",     "raster: {persistent: yes}",
                         "alpha: .inf",    "alpha: '1'",    "beta: dynmic",     "swizzle: 128",
                         "a: {tpye: f16}", "copy: TMA"};
  for (const char *line : lines) {
    Reading before(std::string(smallest) + line);
    ASSERT_EQ(before.diags.all().size(), 1u) << line;
    ASSERT_EQ(before.diags.all()[0].fixes.size(), 1u) << line;
    const llvm::SMFixIt &fix = before.diags.all()[0].fixes[0];
    // The line up to the place, the replacement, the rest.
    std::string whole = std::string(smallest) + line;
    auto [column, length] = std::pair(std::stoul(before.diags.place(fix.getRange().Start).substr(4)) - 1,
                                      size_t(fix.getRange().End.getPointer() - fix.getRange().Start.getPointer()));
    whole.replace(StringRef(smallest).size() + column, length, fix.getText().str());
    EXPECT_TRUE(Reading(whole).spec) << whole;
  }
}

TEST(Spec, NamesFromFileNames) {
  const std::pair<const char *, const char *> cases[] = {
      {"my-Gemm.v2", "my_gemm_v2"}, {"4096", "gemm_4096"}, {"add", "gemm_add"}, {"", "gemm_"}, {"auto", "gemm_auto"}};
  for (auto [base, expected] : cases) {
    Diags diags;
    auto spec = readSpec(diags.addSource("t", smallest), {}, diags, base);
    ASSERT_TRUE(spec);
    EXPECT_EQ(*spec->name, expected);
  }
}

TEST(Spec, SchemaIsJsonAndClosed) {
  auto schema = llvm::json::parse(specJsonSchema());
  ASSERT_TRUE(bool(schema));
  const llvm::json::Object &root = *schema->getAsObject();
  EXPECT_EQ(root.getBoolean("additionalProperties"), false);
  const auto *required = root.getArray("required");
  ASSERT_TRUE(required);
  EXPECT_EQ(*required, llvm::json::Array{"problem"});
  const auto *stages =
      root.getObject("properties")->getObject("pipeline")->getObject("properties")->getObject("stages");
  ASSERT_TRUE(stages);
  EXPECT_EQ((*stages->getArray("anyOf"))[0].getAsObject()->getInteger("maximum"), 64);
}
} // namespace
