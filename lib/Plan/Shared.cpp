// Shared memory: what a stage, a staged epilogue and the barriers take, and how many stages fit.
#include "Draft.h"
#include "gemmc/Layout/SharedTile.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace gemmc::plan {
namespace {
SharedLayout layoutOf(const Draft &draft) {
  switch (*draft.spec().swizzle) {
  case Swizzle::none:
    return draft.wgmma() ? SharedLayout::none : SharedLayout::rows;
  case Swizzle::b32:
    return SharedLayout::b32;
  case Swizzle::b64:
    return SharedLayout::b64;
  case Swizzle::b128:
    return SharedLayout::b128;
  case Swizzle::padded:
    return SharedLayout::padded;
  case Swizzle::xor_:
    return SharedLayout::xor_;
  case Swizzle::blocked:
    return SharedLayout::blocked;
  }
  llvm_unreachable("unknown swizzle");
}
/// Bytes of an operand's tile of mn x k elements.
int64_t tileBytes(const Draft &draft, int64_t mn, int64_t k, bool kMajor) {
  const Elem type = *draft.spec().a.type;
  SharedLayout layout = fittingLayout(layoutOf(draft), mn, k, kMajor, bytesOf(type));
  return makeSharedTile(mn, k, kMajor, type, layout, *draft.spec().padding).stageBytes();
}
constexpr int64_t alignmentSlack = 1024; ///< The swizzle pattern repeats every 1024 bytes, so stages start there.
constexpr int64_t barrierBytes = 256;    ///< Full and empty mbarriers of 15 stages, and the schedule's own.
constexpr int64_t ringBytes = 256;       ///< Scheduler dynamic: the ring of tile numbers with its barriers.
} // namespace

int64_t swizzleSpan(const Draft &draft) {
  switch (*draft.spec().swizzle) {
  case Swizzle::none:
    return 16 / bytesOf(*draft.spec().a.type);
  case Swizzle::b32:
    return 32 / bytesOf(*draft.spec().a.type);
  case Swizzle::b64:
    return 64 / bytesOf(*draft.spec().a.type);
  default:
    return 128 / bytesOf(*draft.spec().a.type);
  }
}

// Lines that are shifted come with the 16 bytes around them, as they lie in memory.
int64_t stageBytes(const Draft &draft, const Shape &shape) {
  auto bytesOf = [&](int64_t mn, bool kMajor, bool shifted) {
    const int64_t lines = kMajor ? mn : shape.k, length = kMajor ? shape.k : mn;
    const Elem type = *draft.spec().a.type;
    return shifted
               ? makeSharedTile(lines, length + draft.elementsIn(16), true, type, SharedLayout::eighths).stageBytes()
               : tileBytes(draft, mn, shape.k, kMajor);
  };
  return bytesOf(shape.m, draft.kMajorA(), draft.shiftsA()) + bytesOf(shape.n, draft.kMajorB(), draft.shiftsB());
}

bool endsRowsInside16Bytes(const Draft &draft) {
  const Size &length = contiguousExtent(draft.spec(), operandInfos[3]);
  return length.fixed && *length.fixed * bytesOf(*draft.spec().d.type) % 16;
}

namespace {
constexpr int64_t warpsOfGroup = 4, bufferBytes = 16 * 128; ///< 16 lines of 128 bytes.
bool bringsC(const Draft &draft) { return draft.wgmma() && *draft.spec().loadC == StoreKind::tma; }
/// The tiles to which lines are shifted, with two barriers for each.
int64_t shiftedBytes(const Draft &draft, const Shape &shape) {
  constexpr int64_t barriers = 2 * 8;
  if (!draft.shifts())
    return 0;
  const int64_t ofA = draft.shiftsA() ? tileBytes(draft, shape.m, shape.k, draft.kMajorA()) : 0,
                ofB = draft.shiftsB() ? tileBytes(draft, shape.n, shape.k, draft.kMajorB()) : 0;
  return shiftedStages * (barriers + ofA + ofB);
}
/// What every wgmma kernel has beside stages and buffers.
int64_t basicBytes(const Draft &draft, const Shape &shape) {
  return alignmentSlack + barrierBytes + (*draft.spec().scheduler == Scheduler::dynamic ? ringBytes : 0) +
         shiftedBytes(draft, shape);
}
/// One buffer of each consumer warp; where C comes to it, two mbarriers for each warpgroup.
int64_t bytesOfBuffers(const Draft &draft, const Shape &shape) {
  return consumerWarpgroups(shape) * (warpsOfGroup * bufferBytes + (bringsC(draft) ? 2 * 8 : 0));
}
} // namespace

std::pair<int64_t, int64_t> storeBufferLimits(const Draft &draft, const Shape &shape) {
  constexpr int64_t mostBuffers = 8;
  if (!bringsC(draft))
    return {1, mostBuffers};
  int64_t chunks = std::max<int64_t>(1, storeChunks(draft, shape));
  return {std::min<int64_t>(2, chunks), std::min(mostBuffers, chunks)};
}

int64_t storeChunks(const Draft &draft, const Shape &shape) {
  int64_t bytes = shape.warpN * bytesOf(*draft.spec().d.type), pieces = bytes / 128;
  for (int64_t width = 64; width >= 16; width /= 2) // what is left of a line: whole swizzled spans
    pieces += bytes % (2 * width) / width;
  return shape.warpM / 64 * pieces;
}

// A slot for each slice but the owner's own, of its share of the tile.
int64_t exchangeBytes(const Draft &draft, const Shape &shape) {
  if (!draft.wgmma() || shape.clusterK <= 1)
    return 0;
  const int64_t share = shape.m * shape.n / shape.warpN * columnShares(shape).each * bytesOf(*draft.spec().accumulator);
  return share * (shape.clusterK - 1);
}

/// Whether so many bytes of slots take the operands' place: one of their own saves the CTAs a meeting; large sums would
/// take it from the stages.
static bool takeOperandsPlace(const Shape &shape, int64_t bytes) {
  constexpr int64_t mostApart = 32 * 1024; // the owner's share, too
  return bytes > 0 && bytes / (shape.clusterK - 1) * shape.clusterK > mostApart;
}

bool exchangeOver(const Draft &draft, const Shape &shape) {
  return takeOperandsPlace(shape, exchangeBytes(draft, shape));
}

/// Those of slots that have a place of their own.
static int64_t exchangeApart(const Draft &draft, const Shape &shape) {
  const int64_t bytes = exchangeBytes(draft, shape);
  return takeOperandsPlace(shape, bytes) ? 0 : bytes;
}

namespace {
/// Bytes that stages and buffers share.
int64_t roomOf(const Draft &draft, const Shape &shape) {
  return draft.limits.sharedPerBlock - basicBytes(draft, shape) - exchangeApart(draft, shape);
}

/// Stages that so many buffers leave room for.
class StagesBeside {
public:
  StagesBeside(const Draft &draft, const Shape &shape)
      : room(roomOf(draft, shape)), buffer(bytesOfBuffers(draft, shape)), stage(stageBytes(draft, shape)) {}
  int64_t operator()(int64_t buffers) const {
    int64_t left = room - buffers * buffer;
    return left <= 0 ? 0 : left / stage;
  }
  int64_t buffersBeside(int64_t stages) const { return (room - stages * stage) / buffer; }

private:
  int64_t room, buffer, stage; ///< Bytes.
};

/// Whether a stage more is worth more than a second buffer. 30 kernels of 3 stages, with 4 and one buffer: 8% faster on
/// average, none more than 1% slower; 45 of 4 stages, with 5: as fast, but where rows start inside sectors and more
/// than one warpgroup stores 2% faster; of more stages nothing (H200, 2026-11-24, docs/hopper-l2.md, *A stage for a
/// buffer*). Where half a tile is stored at a time the buffers are worth as much as the stage, but in block tiles of
/// more columns than an instruction can have (2026-11-27, docs/hopper-l2.md, *Parts of lines*).
bool sparesBuffer(const Draft &draft, const Shape &shape, const StagesBeside &stagesBeside) {
  constexpr int64_t enough = 4;
  int64_t stages = stagesBeside(2);
  Shape filled = shape;
  filled.stages = stages;
  if (storeOverlap(draft, filled) > 0)
    return shape.n > wgmmaMostColumns && stages < enough && stagesBeside(1) > stages;
  bool more = stages < enough || (stages == enough && consumerWarpgroups(shape) > 1 &&
                                  shape.schedule == Schedule::cooperative && rowsStartInsideSectors(draft));
  return more && stagesBeside(1) > stages;
}

int64_t stepsOf(const Draft &draft, const Shape &shape) {
  const std::optional<int64_t> k = draft.extentK();
  return k ? llvm::divideCeil(*k, shape.k) : std::numeric_limits<int64_t>::max();
}
} // namespace

// Ping-pong hides that a buffer is waited for, and through one D leaves in smaller bursts. In f32: of 30 tiles of 64
// and 128 rows it takes 4.3% less than two, at most 1% more (of 192 rows between 5% more and 5% less, as of k up to
// 512, whose main loops hide no epilogue). In 16 bits: of 47 products of k from 512 to 1536 2.6% less, at most 5%
// more; of k 2048 to 5120 between 3% less and 2% more, of 256 and 384 none less (H100, 2026-11-25,
// docs/hopper-shapes.md, *C, and D in f32*).
bool leavesThroughOne(const Draft &draft, const Shape &shape) {
  const int64_t steps = stepsOf(draft, shape), bytes = bytesOf(*draft.spec().d.type);
  if (shape.schedule != Schedule::pingpong)
    return false;
  return bytes == 4 ? shape.warpM <= 128 && steps > 8 : bytes == 2 && steps >= 8 && steps <= 24;
}

constexpr int64_t usualBuffers = 2; ///< One is filled while the other one is read.
// Where half a tile is stored in the time of few products a third one
// brings 0 to 4%, if the stages leave it (H200, 2026-11-22). C waits in them for its tile's end: as many as the stages
// leave.
/// Those that do not depend on what the stages leave.
static std::optional<unsigned> settledBuffers(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  if (!draft.wgmma() || *s.store == StoreKind::direct)
    return 0;
  if (*s.store == StoreKind::staged)
    return unsigned(usualBuffers);
  if (s.storeBuffers.given)
    return unsigned(*s.storeBuffers);
  if (!bringsC(draft) && leavesThroughOne(draft, shape))
    return 1;
  return std::nullopt;
}

static unsigned storeBuffers(const Draft &draft, const Shape &shape, const StagesBeside &stagesBeside) {
  constexpr int64_t underProducts = 3;
  if (std::optional<unsigned> settled = settledBuffers(draft, shape))
    return *settled;
  if (shape.stages == 0 && !bringsC(draft))
    return unsigned(sparesBuffer(draft, shape, stagesBeside) ? 1 : usualBuffers);
  auto [least, most] = bringsC(draft)                    ? storeBufferLimits(draft, shape)
                       : storeOverlap(draft, shape) == 0 ? std::pair<int64_t, int64_t>{1, usualBuffers}
                                                         : std::pair<int64_t, int64_t>{1, underProducts};
  return unsigned(std::clamp(stagesBeside.buffersBeside(shape.stages), least, most));
}

unsigned storeBuffers(const Draft &draft, const Shape &shape) {
  std::optional<unsigned> settled = settledBuffers(draft, shape);
  return settled ? *settled : storeBuffers(draft, shape, StagesBeside(draft, shape));
}

// Each warp of a consumer warpgroup has its own buffers.
int64_t stagedBytes(const Draft &draft, const Shape &shape) {
  return storeBuffers(draft, shape) * bytesOfBuffers(draft, shape);
}

// Slices meet as whole tiles of sums; a staged tile has eight elements of padding a line.
int64_t epilogueBytes(const Draft &draft, const Shape &shape) {
  if (draft.wgmma())
    return 0;
  int64_t bytes = bytesOf(*draft.spec().accumulator), most = 0;
  if (shape.slices() > 1)
    most = shape.m * shape.n * bytes;
  if (*draft.spec().store == StoreKind::staged) {
    bool rows = storesAlongN(draft);
    int64_t lines = rows ? shape.m : shape.n, length = rows ? shape.n : shape.m;
    most = std::max(most, lines * (length + 8) * bytes);
  }
  return most;
}

int64_t fixedBytes(const Draft &draft, const Shape &shape) {
  if (!draft.wgmma())
    return 0;
  return basicBytes(draft, shape) + stagedBytes(draft, shape) + exchangeApart(draft, shape);
}

int64_t sharedBytes(const Draft &draft, const Shape &shape) {
  int64_t later = exchangeOver(draft, shape) ? exchangeBytes(draft, shape) : epilogueBytes(draft, shape);
  int64_t shifted = shiftedBytes(draft, shape), operands = shape.stages * stageBytes(draft, shape) + shifted;
  return std::max(operands, later) + fixedBytes(draft, shape) - shifted;
}

namespace {
/// Stages that buffers of C leave: two buffers, or as many as all of a tile's C waits in, `most`, beside `enough`
/// stages.
int64_t stagesBesideC(const Draft &draft, const Shape &shape, const StagesBeside &stagesBeside, int64_t enough,
                      int64_t most) {
  int64_t fit = stagesBeside(storeBufferLimits(draft, shape).first);
  return fit <= enough ? fit : std::max(enough, stagesBeside(most));
}
} // namespace

// More than are enough give way to buffers in which all of a tile's C waits. Ping-pong hides what has to wait, but
// under main loops of few steps: there, in the place of two buffers, four are worth more than a sixth stage, or a fifth
// (16 tiles of products of k from 512 to 2048 in 3 to 28% less time; of k 4096 between 3% less and 3% more). Of
// cooperative warpgroups whose C is f32 all are worth more than the fourth stage (four of k 1024 and 2048: 5 to 9%; of
// 4096 2% less and 2% more; H100, 2026-11-25, docs/hopper-shapes.md, *C, and D in f32*).
int64_t stagesThatFit(const Draft &draft, const Shape &shape) {
  Shape open = shape;
  open.stages = 0; // buffers beyond the least take what stages leave
  const StagesBeside stagesBeside(draft, shape);
  if (!bringsC(draft) || draft.spec().storeBuffers.given)
    return stagesBeside(storeBuffers(draft, open, stagesBeside));
  const int64_t most = storeBufferLimits(draft, shape).second, steps = stepsOf(draft, shape);
  if (shape.schedule != Schedule::pingpong) {
    const bool spared = steps <= 32 && bytesOf(*draft.spec().d.type) == 4;
    return stagesBesideC(draft, shape, stagesBeside, spared ? 3 : 4, most);
  }
  open.stages = stagesBesideC(draft, shape, stagesBeside, 6, most);
  if (steps > 48 || storeBuffers(draft, open) > 2)
    return open.stages;
  return stagesBesideC(draft, shape, stagesBeside, steps > 16 ? 5 : 4, std::min<int64_t>(most, 4));
}

} // namespace gemmc::plan
