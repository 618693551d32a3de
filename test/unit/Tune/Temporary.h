/// A folder for a test, gone afterwards.
#pragma once
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <fstream>
#include <gtest/gtest.h>
#include <string>

class Temporary {
public:
  Temporary() { EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("gemmc-tune", path)); }
  ~Temporary() { llvm::sys::fs::remove_directories(path); }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> full = path;
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
  std::string write(llvm::StringRef name, llvm::StringRef text) const {
    std::ofstream(file(name), std::ios::binary) << text.str();
    return file(name);
  }

private:
  llvm::SmallString<128> path;
};
