// Templates are PTX with typed holes: read before they are filled, expanded under fresh names, replaced by a directory.
#include "../../../lib/PTX/Templates.h"
#include "Text.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace gemmc;
using namespace gemmc::ptx;
using namespace gemmc::ptx::test;

namespace {
TEST(Templates, TheBuiltInOnesAreGood) {
  Diags diags;
  EXPECT_TRUE(checkTemplates(diags)) << problemsOf(diags);
}

TEST(Templates, ExpansionsDoNotShareNames) {
  Module module;
  module.target = "sm_90a";
  module.functions.emplace_back().name = "k";
  Builder b(module.functions[0]);
  Val bar = b.reg(Type::b32, "bar"), parity = b.reg(Type::b32, "parity");
  b.expand("sm90/mbar_wait", {{"bar", bar}, {"parity", parity}});
  b.expand("sm90/mbar_wait", {{"parity", 1}, {"bar", b.symbol("bars", 8)}});
  b("ret");
  module.functions[0].vars.push_back({.space = Space::shared, .type = Type::b64, .name = "bars", .extent = {2}});
  Diags diags;
  EXPECT_TRUE(verify(module, diags)) << problemsOf(diags) << print(module);
  std::string text = print(module);
  for (const char *part : {"%done, [%bar], %parity;", "@!%done bra ", "%done_1, [bars+8], 1;", "L_wait:", "L_wait_1;"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_EQ(text.find("Waits until"), std::string::npos) << "the description is not expanded";
}

TEST(Templates, HolesAreChecked) {
  Function function;
  Builder b(function);
  Val bar = b.reg(Type::b32, "bar"), wide = b.reg(Type::b64, "wide"), p = b.reg(Type::pred, "p");
  EXPECT_DEATH(b.expand("sm90/mbar_wait", {{"bar", bar}}), "its holes are bar: b32, parity: b32; 1 were given");
  EXPECT_DEATH(b.expand("sm90/mbar_wait", {{"bar", bar}, {"x", bar}}), "no hole `x`");
  EXPECT_DEATH(b.expand("sm90/mbar_wait", {{"bar", wide}, {"parity", 0}}), "hole `bar` takes bar: b32");
  EXPECT_DEATH(b.expand("sm90/mbar_wait", {{"bar", bar}, {"parity", p}}), "hole `parity` takes parity: b32");
  EXPECT_DEATH(b.expand("sm90/nothing", {}), "does not exist");
}

std::string reading(llvm::StringRef text) {
  Diags diags;
  bool good = readTemplate("sm90/t", diags.addSource("t.ptx", text), diags) != nullptr;
  std::string all;
  for (const Problem &problem : diags.all())
    all += problem.message + "\n";
  EXPECT_EQ(good, all.empty());
  return all;
}

TEST(Templates, BadOnesAreRefused) {
  auto says = [](llvm::StringRef text, llvm::StringRef message) {
    std::string all = reading(text);
    EXPECT_NE(all.find(message.str()), std::string::npos) << text.str() << "\n" << all;
  };
  EXPECT_EQ(reading("//! hole a: b32\n.reg .b32 r;\nadd.u32 r, <a>, 1;"), "");
  EXPECT_EQ(reading("//! hole to: label\nbra <to>;"), "");
  EXPECT_EQ(reading("//! hole c: pred\n.reg .b32 r;\nselp.b32 r, 1, 0, <c>;"), "");
  says("//! hole a\nret;", "a hole is declared as");
  says("//! hole a: b33\nret;", "a hole is declared as");
  says("//! hole a: b32\n//! hole a: b32\n.reg .b32 r;\nmov.b32 r, <a>;", "each name once");
  says("//! hole a: b32\nret;", "never uses its hole `a`");
  says("//! hole bar: b32\n.reg .b32 r;\nadd.u32 r, <bar>, <baz>;", "declares no hole `baz`; did you mean `bar`?");
  says("//! hole a: b64\n.reg .b32 r;\nadd.u32 r, <a>, 1;", "operand `a` of `add.u32` is .u32; register `<a>` is .b64");
  says("//! hole a: f32\n.reg .b32 r;\nadd.u32 r, <a>, 1;", "register `<a>` is .f32");
  says(".shared .b8 x[4];\nret;", "a template declares registers only: give `x` to it as a hole");
  says("ad.u32 r, 1;", "unknown instruction");
  says("ret; }", "expected the end of the text");
  says("{ ret;", "expected `}`");
}

struct Directory {
  llvm::SmallString<128> path;
  Directory() {
    llvm::sys::fs::createUniqueDirectory("templates", path);
    llvm::sys::fs::create_directory(path + "/sm90");
  }
  ~Directory() {
    llvm::sys::fs::remove_directories(path);
    Diags diags;
    llvm::SmallString<128> empty;
    llvm::sys::fs::createUniqueDirectory("templates", empty);
    setTemplateDirectory(empty, diags); // back to the built-in ones
    llvm::sys::fs::remove(empty);
  }
  void write(llvm::StringRef name, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(llvm::SmallString<128>(llvm::formatv("{0}/{1}", path, name).str()), error) << text;
  }
  std::string set() {
    Diags diags;
    setTemplateDirectory(path, diags);
    return diags.all().empty() ? "" : diags.all().front().message;
  }
};

TEST(Templates, ADirectoryOverridesThem) {
  Directory directory;
  directory.write("sm90/mbar_wait.ptx", "//! hole bar: b32\n//! hole parity: b32\n.reg .pred ready;\n"
                                        "mbarrier.test_wait.parity.shared.b64 ready, [<bar>], <parity>;\n");
  EXPECT_EQ(directory.set(), "");
  Function function;
  Builder b(function);
  b.expand("sm90/mbar_wait", {{"bar", b.reg(Type::b32, "bar")}, {"parity", 0}});
  EXPECT_EQ(function.body.back().inst.op, Op::MbarrierTestWaitParity);
}

TEST(Templates, AWrongDirectoryIsRefused) {
  Directory directory;
  directory.write("sm90/mbar_wait.ptx", "//! hole bar: b32\n.reg .b32 r;\nmov.b32 r, <bar>;\n");
  EXPECT_NE(directory.set().find("must have the holes of the built-in one, bar: b32, parity: b32: it lacks `parity`"),
            std::string::npos);
  directory.write("sm90/mbar_wait.ptx", "ad.u32 r, 1;");
  EXPECT_NE(directory.set().find("unknown instruction `ad`"), std::string::npos);
  llvm::sys::fs::remove(directory.path + "/sm90/mbar_wait.ptx");
  directory.write("sm90/mbar_wai.ptx", "ret;");
  EXPECT_NE(directory.set().find("there is no template `sm90/mbar_wai` to override; did you mean `sm90/mbar_wait`?"),
            std::string::npos);
  Diags diags;
  EXPECT_FALSE(setTemplateDirectory("/no/such/directory", diags));
  EXPECT_NE(diags.all().front().message.find("cannot be read as a directory"), std::string::npos);
}
} // namespace
