/// How long tests take: the processor time of this process, which other programs on the machine do not lengthen, what a
/// build with sanitizers is allowed, and how many random cases it runs.
#pragma once
#include <ctime>

namespace gemmc::test {

/// Seconds that all threads of this process have computed.
inline double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

#if defined(__SANITIZE_ADDRESS__)
#define GEMMC_INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GEMMC_INSTRUMENTED 1
#endif
#endif

/// Limits are multiplied by this: instrumented code is slow, and how slow is nobody's concern.
#ifdef GEMMC_INSTRUMENTED
constexpr double allowance = 50;
constexpr bool instrumented = true;
#else
constexpr double allowance = 1;
constexpr bool instrumented = false;
#endif

/// Of `count` random cases those that run. All do in the build that users get; under sanitizers, where one takes six
/// times as long and the first thousand meet each line of code, a fifth.
constexpr unsigned cases(unsigned count) { return instrumented ? count / 5 : count; }

} // namespace gemmc::test
