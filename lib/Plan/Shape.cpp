// The choice of schedule, tiles, cluster and stages: all that is open is tried, the cheapest legal candidate wins.
#include "Ranking.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>
#include <tuple>

using llvm::formatv;

namespace gemmc::plan {
namespace {
struct Choice {
  Shape shape;
  Estimate estimate;
  std::optional<Shape> second = std::nullopt; ///< The best with another block tile.
  double secondCost = 0;
  std::optional<Shape> quickest = std::nullopt; ///< Of fewer clocks, but of more energy.
  double quickestClocks = 0;
};

/// What is wrong with a shape.
struct Errors {
  unsigned nowhere; ///< About what the spec does not say, which nobody can mend there.
  unsigned ofShape; ///< No kernel has such tiles; others are too large for an SM.
  unsigned all;
  auto operator<=>(const Errors &) const = default;
};

Errors errorsOf(const Draft &draft, const Shape &shape) {
  Diags scratch = Diags::wordless();
  checkShape(draft, shape, scratch);
  Errors errors{0, 0, scratch.numErrors()};
  for (const Problem &problem : scratch.all()) {
    if (problem.severity != Severity::error)
      continue;
    errors.nowhere += !problem.range.isValid();
    errors.ofShape += problem.id != Diag::plan_shared && problem.id != Diag::plan_registers;
  }
  return errors;
}

std::optional<Choice> choose(const Draft &draft) {
  std::optional<Choice> best;
  Ranking ranking(draft);
  // Beside the choice and the next best tile only who needs fewer clocks is told of, at the power limit.
  auto below = [&] {
    return best && best->second ? best->quickestClocks * ranking.costOfClock()
                                : std::numeric_limits<double>::infinity();
  };
  while (const Ranked *ranked = ranking.next(below())) {
    const Ranked &next = *ranked;
    const bool sameTile = best && next.shape.m == best->shape.m && next.shape.n == best->shape.n;
    const bool tellsNothing = best && best->second && next.estimate.clocks >= best->quickestClocks;
    if (sameTile || tellsNothing || exceedsShared(draft, next.shape) || errorsOf(draft, next.shape).all > 0)
      continue;
    if (!best) {
      best = Choice{next.shape, next.estimate};
      best->quickestClocks = next.estimate.clocks;
      continue;
    }
    if (!best->second)
      best->second = next.shape, best->secondCost = next.estimate.cost;
    if (!best->estimate.atPowerLimit)
      break;
    if (next.estimate.clocks < best->quickestClocks)
      best->quickest = next.shape, best->quickestClocks = next.estimate.clocks;
  }
  return best;
}

std::string blockReason(const Draft &draft, const Choice &choice) {
  const Estimate &e = choice.estimate;
  if (draft.stream)
    return draft.stream->reason;
  std::string text = formatv("{0} tile{1} in {2} wave{3} over {4} SMs", e.tiles, e.tiles == 1 ? "" : "s", e.waves,
                             e.waves == 1 ? "" : "s", draft.limits.sms);
  if (std::string assumed = assumedSizes(draft.spec()); !assumed.empty())
    text += " (" + assumed + ")";
  auto name = [&](const Shape &shape) {
    auto tile = kernelView(draft, {shape.m, shape.n, shape.k});
    return formatv("{0}x{1}", tile[0], tile[1]).str();
  };
  if (choice.second && choice.secondCost > 0)
    text += formatv("; next best {0}, an estimated {1}% slower", name(*choice.second),
                    std::max<int64_t>(0, std::llround(100 * (choice.secondCost / e.cost - 1))));
  if (double saved = 1 - choice.quickestClocks / e.clocks; choice.quickest && saved >= 0.005)
    text += formatv(
        "; {0} would take {1:f1}% fewer clocks, but needs more energy, which at the power limit lowers the clock",
        name(*choice.quickest), 100 * saved);
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

std::string scheduleReason(const Draft &draft, const Choice &choice) {
  switch (choice.shape.schedule) {
  case Schedule::pipelined:
    return draft.wgmma() ? "" : "cp.async is issued by the warps that multiply";
  case Schedule::cooperative:
    return "a producer warp keeps the stages full, warpgroups share a tile: each tile is stored between two main loops";
  case Schedule::pingpong:
    return formatv("one warpgroup stores its tile while the other one multiplies: {0} clocks of epilogue a tile hidden",
                   std::llround(choice.estimate.epilogue));
  }
  llvm_unreachable("unknown schedule");
}

std::string clusterReason(const Draft &draft, const Shape &shape) {
  if (shape.clusterM * shape.clusterN > 1)
    return formatv("{0}: {1} CTAs share tiles{2}, which come from there once{3}",
                   rowsStartInsideSectors(draft) ? "rows start inside sectors of the L2"
                   : rowsStartInsideLines(draft) && shape.clusterK == 1
                       ? "rows reach into a second line of the L2"
                       : "few CTAs of a slice read the same rows of the L2 at the same time",
                   shape.clusterM * shape.clusterN,
                   shape.clusterM > 1 && shape.clusterN > 1 ? ", each those of its row and of its column" : "",
                   shape.clusterK > 1 ? formatv(", in each of {0} slices of k", shape.clusterK).str() : "");
  if (shape.clusterK > 1)
    return "the slices of a tile's k steps";
  if (rowsStartInsideLines(draft) && mayCluster(draft, shape.schedule) && !draft.stream)
    return formatv("rows start inside {0} of the L2, but CTAs that share tiles wait for each other",
                   rowsStartInsideSectors(draft) ? "sectors" : "lines");
  return shape.schedule == Schedule::pipelined ? "no producer warp that could share tiles"
                                               : "on an H200 CTAs that share tiles are as fast as CTAs that do not";
}

void record(Draft &draft, const Choice &choice) {
  Spec &s = draft.spec();
  Plan &plan = draft.plan;
  const Shape &shape = choice.shape;
  s.schedule.decide(shape.schedule, scheduleReason(draft, choice));
  s.block.decide(kernelView(draft, {shape.m, shape.n, shape.k}), blockReason(draft, choice));
  s.warp.decide(kernelView(draft, {shape.warpM, shape.warpN, shape.warpK}), warpReason(draft, shape));
  s.cluster.decide(kernelView(draft, {shape.clusterM, shape.clusterN, shape.clusterK}), clusterReason(draft, shape));
  s.stages.decide(shape.stages, stagesReason(draft, shape));
  plan.blockM = shape.m, plan.blockN = shape.n, plan.blockK = shape.k;
  plan.warpM = shape.warpM, plan.warpN = shape.warpN, plan.warpK = shape.warpK;
  plan.clusterM = shape.clusterM, plan.clusterN = shape.clusterN;
  plan.clusterK = shape.clusterK;
  decideOwners(draft, shape);
  plan.exchangeOver = shape.clusterK > 1 && exchangeOver(draft, shape);
  plan.threads = threadsOf(draft, shape);
  plan.consumerWarpgroups = draft.wgmma() ? consumerWarpgroups(shape) : 0;
  plan.shiftedStages = draft.shifts() ? shiftedStages : 0;
  std::tie(plan.producerRegs, plan.consumerRegs) = registerSplit(draft, shape);
  // More than two would press the registers of each thread for little.
  plan.residentCtas = unsigned(std::min<int64_t>(2, choice.estimate.ctasPerSM));
  plan.storeBuffers = storeBuffers(draft, shape);
  plan.wholeSectors = writesWholeSectors(draft, shape);
  plan.sharedBytes = sharedBytes(draft, shape);
  draft.cost = choice.estimate.cost;
}

} // namespace

bool exceedsShared(const Draft &draft, const Shape &shape) {
  return sane(shape) && sharedBytes(draft, shape) > draft.limits.sharedPerBlock;
}

void decideShape(Draft &draft) {
  Spec &s = draft.spec();
  if (!draft.wgmma() && s.schedule.given && *s.schedule != Schedule::pipelined) {
    draft.diags.report(Diag::plan_schedule_family, s.schedule.range, nameOf(*s.schedule), nameOf(*s.instruction))
        .fix(s.schedule.range, "pipelined");
  }
  if (keepsTilesTogether(draft)) // without clusters
    s.scheduler.decide(
        Scheduler::dynamic,
        startsAt(s.d, sectorBytes)
            ? "CTAs take tiles in turn and stay together: of d, which decides, the L2 holds less than half"
            : "CTAs take tiles in turn, so that those that write parts of the same sectors of d do so "
              "while the L2 has them");
  decideEpilogue(draft);
  std::optional<Choice> choice = choose(draft);
  // What nobody asked for gives way to stages or tiles that somebody did.
  bool wanted = (s.loadC.given && *s.loadC != StoreKind::direct) || (s.storeBuffers.given && *s.storeBuffers > 0);
  bool open = draft.wgmma() && !wanted;
  auto instead = [&](StoreKind store, StoreKind loadC, const char *why) {
    if (*s.store != store)
      s.store.decide(store, why);
    s.loadC.decide(loadC, why);
    choice = choose(draft);
  };
  if (!choice && open && storesByLanesForSectors(draft))
    instead(StoreKind::tma, *s.loadC,
            "whole lines; lanes, which would write whole sectors, have no registers beside the tile");
  constexpr const char *noneForC = "the tile leaves no registers or no shared memory for a C that lies where D will";
  if (!choice && open && *s.loadC == StoreKind::tma)
    instead(*s.store, StoreKind::staged, "the tile leaves no shared memory for a C that TMA brings");
  const bool early = *s.loadC != StoreKind::direct || (*s.store == StoreKind::tma && s.beta.value != Scale{0.0});
  if (!choice && open && early && !(s.store.given && *s.store == StoreKind::tma))
    instead(StoreKind::staged, StoreKind::direct, noneForC);
  if (!choice && open && *s.store != StoreKind::direct && !s.store.given)
    instead(StoreKind::direct, StoreKind::direct, "the tile leaves no registers or no shared memory for whole lines");
  if (choice)
    return record(draft, *choice);
  if (draft.stream) { // its cut does not fit: another one may, or the usual tiles
    nextStream(draft);
    decideSplit(draft);
    return decideShape(draft);
  }
  // What is wrong with all of them: the errors of the one with fewest, rather those that have a place in the spec, and
  // rather what is too large than what is no tile.
  const std::vector<Shape> shapes = Candidates(draft).shapes();
  const Shape &nearest = *std::min_element(shapes.begin(), shapes.end(), [&](const Shape &x, const Shape &y) {
    return errorsOf(draft, x) < errorsOf(draft, y);
  });
  s.schedule.decide(nearest.schedule, "of the tile that does not work");
  unsigned before = draft.diags.numErrors();
  checkShape(draft, nearest, draft.diags);
  assert(draft.diags.numErrors() > before && "a refused shape without a reason");
  (void)before;
}

Shape shapeOf(const Plan &plan) {
  Shape shape;
  shape.schedule = *plan.spec.schedule;
  shape.m = plan.blockM, shape.n = plan.blockN, shape.k = plan.blockK;
  shape.warpM = plan.warpM, shape.warpN = plan.warpN, shape.warpK = (*plan.spec.warp)[2];
  shape.clusterM = plan.clusterM, shape.clusterN = plan.clusterN, shape.clusterK = (*plan.spec.cluster)[2];
  shape.stages = *plan.spec.stages;
  return shape;
}

} // namespace gemmc::plan
