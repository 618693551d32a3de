/// The plan: a complete spec, checked against the target, and what follows from it. The compiler decides nothing after
/// this; the same plan always gives the same kernel.
///
/// Two views live here. `spec` is the user's: m, n, a, b as written. The rest is the kernel's: when `swapOperands` is
/// on the kernel computes D^T = B^T A^T, so its A is the user's b and its block tile is the user's with m and n
/// exchanged.
#pragma once
#include "gemmc/Spec/Spec.h"
#include "gemmc/Support/Expr.h"
#include <vector>

namespace gemmc {

/// An operand of the kernel: a matrix of rows x cols.
struct PlanOperand {
  std::string buffer; ///< The user's name: a, b, c, d.
  Elem type = Elem::f16;
  Order order = Order::row;
  Expr ld; ///< Elements: a constant, or the variable `lda`, `ldb`, `ldc`, `ldd` of the user's operand.
  /// Elements from one product's matrix to the next one's: a constant, or the variable `stride_a`...; 0: they share
  /// one.
  Expr batchStride = 0;
  unsigned align = 16;   ///< Bytes that every row (column) start is a multiple of: gcd of base alignment and ld bytes.
  llvm::SMRange range;   ///< Of the spec.
  bool repacked = false; ///< A kernel in front copies it to the workspace, where its lines are `packedLd` apart.
  Expr packedLd;         ///< Elements.
  bool turned = false;   ///< The copy has k contiguous, the operand has not; `order` is that of the copy.
  bool shifted = false;  ///< A warpgroup of the kernel shifts its lines into place; they start anywhere.
};

struct Plan {
  Spec spec; ///< Complete: every field decided, reasons recorded.
  bool swapped = false;
  bool asTheyLie = false; ///< mma reads operands as they lie, as that is faster than copies and wgmma.

  // The kernel's view.
  Expr m, n, k;   ///< Constants, or the variables m, n, k of the *user's* problem (swapped: m is user's `n`).
  Expr batch = 1; ///< Products: a constant, or the variable `batch`.
  PlanOperand a, b, c,
      d; ///< a: m x k, b: k x n, c and d: m x n, as the kernel sees them (layouts flipped when swapped).
  int64_t blockM = 0, blockN = 0, blockK = 0;
  int64_t warpK = 0;            ///< Less than blockK: warps multiply slices of k.
  int64_t warpM = 0, warpN = 0; ///< mma: tile of one warp; wgmma: tile of one consumer warpgroup (M a multiple of 64).
  int64_t clusterM = 1, clusterN = 1;
  int64_t clusterK = 1;      ///< CTAs that share the k steps of a tile through the cluster's shared memory.
  bool exchangeOver = false; ///< Their sums take the place of the operand tiles.
  RasterOrder rasterOrder = RasterOrder::along_m; ///< Swapped: the other one than the spec's; hilbert stays.
  unsigned threads = 0;                           ///< Of a CTA, producer warps included.
  unsigned consumerWarpgroups = 0;                ///< wgmma: warpgroups that multiply.
  unsigned shiftedStages = 0; ///< Of a shifted operand: tiles in place. `stages` counts lines on their way.
  unsigned producerRegs = 0, consumerRegs = 0; ///< setmaxnreg values; 0 = not used.
  unsigned residentCtas = 1;                   ///< CTAs of an SM that the registers must suffice for.
  bool negateA = false, negateB = false;       ///< The kernel's operands.
  CachePolicy cacheA = CachePolicy::normal, cacheB = CachePolicy::normal;
  unsigned storeBuffers = 0; ///< wgmma, store through shared memory: buffers of each warp.
  bool wholeSectors = false; ///< wgmma, store `staged`: lanes write lines of D in whole sectors of the L2.
  int64_t sharedBytes = 0;   ///< Estimate that was checked against the target's limit.
  /// Bytes one copy instruction moves: 16, 8, 4 (cp.async) or the element size (ld). TMA: 16.
  unsigned copyBytesA = 16, copyBytesB = 16;
  FragmentLoad loadA = FragmentLoad::descriptor, loadB = FragmentLoad::descriptor;
  /// Conditions on the launch variables under which this plan is right (alignment of dynamic leading dimensions and
  /// pointers for TMA and 16-byte copies, k > 0...). When one fails at launch, the caller plans again with
  /// `align`/`ld` lowered or `instruction: mma`, `copy: ld`.
  std::vector<Expr> requirements;

  /// Parts of a tile that meet in the workspace: its slices, or of those that meet in a cluster before what comes of
  /// it.
  int64_t slicesInMemory() const {
    const bool meet = *spec.split == SplitMode::split_k && *spec.splitThrough == SplitThrough::workspace;
    return meet ? *spec.splitSlices / clusterK : 1;
  }
};

/// A size of a spec: a constant, or the variable that it is given in at launch.
Expr exprOf(const Field<Size> &size, llvm::StringRef variable);

/// Limits of a target (CUDA C Programming Guide, compute capabilities).
struct TargetLimits {
  int64_t sharedPerBlock; ///< Opt-in bytes: 166912 (sm_80), 101376 (sm_86, sm_89), 232448 (sm_90a).
  int64_t sharedPerSM;
  unsigned sms; ///< Typical, for the planner's wave estimate: 108, 84, 142, 132.
  unsigned maxThreads = 1024;
  unsigned registersPerSM = 65536;
};
TargetLimits limitsOf(Target target);

/// Decides every open field and checks the whole; nullopt after a reported error (budget errors give the arithmetic).
std::optional<Plan> makePlan(const Spec &spec, Diags &diags);

/// A way to fill what `spec` leaves open, as applyChoice takes it, and what the ranking goes by: its estimated clocks,
/// of a product at the power limit also its energy.
struct Alternative {
  std::string choice;
  double cost = 0;
  bool estimated = true; ///< Else the cost says its place alone: behind the streams of a skinny product.
};
/// The legal ways, cheapest first, at most `count` of them (0 = all): schedules and tiles. Empty after a reported
/// error.
std::vector<Alternative> alternatives(const Spec &spec, unsigned count, Diags &diags);

/// The plan that is right whenever `plan`'s requirements are not: element-wise copies, mma.sync, any alignment, K = 0.
/// Keeps types, layouts and sizes.
std::optional<Plan> makeFallbackPlan(const Spec &spec, Diags &diags);

/// The plan as JSON: `fields` (path, value, given, reason) of the complete spec, `kernel` what follows from it in the
/// kernel's view, `requirements` as texts.
std::string printPlanJson(const Plan &plan);

} // namespace gemmc
