// The builder writes what it is told, and refuses what no row of the table takes.
#include "gemmc/PTX/Builder.h"
#include "Text.h"
#include "gtest/gtest.h"

using namespace gemmc;
using namespace gemmc::ptx;

namespace {
struct BuilderTest : testing::Test {
  Function function;
  Builder b{function};
  const Inst &last() { return function.body.back().inst; }
};

TEST_F(BuilderTest, NamesAreUniqueAndMarked) {
  EXPECT_EQ(function.regs[b.reg(Type::b32, "a").op.reg].name, "%a");
  EXPECT_EQ(function.regs[b.reg(Type::b32, "a").op.reg].name, "%a_1");
  EXPECT_EQ(function.regs[b.reg(Type::f32, "%a").op.reg].name, "%a_2");
  EXPECT_EQ(function.regs[b.reg(Type::b32, "tid").op.reg].name, "%tid_1") << "%tid is a special register";
  EXPECT_EQ(b.label("loop").op.name, "L_loop");
  EXPECT_EQ(b.label("loop").op.name, "L_loop_1");
  function.regs.clear(); // another room may drop registers
  EXPECT_EQ(function.regs[b.reg(Type::b32, "a").op.reg].name, "%a");
}

TEST_F(BuilderTest, OperandsOfAllKinds) {
  Val r = b.reg(Type::b32, "r"), d = b.reg(Type::b64, "d"), p = b.reg(Type::pred, "p"), q = b.reg(Type::pred, "q");
  b("mov.b64", d, std::vector<Val>{r, r});
  EXPECT_EQ(last().op, Op::MovPack);
  b("setp.lt.and.s32", pair(p, q), r, 5, !p);
  EXPECT_EQ(last().op, Op::Setp);
  EXPECT_EQ(last().ops.size(), 5u);
  EXPECT_EQ(last().ops[1].reg, q.op.reg);
  EXPECT_TRUE(last().ops[4].negated);
  b("elect.sync", pair(b.sink(), p), 0xffffffffu);
  EXPECT_EQ(last().ops[2].imm, 0xffffffff);
  b("cp.async.bulk.prefetch.tensor.2d.L2.global", at(d, 0, {r, r}));
  EXPECT_EQ(last().ops[0].elems.size(), 2u);
  b("ld.shared.b32", r, at(at(r, 4), 8));
  EXPECT_EQ(last().ops[1].imm, 12);
  b("mbarrier.arrive.shared::cta.b64", b.sink(), at(b.symbol("bars"), 16));
  EXPECT_EQ(last().ops[1].name, "bars");
}

TEST_F(BuilderTest, GuardsHoldForOneInstruction) {
  Val p = b.reg(Type::pred, "p");
  b.unless(p)("ret");
  EXPECT_TRUE(last().guarded && last().guardNegated);
  b.when(!p)("ret");
  EXPECT_TRUE(last().guarded && last().guardNegated);
  b("ret");
  EXPECT_FALSE(last().guarded);
}

TEST_F(BuilderTest, OriginsFollowTheSpec) {
  const char *text = "tile";
  llvm::SMRange range(llvm::SMLoc::getFromPointer(text), llvm::SMLoc::getFromPointer(text + 4));
  b("ret");
  EXPECT_EQ(last().origin, 0u);
  b.setOrigin(range);
  b.setOrigin(range);
  b("ret");
  EXPECT_EQ(last().origin, 1u);
  EXPECT_EQ(function.origins.size(), 2u);
}

TEST_F(BuilderTest, MisuseEndsWithTheForm) {
  Val r = b.reg(Type::b32, "r"), p = b.reg(Type::pred, "p");
  EXPECT_DEATH(b("frobnicate.u32", r, r), "fits no row of the PTX table");
  EXPECT_DEATH(b("add.u32", r, r), "=d, a, b");
  EXPECT_DEATH(b("add.u32", r, p, r), "fits no row");
  EXPECT_DEATH(b("add.u32", 5, r, r), "fits no row");
  EXPECT_DEATH(b("ld.global.u32", r, r), "fits no row");
}

TEST_F(BuilderTest, UsesAndDefs) {
  Val r = b.reg(Type::b32, "r"), s = b.reg(Type::b32, "s"), d = b.reg(Type::b64, "d"), p = b.reg(Type::pred, "p");
  auto uses = [&] {
    std::vector<RegId> list;
    forEachUse(last(), [&](RegId reg) { list.push_back(reg); });
    return list;
  };
  auto defs = [&] {
    std::vector<RegId> list;
    forEachDef(last(), [&](RegId reg) { list.push_back(reg); });
    return list;
  };
  using List = std::vector<RegId>;
  b.when(p)("ld.global.v2.b32", std::vector<Val>{r, s}, at(d));
  EXPECT_EQ(uses(), (List{p.op.reg, d.op.reg}));
  EXPECT_EQ(defs(), (List{r.op.reg, s.op.reg}));
  b("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", std::vector<Val>{r, s}, d, d, p, 1, 1, 0, 0);
  EXPECT_EQ(uses(), (List{r.op.reg, s.op.reg, d.op.reg, d.op.reg, p.op.reg})) << "accumulators are read, too";
  EXPECT_EQ(defs(), (List{r.op.reg, s.op.reg}));
  b("st.shared.b32", at(r, 4), s);
  EXPECT_EQ(uses(), (List{r.op.reg, s.op.reg}));
  EXPECT_TRUE(defs().empty());
}
} // namespace
