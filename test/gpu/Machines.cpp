#include "Machines.h"
#include "gemmc/Emu/Emulator.h"
#include "gemmc/Emu/Numerics.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cmath>
#include <cstring>

using namespace llvm;

namespace gemmc::microtests {
namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

emu::EncodedMap encodeForEmulator(const MapRequest &map, uint64_t address) {
  emu::TensorMapValues values;
  values.type = map.type;
  values.address = address;
  values.dims = map.dims, values.strides = map.strides, values.box = map.box;
  values.swizzle = static_cast<ptx::TmaSwizzle>(map.swizzle);
  return emu::encodeTensorMap(values);
}
} // namespace

std::unique_ptr<Card> Card::open(Trouble &error) {
  auto device = openDevice();
  if (!device) {
    error = device.failure().str();
    return nullptr;
  }
  auto card = std::make_unique<Card>();
  card->device = *device;
  return card;
}

Trouble Card::check(cuda::Result code, const char *what) {
  if (code == cuda::success)
    return "";
  Failure failure = device->driver().failure(code, what);
  dead |= failure.contextDead;
  return failure.str();
}

Trouble Card::launch(cuda::Function function, Shape shape, uint64_t in, uint64_t out, const MapRequest *map) {
  const cuda::DriverTable &api = device->api();
  cuda::TensorMap encoded{};
  if (map) {
    if (!api.encodeTiled)
      return "no cuTensorMapEncodeTiled";
    std::vector<uint32_t> ones(map->dims.size(), 1);
    const auto &steps = map->elementStrides.empty() ? ones : map->elementStrides;
    if (Trouble error = check(api.encodeTiled(&encoded, map->driverType, map->dims.size(), reinterpret_cast<void *>(in),
                                              map->dims.data(), map->strides.data(), map->box.data(), steps.data(), 0,
                                              map->swizzle, 0, map->oobNaN),
                              "cuTensorMapEncodeTiled");
        !error.empty())
      return error;
  }
  void *params[] = {&in, &out, &encoded};
  cuda::LaunchAttribute cluster{};
  cluster.id = cuda::clusterDimension;
  cluster.value.clusterDim = {shape.cluster, 1, 1};
  cuda::LaunchConfig config{
      shape.grid, 1, 1, shape.threads, 1, 1, shape.dynamicShared, nullptr, &cluster, shape.cluster > 1 ? 1u : 0u};
  if (shape.dynamicShared)
    if (Trouble error = check(api.functionSet(function, cuda::maxDynamicShared, static_cast<int>(shape.dynamicShared)),
                              "setting shared memory");
        !error.empty())
      return error;
  if (Trouble error = check(api.launch(&config, function, params, nullptr), "launching"); !error.empty())
    return error;
  return check(api.ctxSynchronize(), "running");
}

Trouble Card::run(const std::string &ptx, Shape shape, ConstBytes in, Bytes out, const MapRequest *map) {
  if (!device) {
    recorded.push_back(ptx);
    return "";
  }
  Device::Scope scope(*device);
  const cuda::DriverTable &api = device->api();
  double start = now();
  cuda::Module module = nullptr;
  std::vector<char> log(8192, 0);
  int options[] = {cuda::errorLog, cuda::errorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(static_cast<uintptr_t>(log.size() - 1))};
  if (Trouble error = check(api.moduleLoad(&module, ptx.c_str(), 2, options, values), "assembling"); !error.empty())
    return error + " " + StringRef(log.data()).trim().str();
  jitSeconds = now() - start;
  auto attempt = [&]() -> Trouble {
    cuda::Function function = nullptr;
    if (Trouble error = check(api.moduleFunction(&function, module, "k"), "finding the kernel"); !error.empty())
      return error;
    auto input = DeviceMemory::allocate(device, std::max<size_t>(in.size(), 256), "inputs");
    auto output = DeviceMemory::allocate(device, std::max<size_t>(out.size(), 256), "outputs");
    if (!input || !output)
      return (!input ? input.failure() : output.failure()).str();
    if (Trouble error = check(api.copyToDevice(input->address(), in.data(), in.size(), nullptr), "copying inputs");
        !error.empty())
      return error;
    if (Trouble error = check(api.memset16(output->address(), 0xfefe, out.size() / 2, nullptr), "clearing outputs");
        !error.empty())
      return error;
    if (Trouble error = launch(function, shape, input->address(), output->address(), map); !error.empty())
      return error;
    if (Trouble error = check(api.copyToHost(out.data(), output->address(), out.size(), nullptr), "copying outputs");
        !error.empty())
      return error;
    return check(api.ctxSynchronize(), "copying outputs");
  };
  Trouble error = attempt();
  if (!dead)
    api.moduleUnload(module);
  return error;
}

Trouble emulate(const std::string &ptx, Shape shape, ConstBytes in, Bytes out, unsigned threads,
                const MapRequest *map) {
  Diags diags;
  std::optional<ptx::Module> module = ptx::parse(diags.addSource("micro.ptx", ptx), diags);
  if (!module || diags.hasErrors()) {
    std::string text;
    raw_string_ostream stream(text);
    diags.print(stream);
    return "the emulator's parser: " + text;
  }
  auto kernel = emu::Kernel::load(*module, "k");
  if (!kernel)
    return "no kernel `k`";
  emu::Memory memory;
  uint64_t from = memory.allocate(std::max<size_t>(in.size(), 256)),
           to = memory.allocate(std::max<size_t>(out.size(), 256));
  std::memcpy(memory.find(from, in.size()), in.data(), in.size());
  std::memset(memory.find(to, out.size()), 0xfe, out.size());
  emu::LaunchParams params;
  params.grid = {shape.grid, 1, 1}, params.block = {shape.threads, 1, 1}, params.cluster = {shape.cluster, 1, 1};
  params.dynamicShared = shape.dynamicShared;
  params.params.resize(map ? 192 : 16);
  std::memcpy(params.params.data(), &from, 8);
  std::memcpy(params.params.data() + 8, &to, 8);
  if (map) {
    emu::EncodedMap encoded = encodeForEmulator(*map, from);
    if (!encoded.error.empty())
      return encoded.error;
    std::memcpy(params.params.data() + 64, encoded.bytes.data(), 128);
  }
  emu::Options options;
  options.threads = threads;
  emu::Result result = kernel->launch(params, memory, options);
  std::memcpy(out.data(), memory.find(to, out.size()), out.size());
  if (result.verdict != emu::Verdict::clean && !result.findings.empty()) {
    const emu::Finding &finding = result.findings.front();
    return formatv("emulator: {0} [{1}] line {2}: {3}", emu::nameOf(result.verdict), finding.code, finding.line,
                   finding.message);
  }
  return "";
}

namespace {
/// Error of one element as a part of what is allowed. All NaN are one; infinity has no near neighbours.
double errorOf(uint64_t gpu, uint64_t emulator, const Tolerance &tolerance, ptx::Type type) {
  const emu::sem::Format &format = *emu::sem::formatOf(type);
  double x = emu::sem::decode(format, gpu), y = emu::sem::decode(format, emulator);
  if (x == y || (std::isnan(x) && std::isnan(y)))
    return 0;
  if (!std::isfinite(x) || !std::isfinite(y))
    return HUGE_VAL;
  int smallest = 2 - (1 << (format.exponent - 1));
  double ulp = std::ldexp(1, std::max(y == 0 ? smallest : std::ilogb(y), smallest) - format.fraction);
  return std::fabs(x - y) / ((tolerance.ulps + 1) * ulp + tolerance.relative * std::fabs(y) + tolerance.absolute);
}
double errorOfWord(const Family &family, uint64_t gpu, uint64_t emulator) {
  unsigned bits = widthOf(family.element);
  double worst = 0;
  for (unsigned at = 0; at < family.wordBytes * 8; at += bits)
    worst = std::max(worst, errorOf(gpu >> at, emulator >> at, *family.tolerance, family.element));
  return worst;
}

void addExample(Tally &outcome, const Family &family, ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
  outcome.examples.push_back(formatv("{0} gpu={1} emulator={2}", family.describe(in, word, gpu, emulator),
                                     hex(gpu, family.wordBytes * 8), hex(emulator, family.wordBytes * 8)));
}

void compareWords(const Family &family, ConstBytes in, ConstBytes gpu, ConstBytes emulator, unsigned examples,
                  Tally &outcome) {
  unsigned words = family.outBytes / family.wordBytes, lastVariant = ~0u;
  if (gpu == emulator)
    return;
  for (size_t at = 0; at < gpu.size(); at += family.wordBytes) {
    uint64_t x = loadBits(gpu, at, family.wordBytes), y = loadBits(emulator, at, family.wordBytes);
    if (x == y)
      continue;
    ++outcome.mismatches;
    unsigned cta = at / family.outBytes, word = at / family.wordBytes % words;
    if (family.tolerance) {
      double error = errorOfWord(family, x, y);
      outcome.worst = std::max(outcome.worst, error);
      if (error <= 1)
        continue;
    }
    // Different variants of a scalar family are the more telling examples.
    unsigned variant = word / family.threads;
    if (outcome.examples.size() < examples && (outcome.examples.size() < 2 || variant != lastVariant))
      addExample(outcome, family, in.slice(size_t(cta) * family.inBytes, family.inBytes), word, x, y);
    lastVariant = variant;
  }
}
} // namespace

Tally compare(const Family &family, Card *card, const Settings &settings) {
  Tally outcome;
  outcome.name = family.name;
  double start = now();
  unsigned wanted = (settings.vectors + family.vectors - 1) / family.vectors;
  unsigned ctas = (wanted + family.cluster - 1) / family.cluster * family.cluster;
  outcome.vectors = uint64_t(ctas) * family.vectors;
  std::vector<std::byte> in(size_t(ctas) * family.inBytes), gpu(size_t(ctas) * family.outBytes), emulator(gpu.size());
  Random random(settings.seed * 0x9e3779b97f4a7c15 + std::hash<std::string>()(family.name));
  for (unsigned cta = 0; cta < ctas; ++cta)
    family.fill(random, Bytes(in).slice(size_t(cta) * family.inBytes, family.inBytes));
  Shape shape{ctas, family.threads, family.cluster, 0};
  if (card) {
    outcome.error = card->run(family.ptx, shape, in, gpu);
    outcome.jitSeconds = card->jitSeconds;
  }
  if (outcome.error.empty()) {
    double before = now();
    outcome.error = emulate(family.ptx, shape, in, emulator, settings.threads);
    outcome.emulatorSeconds = now() - before;
  }
  if (card && outcome.error.empty())
    compareWords(family, in, gpu, emulator, settings.examples, outcome);
  if (!card && outcome.error.empty()) // without a card, the examples at least are seen to work
    for (unsigned word : {0u, family.outBytes / family.wordBytes / 2 + 3, family.outBytes / family.wordBytes - 1})
      addExample(outcome, family, ConstBytes(in).take_front(family.inBytes), word, 0,
                 loadBits(emulator, size_t(word) * family.wordBytes, family.wordBytes));
  outcome.bad = !outcome.error.empty() || (family.tolerance ? outcome.worst > 1 : outcome.mismatches > 0);
  outcome.seconds = now() - start;
  return outcome;
}

} // namespace gemmc::microtests
