#include "gemmc/Runtime/CubinCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

using namespace gemmc;

namespace {
class CubinCacheTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("gemmc-cache", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  CubinCache cache(uint64_t limit = CubinCache::defaultLimit) { return CubinCache(folder.str().str(), limit); }
  std::vector<std::string> files() {
    std::vector<std::string> out;
    std::error_code failed;
    for (llvm::sys::fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
      out.push_back(it->path());
    return out;
  }
  llvm::SmallString<128> folder;
  std::string key = CubinCache::keyOf("mov.u32 %r1, 0;", 13000, "NVIDIA H200");
  std::vector<char> cubin = std::vector<char>(1000, 'x');
};

void overwrite(llvm::StringRef path, llvm::StringRef text) {
  std::error_code failed;
  llvm::raw_fd_ostream(path, failed) << text;
  ASSERT_FALSE(failed);
}
} // namespace

TEST_F(CubinCacheTest, WhatIsStoredIsFound) {
  EXPECT_FALSE(cache().find(key));
  ASSERT_TRUE(cache().store(key, cubin));
  EXPECT_EQ(cache().find(key), cubin);
  EXPECT_EQ(files().size(), 1u); // no temporary file is left
}

TEST_F(CubinCacheTest, AFolderMayHaveAnyName) {
  folder += "/100%";
  ASSERT_TRUE(cache().store(key, cubin));
  EXPECT_EQ(cache().find(key), cubin);
  EXPECT_EQ(files().size(), 1u);
  llvm::sys::path::remove_filename(folder);
}

TEST_F(CubinCacheTest, TheKeyIsTheCodeTheDriverAndTheDevice) {
  auto keyOf = CubinCache::keyOf;
  EXPECT_EQ(keyOf("//! spec: a.yaml\nret;", 1, "x"), keyOf("// b\nret;", 1, "x"));
  EXPECT_NE(keyOf("ret;", 1, "x"), keyOf("exit;", 1, "x"));
  EXPECT_NE(keyOf("ret;", 1, "x"), keyOf("ret;", 2, "x"));
  EXPECT_NE(keyOf("ret;", 1, "x"), keyOf("ret;", 1, "y"));
}

TEST_F(CubinCacheTest, DamageIsNoEntryAndIsMended) {
  ASSERT_TRUE(cache().store(key, cubin));
  std::string path = files().front();
  std::string good = (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  std::string flipped = good;
  flipped.back() ^= 1;
  std::string otherKey = good;
  otherKey[20] ^= 1;
  for (const std::string &bad :
       {std::string(),
        std::string("\x7f"
                    "ELF"),
        good.substr(0, 40), good.substr(0, good.size() - 1), flipped, otherKey, good + "more"}) {
    overwrite(path, bad);
    EXPECT_FALSE(cache().find(key)) << bad.size();
    ASSERT_TRUE(cache().store(key, cubin));
    EXPECT_EQ(cache().find(key), cubin);
  }
}

// Reading it would wait for a writer that never comes.
TEST_F(CubinCacheTest, AFifoIsNoEntry) {
  ASSERT_TRUE(cache().store(key, cubin));
  std::string path = files().front();
  ASSERT_FALSE(llvm::sys::fs::remove(path));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(cache().find(key));
  ASSERT_TRUE(cache().store(key, cubin));
  EXPECT_EQ(cache().find(key), cubin);
  EXPECT_FALSE(cache(cubin.size()).find(key)); // larger than all entries may be
}

TEST_F(CubinCacheTest, TheOldestGo) {
  CubinCache small = cache(3500); // three entries of 1000 bytes and their heads
  std::vector<std::string> keys;
  for (int i = 0; i < 5; ++i) {
    keys.push_back(CubinCache::keyOf(std::to_string(i), 1, "x"));
    ASSERT_TRUE(small.store(keys.back(), cubin));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(small.find(keys[0]));
  EXPECT_FALSE(small.find(keys[1]));
  EXPECT_TRUE(small.find(keys[4]));
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(CubinCacheTest, WritersAndReadersShareAFolder) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache().store(key, cubin);
        if (auto found = cache().find(key); !found || *found != cubin)
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(CubinCacheTest, AFolderThatIsNoneIsNoProblem) {
  std::string file = (folder + "/file").str();
  overwrite(file, "text");
  CubinCache broken(file);
  EXPECT_FALSE(broken.store(key, cubin));
  EXPECT_FALSE(broken.find(key));
}
