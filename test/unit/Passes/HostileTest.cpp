// Any kernel that verifies, any passes in any order: each pass runs or says what it needs, and never crashes.
#include "Pace.h"
#include "gemmc/Passes/Passes.h"
#include "llvm/ADT/ArrayRef.h"
#include <gtest/gtest.h>
#include <random>

using namespace gemmc;
using namespace gemmc::tile;

namespace {
constexpr llvm::StringLiteral mma =
    R"(kernel gemm target=sm_80 threads=128 m=m n=n k=k block=[128, 64, 32] warp=[64, 32] cluster=[1, 1] instruction=mma copy=cp_async copy_bytes=[16, 8] stages=3 schedule=pipelined swizzle=xor raster=along_m group=8 persistent=on store=direct consumers=0 {
  tensor A buffer=a type=f16 rows=m cols=k order=row ld=lda align=16
  tensor B buffer=b type=f16 rows=k cols=n order=row ld=ldb align=8
  tensor D buffer=d type=f16 rows=m cols=n order=row ld=ldd align=16
  shared sA type=f16 extent=[128, 32] major=k
  shared sB type=f16 extent=[64, 32] major=mn
  accumulator acc type=f32 tile=[128, 64]
  tiles {
    zero acc
    for kt from=0 to=ceildiv(k, 32) {
      copy sA from=A[tm * 128, kt * 32]
      copy sB from=B[kt * 32, tn * 64]
      multiply acc a=sA b=sB
    }
    store D[tm * 128, tn * 64] from=acc alpha=1 beta=0 via=direct
  }
}
)";

/// The kernel with other words and numbers, and some lines out or twice.
std::string mutated(std::mt19937 &random, bool lines) {
  std::string text = mma.str();
  auto replace = [&](llvm::StringRef from, std::vector<llvm::StringRef> to) {
    if (size_t at = text.find(from.str()); at != std::string::npos)
      text.replace(at, from.size(), to[random() % to.size()].str());
  };
  replace("instruction=mma", {"instruction=mma", "instruction=wgmma"});
  replace("copy=cp_async", {"copy=ld", "copy=cp_async", "copy=tma"});
  replace("stages=3", {"stages=1", "stages=2", "stages=3", "stages=64"});
  replace("schedule=pipelined", {"schedule=pipelined", "schedule=cooperative", "schedule=pingpong"});
  replace("block=[128, 64, 32]",
          {"block=[128, 64, 32]", "block=[1, 1, 1]", "block=[128, 64, 48]", "block=[4096, 4096, 4096]"});
  replace("cluster=[1, 1]", {"cluster=[1, 1]", "cluster=[2, 2]", "cluster=[16, 16]"});
  replace("consumers=0", {"consumers=0", "consumers=2 producer_regs=40 consumer_regs=232"});
  replace("swizzle=xor", {"swizzle=xor", "swizzle=none", "swizzle=128B"});
  if (!lines)
    return text;
  std::string result;
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    auto [line, behind] = rest.split('\n');
    rest = behind;
    bool shape = line.ends_with("{") || line.ends_with("}");
    unsigned copies = shape || random() % 12 ? 1 : random() % 3;
    while (copies--)
      result += line.str() + "\n";
  }
  return result;
}

/// Runs passes as gemmc opt does; the texts that they give must read back. False when one refused.
bool survives(llvm::StringRef text, llvm::ArrayRef<const Pass *> list) {
  Diags diags;
  auto kernel = parse(diags.addSource("x.tile", text), diags);
  if (!kernel || !verify(*kernel, diags))
    return false;
  for (const Pass *pass : list)
    if (!runPass(*pass, *kernel, diags) || !verify(*kernel, diags)) {
      EXPECT_TRUE(diags.hasErrors());
      for (const Problem &problem : diags.all())
        EXPECT_TRUE(problem.range.isValid()) << problem.message;
      return false;
    }
  std::string once = print(*kernel);
  Diags again;
  auto reread = parse(again.addSource("again.tile", once), again);
  EXPECT_TRUE(reread && print(*reread) == once) << once;
  return true;
}

std::vector<const Pass *> inOrder() {
  std::vector<const Pass *> list;
  for (const Pass &pass : passes())
    list.push_back(&pass);
  return list;
}

/// What the planner may ask for: all of it passes all passes in their order.
TEST(Passes, EveryConfigurationOfThePlanner) {
  auto configured = [](llvm::StringRef copy, llvm::StringRef schedule, int stages, int cluster) {
    std::string text = mma.str();
    auto replace = [&](llvm::StringRef from, const llvm::Twine &to) {
      text.replace(text.find(from.str()), from.size(), to.str());
    };
    if (copy == "tma")
      replace("instruction=mma", "instruction=wgmma");
    replace("copy=cp_async", "copy=" + copy);
    replace("schedule=pipelined", "schedule=" + schedule);
    replace("stages=3", "stages=" + llvm::Twine(stages));
    replace("cluster=[1, 1]", "cluster=[" + llvm::Twine(cluster) + ", 1]");
    if (schedule != "pipelined") {
      replace("threads=128", "threads=384");
      replace("consumers=0", "consumers=2 producer_regs=40 consumer_regs=232");
    } else {
      replace("consumers=0", "consumers=1");
    }
    return text;
  };
  for (int stages = 1; stages <= 8; ++stages)
    for (llvm::StringRef copy : {"ld", "cp_async"})
      EXPECT_TRUE(survives(configured(copy, "pipelined", stages, 1), inOrder())) << copy.str() << stages;
  for (int stages = 2; stages <= 8; ++stages)
    for (llvm::StringRef schedule : {"pipelined", "cooperative", "pingpong"})
      for (int cluster : {1, 2})
        EXPECT_TRUE(survives(configured("tma", schedule, stages, cluster), inOrder())) << schedule.str() << stages;
}

TEST(Passes, AnyKernelInOrder) {
  std::mt19937 random(2);
  for (unsigned i = 0; i < gemmc::test::cases(1500); ++i)
    survives(mutated(random, true), inOrder());
}

TEST(Passes, AnyOrder) {
  std::mt19937 random(3);
  for (unsigned i = 0; i < gemmc::test::cases(3000); ++i) {
    std::vector<const Pass *> list;
    for (size_t count = random() % 12; count > 0; --count)
      list.push_back(&passes()[random() % passes().size()]);
    survives(mutated(random, i % 2), list);
  }
}

TEST(Passes, HaveNames) {
  for (const Pass &pass : passes())
    EXPECT_EQ(findPass(pass.name), &pass);
  EXPECT_EQ(findPass("all"), nullptr);
}
} // namespace
