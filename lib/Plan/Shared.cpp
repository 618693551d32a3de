// Shared memory: what a stage, a staged epilogue and the barriers take, and how many stages fit.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {
namespace {
/// Bytes of an operand's tile: `rows` lines of `line` contiguous elements.
int64_t tileBytes(const Draft &draft, int64_t line, int64_t rows, bool kMajor) {
  if (draft.wgmma()) {
    // A swizzled line is exactly one span; a longer tile is several columns of spans, the last one whole.
    line = int64_t(llvm::alignTo(line, swizzleSpan(draft)));
  } else if (*draft.spec().swizzle == Swizzle::padded) {
    line += 16 / draft.inputBytes(); // 16 bytes more a line shift each line by four banks
  }
  return line * rows * draft.inputBytes();
}
constexpr int64_t alignmentSlack = 1024; ///< The swizzle pattern repeats every 1024 bytes, so stages start there.
constexpr int64_t barrierBytes = 256;    ///< Full and empty mbarriers of 8 stages, and the schedule's own.
} // namespace

int64_t swizzleSpan(const Draft &draft) {
  switch (*draft.spec().swizzle) {
  case Swizzle::none:
    return 16 / draft.inputBytes();
  case Swizzle::b32:
    return 32 / draft.inputBytes();
  case Swizzle::b64:
    return 64 / draft.inputBytes();
  default:
    return 128 / draft.inputBytes();
  }
}

int64_t stageBytes(const Draft &draft, const Shape &shape) {
  bool a = draft.kMajorA(), b = draft.kMajorB();
  return tileBytes(draft, a ? shape.k : shape.m, a ? shape.m : shape.k, a) +
         tileBytes(draft, b ? shape.k : shape.n, b ? shape.n : shape.k, b);
}

// Two: one is filled while the other one is read.
unsigned storeBuffers(const Draft &draft) { return draft.wgmma() && *draft.spec().store != StoreKind::direct ? 2 : 0; }

// Each warp of a consumer warpgroup has its own buffers: 16 lines of 128 bytes.
int64_t stagedBytes(const Draft &draft, const Shape &shape) {
  constexpr int64_t warpsOfGroup = 4, bufferBytes = 16 * 128;
  return consumerWarpgroups(shape) * warpsOfGroup * storeBuffers(draft) * bufferBytes;
}

int64_t fixedBytes(const Draft &draft, const Shape &shape) {
  return draft.wgmma() ? alignmentSlack + barrierBytes + stagedBytes(draft, shape) : 0;
}

int64_t sharedBytes(const Draft &draft, const Shape &shape) {
  return shape.stages * stageBytes(draft, shape) + fixedBytes(draft, shape);
}

int64_t stagesThatFit(const Draft &draft, const Shape &shape) {
  int64_t room = draft.limits.sharedPerBlock - fixedBytes(draft, shape);
  return room <= 0 ? 0 : room / stageBytes(draft, shape);
}

} // namespace gemmc::plan
