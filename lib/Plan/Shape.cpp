// The choice of schedule, tiles, cluster and stages: all that is open is tried, the cheapest legal candidate wins.
#include "Draft.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>
#include <tuple>

using llvm::formatv;

namespace gemmc::plan {
namespace {
struct Tile {
  int64_t m, n;
};
using Tiles = llvm::SmallVector<Tile, 16>;

int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// A tile field in the kernel's view.
std::array<int64_t, 3> kernelView(const Draft &draft, std::array<int64_t, 3> tile) {
  if (draft.plan.swapped)
    std::swap(tile[0], tile[1]);
  return tile;
}

/// Block tiles to try, the favourite first: of two that cost the same the first is taken.
Tiles blockCandidates(const Draft &draft) {
  const Spec &s = draft.spec();
  if (s.block.given) {
    auto block = kernelView(draft, *s.block);
    return {{block[0], block[1]}};
  }
  if (draft.stream)
    return {{draft.stream->m, draft.stream->n}};
  if (s.warp.given) { // whole blocks of the asked warp tiles
    auto warp = kernelView(draft, *s.warp);
    Tiles tiles;
    for (auto [m, n] : {std::pair{2, 2}, {2, 1}, {1, 2}, {2, 4}, {4, 2}, {1, 1}})
      if (warp[0] >= 1 && warp[0] <= 512 && warp[1] >= 1 && warp[1] <= 512)
        tiles.push_back({warp[0] * m, warp[1] * n});
    return tiles.empty() ? Tiles{{warp[0], warp[1]}} : tiles;
  }
  // mma wants the large tile where an SM has the shared memory of several stages of it.
  bool roomy = draft.limits.sharedPerBlock > 128 * 1024;
  if (!draft.wgmma() && roomy)
    return {{128, 256}, {128, 128}, {256, 128}, {128, 64}, {64, 128}, {64, 64}};
  if (!draft.wgmma())
    return {{128, 128}, {128, 64}, {64, 128}, {64, 64}};
  Tiles tiles{{128, 256}, {128, 192}, {128, 176}, {128, 128}, {256, 128}, {64, 256}, {64, 128}, {64, 64}};
  // A narrow product: no tile is wider than it needs.
  if (std::optional<int64_t> n = draft.extentN(); n && *n < 256)
    for (int64_t m : {128, 64})
      tiles.push_back({m, std::max<int64_t>(8, roundUp(*n, 8))});
  return tiles;
}

/// Warp (warpgroup) tiles of a block tile, the favourite first.
Tiles warpCandidates(const Draft &draft, Schedule schedule, Tile block) {
  if (draft.spec().warp.given) {
    auto warp = kernelView(draft, *draft.spec().warp);
    return {{warp[0], warp[1]}};
  }
  Tiles tiles;
  if (draft.wgmma()) {
    if (schedule != Schedule::pingpong)
      for (int64_t groups : {2, 3, 4, 1})
        if (block.m % (64 * groups) == 0)
          tiles.push_back({block.m / groups, block.n});
  } else {
    // The largest warp tile (fewest shared memory reads) that leaves each of the SM's four tensor cores a warp.
    for (auto [m, n] : {std::pair{64, 64}, {64, 32}, {32, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}})
      if (block.m % m == 0 && block.n % n == 0) {
        tiles = {{m, n}};
        if (block.m / m * (block.n / n) >= 4)
          break;
      }
    if (tiles.empty()) // whole instructions of an unusual block
      for (int64_t m : {4, 2, 1})
        for (int64_t n : {4, 2, 1})
          if (Tile tile{m * draft.matrix->rows(), n * draft.matrix->columns()};
              block.m % tile.m == 0 && block.n % tile.n == 0 &&
              (tiles.empty() || tiles[0].m * tiles[0].n * 4 > block.m * block.n))
            tiles = {tile};
  }
  return tiles.empty() ? Tiles{block} : tiles;
}

int64_t blockDepth(const Draft &draft) {
  const Spec &s = draft.spec();
  if (s.block.given)
    return (*s.block)[2];
  if (s.warp.given)
    return (*s.warp)[2];
  if (draft.stream)
    return draft.stream->k;
  if (draft.wgmma())
    return 64;
  // Two steps of the instruction, so that one is read while the other is multiplied.
  int64_t depth = std::max(draft.elementsIn(leastDepthBytes * 2), 2 * draft.matrix->k);
  return std::min(depth, draft.elementsIn(mostDepthBytes));
}

/// Most stages that pay: wgmma hides the latency of TMA with up to 8, mma runs well with 4.
int64_t bestStages(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  if (s.stages.given)
    return *s.stages;
  if (*s.copy == CopyKind::ld)
    return 1;
  // What streams through many CTAs at once waits for memory: all bytes that there is room for are under way.
  int64_t most = draft.inCluster() || draft.stream ? mostStages : draft.wgmma() ? 8 : 4;
  int64_t stages = std::min<int64_t>(stagesThatFit(draft, shape), most);
  // Three stages that leave room for a second CTA on the SM beat four that do not.
  auto resident = [&](int64_t count) { return draft.limits.sharedPerSM / (count * stageBytes(draft, shape) + 1024); };
  bool two = !draft.wgmma() && ctasByRegisters(draft, shape) >= 2;
  if (two && stages == 4 && resident(4) < 2 && resident(3) >= 2)
    stages = 3;
  if (std::optional<int64_t> k = draft.extentK()) {
    int64_t steps = *k / shape.k + (*k % shape.k != 0);
    stages = std::min(stages, std::max<int64_t>(2, (steps + shape.clusterK - 1) / shape.clusterK));
  }
  return std::max<int64_t>(stages, 2);
}

Tiles clusterCandidates(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  if (draft.stream) {
    bool longIsM = *draft.extentM() > *draft.extentN();
    int64_t shareLong = draft.stream->shareLong, shareShort = draft.stream->shareShort;
    return {longIsM ? Tile{shareShort, shareLong} : Tile{shareLong, shareShort}};
  }
  if (!s.cluster.given && s.split.given && *s.split != SplitMode::none)
    return {{1, 1}};
  if (s.cluster.given) {
    auto cluster = kernelView(draft, *s.cluster);
    return {{cluster[0], cluster[1]}};
  }
  bool large = draft.extentM().value_or(0) >= 2048 && draft.extentN().value_or(0) >= 2048 &&
               *draft.extentM() / std::max<int64_t>(1, shape.m) >= 4;
  if (draft.wgmma() && shape.schedule != Schedule::pipelined && large)
    return {{2, 1}, {1, 1}};
  return {{1, 1}};
}

/// Whether sizes are in a range in which the arithmetic of candidates is safe; checkShape reports the rest.
bool sane(const Shape &shape) {
  auto small = [](int64_t value) { return value >= 1 && value <= 1024; };
  return small(shape.warpK) && shape.warpK <= shape.k && small(shape.m) && small(shape.n) && small(shape.k) &&
         small(shape.warpM) && small(shape.warpN) && shape.warpM <= shape.m && shape.warpN <= shape.n;
}

std::vector<Shape> candidates(const Draft &draft) {
  const Spec &s = draft.spec();
  std::vector<Shape> shapes;
  Shape shape;
  shape.schedule = *s.schedule;
  shape.k = blockDepth(draft);
  shape.warpK = s.warp.given ? (*s.warp)[2] : shape.k;
  for (Tile block : blockCandidates(draft))
    for (Tile warp : warpCandidates(draft, shape.schedule, block)) {
      shape.m = block.m, shape.n = block.n;
      shape.warpM = warp.m, shape.warpN = warp.n;
      for (Tile cluster : clusterCandidates(draft, shape)) {
        shape.clusterM = cluster.m, shape.clusterN = cluster.n;
        shape.clusterK = s.cluster.given ? (*s.cluster)[2] : draft.inCluster() ? *s.splitSlices : 1;
        shape.stages = sane(shape) ? bestStages(draft, shape) : 2;
        shapes.push_back(shape);
      }
    }
  return shapes;
}

struct Choice {
  Shape shape;
  Estimate estimate;
  std::optional<Shape> second; ///< The best with another block tile.
  double secondClocks = 0;
};

/// A candidate must beat the ones before it by what the estimate is surely wrong by.
constexpr double margin = 0.98;

std::optional<Choice> choose(const Draft &draft, llvm::ArrayRef<Shape> shapes) {
  std::optional<Choice> best;
  for (const Shape &shape : shapes) {
    Diags scratch;
    checkShape(draft, shape, scratch);
    if (scratch.hasErrors())
      continue;
    Estimate cost = estimate(draft, shape);
    bool sameBlock = best && best->shape.m == shape.m && best->shape.n == shape.n;
    if (!best || cost.clocks < margin * best->estimate.clocks) {
      Choice next{shape, cost, std::nullopt, 0};
      if (best && !sameBlock)
        next.second = best->shape, next.secondClocks = best->estimate.clocks;
      else if (best)
        next.second = best->second, next.secondClocks = best->secondClocks;
      best = next;
    } else if (!sameBlock && (!best->second || cost.clocks < best->secondClocks)) {
      best->second = shape, best->secondClocks = cost.clocks;
    }
  }
  return best;
}

std::string blockReason(const Draft &draft, const Choice &choice) {
  const Estimate &e = choice.estimate;
  if (draft.stream)
    return draft.stream->reason;
  bool assumed = !draft.extentM() || !draft.extentN() || !draft.extentK();
  std::string text =
      formatv("{0} tile{1} in {2} wave{3} over {4} SMs{5}", e.tiles, e.tiles == 1 ? "" : "s", e.waves,
              e.waves == 1 ? "" : "s", draft.limits.sms, assumed ? " (dynamic sizes taken as 4096)" : "");
  if (choice.second && choice.secondClocks > 0)
    text += formatv("; next best {0}x{1}, an estimated {2}% slower", choice.second->m, choice.second->n,
                    std::max<int64_t>(0, std::llround(100 * (choice.secondClocks / e.clocks - 1))));
  return text;
}

std::string warpReason(const Draft &draft, const Shape &shape) {
  unsigned registers = accumulatorRegisters(draft, shape), limit = accumulatorLimit(draft, shape);
  if (!draft.wgmma())
    return formatv("{0} warps; {1} accumulator registers a thread of the {2} there is room for", shape.warps(),
                   registers, limit);
  unsigned groups = consumerWarpgroups(shape);
  return formatv("{0} warpgroup{1} multipl{2}; {3} accumulator registers a thread of the {4} there is room for", groups,
                 groups == 1 ? "" : "s", groups == 1 ? "ies" : "y", registers, limit);
}

std::string stagesReason(const Draft &draft, const Shape &shape) {
  if (*draft.spec().copy == CopyKind::ld)
    return "plain loads fill one buffer between two barriers";
  return formatv("{0} bytes each, {1} in all: {2} of {3} bytes a block has on {4}", stageBytes(draft, shape),
                 shape.stages * stageBytes(draft, shape), sharedBytes(draft, shape), draft.limits.sharedPerBlock,
                 nameOf(*draft.spec().target));
}

std::string clusterReason(const Shape &shape) {
  if (shape.clusterK > 1 && shape.clusterM * shape.clusterN == 1)
    return "the slices of a tile's k steps";
  if (shape.clusterM * shape.clusterN == 1)
    return shape.schedule == Schedule::pipelined ? "no producer warp that could share tiles"
                                                 : "too few tiles, or sizes unknown, for sharing to pay";
  if (shape.clusterM == 1)
    return formatv("{0} CTAs share each tile of A: {1} bytes of L2 traffic less a stage", shape.clusterN,
                   shape.m * shape.k * 2 / shape.clusterN);
  return formatv("{0} CTAs share each tile of B: {1} bytes of L2 traffic less a stage", shape.clusterM,
                 shape.n * shape.k * 2 / shape.clusterM);
}

void record(Draft &draft, const Choice &choice) {
  Spec &s = draft.spec();
  Plan &plan = draft.plan;
  const Shape &shape = choice.shape;
  s.block.decide(kernelView(draft, {shape.m, shape.n, shape.k}), blockReason(draft, choice));
  s.warp.decide(kernelView(draft, {shape.warpM, shape.warpN, shape.warpK}), warpReason(draft, shape));
  s.cluster.decide(kernelView(draft, {shape.clusterM, shape.clusterN, shape.clusterK}), clusterReason(shape));
  s.stages.decide(shape.stages, stagesReason(draft, shape));
  plan.blockM = shape.m, plan.blockN = shape.n, plan.blockK = shape.k;
  plan.warpM = shape.warpM, plan.warpN = shape.warpN, plan.warpK = shape.warpK;
  plan.clusterM = shape.clusterM, plan.clusterN = shape.clusterN;
  plan.clusterK = shape.clusterK;
  plan.exchangeOwners = shape.clusterK > 1 ? exchangeOwners(shape) : 1;
  plan.exchangeOver = shape.clusterK > 1 && exchangeOver(draft, shape);
  plan.threads = threadsOf(draft, shape);
  plan.consumerWarpgroups = draft.wgmma() ? consumerWarpgroups(shape) : 0;
  std::tie(plan.producerRegs, plan.consumerRegs) = registerSplit(draft, shape);
  // More than two would press the registers of each thread for little.
  plan.residentCtas = unsigned(std::min<int64_t>(2, choice.estimate.ctasPerSM));
  plan.storeBuffers = storeBuffers(draft);
  plan.sharedBytes = sharedBytes(draft, shape);
}

/// Before the shape: the epilogue's buffers count in the shared memory budget.
void decideStore(Draft &draft) {
  Spec &s = draft.spec();
  bool rows = (*s.d.layout == Order::row) != draft.plan.swapped;
  if (draft.wmma())
    s.store.decide(StoreKind::staged, "only whole fragments of wmma can be stored");
  else if (draft.stream && !rows)
    s.store.decide(StoreKind::staged, "lines of d cross warps: a warpgroup turns its tile and writes them whole");
  else if (!draft.wgmma() || !rows)
    s.store.decide(StoreKind::direct, "registers to memory, no shared memory and no barrier");
  else if (promisedAlign(s.d) >= 16 && s.beta.value == Scale{0.0} && !endsRowsInside16Bytes(draft))
    s.store.decide(StoreKind::tma,
                   "whole lines, and a thread that only starts them: the warps go on with the next tile");
  else
    s.store.decide(StoreKind::staged, "through shared memory whole lines are written");
}
} // namespace

void decideShape(Draft &draft) {
  Spec &s = draft.spec();
  if (draft.wgmma())
    s.schedule.decide(Schedule::cooperative, "a producer warp keeps the stages full while warpgroups only multiply");
  else
    s.schedule.decide(Schedule::pipelined, "cp.async is issued by the warps that multiply");
  if (!draft.wgmma() && *s.schedule != Schedule::pipelined) {
    draft.diags.report(Diag::plan_schedule_family, s.schedule.range, nameOf(*s.schedule), nameOf(*s.instruction))
        .fix(s.schedule.range, "pipelined");
  }
  decideStore(draft);
  std::vector<Shape> shapes = candidates(draft);
  std::optional<Choice> choice = choose(draft, shapes);
  // Buffers that nobody asked for give way to stages or tiles that somebody did.
  if (!choice && draft.wgmma() && !s.store.given && *s.store != StoreKind::direct) {
    s.store.decide(StoreKind::direct, "buffers for whole lines do not fit beside the stages");
    shapes = candidates(draft);
    choice = choose(draft, shapes);
  }
  if (choice)
    return record(draft, *choice);
  if (draft.stream) { // its cut does not fit: the usual ones may
    draft.stream.reset();
    decideSplit(draft);
    return decideShape(draft);
  }
  unsigned before = draft.diags.numErrors();
  checkShape(draft, shapes.front(), draft.diags);
  assert(draft.diags.numErrors() > before && "a refused shape without a reason");
  (void)before;
}

} // namespace gemmc::plan
