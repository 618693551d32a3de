#include "gemmc/Run/Timing.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::run {

bool hasGraphs(const Device &device) {
  const cuda::DriverTable &api = device.api();
  return api.captureBegin && api.captureEnd && api.graphInstantiate && api.graphLaunch && api.graphDestroy &&
         api.graphExecDestroy;
}

Contender::Contender(Contender &&other)
    : device(std::move(other.device)), label(std::move(other.label)), enqueue(std::move(other.enqueue)),
      sets(other.sets), batch(other.batch), next(other.next), graph(other.graph) {
  other.graph = nullptr;
}

Contender::~Contender() {
  if (!graph)
    return;
  Device::Scope scope(*device);
  device->api().graphExecDestroy(graph);
}

MaybeFailure Contender::enqueueBatch(cuda::Stream stream) {
  for (unsigned i = 0; i < batch; ++i)
    if (auto failed = once(stream))
      return failed;
  return std::nullopt;
}

MaybeFailure Contender::prepare(const DeviceStream &stream, unsigned wanted, bool useGraph) {
  batch = wanted;
  if (batch == 1 || !useGraph)
    return std::nullopt;
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  const cuda::DriverTable &api = driver.api();
  if (auto failed = driver.check(api.captureBegin(stream.get(), cuda::captureThreadLocal), "starting a capture"))
    return failed;
  MaybeFailure inside = enqueueBatch(stream.get());
  cuda::Graph captured = nullptr;
  MaybeFailure ended = driver.check(api.captureEnd(stream.get(), &captured), "capturing launches of " + label);
  if (inside || ended) {
    if (captured)
      api.graphDestroy(captured);
    return inside ? inside : ended;
  }
  MaybeFailure failed = driver.check(api.graphInstantiate(&graph, captured, 0), "making a graph of " + label);
  api.graphDestroy(captured);
  return failed;
}

Outcome<double> Contender::time(const DeviceStream &stream) {
  if (auto failed = stream.startTimer())
    return *failed;
  MaybeFailure failed;
  if (graph) {
    Device::Scope scope(*device);
    failed = device->driver().check(device->api().graphLaunch(graph, stream.get()), "launching a graph of " + label);
  } else {
    failed = enqueueBatch(stream.get());
  }
  if (failed)
    return *failed;
  auto milliseconds = stream.stopTimer("running " + label);
  if (!milliseconds)
    return milliseconds.failure();
  return *milliseconds / 1e3 / batch;
}

Outcome<std::vector<double>> Contender::timeEach(const DeviceStream &stream, unsigned count) {
  // The first one is not preceded by any, and is not told of.
  auto milliseconds = stream.timeEach(count + 1, [&] { return once(stream.get()); }, "running " + label);
  if (!milliseconds)
    return milliseconds.failure();
  std::vector<double> seconds;
  for (double each : llvm::drop_begin(*milliseconds))
    seconds.push_back(each / 1e3);
  return seconds;
}

} // namespace gemmc::run
