#include "Replay.h"
#include "LaunchGraphs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cstring>

namespace gemmc {
namespace {
using ptx::LaunchInfo;
using ptx::ParamInfo;

constexpr llvm::StringRef bufferNames[] = {"a", "b", "c", "d", "workspace"};
constexpr llvm::StringRef pointerNames[] = {"a_ptr", "b_ptr", "c_ptr", "d_ptr"};
constexpr int64_t seenOfAddresses = 256; ///< Addresses that are equal modulo this are one key.

uint8_t bufferOf(llvm::StringRef name) {
  return static_cast<uint8_t>(llvm::find(bufferNames, name) - std::begin(bufferNames));
}

/// Whether the key has all that `expr` looks at: of an address only the remainder by a divisor of seenOfAddresses.
bool keyHas(const Expr &expr) {
  switch (expr.kind()) {
  case Expr::Const:
    return true;
  case Expr::Var:
    return !llvm::is_contained(pointerNames, expr.name());
  case Expr::Not:
    return keyHas(expr.lhs());
  case Expr::Mod:
    if (expr.lhs().isVar() && expr.rhs().isConst() && expr.rhs().constant() > 0 &&
        seenOfAddresses % expr.rhs().constant() == 0)
      return true;
    [[fallthrough]];
  default:
    return keyHas(expr.lhs()) && keyHas(expr.rhs());
  }
}

bool keyHasAll(const ptx::KernelInfo &kernel) {
  return llvm::all_of(kernel.grid, keyHas) &&
         llvm::all_of(kernel.params, [](const ParamInfo &param) { return keyHas(param.value); }) &&
         llvm::all_of(kernel.maps, [](const ptx::TensorMapInfo &map) {
           return keyHas(map.offset) && llvm::all_of(map.dims, keyHas) && llvm::all_of(map.strides, keyHas);
         });
}

bool overlap(uint64_t x, uint64_t xBytes, uint64_t y, uint64_t yBytes) {
  return xBytes && yBytes && x < y + yBytes && y < x + xBytes;
}

uint64_t bytesOf(const ptx::OperandInfo &operand, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                 int64_t stride) {
  return matrixBytes(operand.type, operand.order, rows, cols, ld, batch, stride).value_or(0);
}

/// Where a tensor map of `buffer` counts from: prepareKernel has nothing else for a null operand.
uint64_t mapBase(uint8_t buffer, const LaunchArgs &args) {
  uint64_t address = addressesOf(args)[buffer];
  return address ? address : args.d & ~uint64_t(255);
}
} // namespace

LaunchAddresses addressesOf(const LaunchArgs &args) { return {args.a, args.b, args.c, args.d, args.workspace}; }

KernelReplay KernelReplay::of(const ptx::KernelInfo &kernel, const PreparedKernel &prepared, const LaunchArgs &args,
                              llvm::ArrayRef<uint64_t> encoded) {
  KernelReplay out;
  out.grid = prepared.grid;
  out.empty = prepared.empty;
  out.readies = kernel.readies;
  if (out.empty)
    return out;
  out.offsets = prepared.offsets;
  out.params.assign(prepared.params.begin(), prepared.params.begin() + prepared.paramBytes);
  for (const auto &[index, param] : llvm::enumerate(kernel.params)) {
    Patch patch;
    patch.offset = prepared.offsets[index];
    if (param.kind == ParamInfo::Pointer) {
      patch.buffer = bufferOf(param.source);
      patch.encoded = addressesOf(args)[patch.buffer];
      out.patches.push_back(patch);
    } else if (param.kind == ParamInfo::TensorMap) {
      auto map = llvm::find_if(kernel.maps, [&](const auto &info) { return info.name == param.source; });
      patch.map = true;
      patch.buffer = bufferOf(map->buffer);
      patch.encoded = encoded.front();
      patch.behind = static_cast<int64_t>(patch.encoded - mapBase(patch.buffer, args));
      encoded = encoded.drop_front();
      out.patches.push_back(patch);
    }
  }
  return out;
}

uint64_t KernelReplay::address(const Patch &patch, const LaunchArgs &args) {
  return patch.map ? mapBase(patch.buffer, args) + static_cast<uint64_t>(patch.behind)
                   : addressesOf(args)[patch.buffer];
}

bool KernelReplay::write(const cuda::DriverTable &api, const Patch &patch, uint64_t address, std::byte *params) {
  std::byte *place = params + patch.offset;
  if (patch.map)
    return api.replaceAddress(reinterpret_cast<cuda::TensorMap *>(place), reinterpret_cast<void *>(address)) ==
           cuda::success;
  std::memcpy(place, &address, 8);
  return true;
}

Replay::Replay(const LaunchInfo &info, const LaunchArgs &args)
    : dBytes(bytesOf(info.d, args.m, args.n, args.ldd, args.batch, args.strideD)) {
  if (args.readsInputs()) {
    aBytes = bytesOf(info.a, args.m, args.k, args.lda, args.batch, args.strideA);
    bBytes = bytesOf(info.b, args.k, args.n, args.ldb, args.batch, args.strideB);
  }
  if (args.beta != 0 && args.c != args.d)
    cBytes = bytesOf(info.c, args.m, args.n, args.ldc, args.batch, args.strideC);
}

Replay::~Replay() = default;

bool Replay::disjoint(const LaunchArgs &args) const {
  return !overlap(args.a, aBytes, args.d, dBytes) && !overlap(args.b, bBytes, args.d, dBytes) &&
         !overlap(args.c, cBytes, args.d, dBytes);
}

bool ReplayCache::serves(const LaunchInfo &info) {
  return keyHas(info.workspace) && llvm::all_of(info.requirements, keyHas) && llvm::all_of(info.kernels, keyHasAll);
}

ReplayKey::ReplayKey(const LaunchArgs &args)
    : numbers{args.m,
              args.n,
              args.k,
              args.lda,
              args.ldb,
              args.ldc,
              args.ldd,
              args.batch,
              args.strideA,
              args.strideB,
              args.strideC,
              args.strideD,
              llvm::bit_cast<int64_t>(args.alpha),
              llvm::bit_cast<int64_t>(args.beta),
              static_cast<int64_t>(args.workspaceBytes)} {
  for (const auto &[index, address] : llvm::enumerate(addressesOf(args))) {
    addresses[index] = static_cast<uint8_t>(address % seenOfAddresses);
    addresses[5] |= static_cast<uint8_t>((address == 0) << index);
  }
  addresses[5] |= static_cast<uint8_t>((args.c == args.d) << 7);
}

std::shared_ptr<const Replay> ReplayCache::find(const LaunchArgs &args) {
  ReplayKey key(args);
  std::lock_guard lock(mutex);
  for (const auto &[known, replay] : entries)
    if (replay && known == key)
      return replay;
  return nullptr;
}

void ReplayCache::keep(const LaunchArgs &args, std::shared_ptr<const Replay> replay) {
  std::pair entry(ReplayKey(args), std::move(replay));
  std::lock_guard lock(mutex);
  std::swap(entries[next++ % capacity], entry); // what was there ends behind the lock: its graphs take their time
}

} // namespace gemmc
