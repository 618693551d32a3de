// Clean-up passes that share, hoist and remove, and all of them together.
#include "CleanUpText.h"
#include "Pace.h"

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

TEST(ShareCommonExpressions, SharesWithDominators) {
  becomes(shareCommonExpressions, R"(
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r0, 31;
    and.b32 %r3, %r1, 31;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra L_end;
    add.u32 %r4, %r2, %r9;
    add.u32 %r5, %r9, %r3;
    st.shared.u32 [%r4], %r5;
  L_end:
    ret;)",
          R"(
    mov.u32 %r0, %tid.x;
    and.b32 %r2, %r0, 31;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra L_end;
    add.u32 %r4, %r2, %r9;
    st.shared.u32 [%r4], %r4;
  L_end:
    ret;)");
}

TEST(ShareCommonExpressions, KnowsWhereATableLeads) {
  becomes(shareCommonExpressions, R"(
    mov.u32 %r9, %tid.x;
    mov.u32 %r8, %tid.y;
  table: .branchtargets L_one, L_two;
    setp.eq.u32 %p0, %r9, 7;
    @%p0 bra L_value;
    brx.idx %r9, table;
  L_one:
    ret;
  L_two:
    ret;
  L_value:
    xor.b32 %r1, %r9, 5;
    setp.eq.u32 %p1, %r8, 7;
    @%p1 bra L_again;
    ret;
  L_again:
    xor.b32 %r2, %r9, 5;
    st.shared.u32 [%r1], %r2;
    ret;)",
          R"(
    mov.u32 %r9, %tid.x;
    mov.u32 %r8, %tid.y;
  table: .branchtargets L_one, L_two;
    setp.eq.u32 %p0, %r9, 7;
    @%p0 bra L_value;
    brx.idx %r9, table;
  L_one:
    ret;
  L_two:
    ret;
  L_value:
    xor.b32 %r1, %r9, 5;
    setp.eq.u32 %p1, %r8, 7;
    @%p1 bra L_again;
    ret;
  L_again:
    st.shared.u32 [%r1], %r1;
    ret;)");
}

TEST(ShareCommonExpressions, SharesOfALoopVariableUntilItChanges) {
  becomes(shareCommonExpressions, R"(
    mov.u32 %r0, 0;
  L_loop:
    shl.b32 %r1, %r0, 2;
    shl.b32 %r2, %r0, 2;
    add.u32 %r0, %r0, 1;
    shl.b32 %r3, %r0, 2;
    st.shared.u32 [%r1], %r2;
    st.shared.u32 [%r1], %r3;
    bra L_loop;)",
          R"(
    mov.u32 %r0, 0;
  L_loop:
    shl.b32 %r1, %r0, 2;
    add.u32 %r0, %r0, 1;
    shl.b32 %r3, %r0, 2;
    st.shared.u32 [%r1], %r1;
    st.shared.u32 [%r1], %r3;
    bra L_loop;)");
}

TEST(ShareCommonExpressions, LeavesWhatItMust) {
  stays(shareCommonExpressions, R"(
    mov.u32 %r0, %clock;
    mov.u32 %r1, %clock;
    sub.u32 %r2, %r1, %r0;
    sub.u32 %r3, %r0, %r1;
    ld.shared.u32 %r4, [%r3];
    bar.sync 0;
    ld.shared.u32 %r5, [%r3];
    setp.eq.u32 %p0, %r4, %r5;
    @%p0 add.u32 %r6, %r2, %r3;
    add.u32 %r7, %r2, %r3;
    @%p0 bra L_else;
    xor.b32 %r8, %r2, %r3;
    bra L_end;
  L_else:
    xor.b32 %r9, %r2, %r3;
  L_end:
    ret;)",
        "volatile registers, no commuting sub, loads, guards, blocks side by side");
}

/// As where a loop's first turn was peeled: all that its body computes stands in front of it, too. Beside many sums it
/// takes less of that.
TEST(ShareCommonExpressions, KeepsABoundOnWhatALoopTakes) {
  auto computed = [](int sums) {
    std::string first = ".reg .b32 %v<200>, %w<400>;\n.reg .f32 %s<100>;\nmov.u32 %r0, %tid.x;\n", turn = "L_loop:\n";
    for (int i = 0; i < sums; ++i) {
      first += llvm::formatv("mov.f32 %s{0}, 0f00000000;\n", i).str();
      turn += llvm::formatv("add.f32 %s{0}, %s{0}, %s{0};\n", i).str();
    }
    for (int i = 0; i < 200; ++i) {
      first += llvm::formatv("xor.b32 %v{0}, %r0, {0};\nst.shared.u32 [%r1+{1}], %v{0};\n", i, 4 * i).str();
      for (int time = 0; time < 2; ++time) // a value that is taken twice is one
        turn +=
            llvm::formatv("xor.b32 %w{0}, %r0, {1};\nst.shared.u32 [%r2+{2}], %w{0};\n", 2 * i + time, i, 4 * i).str();
    }
    Module module = moduleAround(first + turn + "bra L_loop;");
    shareCommonExpressions(module.functions[0]);
    std::string text = bodyOf(module);
    auto [above, loop] = llvm::StringRef(text).split("L_loop:");
    EXPECT_EQ(above.count("xor"), 200u);
    return loop.count("xor");
  };
  EXPECT_EQ(computed(100), 200u - 64);
  EXPECT_EQ(computed(0), 0u);
}

TEST(HoistLoopInvariants, MovesInFrontOfTheLoop) {
  becomes(hoistLoopInvariants, R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, %tid.x;
    // the loop
  L_loop:
    shl.b32 %r2, %r1, 4;
    add.u32 %r3, %r2, %r9;
    add.u32 %r4, %r3, %r0;
    mov.u32 %r5, 1;
    st.shared.u32 [%r4], %r5;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 10;
    @%p0 bra L_loop;
    ret;)",
          R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 4;
    add.u32 %r3, %r2, %r9;
    // the loop
  L_loop:
    add.u32 %r4, %r3, %r0;
    mov.u32 %r5, 1;
    st.shared.u32 [%r4], %r5;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 10;
    @%p0 bra L_loop;
    ret;)",
          "constants stay, the loop's comment stays above its label");
}

TEST(HoistLoopInvariants, LeavesTheLoopsNeighboursInPlace) {
  const char *nest = R"(
    mov.u32 %r0, 0;
  L_outer:
    mov.u32 %r1, 0;
  L_inner:
    xor.b32 %r2, %r0, %r9;
    xor.b32 %r3, %r1, %r9;
    st.shared.u32 [%r2], %r3;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 10;
    @%p0 bra L_inner;
    add.u32 %r4, %r2, 1;
    st.shared.u32 [%r4], %r4;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 10;
    @%p1 bra L_outer;
    ret;)";
  becomes(hoistLoopInvariants, nest, R"(
    mov.u32 %r0, 0;
  L_outer:
    mov.u32 %r1, 0;
    xor.b32 %r2, %r0, %r9;
  L_inner:
    xor.b32 %r3, %r1, %r9;
    st.shared.u32 [%r2], %r3;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 10;
    @%p0 bra L_inner;
    add.u32 %r4, %r2, 1;
    st.shared.u32 [%r4], %r4;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 10;
    @%p1 bra L_outer;
    ret;)");
}

TEST(HoistLoopInvariants, LeavesWhatItMust) {
  stays(hoistLoopInvariants, R"(
    mov.u32 %r0, 0;
  L_loop:
    setp.lt.u32 %p0, %r0, 10;
    @%p0 shl.b32 %r1, %r9, 4;
    ld.shared.u32 %r2, [%r9];
    mov.u32 %r3, %clock;
    add.u32 %r4, %r5, %r9;
    add.u32 %r5, %r9, 1;
    @!%p0 bra L_cold;
    add.u32 %r0, %r0, 1;
    bra L_loop;
  L_cold:
    xor.b32 %r6, %r9, 7;
    st.shared.u32 [%r9], %r6;
    @%p0 bra L_loop;
    ret;)",
        "guarded, a load, volatile, read before it is written, cold");
  stays(hoistLoopInvariants, R"(
    mov.u32 %r0, 0;
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_loop;
    add.u32 %r0, %r0, 5;
  L_loop:
    xor.b32 %r6, %r9, 7;
    st.shared.u32 [%r6], %r0;
    @%p0 bra L_loop;
    ret;)",
        "the loop has a second way in, over what stands above its label");
  stays(hoistLoopInvariants, R"(
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_loop;
  L_loop:
    xor.b32 %r6, %r9, 7;
    st.shared.u32 [%r6], %r9;
    @%p0 bra L_loop;
    ret;)",
        "the branch above the label would jump over what is put between them");
}

TEST(HoistLoopInvariants, KeepsABoundOnRegisters) {
  std::string body = ".reg .b32 %v<100>;\nL_loop:\n";
  for (int i = 0; i < 100; ++i)
    body += llvm::formatv("xor.b32 %v{0}, %r0, {0};\nst.shared.u32 [%r1+{1}], %v{0};\n", i, 4 * i).str();
  body += "bra L_loop;";
  Module module = moduleAround(body);
  cleanUp(module.functions[0]);
  std::string text = bodyOf(module);
  auto above = llvm::StringRef(text).split("L_loop:").first;
  EXPECT_EQ(above.count("xor"), 16u) << "over all rounds together";
}

TEST(RemoveDeadCode, RemovesUnusedResults) {
  becomes(removeDeadCode, R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 5;
    add.u32 %r2, %r1, 1;
    ld.shared.u32 %r3, [%r2];
  L_loop:
    add.u32 %r0, %r0, 1;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r0, 10;
    @%p0 bra L_loop;)",
          R"(
    mov.u32 %r0, 0;
  L_loop:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 10;
    @%p0 bra L_loop;)",
          "also a variable that only counts itself");
}

TEST(RemoveDeadCode, RemovesUnreachableCodeAndIdleBranches) {
  becomes(removeDeadCode, R"(
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_far;
    bra L_a;
    st.shared.u32 [%r0], 1;
  L_unused:
    st.shared.u32 [%r0], 2;
  L_a:
    // nothing
  L_b:
    st.shared.u32 [%r0], 3;
    @%p0 bra L_c;
  L_c:
    ret;
    st.shared.u32 [%r0], 4;
  L_far:
    st.shared.u32 [%r0], 5;)",
          R"(
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_far;
    // nothing
    st.shared.u32 [%r0], 3;
    ret;
  L_far:
    st.shared.u32 [%r0], 5;)");
}

TEST(RemoveDeadCode, LeavesWhatHasEffects) {
  stays(removeDeadCode, R"(
    ld.volatile.shared.u32 %r0, [%r9];
    ld.acquire.gpu.global.u32 %r1, [%d9];
    atom.shared.add.u32 %r2, [%r9], 1;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [%r9];
    shfl.sync.idx.b32 %r3, %r9, 0, 31, -1;
    setp.lt.u32 %p0, %r9, 10;
    @%p0 st.shared.u32 [%r9], 1;
    @%p0 bra L_end;
    st.shared.u32 [%r9], 2;
  L_end:
    ret;)");
}

TEST(RemoveDeadCode, CommentsGoWithWhatTheyComment) {
  becomes(removeDeadCode, R"(
    // Title

    // Unused.
    mov.u32 %r0, 0;
    mov.u32 %r1, 5;

    // Used.
    // In two lines.
    mov.u32 %r2, 6;
    mov.u32 %r3, 6;
    st.shared.u32 [%r2], 1;
    // The end.)",
          R"(
    // Title

    // Used.
    // In two lines.
    mov.u32 %r2, 6;
    st.shared.u32 [%r2], 1;
    // The end.)");
}

TEST(CleanUp, ReadsAsIfWrittenByHand) {
  Module module = moduleAround(R"(
    // Thread.
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, 128;
    mul.lo.u32 %r2, %r0, %r1;
    mov.u32 %r3, smem;
    add.u32 %r4, %r3, %r2;
    mov.u32 %r9, 0;
  L_loop:
    // Address.
    mul.lo.u32 %r5, %r0, 128;
    add.u32 %r6, %r3, %r5;
    add.u32 %r6, %r6, 0;
    // Store.
    add.u32 %r7, %r4, 16;
    st.shared.u32 [%r7+4], %r1;
    st.shared.u32 [%r6], %r9;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, 1, 2;
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_loop;
    @%p1 bra L_end;
    st.shared.u32 [%r7], 9;
  L_end:
    ret;)");
  cleanUp(module.functions[0]);
  EXPECT_EQ(bodyOf(module), bodyOf(moduleAround(R"(
    // Thread.
    mov.u32 %r0, %tid.x;
    shl.b32 %r2, %r0, 7;
    mov.u32 %r3, smem;
    add.u32 %r4, %r3, %r2;
    mov.u32 %r9, 0;
  L_loop:
    // Store.
    st.shared.u32 [%r4+20], 128;
    st.shared.u32 [%r4], %r9;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p0, %r9, 10;
    @%p0 bra L_loop;
    ret;)")));
  EXPECT_EQ(module.functions[0].regs.size(), 6u) << "unused registers are dropped";
}

TEST(CleanUp, IsFastOnAnUnrolledKernel) {
  std::string body = ".reg .b32 %a<2000>;\n.reg .f32 %c<64>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r2, 0;\nL_loop:\n";
  for (int i = 0; i < 1000; ++i) {
    body += llvm::formatv("add.u32 %a{0}, %r0, {1};\n", 2 * i, 16 * i).str();
    body += llvm::formatv("shl.b32 %a{0}, %r0, 4;\n", 2 * i + 1).str();
    body += llvm::formatv("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}, [%a{0}];\n", 2 * i).str();
    body += llvm::formatv("st.shared.u32 [%a{0}], %r4;\n", 2 * i + 1).str();
    body += llvm::formatv("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%c{0}, %c{1}, %c{2}, %c{3}}, "
                          "{{%r4, %r5, %r6, %r7}, {{%r4, %r5}, {{%c{0}, %c{1}, %c{2}, %c{3}};\n",
                          4 * (i % 16), 4 * (i % 16) + 1, 4 * (i % 16) + 2, 4 * (i % 16) + 3)
                .str();
  }
  body += "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p0, %r2, 10;\n@%p0 bra L_loop;\nst.shared.f32 [%r0], %c0;\n";
  Module original = moduleAround(body);
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    Module module = original;
    double start = gemmc::test::processorSeconds();
    cleanUp(module.functions[0]);
    best = std::min(best, 1000 * (gemmc::test::processorSeconds() - start) / gemmc::test::allowance);
    EXPECT_EQ(module.functions[0].body.size(), 3009u);
  }
  RecordProperty("milliseconds", std::to_string(best));
  std::printf("cleanUp of 5,000 instructions: %.2f ms\n", best);
  EXPECT_LT(best, 50.0) << "2 ms in a release build on an idle machine; this bound only finds quadratic work";
}
