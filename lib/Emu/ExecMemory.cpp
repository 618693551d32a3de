// Loads, stores and atomics (PTX ISA 9.7.9.8 to 9.7.9.12, 9.7.13.5 to 9.7.13.7).
#include "Banks.h"
#include "Check.h"
#include "CheckClusters.h"
#include "Formats.h"
#include "Lanes.h"
#include "llvm/ADT/StringSwitch.h"
#include <bit>
#include <cmath>
#include <cstring>

namespace gemmc::emu {
namespace {

enum Flag : uint32_t { Signed = 1, Ordered = 2, NonCoherent = 4 };

/// Bytes of one element and how often; a scalar counts as a vector of one.
unsigned countOf(const Arg &arg) { return arg.kind == Arg::Vector ? arg.count : 1; }
const Arg &elementOf(const Warp &warp, const Arg &arg, unsigned index) {
  return arg.kind == Arg::Vector ? warp.element(arg, index) : arg;
}

/// What a strong access means for the check, and its bytes, are one step to other clusters.
std::unique_lock<std::mutex> asOneStep(Warp &warp, bool strong) {
  LaunchCheck *check = strong ? warp.cluster.launch.check.get() : nullptr;
  return check ? std::unique_lock(check->strong) : std::unique_lock<std::mutex>();
}

/// Addresses of an access, checked; false after a finding.
bool locate(Warp &warp, const Code &code, const Arg &arg, unsigned bytes, Mask mask, std::byte **to, unsigned use) {
  bool good = true;
  std::array<uint64_t, numLanes> addresses;
  forLanes(mask, [&](unsigned l) {
    if (!good)
      return;
    addresses[l] = warp.address(arg, l);
    to[l] = warp.memory(code.where, addresses[l], bytes, bytes, l, code);
    good = to[l] != nullptr;
  });
  if (!good)
    return false;
  warp.cluster.stats.count(use & Check::write ? &Stats::stores : &Stats::loads, code.line,
                           trafficOf(code.where, addresses, bytes, mask, use & Check::write));
  if (warp.cluster.check)
    warp.cluster.check->generic(warp, code, mask, addresses.data(), code.where, bytes,
                                use | (code.flags & Ordered ? Check::strong : 0) |
                                    (code.flags & NonCoherent ? Check::constant : 0));
  return true;
}

void loadLane(Warp &warp, const Code &code, const Arg &to, unsigned lane, const std::byte *from) {
  if (code.bytes == 16) {
    uint64_t halves[2];
    std::memcpy(halves, from, 16);
    warp.write<uint64_t>(to)[lane] = halves[0];
    warp.write<uint64_t>(to)[numLanes + lane] = halves[1];
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, from, code.bytes);
  if (code.flags & Signed && code.bytes < 8)
    value = static_cast<uint64_t>(static_cast<int64_t>(value << (64 - 8 * code.bytes)) >> (64 - 8 * code.bytes));
  warp.set(to, lane, value);
}
/// Whether the value was not there yet.
bool storeLane(Warp &warp, const Code &code, const Arg &from, unsigned lane, std::byte *to) {
  uint64_t value[2] = {};
  if (code.bytes == 16 && from.bits == 128) {
    value[0] = warp.read<uint64_t>(from)[lane];
    value[1] = warp.read<uint64_t>(from)[numLanes + lane];
  } else {
    value[0] = warp.value(from, lane);
  }
  bool changes = std::memcmp(to, value, code.bytes) != 0;
  std::memcpy(to, value, code.bytes);
  return changes;
}

/// What a lane stores.
LaneBytes storedBy(Warp &warp, const Code &code, const Arg &from, unsigned lane) {
  LaneBytes value{};
  for (unsigned i = 0; i < countOf(from); ++i)
    storeLane(warp, code, elementOf(warp, from, i), lane, value.data() + i * code.bytes);
  return value;
}

/// 32-bit elements into 32-bit registers: the case that counts.
void loadWords(Warp &warp, const Arg &to, Mask mask, std::byte *const *from, unsigned offset) {
  uint32_t *out = warp.write<uint32_t>(to);
  forLanes(mask, [&](unsigned l) { std::memcpy(&out[l], from[l] + offset, 4); });
}
/// `changed`: set when the value is not there yet.
void storeWords(Warp &warp, const Arg &from, Mask mask, std::byte *const *to, unsigned offset, bool &changed) {
  const uint32_t *in = warp.read<uint32_t>(from);
  forLanes(mask, [&](unsigned l) {
    changed = changed || std::memcmp(to[l] + offset, &in[l], 4) != 0;
    std::memcpy(to[l] + offset, &in[l], 4);
  });
}

Step load(Warp &warp, const Code &code, Mask mask) {
  const Arg &to = code.args[0];
  unsigned count = countOf(to);
  std::byte *from[numLanes];
  if (code.flags & Ordered)
    std::atomic_thread_fence(std::memory_order_seq_cst);
  auto oneStep = asOneStep(warp, code.flags & Ordered);
  if (!locate(warp, code, code.args[1], code.bytes * count, mask, from, Check::read))
    return Step::Stop;
  for (unsigned i = 0; i < count; ++i) {
    const Arg &element = elementOf(warp, to, i);
    if (code.bytes == 4 && element.bits == 32)
      loadWords(warp, element, mask, from, 4 * i);
    else
      forLanes(mask, [&](unsigned l) { loadLane(warp, code, element, l, from[l] + i * code.bytes); });
  }
  if (!(code.flags & Ordered))
    return Step::Next;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Step::Yield; // perhaps a loop that waits for another warp
}

Step store(Warp &warp, const Code &code, Mask mask) {
  const Arg &from = code.args[1];
  unsigned count = countOf(from);
  std::byte *to[numLanes];
  if (code.flags & Ordered)
    std::atomic_thread_fence(std::memory_order_seq_cst);
  auto oneStep = asOneStep(warp, code.flags & Ordered);
  if (!locate(warp, code, code.args[0], code.bytes * count, mask, to, Check::write))
    return Step::Stop;
  if (warp.cluster.check && !(code.flags & Ordered))
    warp.cluster.check->compareLanes(warp, code, mask, to, code.bytes * count,
                                     [&](unsigned l) { return storedBy(warp, code, from, l); });
  bool changed = false; // a loop that asks for something, and waits, writes the same again and again
  for (unsigned i = 0; i < count; ++i) {
    const Arg &element = elementOf(warp, from, i);
    if (code.bytes == 4 && element.bits == 32)
      storeWords(warp, element, mask, to, 4 * i, changed);
    else
      forLanes(mask, [&](unsigned l) { changed |= storeLane(warp, code, element, l, to[l] + i * code.bytes); });
  }
  warp.cluster.version += changed;
  return Step::Next;
}

bool isSignedType(Type type) { return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64; }
Exec access(Decoder &d, Exec exec) {
  d.code->where = d.where();
  if (isSignedType(d.type()))
    d.code->flags |= Signed;
  for (const char *order : {"volatile", "relaxed", "acquire", "release"})
    d.flag(order, Ordered);
  d.flag("nc", NonCoherent);
  return exec;
}

// --- Atomics

enum AtomicOp { Add, Inc, Dec, Min, Max, And, Or, Xor, Exch };

template <typename Format> uint64_t floatAtomic(AtomicOp op, uint64_t old, uint64_t operand) {
  auto a = Format::get(old), b = Format::get(operand);
  if (op == Add)
    return Format::put(a + b, Rounding::nearest);
  if (a != a)
    return b != b ? Format::canonicalNaN : operand;
  return b != b || (op == Min ? a <= b : a >= b) ? old : operand;
}
template <typename T> uint64_t integerAtomic(AtomicOp op, uint64_t oldBits, uint64_t operandBits) {
  using U = std::make_unsigned_t<T>;
  auto old = static_cast<T>(oldBits), operand = static_cast<T>(operandBits);
  switch (op) {
  case Add:
    return static_cast<U>(static_cast<U>(old) + static_cast<U>(operand));
  case Inc:
    return static_cast<U>(static_cast<U>(old) >= static_cast<U>(operand) ? 0 : old + 1);
  case Dec:
    return static_cast<U>(old == 0 || static_cast<U>(old) > static_cast<U>(operand) ? operand : old - 1);
  case Min:
    return static_cast<U>(old < operand ? old : operand);
  case Max:
    return static_cast<U>(old > operand ? old : operand);
  case And:
    return static_cast<U>(old & operand);
  case Or:
    return static_cast<U>(old | operand);
  case Xor:
    return static_cast<U>(old ^ operand);
  case Exch:
    return static_cast<U>(operand);
  }
  return 0;
}
template <typename Format> uint64_t packedAtomic(AtomicOp op, uint64_t old, uint64_t operand) {
  return floatAtomic<Format>(op, old & 0xffff, operand & 0xffff) | floatAtomic<Format>(op, old >> 16, operand >> 16)
                                                                       << 16;
}
} // namespace

std::optional<uint64_t> atomicResult(Type type, unsigned op, uint64_t old, uint64_t operand) {
  auto which = static_cast<AtomicOp>(op);
  switch (type) {
  case Type::f16:
    return floatAtomic<F16>(which, old, operand);
  case Type::bf16:
    return floatAtomic<Bf16>(which, old, operand);
  case Type::f16x2:
    return packedAtomic<F16>(which, old, operand);
  case Type::bf16x2:
    return packedAtomic<Bf16>(which, old, operand);
  case Type::f32:
    return which == Exch ? operand : floatAtomic<F32>(which, old, operand);
  case Type::f64:
    if (which == Add && (isNaN<F64>(operand) || isNaN<F64>(old))) // a loop around add.f64 (H200)
      return passNaN<F64>(isNaN<F64>(old) ? old : operand);
    return which == Exch ? operand : floatAtomic<F64>(which, old, operand);
  case Type::u32:
  case Type::b32:
    return integerAtomic<uint32_t>(which, old, operand);
  case Type::s32:
    return integerAtomic<int32_t>(which, old, operand);
  case Type::u64:
  case Type::b64:
    return integerAtomic<uint64_t>(which, old, operand);
  case Type::s64:
    return integerAtomic<int64_t>(which, old, operand);
  default:
    return std::nullopt;
  }
}
std::optional<unsigned> atomicOpOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<unsigned>>(name)
      .Case("add", Add)
      .Case("inc", Inc)
      .Case("dec", Dec)
      .Case("min", Min)
      .Case("max", Max)
      .Case("and", And)
      .Case("or", Or)
      .Case("xor", Xor)
      .Case("exch", Exch)
      .Default(std::nullopt);
}

namespace {
/// Additions of f32 in global memory flush subnormals, those in shared memory do not (9.7.13.5).
float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }
uint64_t addF32InMemory(uint64_t old, uint64_t operand) {
  float sum = flushed(flushed(std::bit_cast<float>(uint32_t(old))) + flushed(std::bit_cast<float>(uint32_t(operand))));
  return std::isnan(sum) ? F32::canonicalNaN : std::bit_cast<uint32_t>(sum);
}

void checkAtomic(Warp &warp, const Code &code, unsigned lane, uint64_t address, unsigned bytes) {
  std::array<uint64_t, numLanes> addresses{};
  addresses[lane] = address;
  if (warp.cluster.check)
    warp.cluster.check->generic(warp, code, laneBits[lane], addresses.data(), code.where, bytes,
                                Check::read | Check::write | Check::strong);
}

/// Of shared memory nothing: how often an atomic there is repeated the hardware decides.
void countAtomic(Warp &warp, const Code &code, const std::array<uint64_t, numLanes> &addresses, unsigned bytes,
                 Mask mask) {
  Traffic traffic = trafficOf(code.where, addresses, bytes, mask);
  warp.cluster.stats.count(&Stats::atomics, code.line, {0, traffic.sectors});
}

/// Operands: [d,] [a], b; `imm[1]`: index of the address.
Step atomic(Warp &warp, const Code &code, Mask mask) {
  const Arg &address = code.args[code.imm[1]], &operand = code.args[code.imm[1] + 1];
  unsigned count = countOf(operand);
  std::array<uint64_t, numLanes> addresses;
  Step step = Step::Yield;
  bool changed = false; // a loop that polls by atomics changes nothing
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    std::byte *at = warp.memory(code.where, warp.address(address, l), code.bytes * count, code.bytes * count, l, code);
    if (!at) {
      step = Step::Stop;
      return;
    }
    addresses[l] = warp.address(address, l);
    auto oneStep = asOneStep(warp, true);
    checkAtomic(warp, code, l, addresses[l], code.bytes * count);
    uint32_t offset = 0;
    bool inMemory = code.imm[0] == Add && !warp.cluster.ctaOf(at, offset);
    auto result = [&](uint64_t old, uint64_t value) {
      if (inMemory && code.type == Type::f32)
        return addF32InMemory(old, value);
      if (inMemory && code.type == Type::f64)
        return addF64InMemory(old, value);
      return *atomicResult(code.type, code.imm[0], old, value);
    };
    std::lock_guard lock(warp.cluster.launch.lockOf(at));
    for (unsigned i = 0; i < count; ++i) {
      uint64_t old = 0, value = warp.value(elementOf(warp, operand, i), l);
      std::memcpy(&old, at + i * code.bytes, code.bytes);
      uint64_t now = result(old, value);
      std::memcpy(at + i * code.bytes, &now, code.bytes);
      changed |= now != old;
      if (code.imm[1])
        warp.set(elementOf(warp, code.args[0], i), l, old);
    }
  });
  if (step != Step::Stop)
    countAtomic(warp, code, addresses, code.bytes * count, mask);
  warp.cluster.version += changed;
  return step;
}

uint64_t wordAt(const std::byte *at, unsigned bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}
/// Operands: d, [a], compare, replacement.
Step compareAndSwap(Warp &warp, const Code &code, Mask mask) {
  std::array<uint64_t, numLanes> addresses;
  Step step = Step::Yield;
  bool changed = false;
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    std::byte *at = warp.memory(code.where, warp.address(code.args[1], l), code.bytes, code.bytes, l, code);
    if (!at) {
      step = Step::Stop;
      return;
    }
    addresses[l] = warp.address(code.args[1], l);
    auto oneStep = asOneStep(warp, true);
    checkAtomic(warp, code, l, addresses[l], code.bytes);
    std::lock_guard lock(warp.cluster.launch.lockOf(at));
    uint64_t old = wordAt(at, code.bytes), replacement = warp.value(code.args[3], l);
    if (old == warp.value(code.args[2], l)) {
      std::memcpy(at, &replacement, code.bytes);
      changed |= old != replacement;
    }
    warp.set(code.args[0], l, old);
  });
  if (step != Step::Stop)
    countAtomic(warp, code, addresses, code.bytes, mask);
  warp.cluster.version += changed;
  return step;
}

Exec atomicExec(Decoder &d, unsigned addressIndex) {
  d.code->where = d.where();
  d.code->imm[1] = addressIndex;
  for (unsigned i = 0; i < d.inst->mods.size(); ++i)
    if (std::optional<unsigned> op = atomicOpOf(d.inst->mod(i)))
      d.code->imm[0] = *op;
  return atomicResult(d.type(), d.code->imm[0], 0, 0) ? atomic : unmodelled;
}

/// Prefetches have no effect, but their addresses must be good.
Step prefetch(Warp &warp, const Code &code, Mask mask) {
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Next &&
        !warp.memory(code.where, warp.address(code.args[0], l), code.imm[0], code.imm[1], l, code))
      step = Step::Stop;
  });
  return step;
}
} // namespace

Exec execLd(Decoder &d) { return access(d, load); }
Exec execSt(Decoder &d) { return access(d, store); }
Exec execAtom(Decoder &d) { return atomicExec(d, 1); }
Exec execRed(Decoder &d) { return atomicExec(d, 0); }
Exec execAtomCas(Decoder &d) {
  d.code->where = d.where();
  return d.code->bytes <= 8 ? compareAndSwap : unmodelled;
}
Exec execPrefetch(Decoder &d) {
  d.code->where = d.where();
  d.code->imm[0] = d.code->imm[1] = 1;
  return prefetch;
}
/// A tensor map is 128 bytes, aligned to 64.
Exec execPrefetchMap(Decoder &d) {
  d.code->where = d.where();
  d.code->imm[0] = 128;
  d.code->imm[1] = 64;
  return prefetch;
}

} // namespace gemmc::emu
