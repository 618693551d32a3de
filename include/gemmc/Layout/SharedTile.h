/// How one stage of an operand's tile lies in shared memory: pure integer functions.
///
/// A tile of mn x k elements is cut along its contiguous direction into *spans* of `spanBytes`; a span holds that piece
/// of all rows, `pitch` bytes apart, and the spans follow each other. Inside, 16-byte chunks change places by an XOR,
/// so that eight neighbouring rows of one chunk column meet eight different groups of four banks:
///
///     layout   span        chunk' =
///     none     16 bytes    chunk                              TMA boxes, wgmma without swizzle
///     32B      32 bytes    address bit  4    ^= bit  7        TMA and wgmma (PTX ISA 5.5.7, 9.7.15.5)
///     64B      64 bytes    address bits 5..4 ^= bits 8..7
///     128B     128 bytes   address bits 6..4 ^= bits 9..7
///     rows     a row       chunk                              plain rows
///     padded   a row       chunk; `padding` bytes between rows
///     eighths  a row       chunk; rows i, i + 8, ... lie together, from a multiple of 128 bytes on (a TMA box each)
///     blocked  16 elements chunk; blocks of 16 rows x 16 elements lie one behind the other, row by row of blocks
///     xor      a row       chunk ^ f(row), see SharedXor      mma's operands without bank conflicts
///
/// For `xor` a row is padded up to a power of two below 128 bytes, to a multiple of 128 bytes above. What f is depends
/// on which rows a warp reads at once (PTX ISA 9.7.14.5, the matrix fragments; lanes are served 32, 16 or 8 at a time):
///     eight rows in a row, 16 bytes of each       f = row % 8              ldmatrix; words along k
///     four rows, 32 bytes of each                 f = 2 (row % 4)          f64; words of 32 bits across k
///     rows 0, 4, 8 and 12, 8 bytes of each        f = row / 4 % 8          bytes across k
/// and less where a pitch is below 128, because 128 bytes are all 32 banks: rows that share 128 bytes already differ.
#pragma once
#include "gemmc/Support/Types.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace gemmc {

enum class SharedLayout : uint8_t { none, b32, b64, b128, rows, padded, xor_, blocked, eighths };
std::optional<SharedLayout> parseSharedLayout(llvm::StringRef name);
llvm::StringRef nameOf(SharedLayout layout);

/// What 16-byte chunks of a row are XORed with: row / rows % keys * chunks.
struct SharedXor {
  int64_t rows = 1, keys = 1, chunks = 1;
  int64_t of(int64_t row) const { return row / rows % keys * chunks; }
  bool moves() const { return keys > 1; }
  int64_t period() const { return moves() ? rows * keys : 1; } ///< Rows after which it repeats.
};

struct SharedTile {
  /// `mn` x `k` elements of `elemBytes`; `kMajor`: elements along k are adjacent. `padding`: bytes, a multiple of 16.
  SharedTile(int64_t mn, int64_t k, bool kMajor, int64_t elemBytes, SharedLayout layout, int64_t padding = 16);

  SharedLayout layout;
  bool kMajor;
  int64_t elemBytes;
  int64_t rows;      ///< Extent of the direction that is not contiguous.
  int64_t spanBytes; ///< Bytes of a row in one span.
  int64_t spans;     ///< Spans that cover the contiguous extent (the last one may reach beyond it).
  int64_t pitch;     ///< Bytes from row to row inside a span.

  static constexpr int64_t blockRows = 16; ///< Of the layout `blocked`, whose spans are as many elements long.

  static constexpr int64_t rowsOfBytes = 4; ///< Rows of k that a register has a byte of each of, if bytes lie across k.

  static constexpr int64_t groups = 8; ///< Of rows, in the layout `eighths`: row i is in group i % groups.

  int64_t spanElems() const { return spanBytes / elemBytes; }
  int64_t spanStride() const { return rows * pitch; } ///< Bytes from span to span.
  int64_t stageBytes() const;
  /// Alignment of a stage, bytes, at which the swizzle's pattern starts.
  int64_t alignment() const;
  bool isBoxed() const { return layout <= SharedLayout::b128; } ///< A TMA box layout.

  /// Of a chunk's number within its 128 bytes (xor, 128B) or span.
  SharedXor swizzle;
  int64_t xorOf(int64_t row) const { return swizzle.of(row); }
  /// Bytes from one band of 16 rows of blocks to the next (blocked).
  int64_t bandStride() const { return spans * blockRows * pitch; }
  /// Bytes from one group of rows to the next (eighths).
  int64_t groupStride() const;
  /// Byte offset of element (row, col) in a stage; col counts along the contiguous direction.
  int64_t offset(int64_t row, int64_t col) const;
};

/// Rows of a TMA box at most (cuTensorMapEncodeTiled, boxDim).
constexpr int64_t mostBoxRows = 256;

/// How CTAs of a cluster share out the rows of a tile that they bring to each other: in parts of whole groups of 8
/// swizzled rows, of which the first CTAs may have one more.
struct TileParts {
  int64_t ctas = 1;
  int64_t rows = 0;   ///< Of most parts. 0: those CTAs bring nothing.
  int64_t larger = 0; ///< So many parts, the first ones, have a group of rows more.

  static constexpr int64_t groupRows = 8;
  constexpr TileParts() = default;
  /// One CTA brings any number of rows, several of them a multiple of 8.
  constexpr TileParts(int64_t tileRows, int64_t ctas)
      : ctas(ctas), rows(ctas == 1 ? tileRows : tileRows / groupRows / ctas * groupRows),
        larger(ctas == 1 ? 0 : tileRows / groupRows % ctas) {}
  constexpr int64_t mostRows() const { return rows + (larger ? groupRows : 0); }
  /// The CTAs that bring something, the first ones.
  constexpr int64_t bringers() const { return rows ? ctas : larger; }
  /// The first row of a CTA's part, and of what lies behind the last one.
  constexpr int64_t start(int64_t cta) const { return cta * rows + (cta < larger ? cta : larger) * groupRows; }
  /// Of the first `rest` rows of a tile: how many CTAs have their whole parts there, and how many something.
  constexpr int64_t wholeOf(int64_t rest) const {
    int64_t cta = 0;
    while (cta < bringers() && start(cta + 1) <= rest)
      ++cta;
    return cta;
  }
  constexpr int64_t bringersOf(int64_t rest) const { return wholeOf(rest) + (start(wholeOf(rest)) < rest); }
};

/// How an operand's tile lies of which the kernel's swizzle is `widest`: where m or n is contiguous and wgmma reads it
/// no wider than a row needs, so that a short side takes no room beyond it. Stages stay whole patterns of 1024 bytes.
SharedLayout fittingLayout(SharedLayout widest, int64_t mn, int64_t k, bool kMajor, int64_t elemBytes);

/// The tile of elements of `type`. Packed ones (s4, u4, b1) count as the bytes that hold them, along k.
SharedTile makeSharedTile(int64_t mn, int64_t k, bool kMajor, Elem type, SharedLayout layout, int64_t padding = 16);

} // namespace gemmc
