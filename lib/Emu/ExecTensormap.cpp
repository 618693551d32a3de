// Tensor maps that the device changes: tensormap.replace (PTX ISA 9.7.9.28), tensormap.cp_fenceproxy (9.7.13.16).
#include "Check.h"
#include "Lanes.h"
#include "gemmc/Emu/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using llvm::formatv;

namespace gemmc::emu {
namespace {

constexpr unsigned mapBytes = 128, mapAlign = 64;

/// Operands: [map], value, or [map], dimension, value. `imm[0]`: the field; `imm[1]`: index of the value; `imm[2]`: the
/// dimension. A weak access of the whole map.
Step replace(Warp &warp, const Code &code, Mask mask) {
  std::array<uint64_t, numLanes> addresses{};
  std::array<std::byte *, numLanes> maps{};
  auto valueOf = [&](unsigned lane) { return warp.value(code.args[code.imm[1]], lane); };
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    addresses[l] = warp.address(code.args[0], l);
    maps[l] = warp.memory(code.where, addresses[l], mapBytes, mapAlign, l, code);
    if (!maps[l])
      step = Step::Stop;
    else if (!sem::replaceField(maps[l], static_cast<sem::MapField>(code.imm[0]), code.imm[2], valueOf(l)))
      step = warp.fail(code, l, "FP-9", formatv("there is no tensor map at {0:x}", addresses[l]).str());
  });
  if (Check *check = step == Step::Next ? warp.cluster.check.get() : nullptr) {
    check->generic(warp, code, mask, addresses.data(), code.where, mapBytes, Check::read | Check::write);
    check->compareLanes(warp, code, mask, maps.data(), mapAlign, [&](unsigned l) {
      LaneBytes field{};
      uint64_t value = valueOf(l);
      std::memcpy(field.data(), &value, sizeof value);
      return field;
    });
  }
  ++warp.cluster.version;
  return step;
}
Exec replaceExec(Decoder &d, unsigned value) {
  using Field = sem::MapField;
  d.code->where = d.where();
  d.code->imm[1] = value;
  d.code->imm[2] = value == 2 ? d.immediate(1) : 0;
  for (auto [name, field] :
       {std::pair("global_address", Field::address), std::pair("rank", Field::rank), std::pair("box_dim", Field::box),
        std::pair("global_dim", Field::extent), std::pair("global_stride", Field::stride)})
    if (d.has(name)) {
      d.code->imm[0] = static_cast<int32_t>(field);
      return replace;
    }
  return unmodelled;
}

/// Operands: [dst], [src], 128. The whole warp copies one map and releases it.
Step copyMap(Warp &warp, const Code &code, Mask mask) {
  if (auto wait = warp.aligned(code, mask))
    return *wait;
  if (code.imm[0] != mapBytes)
    return warp.fail(code, firstLane(mask), "FP-6", formatv("{0} bytes: a tensor map has 128", code.imm[0]).str());
  std::array<uint64_t, numLanes> to{}, from{};
  unsigned lane = firstLane(mask);
  forLanes(mask, [&](unsigned l) {
    to[l] = warp.address(code.args[0], l);
    from[l] = warp.address(code.args[1], l);
  });
  for (unsigned l = lane; l < numLanes; ++l)
    if (mask >> l & 1 && (to[l] != to[lane] || from[l] != from[lane]))
      return warp.fail(code, l, "FP-6",
                       formatv("the lanes of a warp give different {0}s to `tensormap.cp_fenceproxy`: the warp copies "
                               "one map",
                               to[l] != to[lane] ? "destination" : "source")
                           .str());
  std::byte *target = warp.memory(Where::Global, to[lane], mapBytes, mapAlign, lane, code);
  const std::byte *source = target ? warp.memory(Where::Shared, from[lane], mapBytes, mapAlign, lane, code) : nullptr;
  if (!source)
    return Step::Stop;
  if (Check *check = warp.cluster.check.get()) {
    // All lanes execute it: each must know the source, and each has written.
    check->generic(warp, code, mask, from.data(), Where::Shared, mapBytes, Check::read);
    check->generic(warp, code, laneBits[lane], to.data(), Where::Global, mapBytes,
                   Check::write | Check::collective | Check::together);
    check->mapReleased(warp, code, mask);
  }
  std::memcpy(target, source, mapBytes);
  ++warp.cluster.version;
  return Step::Next;
}
} // namespace

Exec execTensormapField(Decoder &d) { return replaceExec(d, 1); }
Exec execTensormapDim(Decoder &d) { return replaceExec(d, 2); }
Exec execTensormapCopy(Decoder &d) {
  d.code->imm[0] = d.immediate(2);
  return copyMap;
}

} // namespace gemmc::emu
