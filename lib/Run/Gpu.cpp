#include "Stress.h"
#include "gemmc/Run/Executor.h"
#include "gemmc/Run/Stopwatch.h"
#include "gemmc/Runtime/GpuModule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cstring>

namespace gemmc::run {
namespace {
/// Bytes of poison on each side of a buffer.
constexpr uint64_t guardBytes = 4096;

class Gpu final : public Executor {
public:
  explicit Gpu(std::shared_ptr<const Device> device) : device(std::move(device)) {}

  std::string where() const override { return device->name; }
  bool isEmulator() const override { return false; }
  int64_t sms(const LaunchChoice &) const override { return device->sms; }
  MaybeFailure supports(llvm::StringRef target) const override { return device->supports(target); }
  Outcome<uint64_t> upload(llvm::StringRef name, llvm::ArrayRef<std::byte> data, uint64_t misalign) override;
  MaybeFailure download(llvm::StringRef name, llvm::MutableArrayRef<std::byte> data,
                        std::optional<GuardViolation> &violation) override;
  Outcome<LaunchOutcome> launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) override;

private:
  /// poison | data | poison, the data `offset` bytes behind the allocation's start.
  struct Buffer {
    DeviceMemory memory;
    uint64_t offset = 0, bytes = 0;
  };
  MaybeFailure needStream();
  MaybeFailure copyBack(const Buffer &buffer, uint64_t from, std::byte *to, uint64_t bytes, llvm::StringRef name);
  MaybeFailure timeLaunches(const GpuModule &module, const LaunchArgs &args, LaunchOutcome &outcome);

  std::shared_ptr<const Device> device;
  std::optional<DeviceStream> stream;
  std::shared_ptr<const GpuModule> module; ///< Of the last launch: the same kernel is assembled once.
  std::string loaded;                      ///< Its image.
  llvm::StringMap<Buffer> buffers;
};

/// What a launch waits for, in words: "running kernel `a`", "running kernels `a`, `b`".
std::string runningKernels(const ptx::LaunchInfo &info) {
  std::string text = info.kernels.size() == 1 ? "running kernel " : "running kernels ";
  llvm::ListSeparator comma;
  for (const ptx::KernelInfo &kernel : info.kernels)
    (text += llvm::StringRef(comma)) += "`" + kernel.name + "`";
  return text;
}

MaybeFailure Gpu::needStream() {
  if (stream)
    return std::nullopt;
  auto created = DeviceStream::create(device);
  if (!created)
    return created.failure();
  stream = std::move(*created);
  return std::nullopt;
}

Outcome<uint64_t> Gpu::upload(llvm::StringRef name, llvm::ArrayRef<std::byte> data, uint64_t misalign) {
  if (auto failed = needStream())
    return *failed;
  Buffer &buffer = buffers[name];
  buffer.offset = guardBytes + misalign;
  buffer.bytes = data.size();
  uint64_t total = (buffer.offset + data.size() + guardBytes + 1) & ~uint64_t(1);
  auto memory = DeviceMemory::allocate(device, total, name);
  if (!memory)
    return memory.failure();
  buffer.memory = std::move(*memory);
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  uint64_t start = buffer.memory.address();
  if (auto failed = driver.check(driver.api().memset16(start, poison, total / 2, stream->get()), "filling guard zones"))
    return *failed;
  if (!data.empty())
    if (auto failed =
            driver.check(driver.api().copyToDevice(start + buffer.offset, data.data(), data.size(), stream->get()),
                         "copying `" + name + "` to the device"))
      return *failed;
  // The host copy may go away.
  if (auto failed = stream->synchronize("copying `" + name + "` to the device"))
    return *failed;
  return start + buffer.offset;
}

MaybeFailure Gpu::copyBack(const Buffer &buffer, uint64_t from, std::byte *to, uint64_t bytes, llvm::StringRef name) {
  if (bytes == 0)
    return std::nullopt;
  const Driver &driver = device->driver();
  if (auto failed = driver.check(driver.api().copyToHost(to, buffer.memory.address() + from, bytes, stream->get()),
                                 "copying `" + name + "` from the device"))
    return failed;
  return stream->synchronize("copying `" + name + "` from the device");
}

/// The first byte of `zone`, which lies `from` bytes behind the allocation's start, that is no poison any more.
std::optional<int64_t> firstChanged(llvm::ArrayRef<std::byte> zone, uint64_t from) {
  for (size_t i = 0; i < zone.size(); ++i) {
    std::byte expected = (from + i) % 2 ? std::byte(poison >> 8) : std::byte(poison & 0xff);
    if (zone[i] != expected)
      return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

MaybeFailure Gpu::download(llvm::StringRef name, llvm::MutableArrayRef<std::byte> data,
                           std::optional<GuardViolation> &violation) {
  const Buffer &buffer = buffers[name];
  assert(buffer.memory.address() && buffer.bytes == data.size() && "download of what was uploaded");
  Device::Scope scope(*device);
  if (auto failed = copyBack(buffer, buffer.offset, data.data(), data.size(), name))
    return failed;
  uint64_t behind = buffer.offset + buffer.bytes;
  const std::pair<uint64_t, uint64_t> zones[] = {{0, buffer.offset}, {behind, buffer.memory.bytes() - behind}};
  for (auto [from, bytes] : zones) {
    std::vector<std::byte> zone(bytes);
    if (auto failed = copyBack(buffer, from, zone.data(), bytes, name))
      return failed;
    if (auto changed = firstChanged(zone, from); changed && !violation)
      violation =
          GuardViolation{name.str(), static_cast<int64_t>(from) + *changed - static_cast<int64_t>(buffer.offset)};
  }
  return std::nullopt;
}

Outcome<LaunchOutcome> Gpu::launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) {
  LaunchOutcome outcome;
  Stopwatch watch;
  const std::string &image = code.cubin.empty() ? code.ptx : code.cubin;
  if (!module || image != loaded) {
    auto made = GpuModule::load(device, image, code.info, targetOf(code.ptx));
    if (!made && code.assembled && !made.failure().contextDead)
      made = GpuModule::load(device, code.ptx, code.info, targetOf(code.ptx));
    if (!made)
      return made.failure();
    module = std::move(*made);
    loaded = image;
  }
  outcome.loadSeconds = watch.lap();
  if (auto failed = needStream())
    return *failed;
  // The first launch gives the result that is verified; it also loads code, so it is no measure of time.
  if (auto failed = module->launch(stream->get(), args))
    return *failed;
  if (auto failed = stream->synchronize(runningKernels(code.info)))
    return *failed;
  outcome.firstSeconds = watch.lap();
  // Where C and D share memory, each launch changes its own input.
  if (args.beta != 0 && args.c == args.d)
    return outcome;
  if (choice.timed)
    if (auto failed = timeLaunches(*module, args, outcome))
      return *failed;
  if (choice.stress > 0) {
    auto different = stressLaunches(device, *module, args, choice.stress);
    if (!different)
      return different.failure();
    outcome.stressed = choice.stress;
    outcome.different = *different;
  }
  return outcome;
}

/// The median of nine launches, one event pair each. Results stay as they are: every launch writes the same D.
MaybeFailure Gpu::timeLaunches(const GpuModule &module, const LaunchArgs &args, LaunchOutcome &outcome) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    if (auto failed = stream->startTimer())
      return failed;
    if (auto failed = module.launch(stream->get(), args))
      return failed;
    auto milliseconds = stream->stopTimer(runningKernels(module.info()));
    if (!milliseconds)
      return milliseconds.failure();
    times.push_back(*milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  outcome.seconds = times[4] / 1e3;
  return std::nullopt;
}
} // namespace

std::unique_ptr<Executor> makeGpu(std::shared_ptr<const Device> device) {
  return std::make_unique<Gpu>(std::move(device));
}

} // namespace gemmc::run
