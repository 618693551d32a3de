#include "gemmc/Runtime/Driver.h"
#include <cstring>
#include <dlfcn.h>

namespace gemmc {
namespace {
enum Need { required, optional };

/// What to do about the errors one really meets.
const char *hintFor(cuda::Result code) {
  switch (code) {
  case cuda::outOfMemory:
    return "take smaller sizes, or free the memory that other processes hold on the device";
  case cuda::noDevice:
    return "check `nvidia-smi` and CUDA_VISIBLE_DEVICES";
  case cuda::outOfResources:
    return "the kernel asks for more registers or shared memory than the device gives one block";
  case cuda::unsupportedPtxVersion:
    return "the driver is older than the PTX version of this kernel; update the driver, or assemble with ptxas";
  case cuda::illegalAddress:
    return "the kernel read or wrote outside its buffers: run it with `--device emulator`, or under compute-sanitizer";
  case cuda::launchTimeout:
    return "the kernel ran into the display watchdog, or hangs: run it with `--device emulator`";
  case cuda::illegalInstruction:
    return "an instruction is not for this device, or a TMA coordinate is not a multiple of 16 bytes";
  case cuda::misalignedAddress:
    return "an access is not aligned to its size: run the kernel with `--device emulator`";
  case cuda::launchFailed:
    return "the kernel was stopped by the device: run it with `--device emulator`";
  default:
    return nullptr;
  }
}

bool isSticky(cuda::Result code) {
  switch (code) {
  case cuda::illegalAddress:
  case cuda::launchTimeout:
  case cuda::illegalInstruction:
  case cuda::misalignedAddress:
  case cuda::launchFailed:
    return true;
  default:
    return false;
  }
}
} // namespace

Driver::~Driver() {
  if (handle && !abandoned)
    dlclose(handle);
}

Outcome<std::shared_ptr<const Driver>> Driver::load(llvm::StringRef library) {
  std::shared_ptr<Driver> driver(new Driver);
  driver->handle = dlopen(library.str().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->handle) {
    const char *why = dlerror();
    return Failure::make(Diag::driver_missing, why ? why : library.str());
  }
  // The exported names carry the version of the interface, so plain symbol look-up gives exactly the declared one.
#define GEMMC_CUDA(Member, Symbol, Need, Params)                                                                       \
  driver->table.Member = reinterpret_cast<cuda::Result(*) Params>(dlsym(driver->handle, Symbol));                      \
  if (!driver->table.Member && Need == required)                                                                       \
    return Failure::make(Diag::driver_incomplete, library, Symbol);
  {
    using namespace cuda;
#include "gemmc/Runtime/CudaFunctions.def"
  }
  if (auto failed = driver->check(driver->table.init(0), "starting the CUDA driver"))
    return *failed;
  if (auto failed =
          driver->check(driver->table.driverVersion(&driver->versionNumber), "asking for the driver's version"))
    return *failed;
  return std::shared_ptr<const Driver>(std::move(driver));
}

void Driver::giveUp() const {
  constexpr auto nothing = [](auto...) -> cuda::Result { return cuda::success; };
  table.memFree = nothing;
  table.moduleUnload = nothing;
  table.graphDestroy = nothing;
  table.graphExecDestroy = nothing;
  table.eventDestroy = nothing;
  table.streamDestroy = nothing;
  table.primaryRelease = nothing;
  abandoned = true;
}

Failure Driver::failure(cuda::Result code, const llvm::Twine &what) const {
  assert(code != cuda::success && "nothing failed");
  const char *name = nullptr, *text = nullptr;
  if (table.errorName(code, &name) != cuda::success || !name)
    name = "unknown error";
  if (table.errorString(code, &text) != cuda::success || !text)
    text = "no description";
  bool sticky = isSticky(code);
  Failure failure =
      Failure::make(sticky ? Diag::driver_context_dead : Diag::driver_failed, what.str(), name, code, text);
  failure.code = code;
  failure.contextDead = sticky;
  if (const char *hint = hintFor(code))
    failure.hint(hint);
  return failure;
}

} // namespace gemmc
