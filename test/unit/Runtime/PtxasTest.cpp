// The ptxas subprocess with scripts in its place, and the report it prints.
#include "gemmc/Runtime/Ptxas.h"
#include "gemmc/Runtime/CubinCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace gemmc;

namespace {
/// An executable shell script that is removed at the end.
class Script {
public:
  explicit Script(llvm::StringRef body) {
    llvm::SmallString<128> made;
    int file = -1;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("fake-ptxas", "sh", file, made));
    path = made.str().str();
    {
      llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
      os << "#!/bin/sh\n" << body << "\n";
    }
    llvm::sys::fs::setPermissions(path, llvm::sys::fs::owner_all);
  }
  ~Script() { llvm::sys::fs::remove(path); }
  std::string path;
};

/// Sets an environment variable while it lives.
class Environment {
public:
  Environment(const char *name, const char *value) : name(name) {
    if (const char *before = std::getenv(name))
      old = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { old ? setenv(name, old->c_str(), 1) : unsetenv(name); }

private:
  const char *name;
  std::optional<std::string> old;
};

Outcome<PtxasResult> assembleWith(const Script &script, PtxasOptions options = {}) {
  options.program = script.path;
  return assemblePtx(".version 8.3\n.target sm_90a\n", options);
}
} // namespace

// Printed by ptxas 13.0 for a small module of two kernels.
constexpr const char *sampleLog = R"(ptxas info    : 8 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 3.1 ms
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the function 'gemm'
ptxas warning : Value of threads per SM for entry gemm is out of range. .minnctapersm will be ignored
ptxas info    : Compiling entry function 'reduce' for 'sm_90a'
ptxas info    : Function properties for reduce
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
)";

TEST(PtxasLog, NumbersOfEachKernel) {
  PtxasReport report = parsePtxasLog(sampleLog);
  ASSERT_EQ(report.kernels.size(), 2u);
  const PtxasKernel &gemm = report.kernels[0], &reduce = report.kernels[1];
  EXPECT_EQ(gemm.name, "gemm");
  EXPECT_EQ(gemm.registers, 168u);
  EXPECT_EQ(gemm.barriers, 9u);
  EXPECT_EQ(gemm.stackBytes, 16u);
  EXPECT_EQ(gemm.spillStoreBytes, 12u);
  EXPECT_EQ(gemm.spillLoadBytes, 20u);
  EXPECT_EQ(gemm.sharedBytes, 1024u);
  EXPECT_EQ(reduce.registers, 10u);
  EXPECT_EQ(reduce.sharedBytes, 0u);
  EXPECT_TRUE(report.spills());
}

TEST(PtxasLog, AdviceAndWarningsAreKept) {
  PtxasReport report = parsePtxasLog(sampleLog);
  ASSERT_EQ(report.advisories.size(), 1u);
  EXPECT_NE(report.advisories[0].find("C7510"), std::string::npos);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_FALSE(parsePtxasLog("").spills());
}

TEST(Ptxas, GetsTheTargetAndTheTextAndGivesTheCubin) {
  // Called as: ptxas -v -arch=sm_90a -o OUT IN
  Script script("echo \"$2\" > \"$4\"; grep target \"$5\" >> \"$4\"; stat -c %a $(dirname \"$5\") >> \"$4\"");
  auto result = assembleWith(script);
  ASSERT_TRUE(bool(result)) << result.failure().str();
  EXPECT_EQ(std::string(result->cubin.begin(), result->cubin.end()), "-arch=sm_90a\n.target sm_90a\n700\n");
}

TEST(Ptxas, ItsMessagesAreTheFailure) {
  Script script("echo \"ptxas $5, line 7; error : Unknown symbol\" >&2; exit 255");
  auto result = assembleWith(script);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().id, Diag::ptxas_failed);
  EXPECT_NE(result.failure().str().find("ptxas ptx, line 7; error : Unknown symbol"), std::string::npos)
      << result.failure().str();
}

TEST(Ptxas, ACrashKeepsTheText) {
  Script script("kill -SEGV $$");
  auto result = assembleWith(script);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().id, Diag::ptxas_crashed);
  EXPECT_EQ(result.failure().args[0], "11");
  std::string kept = result.failure().args[1];
  EXPECT_TRUE(llvm::sys::fs::exists(kept)) << kept;
  llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(kept));
}

TEST(Ptxas, EndlessWorkIsStopped) {
  Script script("while :; do :; done");
  PtxasOptions options;
  options.seconds = 1;
  auto result = assembleWith(script, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().id, Diag::ptxas_limit);
  llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(result.failure().args[1]));
}

namespace {
/// This process ignores SIGCHLD while it lives: nobody can say how a child ended.
struct NoStatus {
  struct sigaction before{};
  NoStatus() {
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGCHLD, &ignored, &before);
  }
  ~NoStatus() { sigaction(SIGCHLD, &before, nullptr); }
};
} // namespace

// Then ptxas is judged by what it wrote.
TEST(Ptxas, NoStatusIsNoFailure) {
  NoStatus none;
  // An ELF file is whole where its tables end within it: here one section of 64 bytes behind the head.
  const std::string head = "printf '\\177ELF\\2\\1\\1%033d\\100%017d\\100\\0\\1\\0\\0\\0' 0 0 | tr 0 '\\0' > \"$4\"\n";
  const std::string rest = "head -c 64 /dev/zero >> \"$4\"\n";
  auto whole = assembleWith(Script(head + rest));
  EXPECT_TRUE(bool(whole)) << whole.failure().str();
  for (const std::string &text :
       {head, std::string("printf text > \"$4\""), std::string("exit 0"), std::string("kill -SEGV $$")}) {
    auto nothing = assembleWith(Script(text));
    ASSERT_FALSE(nothing) << text;
    EXPECT_EQ(nothing.failure().id, Diag::ptxas_nothing) << text;
    EXPECT_NE(nothing.failure().str().find("SIGCHLD"), std::string::npos) << nothing.failure().str();
  }
  for (const char *message : {"ptxas $5, line 7; error   : Unknown symbol", "ptxas fatal   : No input"}) {
    auto failed = assembleWith(Script(head + rest + "echo \"" + message + "\" >&2; exit 255"));
    ASSERT_FALSE(failed) << message;
    EXPECT_EQ(failed.failure().id, Diag::ptxas_failed) << message;
  }
  auto advised = assembleWith(Script(head + rest + "echo 'ptxas info    : Function properties for error'"));
  EXPECT_TRUE(bool(advised));
  if (!findPtxas())
    return;
  auto real = assemblePtx(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n");
  EXPECT_TRUE(bool(real)) << real.failure().str();
}

TEST(Ptxas, TheEnvironmentNamesIt) {
  Script script("exit 0");
  Environment override("GEMMC_PTXAS", script.path.c_str());
  auto found = findPtxas();
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(*found, script.path);
}

TEST(Ptxas, AnOverrideThatIsNoProgramIsRefused) {
  Environment override("GEMMC_PTXAS", "/dev/null/ptxas");
  auto found = findPtxas();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.failure().id, Diag::ptxas_override);
  auto result = assemblePtx("");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().id, Diag::ptxas_override);
}

TEST(Ptxas, NoneAnywhere) {
  Environment override("GEMMC_PTXAS", nullptr), path("PATH", "/nowhere");
  auto found = findPtxas("/nowhere/else");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.failure().id, Diag::ptxas_missing);
}

TEST(Ptxas, ATemporaryDirectoryThatCannotBeMade) {
  Script script("exit 0");
  Environment temporary("TMPDIR", "/dev/null");
  auto result = assembleWith(script);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().id, Diag::temporary_failed);
}

TEST(Ptxas, TheRealOneAgreesWithTheParser) {
  if (!findPtxas())
    GTEST_SKIP() << "no ptxas here";
  auto result =
      assemblePtx(".version 8.0\n.target sm_80\n.address_size 64\n"
                  ".visible .entry store(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.shared .b32 s[64];\n"
                  "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n"
                  ".reg .b32 %r<3>;\nld.shared.b32 %r1, [s];\nbar.sync 0;\nst.global.b32 [%rd2], %r1;\nret;\n}\n");
  ASSERT_TRUE(bool(result)) << result.failure().str();
  EXPECT_GT(result->cubin.size(), 500u);
  ASSERT_EQ(result->report.kernels.size(), 1u) << result->report.log;
  EXPECT_EQ(result->report.kernels[0].name, "store");
  EXPECT_GT(result->report.kernels[0].registers, 3u);
  EXPECT_EQ(result->report.kernels[0].sharedBytes, 256u) << result->report.log;
  EXPECT_EQ(result->report.kernels[0].barriers, 1u) << result->report.log;
  EXPECT_FALSE(result->report.spills());
}

// Before there is a device: the cubin is taken from the user's cache, or made and put there.
TEST(Ptxas, ACubinIsAssembledOnce) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("gemmc-cubins", folder));
  std::string count = (folder + "/count").str(), cache = (folder + "/cache").str();
  Script script("echo x >> " + count + "\nwhile [ \"$1\" != -o ]; do shift; done\nprintf 'a cubin' > \"$2\"");
  auto runs = [&] {
    uint64_t bytes = 0;
    return llvm::sys::fs::file_size(count, bytes) ? 0 : bytes / 2;
  };
  constexpr const char *text = ".version 8.3\n.target sm_90a\n", *driver = GEMMC_FAKES "/FakeCuda.so";
  std::vector<char> expected = {'a', ' ', 'c', 'u', 'b', 'i', 'n'};
  Environment program("GEMMC_PTXAS", script.path.c_str());
  {
    Environment none("GEMMC_CACHE", nullptr);
    EXPECT_EQ(cubinOf(text, "NVIDIA H200", 90, driver), expected);
    EXPECT_EQ(cubinOf(text, "NVIDIA H200", 90, driver), expected);
    EXPECT_EQ(runs(), 2u);
  }
  Environment kept("GEMMC_CACHE", cache.c_str());
  EXPECT_EQ(cubinOf(text, "NVIDIA H200", 90, driver), expected);
  EXPECT_EQ(cubinOf(text, "NVIDIA H200", 90, driver), expected);
  EXPECT_EQ(runs(), 3u);
  EXPECT_EQ(CubinCache(cache).find(CubinCache::keyOf(text, 13000, "NVIDIA H200")),
            expected); // as a module looks for it
  EXPECT_EQ(cubinOf(text, "NVIDIA H100", 90, driver), expected);
  EXPECT_EQ(runs(), 4u);
  EXPECT_EQ(cubinOf(text, "NVIDIA H200", 90, "no-driver.so"), expected); // then nothing is known to be right
  EXPECT_EQ(runs(), 5u);
  Environment broken("GEMMC_PTXAS", "/dev/null/ptxas");
  EXPECT_FALSE(cubinOf("// another\n.target sm_90a\nx", "NVIDIA H200", 90, driver));
  llvm::sys::fs::remove_directories(folder);
}
