#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace gemmc;
using llvm::StringRef;

namespace {
/// `{a: 1, b: ["x", ~]}`: a quoted scalar in quotes, an empty value as `~`.
std::string dump(const YamlNode &node) {
  std::vector<std::string> parts;
  switch (node.kind) {
  case YamlNode::Null:
    return "~";
  case YamlNode::Scalar:
    return node.quoted ? llvm::formatv("\"{0}\"", node.text).str() : node.text;
  case YamlNode::List:
    for (const YamlNode &item : node.items)
      parts.push_back(dump(item));
    return llvm::formatv("[{0}]", llvm::join(parts, ", "));
  case YamlNode::Map:
    for (const auto &[key, value] : node.entries)
      parts.push_back(dump(key) + ": " + dump(value));
    return llvm::formatv("{{{0}}", llvm::join(parts, ", "));
  }
  return "";
}

std::string read(StringRef text) {
  Diags diags;
  auto node = parseYaml(diags.addSource("t", text), diags);
  EXPECT_EQ(node.has_value(), !diags.hasErrors());
  return node ? dump(*node) : diags.all().front().message;
}

/// Name and place of the first problem: `yaml_tab t:1:1`.
std::string problem(StringRef text) {
  Diags diags;
  auto node = parseYaml(diags.addSource("t", text), diags);
  EXPECT_FALSE(node.has_value());
  if (diags.all().empty())
    return "none";
  const Problem &first = diags.all().front();
  return (nameOf(first.id) + " " + diags.place(first.range.Start)).str();
}
std::string repeat(StringRef piece, unsigned count) {
  std::string text;
  while (count--)
    text += piece;
  return text;
}

// Each text means what YAML 1.2 says it means.
TEST(Yaml, ReadsTheSubset) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "~"},
      {"# only a comment", "~"},
      {"--- # one document\na: 1\n", "{a: 1}"},
      {"\xef\xbb\xbf"
       "a: 1",
       "{a: 1}"},
      {"a: 1\r\nb:\r\n  c: 2\r\n", "{a: 1, b: {c: 2}}"},
      {"word", "word"},
      {"a:\nb: # nothing\n", "{a: ~, b: ~}"},
      {"a: x, y {z} # comment", "{a: x, y {z}}"},
      {"a: x#y http://z", "{a: x#y http://z}"},
      {"a: 'it''s' \nb: \"\\x41\\u00e4\\U0001F600\\t\\\"\\\\\"", "{a: \"it's\", b: \"A\u00e4\U0001F600\t\"\\\"}"},
      {"\"a\": -1\n'b' : -x\n", "{\"a\": -1, \"b\": -x}"},
      {"- 1\n-\n- - 2\n  - 3\n- a: 4\n  b: 5\n-\n  6\n", "[1, ~, [2, 3], {a: 4, b: 5}, 6]"},
      {"a:\n- 1\n- 2\nb:\n  - 3\n", "{a: [1, 2], b: [3]}"},
      {"{a: 1, b: [2, [3], {}], \"c\":4, d: , e:\n # x\n 5,}", "{a: 1, b: [2, [3], {}], \"c\": 4, d: ~, e: 5}"},
      {"a: [\n1,\n  2\n]\nb: 3", "{a: [1, 2], b: 3}"},
      {"a:\tb\t# tab between values\n\t\n", "{a: b}"},
      {"  a: 1\n  b: 2\n", "{a: 1, b: 2}"},
  };
  for (auto [text, meaning] : cases)
    EXPECT_EQ(read(text), meaning) << text;
}

TEST(Yaml, RefusesWithNameAndPlace) {
  const std::pair<std::string, const char *> cases[] = {
      {std::string("a: 1\n\0b", 7), "yaml_control t:2:1"},
      {"a: \x1b[31m", "yaml_control t:1:4"},
      {"a: \xc2\x9b", "yaml_control t:1:4"},
      {"a: 1\rb: 2", "yaml_control t:1:5"},
      {"a: \xff", "yaml_utf8 t:1:4"},
      {"a: \xc3", "yaml_utf8 t:1:4"},
      {"a: \xed\xa0\x80", "yaml_utf8 t:1:4"},
      {"a: \xc0\xaf", "yaml_utf8 t:1:4"},
      {std::string(1 << 20, '\n') + " ", "yaml_too_large t:1:1"},
      {"a: 1\n#" + std::string(20000, 'x'), "yaml_line_long t:2:1"},
      {"a: " + std::string(5000, 'x'), "yaml_scalar_long t:1:4"},
      {"a: \"" + std::string(5000, 'x') + '"', "yaml_scalar_long t:1:4"},
      {std::string(17, '['), "yaml_too_deep t:1:17"},
      {repeat("{a: ", 17), "yaml_too_deep t:1:65"},
      {repeat("- ", 17) + "x", "yaml_too_deep t:1:33"},
      {repeat("[\n", 9000), "yaml_too_deep t:17:1"},
      {repeat("- x\n", 10001), "yaml_too_many t:10000:3"},
      {repeat("a: 1\n", 50), "yaml_duplicate_key t:2:1"},
      {"{b: 1, b: 2}", "yaml_duplicate_key t:1:8"},
      {"a: &x 1", "yaml_anchor t:1:4"},
      {"&x\n- *x", "yaml_anchor t:1:1"},
      {"a: [*x]", "yaml_alias t:1:5"},
      {"a: !!int 1", "yaml_tag t:1:4"},
      {"a:\n  <<: {b: 1}", "yaml_merge t:2:3"},
      {"%YAML 1.2\n---\na: 1", "yaml_directive t:1:1"},
      {"a: 1\n---\nb: 2", "yaml_documents t:2:1"},
      {"a: 1\n...\n", "yaml_documents t:2:1"},
      {"---\n---\n", "yaml_documents t:2:1"},
      {"? a\n: 1", "yaml_complex_key t:1:1"},
      {"[a]: 1", "yaml_complex_key t:1:1"},
      {"{[a]: 1}", "yaml_complex_key t:1:2"},
      {"a: |\n  x", "yaml_block_scalar t:1:4"},
      {"a: >-\n  x", "yaml_block_scalar t:1:4"},
      {"a: @x", "yaml_bad_start t:1:4"},
      {"a: 1\n- 2", "yaml_bad_start t:2:1"},
      {"a: 1\nb", "yaml_expected_colon t:2:2"},
      {"{a, b}", "yaml_expected_colon t:1:3"},
      {"{a:1}", "yaml_expected_colon t:1:5"},
      {"a: b: c", "yaml_second_colon t:1:5"},
      {"a: - 1", "yaml_list_inline t:1:4"},
      {"a: [1] 2", "yaml_after_value t:1:8"},
      {"a: [1]]", "yaml_after_value t:1:7"},
      {"a: \"x\"y", "yaml_after_value t:1:7"},
      {"a:\n  b: 1\n c: 2", "yaml_indent t:3:2"},
      {"a: 1\n  continued", "yaml_indent t:2:3"},
      {"- a\nb: 1", "yaml_trailing t:2:1"},
      {"  a: 1\nb: 2", "yaml_trailing t:2:1"},
      {"\ta: 1", "yaml_tab t:1:1"},
      {"a:\n  \tb: 1", "yaml_tab t:2:3"},
      {"[1,,2]", "yaml_missing_value t:1:4"},
      {"[,]", "yaml_missing_value t:1:2"},
      {"a: ]", "yaml_missing_value t:1:4"},
      {"[1 2\n3]", "yaml_expected_separator t:2:1"},
      {"[1}", "yaml_expected_separator t:1:3"},
      {"{a: 1 b: 2}", "yaml_expected_separator t:1:8"},
      {"a: [1,\n", "yaml_unclosed t:1:4"},
      {"a: {", "yaml_unclosed t:1:4"},
      {"a: 'x\n'", "yaml_quote_unclosed t:1:4"},
      {"a: \"x\\\"", "yaml_quote_unclosed t:1:4"},
      {"a: \"\\q\"", "yaml_escape t:1:5"},
      {"a: \"\\x1b\"", "yaml_escape t:1:5"},
      {"a: \"\\ud800\"", "yaml_escape t:1:5"},
      {"a: \"\\u12", "yaml_escape t:1:5"},
      {"a: \"\\", "yaml_escape t:1:5"},
  };
  for (const auto &[text, expected] : cases)
    EXPECT_EQ(problem(text), expected) << StringRef(text).take_front(80).str();
}

// A file of nothing but mistakes ends after 20 of them.
TEST(Yaml, StopsAfterManyProblems) {
  Diags diags;
  parseYaml(diags.addSource("t", repeat("a: 1\n", 50)), diags);
  EXPECT_EQ(diags.numErrors(), 21u);
  EXPECT_EQ(diags.all().back().id, Diag::too_many_problems);
  ASSERT_EQ(diags.all().front().notes.size(), 1u);
  EXPECT_EQ(diags.place(diags.all().front().notes[0].range.Start), "t:1:1");
}

// A node's range is its text in the file, from the first to the last character.
TEST(Yaml, RangesCoverTheText) {
  Diags diags;
  StringRef text = diags.addSource("t", "a: 'x' # c\nb:\n  - [1, 2]\n  - c: 3 \nd:\n");
  auto root = parseYaml(text, diags);
  ASSERT_TRUE(root);
  auto textOf = [](const YamlNode *node) {
    return std::string(node->range.Start.getPointer(), node->range.End.getPointer());
  };
  EXPECT_EQ(textOf(root->find("a")), "'x'");
  EXPECT_EQ(textOf(root->find("b")), "- [1, 2]\n  - c: 3");
  EXPECT_EQ(textOf(&root->find("b")->items[0]), "[1, 2]");
  EXPECT_EQ(textOf(&root->find("b")->items[1]), "c: 3");
  EXPECT_EQ(textOf(root->find("d")), "");
  EXPECT_EQ(diags.place(root->find("d")->range.Start), "t:5:3");
  EXPECT_EQ(root->find("e"), nullptr);
}

TEST(Nearest, FindsTypingErrors) {
  const StringRef known[] = {"sm_80", "sm_90a", "row", "col", "tile", "dynamic", "m", "auto"};
  const std::pair<const char *, const char *> cases[] = {
      {"rwo", "row"},
      {"ROW", "row"},
      {"row_major", "row"},
      {"tyle", "tile"},
      {"sm_90", "sm_90a"},
      {"dynamc", "dynamic"},
      {"atuo", "auto"},
      {"M", "m"},
      {"x", ""},
      {"swizzle", ""},
      {"", ""},
  };
  for (auto [word, expected] : cases)
    EXPECT_EQ(nearest(word, known), expected) << word;
  EXPECT_EQ(nearest(repeat("row", 1000), known), "");
}
} // namespace
