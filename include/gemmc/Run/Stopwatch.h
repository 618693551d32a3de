#pragma once
#include <chrono>

namespace gemmc::run {

/// Host time.
class Stopwatch {
public:
  /// Seconds since the last lap, or since the beginning.
  double lap() {
    auto now = Clock::now();
    double seconds = std::chrono::duration<double>(now - last).count();
    last = now;
    return seconds;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
};

} // namespace gemmc::run
