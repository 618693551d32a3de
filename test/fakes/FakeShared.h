/// What the parts of the fake share: its state, its lock, and the time that passes on a stream.
#pragma once
#include "FakeCuda.h"
#include <mutex>

namespace fake {
extern FakeCuda state;
extern std::recursive_mutex everything; ///< One thread at a time is in the driver.
/// Notes the call; the code that the test wants of it.
int enter(const char *name);
/// Something other than a kernel that takes so long: at once, or in the graph that `stream` is captured into.
int passTime(gemmc::cuda::Stream stream, double microseconds);
} // namespace fake

#define ENTER(name)                                                                                                    \
  std::unique_lock lock(fake::everything);                                                                             \
  if (int code = fake::enter(name))                                                                                    \
  return code
#define EXPORT extern "C" __attribute__((visibility("default")))
