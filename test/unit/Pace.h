/// For tests of speed: the processor time of this process, which other programs on the machine do not lengthen, and
/// what a build with sanitizers is allowed.
#pragma once
#include <ctime>

namespace gemmc::test {

/// Seconds that all threads of this process have computed.
inline double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

/// Limits are multiplied by this: instrumented code is slow, and how slow is nobody's concern.
#if defined(__SANITIZE_ADDRESS__)
constexpr double allowance = 50;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr double allowance = 50;
#else
constexpr double allowance = 1;
#endif
#else
constexpr double allowance = 1;
#endif

} // namespace gemmc::test
