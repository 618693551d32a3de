// What the planner tries: schedules, block and warp tiles, clusters. All that a spec gives stays as it is.
#include "MmaTiles.h"
#include "Ranking.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {

std::array<int64_t, 3> kernelView(const Draft &draft, std::array<int64_t, 3> tile) {
  if (draft.plan.swapped)
    std::swap(tile[0], tile[1]);
  return tile;
}

RasterOrder kernelView(const Draft &draft, RasterOrder order) {
  if (!draft.plan.swapped || order == RasterOrder::hilbert) // which knows no direction
    return order;
  return order == RasterOrder::along_m ? RasterOrder::along_n : RasterOrder::along_m;
}

bool sane(const Shape &shape) {
  auto small = [](int64_t value) { return value >= 1 && value <= 1024; };
  return small(shape.warpK) && shape.warpK <= shape.k && small(shape.m) && small(shape.n) && small(shape.k) &&
         small(shape.warpM) && small(shape.warpN) && shape.warpM <= shape.m && shape.warpN <= shape.n;
}

bool mayCluster(const Draft &draft, Schedule schedule) {
  const Spec &s = draft.spec();
  return draft.wgmma() && *s.copy == CopyKind::tma && schedule == Schedule::cooperative && !s.block.given &&
         *s.split == SplitMode::none && *s.scheduler == Scheduler::fixed;
}

namespace {
int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// All block tiles of wgmma that are no larger than the product needs: m in steps of 64, n in steps of 16, and in steps
/// of 8 where the next smaller one would be another tile more. Lines of k that are shifted are whole 128 bytes of n.
Tiles wgmmaBlocks(const Draft &draft) {
  constexpr int64_t eight = 8, most = wgmmaMostColumns;
  int64_t mostM = std::min<int64_t>(most, roundUp(std::max<int64_t>(1, draft.extentM().value_or(most)), 64));
  const int64_t n = std::max<int64_t>(1, draft.extentN().value_or(most));
  const int64_t step = draft.shiftsB() && !draft.kMajorB() ? draft.elementsIn(lineBytes) : eight;
  auto isTight = [&](int64_t blockN) {
    return blockN == eight || llvm::divideCeil(n, blockN) < llvm::divideCeil(n, blockN - eight);
  };
  Tiles tiles;
  for (int64_t blockM : {128, 256, 192, 64})
    for (int64_t blockN = std::min(most, draft.wgmmaColumns(roundUp(n, step))); blockM <= mostM && blockN > 0;
         blockN -= step)
      if ((blockN % (2 * eight) == 0 || isTight(blockN)) && draft.wgmmaColumns(blockN) == blockN)
        tiles.push_back({blockM, blockN});
  return tiles;
}

/// Of the wgmma that a spec gives, which are those of a warpgroup's tile; 0: it gives none that there is.
int64_t columnsAskedFor(const Draft &draft) {
  const auto &shape = draft.spec().matrixShape;
  const int64_t n = draft.wgmma() && shape.given ? (*shape)[1] : 0;
  return n <= wgmmaMostColumns && draft.wgmmaColumns(n) == n ? n : 0;
}

/// Whether a cut goes with what is given beside tiles: the columns of wgmma's instruction, and buffers to which C
/// comes.
bool goesWithGiven(const Draft &draft, const Shape &cut) {
  const Spec &s = draft.spec();
  if (const int64_t n = columnsAskedFor(draft); n != 0 && cut.warpN != n)
    return false;
  if (!draft.wgmma() || !s.storeBuffers.given || *s.loadC != StoreKind::tma || !sane(cut))
    return true;
  const auto [least, most] = storeBufferLimits(draft, cut);
  return *s.storeBuffers >= least && *s.storeBuffers <= most;
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
  if (s.warp.given) { // whole blocks of the asked warp tiles; wider ones of wgmma were not measured
    auto warp = kernelView(draft, *s.warp);
    Tiles tiles;
    for (auto [m, n] : {std::pair{2, 2}, {2, 1}, {1, 2}, {2, 4}, {4, 2}, {1, 1}})
      if (warp[0] >= 1 && warp[0] <= 512 && warp[1] >= 1 && warp[1] <= 512 &&
          (!draft.wgmma() || warp[1] * n <= wgmmaMostColumns))
        tiles.push_back({warp[0] * m, warp[1] * n});
    return tiles.empty() ? Tiles{{warp[0], warp[1]}} : tiles;
  }
  if (const int64_t n = columnsAskedFor(draft); n > 0)
    return {{128, n}, {256, n}, {192, n}, {64, n}, {128, 2 * n}, {64, 2 * n}};
  return draft.wgmma() ? wgmmaBlocks(draft) : mmaBlocks(draft);
}

/// Tiles of warpgroups, side by side or one above the other.
Tiles warpgroupTiles(const Draft &draft, Schedule schedule, Tile block) {
  if (schedule == Schedule::pingpong)
    return {};
  Tiles tiles;
  for (int64_t groups : {2, 3, 4, 1}) {
    if (groups > mostWarpgroups(schedule))
      continue;
    if (block.m % (64 * groups) == 0)
      tiles.push_back({block.m / groups, block.n});
    if (groups > 1 && groups < 4 && block.n % (8 * groups) == 0)
      tiles.push_back({block.m, block.n / groups});
  }
  llvm::erase_if(tiles, [](const Tile &tile) { return tile.n > wgmmaMostColumns; });
  // Side by side each would read all rows of A into its registers; one above the other they take turns with what they
  // load: 512x4096x7168 of tf32, b turned, 111 us in 128x128 by one, 100 by two (H100, 2026-11-26).
  if (draft.holdsA())
    llvm::erase_if(tiles, [&](const Tile &tile) { return tile.m == block.m; });
  return tiles;
}

/// Warp (warpgroup) tiles of a block tile, the favourite first.
Tiles warpCandidates(const Draft &draft, Schedule schedule, Tile block) {
  if (draft.spec().warp.given) {
    auto warp = kernelView(draft, *draft.spec().warp);
    return {{warp[0], warp[1]}};
  }
  Tiles tiles = draft.wgmma() ? warpgroupTiles(draft, schedule, block) : mmaWarps(draft, block);
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
  return draft.wgmma() ? draft.elementsIn(lineBytes) : mmaDepth(draft);
}

/// Tiles of all products; clusters may add some.
double tilesOf(const Draft &draft, const Shape &shape) {
  return double(draft.plannedBatch()) * std::ceil(double(draft.plannedM()) / double(shape.m)) *
         std::ceil(double(draft.plannedN()) / double(shape.n));
}

/// Steps of k that one CTA takes, of all tiles that it goes through: a producer fills stages for the next tile while
/// this one multiplies and is stored. Of k up to 256, 19 unseen products whose rows are whole lines take 0.915 of the
/// time that they took with as many stages as a tile has steps, 15 at pitches of 16 bytes 0.978 (H200, 2026-11-29,
/// docs/hopper-shapes.md, *Stages for the next tile*).
/// More than `mostStages` of them are not told apart.
int64_t stepsOfCta(const Draft &draft, const Shape &shape, int64_t k) {
  const int64_t steps = llvm::divideCeil(llvm::divideCeil(k, shape.k), shape.clusterK);
  const Spec &s = draft.spec();
  if (shape.schedule == Schedule::pipelined || shape.clusterK > 1 ||
      (s.persistent.given && *s.persistent == Persistence::off))
    return steps;
  const double ofCta = std::clamp(std::ceil(tilesOf(draft, shape) / draft.limits.sms), 1.0, double(mostStages));
  return std::min(steps, mostStages) * int64_t(ofCta);
}

/// Most stages that pay: wgmma hides the latency of TMA with up to 8, mma runs well with 4.
int64_t bestStages(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  if (s.stages.given)
    return *s.stages;
  if (*s.copy == CopyKind::ld)
    return 1;
  // What streams through many CTAs at once waits for memory: all bytes that there is room for are under way.
  int64_t most = draft.inCluster() || draft.stream ? mostStages
                 : draft.wgmma()                   ? mostStagesOf(draft, shape.m + shape.n)
                 : draft.multipliesDoubles()       ? stagesOfDoubles(draft, shape, tilesOf(draft, shape))
                                                   : 4;
  int64_t stages = std::min<int64_t>(stagesThatFit(draft, shape), most);
  // Three stages that leave room for a second CTA on the SM beat four that do not.
  auto resident = [&](int64_t count) { return draft.limits.sharedPerSM / (count * stageBytes(draft, shape) + 1024); };
  bool two = !draft.wgmma() && ctasByRegisters(draft, shape) >= 2;
  if (two && stages == 4 && resident(4) < 2 && resident(3) >= 2)
    stages = 3;
  if (std::optional<int64_t> k = draft.extentK()) {
    const bool pairs = !draft.wgmma() && s.fragmentBuffers.given && *s.fragmentBuffers == 2; // of fragments
    const int64_t least = s.inFlight.given ? *s.inFlight + 1 : pairs ? 3 : 2;                // one of them is filled
    stages = std::min(stages, std::max(least, stepsOfCta(draft, shape, *k)));
  }
  return std::max<int64_t>(stages, 2);
}

/// Whether stages of half the k, up to twice as many of them, are faster: where few fit, of which one is read and one
/// given back, and where TMA's rows are no shorter for it, because neither operand has k contiguous. 92 of 170 products
/// of such layouts take 0.967 of the time, at most 4% more (H200, 2026-11-26, docs/hopper-l2.md, *Half steps*).
/// Ping-pong and k contiguous in both operands lose (docs/hopper-clock.md, *Half a tile at a time*); of streams 4% with
/// four stages, nothing with five.
bool takesHalfSteps(const Draft &draft, const Shape &shape) {
  const int64_t few = draft.stream ? 4 : 5;
  const Spec &s = draft.spec();
  bool given = s.block.given || s.warp.given || s.stages.given || s.inFlight.given;
  return !given && draft.wgmma() && shape.schedule == Schedule::cooperative && shape.k == 64 && !draft.kMajorA() &&
         !draft.kMajorB() && draft.inputBits() == 16 && *s.split == SplitMode::none && !draft.shifts() &&
         stagesThatFit(draft, shape) <= few;
}

/// Clusters to try, the favourite first. Where rows start at lines of the L2 CTAs that share tiles are as fast as CTAs
/// that do not. Where they start inside lines, lines bound the main loop, and a shared tile's come once: eights take up
/// to 40% less of one wave of 257 to 4000 rows and columns, pairs and fours gain little beside them unless rows start
/// inside sectors, too (H100, 2026-11-25, docs/hopper-l2.md, *Eights*). There pairs that share a tile of such rows take
/// 12% less, that share the other one 1%, where no rows are such 7% more (162 pairs with and without; H200,
/// 2026-11-23); beside an operand with k contiguous it takes rows of both to be such (193 pairs, 2026-11-30,
/// docs/hopper-shapes.md, *Rows along k beside others*). Ping-pong gains little by it: 4096x4096x4104 takes 304 us in
/// tiles of 128x128, cooperative 215 in tiles of 128x256 (H200, 2026-11-21).
Tiles clusterCandidates(const Draft &draft, Schedule schedule) {
  if (draft.spec().cluster.given) {
    auto cluster = kernelView(draft, *draft.spec().cluster);
    return {{cluster[0], cluster[1]}};
  }
  if (draft.stream)
    return {{draft.stream->clusterM, draft.stream->clusterN}};
  if (!draft.wgmma())
    return {{1, 1}};
  if (draft.way.slices > 1 && draft.way.through == SplitThrough::cluster)
    return {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};
  if (draft.way.alongK > 1)
    return {{1, 1}};
  if (draft.way.slices > 1)
    return rowsStartInsideSectors(draft) ? Tiles{{2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {2, 4}, {4, 2}}
                                         : Tiles{{1, 1}};
  Tiles clusters{{1, 1}};
  if (!mayCluster(draft, schedule) || !rowsStartInsideLines(draft))
    return clusters;
  if (rowsStartInsideSectors(draft, draft.kernelB()) || rowsSplitSectors(draft))
    clusters.append({{2, 1}, {4, 1}});
  if (rowsStartInsideSectors(draft, draft.kernelA()) || rowsSplitSectors(draft))
    clusters.append({{1, 2}, {1, 4}});
  if (rowsStartInsideSectors(draft))
    clusters.push_back({2, 2});
  clusters.append({{2, 4}, {4, 2}});
  return clusters;
}

/// ... of which those remain that share nothing that lanes read: they give it back by a fence of the whole cluster,
/// which takes longer than the products (tf32, b turned by lanes, 476x2668x6384 in pairs 180 us, alone 74; H200,
/// 2026-11-26).
Tiles sharingCandidates(const Draft &draft, Schedule schedule) {
  Tiles clusters = clusterCandidates(draft, schedule);
  if (draft.holdsA() && !draft.spec().cluster.given)
    llvm::erase_if(clusters, [](const Tile &cluster) { return cluster.n > 1; });
  return clusters;
}

/// Ping-pong takes whole tiles in turn, each read from shared memory by one warpgroup.
llvm::SmallVector<Schedule, 2> scheduleCandidates(const Draft &draft) {
  const Spec &s = draft.spec();
  if (s.schedule.given)
    return {*s.schedule};
  if (!draft.wgmma())
    return {Schedule::pipelined};
  bool split = draft.stream || *s.split != SplitMode::none;
  bool oneTile = s.persistent.given && *s.persistent == Persistence::off;
  // What one warpgroup adds up is hidden behind what another one multiplies.
  if (split || draft.holdsA() || oneTile || draft.promotes())
    return {Schedule::cooperative};
  return {Schedule::cooperative, Schedule::pingpong};
}

/// Who takes tiles in turn needs two.
bool worthTakingTurns(const Draft &draft, Tile block) {
  auto m = draft.extentM(), n = draft.extentN();
  bool known = m && n && block.m > 0 && block.n > 0;
  return !known ||
         double(draft.plannedBatch()) * double(llvm::divideCeil(*m, block.m)) * double(llvm::divideCeil(*n, block.n)) >
             double(draft.limits.sms);
}

/// Who shares needs company. Fours and eights are for products of the size that they were measured with, and where one
/// wave is all: the card holds fewer of them than it has SMs for. Slices want one wave that keeps enough SMs busy.
bool worthSharing(const Draft &draft, Tile cluster, Tile block) {
  constexpr int64_t leastDepth = 512;
  int64_t ctas = cluster.m * cluster.n;
  if (draft.way.slices > 1)
    return worthSlicing(draft, {cluster.m, cluster.n}, {block.m, block.n});
  auto m = draft.extentM(), n = draft.extentN(), k = draft.extentK();
  if (ctas == 1 || draft.stream || draft.spec().cluster.given)
    return true;
  if (!m || !n || !k || block.m <= 0 || block.n <= 0)
    return ctas == 2;
  int64_t tilesM = llvm::divideCeil(*m, block.m), tilesN = llvm::divideCeil(*n, block.n);
  if (tilesM < cluster.m || tilesN < cluster.n)
    return false;
  double clusters = double(draft.plannedBatch()) * double(llvm::divideCeil(tilesM, cluster.m)) *
                    double(llvm::divideCeil(tilesN, cluster.n));
  const bool idle = ctas > 4 && 2 * clusters * double(ctas) < double(draft.limits.sms); // eights of large tiles
  if (idle)
    return false;
  return ctas == 2 || (*k >= leastDepth && clusters <= double(clustersAtATime(draft, ctas)));
}
} // namespace

Candidates::Candidates(const Draft &draft) : draft(draft) {
  const Spec &s = draft.spec();
  const int64_t clusterK = s.cluster.given ? (*s.cluster)[2] : draft.slicesInCluster();
  const Tiles blocks = blockCandidates(draft);
  for (Schedule schedule : scheduleCandidates(draft))
    for (Tile cluster : sharingCandidates(draft, schedule))
      for (Tile block : blocks)
        if ((schedule != Schedule::pingpong || s.schedule.given || worthTakingTurns(draft, block)) &&
            worthSharing(draft, cluster, block))
          all.push_back({schedule, block.m, block.n, cluster.m, cluster.n, clusterK});
}

/// Shapes of a block tile, whatever the cluster.
static llvm::SmallVector<Shape, 8> cutsOf(const Draft &draft, const Outline &outline) {
  const Spec &s = draft.spec();
  const Tile block{outline.m, outline.n};
  const int64_t depth = blockDepth(draft), warpDepth = s.warp.given ? (*s.warp)[2] : depth;
  const bool open = draft.wgmma() && !s.block.given && !s.warp.given && !draft.stream;
  llvm::SmallVector<Shape, 8> cuts;
  for (Tile warp : warpCandidates(draft, outline.schedule, block)) {
    Shape cut;
    cut.schedule = outline.schedule, cut.clusterK = outline.clusterK;
    cut.m = block.m, cut.n = block.n;
    cut.warpM = warp.m, cut.warpN = warp.n;
    cut.k = open ? depthOfStage(draft, block.m + block.n) : depth;
    cut.warpK = open ? cut.k : warpDepth;
    const bool known = sane(cut);
    if (known && takesHalfSteps(draft, cut))
      cut.k /= 2, cut.warpK /= 2;
    if (choosesDepth(draft)) {
      for (auto [k, warpK] : mmaDepths(draft, block, warp)) {
        cut.k = k, cut.warpK = warpK;
        cut.stages = bestStages(draft, cut);
        cuts.push_back(cut);
      }
      continue;
    }
    cut.stages = known ? bestStages(draft, cut) : 2;
    cuts.push_back(cut);
  }
  return cuts;
}

// Four products in slices that meet in memory took 2% longer with unlike parts (H200, 2026-11-26), streams were not
// measured.
Candidates::Shapes Candidates::shapesOf(const Outline &outline) const {
  const Spec &s = draft.spec();
  const bool measuredUnlike = s.block.given || s.cluster.given || (!draft.stream && draft.slicesInMemory() == 1);
  Shapes shapes;
  for (Shape cut : cutsOf(draft, outline)) {
    cut.clusterM = outline.clusterM, cut.clusterN = outline.clusterN;
    bool shallow = s.inFlight.given && draft.wgmma() && cut.stages <= *s.inFlight; // none is left to be filled
    bool undivided = asksForHalves(draft) && storeOverlap(draft, cut) == 0;
    const bool goes = goesWithGiven(draft, cut);
    if (draft.stream && !goes) // usual tiles may
      continue;
    if (measuredUnlike || !hasUnlikeParts(draft, cut))
      (shallow || undivided || !goes ? shapes.unfit : shapes.fit).push_back(cut);
  }
  return shapes;
}

std::vector<Shape> Candidates::shapes() const {
  std::vector<Shape> fit, unfit;
  for (const Outline &outline : all) {
    const Shapes each = shapesOf(outline);
    fit.insert(fit.end(), each.fit.begin(), each.fit.end());
    unfit.insert(unfit.end(), each.unfit.begin(), each.unfit.end());
  }
  return fit.empty() && takesUnfit() ? unfit : fit;
}

// Another cut of a stream may have more stages.
bool Candidates::takesUnfit() const { return draft.otherStreams.empty(); }

} // namespace gemmc::plan
