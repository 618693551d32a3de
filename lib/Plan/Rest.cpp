// What is decided when the tile is known: raster, persistence, hints; and the plan's view of the operands.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using llvm::formatv;

namespace gemmc::plan {
int64_t squareGroup(double ctas, int64_t blockM, int64_t blockN) {
  double square = std::log2(std::sqrt(ctas * double(blockN) / double(blockM))); // the lower of two that are as near
  return int64_t(1) << std::clamp<int64_t>(int64_t(std::ceil(square - 0.5)), 0, 5);
}

namespace {
constexpr int64_t maxRasterGroup = 1024;
constexpr int64_t repackedAlign = 128; // bytes: whole L2 lines, whole swizzled rows

/// `group` tiles walked together, so that `ctas` CTAs read few rows and columns.
struct Bands {
  int64_t ctas, group;
};

/// Whether all CTAs are there at once and run long enough: then the 16 of a GPC, whose requests for the same lines
/// reach the L2 as one, count, and not the wave, which reads all of A and B in any order. Pairs and larger clusters lie
/// otherwise.
bool fillsGpcs(const Draft &draft) {
  constexpr int64_t deep = 1024;
  const Plan &plan = draft.plan;
  std::optional<Grid> grid = gridOf(draft);
  return grid && grid->filled() > 0 && grid->oneWave() && !draft.stream && !draft.meetsInCluster() &&
         plan.clusterM * plan.clusterN == 1 && draft.extentK().value_or(0) >= deep;
}

/// One side of a grid, in the order in which its tiles are walked.
struct Side {
  int64_t tiles, length; ///< Of a tile: rows, or columns.
};

/// Rows and columns that the CTAs of one GPC ask the L2 for, of the GPC that asks for most: all are done when it is.
/// Bands of `group` tiles of `down`, gone down line after line.
int64_t askedByOneGpc(Side down, Side across, int64_t group) {
  int64_t most = 0, asked = 0, placed = 0;
  std::vector<int64_t> lastOfDown(down.tiles, -1),
      lastOfAcross(across.tiles, -1); // GPCs that have asked, the last ones
  auto ask = [&](std::vector<int64_t> &last, int64_t tile, int64_t length) {
    const int64_t gpc = placed / ctasOfGpc;
    asked += last[tile] == gpc ? 0 : length;
    last[tile] = gpc;
  };
  for (int64_t band = 0; band < down.tiles; band += group)
    for (int64_t line = 0; line < across.tiles; ++line)
      for (int64_t tile = band; tile < std::min(down.tiles, band + group); ++tile, ++placed) {
        asked = placed % ctasOfGpc == 0 ? 0 : asked;
        ask(lastOfDown, tile, down.length);
        ask(lastOfAcross, line, across.length);
        most = std::max(most, asked);
      }
  return most;
}

/// Bands for a wave or, where that leaves GPCs asking for a tenth less, for those. In a race of 49 products of 280 to
/// 8040 rows and columns in all layouts in bands of 2, 4, 8 and 16 (H100, 2026-11-25, docs/hopper-l2.md, *The sixteen
/// of a GPC*) 21 of the 31 with k of 1000 and more changed, and took 3.5% less (12% less to 2% more); shorter k gains
/// nothing.
Bands bandsOf(const Draft &draft) {
  constexpr double worthIt = 0.9;
  const int64_t rows = std::max<int64_t>(1, draft.plan.blockM); // 0 where no tile is legal
  const int64_t columns = std::max<int64_t>(1, draft.plan.blockN);
  const Bands wave{draft.limits.sms, squareGroup(double(draft.limits.sms), rows, columns)};
  if (!fillsGpcs(draft))
    return wave;
  if (draft.slicesInMemory() > 1) // whose CTAs come slice by slice
    return {ctasOfGpc, squareGroup(ctasOfGpc, rows, columns)};
  const Grid grid = *gridOf(draft);
  const RasterOrder order = kernelView(draft, *draft.spec().rasterOrder);
  Side down{grid.tilesM, rows}, across{grid.tilesN, columns};
  if (order == RasterOrder::along_n)
    std::swap(down, across);
  Bands best = wave;
  double least = double(askedByOneGpc(down, across, wave.group));
  auto consider = [&](int64_t group) {
    if (double asked = double(askedByOneGpc(down, across, group)); asked < worthIt * least)
      best = {ctasOfGpc, group}, least = asked;
  };
  consider(squareGroup(ctasOfGpc, down.length, across.length)); // of equals this one
  for (int64_t group = 1; group <= ctasOfGpc; group += order == RasterOrder::hilbert ? group : 1)
    consider(group);
  return best;
}

/// Clusters are walked as tiles are; in the kernel's view, whose rows are the user's columns of B when swapped.
std::string bandsReason(const Draft &draft, int64_t ctas, int64_t group) {
  const Plan &plan = draft.plan;
  const bool rowsTogether = kernelView(draft, *draft.spec().rasterOrder) != RasterOrder::along_n;
  const int64_t together = group * (rowsTogether ? plan.clusterM : plan.clusterN);
  const int64_t tiles = std::max<int64_t>(1, ctas / plan.clusterK); // slices in a cluster share one
  int64_t down = rowsTogether ? plan.blockM * together : plan.blockM * tiles / together;
  int64_t across = rowsTogether ? plan.blockN * tiles / together : plan.blockN * together;
  int64_t named = together;
  std::optional<Grid> grid = gridOf(draft);
  if (grid && grid->filled() > 0) { // where one side has not that many tiles the other one gives more
    const int64_t allRows = grid->tilesM * plan.blockM, allColumns = grid->tilesN * plan.blockN;
    const int64_t area = tiles * plan.blockM * plan.blockN;
    named = std::min(together, rowsTogether ? grid->tilesM : grid->tilesN);
    down = std::min(allRows, std::max(down, area / allColumns));
    across = std::min(allColumns, std::max(across, area / allRows));
  }
  return formatv("{0} tile {1}{2} walked together: {3} CTAs read about {4} rows of A and {5} columns of B", named,
                 rowsTogether != plan.swapped ? "row" : "column", named == 1 ? "" : "s", ctas,
                 plan.swapped ? across : down, plan.swapped ? down : across);
}

void decideRaster(Draft &draft) {
  Spec &s = draft.spec();
  // The kernel walks along its own m; the user's view of that is n when operands are swapped. Tiles of a stream walk
  // along the short side: the CTAs that read the same rows of the long operand are neighbours.
  bool alongOwnM = !draft.stream || *draft.extentM() <= *draft.extentN();
  s.rasterOrder.decide(alongOwnM != draft.plan.swapped ? RasterOrder::along_m : RasterOrder::along_n,
                       draft.stream ? "neighbouring CTAs read the same rows of the long operand"
                       : draft.plan.swapped
                           ? "neighbouring CTAs share tiles of A, a group's columns of B stay in the L2"
                           : "neighbouring CTAs share tiles of B, a group's rows of A stay in the L2");
  if (draft.wgmma()) {
    const auto [ctas, group] = bandsOf(draft);
    s.rasterGroup.decide(group, bandsReason(draft, ctas, group));
  } else if (*s.instruction == Instruction::fma) {
    s.rasterGroup.decide(1, "tiles of a vector are one behind the other");
  } else { // measured on an H200 at 4096^3: 16 is 2 to 3% ahead of 8 for mma.sync
    s.rasterGroup.decide(16, "16 tile rows walked together: about 16 + 8 operand tiles for each 128 results in the L2");
  }
  if (*s.rasterGroup < 1 || *s.rasterGroup > maxRasterGroup)
    draft.diags.report(Diag::plan_raster_group, s.rasterGroup.range, *s.rasterGroup, maxRasterGroup)
        .fix(s.rasterGroup.range, "8");
  constexpr int64_t mostHilbert = 32;
  if (*s.rasterOrder == RasterOrder::hilbert && *s.rasterGroup >= 1 &&
      (!llvm::isPowerOf2_64(*s.rasterGroup) || *s.rasterGroup > mostHilbert))
    draft.diags
        .report(Diag::plan_raster_hilbert, s.rasterGroup.given ? s.rasterGroup.range : s.rasterOrder.range,
                *s.rasterGroup)
        .fix(s.rasterGroup.range, "8");
  draft.plan.rasterOrder = kernelView(draft, *s.rasterOrder);
}

void decideScheduler(Draft &draft) {
  Spec &s = draft.spec();
  bool persistent = *s.persistent == Persistence::on;
  if (!keepsTilesTogether(draft)) // or `decideShape` has decided
    s.scheduler.decide(Scheduler::fixed, persistent ? "each CTA knows its tiles by itself" : "a CTA has one tile");
  if (*s.scheduler == Scheduler::fixed)
    return;
  if (!draft.wgmma() && *s.schedule != Schedule::pipelined)
    return; // that schedule has been refused
  std::string why;
  if (*s.schedule == Schedule::pipelined)
    why = formatv("has a producer warp that takes tiles: `pipeline.schedule` is {0}, allowed cooperative, pingpong",
                  nameOf(*s.schedule));
  else if (!persistent)
    why = "is for CTAs that compute several tiles: `raster.persistent` is off";
  else if (*s.split != SplitMode::none)
    why = formatv("gives a CTA whole tiles: `split.mode` is {0}, allowed none", nameOf(*s.split));
  else if (draft.plan.clusterM * draft.plan.clusterN > 1)
    why = "gives each CTA tiles of its own: `tile.cluster` is not [1, 1, 1], whose CTAs share neighbouring ones";
  if (!why.empty())
    draft.diags.report(Diag::plan_scheduler, s.scheduler.range, why).fix(s.scheduler.range, "static");
}

void decidePersistence(Draft &draft) {
  Spec &s = draft.spec();
  if (draft.meetsInCluster())
    s.persistent.decide(Persistence::off, "a cluster computes one tile, and its CTAs leave together");
  else if (draft.wgmma() && *s.schedule != Schedule::pipelined)
    s.persistent.decide(Persistence::on,
                        formatv("one CTA for each of the {0} SMs: the producer loads the next tile while "
                                "this one is stored",
                                draft.limits.sms));
  else if (*s.split == SplitMode::stream_k)
    s.persistent.decide(Persistence::on, "each CTA has an equal share of the steps of all tiles");
  else
    s.persistent.decide(Persistence::off, "a CTA for each tile: several CTAs of an SM overlap by themselves");
  if (s.persistent.given && *s.schedule == Schedule::pingpong && *s.persistent == Persistence::off)
    draft.diags.report(Diag::plan_persistent, s.persistent.range).fix(s.persistent.range, "on");
}

void decideNegation(Draft &draft) {
  Spec &s = draft.spec();
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2))
    (s.*info.operand).negate.decide(Persistence::off, "the product takes it as it is");
  draft.plan.negateA = *draft.kernelA().negate == Persistence::on;
  draft.plan.negateB = *draft.kernelB().negate == Persistence::on;
}

/// Whether `operand` is the long one of a stream of one wave and each of its rows is one CTA's: it leaves the L2 to
/// what is read again. 64x2112x7168 takes 9.59 us in place of 9.77, 92x6144x6144 21.9 and 22.3; where several CTAs read
/// the same rows, or one of several tiles, it is 0 to 4% slower (H200, 2026-11-22).
bool isReadOnce(const Draft &draft, const OperandSpec &operand) {
  std::optional<Grid> grid = gridOf(draft);
  return draft.stream && grid && &operand == (grid->longIsM ? &draft.kernelA() : &draft.kernelB()) &&
         grid->alongShort() == 1 && grid->oneWave();
}

/// A word to the L2 about what TMA reads; other copies have none.
void decideCache(Draft &draft) {
  Spec &s = draft.spec();
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    OperandSpec &operand = s.*info.operand;
    if (isReadOnce(draft, operand))
      operand.cache.decide(CachePolicy::evict_first, "one CTA reads it, once");
    else
      operand.cache.decide(CachePolicy::normal, "the L2 keeps what was read last");
  }
  draft.plan.cacheA = *draft.kernelA().cache;
  draft.plan.cacheB = *draft.kernelB().cache;
}

/// The plan's view of the user's operand `info`; `copyBytes`: what a copy of it moves at a time.
PlanOperand operandOf(const Draft &draft, const OperandInfo &info, unsigned copyBytes) {
  const OperandSpec &spec = draft.spec().*info.operand;
  PlanOperand operand;
  operand.buffer = info.name;
  operand.type = *spec.type;
  operand.order = draft.plan.swapped ? (*spec.layout == Order::row ? Order::col : Order::row) : *spec.layout;
  operand.ld = exprOf(spec.ld, std::string("ld") + info.name);
  if (isBatch(draft.spec()))
    operand.batchStride = exprOf(spec.batchStride, std::string("stride_") + info.name);
  operand.align = promisedAlign(spec);
  // A dynamic ld is promised to keep no more than the copies use: see addRequirements.
  if (spec.ld.value.dynamic() || spec.batchStride.value.dynamic())
    operand.align = std::min(operand.align, copyBytes);
  operand.range = spec.type.range;
  operand.repacked = *spec.repack == Repack::on;
  operand.shifted = draft.isShifted(spec);
  operand.turned = draft.turns(spec);
  if (operand.turned)
    operand.order = operand.order == Order::row ? Order::col : Order::row;
  if (operand.repacked) {
    auto length = (*spec.layout == Order::row) != operand.turned ? info.cols : info.rows;
    int64_t each = draft.elementsIn(repackedAlign);
    operand.packedLd = ceilDiv(exprOf(draft.spec().*length, length == &Spec::m   ? "m"
                                                            : length == &Spec::n ? "n"
                                                                                 : "k"),
                               each) *
                       each;
    operand.align = repackedAlign;
  }
  return operand;
}
} // namespace

void decideRest(Draft &draft) {
  decideRaster(draft);
  decidePersistence(draft);
  decideScheduler(draft);
  checkEpilogue(draft);
  decideNegation(draft);
  checkSplit(draft);
  decideCache(draft);
  Plan &plan = draft.plan;
  const Spec &s = plan.spec;
  plan.m = plan.swapped ? exprOf(s.n, "n") : exprOf(s.m, "m");
  plan.n = plan.swapped ? exprOf(s.m, "m") : exprOf(s.n, "n");
  plan.k = exprOf(s.k, "k");
  plan.batch = exprOf(s.batch, "batch");
  plan.a = operandOf(draft, operandInfos[plan.swapped ? 1 : 0], plan.copyBytesA);
  plan.b = operandOf(draft, operandInfos[plan.swapped ? 0 : 1], plan.copyBytesB);
  plan.c = operandOf(draft, operandInfos[2], 16);
  plan.d = operandOf(draft, operandInfos[3], 16);
  checkTiles(draft);
}

} // namespace gemmc::plan

gemmc::Expr gemmc::exprOf(const Field<Size> &size, llvm::StringRef variable) {
  return size.value.dynamic() ? Expr::var(variable) : Expr(*size.value.fixed);
}
