#include "gemmc/Driver/Compiler.h"
#include "gemmc/Lower/Lower.h"
#include "gemmc/PTX/CleanUp.h"
#include "gemmc/Passes/Passes.h"
#include "gemmc/Plan/Fallback.h"
#include "gemmc/Tile/Build.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc {
namespace {

#ifdef NDEBUG
constexpr bool alwaysVerify = false;
#else
constexpr bool alwaysVerify = true;
#endif

/// The operands in the user's view.
ptx::OperandInfo operandInfo(const OperandSpec &spec, const PlanOperand &plan, bool batch) {
  return {*spec.type, *spec.layout, plan.ld, batch ? exprOf(spec.batchStride, "stride_" + plan.buffer) : Expr(0)};
}

/// The problem-wide half of the launch information, from the plan.
ptx::LaunchInfo launchInfo(const Plan &plan, ptx::KernelInfo &kernel) {
  const Spec &spec = plan.spec;
  ptx::LaunchInfo info;
  info.requirements = plan.requirements;
  info.m = exprOf(spec.m, "m");
  info.n = exprOf(spec.n, "n");
  info.k = exprOf(spec.k, "k");
  info.batch = exprOf(spec.batch, "batch");
  info.a = operandInfo(spec.a, plan.swapped ? plan.b : plan.a, isBatch(spec));
  info.b = operandInfo(spec.b, plan.swapped ? plan.a : plan.b, isBatch(spec));
  info.c = operandInfo(spec.c, plan.c, isBatch(spec));
  info.d = operandInfo(spec.d, plan.d, isBatch(spec));
  info.accumulator = *spec.accumulator;
  info.bits = static_cast<ptx::BitProduct>(*spec.bitOperation); // the same words in the same order
  info.negated = plan.negateA != plan.negateB;
  if (*spec.fastAccumulation == Persistence::off)
    info.promoted = uint32_t(*spec.instruction == Instruction::wgmma ? plan.blockK : (*spec.matrixShape)[2]);
  info.alpha = spec.alpha.value.fixed;
  info.beta = spec.beta.value.fixed;
  // Else no cluster has tiles to itself, nobody knows which ones, or tiles are of several products.
  const bool toItself = *spec.split == SplitMode::none || *spec.splitThrough == SplitThrough::cluster;
  if (toItself && *spec.scheduler == Scheduler::fixed && !isFolded(spec)) {
    info.blockM = plan.swapped ? plan.blockN : plan.blockM;
    info.blockN = plan.swapped ? plan.blockM : plan.blockN;
  }
  // Where alpha is given at launch, alpha == 0 makes the k-loop empty: A and B are not read then.
  if (!info.alpha)
    for (ptx::ParamInfo &param : kernel.params)
      if (param.name == "k" && plan.requirements.empty() | (*spec.instruction != Instruction::wgmma))
        param.value = info.k * equal(Expr::var("alpha_is_zero"), 0);
  return info;
}

/// The lines of the spec's file that the regions of the kernel come from. Values of `--set` stand in no file.
ptx::SpecInfo specInfo(const Spec &spec, const ptx::KernelInfo &kernel, const std::string &file, const Diags &diags) {
  const std::pair<llvm::StringLiteral, llvm::SMRange> fields[] = {
      {"tile.block", spec.block.range},       {"tile.warp", spec.warp.range},
      {"pipeline.stages", spec.stages.range}, {"raster.scheduler", spec.scheduler.range},
      {"epilogue.store", spec.store.range},   {"epilogue.c", spec.loadC.range},
      {"a.repack", spec.a.repack.range},      {"b.repack", spec.b.repack.range}};
  ptx::SpecInfo info;
  auto plain = [](char c) { return llvm::isASCII(c) && c != '"' && c != '\\' && c != '\n'; }; // ptxas reads no others
  if (file.empty() || !llvm::all_of(file, plain))
    return info;
  info.file = file;
  for (const auto &[path, range] : fields) {
    bool named = llvm::any_of(kernel.memory, [&](const ptx::RegionInfo &region) { return region.field == path; });
    std::string place = named && range.isValid() ? diags.place(range.Start) : ""; // file:line:column
    llvm::StringRef rest = place;
    unsigned line;
    if (rest.consume_front(file) && rest.consume_front(":") && !rest.consumeInteger(10, line))
      info.lines.emplace_back(path.str(), line);
  }
  return info;
}
} // namespace

std::optional<Compiled> compilePlan(const Plan &plan, Diags &diags, const CompileOptions &options) {
  auto tell = [&](llvm::StringRef pass, const tile::Kernel &kernel) {
    if (options.afterPass)
      options.afterPass(pass, tile::print(kernel));
  };
  bool verifyEach = options.verifyEach || alwaysVerify;
  tile::Kernel kernel = tile::buildKernel(plan);
  tell("build", kernel);
  for (const tile::Pass &pass : tile::passes()) {
    if (!tile::concerns(pass, kernel))
      continue;
    pass.run(kernel);
    tell(pass.name, kernel);
    if (verifyEach && !tile::verify(kernel, diags))
      return std::nullopt;
  }

  Lowered lowered = lowerKernel(kernel);
  if (options.afterPass)
    options.afterPass("lower", ptx::print(lowered.module));
  if (options.cleanUp)
    for (ptx::Function &function : lowered.module.functions)
      ptx::cleanUp(function);
  if (verifyEach && !ptx::verifyProgram(lowered.module, diags))
    return std::nullopt;

  Compiled result{plan, launchInfo(plan, lowered.kernel), ""};
  result.launch.workspace = lowered.workspace;
  result.launch.spec = specInfo(plan.spec, lowered.kernel, options.file, diags);
  for (ptx::KernelInfo &first : lowered.before)
    result.launch.kernels.push_back(std::move(first));
  result.launch.kernels.push_back(std::move(lowered.kernel));
  lowered.module.header = ptx::toHeader(result.launch);
  result.ptx = ptx::print(lowered.module);
  if (options.afterPass)
    options.afterPass("clean-up", result.ptx);
  return result;
}

std::optional<Compiled> compileSpec(const Spec &spec, Diags &diags, const CompileOptions &options) {
  std::optional<Plan> plan = makePlan(spec, diags);
  return plan ? compilePlan(*plan, diags, options) : std::nullopt;
}

std::optional<Compiled> compileChoice(const Spec &spec, llvm::StringRef choice) {
  Diags scratch;
  Spec variant = spec;
  return applyChoice(variant, choice, scratch) ? compileSpec(variant, scratch) : std::nullopt;
}

std::optional<Compiled> compileFallback(const Spec &spec, Fallback kind, Diags &diags, const CompileOptions &options) {
  std::optional<Plan> plan = kind == Fallback::repack ? makeRepackPlan(spec) : makeFallbackPlan(spec, diags);
  return plan ? compilePlan(*plan, diags, options) : std::nullopt;
}

} // namespace gemmc
