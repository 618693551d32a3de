/// The CUDA driver, loaded at run time. Every call's error becomes a Failure with the driver's code and name, what was
/// attempted, and a hint; the sticky ones say that the context is dead.
#pragma once
#include "gemmc/Runtime/CudaApi.h"
#include "gemmc/Runtime/Failure.h"
#include "llvm/ADT/Twine.h"
#include <memory>

namespace gemmc {

class Driver {
public:
  /// Loads and initialises `library`; needs driver 12.0 or newer. Failures: driver_missing, driver_incomplete,
  /// driver_failed.
  static Outcome<std::shared_ptr<const Driver>> load(llvm::StringRef library = "libcuda.so.1");
  ~Driver();
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  const cuda::DriverTable &api() const { return table; }
  int version() const { return versionNumber; } ///< 12040 = CUDA 12.4.

  /// The failure behind `code`, which must not be success. `what` says what was attempted: "copying `a` to the device".
  Failure failure(cuda::Result code, const llvm::Twine &what) const;
  MaybeFailure check(cuda::Result code, const llvm::Twine &what) const {
    if (code == cuda::success)
      return std::nullopt;
    return failure(code, what);
  }

  /// A kernel that does not end cannot be stopped, and whatever frees memory, modules, streams or contexts waits for
  /// it. From now on nothing is freed until the process ends. No other thread may be in a call of the driver.
  void giveUp() const;
  bool gaveUp() const { return abandoned; }

private:
  Driver() = default;
  void *handle = nullptr;
  mutable cuda::DriverTable table; ///< Changed by giveUp.
  mutable bool abandoned = false;
  int versionNumber = 0;
};

} // namespace gemmc
