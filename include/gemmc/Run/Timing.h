/// Timing one contender of a benchmark (see Bench.h).
#pragma once
#include "gemmc/Runtime/Device.h"
#include <functional>
#include <vector>

namespace gemmc::run {

/// Enqueues one GEMM on buffer set `set`.
using Enqueue = std::function<MaybeFailure(cuda::Stream stream, unsigned set)>;

/// One contender, timed in batches of `batch` launches over `sets` rotating buffer sets.
class Contender {
public:
  Contender(std::shared_ptr<const Device> device, std::string name, Enqueue enqueue, unsigned sets)
      : device(std::move(device)), label(std::move(name)), enqueue(std::move(enqueue)), sets(sets) {}
  Contender(Contender &&other);
  ~Contender();

  const std::string &name() const { return label; }
  /// Fixes the batch; with `graph`, captures it.
  MaybeFailure prepare(const DeviceStream &stream, unsigned batch, bool graph);
  /// Seconds of one launch, from one event pair around a batch.
  Outcome<double> time(const DeviceStream &stream);
  /// Seconds of so many launches, one by one, each enqueued while the one in front of it runs.
  Outcome<std::vector<double>> timeEach(const DeviceStream &stream, unsigned count);
  /// Enqueues one launch on the next set.
  MaybeFailure once(cuda::Stream stream) { return enqueue(stream, next++ % sets); }
  /// Enqueues one launch on set `set`, whichever is next.
  MaybeFailure on(unsigned set, cuda::Stream stream) { return enqueue(stream, set); }

private:
  MaybeFailure enqueueBatch(cuda::Stream stream);
  std::shared_ptr<const Device> device;
  std::string label;
  Enqueue enqueue;
  unsigned sets, batch = 1, next = 0;
  cuda::GraphExec graph = nullptr;
};

/// Whether the driver can capture and launch graphs.
bool hasGraphs(const Device &device);

} // namespace gemmc::run
