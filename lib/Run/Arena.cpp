#include "gemmc/Run/Arena.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace gemmc::run {
namespace {
constexpr double shortLaunch = 100e-6; ///< Below this, the few microseconds of an event pair count.
constexpr double batchSeconds = 1e-3;
constexpr double busySeconds = 2e-3; ///< Of a batch within a long turn: the host's wait behind it is no rest.
constexpr double leastTiming = 1e-4; ///< Of a turn's time, whatever the timer says: turns end.
} // namespace

uint64_t BufferSets::bytesOf(const GemmProblem &problem) {
  uint64_t sum = 0;
  for (const HostMatrix *matrix : {&problem.a, &problem.b, &problem.c, &problem.d})
    sum += llvm::alignTo(matrix->data.size() + 256, 256);
  return sum;
}

LaunchArgs BufferSets::args(const LaunchArgs &base, unsigned index) const {
  LaunchArgs out = base;
  uint64_t start = memory.address() + index * stride;
  out.a = start + offsets[0];
  out.b = start + offsets[1];
  out.c = base.beta != 0 ? start + offsets[2] : 0;
  out.d = start + offsets[3];
  return out;
}

Outcome<BufferSets> BufferSets::create(std::shared_ptr<const Device> device, const GemmProblem &problem, unsigned count,
                                       const DeviceStream &stream) {
  BufferSets sets;
  sets.stride = bytesOf(problem);
  auto memory = DeviceMemory::allocate(device, sets.stride * count, "rotating buffers");
  if (!memory)
    return memory.failure();
  sets.memory = std::move(*memory);
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  uint64_t offset = 0, start = sets.memory.address();
  const HostMatrix *matrices[] = {&problem.a, &problem.b, &problem.c, &problem.d};
  for (unsigned i = 0; i < 4; ++i) {
    sets.offsets[i] = offset + problem.options.misalign;
    const std::vector<std::byte> &data = matrices[i]->data;
    if (!data.empty())
      if (auto failed =
              driver.check(driver.api().copyToDevice(start + sets.offsets[i], data.data(), data.size(), stream.get()),
                           "copying `" + matrices[i]->name + "` to the device"))
        return *failed;
    offset += llvm::alignTo(data.size() + 256, 256);
  }
  for (unsigned i = 1; i < count; ++i)
    if (auto failed = driver.check(driver.api().copyOnDevice(start + i * sets.stride, start, sets.stride, stream.get()),
                                   "copying buffers"))
      return *failed;
  if (auto failed = stream.synchronize("filling buffers"))
    return *failed;
  return sets;
}

Outcome<std::unique_ptr<Arena>> Arena::open(const ptx::LaunchInfo &info, const ProblemOptions &options,
                                            std::shared_ptr<const Device> device) {
  auto stream = DeviceStream::create(device);
  if (!stream)
    return stream.failure();
  auto made = makeProblem(info, options);
  if (!made)
    return made.failure();
  std::unique_ptr<Arena> arena(new Arena(std::move(device), std::move(*stream)));
  arena->info = info;
  arena->problem = std::move(*made);
  arena->setCount = rotatingSets(BufferSets::bytesOf(arena->problem), arena->device->l2Bytes);
  auto sets = BufferSets::create(arena->device, arena->problem, arena->setCount, arena->stream);
  if (!sets)
    return sets.failure();
  arena->buffers = std::move(*sets);
  return arena;
}

Outcome<uint64_t> Arena::workspaceOf(uint64_t bytes, bool own) {
  if (!own && !workspaces.empty() && workspaces.back().bytes() >= bytes)
    return workspaces.back().address();
  auto memory = DeviceMemory::allocate(device, bytes, "the workspace");
  if (!memory)
    return memory.failure();
  std::vector<DeviceMemory> &where = own ? ownWorkspaces : workspaces;
  where.push_back(std::move(*memory));
  return where.back().address();
}

MaybeFailure Arena::admit(std::string name, std::shared_ptr<const GpuModule> module) {
  LaunchArgs args = problem.args;
  auto bytes = workspaceBytes(module->info(), args, device->sms);
  // A workspace that is readied once and stays ready is nobody else's.
  bool stays = llvm::any_of(module->info().kernels, [](const ptx::KernelInfo &kernel) { return kernel.readies; });
  if (bytes && *bytes > 0) {
    auto place = workspaceOf(*bytes, stays);
    if (!place)
      return place.failure();
    args.workspace = *place;
    args.workspaceBytes = *bytes;
  }
  alike.push_back(module->info().accumulator == info.accumulator && module->info().promoted == info.promoted);
  contenders.emplace_back(
      device, std::move(name),
      [this, args, stays, module = std::move(module)](cuda::Stream to, unsigned set) mutable {
        MaybeFailure failed = module->launch(to, buffers->args(args, set));
        args.workspaceReady = stays && !failed;
        return failed;
      },
      setCount);
  algorithm.push_back(std::nullopt);
  MaybeFailure failed = contenders.back().once(stream.get());
  if (!failed)
    failed = stream.synchronize("running " + contenders.back().name());
  if (failed) {
    contenders.pop_back();
    algorithm.pop_back();
    alike.pop_back();
  }
  return failed;
}

CublasProblem Arena::cublasProblem() const {
  CublasProblem out;
  const LaunchArgs &args = problem.args;
  out.m = args.m, out.n = args.n, out.k = args.k, out.batch = args.batch;
  uint64_t misalign = problem.options.misalign, align = misalign ? misalign & -misalign : 256;
  auto operand = [&](const ptx::OperandInfo &operandInfo, int64_t ld, int64_t stride) {
    return CublasOperand{operandInfo.type, operandInfo.order, ld, stride, align};
  };
  out.a = operand(info.a, args.lda, args.strideA);
  out.b = operand(info.b, args.ldb, args.strideB);
  out.c = operand(info.c, args.ldc, args.strideC);
  out.d = operand(info.d, args.ldd, args.strideD);
  out.accumulator = info.accumulator;
  out.fast = info.promoted == 0;
  out.alpha = problem.negated ? -args.alpha : args.alpha;
  out.beta = args.beta;
  return out;
}

Contender Arena::contenderOf(unsigned index) {
  std::string name = llvm::formatv("cuBLASLt algorithm {0} (family {1})", index, matmul->algorithmId(index)).str();
  return Contender(
      device, name,
      [this, index](cuda::Stream to, unsigned set) {
        LaunchArgs args = buffers->args(problem.args, set);
        return matmul->run(index, to, args.a, args.b, args.c, args.d, cublasWorkspace.address());
      },
      setCount);
}

/// The median of three timings; nullopt for one that does not run, or is no match for the `fastest` so far.
Outcome<std::optional<double>> Arena::timeBriefly(unsigned index, double fastest) {
  constexpr double hopeless = 1.5; // no clock makes good for that
  Contender contender = contenderOf(index);
  std::vector<double> seconds;
  for (unsigned count : {1, 2}) { // the launch in front of the first one loads code
    auto each = contender.timeEach(stream, count);
    if (!each && each.failure().contextDead)
      return each.failure();
    if (!each)
      return std::optional<double>();
    seconds.insert(seconds.end(), each->begin(), each->end());
    if (seconds.front() > hopeless * fastest && index != 0)
      return std::optional<double>();
  }
  return std::optional(medianOf(std::move(seconds)));
}

MaybeFailure Arena::admitCublas(std::shared_ptr<const CublasLt> library, unsigned finalists, const Judge &judge) {
  cublas = std::move(library);
  auto created = CublasMatmul::create(cublas, cublasProblem());
  if (!created)
    return created.failure();
  matmul = std::move(*created);
  auto memory = DeviceMemory::allocate(device, CublasLt::workspaceLimit, "cuBLASLt's workspace");
  if (!memory)
    return memory.failure();
  cublasWorkspace = std::move(*memory);

  llvm::SmallDenseSet<unsigned, 8> admitted;
  auto admits = [&](unsigned index) -> Outcome<bool> {
    if (!judge || admitted.contains(index))
      return true;
    Contender candidate = contenderOf(index);
    auto good = judge(candidate);
    if (good && *good)
      admitted.insert(index);
    refused += good && !*good;
    return good;
  };
  std::vector<std::pair<double, unsigned>> times;
  double fastest = std::numeric_limits<double>::infinity();
  for (unsigned index = 0; index < matmul->algorithms(); ++index) {
    auto time = timeBriefly(index, fastest);
    if (!time)
      return time.failure();
    if (!*time)
      continue;
    if (**time < fastest) { // who is slower by much is not heard any more
      auto good = admits(index);
      if (!good)
        return good.failure();
      if (!*good)
        continue;
      fastest = **time;
    }
    times.push_back({**time, index});
  }
  std::sort(times.begin(), times.end());
  unsigned taken = 0;
  for (const auto &[time, index] : times)
    if (taken < finalists || index == 0) {
      auto good = admits(index);
      if (!good)
        return good.failure();
      if (!*good)
        continue;
      contenders.push_back(contenderOf(index));
      algorithm.push_back(index);
      ++taken;
    }
  return std::nullopt;
}

Outcome<Verification> Arena::verify(Contender &contender, const Reference &wanted) {
  HostMatrix d = problem.d;
  const uint64_t place = buffers->args(problem.args, 0).d, bytes = d.data.size();
  Device::Scope scope(*device);
  const Driver &driver = device->driver();
  if (bytes > 0)
    if (auto failed = driver.check(driver.api().copyToDevice(place, d.data.data(), bytes, stream.get()),
                                   "copying `d` to the device"))
      return *failed;
  if (auto failed = contender.on(0, stream.get()))
    return *failed;
  if (auto failed = stream.synchronize("running " + contender.name()))
    return *failed;
  if (bytes > 0)
    if (auto failed = driver.check(driver.api().copyToHost(d.data.data(), place, bytes, stream.get()),
                                   "copying `d` from the device"))
      return *failed;
  if (auto failed = stream.synchronize("copying `d` from the device"))
    return *failed;
  Verification out = run::verify(wanted, d);
  if (auto guard = checkPadding(problem.d, d)) {
    out.guard = guard;
    out.ok = false;
  }
  return out;
}

MaybeFailure Arena::warmUp(unsigned index, double seconds) {
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Contender &contender = contenders[index];
  do {
    for (int i = 0; i < 8; ++i)
      if (auto failed = contender.once(stream.get()))
        return failed;
    if (auto failed = stream.synchronize("warming up " + contender.name()))
      return failed;
  } while (elapsed() < seconds);
  return std::nullopt;
}

MaybeFailure Arena::chooseBatch(const Turn &turn) {
  auto seconds = contenders.front().timeEach(stream, 5);
  if (!seconds)
    return seconds.failure();
  double one = std::max(medianOf(std::move(*seconds)), 1e-7);
  if (turn.seconds > 0)
    batchSize = static_cast<unsigned>(std::clamp(std::ceil(busySeconds / one), 2.0, 1000.0));
  else
    batchSize = one < shortLaunch ? static_cast<unsigned>(std::clamp(batchSeconds / one, 2.0, 200.0)) : 1;
  useGraphs = batchSize > 1 && hasGraphs(*device);
  return std::nullopt;
}

MaybeFailure Arena::prepare(const Turn &turn) {
  if (batchSize == 0)
    if (auto failed = chooseBatch(turn))
      return failed;
  for (; prepared < contenders.size(); ++prepared)
    if (auto failed = contenders[prepared].prepare(stream, batchSize, useGraphs))
      return failed;
  return std::nullopt;
}

/// Single launches follow each other: a device with nothing to do would wait for the host between the first event of a
/// timing and its launch, which takes cuBLASLt 5 to 18 us and a graph of ours 1 to 4: 3 to 10% of a product of 200 us
/// (H200, 2026-11-27, docs/hopper.md, *How to measure here*). A rest leaves it nothing to do.
Outcome<double> Arena::playTurn(unsigned index, const Turn &turn) {
  if (turn.rest > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(turn.rest));
  if (batchSize == 1 && turn.rest == 0) {
    auto each = contenders[index].timeEach(stream, turn.timings);
    return each ? Outcome<double>(medianOf(std::move(*each))) : each.failure();
  }
  std::vector<double> seconds;
  double played = 0;
  for (bool first = true; first || played < turn.seconds || seconds.size() < turn.timings; first = false) {
    auto time = contenders[index].time(stream);
    if (!time)
      return time.failure();
    bool settled = !first && played >= turn.seconds / 2; // the first one follows another kernel
    if (settled)
      seconds.push_back(*time);
    played += std::max(*time * batchSize, leastTiming);
  }
  return medianOf(seconds);
}

Outcome<std::vector<double>> Arena::playRound(llvm::ArrayRef<unsigned> members, const Turn &turn,
                                              const std::function<bool()> &stopped) {
  std::vector<double> medians(members.size());
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, members.size()));
  std::shuffle(order.begin(), order.end(), shuffler);
  for (unsigned place : order) {
    if (stopped && stopped())
      return Failure::make(Diag::measuring_stopped);
    auto median = playTurn(members[place], turn);
    if (!median)
      return median.failure();
    medians[place] = *median;
  }
  return medians;
}

Outcome<double> Arena::hostCost(unsigned index) {
  constexpr int most = 200, rounds = 5; // fewer than a stream takes before the host must wait
  constexpr double deviceSeconds = 0.1; // all of it: the device is busy long after the host is done
  using Clock = std::chrono::steady_clock;
  auto one = contenders[index].time(stream);
  if (!one)
    return one.failure();
  int launches = static_cast<int>(std::clamp(deviceSeconds / rounds / std::max(*one, 1e-7), 8.0, double(most)));
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    auto before = Clock::now();
    for (int i = 0; i < launches; ++i) {
      if (auto failed = contenders[index].once(stream.get()))
        return *failed;
      auto after = Clock::now();
      seconds.push_back(std::chrono::duration<double>(after - before).count());
      before = after;
    }
    if (auto failed = stream.synchronize("running " + contenders[index].name()))
      return *failed;
  }
  return medianOf(seconds);
}

unsigned rotatingSets(uint64_t bytes, uint64_t l2Bytes) {
  uint64_t wanted = std::max<uint64_t>(uint64_t(256) << 20, 2 * l2Bytes);
  return static_cast<unsigned>(std::clamp<uint64_t>(llvm::divideCeil(wanted, std::max<uint64_t>(bytes, 1)), 3, 1024));
}

} // namespace gemmc::run
