// Every row of the instruction table, with every choice of every slot: it prints as it was read, and ptxas takes it on
// the lowest target and PTX version that the table allows.
#include "RowLines.h"
#include "gemmc/Runtime/Ptxas.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace llvm;
using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

namespace {
struct Lines {
  std::vector<std::string> missing;
  std::vector<RowLine> all = allRowLines(missing);
};
const Lines &lines() {
  static const Lines one;
  return one;
}

TEST(Rows, EveryChoiceHasALine) {
  std::set<Op> rows;
  for (const RowLine &line : lines().all) {
    rows.insert(line.op);
    EXPECT_NE(line.version, 0u) << line.text;
  }
  EXPECT_EQ(rows.size(), numOps);
  for (const std::string &name : lines().missing)
    ADD_FAILURE() << "no valid instruction found for " << name;
}

TEST(Rows, RoundTrip) {
  for (const RowLine &line : lines().all) {
    Diags diags;
    auto first = parseOrFail(diags.addSource("first", moduleOf({line.text}, line.target, line.version)), diags);
    ASSERT_TRUE(first);
    std::string printed = print(*first);
    auto second = parseOrFail(diags.addSource("second", printed), diags);
    ASSERT_TRUE(second) << printed;
    EXPECT_EQ(print(*second), printed);
    auto instructionOf = [&](const Module &module) -> const Inst & {
      auto isIt = [&](const Stmt &one) { return one.kind == Stmt::Instruction && one.inst.op == line.op; };
      return find_if(module.find("k0")->body, isIt)->inst;
    };
    const Inst &inst = instructionOf(*first);
    EXPECT_EQ(nameOf(inst.op), nameOf(line.op)) << line.text;
    EXPECT_EQ(instructionOf(*second).mods, inst.mods) << line.text;
    EXPECT_NE(printed.find(inst.mnemonic()), std::string::npos);
  }
}

TEST(Rows, RowsAreSorted) {
  EXPECT_EQ(rowsWithRoot("wgmma").size(), 15u);
  EXPECT_TRUE(rowsWithRoot("frobnicate").empty());
  for (unsigned i = 0; i < numOps; ++i)
    EXPECT_TRUE(is_contained(rowsWithRoot(rowOf(static_cast<Op>(i)).root), static_cast<Op>(i)));
}

/// The errors of ptxas, each with the line that it is about.
std::string explain(StringRef said, StringRef text) {
  SmallVector<StringRef, 64> lines, problems;
  text.split(lines, '\n');
  said.split(problems, '\n');
  std::string all;
  for (StringRef problem : problems) {
    if (!problem.contains("error") && !problem.contains("fatal"))
      continue;
    unsigned number = 0;
    StringRef rest = problem.split("line ").second;
    if (!rest.consumeInteger(10, number) && number && number <= lines.size())
      all += lines[number - 1].str() + "\n  ";
    all += problem.str() + "\n";
  }
  return all;
}

TEST(Rows, PtxasTakesThem) {
  if (!findPtxas())
    GTEST_SKIP() << "no ptxas here: nothing judges the rows of the instruction table";
  std::map<std::pair<std::string, unsigned>, std::vector<std::string>> groups;
  for (const RowLine &line : lines().all)
    groups[{line.target, line.version}].push_back(line.text);
  for (const auto &[key, group] : groups) {
    std::string text = moduleOf(group, key.first, key.second);
    auto result = assemblePtx(text);
    if (!result)
      ADD_FAILURE() << key.first << ", PTX " << key.second << ":\n" << explain(result.failure().str(), text);
  }
}
} // namespace
