// Ways to compute a product that neither the spec nor a short side asks for: D^T, whose tiles are others, and, where
// whole tiles are few, slices of k that meet in clusters or in memory.
#include "Draft.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::plan {
bool leavesFasterTurned(const Draft &draft) {
  constexpr int64_t shortSide = 256;
  const OperandSpec &d = draft.spec().d;
  return bytesOf(*d.type) == 4 && !d.ld.value.dynamic() && promisedAlign(d) < 8 && !draft.spec().store.given &&
         std::min(draft.plannedM(), draft.plannedN()) < shortSide;
}

namespace {
/// Nothing that has been given says how D is cut, and wgmma reads what TMA brings; or it is mma.
bool isOpen(const Draft &draft) {
  const Spec &s = draft.spec();
  bool open = (!s.swapOperands.given || draft.holdsA()) && !s.block.given && !s.warp.given && !s.cluster.given &&
              (!s.inFlight.given || *s.inFlight == 1) && !asksForHalves(draft);
  bool known = draft.extentM() && draft.extentN() && draft.extentK();
  const bool sixteen = draft.wgmma() && draft.inputBits() == 16 && *s.copy == CopyKind::tma;
  return open && known && (sixteen || *s.instruction == Instruction::mma) && !draft.stream && !draft.shifts();
}

/// Tiles come in steps of 64 along the kernel's m and 8 along its n: D^T has others. Its store is as fast (63 products
/// of 384 to 3072 rows and 384 to 6144 columns, H200, 2026-11-23: what is alike takes 0.2% less, what the model expects
/// to gain 8% or more gains 9; docs/hopper-l2.md, *D^T, and slices of k*).
bool mayTurn(const Draft &draft) {
  const Spec &s = draft.spec();
  bool asItLies = draft.plan.swapped == (*s.d.layout == Order::col) && !shortSideDecides(draft);
  bool leaves = *s.store == StoreKind::tma || leavesFasterTurned(draft);
  return asItLies && !draft.holdsA() && leaves && s.beta.value == Scale{0.0};
}

/// Tiles of 128 x 128.
static int64_t usualTiles(const Draft &draft) {
  constexpr int64_t side = 128;
  return draft.plannedBatch() * llvm::divideCeil(*draft.extentM(), side) * llvm::divideCeil(*draft.extentN(), side);
}

/// Whether such tiles leave three fifths of the SMs idle: 54 to 64 of them took 2 to 15% longer in slices than whole
/// (seven products, H200, 2026-11-23). Where rows start inside sectors half of the SMs: 64 tiles take 13 to 35% less
/// (five products).
static bool leavesSMsIdle(const Draft &draft) {
  const int64_t tiles = usualTiles(draft);
  return rowsStartInsideSectors(draft) ? 2 * tiles <= draft.limits.sms : 5 * tiles <= 2 * draft.limits.sms;
}

/// More of them, up to what clusters of four find room for, are worth slices where rows start inside lines of the L2,
/// as there may be fewer and larger tiles then, which ask the L2 for less: 904x1160x13296 NT 79.2 us in 64x168, 51.1 in
/// 152x128 and two slices; of 123 to 150 tiles three took 6 to 9% longer (H200, 2026-11-30, docs/hopper-shapes.md,
/// *Slices of larger tiles*).
static bool mayCutLargeTiles(const Draft &draft) {
  constexpr int64_t four = 4;
  return draft.wgmma() && rowsStartInsideLines(draft) && usualTiles(draft) <= four * clustersAtATime(draft, four);
}

/// ... and k is long enough to be cut.
bool maySlice(const Draft &draft) {
  const Spec &s = draft.spec();
  constexpr int64_t leastDepth = 1024;
  const Schedule schedule = draft.wgmma() ? Schedule::cooperative : Schedule::pipelined;
  bool given = s.split.given || s.splitSlices.given || s.splitThrough.given ||
               (s.schedule.given && *s.schedule != schedule) ||
               (s.persistent.given && *s.persistent != Persistence::off);
  if (s.alpha.value == Scale{0.0})
    return false;                // nothing is multiplied
  if (draft.multipliesDoubles()) // the estimate knows when (Model.cpp, clocksOfDoubles)
    return !given && *draft.extentK() >= leastDepth / 2;
  return !given && *s.scheduler == Scheduler::fixed && (leavesSMsIdle(draft) || mayCutLargeTiles(draft)) &&
         *draft.extentK() >= leastDepth;
}

/// Of more than two slices fewer fit in clusters than there are SMs, and each CTA of a cluster waits for all. What
/// meets in memory takes some microseconds, which a deep product has: 512x512x16384 23.3 us in clusters of six, 18.6 in
/// four slices that meet in memory; 512x512x8192 12.3 either way (H200, 2026-11-24, docs/hopper-l2.md, *Slices that
/// meet in memory*).
bool mayMeetInMemory(const Draft &draft) {
  return maySlice(draft) && *draft.extentK() >= deepInMemory && *draft.spec().store == StoreKind::tma;
}

/// Clusters whose slices have met and meet in memory: as many as find room where so few large tiles that eight slices
/// leave SMs idle are one wave. 200x200x400000 takes 172 us in eight slices of 56x64, 117 in 15 clusters of four and
/// 128x200 (H200, 2026-11-30, docs/hopper-shapes.md, *Slices that meet twice*).
constexpr int64_t alongKInMemory = 4;
llvm::SmallVector<int64_t, 3> partsBehindClusters(const Draft &draft) {
  constexpr int64_t deep = 32768, largeTile = 256 * 200, mostTiles = 4;
  llvm::SmallVector<int64_t, 3> found;
  const int64_t area = *draft.extentM() * *draft.extentN(),
                least = std::max<int64_t>(1, (area + largeTile - 1) / largeTile);
  if (*draft.extentK() < deep || least > mostTiles)
    return found;
  for (int64_t tiles : {least, least + (least + 1) / 2, 2 * least})
    if (const int64_t each = clustersAtATime(draft, alongKInMemory) / tiles; !llvm::is_contained(found, each))
      found.push_back(each);
  return found;
}

/// More slices than a cluster has CTAs: as many as find room where few tiles are one wave, alone or in clusters of
/// four.
llvm::SmallVector<int64_t, 16> manySlices(const Draft &draft) {
  llvm::SmallVector<int64_t, 16> found;
  if (!mayShareSums(draft))
    return found;
  for (int64_t ctas : {int64_t(draft.limits.sms), 4 * clustersAtATime(draft, 4)})
    for (int64_t tiles = 2; tiles <= ctas / mostSlices; ++tiles)
      if (const int64_t each = std::min(mostInMemory, ctas / tiles);
          each > mostSlices && each * leastOfManySlices <= *draft.extentK() && !llvm::is_contained(found, each))
        found.push_back(each);
  return found;
}
} // namespace

std::vector<Way> otherWays(const Draft &draft) {
  std::vector<Way> ways;
  auto add = [&](bool turned, int64_t slices, SplitThrough through, int64_t alongK = 1) {
    ways.push_back(draft.way);
    Way &way = ways.back();
    way.turned = turned, way.slices = slices, way.through = through, way.alongK = alongK;
  };
  if (!isOpen(draft) || *draft.spec().split != SplitMode::none)
    return ways;
  const bool turns = mayTurn(draft);
  const int64_t slices = maySlice(draft) ? mostSlices : 1;
  if (!draft.wgmma()) {
    if (slices > 1)
      for (int64_t each : {2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64})
        if (each <= 32 || !draft.multipliesDoubles())
          add(false, each, SplitThrough::workspace);
    return ways;
  }
  for (int64_t each = 1; each <= slices; ++each)
    for (bool turned : {false, true})
      if ((turned || each > 1) && (turns || !turned))
        add(turned, each, SplitThrough::cluster);
  const int64_t parts = mayMeetInMemory(draft) ? slices : 1;
  for (int64_t each = 2; each <= parts; ++each)
    for (bool turned : {false, true})
      if (turns || !turned)
        add(turned, each, SplitThrough::workspace);
  if (parts > 1)
    for (int64_t each : manySlices(draft))
      for (bool turned : {false, true})
        if (turns || !turned)
          add(turned, each, SplitThrough::workspace);
  if (parts > 1)
    for (int64_t each : partsBehindClusters(draft))
      for (bool turned : {false, true})
        if (turns || !turned)
          add(turned, alongKInMemory * each, SplitThrough::workspace, alongKInMemory);
  return ways;
}

double doubtOf(const Draft &draft) {
  constexpr double turned = 1 / 0.99, sliced = 1 / 0.98; // of tiles that are alike, of slices
  constexpr double wordsTurned = 0.95;                   // of D in f32 whose lines start anywhere
  constexpr double inMemory = 1 / 0.98, sharedThere = 1 / 0.92, ofMma = 1 / 0.97; // and where CTAs share tiles besides
  constexpr double ofLarge = 1 / 0.95; // 75 products took 0.91 of the time, the estimate expected 0.86; since then the
                                       // estimate of what meets in memory knows
  if (draft.way.slices == 1)
    return !draft.way.turned ? 1 : leavesFasterTurned(draft) ? wordsTurned : turned;
  const bool inCluster = draft.way.through == SplitThrough::cluster;
  return (inCluster                       ? sliced
          : rowsStartInsideSectors(draft) ? sharedThere
          : draft.wgmma()                 ? inMemory
                                          : ofMma) *
         (draft.wgmma() && inCluster && !leavesSMsIdle(draft) ? ofLarge : 1);
}

/// Whether mma cannot keep half of the SMs busy by slices, because its tile is one (of more than 128 SMs two), or does
/// not have to, because k is short: of 27 such products in slices that the estimate chose all but four took less time,
/// 0.25 of it on average; nineteen others, of more tiles and a longer k, longer in fewer slices, 1.21 (mma of sm_80 on
/// an H200, 2026-11-27, docs/hopper-types.md, *mma in slices*).
static bool mayLeaveSMsIdle(const Draft &draft) {
  constexpr int64_t side = 64, most = 32, shortDepth = 2048;
  if (draft.wgmma() || draft.multipliesDoubles()) // of f64 it was not measured
    return false;
  const int64_t tiles =
      draft.plannedBatch() * llvm::divideCeil(*draft.extentM(), side) * llvm::divideCeil(*draft.extentN(), side);
  return 2 * most * tiles < draft.limits.sms || *draft.extentK() <= shortDepth;
}

bool worthSlicing(const Draft &draft, std::array<int64_t, 2> cluster, std::array<int64_t, 2> block) {
  constexpr int64_t mostCtas = 8;
  const int64_t sharing = cluster[0] * cluster[1], ctas = sharing * draft.way.slices;
  const bool inMemory = draft.way.through == SplitThrough::workspace;
  if (!inMemory && ctas > mostCtas)
    return false;
  int64_t tilesM = llvm::divideCeil(*draft.extentM(), block[0]), tilesN = llvm::divideCeil(*draft.extentN(), block[1]);
  if (tilesM < cluster[0] || tilesN < cluster[1])
    return false;
  const int64_t clusters =
      draft.plannedBatch() * llvm::divideCeil(tilesM, cluster[0]) * llvm::divideCeil(tilesN, cluster[1]);
  const int64_t ofAnSM = draft.wgmma() ? 1 : 2; // CTAs
  const int64_t room = clustersAtATime(draft, inMemory ? sharing * draft.way.alongK : ctas) * ofAnSM;
  const bool busy = 2 * clusters * ctas >= draft.limits.sms || mayLeaveSMsIdle(draft);
  return clusters * (inMemory ? draft.way.slices / draft.way.alongK : 1) <= room && busy;
}

// A step of a small tile is short beside what it waits for. 512x512x8192 in 64x32 takes 16.0 us in eight stages of 64,
// 11.4 in stages of 128; 384x1024x16384 in 64x48 37.9 in eight, 27.7 in fourteen of 64, 33.0 in stages of 128;
// 640x768x8192 in 64x64 20.3, 22.8 in fourteen, 20.0 in stages of 128. Where m or n is contiguous neither helps, at
// pitches of 16 bytes it was not measured:
// 768x384x6400 in 64x48 16.8 in eight, 18.2 in fourteen, 16.3 in stages of 128 (H200, 2026-11-23).
bool isSmall(const Draft &draft, int64_t rowsAndColumns) {
  constexpr int64_t smallTile = 112;
  return rowsAndColumns <= smallTile && draft.kMajorA() && draft.kMajorB() && !rowsStartInsideSectors(draft) &&
         draft.inputBits() == 16;
}

int64_t depthOfShortK(const Draft &draft) {
  const Spec &s = draft.spec();
  const std::optional<int64_t> k = draft.extentK();
  // Who reads an operand into registers reads rows of 128 bytes, also where 16 bits stand for words (SixteenBits.cpp).
  auto registers = [](const Field<FragmentLoad> &load) { return load.given && *load == FragmentLoad::ldmatrix; };
  const bool fixed = draft.shifts() || draft.turnsInside(s.a) || draft.turnsInside(s.b) || registers(s.fragmentsA) ||
                     registers(s.fragmentsB);
  if (!k || s.k.value.typical || fixed || !draft.wgmma() || s.block.given || s.warp.given || s.swizzle.given)
    return 0;
  for (int64_t bytes : {lineBytes / 4, lineBytes / 2})
    if (*k <= draft.elementsIn(bytes))
      return draft.elementsIn(bytes);
  return 0;
}

int64_t depthOfStage(const Draft &draft, int64_t rowsAndColumns) {
  if (int64_t depth = depthOfShortK(draft))
    return depth;
  constexpr int64_t smallest = 96;
  bool deep = isSmall(draft, rowsAndColumns) && rowsAndColumns <= smallest && !draft.spec().stages.given;
  return draft.elementsIn(deep ? 2 * lineBytes : lineBytes);
}

int64_t mostStagesOf(const Draft &draft, int64_t rowsAndColumns) {
  constexpr int64_t usual = 8;
  return isSmall(draft, rowsAndColumns) ? mostStages : usual;
}

} // namespace gemmc::plan
