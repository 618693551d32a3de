// Every row of the instruction table, with every choice of every slot: it prints as it was read, and ptxas takes it on the
// lowest target and PTX version that the table allows.
#include "RowLines.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
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
    const Inst &inst = first->functions[0].body[0].inst;
    EXPECT_EQ(nameOf(inst.op), nameOf(line.op)) << line.text;
    EXPECT_EQ(second->functions[0].body[0].inst.mods, inst.mods) << line.text;
    EXPECT_NE(printed.find(inst.mnemonic()), std::string::npos);
  }
}

TEST(Rows, RowsAreSorted) {
  EXPECT_EQ(rowsWithRoot("wgmma").size(), 15u);
  EXPECT_TRUE(rowsWithRoot("frobnicate").empty());
  for (unsigned i = 0; i < numOps; ++i)
    EXPECT_TRUE(is_contained(rowsWithRoot(rowOf(static_cast<Op>(i)).root), static_cast<Op>(i)));
}

/// What ptxas says about `text`; empty when it takes it.
std::string assemble(StringRef ptxas, const std::string &text, StringRef target) {
  SmallString<128> input, output;
  sys::fs::createTemporaryFile("rows", "ptx", input);
  sys::fs::createTemporaryFile("rows", "txt", output);
  {
    std::error_code error;
    raw_fd_ostream file(input, error);
    file << text;
  }
  std::string arch = ("-arch=" + target).str();
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(output), StringRef(output)};
  int rc = sys::ExecuteAndWait(ptxas, {ptxas, arch, "-O0", input, "-o", "/dev/null"}, std::nullopt, redirects);
  std::string said;
  if (auto buffer = MemoryBuffer::getFile(output); buffer && rc)
    said = (*buffer)->getBuffer().str();
  if (rc && said.empty())
    said = "ptxas ended with " + std::to_string(rc);
  sys::fs::remove(input);
  sys::fs::remove(output);
  return said;
}

TEST(Rows, PtxasTakesThem) {
  auto ptxas = sys::findProgramByName("ptxas");
  if (!ptxas)
    GTEST_SKIP() << "NOT CHECKED: no ptxas here, so nothing judges the rows of the instruction table";
  std::map<std::pair<std::string, unsigned>, std::vector<std::string>> groups;
  for (const RowLine &line : lines().all)
    groups[{line.target, line.version}].push_back(line.text);
  for (const auto &[key, group] : groups) {
    auto [target, version] = key;
    std::string text = moduleOf(group, target, version);
    std::string said = assemble(*ptxas, text, target);
    if (said.empty())
      continue;
    // Errors name lines of the text: show them.
    SmallVector<StringRef, 64> textLines, problems;
    StringRef(text).split(textLines, '\n');
    StringRef(said).split(problems, '\n', 400, false);
    for (StringRef problem : problems) {
      if (!problem.contains("error") && !problem.contains("fatal"))
        continue;
      unsigned number = 0;
      StringRef rest = problem.split("line ").second;
      if (!rest.consumeInteger(10, number) && number && number <= textLines.size())
        ADD_FAILURE() << target << " PTX " << version << ": " << textLines[number - 1].str() << "\n  " << rest.str();
      else if (!problem.contains("aborted due to errors"))
        ADD_FAILURE() << target << " PTX " << version << ": " << problem.str();
    }
  }
}
} // namespace
