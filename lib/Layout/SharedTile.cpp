#include "gemmc/Layout/SharedTile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace gemmc {
namespace {
constexpr int64_t chunkBytes = 16, lineBytes = 128;

int64_t rowSpan(int64_t bytes, int64_t elemBytes, SharedLayout layout) {
  switch (layout) {
  case SharedLayout::none:
    return chunkBytes;
  case SharedLayout::b32:
    return 32;
  case SharedLayout::b64:
    return 64;
  case SharedLayout::b128:
    return 128;
  case SharedLayout::rows:
  case SharedLayout::padded:
  case SharedLayout::eighths:
    return llvm::alignTo(bytes, chunkBytes);
  case SharedLayout::xor_:
    return bytes <= lineBytes ? std::max<int64_t>(llvm::PowerOf2Ceil(bytes), chunkBytes)
                              : llvm::alignTo(bytes, lineBytes);
  case SharedLayout::blocked:
    return SharedTile::blockRows * elemBytes;
  }
  llvm_unreachable("unknown layout");
}
SharedXor swizzleOf(SharedLayout layout, bool kMajor, int64_t elemBytes, int64_t pitch) {
  const bool boxed = layout == SharedLayout::b32 || layout == SharedLayout::b64 || layout == SharedLayout::b128;
  if (!boxed && layout != SharedLayout::xor_)
    return {};
  const int64_t chunks = std::min(pitch, lineBytes) / chunkBytes, rowsOfLine = std::max<int64_t>(1, lineBytes / pitch);
  if (boxed)
    return {rowsOfLine, chunks, 1};
  if (elemBytes == 8 || (elemBytes == 4 && !kMajor))
    return {rowsOfLine, std::max<int64_t>(1, chunks / 2), 2};
  if (elemBytes == 1 && !kMajor)
    return {SharedTile::rowsOfBytes, chunks, 1};
  return {rowsOfLine, chunks, 1};
}
} // namespace

std::optional<SharedLayout> parseSharedLayout(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<SharedLayout>>(name)
      .Case("none", SharedLayout::none)
      .Case("32B", SharedLayout::b32)
      .Case("64B", SharedLayout::b64)
      .Case("128B", SharedLayout::b128)
      .Case("rows", SharedLayout::rows)
      .Case("padded", SharedLayout::padded)
      .Case("xor", SharedLayout::xor_)
      .Case("blocked", SharedLayout::blocked)
      .Case("eighths", SharedLayout::eighths)
      .Default(std::nullopt);
}

llvm::StringRef nameOf(SharedLayout layout) {
  constexpr const char *names[] = {"none", "32B", "64B", "128B", "rows", "padded", "xor", "blocked", "eighths"};
  return names[static_cast<unsigned>(layout)];
}

SharedTile::SharedTile(int64_t mn, int64_t k, bool kMajor, int64_t elemBytes, SharedLayout layout, int64_t padding)
    : layout(layout), kMajor(kMajor), elemBytes(elemBytes), rows(kMajor ? mn : k) {
  int64_t bytes = (kMajor ? k : mn) * elemBytes;
  spanBytes = rowSpan(bytes, elemBytes, layout);
  spans = llvm::divideCeil(bytes, spanBytes);
  pitch = spanBytes + (layout == SharedLayout::padded ? padding : 0);
  swizzle = swizzleOf(layout, kMajor, elemBytes, pitch);
}

int64_t SharedTile::stageBytes() const {
  if (layout == SharedLayout::blocked)
    return llvm::divideCeil(rows, blockRows) * bandStride();
  if (layout == SharedLayout::eighths)
    return groups * groupStride();
  return spans * spanStride();
}

int64_t SharedTile::groupStride() const { return llvm::alignTo(llvm::divideCeil(rows, groups) * pitch, lineBytes); }

SharedLayout fittingLayout(SharedLayout widest, int64_t mn, int64_t k, bool kMajor, int64_t elemBytes) {
  constexpr int64_t pattern = 1024;
  if (kMajor || widest > SharedLayout::b128)
    return widest;
  const int64_t bytes = mn * elemBytes;
  for (SharedLayout layout : {SharedLayout::none, SharedLayout::b32, SharedLayout::b64})
    if (int64_t span = rowSpan(bytes, elemBytes, layout); layout < widest && bytes <= span && k * span % pattern == 0)
      return layout;
  return widest;
}

SharedTile makeSharedTile(int64_t mn, int64_t k, bool kMajor, Elem type, SharedLayout layout, int64_t padding) {
  return SharedTile(mn, k / perByte(type), kMajor, bytesOf(type), layout, padding);
}

int64_t SharedTile::alignment() const {
  switch (layout) {
  case SharedLayout::b32:
    return 256;
  case SharedLayout::b64:
    return 512;
  case SharedLayout::b128:
    return 1024;
  default:
    return lineBytes;
  }
}

int64_t SharedTile::offset(int64_t row, int64_t col) const {
  int64_t byte = col * elemBytes, span = byte / spanBytes, inSpan = byte % spanBytes;
  if (layout == SharedLayout::blocked)
    return row / blockRows * bandStride() + span * blockRows * pitch + row % blockRows * pitch + inSpan;
  if (layout == SharedLayout::eighths)
    return row % groups * groupStride() + row / groups * pitch + byte;
  int64_t chunk = inSpan / chunkBytes ^ xorOf(row);
  return span * spanStride() + row * pitch + chunk * chunkBytes + inSpan % chunkBytes;
}
} // namespace gemmc
