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
