/// Tasks in child processes: a kernel that dies takes its CUDA context along, and one that hangs is killed. Nothing of
/// one task reaches the next.
#pragma once
#include "llvm/Support/JSON.h"
#include <functional>
#include <string>
#include <vector>

namespace gemmc::microtests {

struct Task {
  std::string name;
  unsigned seconds = 90;   ///< Then its process is killed.
  bool ownProcess = false; ///< It may break its context.
};
struct PoolEnd {
  bool noDevice = false; ///< The first child found no GPU.
};
constexpr int noDeviceExit = 3;

/// Runs all tasks in up to `jobs` processes. `start` is called in each new process before its first task (nonzero: the
/// process ends with it as exit code), `work` gives a task's result, `stale` says that the process is of no more use;
/// `done` gets results in the parent, in the order of their ends; a lost task gives {"error": ...}.
PoolEnd runPool(const std::vector<Task> &tasks, unsigned jobs, const std::function<int()> &start,
                const std::function<llvm::json::Object(size_t)> &work, const std::function<bool()> &stale,
                const std::function<void(size_t, llvm::json::Object)> &done);

} // namespace gemmc::microtests
