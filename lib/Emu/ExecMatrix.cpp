// ldmatrix, stmatrix, mma.sync, wmma (PTX ISA 9.7.14). Lane maps and arithmetic: `gemmc/Emu/MatrixMemory.h`, `Mma.h`.
#include "Banks.h"
#include "Check.h"
#include "Lanes.h"
#include "gemmc/Emu/MatrixMemory.h"
#include "gemmc/Emu/Mma.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {
namespace {

using Registers = llvm::SmallVector<uint32_t *, 16>;
using Sources = llvm::SmallVector<const uint32_t *, 16>;

Registers destinations(Warp &warp, const Arg &vector) {
  Registers regs;
  for (unsigned i = 0; i < vector.count; ++i)
    regs.push_back(warp.write<uint32_t>(warp.element(vector, i)));
  return regs;
}
Sources sources(const Warp &warp, const Arg &vector) {
  Sources regs;
  for (unsigned i = 0; i < vector.count; ++i)
    regs.push_back(warp.read<uint32_t>(warp.element(vector, i)));
  return regs;
}

/// Matrix instructions need all 32 lanes.
std::optional<Step> wholeWarp(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warp.aligned(code, mask))
    return wait;
  if (mask == allLanes)
    return std::nullopt;
  return warp.fail(code, firstLane(mask), "MM-1",
                   formatv("only lanes {0:x} of the warp are left: this instruction needs all 32", mask).str());
}

/// The row that a lane's address is for.
LaneBytes rowOf(Warp &warp, const Code &code, unsigned lane) {
  std::array<LaneBytes, numLanes> all;
  std::array<std::byte *, numLanes> rows;
  for (unsigned l = 0; l < numLanes; ++l)
    rows[l] = all[l].data();
  all[lane] = {};
  sem::stmatrix(code.imm[0], code.flags, sources(warp, code.args[code.imm[2]]).data(), rows.data());
  return all[lane];
}

/// `imm[0]`: matrices; `flags`: transposed; `imm[1]`: index of the address, `imm[2]`: of the registers.
template <bool isLoad> Step matrices(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = wholeWarp(warp, code, mask))
    return *wait;
  unsigned count = code.imm[0];
  std::array<std::byte *, numLanes> rows{};
  std::array<uint32_t, numLanes> addresses{};
  std::array<uint64_t, numLanes> whole{};
  for (unsigned l = 0; l < 8 * count; ++l) {
    uint64_t address = whole[l] = warp.address(code.args[code.imm[1]], l);
    addresses[l] = static_cast<uint32_t>(address);
    rows[l] = warp.memory(code.where, address, 16, 16, l, code);
    if (!rows[l])
      return Step::Stop;
  }
  Traffic traffic;
  for (unsigned m = 0; m < count; ++m)
    traffic.bankConflicts += extraWavefronts(addresses.data() + 8 * m, 8, 16);
  warp.cluster.stats.count(isLoad ? &Stats::loads : &Stats::stores, code.line, traffic);
  if (Check *check = warp.cluster.check.get()) {
    Mask lanes = count == 4 ? allLanes : (Mask(1) << 8 * count) - 1;
    check->generic(warp, code, lanes, whole.data(), code.where, 16,
                   (isLoad ? Check::read : Check::write) | Check::collective);
    if (!isLoad)
      check->compareLanes(warp, code, lanes, rows.data(), 16, [&](unsigned l) { return rowOf(warp, code, l); });
  }
  const Arg &vector = code.args[code.imm[2]];
  if constexpr (isLoad)
    sem::ldmatrix(count, code.flags, rows.data(), destinations(warp, vector).data());
  else {
    sem::stmatrix(count, code.flags, sources(warp, vector).data(), rows.data());
    ++warp.cluster.version;
  }
  return Step::Next;
}
template <bool isLoad> Exec matricesExec(Decoder &d) {
  d.code->where = d.where();
  d.code->imm[0] = d.has("x4") ? 4 : d.has("x2") ? 2 : 1;
  d.code->imm[1] = isLoad ? 1 : 0;
  d.code->imm[2] = isLoad ? 0 : 1;
  d.flag("trans", 1);
  return d.arg(d.code->imm[2]).count == static_cast<unsigned>(d.code->imm[0]) ? matrices<isLoad> : unmodelled;
}

Step movmatrix(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = wholeWarp(warp, code, mask))
    return *wait;
  sem::movmatrix(warp.read<uint32_t>(code.args[1]), warp.write<uint32_t>(code.args[0]));
  return Step::Next;
}

// --- mma and wmma

/// `m16n8k16` among the modifiers.
void readShape(const Decoder &d, sem::MmaForm &form) {
  for (unsigned i = 0; i < d.inst->mods.size(); ++i) {
    llvm::StringRef text = d.inst->mod(i);
    unsigned m, n, k;
    if (text.consume_front("m") && !text.consumeInteger(10, m) && text.consume_front("n") &&
        !text.consumeInteger(10, n) && text.consume_front("k") && !text.consumeInteger(10, k))
      form.m = m, form.n = n, form.k = k;
  }
}
/// Orders in the sequence of the mnemonic.
llvm::SmallVector<Order, 2> readOrders(const Decoder &d) {
  llvm::SmallVector<Order, 2> orders;
  for (unsigned i = 0; i < d.inst->mods.size(); ++i)
    if (llvm::StringRef text = d.inst->mod(i); text == "row" || text == "col")
      orders.push_back(text == "row" ? Order::row : Order::col);
  return orders;
}
sem::MmaForm readForm(const Decoder &d) {
  sem::MmaForm form;
  readShape(d, form);
  if (auto orders = readOrders(d); orders.size() == 2)
    form.aOrder = orders[0], form.bOrder = orders[1];
  form.satfinite = d.has("satfinite");
  form.exclusive = d.has("xor");
  form.round = d.has("rz")   ? sem::Round::zero
               : d.has("rm") ? sem::Round::down
               : d.has("rp") ? sem::Round::up
                             : sem::Round::nearest;
  form.chip = sem::chipOf(d.program.sm);
  return form;
}

/// Operands: {d}, {a}, {b}, {c}. The form is in the program's list at `imm[0]`.
template <auto compute> Step multiply(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = wholeWarp(warp, code, mask))
    return *wait;
  const sem::MmaForm &form = warp.program.mmaForms[code.imm[0]];
  compute(form, sources(warp, code.args[1]).data(), sources(warp, code.args[2]).data(),
          sources(warp, code.args[3]).data(), destinations(warp, code.args[0]).data());
  return Step::Next;
}

unsigned keepForm(Decoder &d, const sem::MmaForm &form) {
  d.program.mmaForms.push_back(form);
  return d.program.mmaForms.size() - 1;
}
template <typename Count> bool countsFit(Decoder &d, const sem::MmaForm &form, Count count) {
  constexpr sem::Role roles[] = {sem::Role::d, sem::Role::a, sem::Role::b, sem::Role::c};
  for (unsigned i = 0; i < 4; ++i)
    if (d.arg(i).count != count(form, roles[i]))
      return false;
  return true;
}
Exec mmaExec(Decoder &d) {
  sem::MmaForm form = readForm(d);
  form.d = d.typeAt(1), form.a = d.typeAt(2), form.b = d.typeAt(3), form.c = d.typeAt(4);
  if (!sem::isMma(form) || !countsFit(d, form, sem::mmaRegs))
    return unmodelled;
  d.code->imm[0] = keepForm(d, form);
  return multiply<sem::mma>;
}
/// wmma of f16 names only the types of D and C.
Exec wmmaExec(Decoder &d, bool shortForm = false) {
  sem::MmaForm form = readForm(d);
  form.d = d.typeAt(1), form.c = d.typeAt(shortForm ? 2 : 4);
  form.a = shortForm ? Type::f16 : d.typeAt(2);
  form.b = shortForm ? Type::f16 : d.typeAt(3);
  if (!sem::isWmma(form) || !countsFit(d, form, sem::wmmaRegs))
    return unmodelled;
  d.code->imm[0] = keepForm(d, form);
  return multiply<sem::wmma>;
}

/// The lines of the matrix in memory: address, then every `stride` elements. False after a finding.
bool matrixLines(Warp &warp, const Code &code, const sem::MmaForm &form, sem::Role role, Order order, bool isLoad,
                 llvm::SmallVectorImpl<std::byte *> &to) {
  sem::WmmaLines lines = sem::wmmaLines(form, role, order);
  const Arg &address = code.args[isLoad ? 1 : 0], &stride = code.args[2];
  const uint64_t least = sem::wmmaDefaultStride(form, role, order);
  auto strideOf = [&](unsigned l) { return stride.kind == Arg::None ? least : warp.value(stride, l) & 0xffffffff; };
  uint64_t start = warp.address(address, 0), step = strideOf(0);
  uint64_t pitch = step * ptx::bitsOf(code.type) / 8;
  for (unsigned l = 1; l < numLanes; ++l)
    if (bool other = warp.address(address, l) != start; other || strideOf(l) != step) {
      warp.fail(code, l, "WM-1",
                formatv("the lanes of a warp give different {0} to `wmma`", other ? "addresses" : "strides").str());
      return false;
    }
  if (step < least) {
    warp.fail(code, 0, "WM-3",
              formatv("a stride of {0} elements between lines of {1}: each line would begin within the one before it; "
                      "the stride is {1} at least",
                      step, least)
                  .str());
    return false;
  }
  std::array<uint64_t, numLanes> addresses;
  unsigned align = std::min(lines.bytes, 16u);
  for (unsigned i = 0; i < lines.count; ++i) {
    if ((start + i * pitch) % align) {
      warp.fail(code, 0, "WM-2",
                formatv("line {0} of the matrix begins at {1:x}, which is not aligned to {2} bytes", i,
                        start + i * pitch, align)
                    .str());
      return false;
    }
    std::byte *line = warp.memory(code.where, start + i * pitch, lines.bytes, 1, 0, code);
    if (!line)
      return false;
    to.push_back(line);
    addresses[i] = start + i * pitch;
  }
  if (code.where == Where::Shared) {
    unsigned conflicts = wmmaConflicts(form, role, order, llvm::ArrayRef(addresses).take_front(lines.count));
    warp.cluster.stats.count(isLoad ? &Stats::loads : &Stats::stores, code.line, {conflicts, 0});
  }
  if (warp.cluster.check)
    warp.cluster.check->generic(warp, code, lines.count == numLanes ? allLanes : (Mask(1) << lines.count) - 1,
                                addresses.data(), code.where, lines.bytes,
                                (isLoad ? Check::read : Check::write) | Check::collective);
  return true;
}
/// `imm[1]`: the fragment's role; `imm[2]`: the order in memory.
template <bool isLoad> Step wmmaMemory(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = wholeWarp(warp, code, mask))
    return *wait;
  const sem::MmaForm &form = warp.program.mmaForms[code.imm[0]];
  auto role = static_cast<sem::Role>(code.imm[1]);
  auto order = static_cast<Order>(code.imm[2]);
  llvm::SmallVector<std::byte *, 32> lines;
  if (!matrixLines(warp, code, form, role, order, isLoad, lines))
    return Step::Stop;
  if constexpr (isLoad)
    sem::wmmaLoad(form, role, order, lines.data(), destinations(warp, code.args[0]).data());
  else {
    sem::wmmaStore(form, order, sources(warp, code.args[1]).data(), lines.data());
    ++warp.cluster.version;
  }
  return Step::Next;
}
/// A load or store names the type of its own matrix only; the others follow from it.
sem::MmaForm formAround(const Decoder &d, sem::Role role) {
  sem::MmaForm form = readForm(d);
  Type type = d.type();
  bool isFactor = role == sem::Role::a || role == sem::Role::b;
  form.a = form.b = isFactor ? type : type == Type::s32 ? Type::s8 : type == Type::f64 ? Type::f64 : Type::f16;
  if (!isFactor && form.m == 16 && form.k == 8)
    form.a = form.b = Type::tf32;
  if (!isFactor && form.m == 8 && form.k == 32)
    form.a = form.b = Type::s4;
  if (!isFactor && form.k == 128)
    form.a = form.b = Type::b1;
  bool isInteger = type == Type::s8 || type == Type::u8 || type == Type::s4 || type == Type::u4 || type == Type::b1;
  form.c = form.d = !isFactor ? type : isInteger ? Type::s32 : type == Type::f64 ? Type::f64 : Type::f32;
  return form;
}
template <bool isLoad> Exec wmmaMemoryExec(Decoder &d, sem::Role role) {
  sem::MmaForm form = formAround(d, role);
  if (!sem::isWmma(form) || d.arg(isLoad ? 0 : 1).count != sem::wmmaRegs(form, role))
    return unmodelled;
  d.code->where = d.where();
  d.code->imm[0] = keepForm(d, form);
  d.code->imm[1] = static_cast<int32_t>(role);
  d.code->imm[2] = static_cast<int32_t>(readOrders(d).front());
  return wmmaMemory<isLoad>;
}
} // namespace

Exec execLdmatrix(Decoder &d) { return matricesExec<true>(d); }
Exec execStmatrix(Decoder &d) { return matricesExec<false>(d); }
Exec execMovmatrix(Decoder &) { return movmatrix; }
Exec execMmaF16(Decoder &d) { return mmaExec(d); }
Exec execMmaF16Quad(Decoder &d) { return mmaExec(d); }
Exec execMmaBf16(Decoder &d) { return mmaExec(d); }
Exec execMmaTf32(Decoder &d) { return mmaExec(d); }
Exec execMmaF64(Decoder &d) { return mmaExec(d); }
Exec execMmaInt8(Decoder &d) { return mmaExec(d); }
Exec execMmaInt4(Decoder &d) { return mmaExec(d); }
Exec execMmaBit(Decoder &d) { return mmaExec(d); }
Exec execMmaFp8(Decoder &d) { return mmaExec(d); }
Exec execWmmaLoad(Decoder &d) { return wmmaMemoryExec<true>(d, d.has("a") ? sem::Role::a : sem::Role::b); }
Exec execWmmaLoadC(Decoder &d) { return wmmaMemoryExec<true>(d, sem::Role::c); }
Exec execWmmaStore(Decoder &d) { return wmmaMemoryExec<false>(d, sem::Role::d); }
Exec execWmmaF16(Decoder &d) { return wmmaExec(d, true); }
Exec execWmmaBf16(Decoder &d) { return wmmaExec(d); }
Exec execWmmaTf32(Decoder &d) { return wmmaExec(d); }
Exec execWmmaF64(Decoder &d) { return wmmaExec(d); }
Exec execWmmaInt8(Decoder &d) { return wmmaExec(d); }
Exec execWmmaInt4(Decoder &d) { return wmmaExec(d); }
Exec execWmmaBit(Decoder &d) { return wmmaExec(d); }

} // namespace gemmc::emu
