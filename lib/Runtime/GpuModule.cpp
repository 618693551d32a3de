#include "gemmc/Runtime/GpuModule.h"
#include "BesideCaptures.h"
#include "LaunchGraphs.h"
#include "gemmc/Runtime/CubinCache.h"
#include "gemmc/Runtime/Ptxas.h"
#include "llvm/ADT/iterator_range.h"
#include <cstring>

namespace gemmc {
namespace {
/// CUtensorMapDataType of an element; nullopt for one that TMA does not know.
std::optional<cuda::TensorType> tensorTypeOf(Elem type) {
  switch (type) {
  case Elem::f16:
    return cuda::mapF16;
  case Elem::bf16:
    return cuda::mapBF16;
  case Elem::f32:
    return cuda::mapF32;
  case Elem::f64:
    return cuda::mapF64;
  case Elem::tf32:
    return cuda::mapTF32;
  case Elem::e4m3:
  case Elem::e5m2:
  case Elem::s8:
  case Elem::u8:
    return cuda::mapU8;
  case Elem::s32:
    return cuda::mapS32;
  case Elem::s4:
  case Elem::u4:
  case Elem::b1:
    break;
  }
  return std::nullopt;
}

template <typename Range> std::string listOf(const Range &values) {
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(values.begin(), values.end())).str();
}
} // namespace

llvm::StringRef targetOf(llvm::StringRef ptx) {
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    line = line.ltrim();
    if (line.consume_front(".target") && !line.empty() && (line[0] == ' ' || line[0] == '\t'))
      return line.take_until([](char c) { return c == ',' || c == '/' || c == '\r'; }).trim();
    ptx = rest;
  }
  return {};
}

MaybeFailure encodeTensorMap(const Driver &driver, llvm::StringRef name, const TensorMapArgs &map, std::byte *out) {
  if (!driver.api().encodeTiled)
    return Failure::make(Diag::driver_incomplete, "libcuda", "cuTensorMapEncodeTiled");
  const uint32_t ones[5] = {1, 1, 1, 1, 1};
  assert(map.dims.size() <= 5 && map.box.size() == map.dims.size() && map.strides.size() + 1 == map.dims.size());
  auto type = tensorTypeOf(map.type);
  assert(type && "an element type without a tensor map type");
  // A box row is 128 bytes, and the L2 fetches no more for it: with 256 what rows that start inside lines reach into
  // came along, 2 to 18% slower where they do, and equal elsewhere (H200, 2026-11-23; docs/hopper-l2.md,
  // *Promotion, and slices that share*).
  cuda::Result code =
      driver.api().encodeTiled(reinterpret_cast<cuda::TensorMap *>(out), *type, map.dims.size(),
                               reinterpret_cast<void *>(map.address), map.dims.data(), map.strides.data(),
                               map.box.data(), ones, 0, static_cast<int>(map.swizzle), cuda::promote128B, 0);
  if (code == cuda::success)
    return std::nullopt;
  return driver.failure(code, "encoding tensor map `" + name.str() + "`")
      .hint(llvm::formatv("its arguments: {0} at {1:x}, extents {2}, strides in bytes {3}, box {4}, swizzle {5}",
                          nameOf(map.type), map.address, listOf(map.dims), listOf(map.strides), listOf(map.box),
                          ptx::nameOf(map.swizzle))
                .str());
}

GpuModule::GpuModule() = default;

GpuModule::~GpuModule() {
  if (!module)
    return;
  Device::Scope scope(*devicePtr);
  BesideCaptures beside(devicePtr->api());
  replays.reset(); // graphs have its kernels
  devicePtr->api().moduleUnload(module);
}

Outcome<std::shared_ptr<const GpuModule>> GpuModule::load(std::shared_ptr<const Device> device, llvm::StringRef image,
                                                          ptx::LaunchInfo info, llvm::StringRef target) {
  if (auto failed = device->supports(target))
    return *failed;
  std::shared_ptr<GpuModule> out(new GpuModule);
  out->devicePtr = std::move(device);
  out->launchInfo = std::move(info);
  Device::Scope scope(*out->devicePtr);
  BesideCaptures beside(out->devicePtr->api());

  if (!out->loadCached(image))
    if (auto failed = out->loadImage(image))
      return *failed;
  if (auto failed = out->loadKernels())
    return *failed;
  if (out->devicePtr->api().replaceAddress && ReplayCache::serves(out->launchInfo))
    out->replays = std::make_unique<ReplayCache>();
  return std::shared_ptr<const GpuModule>(std::move(out));
}

MaybeFailure GpuModule::loadImage(llvm::StringRef image) {
  const Driver &driver = devicePtr->driver();
  // The driver wants PTX with a terminating zero; behind a cubin it does no harm.
  std::string terminated = image.str();
  std::vector<char> errors(16384, 0);
  int options[] = {cuda::errorLog, cuda::errorLogBytes};
  void *values[] = {errors.data(), reinterpret_cast<void *>(static_cast<uintptr_t>(errors.size() - 1))};
  cuda::Result code = driver.api().moduleLoad(&module, terminated.c_str(), 2, options, values);
  if (code == cuda::success)
    return std::nullopt;
  module = nullptr;
  Failure why = driver.failure(code, "loading the kernel");
  llvm::StringRef log = llvm::StringRef(errors.data()).trim();
  bool aboutPtx = code == cuda::invalidPtx || code == cuda::unsupportedPtxVersion || code == cuda::noBinaryForGpu;
  if (aboutPtx) {
    std::string name = launchInfo.kernels.empty() ? "?" : launchInfo.kernels.front().name;
    Failure rejected = Failure::make(Diag::ptx_rejected, name, why.args[1], code);
    rejected.code = code;
    rejected.hints = why.hints;
    why = rejected;
  }
  if (!log.empty())
    why.hint(log.str());
  return why;
}

/// Loads PTX text by way of the cache, which holds what ptxas made of it; false when there is no cache or no ptxas, or
/// either fails: then the driver gets the text. (The driver's linker is no way to a cubin: on an H200 its code for 192
/// accumulators a thread ran twenty times as long as ptxas' and died under compute-sanitizer.)
bool GpuModule::loadCached(llvm::StringRef image) {
  if (image.starts_with("\x7f"
                        "ELF"))
    return false;
  auto cache = CubinCache::ofUser();
  if (!cache)
    return false;
  std::string key = CubinCache::keyOf(image, devicePtr->driver().version(), devicePtr->name);
  std::optional<std::vector<char>> cubin = cache->find(key);
  if (cubin)
    return !loadImage(llvm::StringRef(cubin->data(), cubin->size()));
  PtxasOptions options;
  options.target = architectureOn(devicePtr->architecture(), image);
  auto assembled = assemblePtx(image, options);
  if (!assembled || loadImage(llvm::StringRef(assembled->cubin.data(), assembled->cubin.size())))
    return false;
  cache->store(key, assembled->cubin);
  return true;
}

MaybeFailure GpuModule::loadKernels() {
  const Driver &driver = devicePtr->driver();
  for (const ptx::KernelInfo &kernel : launchInfo.kernels) {
    cuda::Function function = nullptr;
    if (auto failed = driver.check(driver.api().moduleFunction(&function, module, kernel.name.c_str()),
                                   "finding kernel `" + kernel.name + "`"))
      return failed;
    if (kernel.dynamicShared > devicePtr->sharedOptIn)
      return Failure::make(Diag::device_shared, kernel.name, kernel.dynamicShared, devicePtr->name,
                           devicePtr->sharedOptIn);
    if (kernel.dynamicShared > 0)
      if (auto failed = driver.check(
              driver.api().functionSet(function, cuda::maxDynamicShared, static_cast<int>(kernel.dynamicShared)),
              "setting the shared memory of kernel `" + kernel.name + "`"))
        return failed;
    if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 8) // more than any device must be able to place
      if (auto failed = driver.check(driver.api().functionSet(function, cuda::nonPortableCluster, 1),
                                     "allowing the cluster size of kernel `" + kernel.name + "`"))
        return failed;
    functions.push_back(function);
    usableSms.push_back(smsFor(kernel, function));
  }
  return std::nullopt;
}

int64_t GpuModule::smsFor(const ptx::KernelInfo &kernel, cuda::Function function) const {
  int64_t all = devicePtr->sms, ctas = int64_t(kernel.cluster[0]) * kernel.cluster[1] * kernel.cluster[2];
  if (ctas == 1 || !devicePtr->api().activeClusters)
    return all;
  cuda::LaunchAttribute cluster{};
  cluster.id = cuda::clusterDimension;
  cluster.value.clusterDim = {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  cuda::LaunchConfig config{
      kernel.cluster[0], kernel.cluster[1],    kernel.cluster[2], kernel.block[0], kernel.block[1],
      kernel.block[2],   kernel.dynamicShared, nullptr,           &cluster,        1};
  int clusters = 0;
  if (devicePtr->api().activeClusters(&clusters, function, &config) != cuda::success || clusters < 1)
    return all;
  return std::min(all, clusters * ctas);
}

bool GpuModule::prepared(const LaunchArgs &args) const { return replays && replays->find(args); }

MaybeFailure GpuModule::launch(cuda::Stream stream, const LaunchArgs &args) const {
  auto known = replays ? replays->find(args) : nullptr;
  if (!known || !known->disjoint(args))
    return prepareAndLaunch(stream, args);
  Device::Scope scope(*devicePtr);
  if (known->graphs && known->graphs->launch(stream, args))
    return std::nullopt;
  for (unsigned index = 0; index < known->kernels.size(); ++index) {
    auto done = replay(index, known->kernels[index], stream, args);
    MaybeFailure failed = done ? *done : launchKernel(index, stream, args, nullptr);
    if (failed)
      return failed;
  }
  return std::nullopt;
}

MaybeFailure GpuModule::prepareAndLaunch(cuda::Stream stream, const LaunchArgs &args) const {
  int64_t sms = devicePtr->sms;
  if (auto failed = checkArgs(launchInfo, args, sms))
    return failed;
  if (args.empty())
    return std::nullopt;
  if (const Expr *requirement = firstUnmet(launchInfo, args, sms))
    return Failure::make(Diag::launch_requirement, requirement->str());
  Device::Scope scope(*devicePtr);
  auto kept = replays ? std::make_shared<Replay>(launchInfo, args) : nullptr;
  for (unsigned index = 0; index < launchInfo.kernels.size(); ++index)
    if (auto failed = launchKernel(index, stream, args, kept ? &kept->kernels.emplace_back() : nullptr))
      return failed;
  if (!kept)
    return std::nullopt;
  if (LaunchGraphs::served(devicePtr->api()))
    kept->graphs = std::make_unique<LaunchGraphs>(*devicePtr, launchInfo, functions, kept->kernels);
  replays->keep(args, std::move(kept));
  return std::nullopt;
}

/// Nullopt when the driver refuses an address: preparing anew says why.
std::optional<MaybeFailure> GpuModule::replay(unsigned index, const KernelReplay &kernel, cuda::Stream stream,
                                              const LaunchArgs &args) const {
  if (!kernel.launched(args))
    return MaybeFailure();
  alignas(64) std::array<std::byte, PreparedKernel::maxParamBytes> params;
  std::memcpy(params.data(), kernel.params.data(), kernel.params.size());
  for (const KernelReplay::Patch &patch : kernel.patches) {
    uint64_t address = KernelReplay::address(patch, args);
    if (address != patch.encoded && !KernelReplay::write(devicePtr->api(), patch, address, params.data()))
      return std::nullopt;
  }
  return enqueue(index, stream, kernel.grid, kernel.offsets, params.data());
}

/// `keep`: takes what was prepared.
MaybeFailure GpuModule::launchKernel(unsigned index, cuda::Stream stream, const LaunchArgs &args,
                                     KernelReplay *keep) const {
  const ptx::KernelInfo &kernel = launchInfo.kernels[index];
  PreparedKernel prepared;
  llvm::SmallVector<uint64_t, 4> encoded;
  auto encode = [&](llvm::StringRef name, const TensorMapArgs &map, std::byte *out) {
    encoded.push_back(map.address);
    return encodeTensorMap(devicePtr->driver(), name, map, out);
  };
  if (auto failed = prepareKernel(kernel, args, usableSms[index], encode, prepared))
    return failed;
  if (keep)
    *keep = KernelReplay::of(kernel, prepared, args, encoded);
  bool leftOut = kernel.readies && args.workspaceReady; // as KernelReplay::launched has it
  return prepared.empty || leftOut ? std::nullopt
                                   : enqueue(index, stream, prepared.grid, prepared.offsets, prepared.params.data());
}

MaybeFailure GpuModule::enqueue(unsigned index, cuda::Stream stream, const std::array<uint32_t, 3> &grid,
                                llvm::ArrayRef<uint16_t> offsets, std::byte *params) const {
  const ptx::KernelInfo &kernel = launchInfo.kernels[index];
  llvm::SmallVector<void *, 32> pointers;
  for (uint16_t offset : offsets)
    pointers.push_back(params + offset);
  std::array<cuda::LaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (kernel.cluster != std::array<uint32_t, 3>{1, 1, 1}) {
    attributes[count].id = cuda::clusterDimension;
    attributes[count++].value.clusterDim = {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  }
  if (kernel.overlaps) {
    attributes[count].id = cuda::programmaticStreamSerialization;
    attributes[count++].value.programmaticSerialization = 1;
  }
  cuda::LaunchConfig config{grid[0],
                            grid[1],
                            grid[2],
                            kernel.block[0],
                            kernel.block[1],
                            kernel.block[2],
                            kernel.dynamicShared,
                            stream,
                            count ? attributes.data() : nullptr,
                            count};
  cuda::Result code = devicePtr->api().launch(&config, functions[index], pointers.data(), nullptr);
  if (code == cuda::success)
    return std::nullopt;
  return devicePtr->driver().failure(code, "launching kernel `" + kernel.name + "`");
}

} // namespace gemmc
