/// A CUDA device with its context, and the few things of it that need freeing: memory, streams, events.
///
/// The context that is current on the opening thread is used when there is one (then the caller owns it), else the
/// device's primary context, which is shared with the CUDA runtime and its libraries.
#pragma once
#include "gemmc/Runtime/Driver.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <vector>

namespace gemmc {

/// Whether code for `target` (`sm_80`, `sm_90a`) runs on an architecture (90 of sm_90a); the failure (device_target) of
/// the device `name` says why not.
MaybeFailure supports(llvm::StringRef name, unsigned architecture, llvm::StringRef target);

class Device {
public:
  static Outcome<std::shared_ptr<const Device>> open(std::shared_ptr<const Driver> driver, int ordinal = 0,
                                                     double patience = 0);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver() const { return *driverPtr; }
  const cuda::DriverTable &api() const { return driverPtr->api(); }
  cuda::Context context() const { return ctx; }

  std::string name;
  unsigned sms = 0;
  unsigned major = 0, minor = 0;                               ///< Compute capability.
  unsigned architecture() const { return major * 10 + minor; } ///< As in the name of a target: 90 of sm_90a.
  uint64_t sharedOptIn = 0;                                    ///< Bytes of shared memory one block may have.
  uint64_t l2Bytes = 0;
  double patience = 0; ///< Seconds after which a DeviceStream takes what it waits for to hang; 0: it waits for ever.

  MaybeFailure supports(llvm::StringRef target) const { return gemmc::supports(name, architecture(), target); }

  /// Makes the device's context current on this thread while it lives.
  class Scope {
  public:
    explicit Scope(const Device &device);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const Device &device;
    bool pushed = false;
  };

private:
  Device() = default;
  std::shared_ptr<const Driver> driverPtr;
  cuda::Context ctx = nullptr;
  cuda::DeviceId id = 0;
  bool retained = false;
};

/// The first usable device of this machine. The failure says why there is none (no driver, no device, too old).
Outcome<std::shared_ptr<const Device>> openDevice(double patience = 0);

/// An allocation on a device.
class DeviceMemory {
public:
  static Outcome<DeviceMemory> allocate(std::shared_ptr<const Device> device, uint64_t bytes, llvm::StringRef what);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other) { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other);
  ~DeviceMemory();
  uint64_t address() const { return start; } ///< A multiple of 256; 0 when there are no bytes.
  uint64_t bytes() const { return size; }

private:
  std::shared_ptr<const Device> device;
  uint64_t start = 0, size = 0;
};

/// A stream that does not wait for the default stream, with a pair of events to time what is enqueued between them.
class DeviceStream {
public:
  static Outcome<DeviceStream> create(std::shared_ptr<const Device> device);
  DeviceStream(DeviceStream &&other) { *this = std::move(other); }
  DeviceStream &operator=(DeviceStream &&other);
  ~DeviceStream();
  cuda::Stream get() const { return stream; }
  /// Waits for everything enqueued. What takes longer than the device's `patience` is a failure, device_endless: it
  /// hangs, the context is of no more use, and nothing of it will be freed (Driver::giveUp).
  MaybeFailure synchronize(const llvm::Twine &what) const;
  MaybeFailure startTimer() const;
  /// Waits like synchronize; milliseconds since startTimer.
  Outcome<double> stopTimer(const llvm::Twine &what) const;
  /// Calls `enqueue` so often, one right after the other, then waits; milliseconds of what each has enqueued. What the
  /// host takes for the first is a part of its time; the others find a busy stream if what is in front takes longer.
  Outcome<std::vector<double>> timeEach(unsigned count, llvm::function_ref<MaybeFailure()> enqueue,
                                        const llvm::Twine &what) const;

private:
  DeviceStream() = default;
  MaybeFailure wait(const llvm::Twine &what) const;
  std::shared_ptr<const Device> device;
  cuda::Stream stream = nullptr;
  cuda::Event start = nullptr, stop = nullptr;
};

} // namespace gemmc
