// Each rule of the verifier, broken once; what it lets pass is judged by ptxas (RowsTest).
#include "Text.h"
#include "gemmc/PTX/Builder.h"
#include "gtest/gtest.h"

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

namespace {
struct Case {
  const char *body, *message; ///< An empty message: nothing is wrong.
};

void expect(llvm::ArrayRef<Case> cases, llvm::StringRef target = "sm_90a", llvm::StringRef version = "8.3") {
  for (const Case &one : cases) {
    std::string all = messages(kernel(one.body, target, version));
    if (!*one.message)
      EXPECT_EQ(all, "") << one.body;
    else
      EXPECT_NE(all.find(one.message), std::string::npos) << one.body << "\n" << all;
  }
}

TEST(Verifier, Targets) {
  expect({{"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r}, [s];", ""},
          {"cp.async.wait_all;", "`cp.async.wait_all` needs sm_80 or higher; the module's target is sm_75"}},
         "sm_75", "7.0");
  expect({{"wgmma.fence.sync.aligned;", "needs sm_90a exactly; the module's target is sm_90"},
          {"elect.sync _|p, -1;", ""}},
         "sm_90", "8.0");
  expect({{"elect.sync _|p, -1;", "needs PTX 8.0; the module says 7.8"}}, "sm_90", "7.8");
  expect({{"add.bf16 h, h, h;", "`add.bf16` with `.bf16` needs sm_90 or higher"},
          {"ld.global.L2::cache_hint.u32 r, [d], e;", ""},
          {"cvt.rni.s32.bf16 r, h;", "needs sm_90 or higher"},
          {"mbarrier.arrive.shared.b64 d, [r], 4;", "with `count` needs sm_90 or higher"}},
         "sm_80", "7.8");
  expect({{"ret;", "`sm_60` is no target gemmc knows"}}, "sm_60");
  expect({{"ret;", "`compute_80` is no target gemmc knows"}}, "compute_80");
  expect({{"ret;", "target `sm_90a` needs PTX 8.0; the module says 7.8"}}, "sm_90a", "7.8");
  expect({{"ret;", "target `sm_89` needs PTX 7.8; the module says 7.0"}}, "sm_89", "7.0");
}

TEST(Verifier, ModifiersThatBelongTogether) {
  expect(
      {{"add.sat.s32 r, s, 1;", ""},
       {"add.sat.u32 r, s, 1;", "`.sat` goes only with `.s32` in `add.sat.u32`"},
       {"add.ftz.f64 x, y, y;", "`.ftz` goes only with `.f32`, `.f16` or `.f16x2`"},
       {"setp.lo.s32 p, r, s;", "`.lo` goes only with `.u16`, `.u32` or `.u64`"},
       {"setp.lt.b32 p, r, s;", "`.lt` does not go with `.b16`, `.b32` or `.b64`"},
       {"ld.relaxed.u32 r, [d];", "`.relaxed` goes only with `.cta`, `.cluster`, `.gpu` or `.sys`"},
       {"ld.gpu.u32 r, [d];", "`.gpu` goes only with `.relaxed` or `.acquire`"},
       {"atom.global.add.f16x2 r, [d], r;", "`.f16x2` goes only with `.noftz`"},
       {"rcp.approx.f64 x, y;", "`.approx` goes only with `.ftz`"},
       {"set.lo.u32.s32 r, s, t;", "`.lo` does not go with `.s32`"},
       {"set.eq.ftz.f32.s32 f, s, t;", "`.ftz` does not go with `.s32`"},
       {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [d], [r], 16;", "`.f16` goes only with `.noftz`"}});
}

TEST(Verifier, TypesOfRegisters) {
  expect({{"add.s32 r, s, f;", "operand `b` of `add.s32` is .s32; register `f` is .f32"},
          {"add.s64 d, r, 1;", "operand `a` of `add.s64` is .s64; register `r` is .b32"},
          {"and.b32 r, f, 1;", ""},
          {"mov.u32 r, f;", "register `f` is .f32"},
          {"mul.wide.u32 r, s, t;", "operand `d` of `mul.wide.u32` is .u64; register `r` is .b32"},
          {"ld.global.u8 r, [d];", ""},
          {"ld.global.u8 f, [d];", "register `f` is .f32"},
          {"ld.global.b64 r, [d];", "register `r` is .b32"},
          {"st.global.u8 [d], e;", ""},
          {"cvt.u8.u32 r, s;", ""},
          {"selp.b32 r, s, t, r;", "operand `c` of `selp.b32` is .pred; register `r` is .b32"},
          {"selp.b32 r, s, t, !p;", ""},
          {"add.s32 r, s, !p;", "written without `!`"},
          {"ld.shared.u32 r, [f];", "operand `a` of `ld.shared.u32` is .b64; register `f` is .f32"},
          {"ld.global.u32 r, [s];", "operand `a` of `ld.global.u32` is .b64; register `s` is .b32"},
          {"ld.u32 r, [s];", "register `s` is .b32"},
          {"cp.async.ca.shared.global [r], [s], 16;", "operand `src`"},
          {"mov.b64 d, {f, g};", ""},
          {"mov.b64 d, {h, h};", "register `h` is .b16"},
          {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {d, e}, d, e, p, 1, 1, 0, 0;", "register `d` is .b64"}});
}

TEST(Verifier, KindsOfOperands) {
  expect({{"mov.f32 f, 0;", "an immediate is written as a float"},
          {"mov.f32 f, 1.5;", ""},
          {"mov.u32 r, 0f3F800000;", "an immediate is an integer"},
          {"mov.b32 r, 0f3F800000;", ""},
          {"mov.b32 r, 1.5;", "a float immediate has the operand's width"},
          {"add.f16 h, h, 1.0;", "it takes no immediate"},
          {"mov.pred p, 1.0;", "an immediate is 0 or 1"},
          {"mov.pred p, 2;", ""},
          {"mov.u32 r, %tid.x;", ""},
          {"add.u32 r, %tid.x, 1;", "no special register: `mov` it"},
          {"add.u32 r, WARP_SZ, 1;", ""},
          {"mov.u64 d, %tid.x;", "`%tid.x` is .u32; operand `a` of `mov.u64` is .u64"},
          {"mov.u32 r, buffer;", ""},
          {"add.u32 r, r, buffer;", "no variable: `mov` its address"},
          {"mov.b64 {r, 5}, d;", "operand `d` of `mov.b64` must be a register"},
          {"ld.shared.u32 r, [64];", "based on a register or a variable"},
          {"ld.shared.u32 r, [s+4294967296];", "it must be an offset of 32 bits"},
          {"ld.shared.u32 {r, s}, [t];", "a scalar: there is no `.v2` or `.v4`"},
          {"ld.shared.v2.u32 r, [t];", "a vector `{...}`"},
          {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [r], {_};", "a register, not `_`"},
          {"mbarrier.arrive.shared::cluster.b64 d, [r];", "`_` with .shared::cluster"}});
}

TEST(Verifier, LengthsOfVectors) {
  expect({{"ld.shared.v4.u32 {r, s}, [t];", "operand `d` of `ld.shared.v4.u32` has 2 elements; it must have 4"},
          {"ld.shared.v4.u64 {d, d, e, e}, [t];", "moves 256 bits at once; the most are 128"},
          {"st.shared.v2.f32 [t], {f, 1.0};", ""},
          {"mov.b64 d, {r, s, t};", "has 3 elements; it must have 2 or 4"},
          {"mov.b16 {h, h, h, h}, h;", "2 or 4, each of 8 bits or more"},
          {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r, s}, [t];", "has 2 elements; it must have 4"},
          {"stmatrix.sync.aligned.m8n8.x2.shared.b16 [t], {r};", "has 1 elements; it must have 2"},
          {"atom.global.add.v2.f32 {f, g}, [d], {f};", "operand `b` of"},
          {"red.global.add.v2.f32 [d], {f};", "it must have 2"},
          {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f, g, f, g}, {r, s}, {r, s}, {f, g, f, g};",
           "operand `a` of `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` has 2 elements; it must have 4"},
          {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {r, s}, {r, s, t, u}, {r, s}, {r, s};", ""},
          {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {f, g, f, g}, {r, s}, {r}, {r, s};", "the same type of c"},
          {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {r, s, t, u}, {r, s}, {r, s}, {f, f, f, f, g, g, g, g};",
           "`.f32` goes only with d of `.f32`"},
          {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {r, s}, [t];", "it must have 8"},
          {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {f, g}, [t];", "it must have 8"},
          {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [t], {r, s};", "it must have 4"},
          {"wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.s4.s32 {r, s}, {t}, {u}, {r, s};", "the same type of b"},
          {"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {f, g, f, g}, d, e, p, 1, 1, 0, 0;", "it must have 8"},
          {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, {t, u}, e, p, 1, 1, 0;", "it must have 4"},
          {"cp.async.bulk.prefetch.tensor.3d.L2.global [d, {r, s}];", "it must have 3 coordinates with .3d"},
          {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r], [d, {r, s}], [t];",
           "it must have 1 coordinates with .1d"}});
}

TEST(Verifier, ValuesOfImmediates) {
  expect(
      {{"cp.async.cg.shared.global [r], [d], 8;",
        "operand `size` of `cp.async.cg.shared.global` is 8; it must be 16 with .cg"},
       {"cp.async.ca.shared.global [r], [d], 12;", "it must be 4, 8 or 16"},
       {"cp.async.ca.shared.global [r], [d], 8, 9;", "it must be 0 to 8"},
       {"cp.async.cg.shared.global [r], [d], 4, p;", "16 with .cg"},
       {"cp.async.wait_group -1;", "a number of groups"},
       {"cp.async.bulk.prefetch.L2.global [d], 8;", "a multiple of 16"},
       {"cp.async.bulk.global.shared::cta.bulk_group [d], [r], 20;", "a multiple of 16"},
       {"bar.sync 16;", "a barrier, 0 to 15"},
       {"bar.sync 1, 48;", "a multiple of 32 up to 1024"},
       {"bar.red.and.pred p, 16, q;", "a barrier, 0 to 15"},
       {"mbarrier.init.shared.b64 [r], 0;", "a count, 1 to 2^20 - 1"},
       {"mbarrier.try_wait.parity.shared::cta.b64 p, [r], 2;", "operand `parity`"},
       {"setmaxnreg.inc.sync.aligned.u32 236;", "a multiple of 8 from 24 to 256"},
       {"nanosleep.u32 1000001;", "at most 1000000 ns"},
       {"lop3.b32 r, s, t, u, 256;", "a table of 8 bits"},
       {"tensormap.replace.tile.box_dim.global.b1024.b32 [d], 5, r;", "a dimension, 0 to 4"},
       {"fence.proxy.tensormap::generic.acquire.gpu [d], 64;", "128, the bytes of a tensor map"},
       {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [r], 64;", "128"},
       {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, d, e, p, 2, 1, 0, 0;", "operand `scalea`"},
       {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, d, e, p, 1, 1, 0, 2;", "operand `transb`"},
       {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, d, e, 2, 1, 1, 0, 0;", "an immediate is 0 or 1"},
       {"wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.s8 {r, s, t, u}, d, e, p;", "of mixed types"}});
}

TEST(Verifier, Conversions) {
  expect({{"cvt.s32.f32 r, f;", "it needs .rni, .rzi, .rmi or .rpi"},
          {"cvt.f32.s32 f, r;", "it needs .rn, .rz, .rm or .rp"},
          {"cvt.rn.u32.u16 r, h;", "is exact: it has no rounding"},
          {"cvt.f32.f64 f, x;", "rounds to a narrower float"},
          {"cvt.rn.f64.f32 x, f;", "is exact: it has no rounding"},
          {"cvt.rn.f32.f32 f, g;", "rounds to an integral value"},
          {"cvt.ftz.f64.f16 x, h;", "`.ftz` goes only with `.f32`"},
          {"cvt.sat.u32.u16 r, h;", "cannot overflow: it has no .sat"},
          {"cvt.rn.bf16.u8 h, h;", "bf16 converts to and from 16 bits and more"},
          {"cvt.sat.u16.s32 h, r;", ""}});
}

TEST(Verifier, Kernels) {
  auto says = [](llvm::StringRef directives, llvm::StringRef target, llvm::StringRef message) {
    std::string all = messages((".version 8.3\n.target " + target + "\n.entry k() " + directives + " { ret; }").str());
    EXPECT_NE(all.find(message.str()), std::string::npos) << all;
  };
  says(".reqntid 2048", "sm_80", "`.reqntid` is 2048; it must be at most 1024 threads, 64 in z");
  says(".maxntid 4294967295, 4294967295, 1", "sm_80", "at most 1024 threads");
  says(".reqnctapercluster 32", "sm_90", "`.reqnctapercluster` is 32; it must be at most 16 CTAs");
  says(".reqnctapercluster 2", "sm_80", "`.reqnctapercluster` needs sm_90 and PTX 7.8");
}

// What only a program can build, not a text.
TEST(Verifier, BuiltModules) {
  auto says = [](llvm::function_ref<void(Builder &)> build) {
    Module module;
    module.target = "sm_90a";
    module.functions.emplace_back().name = "k";
    Builder b(module.functions[0]);
    build(b);
    Diags diags;
    EXPECT_FALSE(verify(module, diags));
    return diags.all().empty() ? "" : diags.all().front().message;
  };
  EXPECT_EQ(says([](Builder &b) { b("bra", b.label("x")); }), "label `L_x` is not defined");
  EXPECT_EQ(says([](Builder &b) {
              Val label = b.label("x");
              b.place(label);
              b.place(label);
            }),
            "`L_x` is declared twice in one scope");
  EXPECT_EQ(says([](Builder &b) { b("mov.b32", b.reg(Type::b32, "r"), b.symbol("nothing")); }),
            "`nothing` is not declared");
  EXPECT_EQ(says([](Builder &b) { b.fn().regs.assign(2, {"%r", Type::b32}); }), "`%r` is declared twice in one scope");
  EXPECT_EQ(says([](Builder &b) { b.reg(Type::bf16, "h"); }), "`.bf16` is no type a register can have");
  EXPECT_EQ(says([](Builder &b) { b("ret").ops.emplace_back(); }), "`Ret` has 1 operands; its form has 0");
  EXPECT_EQ(says([](Builder &b) { b("bar.sync", 1).ops[0] = {}; }), "operand `a` of `bar.sync` must be given");
  EXPECT_EQ(says([](Builder &b) { b("bar.sync", 1).mods[1] = 0; }), "`bar` wants one more modifier: `.sync`");
  EXPECT_EQ(says([](Builder &b) { b("bra", b.label("x")).ops[0] = Operand::makeImm(1); }),
            "operand `target` of `bra` must be a label");
  EXPECT_EQ(says([](Builder &b) {
              Val d = b.reg(Type::b64, "d"), r = b.reg(Type::b32, "r");
              b("cp.async.cg.shared.global", at(r), at(d), 16).ops[4] = d.op;
            }),
            "operand `policy` of `cp.async.cg.shared.global` must be left out without `.L2::cache_hint`");
  EXPECT_EQ(says([](Builder &b) {
              Val r = b.reg(Type::b32, "r");
              b("add.u32", r, r, 1).ops[2] = at(r).op;
            }),
            "operand `b` of `add.u32` must be a register or an immediate");
  EXPECT_EQ(says([](Builder &b) {
              Val r = b.reg(Type::b32, "r");
              b("ld.shared.b32", r, at(r)).ops[1] = r.op;
            }),
            "operand `a` of `ld.shared.b32` must be an address `[...]`");
  EXPECT_EQ(says([](Builder &b) {
              Val r = b.reg(Type::b32, "r");
              b("cp.async.wait_group", 1).ops[0] = r.op;
            }),
            "operand `n` of `cp.async.wait_group` must be an immediate");
  EXPECT_EQ(says([](Builder &b) {
              b("ret").guarded = true;
              b.reg(Type::b32, "r");
            }),
            "a guard is a predicate register, `%r` is .b32");
}

TEST(Verifier, ProblemsPointAtTheirLine) {
  EXPECT_EQ(marked(kernel("ret;\n  bar.sync 16; // too high")), "bar.sync 16;");
}
} // namespace
