#include "gemmc/Support/Diag.h"
#include <gtest/gtest.h>

// A place is written as compilers write it: file, line and column from 1.
TEST(Diags, PlaceCountsFromOne) {
  gemmc::Diags diags;
  llvm::StringRef text = diags.addSource("spec.yaml", "m: 1\nn: 2\n");
  EXPECT_EQ(diags.place(llvm::SMLoc::getFromPointer(text.data())), "spec.yaml:1:1");
  EXPECT_EQ(diags.place(llvm::SMLoc::getFromPointer(text.data() + 8)), "spec.yaml:2:4");
  EXPECT_EQ(diags.place(llvm::SMLoc()), "");
}

// Of what nobody reads the rows, the places and the count are kept.
TEST(Diags, AWordlessSinkKeepsNoWords) {
  gemmc::Diags usual, wordless = gemmc::Diags::wordless();
  for (gemmc::Diags *diags : {&usual, &wordless}) {
    llvm::StringRef text = diags->addSource("spec.yaml", "m: 1\n");
    llvm::SMRange place(llvm::SMLoc::getFromPointer(text.data()), llvm::SMLoc::getFromPointer(text.data() + 1));
    diags->report(gemmc::Diag::plan_warp_k, place, 32, 64).fix(place, "64").note(gemmc::Diag::plan_note_swapped, place);
    ASSERT_EQ(diags->all().size(), 1u);
    EXPECT_EQ(diags->numErrors(), 1u);
    EXPECT_EQ(diags->all()[0].id, gemmc::Diag::plan_warp_k);
    EXPECT_TRUE(diags->all()[0].range.isValid());
    EXPECT_EQ(diags->all()[0].message.empty(), diags == &wordless);
    EXPECT_EQ(diags->all()[0].fixes.empty(), diags == &wordless);
    EXPECT_EQ(diags->all()[0].notes.empty(), diags == &wordless);
  }
}
