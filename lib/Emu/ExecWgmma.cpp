// wgmma (PTX ISA 9.7.15). Descriptors, operands and arithmetic: `gemmc/Emu/Wgmma.h`.
//
// Each warp of a warpgroup computes its own 16 rows. An instruction is noted when it is issued and executes when the
// warp waits for its group: shared memory and the A registers are read then, as late as the machine may.
#include "Lanes.h"
#include "gemmc/Emu/Wgmma.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {
namespace {

/// The four warps of a warpgroup execute it converged.
std::optional<Step> warpgroupReady(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warp.aligned(code, mask))
    return wait;
  if (mask != allLanes)
    return warp.fail(code, firstLane(mask), "WG-4", "`wgmma` in a warp some of whose lanes have exited");
  if ((warp.index | 3) >= warp.cta.warps.size())
    return warp.fail(
        code, 0, "WG-4",
        formatv("`wgmma` in warp {0}, but the CTA has {1} warps: a warpgroup is 4", warp.index, warp.cta.warps.size())
            .str());
  return std::nullopt;
}

/// A descriptor must be the same in all lanes.
std::optional<uint64_t> uniformDescriptor(Warp &warp, const Code &code, const Arg &arg) {
  uint64_t descriptor = warp.value(arg, 0);
  for (unsigned l = 1; l < numLanes; ++l)
    if (warp.value(arg, l) != descriptor) {
      warp.fail(code, l, "WG-5", "the lanes of a warp give different matrix descriptors");
      return std::nullopt;
    }
  return descriptor;
}

/// Operands: {d}, adesc or {a}, bdesc, scaled...
Step issue(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  PendingWgmma pending;
  pending.code = &code;
  pending.group = warp.async.wgmmaGroups;
  pending.accumulate = warp.pred(code.args[3]) & 1;
  if (code.args[1].kind == Arg::Value) {
    auto descriptor = uniformDescriptor(warp, code, code.args[1]);
    if (!descriptor)
      return Step::Stop;
    pending.descA = *descriptor;
  }
  auto descriptor = uniformDescriptor(warp, code, code.args[2]);
  if (!descriptor)
    return Step::Stop;
  pending.descB = *descriptor;
  warp.async.wgmmas.push_back(pending);
  return Step::Next;
}

sem::Broken gather(Warp &warp, const sem::WgmmaForm &form, bool isB, uint64_t bits, sem::WgmmaOperand &operand) {
  sem::WgmmaDescriptor descriptor;
  if (sem::Broken broken = sem::decodeDescriptor(bits, descriptor))
    return broken;
  unsigned first = isB ? 0 : warp.index % 4 * 16, lines = isB ? form.n : 16;
  return sem::gatherShared(form, isB, descriptor, first, lines, warp.cta.shared, operand);
}

bool execute(Warp &warp, const PendingWgmma &pending) {
  static thread_local sem::WgmmaOperand a, b; // large: kept from call to call
  const Code &code = *pending.code;
  const sem::WgmmaForm &form = warp.program.wgmmaForms[code.imm[0]];
  sem::Broken broken;
  if (code.args[1].kind == Arg::Vector) {
    const uint32_t *regs[4];
    for (unsigned i = 0; i < 4; ++i)
      regs[i] = warp.read<uint32_t>(warp.element(code.args[1], i));
    sem::gatherRegisters(form, regs, a);
  } else
    broken = gather(warp, form, false, pending.descA, a);
  if (!broken)
    broken = gather(warp, form, true, pending.descB, b);
  if (broken) {
    if (llvm::StringRef(broken.rule) == "unmodelled")
      warp.incomplete(code, 0, broken.rule, broken.text);
    else
      warp.fail(code, 0, broken.rule, broken.text);
    return false;
  }
  llvm::SmallVector<uint32_t *, 128> d;
  for (unsigned i = 0; i < code.args[0].count; ++i)
    d.push_back(warp.write<uint32_t>(warp.element(code.args[0], i)));
  sem::wgmma(form, a, b, pending.accumulate, d.data());
  return true;
}

/// `fence` orders registers, which the emulator reads late and writes late: nothing to do.
Step fence(Warp &warp, const Code &code, Mask mask) {
  auto wait = warpgroupReady(warp, code, mask);
  return wait ? *wait : Step::Next;
}
Step commit(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  ++warp.async.wgmmaGroups;
  return Step::Next;
}
Step wait(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  auto &list = warp.async.wgmmas;
  auto keep = static_cast<uint32_t>(code.imm[0]);
  size_t done = 0;
  while (done < list.size() && list[done].group + keep < warp.async.wgmmaGroups)
    if (!execute(warp, list[done++]))
      return Step::Stop;
  list.erase(list.begin(), list.begin() + done);
  return Step::Next;
}

// --- Decoding

/// The immediates behind the predicate: scale-a, scale-b, and the transpositions of the operands that are descriptors.
void readImmediates(const Decoder &d, sem::WgmmaForm &form) {
  bool fromRegisters = d.inst->ops[1].kind == ptx::Operand::Vector;
  auto at = [&](unsigned index, int64_t otherwise) { return d.present(index) ? d.immediate(index) : otherwise; };
  form.negateA = at(4, 1) == -1;
  form.negateB = at(5, 1) == -1;
  form.transA = !fromRegisters && at(6, 0);
  form.transB = at(fromRegisters ? 6 : 7, 0);
}
Exec wgmmaExec(Decoder &d) {
  sem::WgmmaForm form;
  for (unsigned i = 0; i < d.inst->mods.size(); ++i) {
    llvm::StringRef text = d.inst->mod(i);
    unsigned n, k;
    if (text.consume_front("m64n") && !text.consumeInteger(10, n) && text.consume_front("k") &&
        !text.consumeInteger(10, k))
      form.n = n, form.k = k;
  }
  form.d = d.typeAt(1), form.a = d.typeAt(2), form.b = d.typeAt(3);
  form.satfinite = d.has("satfinite");
  readImmediates(d, form);
  bool registersFit = d.arg(1).kind != Arg::Vector || d.arg(1).count == 4;
  if (!sem::isWgmma(form) || d.arg(0).count != sem::wgmmaRegsD(form) || !registersFit)
    return unmodelled;
  d.program.wgmmaForms.push_back(form);
  d.code->imm[0] = d.program.wgmmaForms.size() - 1;
  return issue;
}
} // namespace

Exec execWgmmaFence(Decoder &) { return fence; }
Exec execWgmmaCommit(Decoder &) { return commit; }
Exec execWgmmaWait(Decoder &d) {
  d.code->imm[0] = d.immediate(0);
  return wait;
}
Exec execWgmmaF16(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaF16Reg(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaBf16(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaBf16Reg(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaTf32(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaTf32Reg(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaFp8(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaFp8Reg(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaInt8(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaInt8Reg(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaBit(Decoder &d) { return wgmmaExec(d); }
Exec execWgmmaBitReg(Decoder &d) { return wgmmaExec(d); }

} // namespace gemmc::emu
