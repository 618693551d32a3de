#include "gemmc/Run/Gemm.h"
#include "gemmc/Driver/Compiler.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc {

struct Gemm::Compilation {
  std::mutex mutex; ///< Of the fallbacks, which report into the same sink.
  Diags diags;
  std::optional<Spec> spec;

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
  auto compiled = compileSpec(*compilation.spec, compilation.diags);
  if (!compiled)
    return compilation.failure();
  gemm->text = std::move(compiled->ptx);

  auto driver = Driver::load(options.driver);
  if (!driver)
    return driver.failure();
  auto device = Device::open(*driver);
  if (!device)
    return device.failure();
  gemm->device = *device;
  auto module = GpuModule::load(gemm->device, gemm->text, std::move(compiled->launch), targetOf(gemm->text));
  if (!module)
    return module.failure();
  gemm->first = *module;
  return std::shared_ptr<const Gemm>(std::move(gemm));
}

MaybeFailure Gemm::prepare(Fallback kind) const {
  Second &second = seconds[size_t(kind)];
  std::call_once(second.once, [&] {
    std::lock_guard lock(compilation->mutex);
    auto compiled = compileFallback(*compilation->spec, kind, compilation->diags);
    if (!compiled) {
      if (kind != Fallback::repack)
        second.failure = compilation->failure();
      return;
    }
    auto module = GpuModule::load(device, compiled->ptx, std::move(compiled->launch), targetOf(compiled->ptx));
    if (module)
      second.module = *module;
    else
      second.failure = module.failure();
  });
  return second.failure;
}

MaybeFailure Gemm::prepareFallback() const {
  for (Fallback kind : fallbacks)
    if (auto failed = prepare(kind))
      return failed;
  return std::nullopt;
}

Outcome<const GpuModule *> Gemm::moduleFor(const GemmArgs &args, std::optional<uint64_t> workspace) const {
  if (args.m == 0 || args.n == 0 || !first->unmet(args))
    return first.get();
  // Wrong arguments are nobody's reason to compile another kernel: let the first one say what is wrong with them.
  if (checkShape(first->info(), args))
    return first.get();
  if (!workspace || *workspace) { // copies have to lie somewhere
    if (auto failed = prepare(Fallback::repack))
      return *failed;
    const GpuModule *repack = seconds[size_t(Fallback::repack)].module.get();
    if (repack && !repack->unmet(args) &&
        (!workspace || gemmc::workspaceBytes(repack->info(), args, device->sms).value_or(UINT64_MAX) <= *workspace))
      return repack;
  }
  if (auto failed = prepare(Fallback::plain))
    return *failed;
  return seconds[size_t(Fallback::plain)].module.get();
}

MaybeFailure Gemm::launch(void *stream, const GemmArgs &args) const {
  if (first->prepared(args)) // most launches: nothing has to be decided
    return first->launch(static_cast<cuda::Stream>(stream), args);
  auto module = moduleFor(args, args.workspace ? args.workspaceBytes : 0);
  if (!module)
    return module.failure();
  return (*module)->launch(static_cast<cuda::Stream>(stream), args);
}

Outcome<uint64_t> Gemm::workspaceBytes(const GemmArgs &args) const {
  auto module = moduleFor(args, std::nullopt);
  if (!module)
    return module.failure();
  return gemmc::workspaceBytes((*module)->info(), args, device->sms).value_or(0);
}

std::string Gemm::fallbackReason(const GemmArgs &args) const {
  const Expr *unmet = args.m != 0 && args.n != 0 ? first->unmet(args) : nullptr;
  return unmet ? unmet->str() : std::string();
}

} // namespace gemmc
