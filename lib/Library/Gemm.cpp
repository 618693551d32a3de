#include "gemmc/Library/Gemm.h"
#include "gemmc/Driver/Compiler.h"
#include "gemmc/Plan/Fallback.h"
#include "gemmc/Plan/Typical.h"
#include "gemmc/Tune/Choose.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc {

struct Gemm::Compilation {
  std::mutex mutex; ///< Of the kernels that are compiled later, which report into the same sink.
  Diags diags;
  std::optional<Spec> spec;
  tune::ChooseOptions choice;
  /// By their PTX: ranges may have the same kernel.
  std::map<std::string, std::shared_ptr<const GpuModule>> modules;

  Failure failure() const {
    std::string messages;
    llvm::raw_string_ostream os(messages);
    diags.print(os);
    return Failure::make(Diag::gemm_spec, llvm::StringRef(messages).rtrim());
  }
};

Gemm::Gemm() : compilation(std::make_unique<Compilation>()) {}
Gemm::~Gemm() = default;

Outcome<std::shared_ptr<const Gemm>> Gemm::create(std::string_view spec, const Options &options) {
  std::shared_ptr<Gemm> gemm(new Gemm);
  Compilation &compilation = *gemm->compilation;
  std::vector<Override> overrides;
  for (const auto &[path, value] : options.overrides)
    overrides.push_back({path, value});
  llvm::StringRef source = compilation.diags.addSource(options.name, llvm::StringRef(spec.data(), spec.size()));
  compilation.spec = readSpec(source, overrides, compilation.diags, options.name);
  if (!compilation.spec || compilation.diags.hasErrors())
    return compilation.failure();
  const Spec &given = *compilation.spec;
  gemm->ranged = hasRanges(given);

  auto open = [&]() -> Outcome<std::shared_ptr<const Device>> {
    auto driver = Driver::load(options.driver);
    return driver ? Device::open(*driver) : driver.failure();
  };
  auto device = open();
  if (!device) // what is wrong with the spec comes first
    return makePlan(given, compilation.diags) ? device.failure() : compilation.failure();
  gemm->device = *device;
  compilation.choice.off = !options.tuning;
  compilation.choice.device = (*device)->name;
  compilation.choice.database = options.database;
  gemm->base = std::make_unique<Range>();
  if (auto failed = gemm->prepareFirst(*gemm->base))
    return *failed;
  return std::shared_ptr<const Gemm>(std::move(gemm));
}

/// Whether another load of the same kernel can only fail as this one did.
static bool isFinal(const Failure &failure) { return failure.code == 0 || failure.id == Diag::ptx_rejected; }

bool Gemm::Kernel::rests() {
  unsigned left = rest;
  while (left && !rest.compare_exchange_weak(left, left - 1)) {
  }
  return left;
}

MaybeFailure Gemm::prepare(Kernel &kernel, const Sizes &typical, bool required, MakePlan makePlan) const {
  if (kernel.ready)
    return kernel.failure;
  std::lock_guard lock(compilation->mutex);
  if (kernel.ready)
    return kernel.failure;
  if (!kernel.text) {
    Diags &diags = compilation->diags;
    auto plan = makePlan(plannedFor(*compilation->spec, typical), diags);
    auto compiled = plan ? compilePlan(*plan, diags) : std::nullopt;
    if (!compiled) {
      if (required)
        kernel.failure = compilation->failure();
      kernel.ready = true;
      return kernel.failure;
    }
    kernel.text = &compilation->modules.try_emplace(compiled->ptx).first->first;
    kernel.launch = std::move(compiled->launch);
  }
  std::shared_ptr<const GpuModule> &module = compilation->modules.find(*kernel.text)->second;
  kernel.failure.reset();
  if (!module) {
    auto loaded = GpuModule::load(device, *kernel.text, kernel.launch, targetOf(*kernel.text));
    if (loaded)
      module = *loaded;
    else
      kernel.failure = loaded.failure();
  }
  if (kernel.failure && !isFinal(*kernel.failure)) { // each try may take as long as the kernel's assembly
    constexpr unsigned longest = 10;
    kernel.rest = (1u << std::min(kernel.failures.load(), longest)) - 1;
    ++kernel.failures;
    return kernel.failure;
  }
  kernel.module = module;
  kernel.launch = {};
  kernel.ready = true;
  return kernel.failure;
}

MaybeFailure Gemm::prepareFirst(Range &range) const {
  return prepare(range.first, range.typical, /*required=*/true,
                 [&](const Spec &spec, Diags &diags) { return tune::choosePlan(spec, compilation->choice, diags); });
}

MaybeFailure Gemm::prepareRepack(Range &range) const {
  return prepare(range.repack, range.typical, /*required=*/false,
                 [](const Spec &spec, Diags &) { return makeRepackPlan(spec); });
}

MaybeFailure Gemm::prepareBare(Range &range) const {
  return prepare(range.bare, range.typical, /*required=*/false,
                 [](const Spec &spec, Diags &) { return makePlanWithoutWorkspace(spec); });
}

MaybeFailure Gemm::preparePlain() const { return prepare(plain, {}, /*required=*/true, makeFallbackPlan); }

MaybeFailure Gemm::prepareFallback() const {
  MaybeFailure bare = prepareBare(*base), repack = prepareRepack(*base), last = preparePlain(); // each may be had alone
  return last ? last : repack ? repack : bare;
}

Gemm::Range &Gemm::rangeOf(const GemmArgs &args) const {
  const Sizes typical = ranged ? rangesOf(*compilation->spec, {args.m, args.n, args.k}) : Sizes{};
  if (typical == Sizes{})
    return *base;
  {
    std::shared_lock lock(mutex);
    if (auto found = ranges.find(typical); found != ranges.end())
      return *found->second;
  }
  std::unique_lock lock(mutex);
  auto &range = ranges[typical];
  if (!range) {
    range = std::make_unique<Range>();
    range->typical = typical;
  }
  return *range;
}

bool Gemm::serves(const Kernel &kernel, const GemmArgs &args, std::optional<uint64_t> workspace) const {
  return kernel.ready && kernel.module && !kernel.module->unmet(args) &&
         (!workspace ||
          gemmc::workspaceBytes(kernel.module->info(), args, device->sms).value_or(UINT64_MAX) <= *workspace);
}

Outcome<const GpuModule *> Gemm::moduleFor(const GemmArgs &args, std::optional<uint64_t> workspace,
                                           bool insists) const {
  const GpuModule *first = base->first.module.get();
  if (auto failed = checkShape(first->info(), args)) // nobody's reason to compile another kernel
    return *failed;
  if (args.empty())
    return first;
  Range &range = rangeOf(args);
  auto has = [&](Kernel &kernel, MaybeFailure (Gemm::*make)(Range &) const) {
    const bool rests = !kernel.ready && !insists && kernel.rests();
    return !rests && !(this->*make)(range) && serves(kernel, args, workspace);
  };
  if (has(range.first, &Gemm::prepareFirst))
    return range.first.module.get();
  const GpuModule *usual = range.first.ready ? range.first.module.get() : nullptr;
  const bool lacksWorkspace = workspace && usual && !usual->unmet(args); // it is all that lacks
  if (lacksWorkspace && has(range.bare, &Gemm::prepareBare))
    return range.bare.module.get();
  if (serves(base->first, args, workspace))
    return first;
  const bool hasRoom = !workspace || *workspace; // copies have to lie somewhere
  if (hasRoom && has(range.repack, &Gemm::prepareRepack))
    return range.repack.module.get();
  if (auto failed = preparePlain())
    return *failed;
  return plain.module.get();
}

MaybeFailure Gemm::launch(void *stream, const GemmArgs &args) const {
  GemmArgs own = args;
  const Range &range = args.m > 0 && args.n > 0 ? rangeOf(args) : *base;
  const bool stoodIn = range.stoodIn();
  own.workspaceReady &= !ranged && !stoodIn; // another kernel may have been there since
  auto isAtHand = [&](const Kernel &kernel) { return kernel.ready && kernel.module && kernel.module->prepared(own); };
  // Most launches: nothing has to be decided. What is at hand is what moduleFor finds for such arguments, but where
  // `base` stood in for a kernel that could not be loaded then.
  for (const Range *one : {&range, static_cast<const Range *>(base.get())})
    if (isAtHand(one->first) && (one == &range || !stoodIn))
      return one->first.module->launch(static_cast<cuda::Stream>(stream), own);
  auto module = moduleFor(own, own.workspace ? own.workspaceBytes : 0, /*insists=*/false);
  if (!module)
    return module.failure();
  return (*module)->launch(static_cast<cuda::Stream>(stream), own);
}

MaybeFailure Gemm::prepare(const GemmArgs &args) const {
  auto module = moduleFor(args, args.workspaceBytes, /*insists=*/true);
  return module ? MaybeFailure() : module.failure();
}

Outcome<uint64_t> Gemm::workspaceBytes(const GemmArgs &args) const {
  auto module = moduleFor(args, std::nullopt, /*insists=*/false);
  if (!module)
    return module.failure();
  return gemmc::workspaceBytes((*module)->info(), args, device->sms).value_or(0);
}

std::string Gemm::fallbackReason(const GemmArgs &args) const {
  if (auto failed = checkShape(info(), args))
    return failed->str();
  if (args.empty())
    return "";
  Range &range = rangeOf(args);
  if (auto failed = prepareFirst(range))
    return failed->str();
  const Expr *unmet = range.first.module->unmet(args);
  if (unmet && !serves(base->first, args, std::nullopt))
    return unmet->str();
  const auto needed = workspaceBytes(args);
  const uint64_t given = args.workspace ? args.workspaceBytes : 0;
  return needed && *needed > given ? llvm::formatv("workspaceBytes >= {0}", *needed).str() : std::string();
}

} // namespace gemmc
