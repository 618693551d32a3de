/// Launches of a replay as executable graphs: one call of the driver for all kernels, and for one kernel a cheaper one
/// than a direct launch (H200, driver 580, 2026-11-23: 1.1 us of host time, 1.5 with new addresses, against 2.1 to 3.1
/// a kernel). Making one takes about 15 us, once.
#pragma once
#include "Replay.h"
#include "gemmc/Runtime/Device.h"

namespace gemmc {

/// The executable graphs of one replay. Each belongs to a stream: the driver never runs one beside itself. New
/// addresses cost the host more than half of a launch (H200, 2026-11-24: set in the graph 2.4 to 2.7 us, launched as it
/// is 1.1 to 1.8): buffers that come again and again get a graph each. Safe to use from many threads.
class LaunchGraphs {
public:
  static constexpr unsigned capacity = 12;
  static constexpr unsigned keptForStreams = 4; ///< Places that only the first graph of a stream takes.
  static constexpr unsigned remembered = 16;    ///< Addresses: of as many launches that had to set them.
  /// So many launches must have passed a graph by before another takes its place: streams in turns, more than there are
  /// places, would make a graph for each launch.
  static constexpr uint64_t idle = 64;

  /// Whether the driver has all that it takes.
  static bool served(const cuda::DriverTable &api);
  /// All of these must outlive it; `functions` and `kernels`: one for each kernel of `info`.
  LaunchGraphs(const Device &device, const ptx::LaunchInfo &info, llvm::ArrayRef<cuda::Function> functions,
               llvm::ArrayRef<KernelReplay> kernels);
  ~LaunchGraphs();

  /// Enqueues the kernels that a launch of `args` has. False: nothing was enqueued, and each is to be launched by
  /// itself. So it is on a stream that is being captured (a graph would invalidate the capture), for a single kernel
  /// that overlaps with what is in front of it on the stream (a graph waits for that), where no place is free, when the
  /// driver refuses an address, and for good once it has refused anything else. The device's context must be current.
  bool launch(cuda::Stream stream, const LaunchArgs &args);

private:
  struct Node;
  struct Exec;
  bool suits(cuda::Stream stream, const LaunchArgs &args) const;
  std::shared_ptr<Exec> execFor(cuda::Stream stream, const LaunchArgs &args);
  std::shared_ptr<Exec> *freePlace(unsigned left);
  bool comeAgain(cuda::Stream stream, const LaunchAddresses &addresses);

  const Device &device;
  const ptx::LaunchInfo &info;
  llvm::ArrayRef<cuda::Function> functions;
  llvm::ArrayRef<KernelReplay> kernels;
  bool readies = false; ///< A kernel may be left out.
  std::mutex mutex;     ///< Of all below; not held while the driver launches, which waits where a stream is full.
  std::array<std::shared_ptr<Exec>, capacity> execs;
  std::array<std::pair<cuda::Stream, LaunchAddresses>, remembered> missed{}; ///< None of its graphs had them.
  uint64_t launches = 0, misses = 0;
  bool refused = false;
};

} // namespace gemmc
