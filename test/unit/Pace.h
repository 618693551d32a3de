/// How long tests take: the processor time of this process, which other programs on the machine do not lengthen, what a
/// build with sanitizers is allowed, and how many random cases it runs.
#pragma once
#include <ctime>

namespace gemmc::test {

/// Seconds that all threads of this process have computed.
inline double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

constexpr bool instrumented =
#if defined(__SANITIZE_ADDRESS__)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

/// Limits are multiplied by this: instrumented code is slow, and how slow is nobody's concern.
constexpr double allowance = instrumented ? 50 : 1;

/// Of `count` random cases those that run: all in the build that users get, a fifth under sanitizers, where one takes
/// six times as long.
constexpr unsigned cases(unsigned count) { return instrumented ? count / 5 : count; }

} // namespace gemmc::test
