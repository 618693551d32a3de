/// Ctrl-C and SIGTERM as a question: long work asks between its steps and ends in order. The second signal ends at
/// once.
#pragma once

namespace gemmc::tool {
void stopOnSignals();
bool stopWanted();
} // namespace gemmc::tool
