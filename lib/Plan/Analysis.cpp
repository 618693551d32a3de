// What a plan costs, in numbers a person can check: bytes and operations, tiles and waves, the model's clocks.
#include "gemmc/Plan/Analysis.h"
#include "Clock.h"
#include "Vector.h"
#include <cmath>

namespace gemmc {
using namespace plan;

namespace {
/// Bytes of `elements` of a type, which may share bytes.
double bytesOfElements(double elements, Elem type) { return elements * bitsOf(type) / 8; }

void addProblem(const Draft &draft, Analysis &out) {
  const Spec &s = draft.spec();
  out.m = typicalM(s), out.n = typicalN(s), out.k = typicalK(s), out.batch = typicalBatch(s);
  double m = double(out.m), n = double(out.n), k = double(out.k);
  auto bytesOfMatrices = [&](const OperandSpec &operand, double elements) {
    const bool shared = isBatch(s) && operand.batchStride.value == Size{0};
    return bytesOfElements(elements, *operand.type) * (shared ? 1 : double(out.batch));
  };
  out.flops = 2 * double(out.batch) * m * n * k;
  out.bytes = bytesOfMatrices(s.a, m * k) + bytesOfMatrices(s.b, k * n) + bytesOfMatrices(s.d, m * n);
  if (s.beta.value != Scale{0.0})
    out.bytes += bytesOfMatrices(s.c, m * n);
  out.memoryFloor = out.bytes / out.machine.bytes;
  out.tensorFloor = out.flops / out.machine.flops;
  out.poweredFloor = out.tensorFloor / out.machine.powered;
}

void addTiles(const Draft &draft, const Shape &shape, const Estimate &estimate, Analysis &out) {
  const Spec &s = draft.spec();
  out.tiles = estimate.tiles;
  out.slices = *s.split == SplitMode::split_k ? *s.splitSlices : 1;
  int64_t together = shape.clusterM * shape.clusterN * shape.clusterK;
  out.slots = clustersAtATime(draft, together) * together * estimate.ctasPerSM;
  double tiles = double(out.tiles), slots = double(out.slots), work = tiles * double(out.slices);
  double waves = std::max(1.0, std::ceil(work / slots));
  out.waves = int64_t(std::min(waves, 9e15));
  out.lastWave = std::clamp((work - (waves - 1) * slots) / slots, 0.0, 1.0);
  double area = tiles * double(shape.m) * double(shape.n);
  out.tileUse = area > 0 ? double(out.batch) * double(out.m) * double(out.n) / area : 0;
  out.stageBytes = plan::stageBytes(draft, shape);
  out.sharedBytes = plan::sharedBytes(draft, shape);

  double depth = std::ceil(double(out.k) / double(shape.k)) * double(shape.k), element = draft.inputBits() / 8.0;
  double rows = double(shape.m) / double(shape.clusterN), columns = double(shape.n) / double(shape.clusterM);
  double result = double(shape.m) * double(shape.n) * bytesOf(*s.d.type);
  if (s.beta.value != Scale{0.0})
    result += double(shape.m) * double(shape.n) * bytesOf(*s.c.type);
  out.tileL2Bytes = (rows + columns) * depth * element + result;
  out.l2Bytes = out.tileL2Bytes * tiles;
  out.tileWritten = double(shape.m + shape.n) * depth * element;
  double rowsRead = draft.wgmma() ? 64 : double(shape.warpM); // as in the model
  double pieces = double(shape.m) / rowsRead * (double(shape.n) / double(shape.warpN));
  out.tileRead = pieces * (rowsRead + double(shape.warpN)) * depth * element;
  if (draft.shifts()) { // lines come with 16 bytes around them; lanes read two words for each that they write
    auto add = [&](int64_t extent, bool kMajor) {
      const double shifted = double(extent) * depth * element;
      out.tileWritten += shifted * (1 + 16 / (element * double(kMajor ? shape.k : extent)));
      out.tileRead += 2 * shifted;
    };
    if (draft.shiftsA())
      add(shape.m, draft.kMajorA());
    if (draft.shiftsB())
      add(shape.n, draft.kMajorB());
  }

  double wave = waveBytes(draft, shape, slots, double(*s.rasterGroup), draft.plan.rasterOrder);
  out.hbmBytes = std::max(out.bytes, waves * wave + tiles * result);
  out.hbmBytes = std::max(out.bytes, std::min(out.hbmBytes, out.l2Bytes));
}

void addClocks(const Draft &draft, const Shape &shape, const Estimate &estimate, Analysis &out) {
  out.tileMain = estimate.main / double(out.slices);
  out.tileAround = estimate.epilogue;
  if (out.slices > 1) // sums that meet in memory are taken to need as long as those of many CTAs in a cluster
    out.tileAround +=
        meetingNanoseconds(draft.inCluster() ? out.slices : std::max<int64_t>(3, out.slices), shape.m * shape.n) *
        1e-9 * out.machine.clock;
  // The ranking's clocks know slices, but for those of streams.
  const bool known = out.slices == 1 || !draft.wgmma() || !isSkinny(draft);
  if (known && out.slices > 1 && out.waves > 0)
    out.tileAround = estimate.clocks / double(out.waves) - out.tileMain;
  out.clocks = known ? estimate.clocks : double(out.waves) * (out.tileMain + out.tileAround);
  // In the place of the ranking's: the estimate that chose the cut of a stream, launch and all.
  if (auto stream = streamTime(draft); stream && out.waves > 0) {
    out.streams = true;
    out.bound = stream->bound;
    out.clocks = std::max(0.0, stream->nanoseconds * 1e-9 - out.launch) * out.machine.clock;
    const double tile = out.clocks / double(out.waves);
    if (out.slices > 1)
      out.tileAround = estimate.epilogue + stream->meeting * 1e-9 * out.machine.clock / double(out.waves);
    out.tileAround = std::min(out.tileAround, tile);
    out.tileMain = tile - out.tileAround;
  }
  out.tileLoose = out.streams || out.slices > 1 ? 0 : estimate.loose; // those of slices are in `tileAround`
  out.hidden = shape.schedule == Schedule::pingpong;
  const bool ofAll = draft.multipliesDoubles() || hasMeasuredTiles(draft); // `tileMain` is of all CTAs of an SM
  double together = std::min<double>(double(estimate.ctasPerSM),
                                     std::ceil(double(out.tiles) / double(out.slots) * double(estimate.ctasPerSM)));
  double main = std::min(out.clocks, double(out.waves) * out.tileMain * (ofAll ? 1 : std::max(1.0, together)));
  double idle = out.waves > 0 ? main / double(out.waves) * (1 - out.lastWave) : 0;
  // CTAs share an SM: those that it could hold beside them would take its time, too.
  if (!draft.wgmma() && out.tiles > 0) {
    const double ofAnSM = double(out.tiles) * double(out.slices) / draft.limits.sms;
    idle = main * (1 - ofAnSM / std::ceil(ofAnSM));
  }
  out.mainPart = main - idle;
  out.idlePart = idle;
  out.aroundPart = out.clocks - main;
}

/// What a multiply-add takes of the power beside one of 16 bits, so that what is expected of the large products of
/// docs/hopper-types.md, *Against cuBLASLt*, is 4.8% off on average (12.2% without a limit; H200, 2026-11-26).
double powerOfProduct(const Draft &draft) {
  const bool integers = *draft.spec().accumulator == Elem::s32;
  switch (draft.inputBits()) {
  case 8:
    return integers ? 0.41 : 0.5;
  case 32:
    return 1.65;
  default:
    return 1;
  }
}

/// What the power limit makes of the clocks: measured of wgmma without slices, of 2048^3 and more. Not of streams: of
/// 20 with a short side of 96 to 256, in turns of a few launches, it promised 15% more than they took (H200,
/// 2026-11-25). In long turns they reach it, too (docs/hopper-shapes.md, *Wide weights*), which nobody has fitted.
void addLimit(const Draft &draft, const Shape &shape, Analysis &out) {
  constexpr double leastProducts = 8e9;
  const double products = double(out.tiles) * double(shape.m) * double(shape.n) * double(out.k) * powerOfProduct(draft);
  if (!draft.wgmma() || out.slices > 1 || out.streams || products < leastProducts)
    return;
  out.atPowerLimit = out.machine.powerConstant * std::sqrt(out.clocks * energyOf(products, out.hbmBytes));
}

/// What a launch takes beside the clocks of its tiles, where launches overlap: 256^3 takes 1.88 us, 512^3 2.41 and
/// 1024^3 5.05, by the model's clocks 0.5, 1.0 and 3.5 (H200, 2026-11-23).
double launchOf(const Draft &draft) { return draft.wgmma() ? 1.4e-6 : 0; }

/// The time, and what it is made of most.
void conclude(Analysis &out) {
  if (out.tiles == 0) {
    out.seconds = out.launch, out.bound = "the launch";
    return;
  }
  double byClock = std::max(out.clocks, out.bySectors) / out.machine.clock + out.launch,
         byMemory = out.memoryFloor + out.launch;
  double byPower = out.streams ? 0 : std::max(out.atPowerLimit, out.machine.powered < 1 ? out.poweredFloor : 0.0);
  out.seconds = std::max({byClock, byMemory, byPower});
  if (out.launch > 0.5 * out.seconds)
    out.bound = "the launch";
  else if (out.seconds == byMemory || out.memoryFloor > 0.8 * out.seconds)
    out.bound = "memory";
  else if (out.seconds == byPower)
    out.bound = "power";
  else if (out.streams) // whose estimate has said it
    return;
  else if (out.bySectors > out.clocks)
    out.bound = "the store of D";
  else if (out.aroundPart > out.mainPart && out.aroundPart >= out.idlePart)
    out.bound = "starts and ends";
  else if (out.idlePart > 0.2 * out.clocks)
    out.bound = out.waves > 1 ? "the last wave" : "SMs without a tile";
  else
    out.bound = "tensor cores";
}

/// The choice of `plan` as the ranking spells it; it is left out of the alternatives.
bool isThis(const Plan &plan, const Alternative &other) {
  Diags scratch;
  Spec spec = plan.spec;
  if (*plan.spec.instruction == Instruction::fma)
    return applyChoice(spec, other.choice, scratch) && *spec.instruction == *plan.spec.instruction &&
           *spec.block == *plan.spec.block && *spec.warp == *plan.spec.warp && *spec.cluster == *plan.spec.cluster;
  if (!spec.swapOperands.given) // a choice says these where they are not as usual
    spec.swapOperands.value = *spec.d.layout == Order::col ? Persistence::on : Persistence::off;
  if (!spec.cluster.given)
    spec.cluster.value = {1, 1, 1};
  if (!spec.split.given) // nor of slices that meet in memory
    spec.split.value = SplitMode::none;
  if (!spec.split.given && !spec.splitSlices.given)
    spec.splitSlices.value = 1;
  auto inMemory = [](const Spec &s) {
    return *s.split == SplitMode::split_k && (*s.cluster)[2] == 1 ? *s.splitSlices : 1;
  };
  auto paths = applyChoice(spec, other.choice, scratch);
  return paths && *spec.block == *plan.spec.block && *spec.warp == *plan.spec.warp &&
         *spec.schedule == *plan.spec.schedule && *spec.cluster == *plan.spec.cluster &&
         *spec.swapOperands == *plan.spec.swapOperands && *spec.a.repack == *plan.spec.a.repack &&
         *spec.b.repack == *plan.spec.b.repack && inMemory(spec) == inMemory(plan.spec);
}

/// Alternatives of which the best `count` others remain: of a skinny product half of them stream it.
std::vector<Alternative> enoughOf(const Spec &spec, unsigned count) {
  Diags scratch;
  return count ? alternatives(spec, 2 * (count + 1), scratch) : std::vector<Alternative>();
}

std::vector<Alternative> bestOthers(const Plan &plan, std::vector<Alternative> all, unsigned count) {
  llvm::erase_if(all, [&](const Alternative &other) { return isThis(plan, other); });
  llvm::stable_sort(all, [](const Alternative &x, const Alternative &y) { return x.cost < y.cost; });
  all.resize(std::min<size_t>(count, all.size()));
  return all;
}
} // namespace

MachineRates ratesOf(Target target, Elem input) {
  // Data sheets: bytes a second, dense operations on 16-bit inputs, on f64, boost clock. The H200: 4.3 TB/s is what
  // copies reach, 1.755 GHz its clock without a limit, 0.74 what large f16 and bf16 products keep of the peak at 700 W
  // (docs/results.md), the last one a fit to 17 products (docs/hopper-clock.md, *Whose clock*).
  struct Row {
    const char *card;
    double bytes, half, wide, clock, powered, powerConstant;
  };
  Row row{};
  switch (target) {
  case Target::sm_80:
    row = {"NVIDIA A100", 1.94e12, 312e12, 19.5e12, 1.41e9, 1, 0};
    break;
  case Target::sm_86:
    row = {"NVIDIA RTX A6000", 0.768e12, 154.8e12, 0.6e12, 1.8e9, 1, 0};
    break;
  case Target::sm_89:
    row = {"NVIDIA L40S", 0.864e12, 362e12, 1.4e12, 2.52e9, 1, 0};
    break;
  case Target::sm_90a:
    row = {"NVIDIA H200", 4.3e12, 989e12, 67e12, 1.755e9, 0.74, 1.315e-12};
    break;
  }
  const bool knowsPower = bitsOf(input) >= 8 && input != Elem::f64; // the types of wgmma
  return {row.card,
          row.bytes,
          input == Elem::f64 ? row.wide : row.half * 16 / bitsOf(input),
          row.clock,
          knowsPower ? row.powered : 1,
          knowsPower ? row.powerConstant : 0};
}

/// Of a matrix by a vector, which has an estimate of its own, in nanoseconds.
static void addVector(const Draft &draft, Analysis &out) {
  const Plan &plan = draft.plan;
  const VectorTime time =
      timeOf(VectorPremises(draft), {plan.blockM, plan.blockK, plan.warpM, plan.warpK, plan.clusterK});
  const double work = time.tiles * double(plan.clusterK);
  out.tiles = int64_t(time.tiles), out.slices = plan.clusterK;
  out.slots = time.residents * draft.limits.sms, out.waves = int64_t(time.waves);
  out.lastWave = (work - (time.waves - 1) * double(out.slots)) / double(out.slots);
  out.tileUse = double(out.batch) * double(*draft.extentM()) / (time.tiles * double(plan.blockM));
  out.sharedBytes = plan.sharedBytes;
  out.tileL2Bytes = out.tiles ? out.bytes / time.tiles : 0;
  out.l2Bytes = out.hbmBytes = out.bytes;
  out.streams = true;
  out.launch = time.launch * 1e-9;
  out.clocks = std::max(0.0, time.nanoseconds * 1e-9 - out.launch) * out.machine.clock;
  out.tileMain = out.waves ? out.clocks / time.waves : 0;
  out.mainPart = out.clocks;
  out.bound = "memory";
}

Analysis analyse(const Plan &given, unsigned next) {
  Diags scratch;
  Plan plan = given;
  plan.spec = atTypicalSizes(asOneProduct(given.spec));
  Draft draft{plan, scratch, limitsOf(*plan.spec.target), nullptr};
  const bool vector = *plan.spec.instruction == Instruction::fma;
  if (!draft.wgmma() && !vector)
    decideMatrix(draft);
  Analysis out;
  out.machine = ratesOf(*plan.spec.target, *plan.spec.a.type);
  if (vector) {
    addProblem(draft, out);
    addVector(draft, out);
    conclude(out);
    std::vector<Alternative> all = enoughOf(plan.spec, next);
    auto self = llvm::find_if(all, [&](const Alternative &other) { return isThis(plan, other); });
    const double own = self != all.end() ? self->cost : (out.clocks / out.machine.clock + out.launch) * 1e9;
    for (Alternative &other : all)
      other.cost *= own > 0 ? out.clocks / own : 1;
    out.next = bestOthers(plan, std::move(all), next);
    return out;
  }
  Shape shape = shapeOf(plan);
  Estimate estimate = plan::estimate(Premises(draft), shape);
  out.assumed = assumedSizes(given.spec);
  addProblem(draft, out);
  addTiles(draft, shape, estimate, out);
  out.launch = launchOf(draft);
  if (out.tiles > 0) { // else no CTA runs
    addClocks(draft, shape, estimate, out);
    out.bySectors = estimate.bySectors;
    addLimit(draft, shape, out);
  }
  conclude(out);
  out.copies = secondsOfCopies(draft);
  out.next = enoughOf(plan.spec, out.tiles > 0 ? next : 0);
  // The ranking knows no slices that meet in memory, and streams have a model of their own: what it says of this plan
  // counts as `clocks`.
  auto self = llvm::find_if(out.next, [&](const Alternative &other) { return isThis(plan, other); });
  double own = self != out.next.end() ? self->cost : estimate.atPowerLimit ? estimate.cost : out.clocks;
  for (Alternative &other : out.next)
    other.cost *= own > 0 ? out.clocks / own : 1;
  out.next = bestOthers(plan, std::move(out.next), next);
  return out;
}

std::vector<Alternative> othersThan(const Plan &plan, const Spec &spec, unsigned count) {
  return bestOthers(plan, enoughOf(spec, count), count);
}

} // namespace gemmc
