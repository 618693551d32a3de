// A matrix by a vector by ordinary multiply-adds: each element of the matrix is used once, so that all that counts is
// how much of it is on its way. Threads load it as it lies, at any pitch (lib/Lower/Dot.cpp); the cut says how many
// warps of a CTA lie along k and how many along m, what each thread has on its way, and how many CTAs of a cluster
// share k.
#include "Vector.h"
#include "gemmc/Plan/Analysis.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t lanes = 32, maxThreads = 1024, mostSlicesOfWarps = 16, mostInCluster = 8;
constexpr int64_t mostExtent = 2147483647; ///< Rows, k and CTAs count in 31 bits.
constexpr int64_t mostDeep = 16384;        ///< Of `tile.block`.

bool isKnown(const Field<Size> &size) { return !size.value.dynamic() && !size.value.typical; }

/// Why `spec` is no matrix by a vector that threads multiply; empty: it is one. Its types are decided.
std::string whyNotVector(const Spec &s) {
  for (auto [size, name] : {std::pair{&s.m, "m"}, {&s.n, "n"}, {&s.k, "k"}})
    if (!isKnown(*size))
      return formatv("`problem.{0}` is dynamic: m, n and k are known", name);
    else if (*size->value.fixed > mostExtent)
      return formatv("`problem.{0}` is {1}: sizes count in 31 bits", name, *size->value.fixed);
  if (s.m.value != Size{1} && s.n.value != Size{1})
    return formatv("m or n is 1, and they are {0} and {1}", *s.m.value.fixed, *s.n.value.fixed);
  for (auto [size, name] : {std::pair{&s.m, "m"}, {&s.n, "n"}, {&s.k, "k"}})
    if (size->value == Size{0})
      return formatv("`problem.{0}` is 0: nothing is multiplied", name);
  if (s.alpha.value == Scale{0.0})
    return "alpha is 0: nothing is multiplied";
  if (isInteger(*s.a.type) || bitsOf(*s.a.type) < 16)
    return formatv("of f16, bf16, tf32 and f64: `a.type` is {0}", nameOf(*s.a.type));
  if (*s.accumulator == Elem::f16)
    return "sums are f32 or f64: `accumulator` is f16";
  return "";
}

/// Bytes of one load of the matrix: what row starts allow, and lines have a whole number of.
int64_t loadBytes(const Draft &draft) {
  const Spec &s = draft.spec();
  const OperandSpec &matrix = draft.kernelA();
  const int64_t element = bytesOf(*matrix.type), most = s.copyBytes.given ? *s.copyBytes : 16;
  const int64_t length = draft.kMajorA() ? *draft.extentK() : *draft.extentM();
  int64_t bytes = std::max<int64_t>(element, std::min<int64_t>({most, promisedAlign(matrix), 16}));
  while (bytes > element && length * element % bytes != 0)
    bytes /= 2;
  return bytes;
}

/// Whether the vector's elements are adjacent: in lines of k, or in rows of one element.
bool liesInLine(const Draft &draft) {
  return draft.kMajorB() || draft.kernelB().ld.value == Size{1} || *draft.extentK() == 1;
}

/// What starts of the vector are multiples of: its elements lie in one line, whatever its layout says.
unsigned alignOfVector(const Draft &draft) {
  OperandSpec line = draft.kernelB();
  if (liesInLine(draft))
    line.ld.value = Size{0};
  return promisedAlign(line);
}
} // namespace

VectorPremises::VectorPremises(const Draft &draft)
    : m(*draft.extentM()), k(*draft.extentK()), element(bytesOf(*draft.spec().a.type)),
      width(loadBytes(draft) / element), alongK(draft.kMajorA()), batch(double(draft.plannedBatch())), sms{} {
  for (int64_t ctas = 1; ctas <= mostInCluster; ++ctas)
    sms[ctas] = clustersAtATime(draft, ctas) * ctas;
}

VectorTile::VectorTile(const VectorPremises &on, const VectorCut &cut)
    : VectorLanes(on.alongK, cut.warpM, cut.warpK, on.width), cut(cut), element(on.element), width(on.width),
      alongK(on.alongK) {}

int64_t VectorTile::rawRegisters() const {
  const int64_t each = std::max<int64_t>(1, width * element / 4);
  return (alongK ? rows : 1) * unroll * each;
}

int64_t VectorTile::registers() const {
  const int64_t wide = element == 8 ? 2 : 1;
  const int64_t ofVector = unroll * (alongK ? std::max<int64_t>(1, width * element / 4) : wide);
  const int64_t addresses = 2 * (alongK ? rows : 1), others = 22;
  return rawRegisters() + ofVector + rows * wide + addresses + others;
}

std::string VectorTile::whyNone(const VectorPremises &on) const {
  if (cut.m % cut.warpM != 0 || cut.k % cut.warpK != 0)
    return formatv("warps of {0} rows and {1} of k do not share {2} rows and {3} of k", cut.warpM, cut.warpK, cut.m,
                   cut.k);
  if (cut.warps() > maxThreads / lanes || cut.warpsAlongK() > mostSlicesOfWarps)
    return formatv("{0} warps, {1} along k: at most {2}, {3} along k", cut.warps(), cut.warpsAlongK(),
                   maxThreads / lanes, mostSlicesOfWarps);
  if (alongK &&
      (cut.warpK % width != 0 || (lanesK < lanes && !llvm::isPowerOf2_64(lanesK)) || cut.warpK % (lanesK * width) != 0))
    return formatv("`tile.warp` k is {0}: lanes load {1} of k at a time, 1, 2, 4, 8 or 16 of them or all 32 as many "
                   "times as it takes",
                   cut.warpK, width);
  if (alongK && cut.warpM % lanesM != 0)
    return formatv("`tile.warp` has {0} rows: its {1} lanes beside each other have as many each", cut.warpM, lanesM);
  if (!alongK && (cut.warpM % width != 0 || !llvm::isPowerOf2_64(uint64_t(cut.warpM / width)) ||
                  cut.warpM / width > lanes || cut.warpK % lanesK != 0))
    return formatv("`tile.warp` is {0} rows by {1} of k: 1, 2, 4, 8, 16 or 32 lanes load {2} rows each, the others the "
                   "k behind them",
                   cut.warpM, cut.warpK, width);
  if (cut.k > mostDeep)
    return formatv("a step of {0} k: at most {1}", cut.k, mostDeep);
  if (cut.m > cut.threads())
    return formatv("{0} rows for {1} threads: at the end each has one at most", cut.m, cut.threads());
  constexpr int64_t mostRaw = 64, mostRows = 32;
  if (rawRegisters() > mostRaw || rows > mostRows || unroll > mostRaw)
    return formatv("a thread would load {0} registers for {1} rows at a time: at most {2} and {3}", rawRegisters(),
                   rows, mostRaw, mostRows);
  if (cut.slices > 1 && int64_t(llvm::divideCeil(on.k, cut.k)) < cut.slices)
    return formatv("{0} of k are fewer than {1} steps of {2}", on.k, cut.slices, cut.k);
  const double ctas = std::ceil(double(on.m) / double(cut.m)) * on.batch * double(cut.slices);
  if (ctas > double(mostExtent))
    return formatv("{0:f0} CTAs: a launch has at most {1}", ctas, mostExtent);
  return "";
}

namespace {
/// Nanoseconds, and bytes in one: a fit to 672 cuts of 24 products with k contiguous and 1487 of 75 with m contiguous,
/// 24 to 56000 rows and 40 to 57000 of k (H200, 2026-11-30; docs/hopper-shapes.md, *A matrix by a vector*). What is
/// fastest by it takes 3.0 and 2.2% more than the least of those cuts of each. Memory delivers 4480 at most.
struct VectorRates {
  double launch; ///< Until the first bytes come, and from the last ones to the end.
  double memory, port, latency;
  double rowsBeside; ///< What memory takes more for each row that all CTAs go through side by side.
  double cutLines;   ///< ... where a warp takes less than a line of a row, for each time that it would fit.
  double own;        ///< Of the time at the port's rate: what a CTA alone takes beside the latency.
  double alone;      ///< Of the latency: what an SM with one CTA takes more.
  /// Clocks of an SM: of 128 bytes that a warp loads, of a line of which it loads a part, of a warp's multiply-adds.
  double loads, lines, products;
  double start, meeting, cluster; ///< Of a CTA; of each doubling of the warps along k; of slices.
  double cta;                     ///< From one CTA that begins to the next one, anywhere.
  double narrow; ///< How many times as long loads of two bytes take: 16774x7585 75 us, by all else that is here 62.
};
constexpr VectorRates ofLinesOfK{916,  4680, 54.2, 403, 25.3e-6, 0,    0.456, 0.044,
                                 1.99, 0,    0.41, 19,  11.5,    1137, 1.19,  1.28},
    ofRows{356, 4983, 129, 396, 1.97e-6, 0.142, 0.268, 0.268, 0.976, 0.523, 0.163, 384, 27.5, 1107, 1.97, 1.1};
constexpr double clockOfRates = 1.755; ///< Clocks a nanosecond.

/// CTAs of an SM.
int64_t residents(const VectorTile &tile) {
  const int64_t registers = llvm::alignTo(tile.registers(), 8);
  constexpr int64_t mostThreads = 2048, mostCtas = 32;
  return std::clamp<int64_t>(65536 / (registers * tile.cut.threads()), 1,
                             std::min(mostCtas, mostThreads / tile.cut.threads()));
}
} // namespace

VectorTime timeOf(const VectorPremises &on, const VectorCut &cut) {
  const VectorTile tile(on, cut);
  const VectorRates &rates = tile.alongK ? ofLinesOfK : ofRows;
  const double m = double(on.m), k = double(on.k);
  VectorTime time;
  time.tiles = std::ceil(m / double(cut.m)) * on.batch;
  time.residents = residents(tile);
  const double ctas = time.tiles * double(cut.slices);
  const double sms = double(on.sms[cut.slices]), places = sms * double(time.residents);
  time.waves = std::ceil(ctas / places);

  const double steps = std::ceil(std::ceil(k / double(cut.k)) / double(cut.slices));
  const double depth = std::min(double(cut.k), std::ceil(k / double(cut.slices))), part = depth / double(cut.k);
  const double bytes = double(cut.m) * depth * double(tile.element); // of a step
  const double words = std::max(1.0, double(tile.width * tile.element) / 4), rows = tile.alongK ? double(tile.rows) : 1;
  const double warpLoads = double(cut.warps() * tile.unroll) * part;
  const double lines =
      double(tile.lanesK) * std::ceil(double(cut.warpM * tile.element) / lineBytes); // of one load of a warp
  const double ofLoad = std::max(words * rates.loads, tile.alongK ? 0 : lines * rates.lines);
  const double loads = warpLoads * (rows * ofLoad + (tile.alongK ? words : 1) * rates.loads) / clockOfRates;
  const double products = warpLoads * rows * double(tile.width) * rates.products / clockOfRates;
  const double line = tile.alongK ? lineBytes : double(cut.warpM * tile.element);
  const double cutLines = rates.cutLines * std::max(0.0, lineBytes / line - 1);
  auto wave = [&](double of) {
    const double ofSM = std::ceil(of / sms), beside = of * double(tile.alongK ? cut.m : cut.k);
    const double memory = of * bytes / rates.memory * (1 + rates.rowsBeside * beside + cutLines);
    const double latency = rates.latency * (1 + (ofSM == 1 ? rates.alone : 0)) + rates.own * bytes / rates.port;
    const std::initializer_list<double> all{memory, ofSM * bytes / rates.port, latency, ofSM * loads, ofSM * products};
    return steps * (tile.alongK ? atOnce<8>(all) : atOnce<2>(all)) +
           rates.meeting * std::log2(1 + double(cut.warpsAlongK())) + rates.start;
  };
  const double full = std::floor(ctas / places), rest = ctas - full * places;
  time.launch = rates.launch;
  const double narrow = tile.width * tile.element == 2 ? rates.narrow : 1;
  time.nanoseconds = rates.launch +
                     atOnce<4>({full * wave(places) + (rest > 0 ? wave(rest) : 0), ctas * rates.cta}) * narrow +
                     (cut.slices > 1 ? rates.cluster : 0);
  return time;
}

namespace {
/// All cuts that are worth a look, each of which is legal.
class VectorCuts {
public:
  VectorCuts(const VectorPremises &on, int64_t mostSlices, llvm::function_ref<void(const VectorCut &)> consider)
      : on(on), mostSlices(mostSlices), consider(consider) {
    const int64_t words = std::max<int64_t>(1, on.width * on.element / 4);
    for (int64_t warps : {1, 2, 4, 8, 16})
      for (int64_t along = 1; along <= warps; along *= 2) {
        if (warps < 4 && double(on.m) * double(on.k) > smallProduct)
          continue;
        if (on.alongK)
          linesOfK(warps, along, words);
        else
          rows(warps, along, words);
      }
  }

private:
  static constexpr int64_t mostRaw = 32, mostRows = 8;
  static constexpr double smallProduct = 1 << 16;
  /// Tiles of which slices are not worth a look: there are CTAs enough.
  static constexpr double enoughTiles = 1024;

  void linesOfK(int64_t warps, int64_t along, int64_t words) {
    for (int64_t lanesK = lanes; lanesK >= 4; lanesK /= 2) {
      if (lanesK < lanes && on.k > lanesK * on.width)
        break;
      for (int64_t rows = 1; rows <= mostRows; rows *= 2)
        for (int64_t unroll = 1; rows * unroll * words <= mostRaw && (unroll == 1 || lanesK == lanes); unroll *= 2)
          take(warps, along, rows * (lanes / lanesK), lanesK * on.width * unroll);
    }
  }
  void rows(int64_t warps, int64_t along, int64_t words) {
    for (int64_t lanesM = 1; lanesM <= lanes && (lanesM == 1 || lanesM * on.width < 2 * on.m); lanesM *= 2)
      for (int64_t unroll = 1; unroll * words <= mostRaw; unroll *= 2)
        take(warps, along, lanesM * on.width, unroll * (lanes / lanesM));
  }
  void take(int64_t warps, int64_t along, int64_t warpM, int64_t warpK) {
    VectorCut cut{warpM * (warps / along), warpK * along, warpM, warpK, 1};
    const bool idleAlong = along > 1 && cut.k >= 2 * on.k + 2 * on.width * lanes,
               idleBeside = warps > along && cut.m >= 2 * on.m;
    if (idleAlong || idleBeside || cut.k > mostDeep || cut.m > cut.threads())
      return;
    const double tiles = std::ceil(double(on.m) / double(cut.m)) * on.batch;
    const int64_t steps = int64_t(llvm::divideCeil(on.k, cut.k));
    for (cut.slices = 1; cut.slices <= std::min(mostSlices, steps); cut.slices *= 2)
      if (cut.slices == 1 || tiles < enoughTiles)
        consider(cut);
  }

  const VectorPremises &on;
  const int64_t mostSlices;
  llvm::function_ref<void(const VectorCut &)> consider;
};

bool fits(const Draft &draft, const VectorCut &cut) {
  const Spec &s = draft.spec();
  return (!s.block.given || kernelView(draft, *s.block) == std::array<int64_t, 3>{cut.m, 1, cut.k}) &&
         (!s.warp.given || kernelView(draft, *s.warp) == std::array<int64_t, 3>{cut.warpM, 1, cut.warpK}) &&
         (!s.cluster.given || (*s.cluster)[2] == cut.slices) &&
         (!s.splitSlices.given || *s.splitSlices == cut.slices) &&
         (!s.split.given || (*s.split == SplitMode::split_k) == (cut.slices > 1)) &&
         (!s.splitThrough.given || (*s.splitThrough == SplitThrough::cluster) == (cut.slices > 1));
}

/// The cuts that go with what is given, the fastest first.
std::vector<std::pair<double, VectorCut>> ranked(const Draft &draft) {
  std::vector<std::pair<double, VectorCut>> found;
  const VectorPremises on(draft);
  VectorCuts(on, *draft.spec().target == Target::sm_90a ? mostInCluster : 1, [&](const VectorCut &cut) {
    if (fits(draft, cut))
      found.emplace_back(timeOf(on, cut).nanoseconds, cut);
  });
  llvm::stable_sort(found, [](const auto &x, const auto &y) { return x.first < y.first; });
  return found;
}

/// A field that has one value in these kernels.
template <typename T, typename Text>
void only(Draft &draft, Field<T> &field, T value, const char *path, Text text, const char *why) {
  field.decide(value, why);
  if (field.value == value)
    return;
  draft.diags.report(Diag::plan_vector_field, field.range, path, text(field.value), why, text(value))
      .fix(field.range, text(value));
}

void decideFixed(Draft &draft) {
  Spec &s = draft.spec();
  auto word = [](auto value) { return nameOf(value).str(); };
  auto number = [](int64_t value) { return std::to_string(value); };
  auto triple = [](const std::array<int64_t, 3> &value) {
    return formatv("[{0}, {1}, {2}]", value[0], value[1], value[2]).str();
  };
  const char *noTiles = "threads load what they multiply, and no tile waits in shared memory";
  only(draft, s.matrixShape, std::array<int64_t, 3>{1, 1, 1}, "tile.instruction", triple,
       "a thread multiplies one by one");
  only(draft, s.copy, CopyKind::ld, "copy", word, noTiles);
  only(draft, s.fragmentsA, FragmentLoad::direct, "fragments.a", word, noTiles);
  only(draft, s.fragmentsB, FragmentLoad::direct, "fragments.b", word, noTiles);
  only<int64_t>(draft, s.fragmentBuffers, 1, "fragments.buffers", number, noTiles);
  only(draft, s.fragmentOrder, FragmentOrder::plain, "fragments.order", word, noTiles);
  only<int64_t>(draft, s.stages, 1, "pipeline.stages", number, noTiles);
  only(draft, s.schedule, Schedule::pipelined, "pipeline.schedule", word, noTiles);
  only(draft, s.swizzle, Swizzle::none, "swizzle", word, noTiles);
  only<int64_t>(draft, s.padding, 0, "padding", number, noTiles);
  only(draft, s.a.repack, Repack::off, "a.repack", word, "each element is read once, as it lies");
  only(draft, s.b.repack, Repack::off, "b.repack", word, "each element is read once, as it lies");
  only(draft, s.store, StoreKind::direct, "epilogue.store", word, "a thread has one element of D");
  only(draft, s.loadC, StoreKind::direct, "epilogue.c", word, "a thread has one element of D");
  only(draft, s.persistent, Persistence::off, "raster.persistent", word, "a CTA has one tile");
  only(draft, s.scheduler, Scheduler::fixed, "raster.scheduler", word, "a CTA has one tile");
}

/// D's vector is the kernel's column.
void decideSides(Draft &draft) {
  Spec &s = draft.spec();
  const bool swaps = s.n.value != Size{1};
  s.swapOperands.decide(swaps ? Persistence::on : Persistence::off,
                        formatv("{0} is the matrix, of which threads load their own", swaps ? "b" : "a"));
  draft.plan.swapped = *s.swapOperands == Persistence::on;
  if (*draft.extentN() != 1)
    draft.diags
        .report(Diag::plan_vector_field, s.swapOperands.range, "swap_operands", nameOf(*s.swapOperands),
                "the vector is the kernel's second operand", draft.plan.swapped ? "off" : "on")
        .fix(s.swapOperands.range, draft.plan.swapped ? "off" : "on");
}

void decideSlices(Draft &draft, const VectorCut &cut) {
  Spec &s = draft.spec();
  const bool sliced = cut.slices > 1;
  s.split.decide(sliced ? SplitMode::split_k : SplitMode::none,
                 sliced ? "more CTAs than rows alone would make" : "no slices are estimated to be faster");
  s.splitSlices.decide(cut.slices, sliced ? "the CTAs of a cluster along k" : "k is not split");
  s.splitThrough.decide(sliced ? SplitThrough::cluster : SplitThrough::workspace,
                        sliced ? "the sums of a row meet in shared memory" : "k is not split");
  s.splitOwners.decide(1, sliced ? "one of them adds a row's few sums" : "k is not split");
  s.cluster.decide({1, 1, cut.slices}, sliced ? "the slices of a tile's k" : "k is not split");
}

/// What is given of slices, by itself.
bool checkSlices(Draft &draft) {
  const Spec &s = draft.spec();
  const unsigned before = draft.diags.numErrors();
  auto refuse = [&](llvm::SMRange range, const char *path, const std::string &value, const std::string &allowed,
                    const char *why) { draft.diags.report(Diag::plan_vector_field, range, path, value, why, allowed); };
  const char *inClusters = "slices of k meet in a cluster of two, four or eight CTAs, of sm_90a";
  auto known = [&](int64_t slices) {
    return slices == 1 || (*s.target == Target::sm_90a && (slices == 2 || slices == 4 || slices == mostInCluster));
  };
  const char *allowed = *s.target == Target::sm_90a ? "1, 2, 4, 8" : "1";
  if (s.split.given && *s.split == SplitMode::stream_k)
    refuse(s.split.range, "split.mode", "stream_k", "none, split_k", inClusters);
  if (s.cluster.given && ((*s.cluster)[0] != 1 || (*s.cluster)[1] != 1 || !known((*s.cluster)[2])))
    refuse(s.cluster.range, "tile.cluster",
           formatv("[{0}, {1}, {2}]", (*s.cluster)[0], (*s.cluster)[1], (*s.cluster)[2]),
           std::string("[1, 1, K], K of ") + allowed, inClusters);
  if (s.splitSlices.given && !known(*s.splitSlices))
    refuse(s.splitSlices.range, "split.slices", std::to_string(*s.splitSlices), allowed, inClusters);
  if (s.splitOwners.given && *s.splitOwners != 1)
    refuse(s.splitOwners.range, "split.owners", std::to_string(*s.splitOwners), "1", inClusters);
  return draft.diags.numErrors() == before;
}

std::string reasonOf(const VectorTile &tile, const VectorTime &time) {
  return formatv("{0} CTAs, {1} of an SM; a thread has {2} loads of {3} bytes on its way",
                 int64_t(std::min(time.tiles * double(tile.cut.slices), 9e15)), time.residents,
                 (tile.alongK ? tile.rows : 1) * tile.unroll, tile.width * tile.element);
}

void record(Draft &draft, const VectorCut &cut) {
  Spec &s = draft.spec();
  Plan &plan = draft.plan;
  const VectorPremises on(draft);
  const VectorTile tile(on, cut);
  const VectorTime time = timeOf(on, cut);
  s.block.decide(kernelView(draft, {cut.m, 1, cut.k}), reasonOf(tile, time));
  s.warp.decide(kernelView(draft, {cut.warpM, 1, cut.warpK}),
                formatv("{0} of {1} warps lie along k", cut.warpsAlongK(), cut.warps()));
  decideSlices(draft, cut);
  plan.blockM = cut.m, plan.blockN = 1, plan.blockK = cut.k;
  plan.warpM = cut.warpM, plan.warpN = 1, plan.warpK = cut.warpK;
  plan.clusterM = plan.clusterN = 1, plan.clusterK = cut.slices;
  plan.threads = unsigned(cut.threads());
  plan.residentCtas = unsigned(time.residents);
  plan.copyBytesA = unsigned(tile.width * tile.element);
  plan.copyBytesB = liesInLine(draft) && tile.alongK
                        ? std::min(plan.copyBytesA, std::max(alignOfVector(draft), unsigned(tile.element)))
                        : unsigned(tile.element);
  s.copyBytes.decide(plan.copyBytesA, "what row starts allow, and lines have a whole number of");
  plan.sharedBytes = cut.m * (cut.warpsAlongK() + (cut.slices > 1 ? 1 : 0)) * bytesOf(*s.accumulator);
  draft.cost = time.nanoseconds;
}

/// The cut that the spec gives, or the fastest one that goes with what it gives.
std::optional<VectorCut> chooseCut(Draft &draft) {
  const Spec &s = draft.spec();
  const unsigned before = draft.diags.numErrors();
  for (auto [field, path] : {std::pair{&s.block, "tile.block"}, {&s.warp, "tile.warp"}})
    if (field->given && kernelView(draft, **field)[1] != 1)
      draft.diags.report(Diag::plan_vector_tile, field->range, path,
                         formatv("a tile is as wide as the vector, whose {0} is 1", userDimension(draft, 'n')));
  if (!checkSlices(draft) || draft.diags.numErrors() != before)
    return std::nullopt;
  std::vector<std::pair<double, VectorCut>> found = ranked(draft);
  if (!found.empty())
    return found.front().second;
  const char *path = s.block.given         ? "tile.block"
                     : s.warp.given        ? "tile.warp"
                     : s.splitSlices.given ? "split.slices"
                                           : "tile.cluster";
  const llvm::SMRange range = s.block.given         ? s.block.range
                              : s.warp.given        ? s.warp.range
                              : s.splitSlices.given ? s.splitSlices.range
                              : s.cluster.given     ? s.cluster.range
                                                    : s.instruction.range;
  std::string why = "no cut goes with what is given of tiles and slices";
  if (s.block.given && s.warp.given) {
    const auto block = kernelView(draft, *s.block), warp = kernelView(draft, *s.warp);
    VectorCut cut{block[0], block[2], warp[0], warp[2],
                  s.cluster.given       ? (*s.cluster)[2]
                  : s.splitSlices.given ? *s.splitSlices
                                        : 1};
    const VectorPremises on(draft);
    why = VectorTile(on, cut).whyNone(on);
    if (why.empty() && fits(draft, cut))
      return cut;
    if (why.empty())
      why = formatv("{0} slices of k go with `split.mode: {1}`, `split.through: {2}` and as many CTAs of the cluster",
                    cut.slices, cut.slices > 1 ? "split_k" : "none", cut.slices > 1 ? "cluster" : "workspace")
                .str();
  }
  draft.diags.report(Diag::plan_vector_tile, range, path, why);
  return std::nullopt;
}
} // namespace

/// The path of a field that only these kernels have, nullptr: none is given.
static const char *fieldOfVectors(const Spec &spec) {
  for (const auto &[load, path] : {std::pair{&spec.fragmentsA, "fragments.a"}, {&spec.fragmentsB, "fragments.b"}})
    if (load->given && **load == FragmentLoad::direct)
      return path;
  return nullptr;
}

bool asksForVector(const Spec &spec) {
  return spec.instruction.given ? *spec.instruction == Instruction::fma : fieldOfVectors(spec) != nullptr;
}

/// All but what a launch must fulfil.
static bool decideVector(Draft &draft) {
  Spec &s = draft.spec();
  const unsigned before = draft.diags.numErrors();
  auto failed = [&] { return draft.diags.numErrors() != before; };
  const char *field = fieldOfVectors(s);
  s.instruction.decide(Instruction::fma, field ? formatv("`{0}: direct` goes with fma", field).str() : "");
  decideProblem(draft);
  if (failed())
    return false;
  if (std::string why = whyNotVector(s); !why.empty()) {
    draft.diags.report(Diag::plan_vector_problem,
                       s.instruction.given  ? s.instruction.range
                       : s.fragmentsA.given ? s.fragmentsA.range
                                            : s.fragmentsB.range,
                       why);
    return false;
  }
  decideSides(draft);
  if (failed())
    return false;
  decideFixed(draft);
  std::optional<VectorCut> cut = chooseCut(draft);
  if (!cut || failed())
    return false;
  record(draft, *cut);
  decideRest(draft);
  Plan &plan = draft.plan;
  if (liesInLine(draft)) { // whatever its layout says
    plan.b.order = Order::col;
    plan.b.align = alignOfVector(draft);
  }
  plan.c.align = bytesOf(plan.c.type), plan.d.align = bytesOf(plan.d.type); // element by element
  decideOverlap(draft);
  return !failed();
}

std::optional<Plan> planVector(const Spec &spec, Diags &diags) {
  Draft draft = draftOf(spec, diags);
  if (!decideVector(draft))
    return std::nullopt;
  addRequirements(draft);
  if (draft.spec().alpha.value.dynamic())
    draft.plan.requirements.push_back(equal(Expr::var("alpha_is_zero"), 0));
  return std::move(draft.plan);
}

/// The spec with `instruction: fma`, where it may be a matrix by a vector and does not say what multiplies.
static std::optional<Spec> withFma(const Spec &spec) {
  const bool mayBe = (isKnown(spec.m) && spec.m.value == Size{1}) || (isKnown(spec.n) && spec.n.value == Size{1});
  if (!mayBe || spec.instruction.given)
    return std::nullopt;
  Spec with = spec;
  with.instruction.value = Instruction::fma, with.instruction.given = true;
  return with;
}

/// What the plan by tensor cores takes, for the comparison. Where m is contiguous and TMA reads the rows multiply-adds
/// take up to a microsecond longer than estimated, and streams of whole lines 4% less: of 37 such products the choice
/// by this is the faster one but for five, of which it makes three 3 to 7% slower and two (2216x23016, 320x382) 1.4
/// times (H200, 2026-11-30, docs/hopper-shapes.md, *A matrix by a vector*).
static double secondsOf(const Plan &byFamily, const Draft &vector) {
  constexpr double inLines = 0.96, late = 0.9e-6;
  const Analysis analysis = analyse(byFamily, 0);
  const double seconds = analysis.seconds + analysis.copies;
  const bool streams = *byFamily.spec.instruction == Instruction::wgmma && !vector.kMajorA() &&
                       promisedAlign(vector.kernelA()) % 16 == 0;
  if (!streams)
    return seconds;
  return std::max(0.0, seconds * (rowStep(vector, vector.kernelA()) == lineBytes ? inLines : 1) - late);
}

bool isVector(const Spec &spec) {
  std::optional<Spec> with = withFma(spec);
  Diags scratch = Diags::wordless();
  return with && planVector(*with, scratch) && scratch.all().empty();
}

std::optional<ByVector> planByVector(const Spec &spec, const Plan &byFamily) {
  std::optional<Spec> with = withFma(spec);
  if (!with)
    return std::nullopt;
  Diags scratch = Diags::wordless();
  std::optional<Plan> plan = planVector(*with, scratch);
  if (!plan || !scratch.all().empty())
    return std::nullopt;
  Draft draft{*plan, scratch, limitsOf(*plan->spec.target), nullptr};
  const VectorCut cut{plan->blockM, plan->blockK, plan->warpM, plan->warpK, plan->clusterK};
  const double seconds = timeOf(VectorPremises(draft), cut).nanoseconds * 1e-9;
  const double others = secondsOf(byFamily, draft);
  Field<Instruction> &instruction = plan->spec.instruction;
  instruction.given = false;
  instruction.reason = formatv("each element of the matrix is multiplied once: threads that load it as it lies take an "
                               "estimated {0:f1} us, {1} {2:f1}",
                               seconds * 1e6, nameOf(*byFamily.spec.instruction), others * 1e6);
  return ByVector{std::move(*plan), others / seconds};
}

std::vector<Alternative> vectorAlternatives(const Spec &spec, size_t most) {
  std::vector<Alternative> found;
  Diags scratch = Diags::wordless();
  Draft draft = draftOf(asksForVector(spec) ? spec : withFma(spec).value_or(spec), scratch);
  if (!asksForVector(draft.spec()) || !decideVector(draft))
    return found;
  const Spec &s = draft.spec();
  auto text = [&](int64_t m, int64_t k) {
    const auto tile = kernelView(draft, {m, 1, k});
    return formatv("[{0},{1},{2}]", tile[0], tile[1], tile[2]).str();
  };
  for (const auto &[cost, cut] : ranked(draft)) {
    if (most && found.size() == most)
      break;
    std::string words;
    auto add = [&](bool given, const char *path, const std::string &value) {
      if (!given)
        words += (words.empty() ? "" : " ") + std::string(path) + "=" + value;
    };
    add(asksForVector(spec), "instruction", "fma");
    add(s.block.given, "tile.block", text(cut.m, cut.k));
    add(s.warp.given, "tile.warp", text(cut.warpM, cut.warpK));
    add(s.cluster.given, "tile.cluster", formatv("[1,1,{0}]", cut.slices).str());
    found.push_back({std::move(words), cost});
  }
  return found;
}

} // namespace gemmc::plan
