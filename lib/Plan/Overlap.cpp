// What overlaps what: a kernel with the one in front of it and the one behind, products with the waits between them.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
/// Bytes of both operands.
double bytesRead(const Draft &draft) {
  return double(*draft.extentM() + *draft.extentN()) * double(*draft.extentK()) * double(draft.plannedBatch()) *
         draft.inputBits() / 8;
}

/// 95 us of memory's time. Beyond it the half of a microsecond that a launch behind its like would save is little
/// beside the 2 to 3 that one which overlaps begins later in an idle stream than one by a graph (H200, 2026-11-27,
/// docs/hopper-clock.md, *Launched together*).
constexpr double mostBytesToOverlap = 4e8;

/// Whether half a microsecond, what hiding a launch saves, is little beside the time: more than 60 to 95 us, of f64 and
/// 4-bit integers, which sm_90 multiplies in many instructions, that many fewer multiply-adds.
bool isLong(const Draft &draft) {
  const double mostProducts = draft.multipliesDoubles() ? 0x1p31 : draft.inputBits() == 4 ? 0x1p27 : 0x1p35;
  auto m = draft.extentM(), n = draft.extentN(), k = draft.extentK();
  return m && n && k &&
         (double(*m) * double(*n) * double(*k) * double(draft.plannedBatch()) > mostProducts ||
          bytesRead(draft) > mostBytesToOverlap);
}

/// Whether several CTAs share an SM whose tensor cores, or what stands for them, keep them busy: f64, and 8-bit floats
/// by mma. They finish late where they share unevenly, as they do when they come one by one, as places fall free: f64
/// by up to 44%, e4m3 by 2 and 27% (docs/hopper-types.md, *f64*; docs/hopper-clock.md, *Launched together*).
bool crowdsTensorCores(const Draft &draft, const Grid &grid) {
  const bool slow = draft.multipliesDoubles() || (!draft.wgmma() && isFloat8(*draft.spec().a.type));
  return slow && !grid.oneWave();
}

/// Whether a launch is a part of the time that is worth hiding, and hiding it was seen to pay: skinny products 2 to 6%,
/// 1024^3 8%, products of 2 to 3.5 us 13 to 27%; of mma and wmma 1 to 18%, of f64 with at most one CTA an SM 1 to 13%.
bool hidesLaunch(const Draft &draft) {
  const Spec &s = draft.spec();
  if (*s.split == SplitMode::stream_k || !draft.extentK() || isLong(draft))
    return false;
  std::optional<Grid> grid = gridOf(draft);
  return grid && !crowdsTensorCores(draft, *grid);
}

/// Kernels that start before the one in front of them has ended.
void decideDependence(Draft &draft) {
  Spec &s = draft.spec();
  bool repacks = *s.a.repack == Repack::on || *s.b.repack == Repack::on;
  if (*s.target != Target::sm_90a)
    s.dependent.decide(Persistence::off,
                       formatv("griddepcontrol came with sm_90: the target is {0}", nameOf(*s.target)));
  else if (s.trigger.given && *s.trigger != Trigger::start)
    s.dependent.decide(Persistence::on, "`launch.trigger` is for kernels that overlap");
  else if (s.prefetch.given && *s.prefetch > 0)
    s.dependent.decide(Persistence::on, "`launch.prefetch` is for kernels that overlap");
  else if (repacks)
    s.dependent.decide(Persistence::on, "the product's kernels begin while the one in front of them ends");
  else if (hidesLaunch(draft))
    s.dependent.decide(Persistence::on,
                       "its launch is hidden behind the end of the kernel in front: 2 to 27% of so short a time");
  else
    s.dependent.decide(Persistence::off,
                       *s.split == SplitMode::stream_k ? "the kernels of stream-K were not measured to gain by it"
                       : isLong(draft)                 ? "hiding the launch of so long a kernel saves next to nothing"
                       : gridOf(draft) ? "several of its CTAs share an SM: unevenly, where they come one by one"
                                       : "one kernel, and what runs before it is not known");
  if (*s.dependent == Persistence::on && *s.target != Target::sm_90a)
    draft.diags.report(Diag::plan_needs_sm90a, s.dependent.range, "launch.dependent: on", nameOf(*s.target))
        .fix(s.dependent.range, "off");
}

/// Whether CTAs that are not slices of one tile read the same rows of the long operand.
bool sharesLong(const Draft &draft, const Grid &grid) { return grid.alongShort() > 1 && draft.plan.clusterK == 1; }

/// Whether hardly an SM is idle in the last wave of a stream's tiles, which then run as well where places fall free.
/// Else they begin on idle SMs and end alone: 86% of the SMs take 8% longer, 91% 4%, a second wave of 50 to 65% 5 to
/// 12% (H200, 2026-11-27, docs/hopper-clock.md, *Launched together*).
bool keepsBusy(const Grid &grid, bool splits) {
  constexpr double full = 0.95, fullOfSlices = 0.86, secondFrom = 1.5, secondTo = 1.65;
  const double filled = grid.filled();
  return filled >= (splits ? fullOfSlices : full) && !(filled > secondFrom && filled < secondTo);
}

/// CTAs that are launched one by one, as places fall free, lie and run apart: those that read the same rows do so at
/// other times, in other parts of the GPU, and a grid that leaves some SMs idle begins there and ends alone (55% of the
/// SMs: 30% slower). Launched when all CTAs in front have come to their ends, they lie and run together. Measured for
/// 61 skinny products and 16 others, each way (H200, 2026-11-22), for 149 products of 1.5 to 110 us (2026-11-23) and
/// for 128 streams (2026-11-27, docs/hopper-clock.md, *Launched together*); with both operands shifted for 23
/// (2026-11-28, docs/hopper-l2.md, *Lines that start anywhere*): slices 0.89 to 0.99 of what the end takes, others
/// 0.97 to 1.00 with `sums`.
std::pair<Trigger, const char *> bestTrigger(const Draft &draft) {
  constexpr double halfGrid = 0.5, tiny = 0x1p22;
  // Several CTAs of a vector kernel share an SM, unevenly where they come one by one: 2048x13824 in one cut takes 21.8
  // us from the start, 15.0 with `sums` and 14.5 at the end, 1970x1980 in another one 3.6, 3.1 and 3.2 (H200,
  // 2026-11-30, docs/hopper-shapes.md, *A matrix by a vector*).
  constexpr double briefVector = 0x1p23;
  constexpr int64_t brief = 1024, deep = 4096, smallTile = 64 * 64;
  const Spec &s = draft.spec();
  if (*s.dependent != Persistence::on)
    return {Trigger::start, "`launch.dependent: off`"};
  if (*s.a.repack == Repack::on || *s.b.repack == Repack::on)
    return {Trigger::end, "what is launched behind it is a copy, which begins when the product in front has ended"};
  if (*s.instruction == Instruction::fma)
    return bytesRead(draft) <= briefVector
               ? std::pair(Trigger::sums, "the kernel behind is launched all at once, while the last rows are stored")
               : std::pair(Trigger::end, "the kernel behind is launched all at once: its CTAs share the SMs evenly");
  std::optional<Grid> grid = gridOf(draft);
  if (grid && crowdsTensorCores(draft, *grid))
    return {Trigger::end, "the kernel behind is launched all at once: its CTAs share the SMs evenly"};
  // 15 products in slices, but f64: from the start 0.96 to 1.36 of what they take apart, at the end 0.97 to 1.03.
  if (!draft.wgmma() && !draft.multipliesDoubles() && *s.split != SplitMode::none)
    return {Trigger::end, "the kernel behind is launched all at once: slices of a tile run together"};
  if (!grid || !draft.wgmma() || !draft.extentK())
    return {Trigger::start, "the kernel behind begins as places fall free"};
  const int64_t depth = *draft.extentK() / draft.plan.clusterK; // of a CTA
  const bool few = grid->filled() <= halfGrid, sliced = draft.inCluster(), shares = sharesLong(draft, *grid);
  // Lines wait for being shifted, whoever else asks for them and when.
  const bool shifts = draft.shiftsA() && draft.shiftsB();
  const bool alone =
      (shifts && sliced) ||
      (grid->skinny ? bytesRead(draft) <= tiny || few ||
                          (keepsBusy(*grid, *s.split != SplitMode::none) && !shares && (!sliced || depth < deep))
                    : !grid->oneWave() || depth <= brief || sliced || *s.split == SplitMode::stream_k);
  if (alone)
    return {Trigger::start, "the kernel behind begins as places fall free"};
  const bool knowsLast = *s.scheduler == Scheduler::fixed && (*s.split == SplitMode::none || sliced);
  // Where m or n is contiguous or CTAs share tiles it takes 2 to 14% longer.
  const bool pays = draft.kMajorA() && draft.kMajorB() && !rowsStartInsideSectors(draft);
  const bool small =
      grid->oneWave() && *s.split == SplitMode::none && draft.plan.blockM * draft.plan.blockN <= smallTile;
  const bool alike = grid->skinny && !shares && !sliced && draft.plan.clusterM * draft.plan.clusterN == 1;
  if (knowsLast && (small || shifts || (pays && (depth < deep || alike))))
    return {Trigger::sums, "the kernel behind is launched all at once, while the last tiles are stored"};
  return {Trigger::end, "the kernel behind is launched all at once: its CTAs read shared rows together"};
}

void decideTrigger(Draft &draft) {
  Spec &s = draft.spec();
  auto [trigger, why] = bestTrigger(draft);
  s.trigger.decide(trigger, why);
  if (*s.trigger == Trigger::start)
    return;
  std::string against;
  if (*s.dependent != Persistence::on)
    against = "is for kernels that overlap: `launch.dependent` is off";
  else if (*s.trigger == Trigger::sums && *s.scheduler == Scheduler::dynamic)
    against = "needs to know a CTA's last tile: `raster.scheduler` is dynamic";
  else if (*s.trigger == Trigger::sums && *s.split != SplitMode::none && !draft.inCluster())
    against = "needs to know a CTA's last tile: slices that meet in the workspace have parts of tiles "
              "(`split.through: cluster` has none)";
  if (!against.empty())
    draft.diags.report(Diag::plan_trigger, s.trigger.range, nameOf(*s.trigger), against)
        .fix(s.trigger.range, *s.dependent == Persistence::on ? "end" : "start");
}

/// A stage of a thin tile holds few products: what a warpgroup waits for between two of them (450 clocks) is more than
/// they take. It matters where few CTAs stream what the memory delivers.
void decideInFlight(Draft &draft) {
  Spec &s = draft.spec();
  constexpr double partOfGrid = 0.86;
  constexpr int64_t thin = 40, slim = 96, leastStages = 7;
  bool free = draft.wgmma() && *s.schedule != Schedule::pipelined && draft.plan.loadA == FragmentLoad::descriptor &&
              !draft.promotes();
  std::optional<Grid> grid = gridOf(draft);
  int64_t most = 1;
  bool halves =
      draft.plan.blockM && storeOverlap(draft, shapeOf(draft.plan)) > 0; // their stages are waited for one by one
  if (free && !halves && grid && grid->skinny && !sharesLong(draft, *grid) && grid->filled() < partOfGrid &&
      *s.stages >= leastStages && !draft.shifts()) {
    int64_t columns = grid->longIsM ? draft.plan.blockN : draft.plan.blockM; // of the short side
    most = columns <= thin ? 3 : columns <= slim ? 2 : 1;
  }
  s.inFlight.decide(most, most > 1 ? "few CTAs stream thin tiles: their products are short beside the waits"
                          : free   ? "of one stage while the next is waited for"
                                   : "products are waited for before the next stage is");
  if (*s.inFlight == 1 || draft.plan.blockM == 0)
    return;
  std::string against;
  if (!free)
    against = draft.promotes() ? "is for sums that stay in the tensor cores: `fast_accumulation` is off"
                               : "is for `wgmma` with a producer (`pipeline.schedule: cooperative` or `pingpong`) that "
                                 "reads A from shared memory";
  else if (*s.inFlight >= *s.stages)
    against = formatv("leaves none of the {0} stages to be filled", *s.stages);
  if (!against.empty())
    draft.diags.report(Diag::plan_in_flight, s.inFlight.range, *s.inFlight, against)
        .fix(s.inFlight.range, llvm::Twine(free ? std::max<int64_t>(1, *s.stages - 1) : 1));
}

/// Half of a tile is stored while the other half multiplies.
void decideStoreOverlap(Draft &draft) {
  Spec &s = draft.spec();
  if (draft.plan.blockM == 0) { // no tile is legal
    s.storeOverlap.decide(0, "");
    return;
  }
  Shape shape = shapeOf(draft.plan);
  int64_t steps = storeOverlap(draft, shape);
  std::string refused = storeOverlapRefused(draft, shape, std::max<int64_t>(1, steps));
  s.storeOverlap.decide(steps, steps ? "half of a tile is stored while the other half multiplies"
                               : refused.empty()
                                   ? "one tile a CTA, or too few steps of k: there is little to multiply meanwhile"
                                   : formatv("it {0}", refused).str());
  if (*s.storeOverlap == 0)
    return;
  refused = storeOverlapRefused(draft, shape, *s.storeOverlap);
  if (!refused.empty())
    draft.diags.report(Diag::plan_overlap, s.storeOverlap.range, *s.storeOverlap, refused)
        .fix(s.storeOverlap.range, "0");
}

/// Operands of the first tile, brought to the L2 while the kernel in front ends.
void decidePrefetch(Draft &draft) {
  Spec &s = draft.spec();
  std::string why;
  if (*s.dependent != Persistence::on)
    why = "`launch.dependent: off` waits for no kernel in front";
  else if (*s.schedule == Schedule::pipelined || *s.copy != CopyKind::tma)
    why = "only a producer that copies by TMA does it (`pipeline.schedule: cooperative` or `pingpong`)";
  else if (*s.split != SplitMode::none && !draft.inCluster())
    why = "the CTAs of a split that meet in the workspace choose their tiles later";
  else if (*s.a.repack == Repack::on || *s.b.repack == Repack::on)
    why = "the kernel in front writes what this one reads";
  else if (draft.shifts())
    why = "lines that are shifted are not prefetched";
  s.prefetch.decide(0, why.empty() ? "every product that was measured with it was slower" : why);
  if (!why.empty() && *s.prefetch > 0)
    draft.diags.report(Diag::plan_no_prefetch, s.prefetch.range, why).fix(s.prefetch.range, "0");
}

} // namespace

constexpr int64_t rowsOfHalves = 128; ///< Two halves of what one instruction multiplies.

/// What the problem and the given fields say, whatever the shape is.
static std::string refusedByProblem(const Draft &draft, int64_t steps, int64_t depth) {
  const Spec &s = draft.spec();
  if (!draft.wgmma())
    return formatv("is for `wgmma`: `instruction` is {0}", nameOf(*s.instruction));
  if (s.schedule.given && *s.schedule != Schedule::cooperative)
    return formatv("is for `pipeline.schedule: cooperative`: it is {0}{1}", nameOf(*s.schedule),
                   *s.schedule == Schedule::pingpong ? ", whose warpgroups store under each other's products" : "");
  if (draft.way.ofIntegers)
    return "keeps sums of floats as pairs of 16 bits: a and b are integers";
  if (bytesOf(*s.d.type) != 2)
    return formatv("keeps sums as pairs of 16 bits: `d.type` is {0} (allowed: f16, bf16)", nameOf(*s.d.type));
  if (s.beta.value != Scale{0.0})
    return "adds no C: `beta` is not 0";
  if (draft.promotes())
    return "needs sums that stay in the tensor cores: `fast_accumulation` is off";
  if (*s.store != StoreKind::tma)
    return formatv("is for stores that nobody waits for: `epilogue.store` is {0}, not tma{1}", nameOf(*s.store),
                   s.store.given ? "" : " (" + s.store.reason + ")");
  if (*s.split != SplitMode::none)
    return formatv("is for whole tiles: `split.mode` is {0}, not none", nameOf(*s.split));
  if (*s.scheduler == Scheduler::dynamic)
    return "remembers the tile before: `raster.scheduler` is dynamic, not static";
  if (draft.shifts())
    return "keeps stages filled that are a warpgroup's to shift into: lines are shifted (`repack: inside`)";
  if (draft.holdsA())
    return formatv("multiplies halves of A from shared memory: `fragments.{0}` is not descriptor",
                   draft.plan.swapped ? "b" : "a");
  if (s.inFlight.given && *s.inFlight > 1)
    return formatv("waits for one stage's products at a time: `pipeline.in_flight` is {0}, not 1", *s.inFlight);
  if (std::optional<int64_t> k = draft.extentK(); !k)
    return "needs a fixed number of steps of k: `problem.k` is dynamic";
  else if (llvm::divideCeil(*k, depth) < uint64_t(steps) + 2)
    return formatv("needs {0} steps of k or more: k / {1} is {2}", steps + 2, depth, llvm::divideCeil(*k, depth));
  return "";
}

std::string storeOverlapRefused(const Draft &draft, const Shape &shape, int64_t steps) {
  if (std::string why = refusedByProblem(draft, steps, shape.k); !why.empty())
    return why;
  if (shape.schedule != Schedule::cooperative)
    return "is for cooperative warpgroups: ping-pong ones store under each other's products";
  if (shape.warpM != rowsOfHalves)
    return formatv("stores 64 of a warpgroup's {0} rows while the others multiply: `tile.warp` {1} is {2}",
                   rowsOfHalves, userDimension(draft, 'm'), shape.warpM);
  if (shape.stages < steps)
    return formatv("keeps as many stages filled: `pipeline.stages` is {0}", shape.stages);
  return "";
}

int64_t storeOverlap(const Draft &draft, const Shape &shape) {
  // Of 128 bytes of k; half as deep ones (`takesHalfSteps`) twice as many: 8192x8192x8192 with m and n contiguous in
  // 256x192x32 takes 1685 us with two steps, 1646 with four (H200, 2026-11-26).
  constexpr int64_t best = 2, most = 4; // `most`: of the field
  const Spec &s = draft.spec();
  if (shape.schedule != Schedule::cooperative || shape.warpM != rowsOfHalves || draft.holdsA() ||
      bytesOf(*s.d.type) != 2 || *s.store != StoreKind::tma || *s.split != SplitMode::none)
    return 0; // of most candidates, without the words
  const int64_t each = shape.k > 0 ? std::max<int64_t>(1, draft.elementsIn(128) / shape.k) : 1;
  int64_t steps = std::min({best * each, most, shape.stages - 1});
  auto m = draft.extentM(), n = draft.extentN();
  bool oneTile = (s.persistent.given && *s.persistent == Persistence::off) ||
                 (m && n &&
                  uint64_t(draft.plannedBatch()) * llvm::divideCeil(*m, shape.m) * llvm::divideCeil(*n, shape.n) <=
                      uint64_t(draft.limits.sms));
  std::optional<int64_t> k = draft.extentK();
  if (s.storeOverlap.given)
    steps = *s.storeOverlap;
  else if (oneTile || !k || int64_t(llvm::divideCeil(*k, shape.k)) < fewStepsBesideStores * each)
    return 0;
  return storeOverlapRefused(draft, shape, std::max<int64_t>(1, steps)).empty() ? steps : 0;
}

void decideOverlap(Draft &draft) {
  decideDependence(draft);
  decideTrigger(draft);
  decidePrefetch(draft);
  decideInFlight(draft);
  decideStoreOverlap(draft);
}

} // namespace gemmc::plan
