// CTAs that share the k steps of a tile.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"

using llvm::formatv;

namespace gemmc::plan {

// A cluster stays within a group of 16 to 18 SMs. What cuOccupancyMaxActiveClusters says of an H200 (2026-11-22).
int64_t clustersAtATime(const Draft &draft, int64_t ctas) {
  constexpr int64_t sms = 132, clusters[] = {132, 66, 39, 30, 22, 17, 15, 15};
  return std::max<int64_t>(1, draft.limits.sms * clusters[std::clamp<int64_t>(ctas, 1, 8) - 1] / sms);
}

std::optional<Grid> gridOf(const Draft &draft) {
  auto m = draft.extentM(), n = draft.extentN();
  const Plan &plan = draft.plan;
  if (!m || !n || plan.blockM == 0)
    return std::nullopt;
  auto tiles = [](int64_t extent, int64_t tile, int64_t cluster) {
    return int64_t(llvm::alignTo(llvm::divideCeil(extent, tile), cluster));
  };
  int64_t share = plan.clusterM * plan.clusterN; // CTAs of a cluster with tiles of their own
  return Grid{draft.plannedBatch() * tiles(*m, plan.blockM, plan.clusterM), tiles(*n, plan.blockN, plan.clusterN),
              clustersAtATime(draft, share * plan.clusterK) * share / draft.slicesInMemory(), *m > *n,
              isShort(*m, *n) || isShort(*n, *m)};
}

ColumnShares columnShares(const Shape &shape) {
  return shareColumns(shape.warpN, std::max<int64_t>(1, shape.clusterK));
}

void decideSplit(Draft &draft) {
  Spec &s = draft.spec();
  const int64_t slices = draft.stream ? draft.stream->slices : draft.way.slices;
  const bool inMemory =
      slices > 1 && (draft.stream ? draft.stream->through : draft.way.through) == SplitThrough::workspace;
  const int64_t alongK = s.cluster.given ? (*s.cluster)[2] : inMemory || draft.asksForSlices() ? 1 : slices;
  bool asked = s.splitThrough.given && *s.splitThrough == SplitThrough::cluster;
  // More slices than a cluster has CTAs along k meet twice.
  const bool asksForBoth =
      s.cluster.given && alongK > 1 && (s.splitThrough.given ? !asked : s.splitSlices.given && *s.splitSlices > alongK);
  const bool twice = asksForBoth || (inMemory && (draft.stream ? draft.stream->alongK : draft.way.alongK) > 1);
  std::string ctas = draft.stream           ? draft.stream->reason
                     : draft.way.slices > 1 ? "few tiles, each of many steps"
                                            : formatv("`tile.cluster` has {0} CTAs along k", alongK).str();
  if (draft.asksForSlices())
    s.split.decide(SplitMode::split_k, formatv("`split.slices` asks for {0}", *s.splitSlices).str());
  else if (alongK > 1 || asked || inMemory)
    s.split.decide(SplitMode::split_k, asked && alongK == 1 ? "the CTAs of a cluster share k" : ctas);
  else
    s.split.decide(SplitMode::none, "one CTA computes a tile");
  if (twice)
    s.splitThrough.decide(SplitThrough::workspace, "what the slices of each cluster have come to meets there");
  else if (alongK > 1)
    s.splitThrough.decide(SplitThrough::cluster, ctas);
  else
    s.splitThrough.decide(SplitThrough::workspace,
                          *s.split == SplitMode::none ? "k is not split"
                          : inMemory ? "in one cluster they leave SMs idle, or run apart where k is deep"
                                     : "any number of CTAs can meet there");
  if (asksForBoth)
    s.splitSlices.decide(2 * alongK, "two clusters a tile");
  else if (alongK > 1 && *s.split == SplitMode::split_k)
    s.splitSlices.decide(alongK, "the CTAs of a cluster along k");
  else if (*s.split == SplitMode::split_k)
    s.splitSlices.decide(inMemory ? slices : 2, inMemory ? "they keep the SMs busy" : "two CTAs a tile");
  else
    s.splitSlices.decide(1, *s.split == SplitMode::none ? "k is not split"
                                                        : "the number of CTAs says where tiles are cut");
}

bool mayShareSums(const Draft &draft) {
  auto isKnown = [](const Field<Size> &size) { return !size.value.dynamic() && !size.value.typical; };
  return draft.wgmma() && isKnown(draft.spec().m) && isKnown(draft.spec().n) && isKnown(draft.spec().batch);
}

ColumnShares sharesInMemory(int64_t columns, int64_t slices) {
  return shareColumns(columns, std::min(mostOwners, slices));
}

/// Owners that the columns of a shape's tile can be shared out among where its slices meet, fewest first.
static llvm::SmallVector<int64_t, 16> possibleOwners(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  if (*s.split == SplitMode::split_k && shape.clusterK > 1) // all CTAs of the cluster that get columns
    return {columnShares(shape).owners};
  llvm::SmallVector<int64_t, 16> found = {1};
  if (draft.wgmma() && *s.split == SplitMode::split_k)
    for (int64_t owners = 2; owners <= std::min(mostOwners, *s.splitSlices); ++owners)
      if (shareColumns(shape.warpN, owners).owners == owners)
        found.push_back(owners);
  return found;
}

void decideOwners(Draft &draft, const Shape &shape) {
  Spec &s = draft.spec();
  const llvm::SmallVector<int64_t, 16> owners = possibleOwners(draft, shape);
  const std::optional<Grid> grid = mayShareSums(draft) ? gridOf(draft) : std::nullopt;
  if (shape.clusterK > 1)
    s.splitOwners.decide(owners.back(), "the CTAs of the cluster");
  else if (*s.split == SplitMode::none)
    s.splitOwners.decide(1, "k is not split");
  else if (owners.size() == 1)
    s.splitOwners.decide(1, *s.split == SplitMode::stream_k ? "the parts of a tile end at different times"
                                                            : "whoever comes last adds all slices");
  else if (!grid || !grid->oneWave())
    s.splitOwners.decide(1, "slices that wait for others would keep the SMs from them");
  else
    s.splitOwners.decide(owners.back(), "all slices run at a time: they wait for each other, each adds its share");
}

namespace {
constexpr double mostParts = double(1u << 31);

/// What a kernel counts in 32 bits: the parts of all tiles, of stream-K their steps.
double partsOf(const Draft &draft, const Grid &grid) {
  const Spec &s = draft.spec();
  const bool steps = *s.split == SplitMode::stream_k;
  const int64_t k = draft.extentK().value_or(1), depth = std::max<int64_t>(1, draft.plan.blockK);
  return double(grid.tilesM) * double(grid.tilesN) * double(steps ? llvm::divideCeil(k, depth) : *s.splitSlices);
}
} // namespace

static void checkOwners(Draft &draft) {
  const Field<int64_t> &owners = draft.spec().splitOwners;
  if (!owners.given || draft.plan.blockM == 0)
    return;
  const llvm::SmallVector<int64_t, 16> possible = possibleOwners(draft, shapeOf(draft.plan));
  if (llvm::is_contained(possible, *owners))
    return;
  const int64_t nearest =
      *llvm::min_element(possible, [&](int64_t a, int64_t b) { return std::abs(a - *owners) < std::abs(b - *owners); });
  draft.diags
      .report(
          Diag::plan_split_owners, owners.range, *owners,
          *draft.spec().split == SplitMode::none       ? "a tile that is not split"
          : *draft.spec().split == SplitMode::stream_k ? "stream-K, whose parts of a tile end at different times,"
          : !draft.wgmma()
              ? formatv("{0}, of whose slices the last adds all,", nameOf(*draft.spec().instruction)).str()
              : formatv("a tile of {0} columns a warpgroup in {1} slices", draft.plan.warpN, *draft.spec().splitSlices)
                    .str(),
          llvm::join(llvm::map_range(possible, [](int64_t each) { return std::to_string(each); }), ", "))
      .fix(owners.range, llvm::Twine(nearest));
}

void checkSplit(Draft &draft) {
  Spec &s = draft.spec();
  if (*s.instruction == Instruction::fma) // whose slices Vector.cpp has checked
    return;
  auto refuse = [&](const std::string &why) {
    llvm::SMRange place = s.split.given           ? s.split.range
                          : draft.asksForSlices() ? s.splitSlices.range
                          : s.splitThrough.given  ? s.splitThrough.range
                                                  : s.cluster.range;
    Problem &problem = draft.diags.report(Diag::plan_split, place, nameOf(*s.split), why);
    if (s.split.given && !draft.inCluster())
      problem.fix(place, "none");
  };
  bool split = *s.split == SplitMode::split_k, inCluster = draft.inCluster();
  if (*s.split != SplitMode::none) {
    bool known = s.schedule.given || draft.plan.blockM; // where no tile is legal there is no schedule either
    const std::string kind = formatv("this one is {0}, {1}", nameOf(*s.instruction), nameOf(*s.schedule));
    const bool cooperative = draft.wgmma() && (!known || *s.schedule == Schedule::cooperative);
    if (inCluster && !cooperative)
      draft.diags
          .report(Diag::plan_split, s.splitThrough.given ? s.splitThrough.range : s.cluster.range, nameOf(*s.split),
                  formatv("through a cluster belongs to cooperative wgmma kernels: {0}{1}", kind,
                          draft.wgmma() ? "" : ", whose slices meet in the workspace"))
          .fix(s.splitThrough.given && !draft.wgmma() ? s.splitThrough.range : llvm::SMRange(), "workspace");
    else if (draft.wgmma() && !cooperative)
      refuse("belongs to cooperative wgmma kernels and to those of mma and wmma: " + kind);
    else if (auto grid = gridOf(draft); grid && partsOf(draft, *grid) > mostParts)
      refuse("numbers more parts than 32 bits hold: take larger tiles");
    else if (*s.split == SplitMode::stream_k && draft.plan.clusterM * draft.plan.clusterN > 1)
      refuse("gives the CTAs of a cluster different steps: `tile.cluster` is not [1, 1, 1]");
    else if (*s.split == SplitMode::stream_k && !inCluster && *s.persistent == Persistence::off)
      refuse("is persistent: `raster.persistent` is off");
    else if (draft.meetsInCluster() && *s.persistent == Persistence::on)
      refuse("through a cluster computes one tile a cluster: `raster.persistent` is on");
  }
  if (inCluster && !split)
    refuse("has no slices that could meet in a cluster: `split.through: cluster` goes with split_k");
  else if (inCluster && s.cluster.given && (*s.cluster)[2] != *s.splitSlices)
    refuse(formatv("through a cluster has as many slices as `tile.cluster` has CTAs along k: {0}, not {1}",
                   (*s.cluster)[2], *s.splitSlices));
  const int64_t together = inCluster ? 1 : draft.slicesInCluster(), most = inCluster ? 8 : mostInMemory * together;
  const bool fits = *s.splitSlices <= most && *s.splitSlices % together == 0 && *s.splitSlices > together;
  if (!s.splitSlices.given || (split ? fits : *s.splitSlices == 1))
    return checkOwners(draft);
  std::string allowed = !split ? "1"
                        : together > 1
                            ? formatv("{0} to {1} in steps of {2}, as many as `tile.cluster` has CTAs along k",
                                      2 * together, most, together)
                                  .str()
                        : draft.wgmma() && !inCluster && *s.splitSlices > most
                            ? formatv("2 to {0}, with `tile.cluster: [1, 1, K]` K times as many", most).str()
                            : formatv("2 to {0}", most).str();
  draft.diags.report(Diag::plan_split_slices, s.splitSlices.range, *s.splitSlices, nameOf(*s.split), allowed)
      .fix(s.splitSlices.range, split ? llvm::Twine(2 * together) : "1");
}

} // namespace gemmc::plan
