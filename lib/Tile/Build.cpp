#include "gemmc/Tile/Build.h"

namespace gemmc::tile {
namespace {

Op tensorOf(const PlanOperand &operand, llvm::StringRef name, const Expr &rows, const Expr &cols) {
  Op op(OpKind::Tensor, name);
  op.set("buffer", operand.buffer).set("type", nameOf(operand.type));
  op.set("rows", rows).set("cols", cols).set("order", nameOf(operand.order));
  op.set("ld", operand.repacked ? operand.packedLd : operand.ld).set("align", int64_t(operand.align));
  if (operand.repacked)
    op.set("repack", operand.ld);
  if (operand.turned)
    op.set("turn", "on");
  if (operand.shifted)
    op.set("shift", "on");
  if (operand.batchStride != Expr(0))
    op.set("batch", operand.batchStride);
  op.range = operand.range;
  return op;
}

Op sharedOf(const PlanOperand &operand, llvm::StringRef name, int64_t mn, int64_t k, bool kMajor) {
  Op op(OpKind::Shared, name);
  op.set("type", nameOf(operand.type)).set("extent", std::vector<Expr>{mn, k}).set("major", kMajor ? "k" : "mn");
  op.range = operand.range;
  return op;
}

/// `1.5`, `dynamic`: a scale as a word of the store.
std::string wordOf(const Scale &scale) {
  if (scale.dynamic())
    return "dynamic";
  char text[32];
  snprintf(text, sizeof text, "%.17g", *scale.fixed == 0 ? 0.0 : *scale.fixed);
  return text;
}

/// Whether the instruction negates operands: wgmma, but of integers.
bool takesSigns(const Plan &plan) {
  return *plan.spec.instruction == Instruction::wgmma && !isInteger(*plan.spec.a.type);
}

/// alpha, with the signs of operands that no instruction takes care of.
std::string productScale(const Plan &plan) {
  Scale scale = *plan.spec.alpha;
  if (plan.negateA == plan.negateB || takesSigns(plan))
    return wordOf(scale);
  if (scale.dynamic())
    return "-dynamic";
  scale.fixed = -*scale.fixed;
  return wordOf(scale);
}

/// With alpha == 0 neither A nor B may be read: k is 0 then, and only known at launch when alpha is.
Expr effectiveK(const Plan &plan) {
  const Scale &alpha = *plan.spec.alpha;
  if (*plan.spec.instruction == Instruction::wgmma || *plan.spec.instruction == Instruction::fma)
    return plan.k; // the plan requires alpha != 0 and k > 0
  if (alpha.dynamic())
    return Expr::var("k");
  return *alpha.fixed == 0 ? Expr(0) : plan.k;
}

/// The matrix instruction and how its operands get into registers.
void configureFragments(Op &root, const Plan &plan) {
  const Spec &spec = plan.spec;
  const auto &shape = *spec.matrixShape;
  root.set("matrix", std::vector<Expr>{shape[0], shape[1], shape[2]});
  root.set("load_a", nameOf(plan.loadA)).set("load_b", nameOf(plan.loadB));
  root.set("buffers", *spec.fragmentBuffers).set("order", nameOf(*spec.fragmentOrder));
  if (*spec.bitOperation != BitOperation::none)
    root.set("bits", nameOf(*spec.bitOperation));
}

/// Whether lanes bring C to their sums before D is staged. Where its lines are whole 16 bytes and C lies in the same
/// order, they are faster at adding it to lines on the way out (H200, 2026-11-28, docs/hopper-types.md), and beside
/// more sums, of tiles that somebody asked for, ptxas 13 spills.
bool bringsFragments(const Plan &plan) {
  constexpr int64_t mostSums = 144, groupThreads = 128;
  const Spec &s = plan.spec;
  if (*s.instruction != Instruction::wgmma || s.beta.value == Scale{0.0} || *s.store == StoreKind::direct)
    return false;
  const int64_t sums = plan.warpM * plan.warpN / groupThreads * bytesOf(*s.accumulator) / 4;
  return *s.store == StoreKind::tma || (sums <= mostSums && (plan.c.order != plan.d.order || plan.d.align % 16 != 0));
}

void configure(Op &root, const Plan &plan, const Expr &k) {
  const Spec &spec = plan.spec;
  root.set("target", nameOf(*spec.target)).set("threads", int64_t(plan.threads));
  root.set("m", plan.m).set("n", plan.n).set("k", k);
  if (plan.batch != Expr(1))
    root.set("batch", plan.batch);
  root.set("block", std::vector<Expr>{plan.blockM, plan.blockN, plan.blockK});
  root.set("warp", std::vector<Expr>{plan.warpM, plan.warpN});
  root.set("cluster", std::vector<Expr>{plan.clusterM, plan.clusterN});
  root.set("instruction", nameOf(*spec.instruction)).set("copy", nameOf(*spec.copy));
  root.set("copy_bytes", std::vector<Expr>{plan.copyBytesA, plan.copyBytesB});
  root.set("stages", *spec.stages).set("schedule", nameOf(*spec.schedule)).set("swizzle", nameOf(*spec.swizzle));
  if (*spec.instruction == Instruction::mma || *spec.instruction == Instruction::wmma)
    configureFragments(root, plan);
  else if (*spec.instruction == Instruction::wgmma && plan.loadA != FragmentLoad::descriptor)
    root.set("load_a", nameOf(plan.loadA));
  if (plan.warpK < plan.blockK)
    root.set("slices", plan.blockK / plan.warpK);
  if (*spec.loadC != StoreKind::direct)
    root.set("load_c", nameOf(*spec.loadC));
  else if (bringsFragments(plan))
    root.set("load_c", "fragments");
  if (*spec.swizzle == Swizzle::padded)
    root.set("padding", *spec.padding);
  root.set("raster", nameOf(plan.rasterOrder)).set("group", *spec.rasterGroup);
  root.set("persistent", *spec.persistent == Persistence::on ? "on" : "off");
  if (*spec.scheduler == Scheduler::dynamic)
    root.set("scheduler", "dynamic");
  if (*spec.split == SplitMode::split_k && plan.slicesInMemory() > 1)
    root.set("split_slices", plan.slicesInMemory());
  if (plan.clusterK > 1)
    root.set("cluster_k", plan.clusterK).set("exchange", plan.exchangeOver ? "over" : "apart");
  if (*spec.dependent == Persistence::on)
    root.set("dependent", "on");
  if (*spec.dependent == Persistence::on && *spec.trigger != Trigger::start)
    root.set("trigger", nameOf(*spec.trigger));
  if (plan.shiftedStages)
    root.set("shifted_stages", int64_t(plan.shiftedStages));
  if (*spec.fastAccumulation == Persistence::off)
    root.set("promote", "on");
  if (*spec.inFlight > 1)
    root.set("in_flight", *spec.inFlight);
  if (*spec.storeOverlap > 0)
    root.set("overlap", *spec.storeOverlap);
  if (*spec.prefetch > 0)
    root.set("prefetch", *spec.prefetch);
  root.set("store", nameOf(*spec.store)).set("consumers", int64_t(plan.consumerWarpgroups));
  root.set("resident", int64_t(plan.residentCtas));
  if (plan.storeBuffers)
    root.set("store_buffers", int64_t(plan.storeBuffers));
  if (plan.consumerRegs)
    root.set("producer_regs", int64_t(plan.producerRegs)).set("consumer_regs", int64_t(plan.consumerRegs));
}

Op copyOf(llvm::StringRef name, Ref from, CachePolicy cache) {
  Op copy = Op(OpKind::Copy, name).set("from", std::move(from));
  if (cache != CachePolicy::normal)
    copy.set("cache", nameOf(cache));
  return copy;
}

/// The steps of one part of a tile: a number where the CTAs of a cluster share them evenly.
Expr stepsOfPart(const Plan &plan, const Expr &k) {
  Expr steps = ceilDiv(k, plan.blockK);
  bool even =
      plan.clusterK > 1 && plan.slicesInMemory() == 1 && steps.isConst() && steps.constant() % plan.clusterK == 0;
  return even ? Expr(steps.constant() / plan.clusterK) : Expr::var("kn");
}

/// Which tile a CTA brings. Clusters are whole: where a cluster's last CTAs have no tile, they bring the one before, as
/// rows beyond the matrix, however few, would slow down all copies (docs/hopper-l2.md, *Rows that are not there*).
Expr tileThere(const char *variable, const Expr &extent, int64_t block, int64_t cluster) {
  Expr tiles = ceilDiv(extent, block);
  if (cluster == 1 || (tiles.isConst() && tiles.constant() % cluster == 0))
    return Expr::var(variable);
  return minOf(Expr::var(variable), tiles - 1);
}

/// Where CTAs share a tile's k steps, this one's begin at step `kf` and are `kn`.
struct Steps {
  Steps(const Plan &plan, const Expr &k) : split(*plan.spec.split != SplitMode::none) {
    depth = (split ? Expr::var("kf") + Expr::var("kt") : Expr::var("kt")) * plan.blockK;
    loop.set("from", int64_t(0)).set("to", split ? stepsOfPart(plan, k) : ceilDiv(k, plan.blockK));
  }
  bool split;
  Expr depth = 0;
  Op loop{OpKind::For, "kt"};
};

Op storeOf(const Plan &plan, const Expr &row, const Expr &col, bool readsC) {
  Op store(OpKind::Store, Ref{"D", {row, col}});
  store.set("from", Ref{"acc", {}}).set("alpha", productScale(plan)).set("beta", wordOf(*plan.spec.beta));
  if (readsC)
    store.set("c", Ref{"C", {row, col}});
  store.set("via", nameOf(*plan.spec.store));
  if (plan.wholeSectors)
    store.set("sectors", "whole");
  store.range = plan.d.range;
  return store;
}

/// A matrix by a vector: A is the matrix, of which threads load their elements straight from memory.
Op vectorLoop(const Plan &plan, const Expr &k, bool readsC) {
  Steps steps(plan, k);
  const Expr row = Expr::var("tm") * plan.blockM, col = Expr::var("tn");
  steps.loop.body.push_back(
      Op(OpKind::Dot, "acc").set("a", Ref{"A", {row, steps.depth}}).set("b", Ref{"B", {steps.depth, col}}));
  Op meet = Op(OpKind::Meet, "acc").set("through", Ref{"sR", {}}), tiles(OpKind::Tiles);
  if (steps.split) {
    meet.set("slices", plan.clusterK);
    tiles.set("parts", "cluster");
  }
  tiles.body = {Op(OpKind::Zero, "acc"), std::move(steps.loop), std::move(meet), storeOf(plan, row, col, readsC)};
  return tiles;
}

Op tileLoop(const Plan &plan, const Expr &k, bool readsC) {
  Steps steps(plan, k);
  const bool split = steps.split;
  Expr row = Expr::var("tm") * plan.blockM, col = Expr::var("tn") * plan.blockN, depth = steps.depth;
  Op &loop = steps.loop;
  Expr rowOfA = tileThere("tm", plan.m, plan.blockM, plan.clusterM) * plan.blockM;
  Expr colOfB = tileThere("tn", plan.n, plan.blockN, plan.clusterN) * plan.blockN;
  loop.body.push_back(copyOf("sA", Ref{"A", {rowOfA, depth}}, plan.cacheA));
  loop.body.push_back(copyOf("sB", Ref{"B", {depth, colOfB}}, plan.cacheB));
  Op multiply = Op(OpKind::Multiply, "acc").set("a", Ref{"sA", {}}).set("b", Ref{"sB", {}});
  if ((plan.negateA || plan.negateB) && takesSigns(plan))
    multiply.set("negate", plan.negateA && plan.negateB ? "ab" : plan.negateA ? "a" : "b");
  loop.body.push_back(std::move(multiply));

  std::vector<Op> end;
  if (isInteger(*plan.spec.accumulator) && !isInteger(plan.d.type))
    end.push_back(Op(OpKind::Convert, "acc").set("to", "f32"));
  end.push_back(storeOf(plan, row, col, readsC));

  Op tiles(OpKind::Tiles);
  tiles.body.push_back(Op(OpKind::Zero, "acc"));
  tiles.body.push_back(std::move(loop));
  if (!split) {
    tiles.body.insert(tiles.body.end(), end.begin(), end.end());
    return tiles;
  }
  // Slices of a cluster meet first, then in the workspace what each CTA has of their sums.
  const bool inMemory = plan.clusterK == 1 || plan.slicesInMemory() > 1;
  tiles.set("parts", inMemory ? nameOf(*plan.spec.split) : "cluster");
  auto meet = [&](Op how) {
    how.body = std::move(end);
    end = {std::move(how)};
  };
  if (inMemory) {
    Op gather(OpKind::Gather, "acc");
    if (plan.clusterK == 1 && *plan.spec.splitOwners > 1)
      gather.set("owners", *plan.spec.splitOwners);
    meet(std::move(gather));
  }
  if (plan.clusterK > 1)
    meet(Op(OpKind::Exchange, "acc").set("slices", plan.clusterK).set("owners", *plan.spec.splitOwners));
  tiles.body.push_back(std::move(end.front()));
  return tiles;
}
} // namespace

Kernel buildKernel(const Plan &plan) {
  Expr k = effectiveK(plan);
  const Scale &beta = *plan.spec.beta;
  bool readsC = beta.dynamic() || *beta.fixed != 0;

  Kernel kernel;
  kernel.root.subject.name = *plan.spec.name;
  configure(kernel.root, plan, k);
  std::vector<Op> &body = kernel.body();
  // The loop runs no step when alpha is 0 at launch; where it runs, the tensors have their known depth.
  const Expr &depth = plan.spec.alpha.value.dynamic() && plan.k.isConst() ? plan.k : k;
  body.push_back(tensorOf(plan.a, "A", plan.m, depth));
  body.push_back(tensorOf(plan.b, "B", depth, plan.n));
  if (readsC)
    body.push_back(tensorOf(plan.c, "C", plan.m, plan.n));
  body.push_back(tensorOf(plan.d, "D", plan.m, plan.n));
  if (*plan.spec.instruction == Instruction::fma) {
    const int64_t parts = plan.blockK / plan.warpK + (plan.clusterK > 1 ? 1 : 0); // of warps; the CTA's own
    body.push_back(Op(OpKind::Shared, "sR")
                       .set("type", nameOf(*plan.spec.accumulator))
                       .set("extent", std::vector<Expr>{plan.blockM, parts})
                       .set("major", "mn")
                       .set("swizzle", "rows"));
    body.push_back(Op(OpKind::Accumulator, "acc")
                       .set("type", nameOf(*plan.spec.accumulator))
                       .set("tile", std::vector<Expr>{plan.blockM, plan.blockN})
                       .set("warp", std::vector<Expr>{plan.warpM, plan.warpN}));
    body.push_back(vectorLoop(plan, k, readsC));
    return kernel;
  }
  body.push_back(sharedOf(plan.a, "sA", plan.blockM, plan.blockK, plan.a.order == Order::row));
  body.push_back(sharedOf(plan.b, "sB", plan.blockN, plan.blockK, plan.b.order == Order::col));
  body.push_back(Op(OpKind::Accumulator, "acc")
                     .set("type", nameOf(*plan.spec.accumulator))
                     .set("tile", std::vector<Expr>{plan.blockM, plan.blockN}));
  body.push_back(tileLoop(plan, k, readsC));
  return kernel;
}
} // namespace gemmc::tile
