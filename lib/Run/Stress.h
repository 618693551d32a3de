/// The same launch many times over, under load: every result must have the same bits.
#pragma once
#include "gemmc/Runtime/GpuModule.h"

namespace gemmc::run {

/// Launches `count` times; before each launch D is filled with poison, after it compared on the device with the first
/// result. Meanwhile a second stream runs the same kernels into memory of its own. The number of launches that
/// differed. D must not be C, and lies between guard zones of at least 16 bytes.
Outcome<uint64_t> stressLaunches(std::shared_ptr<const Device> device, const GpuModule &module, const LaunchArgs &args,
                                 uint64_t count);

} // namespace gemmc::run
