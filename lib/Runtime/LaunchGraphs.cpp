#include "LaunchGraphs.h"
#include "BesideCaptures.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <utility>

namespace gemmc {
/// A kernel of a graph, and the parameters of its next launch.
struct LaunchGraphs::Node {
  const ptx::KernelInfo &info;
  const KernelReplay &kernel;
  cuda::GraphNode handle = nullptr;
  cuda::KernelNodeParams params{};
  std::vector<cuda::TensorMap> storage;     ///< The parameters: maps are aligned as theirs must be.
  std::vector<void *> pointers;             ///< To each parameter.
  llvm::SmallVector<uint64_t, 8> addresses; ///< What is in `storage`, one for each patch of the kernel.
  bool changed = false;                     ///< The executable graph has other parameters.

  Node(const ptx::KernelInfo &info, const KernelReplay &replay, cuda::Function function)
      : info(info), kernel(replay), storage(replay.params.size() / sizeof(cuda::TensorMap) + 1) {
    std::memcpy(bytes(), replay.params.data(), replay.params.size());
    for (uint16_t offset : replay.offsets)
      pointers.push_back(bytes() + offset);
    for (const KernelReplay::Patch &patch : replay.patches)
      addresses.push_back(patch.encoded);
    params.function = function;
    params.gridX = replay.grid[0], params.gridY = replay.grid[1], params.gridZ = replay.grid[2];
    params.blockX = info.block[0], params.blockY = info.block[1], params.blockZ = info.block[2];
    params.sharedBytes = info.dynamicShared;
    params.params = pointers.data();
  }

  Node(Node &&) = default; // a copy's pointers would be the original's

  std::byte *bytes() { return storage.front().bytes; }

  /// Writes the addresses of `args`; false when the driver refuses one.
  bool patch(const cuda::DriverTable &api, const LaunchArgs &args) {
    for (const auto &[patch, known] : llvm::zip_equal(kernel.patches, addresses)) {
      uint64_t address = KernelReplay::address(patch, args);
      if (address == known)
        continue;
      if (!KernelReplay::write(api, patch, address, bytes()))
        return false;
      known = address;
      changed = true;
    }
    return true;
  }
};

struct LaunchGraphs::Exec {
  const cuda::DriverTable &api;
  cuda::Stream stream;
  bool ready;                  ///< It has no kernels that ready the workspace.
  uint64_t lastLaunch = 0;     ///< Of LaunchGraphs::launches; guarded by the mutex of that, as are its addresses.
  LaunchAddresses addresses{}; ///< Of its last launch.
  std::mutex mutex;            ///< Of all below: one thread at a time changes and launches an executable graph.
  std::vector<Node> nodes;
  cuda::Graph graph = nullptr; ///< Kept: it has the nodes that name those of the executable graph.
  cuda::GraphExec exec = nullptr;

  Exec(const cuda::DriverTable &api, cuda::Stream stream, bool ready) : api(api), stream(stream), ready(ready) {}
  Exec(const Exec &) = delete;
  Exec &operator=(const Exec &) = delete;
  ~Exec() {
    BesideCaptures mode(api);
    if (exec)
      api.graphExecDestroy(exec);
    if (graph)
      api.graphDestroy(graph);
  }

  bool patch(const LaunchArgs &args) {
    return llvm::all_of(nodes, [&](Node &node) { return node.patch(api, args); });
  }

  /// Adds `node`, behind all that are there.
  bool add(Node &node, cuda::GraphNode before) {
    const ptx::KernelInfo &info = node.info;
    if (api.graphAddKernel(&node.handle, graph, nullptr, 0, &node.params) != cuda::success)
      return false;
    if (info.cluster != std::array<uint32_t, 3>{1, 1, 1}) {
      cuda::LaunchAttribute cluster{};
      cluster.value.clusterDim = {info.cluster[0], info.cluster[1], info.cluster[2]};
      if (api.graphKernelSet(node.handle, cuda::clusterDimension, &cluster.value) != cuda::success)
        return false;
    }
    if (!before)
      return true;
    cuda::GraphEdge edge{}; // the same that capturing a launch with programmaticStreamSerialization gives
    if (info.overlaps)
      edge.fromPort = cuda::portProgrammatic, edge.type = cuda::edgeProgrammatic;
    return api.graphAddEdges(graph, &before, &node.handle, &edge, 1) == cuda::success;
  }

  /// Makes the executable graph with the parameters that the nodes have. Nothing is captured for that: the default
  /// stream cannot be, and other captures may be under way.
  bool makeAndLaunch() {
    BesideCaptures mode(api);
    if (graph || api.graphCreate(&graph, 0) != cuda::success) // once it was refused: not again
      return false;
    cuda::GraphNode before = nullptr;
    for (Node &node : nodes) {
      if (!add(node, before))
        return false;
      before = node.handle;
      node.changed = false;
    }
    return api.graphInstantiate(&exec, graph, 0) == cuda::success && launch();
  }

  bool launch() {
    for (Node &node : nodes) {
      if (node.changed && api.graphExecKernelSet(exec, node.handle, &node.params) != cuda::success)
        return false;
      node.changed = false;
    }
    return api.graphLaunch(exec, stream) == cuda::success;
  }
};

bool LaunchGraphs::served(const cuda::DriverTable &api) {
  return api.streamIsCapturing && api.captureMode && api.graphCreate && api.graphAddKernel && api.graphKernelSet &&
         api.graphAddEdges && api.graphInstantiate && api.graphExecKernelSet && api.graphLaunch &&
         api.graphExecDestroy && api.graphDestroy;
}

LaunchGraphs::LaunchGraphs(const Device &device, const ptx::LaunchInfo &info, llvm::ArrayRef<cuda::Function> functions,
                           llvm::ArrayRef<KernelReplay> kernels)
    : device(device), info(info), functions(functions), kernels(kernels),
      readies(llvm::any_of(kernels, [](const KernelReplay &kernel) { return kernel.readies; })) {}

LaunchGraphs::~LaunchGraphs() {
  Device::Scope scope(device);
  for (std::shared_ptr<Exec> &exec : execs)
    exec.reset();
}

bool LaunchGraphs::suits(cuda::Stream stream, const LaunchArgs &args) const {
  unsigned count = 0;
  bool overlaps = false;
  for (const auto &[kernel, known] : llvm::zip_equal(info.kernels, kernels))
    if (known.launched(args)) {
      ++count;
      overlaps = kernel.overlaps;
    }
  if (count == 0 || (count == 1 && overlaps) || reinterpret_cast<uintptr_t>(stream) == cuda::perThreadStream)
    return false;
  int status = cuda::captureNone;
  return device.api().streamIsCapturing(stream, &status) == cuda::success && status == cuda::captureNone;
}

/// A place that is empty, or that of the graph which was not launched for the longest time, if that is long enough;
/// null where no more than `left` of such places are there.
std::shared_ptr<LaunchGraphs::Exec> *LaunchGraphs::freePlace(unsigned left) {
  auto lastLaunch = [](const std::shared_ptr<Exec> &exec) { return exec ? exec->lastLaunch : 0; };
  auto isFree = [&](const std::shared_ptr<Exec> &exec) { return !exec || launches - exec->lastLaunch > idle; };
  if (llvm::count_if(execs, isFree) <= left)
    return nullptr;
  return llvm::min_element(execs,
                           [&](const auto &one, const auto &other) { return lastLaunch(one) < lastLaunch(other); });
}

/// Whether they are of a launch not long ago that had to set them, too.
bool LaunchGraphs::comeAgain(cuda::Stream stream, const LaunchAddresses &addresses) {
  std::pair miss(stream, addresses);
  bool again = llvm::is_contained(missed, miss);
  if (!again)
    missed[misses++ % remembered] = miss;
  return again;
}

/// The stream's graph that has the addresses, else the one that was launched last: buffers that go round would else
/// take from each other what the next one needs. One that is not made yet where the stream has none, and for addresses
/// that come again. Null when there is no place for it, or graphs are refused.
std::shared_ptr<LaunchGraphs::Exec> LaunchGraphs::execFor(cuda::Stream stream, const LaunchArgs &args) {
  const bool ready = readies && args.workspaceReady;
  const LaunchAddresses addresses = addressesOf(args);
  std::shared_ptr<Exec> former; // ends behind the lock
  std::lock_guard lock(mutex);
  if (refused)
    return nullptr;
  ++launches;
  std::shared_ptr<Exec> same, last;
  for (const std::shared_ptr<Exec> &exec : execs) {
    if (!exec || exec->stream != stream || exec->ready != ready)
      continue;
    if (exec->addresses == addresses)
      same = exec;
    if (!last || last->lastLaunch < exec->lastLaunch)
      last = exec;
  }
  std::shared_ptr<Exec> chosen = same ? same : last, *place = nullptr;
  if (!chosen)
    place = freePlace(0);
  else if (!same && comeAgain(stream, addresses))
    place = freePlace(keptForStreams);
  if (place) {
    chosen = std::make_shared<Exec>(device.api(), stream, ready);
    for (const auto &[index, kernel] : llvm::enumerate(kernels))
      if (kernel.launched(args))
        chosen->nodes.emplace_back(info.kernels[index], kernel, functions[index]);
    former = std::exchange(*place, chosen);
  }
  if (chosen)
    chosen->lastLaunch = launches, chosen->addresses = addresses;
  return chosen;
}

bool LaunchGraphs::launch(cuda::Stream stream, const LaunchArgs &args) {
  if (!suits(stream, args))
    return false;
  std::shared_ptr<Exec> exec = execFor(stream, args);
  if (!exec)
    return false;
  {
    std::lock_guard lock(exec->mutex);
    if (!exec->patch(args))
      return false;
    if (exec->exec ? exec->launch() : exec->makeAndLaunch())
      return true;
  }
  std::array<std::shared_ptr<Exec>, capacity> former; // ends behind the lock
  std::lock_guard lock(mutex);
  refused = true;
  former.swap(execs);
  return false;
}

} // namespace gemmc
