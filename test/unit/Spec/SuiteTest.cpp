#include "gemmc/Spec/Suite.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <map>

using namespace gemmc;
using llvm::StringRef;

namespace {
struct SuiteReading {
  Diags diags;
  std::optional<std::vector<SuiteProblem>> suite;
  explicit SuiteReading(StringRef text, std::vector<Override> overrides = {}) {
    suite = readSuite(diags.addSource("s", text), overrides, diags);
    EXPECT_EQ(suite.has_value(), !diags.hasErrors());
  }
  std::vector<std::string> problems() const {
    std::vector<std::string> list;
    for (const Problem &problem : diags.all())
      list.push_back((nameOf(problem.id) + " " + diags.place(problem.range.Start)).str());
    return list;
  }
};
using Texts = std::vector<std::string>;
constexpr const char *two = "defaults: {a: {type: f16, layout: col}, target: sm_90a}\n"
                            "problems:\n"
                            "  - {name: one, class: small, problem: {m: 1, n: 2, k: 3}}\n"
                            "  - class: large\n"
                            "    problem: {m: 4, n: 5, k: 6}\n"
                            "    a: {layout: row}\n";
} // namespace

TEST(Suite, EntriesAreSpecsOverDefaults) {
  SuiteReading reading(two);
  ASSERT_TRUE(reading.suite) << reading.problems().front();
  ASSERT_EQ(reading.suite->size(), 2u);
  const SuiteProblem &one = (*reading.suite)[0], &other = (*reading.suite)[1];
  EXPECT_EQ(*one.spec.name, "one");
  EXPECT_EQ(one.group, "small");
  EXPECT_EQ(one.spec.n.value.fixed, 2);
  EXPECT_EQ(*one.spec.a.layout, Order::col);
  EXPECT_EQ(*other.spec.name, "problem_2");
  EXPECT_EQ(*other.spec.a.layout, Order::row);
  EXPECT_EQ(*other.spec.a.type, Elem::f16);
  SuiteReading with(two, {{"a.type", "bf16"}});
  EXPECT_EQ(*(*with.suite)[1].spec.a.type, Elem::bf16);
}

TEST(Suite, IsKnownByItsKey) {
  EXPECT_TRUE(isSuite(two));
  EXPECT_TRUE(isSuite("problems: []"));
  for (const char *text : {"\xEF\xBB\xBFproblems: []", "\"problems\" : []", "# one\n'problems': []", "{problems: []}",
                           "{ \"problems\": []}"})
    EXPECT_TRUE(isSuite(text)) << text;
  for (const char *text : {"problems", "problem: {}\n", "{problem: {m: 1}}", " problems: []", "\"problems: []"})
    EXPECT_FALSE(isSuite(text)) << text;
  EXPECT_FALSE(isSuite("problem: {m: 1, n: 1, k: 1} # problems: no\n"));
}

TEST(Suite, ProblemsAreNamedAtTheirPlace) {
  EXPECT_EQ(SuiteReading("- 1\n").problems(), Texts{"spec_expected_map s:1:1"});
  EXPECT_EQ(SuiteReading("problems: []\n").problems(), Texts{"suite_empty s:1:11"});
  EXPECT_EQ(SuiteReading("defaults: {}\n").problems(), Texts{"suite_empty s:1:1"});
  EXPECT_EQ(SuiteReading("problems: [4]\n").problems(), Texts{"spec_expected_map s:1:12"});
  EXPECT_EQ(SuiteReading("defaults: 4\nproblems:\n  - {problem: {m: 1, n: 1, k: 1}}\n").problems(),
            Texts{"spec_expected_map s:1:11"});
  EXPECT_EQ(SuiteReading("extra: 1\nproblems:\n  - {problem: {m: 1, n: 1, k: 1}}\n").problems(),
            Texts{"spec_unknown_key s:1:1"});
  EXPECT_EQ(SuiteReading("problems:\n  - {problem: {m: 1, n: 1}}\n").problems(), Texts{"spec_missing_field s:2:6"});
  EXPECT_EQ(SuiteReading("problems:\n  - {name: x}\n").problems(), Texts{"spec_missing_section s:2:5"});
  EXPECT_EQ(SuiteReading("problems:\n  - {clas: x, problem: {m: 1, n: 1, k: 1}}\n").problems(),
            Texts{"spec_unknown_key_near s:2:6"});
  EXPECT_EQ(SuiteReading("problems:\n  - {class: [x], problem: {m: 1, n: 1, k: 1}}\n").problems(),
            Texts{"spec_expected_value s:2:13"});
  EXPECT_EQ(SuiteReading("problems:\n  - {name: x, problem: {m: 1, n: 1, k: 1}}\n"
                         "  - {name: x, problem: {m: 2, n: 1, k: 1}}\n")
                .problems(),
            Texts{"suite_same_name s:3:5"});
  EXPECT_EQ(SuiteReading("problems:\n  - {problem: {m: 1, n: 1, k: -1}}\n").problems(), Texts{"spec_range s:2:31"});
}

TEST(Suite, DefaultsHaveAClass) {
  SuiteReading reading("defaults: {class: most}\n"
                       "problems:\n"
                       "  - {name: one, problem: {m: 1, n: 1, k: 1}}\n"
                       "  - {name: two, class: few, problem: {m: 1, n: 1, k: 1}}\n");
  ASSERT_TRUE(reading.suite);
  EXPECT_EQ((*reading.suite)[0].group, "most");
  EXPECT_EQ((*reading.suite)[1].group, "few");
  EXPECT_EQ(SuiteReading("defaults: {class: [x]}\nproblems:\n  - {problem: {m: 1, n: 1, k: 1}}\n").problems(),
            Texts{"spec_expected_value s:1:19"});
}

TEST(Suite, Only) {
  SuiteReading reading(two);
  const auto only = [&](std::vector<std::string> texts) {
    Texts names;
    for (const SuiteProblem &each :
         onlyThose(*reading.suite, texts, reading.diags).value_or(std::vector<SuiteProblem>()))
      names.push_back(*each.spec.name);
    return names;
  };
  EXPECT_EQ(only({"larg"}), Texts{"problem_2"});
  EXPECT_EQ(only({"one"}), Texts{"one"});
  EXPECT_EQ(only({"larg", "one"}), (Texts{"one", "problem_2"})); // in the suite's order
  EXPECT_EQ(only({"one", "one"}), Texts{"one"});
  EXPECT_EQ(only({"none", "one"}), Texts{}); // each must be there
  EXPECT_EQ(reading.problems(), Texts{"suite_only "});
}
