/// Calls that a stream capture forbids, made all the same.
#pragma once
#include "gemmc/Runtime/CudaApi.h"

namespace gemmc {

/// While it lives, this thread may load modules and make and end executable graphs beside captures of streams, also of
/// those that it began. Without, a capture that this thread began, or any thread in global mode, has them fail and is
/// invalidated by that (900, then 901; driver 580): they are among the calls that might wait for the default stream,
/// though they do not. Drivers that cannot say so do without.
class BesideCaptures {
public:
  explicit BesideCaptures(const cuda::DriverTable &api) : api(api) { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures &) = delete;
  BesideCaptures &operator=(const BesideCaptures &) = delete;

private:
  void exchange() {
    if (api.captureMode)
      api.captureMode(&mode);
  }
  const cuda::DriverTable &api;
  int mode = cuda::captureRelaxed; ///< Then what it was before.
};

} // namespace gemmc
