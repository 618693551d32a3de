// The parser reads what PTX allows and says what is wrong with all else, where it is wrong.
#include "Text.h"
#include "gtest/gtest.h"
#include <chrono>

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

namespace {
const Inst &first(const Module &module) {
  for (const Stmt &stmt : module.functions.front().body)
    if (stmt.kind == Stmt::Instruction)
      return stmt.inst;
  ADD_FAILURE() << "no instruction";
  return module.functions.front().body.front().inst;
}

std::optional<Module> read(llvm::StringRef body) {
  static std::vector<std::unique_ptr<Diags>> keep; // ranges point into sources
  Diags &diags = *keep.emplace_back(std::make_unique<Diags>());
  return parseOrFail(diags.addSource("test.ptx", kernel(body)), diags);
}

int64_t immediate(llvm::StringRef text) {
  auto module = read(("mov.b64 d, " + text + ";").str());
  return module ? first(*module).ops[1].imm : -77;
}

TEST(Parser, Numbers) {
  EXPECT_EQ(immediate("42"), 42);
  EXPECT_EQ(immediate("0x1F"), 31);
  EXPECT_EQ(immediate("0xFFFFFFFFFFFFFFFF"), -1);
  EXPECT_EQ(immediate("017"), 15);
  EXPECT_EQ(immediate("0b101"), 5);
  EXPECT_EQ(immediate("7U"), 7);
  EXPECT_EQ(immediate("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(immediate("0d3FF8000000000000"), 0x3ff8000000000000);
  EXPECT_EQ(immediate("-1.5"), int64_t(0xbff8000000000000));
  EXPECT_EQ(immediate("2.5e1"), 0x4039000000000000);
  auto module = read("mov.f32 f, -0f3F800000;");
  EXPECT_EQ(first(*module).ops[1].imm, 0xbf800000);
  EXPECT_EQ(first(*module).ops[1].floatBits, 32);
}

TEST(Parser, AddressesOfAllKinds) {
  auto module = read("ld.shared.u32 r, [s+-4];\nld.shared.u32 r, [buffer+8];\nld.local.u32 r, [1024];\n"
                     "ld.shared.u32 r, [s - 4 + 12];\n"
                     "cp.async.bulk.prefetch.tensor.2d.L2.global [d, {r, s}];");
  const auto &body = module->functions[0].body;
  EXPECT_TRUE(body[0].inst.ops[1].hasReg);
  EXPECT_EQ(body[0].inst.ops[1].imm, -4);
  EXPECT_EQ(body[1].inst.ops[1].name, "buffer");
  EXPECT_EQ(body[1].inst.ops[1].imm, 8);
  EXPECT_EQ(body[2].inst.ops[1].imm, 1024);
  EXPECT_EQ(body[3].inst.ops[1].imm, 8);
  EXPECT_EQ(body[4].inst.ops[0].elems.size(), 2u);
}

TEST(Parser, RowsAreChosenByTheirOperands) {
  auto op = [](llvm::StringRef line) { return nameOf(first(*read(line)).op).str(); };
  EXPECT_EQ(op("mov.b64 d, e;"), "Mov");
  EXPECT_EQ(op("mov.b64 d, {r, s};"), "MovPack");
  EXPECT_EQ(op("mov.b64 {r, _}, d;"), "MovUnpack");
  EXPECT_EQ(op("cp.async.ca.shared.global [r], [d], 16, 8;"), "CpAsync");
  EXPECT_EQ(op("cp.async.ca.shared.global [r], [d], 16, p;"), "CpAsyncIgnore");
  EXPECT_EQ(op("add.f32 f, f, g;"), "AddF");
  EXPECT_EQ(op("cvt.rn.f16.f32 h, f;"), "CvtHalf");
  EXPECT_EQ(op("cvt.rn.sat.f16.f32 h, f;"), "Cvt");
  EXPECT_EQ(op("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, d, e, p, 1, 1, 0, 0;"), "WgmmaF16");
  EXPECT_EQ(op("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r, s}, {r, s, t, u}, e, p, 1, 1, 0;"),
            "WgmmaF16Reg");
}

TEST(Parser, OptionalOperandsFindTheirPlaces) {
  const Inst inst = first(*read("cp.async.cg.shared.global.L2::cache_hint [r], [d], 16, e;"));
  EXPECT_EQ(inst.ops[3].kind, Operand::None);
  EXPECT_EQ(inst.ops[4].kind, Operand::Reg);
  const Inst shuffle = first(*read("shfl.sync.idx.b32 r|p, s, 0, 31, -1;"));
  EXPECT_EQ(shuffle.ops[1].kind, Operand::Reg);
  const Inst barrier = first(*read("bar.red.popc.u32 r, 1, !p;"));
  EXPECT_EQ(barrier.ops[2].kind, Operand::None);
  EXPECT_TRUE(barrier.ops[3].negated);
}

TEST(Parser, NestedScopesAreFlattenedWithNewNames) {
  auto module =
      read("{ .reg .b32 r; L: mov.b32 r, 1; bra L; }\n{ .reg .b32 r; L: mov.b32 r, 2; bra L; bra M; }\nM: ret;");
  std::string text = print(*module);
  EXPECT_NE(text.find("mov.b32 r_1, 1"), std::string::npos) << text;
  EXPECT_NE(text.find("mov.b32 r_2, 2"), std::string::npos) << text;
  EXPECT_NE(text.find("L_1:"), std::string::npos) << text;
  EXPECT_NE(text.find("L_1;"), std::string::npos) << text;
  EXPECT_NE(text.find("bra     M;"), std::string::npos) << text;
}

TEST(Parser, RangesDeclareTheirRegistersOnly) {
  EXPECT_EQ(messages(kernel(".reg .b32 %a<2>; mov.b32 %a0, 1; mov.b32 %a1, 1;")), "");
  EXPECT_NE(messages(kernel(".reg .b32 %a<2>; mov.b32 %a2, 1;")).find("`%a2` is not declared"), std::string::npos);
  EXPECT_NE(messages(kernel(".reg .b32 %a<20>; mov.b32 %a02, 1;")).find("`%a02` is not declared"), std::string::npos);
}

TEST(Parser, CommentsAndBlankLinesSurvive) {
  std::string text = print(*read("// above\nadd.u32 r, s, 1; // behind\n/* block\n   of two */\n\nret;"));
  for (const char *part : {"// above\n", "// behind\n", "// block\n", "//   of two\n", "\n\n    ret;"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "in\n" << text;
}

TEST(Parser, DirectivesOfKernels) {
  Diags diags;
  auto module = parseOrFail(diags.addSource("t", R"(// head
//! kernels: {}
.version 8.3
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.extern .shared .align 1024 .b8 dynamic[];
.global .align 4 .f32 table[2][2] = {{1.0, 0f40000000}, {3.0}};
// what it does
.visible .entry k(
  .param .u64 .ptr .global .align 16 a, // the first
  .param .align 64 .b8 map[128]
) .maxntid 128 .minnctapersm 2 .maxnreg 168 .explicitcluster .reqnctapercluster 2, 1, 1
{ .loc 1 2 3
  .pragma "nounroll";
  ret; }
.entry second() .reqntid 32, 2 { ret; }
)"),
                            diags);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->header, (std::vector<std::string>{" head", "! kernels: {}"}));
  EXPECT_EQ(module->target, "sm_90a");
  EXPECT_EQ(module->vars[0].extent, std::vector<uint64_t>{0});
  EXPECT_TRUE(module->vars[0].isExtern);
  EXPECT_EQ(module->vars[1].init, (std::vector<uint64_t>{0x3f800000, 0x40000000, 0x40400000}));
  const Function &k = module->functions[0];
  EXPECT_EQ(k.params[0].ptrAlign, 16u);
  EXPECT_EQ(k.params[1].bytes(), 128u);
  EXPECT_EQ(k.maxntid, (std::array<unsigned, 3>{128, 1, 1}));
  EXPECT_EQ(k.minnctapersm, 2u);
  EXPECT_EQ(k.maxnreg, 168u);
  EXPECT_TRUE(k.explicitcluster);
  EXPECT_EQ(k.reqnctapercluster, (std::array<unsigned, 3>{2, 1, 1}));
  EXPECT_EQ(k.comments, std::vector<std::string>{" what it does"});
  EXPECT_EQ(k.body[0].kind, Stmt::Pragma);
  EXPECT_FALSE(module->functions[1].visible);
  EXPECT_EQ(module->functions[1].reqntid, (std::array<unsigned, 3>{32, 2, 1}));
  std::string printed = print(*module);
  auto again = parseOrFail(diags.addSource("again", printed), diags);
  ASSERT_TRUE(again);
  EXPECT_EQ(print(*again), printed);
}

struct Bad {
  const char *body, *message, *marked;
};
const Bad bads[] = {
    {"ad.u32 r, s, 1;", "unknown instruction `ad`; did you mean `add`?", "ad"},
    {"cp.async.cq.shared.global [r], [d], 16;", "`cp` has no modifier `.cq` here", "cq"},
    {"ld.global.nc.L1::no_alocate.u32 r, [d];", "did you mean `L1::no_allocate`?", "L1::no_alocate"},
    {"mma.sync.aligned;", "`mma.sync.aligned` wants one more modifier", "mma.sync.aligned"},
    {"add.u32 r, s;", "the operands do not fit `add.u32`", "add.u32"},
    {"add.u32 r, s, zz;", "`zz` is not declared", "zz"},
    {"mov.b32 r, %tix.x;", "`%tix.x` is not declared", "%tix.x"},
    {"bra elsewhere;", "label `elsewhere` is not defined", "elsewhere"},
    {"here: bra heer; ret;", "did you mean `here`?", "heer"},
    {"a: a: ret;", "`a` is declared twice in one scope", "a"},
    {".reg .b32 r;", "`r` is declared twice in one scope", "r"},
    {".shared .b8 buffer[4];", "`buffer` is declared twice in one scope", "buffer"},
    {"call foo;", "`foo` is not declared", "foo"},
    {"t: .branchtargets;", "expected a label", ";"},
    {"first: t: .branchtargets first, 1;\nret;", "expected a label", "1"},
    {"p: .calltargets foo;", "`.calltargets` in a body is not supported", "calltargets"},
    {".regg .b32 r;", "unknown directive `.regg`; did you mean `reg`?", "regg"},
    {".reg .bf16 b;", "`.bf16` is no type a register can have", "bf16"},
    {".shared .align 3 .b8 b;", "alignment 3 is no power of two", "3"},
    {".shared .b8 b[0];", "an array has 1 to 4 extents", "b[0]"},
    {".shared .pred b;", "`.pred` is no type a variable can have", "pred"},
    {"add.u32 r, s, 1\nret;", "expected `;`", ""},
    {"@r ret;", "a guard is a predicate register, `r` is .b32", "r"},
    {"@zz ret;", "`zz` is not declared", "zz"},
    {"@p ;", "expected an instruction", ";"},
    {"mov.b32 r, 0x;", "`0x` is no number of PTX", "0x"},
    {"mov.b32 r, 99999999999999999999;", "is no number of PTX", "99999999999999999999"},
    {"mov.f32 f, 0f3F8;", "`0f` wants 8 hexadecimal digits", "0f3F8"},
    {"mov.b32 r, {s, {t}};", "no vector inside a vector", "{"},
    {"ld.shared.u32 r, [s, 4];", "expected `{` and the coordinates", "4"},
    {"ld.shared.u32 r, [];", "expected an operand", "]"},
    {"mov.b32 r, <hole>;", "expected an operand", "<"},
    {"mov.b32 r, \"text\";", "expected an operand", "\""},
    {".pragma \"open", "unterminated string", "\"open"},
    {"/* open", "unterminated comment", "/*"},
};

TEST(Parser, MistakesAreFoundWhereTheyAre) {
  for (const Bad &bad : bads) {
    std::string text = kernel(bad.body);
    EXPECT_NE(messages(text).find(bad.message), std::string::npos) << bad.body << "\n" << messages(text);
    EXPECT_EQ(marked(text), bad.marked) << bad.body;
  }
}

TEST(Parser, MistakesOutsideOfBodies) {
  auto says = [](llvm::StringRef text, llvm::StringRef message) {
    EXPECT_NE(messages(text).find(message.str()), std::string::npos) << text.str() << "\n" << messages(text);
  };
  says("", "the module has no `.version`");
  says(".version 8.3", "the module has no `.target`");
  says(".version 8", "`8` is no PTX version");
  says(".version 8.3\n.target sm_90a\n.visible .func () { ret; }", "expected the function's name");
  says(".version 8.3\n.target sm_90a\n.alias f, g;", "`.alias` is not supported");
  says(".version 8.3\n.target sm_90a\n.global .u64 p = 1(;", "expected a number or the name of a variable");
  says(".version 8.3\n.target sm_90a\n.entry k();", "a kernel without a body is not supported");
  says(".version 8.3\n.target sm_90a\n.address_size 32", "an address size other than 64 is not supported");
  says(".version 8.3\n.target sm_90a\n.entri k() {}", "unknown directive `.entri`; did you mean `entry`?");
  says(".version 8.3\n.target sm_90a\n.entry k() .maxntit 3 {}", "did you mean `maxntid`?");
  says(".version 8.3\n.target sm_90a\n.entry k() { ret;", "`}` at the end of the kernel");
  says(".version 8.3\n.target sm_90a\n.entry k() { ret; } .entry k() { ret; }", "`k` is declared twice");
  says(".version 8.3\n.target sm_90a\nfoo", "expected a directive");
}

TEST(Parser, AllMistakesAreReportedAtOnce) {
  std::string all = messages(kernel("ad.u32 r, s, 1;\nsub.u32 r, zz, 1;\nbra nowhere;"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3) << all;
}

TEST(Parser, TheFixForAMissingSemicolonWorks) {
  Diags diags;
  std::string text = kernel("add.u32 r, s, 1\nret;");
  llvm::StringRef source = diags.addSource("t", text);
  EXPECT_FALSE(parse(source, diags));
  ASSERT_EQ(diags.all().size(), 1u);
  ASSERT_EQ(diags.all()[0].fixes.size(), 1u);
  const llvm::SMFixIt &fix = diags.all()[0].fixes[0];
  text.insert(fix.getRange().Start.getPointer() - source.begin(), fix.getText().str());
  EXPECT_EQ(messages(text), "");
}

TEST(Parser, HostileTextIsCheap) {
  auto start = std::chrono::steady_clock::now();
  auto many = [](llvm::StringRef part, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += part;
    return text;
  };
  EXPECT_NE(messages(kernel(many("{", 1 << 20))).find("more than 64 nested scopes"), std::string::npos);
  EXPECT_NE(messages(kernel(many("ret;", 1 << 18))).find("more than 200000 statements"), std::string::npos);
  EXPECT_NE(messages(kernel("mov.b32 {" + many("r,", 1 << 19))).find("more than 1024 elements"), std::string::npos);
  EXPECT_NE(messages(kernel("ret " + many("r,", 40) + "r;")).size(), 0u);
  EXPECT_NE(messages(kernel("add.u32 " + many("r,", 40) + "r;")).find("more than 16 operands"), std::string::npos);
  EXPECT_NE(messages(kernel(many("bra nowhere;\n", 1 << 16))).find("more than 49 errors"), std::string::npos);
  EXPECT_NE(messages(kernel(many("{.reg .b32 r; mov.b32 r, 1;}", 1 << 14))).size(), 1u);
  EXPECT_NE(messages(".version 8.3\n.target sm_90a\n.global .b8 x = " + many("{", 1 << 20)).find("nested braces"),
            std::string::npos);
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 20) << "nothing here may be quadratic";
}

TEST(Parser, LinesAreThoseOfTheText) {
  auto module = read("ret;\n\n  add.u32 r, s, 1;");
  EXPECT_EQ(module->functions[0].body[0].inst.line, 8u);
  EXPECT_EQ(module->functions[0].body[2].inst.line, 10u);
}
} // namespace
