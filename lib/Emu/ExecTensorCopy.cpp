// Bulk copies through tensor maps (PTX ISA 9.7.9.27.1). Boxes, swizzles and bounds: `gemmc/Emu/TensorMap.h`.
#include "Check.h"
#include "Copies.h"
#include "Lanes.h"
#include "gemmc/Emu/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using llvm::formatv;

namespace gemmc::emu {
namespace {

/// The type that a reduction computes in; `bitwise` operations take the bits of 32-bit elements.
Type elementType(Elem type, bool bitwise) {
  switch (type) {
  case Elem::f16:
    return Type::f16;
  case Elem::bf16:
    return Type::bf16;
  case Elem::f32:
    return Type::f32;
  case Elem::f64:
    return Type::f64;
  case Elem::s32:
    return bitwise ? Type::b32 : Type::s32;
  default:
    return Type::none;
  }
}

using Coords = llvm::SmallVector<int32_t, 5>;
/// A tensor access of one thread: shared by the two halves of its operation.
struct TensorAccess {
  sem::TensorMap map;
  Coords coords;
  uint64_t mapAddress = 0;
  uint32_t shared = 0;           ///< Offset of the box in its CTA's window.
  std::vector<std::byte> buffer; ///< The pieces of the box one after the other.
};

/// Reads and checks the map and its coordinates: operand `index`. A map is 128 bytes, aligned to 64, at a generic
/// address.
std::shared_ptr<TensorAccess> readAccess(Warp &warp, const Code &code, unsigned index, unsigned lane) {
  const Arg &arg = code.args[index];
  const uint64_t window = warp.address(arg, lane) / window::size;
  if (window == window::shared / window::size || window == window::local / window::size) {
    warp.fail(
        code, lane, "TM-10",
        formatv("the tensor map at {0:x} is in {1} memory: it must be a parameter, a constant or in global memory",
                warp.address(arg, lane), window == window::local / window::size ? "local" : "shared")
            .str());
    return nullptr;
  }
  const std::byte *bytes = warp.memory(Where::Generic, warp.address(arg, lane), 128, 64, lane, code);
  if (!bytes)
    return nullptr;
  std::optional<sem::TensorMap> map = sem::decodeTensorMap(bytes);
  if (!map) {
    warp.fail(code, lane, "TM-10", formatv("there is no tensor map at {0:x}", warp.address(arg, lane)).str());
    return nullptr;
  }
  auto access = std::make_shared<TensorAccess>();
  access->map = *map;
  access->mapAddress = warp.address(arg, lane);
  for (unsigned i = 0; i < arg.count; ++i)
    access->coords.push_back(static_cast<int32_t>(warp.value(warp.element(arg, i), lane)));
  return access;
}
bool checkRules(Warp &warp, const Code &code, unsigned lane, const TensorAccess &access, sem::TmaAccess kind) {
  sem::Broken broken = sem::checkAccess(access.map, kind, access.coords, access.shared);
  if (broken && llvm::StringRef(broken.rule) == "unmodelled")
    warp.incomplete(code, lane, broken.rule, broken.text);
  else if (broken)
    warp.fail(code, lane, broken.rule, broken.text);
  return !broken;
}

std::byte *globalPiece(Warp &warp, const Code &code, unsigned lane, const sem::TmaPiece &piece) {
  std::byte *at = warp.cluster.failed ? nullptr : warp.cluster.global(piece.global, piece.bytes);
  if (!at && !warp.cluster.failed)
    warp.memory(Where::Global, piece.global, piece.bytes, 1, lane, code); // reports it
  return at;
}

/// A swizzle moves bytes within lines of 128 bytes, so that a box may end beyond its linear end.
bool inShared(Warp &warp, const Code &code, unsigned lane, const Cta &cta, const sem::TmaPiece &piece) {
  if (piece.shared + piece.bytes <= cta.shared.size())
    return true;
  if (!warp.cluster.failed)
    warp.fail(code, lane, "TM-11", "the box reaches beyond the CTA's shared memory");
  return false;
}

void readGlobal(Warp &warp, const Code &code, unsigned lane, TensorAccess &access) {
  sem::forEachPiece(access.map, access.coords, access.shared, [&](const sem::TmaPiece &piece) {
    const std::byte *from = piece.inside ? globalPiece(warp, code, lane, piece) : nullptr;
    if (from)
      access.buffer.insert(access.buffer.end(), from, from + piece.bytes);
    else
      access.buffer.resize(access.buffer.size() + piece.bytes); // zeros
  });
}
void writeShared(Warp &warp, const Code &code, unsigned lane, const TensorAccess &access, const BulkTarget &target) {
  size_t done = 0;
  sem::forEachPiece(access.map, access.coords, target.offset, [&](const sem::TmaPiece &piece) {
    if (inShared(warp, code, lane, *target.cta, piece))
      std::copy_n(access.buffer.data() + done, piece.bytes, target.cta->shared.data() + piece.shared);
    done += piece.bytes;
  });
}

/// Tells the check of the pieces; until the load completes there is poison.
bool checkLoad(Warp &warp, const Code &code, unsigned lane, const TensorAccess &access,
               std::vector<BulkTarget> &targets) {
  Check &check = *warp.cluster.check;
  for (BulkTarget &target : targets) {
    Check::Agent agent = check.loadAgent({warp, code, lane}, target);
    check.mapUsed(agent, access.mapAddress);
    llvm::SmallVector<Check::GlobalRange, 64> read;
    sem::forEachPiece(access.map, access.coords, target.offset, [&](const sem::TmaPiece &piece) {
      if (!inShared(warp, code, lane, *target.cta, piece))
        return;
      check.shared(agent, *target.cta, piece.shared, piece.bytes, true);
      std::memset(target.cta->shared.data() + piece.shared, 0xff, piece.bytes);
      if (piece.inside && target.cta == targets.front().cta)
        read.push_back({piece.global, piece.bytes});
    });
    check.global(agent, read, false);
  }
  return !warp.cluster.failed;
}

/// Operands: [dst], [map, {c}], [mbar], mask.
bool loadOne(Warp &warp, const Code &code, unsigned l) {
  std::shared_ptr<TensorAccess> access = readAccess(warp, code, 1, l);
  if (!access)
    return false;
  uint64_t bytes = access->map.boxBytes();
  BulkPlace place{code.where, warp.address(code.args[0], l), bytes, 16, warp.address(code.args[2], l), {}};
  if (code.flags)
    place.multicast = static_cast<uint32_t>(warp.value(code.args[3], l)) & 0xffff;
  auto targets = bulkTargets(warp, code, place, l);
  if (!targets)
    return false;
  access->shared = targets->front().offset;
  if (!checkRules(warp, code, l, *access, sem::TmaAccess::load))
    return false;
  if (warp.cluster.check && !checkLoad(warp, code, l, *access, *targets))
    return false;
  issueBulk(
      warp, code, l, bytes, false, [&warp, &code, l, access] { readGlobal(warp, code, l, *access); },
      [&warp, &code, l, access, bytes, targets = *targets] {
        for (const BulkTarget &target : targets) {
          if (warp.cluster.failed)
            return;
          writeShared(warp, code, l, *access, target);
          arriveBytes(warp, code, l, target, bytes);
        }
      });
  return true;
}

void readShared(Warp &warp, const Code &code, unsigned lane, TensorAccess &access) {
  const Cta &cta = warp.cta;
  sem::forEachPiece(access.map, access.coords, access.shared, [&](const sem::TmaPiece &piece) {
    if (inShared(warp, code, lane, cta, piece))
      access.buffer.insert(access.buffer.end(), cta.shared.data() + piece.shared,
                           cta.shared.data() + piece.shared + piece.bytes);
  });
}
void writeGlobal(Warp &warp, const Code &code, unsigned lane, const TensorAccess &access) {
  size_t done = 0;
  sem::forEachPiece(access.map, access.coords, access.shared, [&](const sem::TmaPiece &piece) {
    std::byte *to = piece.inside ? globalPiece(warp, code, lane, piece) : nullptr;
    const std::byte *from = access.buffer.data() + done;
    done += piece.bytes;
    if (!to)
      return;
    if (!code.imm[1]) {
      std::copy_n(from, piece.bytes, to);
      return;
    }
    warp.cluster.launch.reduceGlobal(to, piece.bytes, [&](std::byte *at, uint32_t offset, uint32_t bytes) {
      sem::reduceBytes(static_cast<sem::ReduceOp>(code.imm[1] - 1), elementType(access.map.type, code.imm[2]), at,
                       from + offset, bytes);
    });
  });
}

/// Whether the map's elements can be reduced so; the instruction does not name their type.
bool canReduce(Warp &warp, const Code &code, unsigned lane, const TensorAccess &access) {
  if (sem::isReduce(static_cast<sem::ReduceOp>(code.imm[1] - 1), elementType(access.map.type, code.imm[2])))
    return true;
  warp.incomplete(code, lane, "unmodelled",
                  formatv("the emulator does not model this reduction of {0} elements", nameOf(access.map.type)).str());
  return false;
}

/// Whether two lanes name the same map, coordinates and source.
bool sameStore(Warp &warp, const Code &code, unsigned l, unsigned other) {
  const Arg &box = code.args[0];
  bool same = warp.address(box, l) == warp.address(box, other) &&
              warp.address(code.args[1], l) == warp.address(code.args[1], other);
  for (unsigned i = 0; same && i < box.count; ++i)
    same = warp.value(warp.element(box, i), l) == warp.value(warp.element(box, i), other);
  return same;
}

void checkStore(Warp &warp, const Code &code, Mask mask, unsigned lane, const TensorAccess &access) {
  Check &check = *warp.cluster.check;
  Check::Agent reads = check.storeAgent({warp, code, lane}, true), writes = check.storeAgent({warp, code, lane}, false);
  writes.access.strong = code.imm[1] != 0; // reductions are atomic
  writes.repeats = !code.imm[1] && repeatsStore(warp, code, mask, lane,
                                                [&](unsigned other) { return sameStore(warp, code, lane, other); });
  check.mapUsed(reads, access.mapAddress);
  llvm::SmallVector<Check::GlobalRange, 64> written;
  sem::forEachPiece(access.map, access.coords, access.shared, [&](const sem::TmaPiece &piece) {
    if (!piece.inside || piece.shared + piece.bytes > warp.cta.shared.size())
      return;
    check.shared(reads, warp.cta, piece.shared, piece.bytes, false);
    written.push_back({piece.global, piece.bytes});
  });
  check.global(writes, written, true);
}

/// Operands: [map, {c}], [src].
bool storeOne(Warp &warp, const Code &code, Mask mask, unsigned l) {
  std::shared_ptr<TensorAccess> access = readAccess(warp, code, 0, l);
  if (!access || (code.imm[1] && !canReduce(warp, code, l, *access)))
    return false;
  auto from = sharedRange(warp, code, Where::Shared, warp.address(code.args[1], l), access->map.boxBytes(), 16, l);
  if (!from)
    return false;
  access->shared = from->offset;
  if (!checkRules(warp, code, l, *access, sem::TmaAccess::store))
    return false;
  if (warp.cluster.check)
    checkStore(warp, code, mask, l, *access);
  issueBulk(
      warp, code, l, access->map.boxBytes(), true, [&warp, &code, l, access] { readShared(warp, code, l, *access); },
      [&warp, &code, l, access] {
        if (!warp.cluster.failed)
          writeGlobal(warp, code, l, *access);
      });
  return true;
}

/// A prefetch reads nothing that anybody sees, but its map and coordinates must be good.
bool prefetchOne(Warp &warp, const Code &code, unsigned l) {
  std::shared_ptr<TensorAccess> access = readAccess(warp, code, 0, l);
  return access && checkRules(warp, code, l, *access, sem::TmaAccess::load);
}

template <bool (*one)(Warp &, const Code &, unsigned)> Step eachLane(Warp &warp, const Code &code, Mask mask) {
  bool good = true;
  forLanes(mask, [&](unsigned l) { good = good && one(warp, code, l); });
  return good ? Step::Next : Step::Stop;
}
Step storeAll(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->bulkBegins(warp);
  bool good = true;
  forLanes(mask, [&](unsigned l) { good = good && storeOne(warp, code, mask, l); });
  return good ? Step::Next : Step::Stop;
}
/// Prefetches may be repeated.
Step loadAll(Warp &warp, const Code &code, Mask mask) {
  bool once = !warp.cluster.check || checkOnce(warp, code, mask, 0, 2);
  if (warp.cluster.check)
    warp.cluster.check->bulkBegins(warp);
  return once ? eachLane<loadOne>(warp, code, mask) : Step::Stop;
}
} // namespace

Exec execCpTensorLoad(Decoder &d) {
  d.code->where = d.where();
  d.flag("multicast::cluster", 1);
  return loadAll;
}
Exec execCpTensorStore(Decoder &) { return storeAll; }
Exec execCpReduceTensor(Decoder &d) {
  d.code->imm[1] = reductionOf(d);
  d.code->imm[2] = d.has("and") || d.has("or") || d.has("xor");
  return storeAll;
}
Exec execCpTensorPrefetch(Decoder &) { return eachLane<prefetchOne>; }

} // namespace gemmc::emu
