// Printed PTX reads well, and reading it again changes nothing.
#include "Text.h"
#include "gemmc/PTX/Builder.h"
#include "gtest/gtest.h"
#include <bit>

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

namespace {
std::string again(llvm::StringRef text) {
  Diags diags;
  auto module = parseOrFail(diags.addSource("again", text), diags);
  return module ? print(*module) : "";
}

Module sample() {
  Module module;
  module.target = "sm_90a";
  module.header = {"! kernels: {}", ""};
  Function &f = module.functions.emplace_back();
  f.name = "sample";
  f.reqntid = {128, 1, 1};
  f.params.push_back({.space = Space::param, .type = Type::u64, .name = "a"});
  f.params.push_back({.space = Space::param, .type = Type::b8, .align = 64, .name = "map", .extent = {128}});
  f.vars.push_back({.space = Space::shared, .type = Type::b8, .align = 1024, .name = "tile", .extent = {4096}});
  return module;
}

TEST(Printer, LooksLikeThis) {
  Module module = sample();
  Function &f = module.functions[0];
  Builder b(f);
  Val base = b.reg(Type::b64, "a"), p = b.reg(Type::pred, "p"), i = b.reg(Type::b32, "i");
  auto acc = b.regs(Type::f32, "acc", 4);
  b.comment("Where A begins.");
  b("ld.param.u64", base, at(b.symbol("a")));
  b("mov.u32", i, b.special("%tid.x"));
  b.note("thread");
  b.blank();
  Val loop = b.label("loop");
  b.place(loop);
  b("fma.rn.f32", acc[0], acc[1], acc[2], acc[3]);
  b("st.global.v4.f32", at(base, 16), acc);
  b("setp.ne.u32", p, i, 0);
  b.note("all done?");
  b.when(p)("bra", loop);
  b("ret");
  EXPECT_EQ(print(module), R"(//! kernels: {}
//
.version 8.3
.target sm_90a
.address_size 64

.visible .entry sample(
    .param .u64 a,
    .param .align 64 .b8 map[128]
)
.reqntid 128, 1, 1
{
    .reg .pred  %p;
    .reg .b32   %i;
    .reg .b64   %a;
    .reg .f32   %acc<4>;
    .shared .align 1024 .b8 tile[4096];

    // Where A begins.
    ld.param.u64 %a, [a];
    mov.u32      %i, %tid.x;  // thread

L_loop:
    fma.rn.f32       %acc0, %acc1, %acc2, %acc3;
    st.global.v4.f32 [%a+16], {%acc0, %acc1, %acc2, %acc3};
    setp.ne.u32      %p, %i, 0;  // all done?
    @%p bra          L_loop;
    ret;
}
)");
  EXPECT_EQ(again(print(module)), print(module));
}

TEST(Printer, LongVectorsAreWrapped) {
  Module module = sample();
  Builder b(module.functions[0]);
  auto acc = b.regs(Type::f32, "acc", 128);
  Val d = b.reg(Type::b64, "desc_a"), e = b.reg(Type::b64, "desc_b"), p = b.reg(Type::pred, "accumulate");
  b("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", acc, d, e, p, 1, 1, 0, 0);
  std::string text = print(module);
  for (llvm::StringRef rest = text; !rest.empty(); rest = rest.split('\n').second)
    EXPECT_LE(rest.split('\n').first.size(), 120u) << rest.split('\n').first.str();
  EXPECT_NE(text.find("\n        %desc_a, %desc_b, %accumulate, 1, 1, 0, 0;\n"), std::string::npos) << text;
  EXPECT_EQ(again(text), text);
}

TEST(Printer, RegistersAreGroupedWhereThatDeclaresNoOther) {
  Module module = sample();
  Builder b(module.functions[0]);
  auto r = b.regs(Type::b32, "r", 3);
  Val wide = b.reg(Type::b64, "r7"); // shares the stem: no range may cover it
  Val far = b.reg(Type::b32, "far100"), lone = b.reg(Type::b32, "lone1"), unused = b.reg(Type::b32, "unused");
  b("mov.b32", r[0], r[1]);
  b("mov.b32", r[2], far);
  b("mov.b32", far, lone);
  b("mov.b64", wide, 1);
  std::string text = print(module);
  EXPECT_EQ(text.find('<'), std::string::npos) << text;
  EXPECT_EQ(text.find("unused"), std::string::npos) << text;
  EXPECT_EQ(again(text), text);
  EXPECT_TRUE(unused.isReg());
}

TEST(Printer, AwkwardTextStaysOnItsLine) {
  Module module = sample();
  Builder b(module.functions[0]);
  b.comment("two\nlines");
  b.comment("  spaces behind   ");
  b("ret");
  b.note("a\nb");
  b.blank();
  b.blank();
  std::string text = print(module);
  EXPECT_NE(text.find("// two\n    // lines\n"), std::string::npos) << text;
  EXPECT_NE(text.find("ret;  // a b\n}"), std::string::npos) << text;
  EXPECT_EQ(again(text), text);
}

TEST(Printer, ConstantsKeepTheirBits) {
  Module module = sample();
  Builder b(module.functions[0]);
  Val f = b.reg(Type::f32, "f"), d = b.reg(Type::b64, "d");
  b("mov.f32", f, Operand::makeF32(-1.0f));
  b("mov.b64", d, int64_t(-1));
  b("mov.b64", d, 0xfedcba9876543210u);
  b("mov.b64", d, 0x12345678);
  std::string text = print(module);
  for (const char *part : {"0fBF800000;", "%d, -1;", "%d, 0x12345678;"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  Diags diags;
  auto module2 = parseOrFail(diags.addSource("t", text), diags);
  ASSERT_TRUE(module2);
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(module2->functions[0].body[i].inst.ops[1].imm, module.functions[0].body[i].inst.ops[1].imm);
  EXPECT_EQ(again(text), text);
}
} // namespace
