/// Runs PTX bodies on the emulator. A body is wrapped into the kernel `k` with one pointer parameter, `out`, whose
/// value is in `%out`, and with `%t` the thread's linear index; whole modules run as they are.
#pragma once
#include "gemmc/Emu/Emulator.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <bit>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace gemmc::emu::test {

/// Stores %r of each thread in its place of `out`.
inline const std::string storeResult = "mul.wide.u32 %w, %t, 4;\nadd.u64 %w, %w, %out;\nst.global.b32 [%w], %r;\n";

inline std::string waitLoop(const std::string &label, const std::string &barrier, const std::string &parity) {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p, [" + barrier + "], " + parity + ";\n@!%p bra " +
         label + ";\n";
}

inline std::vector<uint32_t> counting(size_t count, uint32_t from = 0) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

inline float f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

/// Rows that occurred in a kernel which ran to its end without a finding; core_coverage.cpp looks at it.
inline std::set<ptx::Op> &executedRows() {
  static std::set<ptx::Op> rows;
  return rows;
}

struct Trial {
  Memory memory;
  LaunchParams params;
  Options options;
  Result result;
  std::string problems; ///< Of the parser.

  Trial() {
    params.block = {32, 1, 1};
    options.threads = 1;
  }
  template <typename T> uint64_t buffer(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T));
    std::memcpy(memory.find(address, values.size() * sizeof(T)), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T> std::vector<T> read(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.find(address, count * sizeof(T)), count * sizeof(T));
    return values;
  }
  template <typename T> void param(T value) {
    size_t at = (params.params.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    params.params.resize(at + sizeof(T));
    std::memcpy(params.params.data() + at, &value, sizeof(T));
  }

  /// Runs the kernel `k` of a module without its head (`.version` and `.target`).
  Result &module(const std::string &text, const std::string &target = "sm_90a") {
    Diags diags;
    llvm::StringRef source =
        diags.addSource("test.ptx", ".version 8.6\n.target " + target + "\n.address_size 64\n" + text);
    std::optional<ptx::Module> parsed = ptx::parse(source, diags);
    llvm::raw_string_ostream stream(problems);
    diags.print(stream);
    if (!parsed || diags.hasErrors()) {
      ADD_FAILURE() << problems;
      return result;
    }
    std::shared_ptr<const Kernel> kernel = Kernel::load(*parsed, "k");
    if (!kernel) {
      ADD_FAILURE() << "no kernel `k`";
      return result;
    }
    result = kernel->launch(params, memory, options);
    if (result.verdict == Verdict::clean)
      for (const ptx::Stmt &stmt : parsed->find("k")->body)
        if (stmt.kind == ptx::Stmt::Instruction)
          executedRows().insert(stmt.inst.op);
    return result;
  }
  /// `head`: declarations in front of the kernel; `regs`: declarations in it.
  Result &body(const std::string &regs, const std::string &code, const std::string &head = "",
               const std::string &directives = "") {
    return module(head + "\n.visible .entry k(.param .u64 out)\n" + directives +
                  "{\n.reg .b64 %out;\n.reg .b32 %t, %t1, %t2;\n" + regs + R"(
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
mov.u32 %t1, %tid.y;
mov.u32 %t2, %ntid.x;
mad.lo.u32 %t, %t1, %t2, %t;
)" + code + "\nret;\n}\n");
  }
  std::string text() const {
    std::string all;
    for (const Finding &finding : result.findings)
      all += finding.code + " line " + std::to_string(finding.line) + ": " + finding.message + "\n";
    return all;
  }
};

/// Lane-wise instruction: `code` computes `%d` of width `outBits` from `%a`, `%b`, `%c`, filled from the inputs by
/// thread.
struct LaneTest {
  std::vector<uint64_t> a, b, c;

  /// One element a thread; register widths in bits.
  std::vector<uint64_t> run(const std::string &code, unsigned outBits, unsigned aBits, unsigned bBits = 32,
                            unsigned cBits = 32) {
    Trial r;
    size_t count = a.size();
    b.resize(count), c.resize(count);
    uint64_t out = r.buffer(std::vector<uint64_t>(count, 0));
    r.param(out);
    r.param(r.buffer(a));
    r.param(r.buffer(b));
    r.param(r.buffer(c));
    r.params.block = {static_cast<uint32_t>(count), 1, 1};
    auto reg = [](unsigned bits, const char *name) {
      return bits == 1 ? std::string(".reg .pred ") + name + ";\n"
                       : ".reg .b" + std::to_string(bits) + " " + name + ";\n";
    };
    auto load = [&](unsigned bits, const std::string &name) {
      std::string text = "ld.param.u64 %p" + name + ", [" + name + "];\nadd.u64 %p" + name + ", %p" + name + ", %o;\n";
      if (bits == 1)
        return text + "ld.global.b64 %x, [%p" + name + "];\nsetp.ne.b64 %" + name + ", %x, 0;\n";
      return text + "ld.global.b" + std::to_string(bits) + " %" + name + ", [%p" + name + "];\n";
    };
    std::string store = outBits == 1 ? "selp.b64 %x, 1, 0, %d;\nst.global.b64 [%po], %x;\n"
                                     : "st.global.b" + std::to_string(outBits) + " [%po], %d;\n";
    r.module(".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c) {\n"
             ".reg .b64 %o, %po, %pa, %pb, %pc, %x;\n.reg .b32 %t, %e, %f;\n.reg .pred %p, %q;\n" +
             reg(outBits, "%d") + reg(aBits, "%a") + reg(bBits, "%b") + reg(cBits, "%c") +
             "mov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 8;\nld.param.u64 %po, [out];\nadd.u64 %po, %po, %o;\n" +
             load(aBits, "a") + load(bBits, "b") + load(cBits, "c") + code + "\n" + store + "ret;\n}\n");
    EXPECT_EQ(r.result.verdict, Verdict::clean) << code << "\n" << r.text();
    return r.read<uint64_t>(out, count);
  }
};

} // namespace gemmc::emu::test
