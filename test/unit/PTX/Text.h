/// PTX text for tests: a kernel around some lines, and what the parser or the verifier says about it.
#pragma once
#include "RowLines.h"

namespace gemmc::ptx::test {

/// A kernel on sm_90a (or `target`) with registers p, q (pred), h (b16), r, s, t, u (b32), f, g (f32), d, e (b64), x, y
/// (f64).
inline std::string kernel(llvm::StringRef body, llvm::StringRef target = "sm_90a", llvm::StringRef version = "8.3") {
  return (".version " + version + "\n.target " + target + "\n.address_size 64\n" +
          ".visible .entry k(.param .u64 in, .param .align 64 .b8 map[128])\n{\n" +
          ".reg .pred p, q; .reg .b16 h; .reg .b32 r, s, t, u; .reg .f32 f, g; .reg .b64 d, e; .reg .f64 x, y;\n" +
          ".shared .align 16 .b8 buffer[256];\n" + body + "\n}\n")
      .str();
}

/// All messages that reading and verifying produce, a line each.
inline std::string messages(llvm::StringRef text) {
  Diags diags;
  llvm::StringRef source = diags.addSource("test.ptx", text);
  if (auto module = parse(source, diags))
    verify(*module, diags, source);
  std::string all;
  for (const Problem &problem : diags.all())
    all += problem.message + "\n";
  return all;
}

/// What is marked by the first problem.
inline std::string marked(llvm::StringRef text) {
  Diags diags;
  llvm::StringRef source = diags.addSource("test.ptx", text);
  if (auto module = parse(source, diags))
    verify(*module, diags, source);
  if (diags.all().empty() || !diags.all().front().range.isValid())
    return "";
  llvm::SMRange range = diags.all().front().range;
  return std::string(range.Start.getPointer(), range.End.getPointer());
}

} // namespace gemmc::ptx::test
