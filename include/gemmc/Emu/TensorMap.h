/// Tensor maps and what a tiled TMA access does with them (PTX ISA 5.5, 9.7.9.27.1; cuTensorMapEncodeTiled).
///
/// The 128 bytes of a map are opaque to programs, so the emulator has its own: a magic number, the fields, a checksum.
/// `encodeTensorMap` (Emulator.h) makes them and enforces the host's rules; the rest of this file is the device's side.
///
/// A box is a dense array, dimension 0 fastest, and lands in shared memory as such; a swizzle then exchanges 16-byte
/// chunks by their shared address `a`: 32B: a[4] ^= a[7]; 64B: a[5:4] ^= a[8:7]; 128B: a[6:4] ^= a[9:7].
#pragma once
#include "gemmc/Emu/Broken.h"
#include "gemmc/Emu/Emulator.h"
#include "llvm/ADT/ArrayRef.h"

namespace gemmc::emu::sem {

struct TensorMap {
  Elem type = Elem::f16;
  ptx::TmaSwizzle swizzle = ptx::TmaSwizzle::none;
  uint8_t rank = 1;
  uint8_t elemBytes = 2;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{1, 1, 1, 1, 1};
  std::array<uint64_t, 5> strides{}; ///< Bytes; [0] is the element size.
  std::array<uint32_t, 5> box{1, 1, 1, 1, 1};

  uint32_t rowBytes() const { return box[0] * elemBytes; }
  /// Bytes of a whole box: what a load counts in complete-tx, elements out of bounds included.
  uint32_t boxBytes() const { return rowBytes() * box[1] * box[2] * box[3] * box[4]; }
};

/// Nothing when the bytes are not a map (never encoded, or overwritten).
std::optional<TensorMap> decodeTensorMap(const std::byte *bytes);

/// tensormap.replace: the field of the map in `bytes` gets another value; false when there is no map. `ordinal` is the
/// dimension, for strides that of the stride (0: of dimension 1).
enum class MapField : uint8_t { address, rank, box, extent, stride };
bool replaceField(std::byte *bytes, MapField field, unsigned ordinal, uint64_t value);

/// Where the byte that belongs at `address` in an unswizzled box really lies.
inline uint32_t swizzled(ptx::TmaSwizzle swizzle, uint32_t address) {
  unsigned span = static_cast<unsigned>(swizzle); // none 0, 32B 1, 64B 2, 128B 3 bits
  return address ^ (address >> 3 & ((1u << span) - 1) << 4);
}

/// The rules of one access: `coords` innermost first, one for each dimension; `shared` the address of the box in shared
/// memory (an offset in its CTA's window). TM-7 alignment, TM-9 negative start of a store, TM-12 start of a load that
/// is not a multiple of 16 bytes; a number of coordinates that is not the map's rank.
enum class TmaAccess : uint8_t { load, store };
Broken checkAccess(const TensorMap &map, TmaAccess access, llvm::ArrayRef<int32_t> coords, uint32_t shared);

/// A piece of a box that is contiguous on both sides.
struct TmaPiece {
  uint32_t shared; ///< Swizzled address.
  uint32_t bytes;
  uint64_t global; ///< Meaningless when out of bounds.
  bool inside;     ///< Else: zero fill by loads, left out by stores.
};

/// Visits a box, each byte once, in the order of shared addresses before swizzling. Pieces are whole rows without
/// a swizzle and at most 16 bytes with one; they are cut where the tensor ends.
template <typename Visit>
void forEachPiece(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared, Visit visit);

/// Load: fills `sharedMemory` (indexed by shared addresses). `find(address, bytes)` gives the bytes in global memory or
/// nullptr; the address of the first piece that it refuses is returned.
template <typename Find>
std::optional<uint64_t> loadBox(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared,
                                std::byte *sharedMemory, Find find);
/// Store, the same way round.
template <typename Find>
std::optional<uint64_t> storeBox(const TensorMap &map, llvm::ArrayRef<int32_t> coords, uint32_t shared,
                                 const std::byte *sharedMemory, Find find);

/// cp.reduce.async.bulk(.tensor): dst = op(dst, src), element by element. f32 additions flush subnormal operands and
/// results to zeros of their sign and round to nearest even; f16 and bf16 keep subnormals.
enum class ReduceOp : uint8_t { add, min, max, inc, dec, bitAnd, bitOr, bitXor };
/// The table of types in the manual: add u32 s32 u64 f32 f64 f16 bf16; min, max u32 s32 u64 s64 f16 bf16; inc, dec u32;
/// and, or, xor b32 b64.
bool isReduce(ReduceOp op, ptx::Type type);
/// For what `isReduce` accepts; `bytes` is a multiple of the type's size.
void reduceBytes(ReduceOp op, ptx::Type type, std::byte *dst, const std::byte *src, uint32_t bytes);

} // namespace gemmc::emu::sem

#include "gemmc/Emu/TensorMapVisit.h"
