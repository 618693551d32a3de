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

/// Whether all CTAs are there at once and ask the L2 for more than it gives: then the 16 of a GPC, whose requests for
/// the same lines reach it as one, count, and not the wave, which reads all of A and B in any order. In a race of 118
/// products (H200, 2026-11-24, docs/hopper.md, *The sixteen of a GPC*) it pays from 64x128 down where k is 1536 and
/// more: 512x512x4096 in 64x32 7.8 -> 6.8 us.
bool asksTooMuch(const Draft &draft) {
  constexpr double asked = 95; ///< Bytes for each clock of products.
  constexpr int64_t deep = 1536;
  const Plan &plan = draft.plan;
  std::optional<Grid> grid = gridOf(draft);
  if (!grid || !grid->oneWave() || draft.stream || draft.inCluster() || plan.clusterM * plan.clusterN > 1 ||
      draft.extentK().value_or(0) < deep)
    return false;
  const double clocks = double(plan.blockM * plan.blockN) / wgmmaProducts;
  return double(plan.blockM + plan.blockN) * draft.inputBits() / 8 / clocks >= asked;
}

Bands bandsOf(const Draft &draft) {
  constexpr int64_t ctasOfGpc = 16;
  const int64_t rows = std::max<int64_t>(1, draft.plan.blockM); // 0 where no tile is legal
  const int64_t columns = std::max<int64_t>(1, draft.plan.blockN);
  const int64_t ctas = asksTooMuch(draft) ? ctasOfGpc : draft.limits.sms;
  return {ctas, squareGroup(double(ctas), rows, columns)};
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
    // Clusters are walked as tiles are; in the kernel's view, whose rows are the user's columns of B when swapped.
    const Plan &plan = draft.plan;
    const bool rowsTogether = kernelView(draft, *s.rasterOrder) != RasterOrder::along_n;
    const int64_t together = group * (rowsTogether ? plan.clusterM : plan.clusterN);
    const int64_t ownRows = rowsTogether ? plan.blockM * together : plan.blockM * ctas / together;
    const int64_t ownColumns = rowsTogether ? plan.blockN * ctas / together : plan.blockN * together;
    s.rasterGroup.decide(group,
                         formatv("{0} tile {1} walked together: {2} CTAs read about {3} rows of A and {4} columns "
                                 "of B",
                                 together, rowsTogether != plan.swapped ? "rows" : "columns", ctas,
                                 plan.swapped ? ownColumns : ownRows, plan.swapped ? ownRows : ownColumns));
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
  s.scheduler.decide(Scheduler::fixed, persistent ? "each CTA knows its tiles by itself" : "a CTA has one tile");
  if (*s.scheduler == Scheduler::fixed)
    return;
  std::string why;
  if (!draft.wgmma() || *s.schedule == Schedule::pipelined)
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
  if (draft.inCluster())
    s.persistent.decide(Persistence::off, "a cluster computes one tile, and its CTAs leave together");
  else if (draft.wgmma() && *s.schedule != Schedule::pipelined)
    s.persistent.decide(Persistence::on,
                        formatv("one CTA for each of the {0} SMs: the producer loads the next tile while "
                                "this one is stored",
                                draft.limits.sms));
  else
    s.persistent.decide(Persistence::off, "a CTA for each tile: several CTAs of an SM overlap by themselves");
  if (s.persistent.given && *s.schedule == Schedule::pingpong && *s.persistent == Persistence::off)
    draft.diags.report(Diag::plan_persistent, s.persistent.range).fix(s.persistent.range, "on");
}

void decideNegation(Draft &draft) {
  Spec &s = draft.spec();
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    Field<Persistence> &negate = (s.*info.operand).negate;
    negate.decide(Persistence::off, "the product takes it as it is");
    if (*negate == Persistence::on && !draft.wgmma() && s.alpha.value.dynamic())
      draft.diags.report(Diag::plan_negate, negate.range, info.name, nameOf(*s.instruction)).fix(negate.range, "off");
  }
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

Expr exprOf(const Field<Size> &size, llvm::StringRef variable) {
  return size.value.dynamic() ? Expr::var(variable) : Expr(*size.value.fixed);
}

/// The plan's view of the user's operand `info`; `copyBytes`: what a copy of it moves at a time.
PlanOperand operandOf(const Draft &draft, const OperandInfo &info, unsigned copyBytes) {
  const OperandSpec &spec = draft.spec().*info.operand;
  PlanOperand operand;
  operand.buffer = info.name;
  operand.type = *spec.type;
  operand.order = draft.plan.swapped ? (*spec.layout == Order::row ? Order::col : Order::row) : *spec.layout;
  operand.ld = exprOf(spec.ld, std::string("ld") + info.name);
  operand.align = promisedAlign(spec);
  // A dynamic ld is promised to keep no more than the copies use: see addRequirements.
  if (spec.ld.value.dynamic())
    operand.align = std::min(operand.align, copyBytes);
  operand.range = spec.type.range;
  operand.repacked = *spec.repack == Repack::on;
  operand.shifted = *spec.repack == Repack::inside;
  if (operand.repacked) {
    auto length = *spec.layout == Order::row ? info.cols : info.rows;
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
  plan.a = operandOf(draft, operandInfos[plan.swapped ? 1 : 0], plan.copyBytesA);
  plan.b = operandOf(draft, operandInfos[plan.swapped ? 0 : 1], plan.copyBytesB);
  plan.c = operandOf(draft, operandInfos[2], 16);
  plan.d = operandOf(draft, operandInfos[3], 16);
}

} // namespace gemmc::plan
