/// How the matrices of a batch lie in memory.
#pragma once
#include <cstdint>

namespace gemmc {

/// Whether `count` matrices of `lines` lines of `length` adjacent elements, these `ld` and those `stride` elements
/// apart, share an element: they may lie behind each other, or in each other's lines.
inline bool matricesOverlap(int64_t count, int64_t lines, int64_t length, int64_t ld, int64_t stride) {
  if (count <= 1 || lines == 0 || length == 0)
    return false;
  const __int128 one = __int128(lines - 1) * ld + length; // from its first element to behind its last
  const bool inLines = stride >= length && __int128(count - 1) * stride + length <= ld;
  return stride < one && !inLines;
}

} // namespace gemmc
