#include "gemmc/Runtime/Device.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <chrono>
#include <thread>

namespace gemmc {

Device::Scope::Scope(const Device &device) : device(device) {
  cuda::Context current = nullptr;
  if (device.api().ctxGetCurrent(&current) == cuda::success && current == device.ctx)
    return;
  pushed = device.api().ctxPush(device.ctx) == cuda::success;
}

Device::Scope::~Scope() {
  cuda::Context popped = nullptr;
  if (pushed)
    device.api().ctxPop(&popped);
}

Device::~Device() {
  if (retained)
    api().primaryRelease(id);
}

Outcome<std::shared_ptr<const Device>> Device::open(std::shared_ptr<const Driver> driver, int ordinal,
                                                    double patience) {
  std::shared_ptr<Device> device(new Device);
  device->patience = patience;
  device->driverPtr = std::move(driver);
  const Driver &drv = *device->driverPtr;
  const cuda::DriverTable &api = drv.api();

  int count = 0;
  if (auto failed = drv.check(api.deviceCount(&count), "counting devices"))
    return *failed;
  if (ordinal >= count)
    return Failure::make(Diag::device_missing, llvm::formatv("the driver shows {0} devices", count).str())
        .hint("check `nvidia-smi` and CUDA_VISIBLE_DEVICES");

  if (auto failed = drv.check(api.ctxGetCurrent(&device->ctx), "asking for the current context"))
    return *failed;
  cuda::Result found = device->ctx ? api.ctxGetDevice(&device->id) : api.deviceGet(&device->id, ordinal);
  if (auto failed = drv.check(found, "finding the device"))
    return *failed;
  if (!device->ctx) {
    if (auto failed = drv.check(api.primaryRetain(&device->ctx, device->id), "opening the device's primary context"))
      return *failed;
    device->retained = true;
  }

  char name[256] = {};
  if (auto failed = drv.check(api.deviceName(name, sizeof(name) - 1, device->id), "asking for the device's name"))
    return *failed;
  device->name = name;
  auto ask = [&](cuda::DeviceAttribute attribute, auto &into) -> MaybeFailure {
    int value = 0;
    auto failed = drv.check(api.deviceAttribute(&value, attribute, device->id), "asking for a property of the device");
    into = static_cast<std::remove_reference_t<decltype(into)>>(value);
    return failed;
  };
  if (auto failed = ask(cuda::multiprocessorCount, device->sms))
    return *failed;
  if (auto failed = ask(cuda::computeCapabilityMajor, device->major))
    return *failed;
  if (auto failed = ask(cuda::computeCapabilityMinor, device->minor))
    return *failed;
  if (auto failed = ask(cuda::maxSharedPerBlockOptIn, device->sharedOptIn))
    return *failed;
  if (auto failed = ask(cuda::l2CacheSize, device->l2Bytes))
    return *failed;
  if (device->major < 8)
    return Failure::make(Diag::device_too_old, device->name, device->major, device->minor);
  return std::shared_ptr<const Device>(std::move(device));
}

MaybeFailure supports(llvm::StringRef name, unsigned architecture, llvm::StringRef target) {
  const unsigned major = architecture / 10, minor = architecture % 10;
  llvm::StringRef digits = target;
  digits.consume_front("sm_");
  bool exact = digits.consume_back("a"); // architecture-specific code runs on that architecture alone
  unsigned wanted = 0;
  if (digits.getAsInteger(10, wanted))
    return Failure::make(Diag::device_target, name, major, minor, target, "a known target");
  if (exact ? architecture == wanted : architecture >= wanted)
    return std::nullopt;
  return Failure::make(Diag::device_target, name, major, minor, target,
                       llvm::formatv(exact ? "exactly {0}.{1}" : "{0}.{1} or newer", wanted / 10, wanted % 10).str());
}

Outcome<std::shared_ptr<const Device>> openDevice(double patience) {
  auto driver = Driver::load();
  if (!driver)
    return driver.failure();
  return Device::open(*driver, 0, patience);
}

Outcome<DeviceMemory> DeviceMemory::allocate(std::shared_ptr<const Device> device, uint64_t bytes,
                                             llvm::StringRef what) {
  DeviceMemory memory;
  memory.size = bytes;
  memory.device = std::move(device);
  if (bytes == 0)
    return memory;
  Device::Scope scope(*memory.device);
  cuda::Result code = memory.device->api().memAlloc(&memory.start, bytes);
  if (code != cuda::success) {
    memory.start = 0;
    return memory.device->driver().failure(code,
                                           llvm::Twine("allocating ") + llvm::Twine(bytes) + " bytes for " + what);
  }
  return memory;
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!start)
    return;
  Device::Scope scope(*device);
  device->api().memFree(start);
}

Outcome<DeviceStream> DeviceStream::create(std::shared_ptr<const Device> device) {
  DeviceStream out;
  out.device = std::move(device);
  Device::Scope scope(*out.device);
  const Driver &driver = out.device->driver();
  if (auto failed = driver.check(driver.api().streamCreate(&out.stream, cuda::nonBlocking), "creating a stream"))
    return *failed;
  for (cuda::Event *event : {&out.start, &out.stop})
    if (auto failed = driver.check(driver.api().eventCreate(event, 0), "creating an event"))
      return *failed;
  return out;
}

DeviceStream &DeviceStream::operator=(DeviceStream &&other) {
  std::swap(device, other.device);
  std::swap(stream, other.stream);
  std::swap(start, other.start);
  std::swap(stop, other.stop);
  return *this;
}

DeviceStream::~DeviceStream() {
  if (!device)
    return;
  Device::Scope scope(*device);
  for (cuda::Event event : {start, stop})
    if (event)
      device->api().eventDestroy(event);
  if (stream)
    device->api().streamDestroy(stream);
}

/// Asks again and again: at first without a rest, so that a short wait is no longer than it must be.
MaybeFailure DeviceStream::wait(const llvm::Twine &what) const {
  using namespace std::chrono;
  constexpr auto eager = milliseconds(20);
  constexpr auto rest = microseconds(100);
  const Driver &driver = device->driver();
  if (device->patience <= 0)
    return driver.check(driver.api().streamSynchronize(stream), what);
  const auto start = steady_clock::now();
  for (;;) {
    if (cuda::Result state = driver.api().streamQuery(stream); state != cuda::notReady)
      return driver.check(state, what);
    const duration<double> waited = steady_clock::now() - start;
    if (waited.count() > device->patience)
      break;
    if (waited > eager)
      std::this_thread::sleep_for(rest);
  }
  driver.giveUp();
  Failure failure =
      Failure::make(Diag::device_endless, what.str(), llvm::formatv("{0}", llvm::format("%g", device->patience)).str());
  failure.contextDead = true;
  return failure
      .hint("it hangs, or somebody else keeps the device busy: `gemmc check` runs the kernel on the emulator and says "
            "who waits for what")
      .hint("what really takes longer is given more time by `--time-limit SECONDS` (0: it is waited for)");
}

MaybeFailure DeviceStream::synchronize(const llvm::Twine &what) const {
  Device::Scope scope(*device);
  return wait(what);
}

MaybeFailure DeviceStream::startTimer() const {
  Device::Scope scope(*device);
  return device->driver().check(device->api().eventRecord(start, stream), "recording an event");
}

Outcome<double> DeviceStream::stopTimer(const llvm::Twine &what) const {
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  if (auto failed = driver.check(driver.api().eventRecord(stop, stream), "recording an event"))
    return *failed;
  if (auto failed = wait(what))
    return *failed;
  float milliseconds = 0;
  if (auto failed = driver.check(driver.api().eventElapsed(&milliseconds, start, stop), "reading the timer"))
    return *failed;
  return double(milliseconds);
}

namespace {
/// Events between pieces of work; those that were made go away with it.
struct Marks {
  const Driver &driver;
  std::vector<cuda::Event> events;
  ~Marks() {
    for (cuda::Event event : events)
      driver.api().eventDestroy(event);
  }
  MaybeFailure add(cuda::Stream stream) {
    cuda::Event event = nullptr;
    if (auto failed = driver.check(driver.api().eventCreate(&event, 0), "creating an event"))
      return failed;
    events.push_back(event);
    return driver.check(driver.api().eventRecord(event, stream), "recording an event");
  }
};
} // namespace

Outcome<std::vector<double>> DeviceStream::timeEach(unsigned count, llvm::function_ref<MaybeFailure()> enqueue,
                                                    const llvm::Twine &what) const {
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  Marks marks{driver, {}};
  MaybeFailure failed = marks.add(stream);
  for (unsigned i = 0; i < count && !failed; ++i) {
    failed = enqueue();
    if (!failed)
      failed = marks.add(stream);
  }
  if (MaybeFailure waited = wait(what); waited && (!failed || waited->contextDead))
    failed = waited;
  std::vector<double> times;
  for (unsigned i = 0; i < count && !failed; ++i) {
    float milliseconds = 0;
    failed = driver.check(driver.api().eventElapsed(&milliseconds, marks.events[i], marks.events[i + 1]),
                          "reading the timer");
    times.push_back(double(milliseconds));
  }
  if (failed)
    return *failed;
  return times;
}

} // namespace gemmc
