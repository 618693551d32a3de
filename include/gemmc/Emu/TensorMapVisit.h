/// The visiting templates of TensorMap.h.
#pragma once
#include "gemmc/Emu/TensorMap.h"
#include <algorithm>
#include <cstring>

namespace gemmc::emu::sem {

/// One row of a box (all of dimension 0): its place on both sides, and which of its bytes are inside the tensor.
struct TmaRow {
  uint32_t shared;      ///< Before swizzling.
  uint64_t global;      ///< Of byte `first`.
  uint32_t first, last; ///< Inside: bytes [first, last) of the row; empty when all is outside.
};

template <typename Visit>
void forEachRow(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared, Visit visit) {
  auto start = [&](unsigned d) { return d < coords.size() ? int64_t(coords[d]) : 0; };
  int64_t extent = static_cast<int64_t>(map.dims[0]), x = start(0), width = map.box[0];
  int64_t from = std::clamp<int64_t>(-x, 0, width), to = std::clamp<int64_t>(extent - x, from, width);
  uint32_t first = from * map.elemBytes, last = to * map.elemBytes;
  uint64_t base = map.address + static_cast<uint64_t>(x + from) * map.elemBytes;
  std::array<uint32_t, 5> at{};
  for (uint32_t row = shared;; row += map.rowBytes()) {
    uint64_t global = base;
    bool inside = first < last;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t c = start(d) + at[d];
      inside &= c >= 0 && static_cast<uint64_t>(c) < map.dims[d];
      global += static_cast<uint64_t>(c) * map.strides[d];
    }
    visit(TmaRow{row, global, inside ? first : 0, inside ? last : 0});
    unsigned d = 1;
    for (; d < map.rank && ++at[d] == map.box[d]; ++d)
      at[d] = 0;
    if (d >= map.rank)
      return;
  }
}

template <typename Visit>
void forEachPiece(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared, Visit visit) {
  uint32_t width = map.rowBytes(), chunk = map.swizzle == ptx::TmaSwizzle::none ? width : 16;
  forEachRow(map, coords, shared, [&](const TmaRow &row) {
    for (uint32_t begin = 0; begin < width;) {
      bool inside = begin >= row.first && begin < row.last;
      uint32_t limit = inside ? row.last : begin < row.first ? row.first : width;
      uint32_t end = std::min(limit, begin / chunk * chunk + chunk);
      visit(TmaPiece{swizzled(map.swizzle, row.shared + begin), end - begin, row.global + begin - row.first, inside});
      begin = end;
    }
  });
}

template <typename Find>
std::optional<uint64_t> loadBox(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared,
                                std::byte *sharedMemory, Find find) {
  std::optional<uint64_t> refused;
  forEachPiece(map, coords, shared, [&](const TmaPiece &piece) {
    const std::byte *from = piece.inside && !refused ? find(piece.global, piece.bytes) : nullptr;
    if (from)
      std::memcpy(sharedMemory + piece.shared, from, piece.bytes);
    else if (piece.inside)
      refused = refused.value_or(piece.global);
    else
      std::memset(sharedMemory + piece.shared, 0, piece.bytes);
  });
  return refused;
}

template <typename Find>
std::optional<uint64_t> storeBox(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared,
                                 const std::byte *sharedMemory, Find find) {
  std::optional<uint64_t> refused;
  forEachPiece(map, coords, shared, [&](const TmaPiece &piece) {
    if (!piece.inside || refused)
      return;
    if (std::byte *to = find(piece.global, piece.bytes))
      std::memcpy(to, sharedMemory + piece.shared, piece.bytes);
    else
      refused = piece.global;
  });
  return refused;
}

} // namespace gemmc::emu::sem
