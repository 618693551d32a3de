#include "gemmc/Run/Bench.h"
#include "Timing.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <chrono>

namespace gemmc::run {
namespace {
constexpr double shortLaunch = 20e-6; ///< Below this, an event pair measures its own overhead too.
constexpr double batchSeconds = 400e-6;

/// A, B, C, D of one problem, several times over.
class BufferSets {
public:
  static Outcome<BufferSets> create(std::shared_ptr<const Device> device, const GemmProblem &problem, unsigned count,
                                    const DeviceStream &stream);
  /// The problem's arguments on set `index`.
  LaunchArgs args(const LaunchArgs &base, unsigned index) const {
    LaunchArgs out = base;
    uint64_t start = memory.address() + index * stride;
    out.a = start + offsets[0];
    out.b = start + offsets[1];
    out.c = base.beta != 0 ? start + offsets[2] : 0;
    out.d = start + offsets[3];
    return out;
  }
  static uint64_t bytesOf(const GemmProblem &problem) {
    uint64_t sum = 0;
    for (const HostMatrix *matrix : {&problem.a, &problem.b, &problem.c, &problem.d})
      sum += llvm::alignTo(matrix->data.size() + 256, 256);
    return sum;
  }

private:
  DeviceMemory memory;
  uint64_t stride = 0;
  std::array<uint64_t, 4> offsets{};
};

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

/// The whole of one benchmark.
class Bench {
public:
  Bench(const Code &code, const BenchRequest &request, std::shared_ptr<const Device> device, DeviceStream stream)
      : code(code), request(request), device(std::move(device)), stream(std::move(stream)) {}
  Outcome<BenchReport> go();

private:
  MaybeFailure setUp();
  MaybeFailure addOurs();
  MaybeFailure addCublas();
  MaybeFailure chooseFinalists();
  MaybeFailure warmUp(Contender &contender);
  MaybeFailure chooseBatch();
  MaybeFailure playRounds();
  void conclude(std::vector<std::vector<double>> rounds);
  CublasProblem cublasProblem() const;

  const Code &code;
  const BenchRequest &request;
  std::shared_ptr<const Device> device;
  DeviceStream stream;
  GemmProblem problem;
  std::optional<BufferSets> buffers;
  DeviceMemory workspace, cublasWorkspace;
  std::shared_ptr<const GpuModule> module;
  std::shared_ptr<const CublasLt> cublas;
  std::unique_ptr<CublasMatmul> matmul;
  std::vector<Contender> contenders; ///< Ours first.
  std::vector<unsigned> algorithm;   ///< Of contenders 1...
  BenchReport report;
};

MaybeFailure Bench::setUp() {
  auto made = makeProblem(code.info, request.problem);
  if (!made)
    return made.failure();
  problem = std::move(*made);
  report.args = problem.args;
  report.info = code.info;
  report.device = device->name;
  report.rounds = request.rounds;
  report.sets = rotatingSets(BufferSets::bytesOf(problem), device->l2Bytes);
  auto sets = BufferSets::create(device, problem, report.sets, stream);
  if (!sets)
    return sets.failure();
  buffers = std::move(*sets);
  return std::nullopt;
}

MaybeFailure Bench::addOurs() {
  auto loaded = GpuModule::load(device, code.ptx, code.info, targetOf(code.ptx));
  if (!loaded)
    return loaded.failure();
  module = *loaded;
  LaunchArgs args = problem.args;
  auto bytes = workspaceBytes(code.info, args, device->sms);
  if (bytes && *bytes > 0) {
    auto memory = DeviceMemory::allocate(device, *bytes, "the workspace");
    if (!memory)
      return memory.failure();
    workspace = std::move(*memory);
    args.workspace = workspace.address();
    args.workspaceBytes = *bytes;
  }
  contenders.emplace_back(
      device, "gemmc",
      [this, args](cuda::Stream to, unsigned set) { return module->launch(to, buffers->args(args, set)); },
      report.sets);
  return std::nullopt;
}

CublasProblem Bench::cublasProblem() const {
  CublasProblem out;
  const LaunchArgs &args = problem.args;
  out.m = args.m, out.n = args.n, out.k = args.k;
  uint64_t misalign = problem.options.misalign, align = misalign ? misalign & -misalign : 256;
  auto operand = [&](const ptx::OperandInfo &info, int64_t ld) {
    return CublasOperand{info.type, info.order, ld, align};
  };
  out.a = operand(code.info.a, args.lda);
  out.b = operand(code.info.b, args.ldb);
  out.c = operand(code.info.c, args.ldc);
  out.d = operand(code.info.d, args.ldd);
  out.accumulator = code.info.accumulator;
  out.alpha = args.alpha;
  out.beta = args.beta;
  return out;
}

MaybeFailure Bench::addCublas() {
  auto loaded = CublasLt::load(device, request.cublasLibrary);
  if (!loaded)
    return loaded.failure();
  cublas = *loaded;
  auto created = CublasMatmul::create(cublas, cublasProblem());
  if (!created)
    return created.failure();
  matmul = std::move(*created);
  auto memory = DeviceMemory::allocate(device, CublasLt::workspaceLimit, "cuBLASLt's workspace");
  if (!memory)
    return memory.failure();
  cublasWorkspace = std::move(*memory);
  report.algorithms = matmul->algorithms();
  return chooseFinalists();
}

/// Times every algorithm briefly; the fastest few, and the first, go on.
MaybeFailure Bench::chooseFinalists() {
  auto make = [this](unsigned index) {
    std::string name = llvm::formatv("cuBLASLt algorithm {0} (family {1})", index, matmul->algorithmId(index)).str();
    return Contender(
        device, name,
        [this, index](cuda::Stream to, unsigned set) {
          LaunchArgs args = buffers->args(problem.args, set);
          return matmul->run(index, to, args.a, args.b, args.c, args.d, cublasWorkspace.address());
        },
        report.sets);
  };
  std::vector<std::pair<double, unsigned>> times;
  for (unsigned index = 0; index < matmul->algorithms(); ++index) {
    Contender contender = make(index);
    std::vector<double> seconds;
    for (int i = 0; i < 4; ++i) {
      auto time = contender.time(stream);
      if (!time && time.failure().contextDead)
        return time.failure();
      if (!time)
        break;   // an algorithm that does not run is no competitor
      if (i > 0) // the first one loads code
        seconds.push_back(*time);
    }
    if (seconds.size() == 3)
      times.push_back({medianOf(seconds), index});
  }
  std::sort(times.begin(), times.end());
  for (const auto &[time, index] : times)
    if (algorithm.size() < request.finalists || index == 0)
      algorithm.push_back(index);
  for (unsigned index : algorithm)
    contenders.push_back(make(index));
  return std::nullopt;
}

MaybeFailure Bench::warmUp(Contender &contender) {
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  do {
    for (int i = 0; i < 8; ++i)
      if (auto failed = contender.once(stream.get()))
        return failed;
    if (auto failed = stream.synchronize("warming up " + contender.name()))
      return failed;
  } while (elapsed() < request.warmUpSeconds);
  return std::nullopt;
}

/// One batch size for all: as many launches of our kernel as fill the measuring time.
MaybeFailure Bench::chooseBatch() {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    auto time = contenders.front().time(stream);
    if (!time)
      return time.failure();
    seconds.push_back(*time);
  }
  double one = medianOf(seconds);
  if (one < shortLaunch)
    report.batch = static_cast<unsigned>(std::clamp(batchSeconds / std::max(one, 1e-7), 2.0, 200.0));
  report.graphs = report.batch > 1 && hasGraphs(*device);
  for (Contender &contender : contenders)
    if (auto failed = contender.prepare(stream, report.batch, report.graphs))
      return failed;
  return std::nullopt;
}

MaybeFailure Bench::playRounds() {
  std::vector<std::vector<double>> rounds(contenders.size());
  for (unsigned round = 0; round < request.rounds; ++round)
    for (unsigned turn = 0; turn < contenders.size(); ++turn) {
      unsigned index = (round + turn) % contenders.size(); // nobody is always first
      std::vector<double> seconds;
      for (unsigned i = 0; i <= request.perRound; ++i) {
        auto time = contenders[index].time(stream);
        if (!time)
          return time.failure();
        if (i > 0) // the first one follows another kernel
          seconds.push_back(*time);
      }
      rounds[index].push_back(medianOf(seconds));
    }
  conclude(std::move(rounds));
  return std::nullopt;
}

void Bench::conclude(std::vector<std::vector<double>> rounds) {
  const LaunchArgs &args = problem.args;
  double flops = 2.0 * double(args.m) * double(args.n) * double(args.k);
  for (unsigned i = 0; i < contenders.size(); ++i) {
    BenchEntry entry{contenders[i].name()};
    entry.median = medianOf(rounds[i]);
    entry.best = *std::min_element(rounds[i].begin(), rounds[i].end());
    entry.worst = *std::max_element(rounds[i].begin(), rounds[i].end());
    entry.flops = entry.median > 0 ? flops / entry.median : 0;
    if (i > 0 && algorithm[i - 1] == 0)
      report.firstHeuristic = entry.median;
    if (i == 0)
      report.ours = entry;
    else
      report.cublas.push_back(entry);
  }
  llvm::sort(report.cublas, [](const BenchEntry &x, const BenchEntry &y) { return x.median < y.median; });
}

Outcome<BenchReport> Bench::go() {
  if (auto failed = setUp())
    return *failed;
  if (auto failed = addOurs())
    return *failed;
  if (request.versusCublas)
    if (auto failed = addCublas()) {
      if (failed->contextDead)
        return *failed;
      report.remark = failed->str();
    }
  for (Contender &contender : contenders)
    if (auto failed = warmUp(contender))
      return *failed;
  if (auto failed = chooseBatch())
    return *failed;
  if (auto failed = playRounds())
    return *failed;
  return report;
}
} // namespace

unsigned rotatingSets(uint64_t bytes, uint64_t l2Bytes) {
  uint64_t wanted = std::max<uint64_t>(uint64_t(256) << 20, 2 * l2Bytes);
  return static_cast<unsigned>(std::clamp<uint64_t>(llvm::divideCeil(wanted, std::max<uint64_t>(bytes, 1)), 3, 1024));
}

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  llvm::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> BenchReport::ratio() const {
  if (cublas.empty() || ours.median <= 0)
    return std::nullopt;
  return cublas.front().median / ours.median;
}

std::optional<double> BenchReport::ratioToFirst() const {
  if (!firstHeuristic || ours.median <= 0)
    return std::nullopt;
  return *firstHeuristic / ours.median;
}

Outcome<BenchReport> runBench(const Code &code, const BenchRequest &request, std::shared_ptr<const Device> device) {
  auto stream = DeviceStream::create(device);
  if (!stream)
    return stream.failure();
  return Bench(code, request, std::move(device), std::move(*stream)).go();
}

} // namespace gemmc::run
