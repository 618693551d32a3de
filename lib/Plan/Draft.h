/// A plan in the making: what the steps of this room hand along. Each step decides some fields of `spec`, reports what
/// is wrong with the given ones and goes on, so that a user sees all problems at once.
#pragma once
#include "gemmc/Layout/ColumnShares.h"
#include "gemmc/Layout/MatrixInstruction.h"
#include "gemmc/Plan/Plan.h"
#include "gemmc/Plan/Typical.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cmath>

namespace gemmc::plan {

/// How a product with one short side streams the other one (Skinny.cpp): tile, slices of k, and CTAs of a cluster that
/// share tiles of the short and of the long operand.
struct Stream {
  int64_t m, n, k, slices;
  std::string reason;
  int64_t clusterM = 1, clusterN = 1;           ///< Only where rows start inside sectors of the L2.
  double nanoseconds = 0;                       ///< Estimated.
  SplitThrough through = SplitThrough::cluster; ///< Where slices meet.
  int64_t alongK = 1;                           ///< In the workspace: CTAs of a cluster whose slices meet there before.
  int64_t stages = 0;                           ///< 0: as many as fit.
  int64_t inCluster() const { return through == SplitThrough::cluster ? slices : alongK; }
  int64_t inMemory() const { return slices / inCluster(); } ///< What meets there.
};

/// Another way to compute a product: the other way round (D^T where D is computed otherwise, or D); slices of k that
/// meet in clusters.
struct Way {
  bool turned = false;
  bool shallow = false; ///< A stream of few k, lines of both operands shifted.
  bool batched = false; ///< The products of a batch are streams, whose lines are shifted.
  int64_t slices = 1;
  SplitThrough through = SplitThrough::cluster; ///< Where slices meet.
  int64_t alongK = 1;                           ///< In the workspace: CTAs of a cluster whose slices meet there before.
  /// What is planned for has other elements than the types say (SixteenBits.cpp): integers, of so many bytes.
  bool ofIntegers = false;
  int64_t bytes = 2;

  /// A tile of 16-bit elements as one of those.
  std::array<int64_t, 3> widened(std::array<int64_t, 3> tile) const { return {tile[0], tile[1], tile[2] * 2 / bytes}; }
};

struct OperandInfo;

struct Draft {
  Plan plan; ///< `plan.spec` is the spec that gets completed.
  Diags &diags;
  TargetLimits limits;
  const MatrixInstruction *matrix = nullptr;   ///< mma, wmma: the instruction; nullptr for wgmma.
  std::optional<Stream> stream = std::nullopt; ///< Where a product is skinny.
  std::vector<Stream> otherStreams = {};       ///< Cuts to try where that one does not fit, the next one last.
  /// Operands that lanes could turn where the spec does not say who does, and what the product takes by mma.
  llvm::SmallVector<const OperandInfo *, 2> turnable = {};
  double secondsByMma = 0;
  Way way = {};    ///< What the planner tries beyond what the spec and its sizes ask for.
  double cost = 0; ///< Of the shape that was chosen, see Estimate.

  Spec &spec() { return plan.spec; }
  const Spec &spec() const { return plan.spec; }
  bool wgmma() const { return *spec().instruction == Instruction::wgmma; }
  bool inCluster() const { return *spec().splitThrough == SplitThrough::cluster; } ///< Slices of k meet there.
  /// Slices of k, without a word on how they are made: split_k.
  bool asksForSlices() const { return !spec().split.given && spec().splitSlices.given && *spec().splitSlices > 1; }
  /// CTAs of a cluster that have slices of one tile.
  int64_t slicesInCluster() const {
    if (*spec().split != SplitMode::split_k)
      return 1;
    if (spec().cluster.given)
      return std::max<int64_t>(1, (*spec().cluster)[2]);
    return inCluster() ? *spec().splitSlices
           : stream    ? stream->alongK
                       : std::max(way.alongK, plan.clusterK); // of a plan that is complete
  }
  bool meetsInCluster() const { return inCluster() || slicesInCluster() > 1; } ///< Slices of k do, some or all.
  /// Parts of a tile that meet in the workspace: its slices, or what those of a cluster have come to.
  int64_t slicesInMemory() const {
    const bool meet = *spec().split == SplitMode::split_k && !inCluster();
    return meet ? std::max<int64_t>(1, *spec().splitSlices / slicesInCluster()) : 1;
  }
  /// wgmma: whether its A comes from registers.
  bool holdsA() const {
    const Field<FragmentLoad> &load = plan.swapped ? spec().fragmentsB : spec().fragmentsA;
    return wgmma() && (turnsInside(kernelA()) || (load.given && *load == FragmentLoad::ldmatrix));
  }
  bool wmma() const { return *spec().instruction == Instruction::wmma; }
  /// Extents as the kernel sees them; nullopt = dynamic.
  std::optional<int64_t> extentM() const { return (plan.swapped ? spec().n : spec().m).value.fixed; }
  std::optional<int64_t> extentN() const { return (plan.swapped ? spec().m : spec().n).value.fixed; }
  std::optional<int64_t> extentK() const { return spec().k.value.fixed; }
  /// What is planned for: the extents, the typical ones of those that are dynamic.
  int64_t plannedM() const { return plan.swapped ? typicalN(spec()) : typicalM(spec()); }
  int64_t plannedN() const { return plan.swapped ? typicalM(spec()) : typicalN(spec()); }
  int64_t plannedK() const { return typicalK(spec()); }
  int64_t plannedBatch() const { return typicalBatch(spec()); }
  /// The user's operand that the kernel calls A (B).
  const OperandSpec &kernelA() const { return plan.swapped ? spec().b : spec().a; }
  const OperandSpec &kernelB() const { return plan.swapped ? spec().a : spec().b; }
  /// Whether the kernel's A (B) has its k index contiguous in memory. A transposed matrix has the other order.
  bool kMajorA() const { return (*kernelA().layout == Order::row) != plan.swapped || turns(kernelA()); }
  bool kMajorB() const { return (*kernelB().layout == Order::col) != plan.swapped || turns(kernelB()); }
  /// Whether an operand of the user has k contiguous, as it lies.
  bool hasLinesOfK(const OperandSpec &operand) const {
    return *operand.layout == (&operand == &spec().a ? Order::row : Order::col);
  }
  /// Whether wgmma reads an operand only with k contiguous and has it not so (PTX ISA 9.7.15.5.2): a copy turns it, or
  /// the lanes that read it from shared memory into registers.
  bool needsTurning(const OperandSpec &operand) const { return inputBits() != 16 && !hasLinesOfK(operand); }
  /// Words, where that is so of both.
  bool needsTurningOfBoth() const {
    return *spec().target == Target::sm_90a && inputBits() == 32 && needsTurning(spec().a) && needsTurning(spec().b);
  }
  bool turns(const OperandSpec &operand) const { return *operand.repack == Repack::on && needsTurning(operand); }
  bool turnsInside(const OperandSpec &operand) const {
    return *operand.repack == Repack::inside && needsTurning(operand);
  }
  /// Whether a warpgroup shifts an operand's lines into place on their way, those of the kernel's A (B).
  bool isShifted(const OperandSpec &operand) const {
    return *operand.repack == Repack::inside && !needsTurning(operand);
  }
  bool shiftsA() const { return isShifted(kernelA()); }
  bool shiftsB() const { return isShifted(kernelB()); }
  bool shifts() const { return shiftsA() || shiftsB(); }
  /// What a tile of m x n has of operands that are shifted.
  int64_t shiftedExtent(int64_t m, int64_t n) const { return (shiftsA() ? m : 0) + (shiftsB() ? n : 0); }
  /// Whether what a stage's products sum up to is added to sums in f32 registers.
  bool promotes() const { return *spec().fastAccumulation == Persistence::off; }
  unsigned inputBits() const { return bitsOf(*spec().a.type); }
  /// Columns of the wgmma that takes `columns` at least: multiples of 8, of integers beyond 32 multiples of 16 (PTX ISA
  /// 9.7.15.2).
  int64_t wgmmaColumns(int64_t columns) const {
    const bool wide = columns > 32 && (way.ofIntegers || isInteger(*spec().a.type));
    return (columns + (wide ? 15 : 7)) / (wide ? 16 : 8) * (wide ? 16 : 8);
  }
  /// mma of f64 on a card whose tensor cores have instructions of 16 rows for it.
  bool multipliesDoubles() const {
    return *spec().instruction == Instruction::mma && *spec().a.type == Elem::f64 && *spec().target == Target::sm_90a;
  }
  /// Elements of A or B that `bytes` hold.
  int64_t elementsIn(int64_t bytes) const { return bytes * 8 / inputBits(); }
};

/// Where all steps begin: nothing of `spec` is decided yet.
Draft draftOf(const Spec &spec, Diags &diags, Way way = {});

/// One of the user's four operands: its name and where its parts stand in a spec.
struct OperandInfo {
  const char *name;
  OperandSpec Spec::*operand;
  Field<Size> Spec::*rows, Spec::*cols;
};
extern const OperandInfo operandInfos[4]; ///< a, b, c, d.
/// The extent along the direction in which elements are adjacent: what `ld` must cover.
const Size &contiguousExtent(const Spec &spec, const OperandInfo &info);
/// The type that D has for inputs of type `input` when nothing else is asked for.
Elem resultOf(Elem input);
/// Bytes that every row start is a multiple of, when a dynamic ld may be required to keep 16-byte pitches.
unsigned promisedAlign(const OperandSpec &operand);
constexpr int64_t mostDistanceOfTma = (int64_t(1) << 40) - 1; ///< Bytes between rows, or matrices, of a tensor map.
/// Whether a distance that is known is more than that, or one of an operand's.
inline bool tooFarForTma(const Size &distance, Elem type) {
  return distance.fixed.value_or(0) > mostDistanceOfTma / int64_t(bytesOf(type));
}
inline bool tooFarForTma(const OperandSpec &operand) {
  return tooFarForTma(*operand.ld, *operand.type) || tooFarForTma(*operand.batchStride, *operand.type);
}

/// How the kernel cuts its work, in the kernel's view: one candidate, or the choice.
struct Shape {
  Schedule schedule = Schedule::pipelined;
  int64_t m = 0, n = 0, k = 0;  ///< Block tile.
  int64_t warpM = 0, warpN = 0; ///< Warp (mma, wmma) or warpgroup (wgmma) tile.
  int64_t warpK = 0;            ///< Less than k: warps multiply slices of k.
  int64_t clusterM = 1, clusterN = 1, clusterK = 1;
  int64_t stages = 0; ///< 0 until it is known how many fit.

  int64_t slices() const { return warpK ? k / warpK : 1; }
  int64_t warps() const { return (m / warpM) * (n / warpN) * slices(); }
};

Shape shapeOf(const Plan &plan); ///< Of a plan that has its tile.

// Threads and registers (Registers.cpp).
unsigned consumerWarpgroups(const Shape &shape); ///< wgmma.
/// wgmma: of them that share a tile, beside a producer or none.
inline int64_t mostWarpgroups(Schedule schedule) { return schedule == Schedule::pipelined ? 4 : 3; }
unsigned threadsOf(const Draft &draft, const Shape &shape);
unsigned accumulatorRegisters(const Draft &draft, const Shape &shape);
/// Whether lanes write lines of D in 16 bits that start at any or any second element, which nothing else can.
bool writesOddLines(const Draft &draft);
/// Whether lanes write lines of D that start inside sectors, or may, in whole ones: such, others where registers are
/// left for it.
bool writesWholeSectors(const Draft &draft, const Shape &shape);
/// Whether lines of D go along the kernel's n; else along its m: D is turned on its way out.
bool storesAlongN(const Draft &draft);
unsigned accumulatorLimit(const Draft &draft, const Shape &shape);
/// wgmma: of these, what is left where slices meet in the workspace; else 255.
unsigned mostGathered(const Draft &draft, const Shape &shape);
/// mma: CTAs that the registers of one SM suffice for, by estimate.
int64_t ctasByRegisters(const Draft &draft, const Shape &shape);
/// {producer, consumer} values of setmaxnreg, {0, 0} where registers are not moved.
std::pair<unsigned, unsigned> registerSplit(const Draft &draft, const Shape &shape);

// Shared memory (Shared.cpp); all bytes.
/// A TMA store writes whole 16 bytes (seen on an H200): whether rows of D may end elsewhere.
bool endsRowsInside16Bytes(const Draft &draft);
int64_t swizzleSpan(const Draft &draft); ///< wgmma: elements of one swizzled row (8 without swizzle).
constexpr int64_t leastDepthBytes = 32;  ///< mma, wmma: of a line of a block tile along k.
/// Of f64 by mma twice as many as of others: a step of 16 elements is short beside what it waits for.
inline int64_t mostDepthBytes(const Draft &draft) {
  return *draft.spec().instruction == Instruction::mma && *draft.spec().a.type == Elem::f64 ? 256 : 128;
}
int64_t stageBytes(const Draft &draft, const Shape &shape);
int64_t stagedBytes(const Draft &draft, const Shape &shape);
/// mma, wmma: what the end of a tile needs, in the place of the stages.
int64_t epilogueBytes(const Draft &draft, const Shape &shape);
/// Whether ping-pong stores D through one buffer for its own sake.
bool leavesThroughOne(const Draft &draft, const Shape &shape);
unsigned storeBuffers(const Draft &draft,
                      const Shape &shape); ///< wgmma: of each warp that stores through shared memory; else 0.
/// `epilogue.buffers`, of `epilogue.store: tma`: the least and the most that a tile can have.
std::pair<int64_t, int64_t> storeBufferLimits(const Draft &draft, const Shape &shape);
/// Chunks in which a warp stores its part of a tile: 16 lines of at most 128 bytes.
int64_t storeChunks(const Draft &draft, const Shape &shape);
/// What the sums of slices take that meet in the cluster's shared memory, and whether they take the operands' place.
int64_t exchangeBytes(const Draft &draft, const Shape &shape);
bool exchangeOver(const Draft &draft, const Shape &shape);
int64_t fixedBytes(const Draft &draft, const Shape &shape); ///< All that does not grow with the stages.
int64_t sharedBytes(const Draft &draft, const Shape &shape);
int64_t stagesThatFit(const Draft &draft, const Shape &shape);

/// Estimated SM clocks of the whole product (Model.cpp); only its order matters. `waves` and `tiles` explain it.
struct Estimate {
  double clocks = 0;
  double cost = 0;           ///< What the ranking goes by: `clocks`, of a product at the power limit also its energy.
  bool atPowerLimit = false; ///< The latter.
  double bySectors = 0;      ///< Clocks of a product that waits for sectors of D (Clock.h); else 0.
  double main = 0, epilogue = 0; ///< Of one tile; the epilogue with its start.
  double loose = 0;              ///< Of one tile: parts of lines of D that leave by themselves, not hidden.
  int64_t tiles = 0, waves = 0;
  int64_t ctasPerSM = 1;
};
/// The energy of a product in multiply-adds: what a byte of memory takes beside them (H200; Model.cpp).
constexpr double energyOf(double products, double bytes) { return products + 68 * bytes; }
/// Tiles along m that are walked together, where the spec leaves it open: a wave of `ctas` covers a square of D.
int64_t squareGroup(double ctas, int64_t blockM, int64_t blockN);
/// Bytes of A and B that the CTAs of `slots` read for one tile each, what several read once. `group` tiles along m are
/// walked together, along n if that is the `order`, in the kernel's view.
double waveBytes(const Draft &draft, const Shape &shape, double slots, double group, RasterOrder order);

/// A line of the L2 is 128 bytes in sectors of 32.
constexpr int64_t lineBytes = 128, sectorBytes = 32;
/// CTAs that follow each other fill a GPC (H200; docs/hopper-l2.md, *The sixteen of a GPC*).
constexpr int64_t ctasOfGpc = 16;
/// What all rows of an operand start at a multiple of, a line at most, as they are read.
int64_t rowStep(const Draft &draft, const OperandSpec &operand);
/// Whether rows of C or D start at multiples of so many bytes, a line at most; false where that is not known.
bool startsAt(const OperandSpec &operand, int64_t bytes);
/// Whether some rows of an operand start inside sectors of the L2, as they are read.
bool rowsStartInsideSectors(const Draft &draft, const OperandSpec &operand);
/// Whether such an operand has k contiguous, so that a row's next box asks for the same sector again.
bool rowsSplitSectors(const Draft &draft);
/// Whether CTAs of a cluster share tiles in parts of which some have a group of rows more (`TileParts`).
bool hasUnlikeParts(const Draft &draft, const Shape &shape);
/// Whether rows of an operand start inside sectors of the L2.
bool rowsStartInsideSectors(const Draft &draft);
/// Whether rows of an operand start inside lines of the L2, so that those of a TMA box reach into a second one.
bool rowsStartInsideLines(const Draft &draft);
/// Whether k is contiguous in both and rows of boxes reach into a second line of the L2, but start at its sectors.
bool rowsStraddleLines(const Draft &draft);
/// What `bytesOfA` and `bytesOfB` that all CTAs together ask the L2 for (those of a cluster for their shared rows once)
/// are worth in bytes of such rows. 0 where no row splits sectors.
double splitBytes(const Draft &draft, double bytesOfA, double bytesOfB);
double splitBytes(bool ofA, bool ofB, double bytesOfA, double bytesOfB); ///< Where rows of A, of B split sectors.

/// Clocks that a warpgroup of `rows` takes for a stage of `k` at least whose A its lanes load into registers.
double leastOfHeld(const Draft &draft, int64_t k, int64_t rows);
/// Whether what has been given leaves it open that CTAs of a cluster share tiles (Candidates.cpp).
bool mayCluster(const Draft &draft, Schedule schedule);
/// Whether sizes are in a range in which the arithmetic of candidates is safe; checkShape reports the rest.
bool sane(const Shape &shape);
/// A tile field in the kernel's view, or back; the order of the raster.
std::array<int64_t, 3> kernelView(const Draft &draft, std::array<int64_t, 3> tile);
RasterOrder kernelView(const Draft &draft, RasterOrder order);

/// Whether `shape` breaks the rule that most break where stages are given; quicker than its report.
bool exceedsShared(const Draft &draft, const Shape &shape);
/// Reports into `diags` every rule that `shape` breaks (Checks.cpp).
void checkShape(const Draft &draft, const Shape &shape, Diags &diags);

/// makePlan with dynamic sizes left open where a decision needs to know them.
std::optional<Plan> planAsItIs(const Spec &spec, Diags &diags);
/// ... by the instruction that `decideFamily` takes, however small the product is (`planByMma`).
std::optional<Plan> planByFamily(const Spec &spec, Diags &diags);
/// ... and by the widths of elements that it has.
std::optional<Plan> planDirectly(const Spec &spec, Diags &diags, Way way = {});
std::optional<Plan> planOfWay(const Spec &spec, Diags &diags, Way way); ///< ...and lines come as `way` has them.
/// The product of 16 bits that reads the same bytes as one of 8- or 32-bit inputs by wgmma (SixteenBits.cpp).
struct Narrowed {
  Spec spec;
  Way way;         ///< In which it is planned.
  std::string why; ///< It goes by wgmma.
};
/// Nullopt, without a report, where there is none.
std::optional<Narrowed> narrowed(const Spec &spec);
Spec withRepack(Spec spec, OperandSpec Spec::*operand, Repack how);
/// Who turns the operands of which a spec does not say it (TurnInside.cpp).
struct Turning {
  llvm::SmallVector<const OperandInfo *, 2> open; ///< Those that lanes could turn.
  const OperandInfo *inside = nullptr; ///< The one that they do; nullptr: none, as that is estimated to be faster.
  std::string why;
  Repack otherwise = Repack::on; ///< How they are read where lanes turn none.
  double seconds = 0;            ///< That the product takes with `inside`.
};
Turning turningOf(const Spec &spec);
/// What the product takes where a copy turns the one that lanes do, of what it takes so.
double timesOfCopy(const Spec &spec, const Turning &turning);
/// The plan of a product, as the narrowed one's has it.
std::optional<Plan> planAsSixteenBits(const Spec &spec);
/// A small product by mma, which reads operands as they lie (ByMma.cpp).
struct ByMma {
  Plan plan;
  double times; ///< What wgmma takes of its time.
};
/// Nullopt where `byFamily` neither copies nor shifts operands, or is as fast.
std::optional<ByMma> planByMma(const Spec &spec, const Plan &byFamily);
Spec withMma(Spec spec);
/// What the copies in front of a product take: read and written, a warp for each line, those that turn elements of 8
/// and 32 bits a while longer, and those of rows that start at any element. What 404 products took beyond their own
/// estimate, a hundred of them batches, of which it is 20% off (H200, 2026-11-30). All sizes are fixed.
double secondsOfCopies(const Draft &draft);
/// `spec` with what `other` has decided about speed, and why. Nullopt where that does not go together (Typical.cpp).
std::optional<Plan> planWithChoiceOf(const Plan &other, const Spec &spec);
/// A batch as the one product that it is (Fold.cpp).
struct FoldedBatch {
  Spec one;     ///< What is planned in its place.
  Spec decided; ///< The problem of the batch.

  void unfold(Spec &planned) const; ///< Makes the spec of a plan of `one` that of the batch.
};
std::optional<FoldedBatch> foldedBatch(const Spec &spec); ///< Nullopt: it is none, shall not be one, or has errors.
Spec asOneProduct(const Spec &spec);                      ///< `one`, or the spec as it is.
// Its steps, in their order.
void decideFold(Draft &draft);    ///< `fold_batch`, of decideProblem.
void decideProblem(Draft &draft); ///< Target, types, layouts, swap, leading dimensions, alignments, alpha, beta.
/// Instruction, its shape, copy, swizzle. False when instruction and copy contradict, so that the rules of tiles are in
/// doubt.
bool decideFamily(Draft &draft);
/// Whether `length` is the short side of a product that streams the operand of the `other` one (Skinny.cpp). Both may
/// be.
bool isShort(int64_t length, int64_t other);
/// A product with a short side, 16-bit operands, k of 512 and more (320 where the other side is 256 and more, 96 where
/// the short one is at most 64 beside 768), all sizes known: it is planned as a stream. So are those of a batch, of 64
/// and more of k, where lines are shifted.
bool isSkinny(const Draft &draft);
/// Slices of k of a tile that the planner tries for any, and the k from which they may meet in memory, which takes
/// microseconds: of five products with less than 8192 two of 4512 and 4928 took 10 and 4% longer there, three of 6720
/// to 7112 11 to 16% less (H200, 2026-12-01, docs/hopper-l2.md, *Slices that share out the sum*).
constexpr int64_t mostSlices = 8, deepInMemory = 6144;
/// Of what more slices than that have of k, at least.
constexpr int64_t leastOfManySlices = 512;
/// Slices, or clusters whose slices have met, that may meet in memory.
constexpr int64_t mostInMemory = 64;
/// Slices in clusters run apart where k is deep: how many times as long they take, a tenth more for each doubling of k
/// beyond `from` (H200, 2026-11-25; docs/hopper-l2.md, *Slices that meet in memory*).
inline double runApart(int64_t k, double from) { return double(k) <= from ? 1 : 1 + 0.1 * std::log2(double(k) / from); }
/// What it takes the slices of a tile of so many sums to meet in a cluster.
double meetingNanoseconds(int64_t slices, int64_t elements);
/// From the launch of a stream to its end, and what sets its pace: `memory`, `the L2`, `tensor cores`, `shared memory`,
/// `the steps of k`.
struct StreamTime {
  double nanoseconds;
  double meeting; ///< Of them, what slices take to meet.
  const char *bound;
};
/// What the estimate of streams says of a complete plan; nothing where it does not know such a kernel.
std::optional<StreamTime> streamTime(const Draft &draft);
bool decideSkinnySwap(
    Draft &draft);               ///< Which operand is wgmma's side of 64 rows, where one side is short; false: either.
void decideStream(Draft &draft); ///< The cut of a skinny product.
void nextStream(Draft &draft);   ///< The next cut where one does not fit, or none.
/// Whether one side is so short that it would waste wgmma's 64 rows: it decides what is swapped, but of a plan the
/// other way round (`Way::turned`).
bool shortSideDecides(const Draft &draft);
double doubtOfTurned(const Draft &draft); ///< As doubtOf, of a skinny product the other way round.
/// Whether a short side could be either side of the kernel: nothing given says which it is, and D is as what was
/// measured, 16 bits without C. Not where it is contiguous and its rows start inside sectors, of which the model knows
/// too little.
bool mayTurnStream(const Draft &draft);
/// Parts of the clocks that shared memory's port would take for what the tensor cores read and for what TMA writes, one
/// by one (Model.cpp: *Tiles of all multiples of 8 columns*).
inline constexpr double portRead = 0.79, portWritten = 0.6;
/// The time of what goes on at once: more than the slowest of it where others take as long. A norm; the higher its
/// order, the less they hinder each other. One at least is not 0.
template <unsigned order> double atOnce(std::initializer_list<double> times) {
  double most = std::max(times), sum = 0;
  for (double each : times) {
    double part = each / most, power = 1;
    for (unsigned i = 0; i < order; ++i)
      power *= part;
    sum += power;
  }
  return most * std::pow(sum, 1.0 / order);
}
/// The same of an order that a fit has found.
inline double atOnce(llvm::ArrayRef<double> times, double order) {
  double sum = 0;
  for (double each : times)
    sum += std::pow(each, order);
  return std::pow(sum, 1 / order);
}
/// What is worth a look beside the plan of `draft`, whose split and store are decided; empty where the spec leaves no
/// choice (Ways.cpp).
std::vector<Way> otherWays(const Draft &draft);
/// Whether D in f32 has lines that start anywhere and a short side: its tiles are narrow, so that most sectors come
/// from two of them, and those of D^T leave straight from registers (2026-11-26, docs/hopper-shapes.md, *How a turned
/// stream leaves*). Wide ones leave faster as they lie, in whole sectors.
bool leavesFasterTurned(const Draft &draft);
/// What the estimate of another way, the one of `draft`, is multiplied with: it must promise more than estimates are
/// wrong by.
double doubtOf(const Draft &draft);
/// What the first legal one of another way's ranking costs, where that is less than `below` (Alternatives.cpp).
std::optional<double> costOfWay(const Spec &spec, Way way, double below);
/// Whether CTAs that share tiles of so many rows and columns keep enough SMs busy in the one wave that slices of k are
/// for; the kernel's m, then n.
bool worthSlicing(const Draft &draft, std::array<int64_t, 2> cluster, std::array<int64_t, 2> block);
/// Tiles of so few rows and columns that a step of theirs is short beside what it waits for.
bool isSmall(const Draft &draft, int64_t rowsAndColumns);
/// wgmma, for tiles of so many rows and columns of what is not streamed: k of a stage, where tiles are open, and the
/// most stages that pay.
int64_t depthOfStage(const Draft &draft, int64_t rowsAndColumns);
/// ... where that is half a line of shared memory or a quarter, which holds all k there is; 0: it does not.
int64_t depthOfShortK(const Draft &draft);
int64_t mostStagesOf(const Draft &draft, int64_t rowsAndColumns);
/// Of a stream's operand along the kernel's m (`ofM`) or n: whether that is contiguous in it, not k; whether its rows
/// start inside sectors of the L2 then; and the time that all k of all its tiles take to reach one CTA each
/// (StreamRows.cpp).
bool isContiguous(const Draft &draft, bool ofM);
bool hasSplitRows(const Draft &draft, bool ofM);
double rowsNanoseconds(const Draft &draft, bool ofM, int64_t tile);
const OperandSpec *longOperand(const Draft &draft);      ///< That a skinny product streams; nullptr: it is none.
std::vector<Stream> streams(const Draft &draft);         ///< All cuts of one that leaves it open, the fastest first.
std::optional<Stream> fastestStream(const Draft &draft); ///< The first of them.
void decideSplit(Draft &draft); ///< Before the shape: slices that meet in a cluster are one of its sides.
void checkSplit(Draft &draft);
/// Clusters of so many CTAs, each on an SM of its own, that the GPU holds at a time.
int64_t clustersAtATime(const Draft &draft, int64_t ctas);
/// The block tiles of D, when its sizes are known and a tile has been chosen (Split.cpp).
struct Grid {
  int64_t tilesM, tilesN; ///< Along the kernel's m and n.
  int64_t atATime;        ///< Tiles that the GPU works on at a time.
  bool longIsM;           ///< D has more rows than columns.
  bool skinny;            ///< Its other side is short.

  double filled() const { return double(tilesM) * double(tilesN) / double(atATime); } ///< Of what it works on.
  bool oneWave() const { return filled() <= 1; }
  /// Tiles along the shorter side of D: as many CTAs read the same rows of the long operand.
  int64_t alongShort() const { return longIsM ? tilesN : tilesM; }
};
std::optional<Grid> gridOf(const Draft &draft);
/// How the CTAs of a cluster along k share out the columns of a warpgroup's tile of sums.
ColumnShares columnShares(const Shape &shape);
/// Whether slices that meet in the workspace may each add a share, if all of them run at a time: of wgmma, of as many
/// tiles as are known.
bool mayShareSums(const Draft &draft);
/// The same of such slices.
ColumnShares sharesInMemory(int64_t columns, int64_t slices);
void decideOwners(Draft &draft, const Shape &shape);
/// `epilogue.overlap`: what the planner takes for a shape where the spec leaves it open, and why a shape cannot have
/// `steps` of it (empty: it can). Before the shape is chosen, what is decided later counts only where it is given.
int64_t storeOverlap(const Draft &draft, const Shape &shape);
/// Steps of 128 bytes of k: of fewer it is not taken where a spec leaves it open.
constexpr int64_t fewStepsBesideStores = 8;
std::string storeOverlapRefused(const Draft &draft, const Shape &shape, int64_t steps);
/// A spec that gives it: whole tiles of rows of D are wanted, whatever else would be the planner's choice.
inline bool asksForHalves(const Spec &spec) { return spec.storeOverlap.given && *spec.storeOverlap > 0; }
inline bool asksForHalves(const Draft &draft) { return asksForHalves(draft.spec()); }
/// Tiles of a shifted operand: one is multiplied, one waits for its release, one is filled.
constexpr int64_t shiftedStages = 3;
constexpr double shiftRate = 37.1; ///< Bytes a nanosecond that a warpgroup shifts (ShiftTime.cpp).
/// Products whose matrices, of 16-bit elements, lie so far apart. Tensor maps count in 31 bits: matrices, or where
/// these lie in different ways to multiples of 16 bytes, all such pieces of them.
constexpr int64_t mostShiftedProducts(int64_t stride) {
  return stride % 8 == 0 ? 2147483647 : (int64_t(1) << 33) / stride;
}
constexpr int64_t longestShifted = 192; ///< Elements of a line, in 64s: a box has 256 at most, eight of them around it.
/// Registers of sums, a thread of the one warpgroup that multiplies what another one shifts: at most, and with an even
/// share of the register file. Who shifts both operands spills where its share is less.
constexpr int64_t sumsOfEvenShare = 112;
inline int64_t sumsBesideShifter(const Draft &draft) {
  return draft.shiftsA() && draft.shiftsB() ? sumsOfEvenShare : 176;
}
constexpr double wgmmaProducts = 2048; ///< Multiply-adds of 16 bits that an SM does in a clock.
constexpr int64_t mostStages = 15;     ///< wgmma: what the barriers' 256 bytes are enough for.
/// Store and how C is read, before the shape: the epilogue's buffers count in the shared memory budget.
void decideEpilogue(Draft &draft);
/// Whether lanes store D where TMA could, so that whole sectors are written.
bool storesByLanesForSectors(const Draft &draft);
/// wgmma: whether CTAs take tiles from a counter, as D decides and the L2 does not hold it, or less than half of it
/// where lines start at sectors. CTAs that know their tiles by themselves drift apart, until what two of them write of
/// a sector or a line comes too late to meet in the L2 (docs/hopper-l2.md, *Tiles that drift apart*).
bool keepsTilesTogether(const Draft &draft);
/// mma: whether its warps store such a D, whose lines tiles cut, through shared memory, in whole lines of a tile.
bool collectsSectors(const Draft &draft);
/// Of the given ones, when the shape is known.
void checkEpilogue(Draft &draft);
/// `a.repack`, `b.repack` (Repack.cpp), for a problem that TMA could read else; `asked`: the field that asks for TMA.
void decideRepack(Draft &draft, llvm::StringRef asked);
/// `way`, and whether it is a shallow stream (Skinny.cpp): few rows or columns, few k, lines that start anywhere.
Way orShallow(const Spec &spec, Way way);
/// The way in which the lines of operands come that TMA cannot read as they lie: as `way` has it, or as streams of few
/// k or of a batch.
Way wayOfLines(const Spec &spec, Way way);
/// Nanoseconds of the copy that one operand needs in front of a stream whose other one's lines are shifted.
double copyBesideShifted(const Draft &draft);
/// Another way to read an operand than the one that decideRepack has chosen, where there is one.
struct RepackChoice {
  OperandSpec Spec::*operand;
  const char *path;
  Repack how;
  std::optional<double> times; ///< Its time, of that of the other one; a given tile has no estimate.
};
std::optional<RepackChoice> otherRepack(const Draft &draft);
std::optional<RepackChoice> otherRepackOfBatch(const Spec &spec); ///< ... that `wayOfLines` has.
/// Both off, because of `why`; reports those that are given as on or inside, unless somebody does who reports all that
/// need TMA.
void refuseRepack(Draft &draft, const std::string &why, bool reported = true);
void decideShape(Draft &draft);     ///< Schedule, tiles, cluster, stages: the best legal candidate.
void decideRest(Draft &draft);      ///< Raster, persistence, store.
void decideOverlap(Draft &draft);   ///< Kernels with each other, products with waits; the last one.
void decideFragments(Draft &draft); ///< How shared memory gets into registers; the shape of wgmma.
/// mma, wmma: the shape of the instruction, of f64 the least one (`matrixOf`). False, and reported, where the target
/// has none for the types.
bool decideMatrix(Draft &draft);
bool hasSmallD(const Draft &draft); ///< D has less than a tile of 64x64 for each SM.
/// Whether that holds, or D is not much wider than such a tile, or wgmma would need both operands turned: mma, of 8 to
/// 32 bits, of which many tiles were measured (MmaTiles.cpp). Steps in a row (stream-K) were not.
bool hasMeasuredTiles(const Draft &draft);
/// mma, wmma: the instruction of a kernel of this shape.
const MatrixInstruction &matrixOf(const Draft &draft, const Shape &shape);
void checkTiles(Draft &draft); ///< Those of a batch of known sizes have numbers in 31 bits.
void addRequirements(Draft &draft);

/// The name a shape's direction has for the user: with swapped operands the kernel's m is the problem's n.
const char *userDimension(const Draft &draft, char kernelDimension);
/// The place of element `index` of a list whose text is `list`, or the whole list when it is not to be found.
llvm::SMRange elementRange(llvm::SMRange list, unsigned index, int64_t value);

} // namespace gemmc::plan
