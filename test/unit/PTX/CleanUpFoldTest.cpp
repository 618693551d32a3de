// Clean-up passes that fold constants and addresses.
#include "CleanUpText.h"

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

TEST(FoldConstants, CarriesConstantsAndCopies) {
  becomes(foldConstants, R"(
    mov.u32 %r0, 7;
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, %r1;
    add.u32 %r3, %r2, %r0;
    st.shared.u32 [%r2], %r0;)",
          R"(
    mov.u32 %r0, 7;
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, %r1;
    add.u32 %r3, %r1, 7;
    st.shared.u32 [%r1], 7;)");
}

TEST(FoldConstants, ComputesWhatIsKnown) {
  becomes(foldConstants, R"(
    mov.u32 %r0, 6;
    mul.lo.u32 %r1, %r0, 7;
    mad.lo.s32 %r2, %r1, -2, 4;
    shr.s32 %r3, %r2, 3;
    shr.u32 %r4, %r2, 28;
    mul.wide.s32 %d0, %r2, 3;
    not.b32 %r5, %r0;
    st.shared.b32 [%r9], %r5;)",
          R"(
    mov.u32 %r0, 6;
    mov.u32 %r1, 42;
    mov.s32 %r2, -80;
    mov.s32 %r3, -10;
    mov.u32 %r4, 15;
    mov.s64 %d0, -240;
    not.b32 %r5, %r0;
    st.shared.b32 [%r9], 4294967289;)");
}

TEST(FoldConstants, KnowsSigns) {
  becomes(foldConstants, R"(
    mov.b32 %r0, -2;
    cvt.s64.s32 %d0, %r0;
    cvt.u64.u32 %d1, %r0;
    mul.hi.s32 %r1, %r0, 3;
    mul.hi.u32 %r2, %r0, 3;
    setp.lt.s32 %p0, %r0, 1;
    setp.lt.u32 %p1, %r0, 1;
    @%p0 st.shared.u64 [%r9], %d0;
    @!%p1 st.shared.u64 [%r9], %d1;)",
          R"(
    mov.b32 %r0, -2;
    cvt.s64.s32 %d0, %r0;
    cvt.u64.u32 %d1, %r0;
    mov.s32 %r1, -1;
    mov.u32 %r2, 2;
    setp.lt.s32 %p0, -2, 1;
    setp.lt.u32 %p1, 4294967294, 1;
    st.shared.u64 [%r9], -2;
    st.shared.u64 [%r9], 4294967294;)");
}

TEST(FoldConstants, SimplifiesOneConstant) {
  becomes(foldConstants, R"(
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r1, %r0, 64;
    add.u32 %r2, %r0, 0;
    mul.lo.u32 %r3, 1, %r0;
    mul.lo.s32 %r4, %r0, 0;
    and.b32 %r5, %r0, 4294967295;
    div.u32 %r6, %r0, 32;
    rem.u32 %r7, %r0, 32;
    mad.lo.u32 %r8, %r0, 1, %r1;
    or.b32 %r9, 4, %r0;)",
          R"(
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 6;
    mov.u32 %r2, %r0;
    mov.u32 %r3, %r0;
    mov.s32 %r4, 0;
    mov.b32 %r5, %r0;
    shr.u32 %r6, %r0, 5;
    and.b32 %r7, %r0, 31;
    add.u32 %r8, %r0, %r1;
    or.b32 %r9, %r0, 4;)");
}

TEST(FoldConstants, KeepsSignedDivisionAndOtherHalves) {
  stays(foldConstants, R"(
    mov.u32 %r0, %tid.x;
    div.s32 %r1, %r0, 32;
    rem.s32 %r2, %r0, 32;
    mul.hi.u32 %r3, %r0, 64;
    mul.wide.u32 %d0, %r0, 4;
    div.u32 %r4, %r0, 0;
    sub.u32 %r5, 0, %r0;
    shl.b32 %r6, 0, %r0;
    add.sat.s32 %r7, %r0, 0;)");
}

TEST(FoldConstants, ResolvesBranches) {
  becomes(foldConstants, R"(
    setp.lt.s32 %p0, 3, 4;
    setp.gt.u32 %p1, 3, 4294967295;
    @%p0 bra L_a;
    @%p1 st.shared.u32 [%r0], 1;
    @!%p1 st.shared.u32 [%r0], 2;
  L_a:
    selp.u32 %r1, 5, 6, %p1;
    st.shared.u32 [%r0], %r1;)",
          R"(
    setp.lt.s32 %p0, 3, 4;
    setp.gt.u32 %p1, 3, 4294967295;
    bra L_a;
    st.shared.u32 [%r0], 2;
  L_a:
    mov.u32 %r1, 6;
    st.shared.u32 [%r0], 6;)");
}

TEST(FoldConstants, WritesKnownFlagsOfWgmma) {
  becomes(foldConstants, R"(
    setp.ne.u32 %p0, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p0, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, 1, 1, 0, 0;)",
          R"(
    setp.ne.u32 %p0, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, 0, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, 1, 1, 0, 0;)");
}

TEST(FoldConstants, LeavesLoopVariablesAlone) {
  stays(foldConstants, R"(
    mov.u32 %r0, 0;
  L_loop:
    mov.b32 %r1, %r0;
    add.u32 %r0, %r0, 1;
    st.shared.u32 [%r1], %r1;
    setp.lt.u32 %p0, %r0, 10;
    @%p0 bra L_loop;)",
        "the copy keeps what the variable was");
}

TEST(FoldConstants, LeavesASecondDefinitionAlone) {
  stays(foldConstants, R"(
    mov.u32 %r0, 1;
    st.shared.u32 [%r9], %r0;
    mov.u32 %r0, 2;
    st.shared.u32 [%r9], %r0;)");
}

TEST(FoldConstants, LeavesGuardedAndPartialDefinitionsAlone) {
  stays(foldConstants, R"(
    setp.lt.u32 %p0, %r8, 10;
    @%p0 mov.u32 %r0, 5;
    st.shared.u32 [%r9], %r0;
    @%p0 bra L_else;
    mov.u32 %r1, 6;
  L_else:
    st.shared.u32 [%r9], %r1;)",
        "neither definition reaches its use on every path");
}

TEST(FoldConstants, KeepsRegisterTypesRight) {
  becomes(foldConstants, R"(
    mov.b32 %r0, 1065353216;
    mov.b32 %f0, %r0;
    add.f32 %f1, %f0, %f0;
    mov.f32 %f2, 0f3F800000;
    mov.b32 %r1, %f1;
    mov.b32 %f3, %r9;
    fma.rn.f32 %f4, %f2, %f3, %f1;
    add.u32 %r2, %r1, %r1;)",
          R"(
    mov.b32 %r0, 1065353216;
    mov.b32 %f0, 1065353216;
    add.f32 %f1, %f0, %f0;
    mov.f32 %f2, 0f3F800000;
    mov.b32 %r1, %f1;
    mov.b32 %f3, %r9;
    fma.rn.f32 %f4, %f2, %f3, %f1;
    add.u32 %r2, %r1, %r1;)",
          "no float register in an integer instruction, no integer in a float one");
}

TEST(FoldAddresses, FoldsChainsAndSteps) {
  becomes(foldAddresses, R"(
    mov.u32 %r0, %tid.x;
    add.u32 %r1, %r0, 16;
    add.u32 %r2, %r1, 32;
    add.u32 %r3, %r0, 4294967280;
    sub.u32 %r4, %r0, 8;
    ld.shared.u32 %r5, [%r1];
    ld.shared.u32 %r6, [%r2+4];
    st.shared.u32 [%r3], %r5;
    st.shared.u32 [%r4], %r6;)",
          R"(
    mov.u32 %r0, %tid.x;
    add.u32 %r1, %r0, 16;
    add.u32 %r2, %r1, 32;
    add.u32 %r3, %r0, 4294967280;
    sub.u32 %r4, %r0, 8;
    ld.shared.u32 %r5, [%r0+16];
    ld.shared.u32 %r6, [%r0+52];
    st.shared.u32 [%r0-16], %r5;
    st.shared.u32 [%r0-8], %r6;)");
}

TEST(FoldAddresses, FoldsOntoALoopVariableUntilItChanges) {
  becomes(foldAddresses, R"(
    mov.u64 %d0, %d9;
  L_loop:
    add.s64 %d1, %d0, 64;
    ld.global.u32 %r0, [%d1];
    add.s64 %d0, %d0, 128;
    ld.global.u32 %r1, [%d1];
    bra L_loop;)",
          R"(
    mov.u64 %d0, %d9;
  L_loop:
    add.s64 %d1, %d0, 64;
    ld.global.u32 %r0, [%d0+64];
    add.s64 %d0, %d0, 128;
    ld.global.u32 %r1, [%d1];
    bra L_loop;)");
}

TEST(FoldAddresses, LeavesWhatItMust) {
  stays(foldAddresses, R"(
    mov.u64 %d0, %d9;
    add.s64 %d1, %d0, 4294967296;
    ld.global.u32 %r0, [%d1];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 add.s64 %d2, %d0, 64;
    ld.global.u32 %r1, [%d2];
    add.s64 %d3, %d0, %d1;
    ld.global.u32 %r2, [%d3];
    add.s64 %d4, %d0, 8;
    add.s64 %d4, %d4, 8;
    ld.global.u32 %r3, [%d4];)",
        "too far, guarded, not an immediate, written twice");
  stays(foldAddresses, R"(
    mov.u32 %r0, 0;
  L_loop:
    add.u32 %r1, %r0, 16;
    setp.eq.u32 %p0, %r8, 0;
    @%p0 bra L_next;
    ld.shared.u32 %r2, [%r1];
  L_next:
    add.u32 %r0, %r0, 1;
    bra L_loop;)",
        "another block: a loop variable is not followed there");
}
