// Measurements as text: what is written is read back; what is wrong is said at its place; and the tables that gemmc
// ships are sound, of this version, and found by their problems.
#include "gemmc/Tune/Entries.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Tune/Choose.h"
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::tune;

namespace {
Tuned entry() {
  Tuned tuned;
  tuned.device = "NVIDIA \"H200\"";
  tuned.problem = "sm_90a 4096x4096x4096 a=bf16:row:4096:16";
  tuned.choice = "tile.block=[128,256,64] raster.group=8";
  tuned.sizes = "4096x4096x4096";
  tuned.seconds = 203.2e-6, tuned.cublasSeconds = 207.5e-6;
  tuned.rounds = 11;
  tuned.date = "2026-11-21";
  return tuned;
}

/// `name place`, one a problem.
std::vector<std::string> problemsOf(llvm::StringRef text) {
  Diags diags;
  auto entries = readEntries(diags.addSource("t", text), diags);
  EXPECT_EQ(entries.has_value(), !diags.hasErrors());
  std::vector<std::string> list;
  for (const Problem &problem : diags.all())
    list.push_back((nameOf(problem.id) + " " + diags.place(problem.range.Start)).str());
  return list;
}
using Texts = std::vector<std::string>;

std::string lineWith(llvm::StringRef from, llvm::StringRef to) {
  std::string text = printEntries(entry());
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to.str());
}
} // namespace

TEST(Entries, WhatIsWrittenIsReadBack) {
  std::vector<Tuned> entries(3, entry());
  entries[1].cublasSeconds = 0;
  entries[2].seconds = 0; // of a product without an element
  std::string text = printEntries(entries);
  Diags diags;
  auto back = readEntries(diags.addSource("t", text), diags);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[0].device, entry().device);
  EXPECT_EQ((*back)[0].choice, entry().choice);
  EXPECT_EQ((*back)[0].rounds, 11);
  EXPECT_NEAR((*back)[0].seconds, 203.2e-6, 1e-12);
  EXPECT_EQ((*back)[1].cublasSeconds, 0);
  EXPECT_EQ(printEntries(*back), text);
  EXPECT_EQ(problemsOf(printEntries({})), Texts());
}

TEST(Entries, MoreThanASpecMayHave) {
  std::vector<Tuned> entries(5000, entry());
  EXPECT_EQ(problemsOf(printEntries(entries)), Texts());
}

TEST(Entries, WrongOnesAreNamedAtTheirPlace) {
  EXPECT_EQ(problemsOf("entries: 3\n"), Texts{"spec_expected_map t:1:1"});
  EXPECT_EQ(problemsOf("entries: [4]\n"), Texts{"spec_expected_map t:1:11"});
  EXPECT_EQ(problemsOf("entries: []\nmore: 1\n"), Texts{"spec_unknown_key t:2:1"});
  EXPECT_EQ(problemsOf(lineWith("kernels: 1", "kernel: 1")),
            (Texts{"spec_unknown_key t:2:33", "spec_missing_field t:2:5"}));
  EXPECT_EQ(problemsOf(lineWith("kernels: 1, ", "")), Texts{"spec_missing_field t:2:5"});
  EXPECT_EQ(problemsOf(lineWith("rounds: 11", "rounds: many")).size(), 1u);
  EXPECT_EQ(problemsOf(lineWith("rounds: 11", "rounds: 0")).size(), 1u);
  EXPECT_EQ(problemsOf(lineWith("us: 203.200", "us: .nan")).size(), 1u);
  EXPECT_EQ(problemsOf(lineWith("us: 203.200", "us: -1")).size(), 1u);
  for (const char *date : {"yesterday", "2026-13-01", "2026-00-01", "2026-01-32", "2026-01-00"})
    EXPECT_EQ(problemsOf(lineWith("2026-11-21", date)).size(), 1u) << date;
  for (const char *sizes : {"abc", "4096x4096", "4096x4096x4096x1", "4096x-1x4096", "4096x4096x", "4 of 1024x4096x409",
                            "5 of 1024x4096x4096", "-4 of 1024x4096x4096", " of 4096x4096x4096", "4 of ",
                            "4 of 2 of 512x4096x4096", "4611686018427387904 of 4x4096x4096"})
    EXPECT_EQ(problemsOf(lineWith("sizes: 4096x4096x4096", std::string("sizes: ") + sizes)).size(), 1u) << sizes;
}

TEST(Entries, SizesOfBatches) {
  auto fits = [](std::string problem, std::string sizes) {
    std::string text = lineWith("sm_90a 4096x4096x4096 a=bf16:row:4096:16", problem);
    return problemsOf(text.replace(text.find("sizes: ") + 7, 14, sizes)).empty();
  };
  const std::string batch = "sm_90a 64x64x64 a=bf16:row:64:16 batch=4 strides=4096,4096,4096",
                    open = "sm_90a 64xdynamicx64 a=bf16:row:64:16 batch=dynamic~8 strides=0,0,0";
  EXPECT_TRUE(fits(batch, "4 of 64x64x64"));
  EXPECT_FALSE(fits(batch, "3 of 64x64x64"));
  EXPECT_FALSE(fits(batch, "64x64x64"));
  EXPECT_FALSE(fits(batch, "4 of 64x64x32"));
  EXPECT_TRUE(fits(open, "7 of 64x5x64"));
  EXPECT_TRUE(fits(open, "64x5x64"));
  EXPECT_FALSE(fits(open, "7 of 5x64x64"));
  // As databases have a batch that was one product.
  EXPECT_TRUE(fits("sm_90a 64x512x512 a=x", "4 of 16x512x512"));
  EXPECT_TRUE(fits("sm_90a 512x64x512 a=x", "4 of 512x16x512"));
  EXPECT_FALSE(fits("sm_90a 512x512x64 a=x", "4 of 512x512x16"));
  EXPECT_TRUE(fits("sm_90a 64x512x0 a=x", "64x512x0"));
}

TEST(Entries, AChoiceSaysHowAndNotWhat) {
  EXPECT_EQ(whyNoChoice("tile.block=[128,256,64]"), std::nullopt);
  for (const char *bad : {"", "a.type=f16", "problem.m=4", "alpha=2", "name=x", "target=sm_80", "nonsense=1",
                          "tile.block", "tile.block=wide", "=4", "raster.group=4 raster.group=8"})
    EXPECT_TRUE(whyNoChoice(bad)) << bad;
  EXPECT_EQ(problemsOf(lineWith("raster.group=8", "a.type=f16")).front().substr(0, 13), "tuning_choice");
}

TEST(Entries, TheTablesOfGemmcAreSound) {
  for (const auto &[name, text] : builtInTables()) {
    Diags diags;
    auto entries = readEntries(diags.addSource(name, text), diags);
    for (const Problem &problem : diags.all())
      ADD_FAILURE() << name << " " << diags.place(problem.range.Start) << ": " << problem.message;
    ASSERT_TRUE(entries);
    for (const Tuned &tuned : *entries) {
      EXPECT_EQ(tuned.kernels, kernelVersion) << name << ": measure again: " << tuned.problem;
      auto found = findBuiltIn(tuned.device, tuned.problem);
      ASSERT_TRUE(found) << name << ": two lines, or not one, for " << tuned.problem;
      EXPECT_EQ(found->choice, tuned.choice);
    }
  }
  EXPECT_FALSE(findBuiltIn("NVIDIA H200", "no such problem"));
}
