#include "gemmc/Emu/TensorMap.h"
#include "gemmc/Emu/Numerics.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

namespace gemmc::emu {

namespace {

/// The emulator's own layout of the 128 bytes. Checked by a sum, because programs copy maps through memory and a map
/// that was half overwritten must not be used.
struct Packed {
  uint64_t magic;
  uint8_t type, swizzle, rank, reserved[5];
  uint64_t address;
  uint32_t extents[5]; ///< Minus one: 2^32 is a legal extent.
  uint16_t box[5];
  uint16_t reserved2;
  uint64_t strides[4];
  uint8_t padding[32];
  uint64_t sum;
};
static_assert(sizeof(Packed) == 128);
constexpr uint64_t magicOfMaps = 0x70616d2d636d6d67; // "gmmc-map"

/// FNV-1a over all but the sum itself.
uint64_t sumOf(const Packed &map) {
  uint64_t sum = 0xcbf29ce484222325;
  auto *bytes = reinterpret_cast<const unsigned char *>(&map);
  for (size_t i = 0; i < offsetof(Packed, sum); ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3;
  return sum;
}

template <typename... Args> std::string text(const char *format, Args &&...args) {
  return llvm::formatv(format, std::forward<Args>(args)...).str();
}

std::string checkTensor(const TensorMapValues &v) {
  size_t rank = v.dims.size();
  if (rank < 1 || rank > 5)
    return text("the rank is 1 to 5, not {0}", rank);
  if (v.strides.size() != rank - 1)
    return text("rank {0} needs {1} strides, not {2}", rank, rank - 1, v.strides.size());
  if (v.box.size() != rank)
    return text("rank {0} needs {0} box extents, not {1}", rank, v.box.size());
  if (v.address % 16)
    return text("the global address must be a multiple of 16, not {0:x}", v.address);
  for (size_t i = 0; i < rank; ++i)
    if (v.dims[i] < 1 || v.dims[i] > uint64_t(1) << 32)
      return text("the extent of dimension {0} is 1 to 2^32, not {1}", i, v.dims[i]);
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (v.strides[i] % 16)
      return text("the stride of dimension {0} must be a multiple of 16 bytes, not {1}", i + 1, v.strides[i]);
    if (v.strides[i] >= uint64_t(1) << 40)
      return text("the stride of dimension {0} must be below 2^40 bytes, not {1}", i + 1, v.strides[i]);
  }
  return "";
}

std::string checkBox(const TensorMapValues &v) {
  for (size_t i = 0; i < v.box.size(); ++i)
    if (v.box[i] < 1 || v.box[i] > 256)
      return text("the box extent of dimension {0} is 1 to 256, not {1}", i, v.box[i]);
  uint32_t inner = v.box[0] * bytesOf(v.type);
  if (inner % 16)
    return text("the box's rows must be a multiple of 16 bytes, not {0} x {1}", v.box[0], bytesOf(v.type));
  unsigned span = 16u << static_cast<unsigned>(v.swizzle);
  if (v.swizzle != ptx::TmaSwizzle::none && inner > span)
    return text("a {0}-byte swizzle allows box rows of at most {0} bytes, not {1} x {2} = {3}", span, v.box[0],
                bytesOf(v.type), inner);
  return "";
}

} // namespace

EncodedMap encodeTensorMap(const TensorMapValues &values) {
  EncodedMap result;
  result.error = checkTensor(values);
  if (result.error.empty())
    result.error = checkBox(values);
  if (!result.error.empty())
    return result;
  Packed map{};
  map.magic = magicOfMaps;
  map.type = static_cast<uint8_t>(values.type);
  map.swizzle = static_cast<uint8_t>(values.swizzle);
  map.rank = values.dims.size();
  map.address = values.address;
  for (size_t i = 0; i < map.rank; ++i) {
    map.extents[i] = static_cast<uint32_t>(values.dims[i] - 1);
    map.box[i] = values.box[i];
    if (i)
      map.strides[i - 1] = values.strides[i - 1];
  }
  map.sum = sumOf(map);
  std::memcpy(result.bytes.data(), &map, sizeof map);
  return result;
}

namespace sem {

std::optional<TensorMap> decodeTensorMap(const std::byte *bytes) {
  Packed packed{};
  std::memcpy(&packed, bytes, sizeof packed);
  if (packed.magic != magicOfMaps || packed.sum != sumOf(packed))
    return std::nullopt;
  TensorMap map{};
  map.type = static_cast<Elem>(packed.type);
  map.swizzle = static_cast<ptx::TmaSwizzle>(packed.swizzle);
  map.rank = packed.rank;
  map.elemBytes = bytesOf(map.type);
  map.address = packed.address;
  map.strides[0] = map.elemBytes;
  for (unsigned i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t(packed.extents[i]) + 1;
    map.box[i] = packed.box[i];
    if (i)
      map.strides[i] = packed.strides[i - 1];
  }
  return map;
}

bool replaceField(std::byte *bytes, MapField field, unsigned ordinal, uint64_t value) {
  Packed packed;
  std::memcpy(&packed, bytes, sizeof packed);
  if (packed.magic != magicOfMaps || packed.sum != sumOf(packed))
    return false;
  switch (field) {
  case MapField::address:
    packed.address = value;
    break;
  case MapField::rank: // counts from zero
    packed.rank = std::min<uint64_t>(value, 4) + 1;
    break;
  case MapField::box:
    packed.box[ordinal] = value;
    break;
  case MapField::extent:
    packed.extents[ordinal] = static_cast<uint32_t>(value - 1);
    break;
  case MapField::stride:
    packed.strides[std::min(ordinal, 3u)] = value;
    break;
  }
  packed.sum = sumOf(packed);
  std::memcpy(bytes, &packed, sizeof packed);
  return true;
}

/// Seen on an H200 (`gemmc-microtests --only "2 store"`): the manual says of elements outside only that they are not
/// written.
static bool writesBehindRows(const TensorMap &map, llvm::ArrayRef<int32_t> coords) {
  for (unsigned i = 0; i < map.rank; ++i)
    if (uint64_t(coords[i]) >= map.dims[i])
      return false; // nothing of it is inside
  return map.dims[0] * map.elemBytes % 16 && uint64_t(coords[0]) + map.box[0] >= map.dims[0];
}

Broken checkAccess(const TensorMap &map, TmaAccess access, llvm::ArrayRef<int32_t> coords, uint32_t shared) {
  if (coords.size() != map.rank)
    return {"TM-13", text("{0} coordinates for a tensor map of rank {1}", coords.size(), map.rank)};
  if (shared % 128)
    return {"TM-14", text("the box in shared memory must be 128-byte aligned, not at {0:x}", shared)};
  unsigned span = 16u << static_cast<unsigned>(map.swizzle);
  if (map.swizzle != ptx::TmaSwizzle::none && map.rowBytes() != span)
    return {"unmodelled", text("box rows of {0} bytes with a {1}-byte swizzle", map.rowBytes(), span)};
  if (access == TmaAccess::load && map.type == Elem::tf32) // seen on an H200; the manual does not say so
    return {"unmodelled", "a load through a map of TF32, which rounds"};
  if (access == TmaAccess::load && int64_t(coords[0]) * map.elemBytes % 16)
    return {"TM-12", text("the innermost coordinate of a load must be a multiple of 16 bytes, not {0} x {1} bytes",
                          coords[0], map.elemBytes)};
  if (access == TmaAccess::store)
    for (unsigned i = 0; i < map.rank; ++i)
      if (coords[i] < 0)
        return {"TM-9", text("coordinate {0} of a store is negative: {1}", i, coords[i])};
  if (access == TmaAccess::store && writesBehindRows(map, coords))
    return {"TM-15",
            text("a store at the end of rows of {0} x {1} bytes: the hardware writes whole 16 bytes, here {2} more",
                 map.dims[0], map.elemBytes, 16 - map.dims[0] * map.elemBytes % 16)};
  return {};
}

} // namespace sem
} // namespace gemmc::emu
