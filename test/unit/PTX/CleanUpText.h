/// Kernels as text for the tests of the clean-up passes: what a pass must make of them, and what it must leave alone.
#pragma once
#include "gemmc/PTX/CleanUp.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

namespace gemmc::ptx::test {

/// A kernel around `body`. Registers: %r 32 bits, %d 64 bits, %f f32, %p predicates, %h 16 bits, ten of each.
inline Module moduleAround(llvm::StringRef body) {
  std::string text = R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<10>;
.reg .b64 %d<10>;
.reg .f32 %f<10>;
.reg .b16 %h<10>;
.reg .pred %p<10>;
.shared .align 16 .b8 smem[1024];
)" + body.str() + "\n}\n";
  Diags diags;
  auto module = parse(diags.addSource("kernel.ptx", text), diags);
  diags.print(llvm::errs());
  EXPECT_TRUE(module) << body.str();
  return module.value_or(Module());
}

/// The statements alone, printed.
inline std::string bodyOf(const Module &module) {
  std::string text = print(module), body;
  bool inside = false;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    llvm::StringRef trimmed = line.trim();
    if (inside && trimmed != "}" && !trimmed.starts_with(".reg") && !trimmed.starts_with(".shared"))
      body += (trimmed + "\n").str();
    inside |= trimmed == "{";
  }
  return llvm::StringRef(body).trim().str();
}

using Pass = bool (*)(Function &);

/// `before` must become `after`, and then stay.
inline void becomes(Pass pass, llvm::StringRef before, llvm::StringRef after, llvm::StringRef why = "") {
  Module module = moduleAround(before);
  EXPECT_TRUE(pass(module.functions.at(0))) << "unchanged: " << before.str();
  EXPECT_EQ(bodyOf(module), bodyOf(moduleAround(after))) << why.str();
  Diags diags;
  EXPECT_TRUE(verify(module, diags));
  EXPECT_FALSE(pass(module.functions.at(0))) << "a second run changed:\n" << bodyOf(module);
}
inline void stays(Pass pass, llvm::StringRef body, llvm::StringRef why = "") {
  Module module = moduleAround(body);
  std::string before = print(module);
  EXPECT_FALSE(pass(module.functions.at(0)));
  EXPECT_EQ(print(module), before) << why.str();
}

} // namespace gemmc::ptx::test
