#include "Stop.h"
#include <csignal>
#include <initializer_list>

namespace gemmc::tool {
namespace {
volatile std::sig_atomic_t wanted = 0;
}

void stopOnSignals() {
  struct sigaction action{};
  action.sa_handler = [](int) { wanted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND); // the next one ends the process as usual
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stopWanted() { return wanted != 0; }
} // namespace gemmc::tool
