// wgmma (PTX ISA 9.7.15). Descriptors, operands and arithmetic: `gemmc/Emu/Wgmma.h`.
//
// Each warp of a warpgroup computes its own 16 rows. An operation is noted when the first warp issues it and executes,
// for all four, when one of them waits for its group: shared memory and the A registers are read then, as late as the
// machine may (or, in the eager schedule, when the last of the four has issued it).
#include "Check.h"
#include "Lanes.h"
#include "gemmc/Emu/Timeline.h"
#include "gemmc/Emu/Wgmma.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {
namespace {

/// The four warps of a warpgroup execute it converged.
std::optional<Step> warpgroupReady(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warp.aligned(code, mask))
    return wait;
  if (!warp.cta.hasWarpgroup(warp))
    return warp.fail(code, 0, "WG-11",
                     formatv("`wgmma` in warp {0}, but the CTA has {1} threads: a warpgroup is 128, four whole warps",
                             warp.index, warp.cta.numThreads)
                         .str());
  if (mask != allLanes)
    return warp.fail(code, firstLane(mask), "WG-11", "`wgmma` in a warp some of whose lanes have exited");
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

Warpgroup &warpgroupOf(Warp &warp) { return warp.cta.warpgroups[warp.index / 4]; }

sem::Broken gather(Warp &warp, const sem::WgmmaForm &form, bool isB, uint64_t bits, sem::WgmmaOperand &operand) {
  sem::WgmmaDescriptor descriptor;
  if (sem::Broken broken = sem::decodeDescriptor(bits, descriptor))
    return broken;
  unsigned first = isB ? 0 : warp.index % 4 * 16, lines = isB ? form.n : 16;
  return sem::gatherShared(form, isB, descriptor, first, lines, warp.cta.shared, operand, window::sharedBase);
}

bool refuse(Warp &warp, const Code &code, const sem::Broken &broken) {
  if (!broken)
    return false;
  if (llvm::StringRef(broken.rule) == "unmodelled")
    warp.incomplete(code, 0, broken.rule, broken.text);
  else
    warp.fail(code, 0, broken.rule, broken.text);
  return true;
}

/// One warp's 16 rows.
bool executeShare(Warp &warp, const WgmmaOp &op, const sem::WgmmaOperand &b) {
  static thread_local sem::WgmmaOperand a; // large: kept from call to call
  const Code &code = *op.code;
  const sem::WgmmaForm &form = warp.program.wgmmaForms[code.imm[0]];
  if (code.args[1].kind == Arg::Vector) {
    const uint32_t *regs[4];
    for (unsigned i = 0; i < 4; ++i)
      regs[i] = warp.read<uint32_t>(warp.element(code.args[1], i));
    sem::gatherRegisters(form, regs, a);
  } else if (refuse(warp, code, gather(warp, form, false, op.descA, a)))
    return false;
  llvm::SmallVector<uint32_t *, 128> d;
  for (unsigned i = 0; i < code.args[0].count; ++i)
    d.push_back(warp.write<uint32_t>(warp.element(code.args[0], i)));
  sem::wgmma(form, a, b, op.accumulate, d.data());
  return true;
}

/// The four warps read the same B.
bool execute(Warp &warp, WgmmaOp &op) {
  static thread_local sem::WgmmaOperand b;
  const sem::WgmmaForm &form = warp.program.wgmmaForms[op.code->imm[0]];
  if (op.executed)
    return true;
  op.executed = true;
  if (refuse(warp, *op.code, gather(warp, form, true, op.descB, b)))
    return false;
  for (unsigned i = warp.index & ~3u; i <= (warp.index | 3u); ++i)
    if (!executeShare(*warp.cta.warps[i], op, b))
      return false;
  return true;
}

/// What the four warps must agree on.
uint64_t keyOf(const WgmmaOp &op) {
  uint64_t key = 0xcbf29ce484222325;
  for (uint64_t part : {uint64_t(reinterpret_cast<uintptr_t>(op.code)), op.descA, op.descB, uint64_t(op.accumulate)})
    key = (key ^ part) * 0x9e3779b97f4a7c15;
  return key;
}

/// Operands: {d}, adesc or {a}, bdesc, scaled...
Step issue(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  WgmmaOp op;
  op.code = &code;
  const Mask accumulate = warp.pred(code.args[3]);
  if (accumulate && accumulate != allLanes)
    return warp.fail(
        code, firstLane(accumulate & 1 ? ~accumulate : accumulate), "WG-4",
        "the lanes of a warp give different scale-d: some add to what the accumulators hold, others do not");
  op.accumulate = accumulate;
  if (code.args[1].kind == Arg::Value) {
    auto descriptor = uniformDescriptor(warp, code, code.args[1]);
    if (!descriptor)
      return Step::Stop;
    op.descA = *descriptor;
  }
  auto descriptor = uniformDescriptor(warp, code, code.args[2]);
  if (!descriptor)
    return Step::Stop;
  op.descB = *descriptor;
  Warpgroup &group = warpgroupOf(warp);
  auto outcome = sem::stepWarpgroup(group.state, {sem::WarpgroupCommand::issue, warp.index % 4, keyOf(op), 0});
  if (outcome.broken)
    return warp.fail(code, 0, outcome.broken.rule, outcome.broken.text);
  if (outcome.operation - group.state.first == group.ops.size())
    group.ops.push_back(op);
  if (warp.cluster.check)
    warp.cluster.check->wgmmaIssued(warp, code, op.descA, op.descB);
  auto addressOf = [](uint64_t descriptor) { return uint32_t(descriptor & 0x3fff) << 4; }; // PTX ISA 9.7.15.5.1.2.2
  if (warp.cluster.timeline)
    warp.cluster.timeline->wgmmaIssued(warp, group.state.warps[warp.index % 4].committed, addressOf(op.descA),
                                       addressOf(op.descB));
  if (outcome.complete && warp.cluster.schedule.eager() &&
      !execute(warp, group.ops[outcome.operation - group.state.first]))
    return Step::Stop;
  return Step::Next;
}

/// `fence` orders registers, which the emulator reads late and writes late: nothing to do.
Step wgmmaFence(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  if (warp.cluster.check)
    warp.cluster.check->wgmmaFence(warp);
  return Step::Next;
}
Step commit(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  sem::stepWarpgroup(warpgroupOf(warp).state, {sem::WarpgroupCommand::commit, warp.index % 4, 0, 0});
  ++warp.cluster.version;
  return Step::Next;
}
Step wait(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warpgroupReady(warp, code, mask))
    return *wait;
  Warpgroup &group = warpgroupOf(warp);
  uint32_t first = group.state.first;
  auto outcome = sem::stepWarpgroup(
      group.state, {sem::WarpgroupCommand::wait, warp.index % 4, 0, static_cast<uint32_t>(code.imm[0])});
  if (outcome.blocked) {
    warp.group().wait = Wait();
    warp.group().wait.what = Wait::Warpgroup;
    return Step::Block;
  }
  for (uint32_t i = first; i < outcome.due; ++i)
    if (!execute(warp, group.ops[i - first]))
      return Step::Stop;
  group.ops.erase(group.ops.begin(), group.ops.begin() + (group.state.first - first));
  if (warp.cluster.check)
    warp.cluster.check->wgmmaWaited(warp, outcome.groups);
  if (warp.cluster.timeline)
    warp.cluster.timeline->wgmmaWaited(warp, outcome.groups);
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

Exec execWgmmaFence(Decoder &) { return wgmmaFence; }
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
