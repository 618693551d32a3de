#include "gemmc/Emu/Emulator.h"
#include "Once.h"
#include "Sample.h"
#include "gemmc/Run/Executor.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstring>
#include <thread>

namespace gemmc::run {
namespace {
/// Large enough that every persistent CTA takes one tile, small enough that `sms * anything` is no overflow.
constexpr int64_t manySms = int64_t(1) << 30;

class Emulator final : public Executor {
public:
  Emulator(unsigned threads, const emu::CheckOptions &check, int64_t numSms, llvm::StringRef chip,
           emu::Timeline *timeline)
      : threads(threads ? threads : std::max(1u, std::thread::hardware_concurrency())), check(check), numSms(numSms),
        chip(chip), timeline(timeline) {}

  std::string where() const override {
    return llvm::formatv("emulator ({0} {1})", threads, threads == 1 ? "thread" : "threads").str();
  }
  bool isEmulator() const override { return true; }
  int64_t sms(const LaunchChoice &choice) const override { return choice.sampleClusters ? manySms : numSms; }
  MaybeFailure supports(llvm::StringRef) const override { return std::nullopt; }

  Outcome<uint64_t> upload(llvm::StringRef name, llvm::ArrayRef<std::byte> data, uint64_t misalign) override {
    Buffer &buffer = buffers[name];
    if (buffer.address)
      memory.free(buffer.address);
    buffer.bytes = data.size();
    // Even an empty matrix has an address that is no null pointer.
    buffer.address = memory.allocate(std::max<uint64_t>(data.size(), 1), 256, misalign);
    if (!data.empty())
      std::memcpy(memory.find(buffer.address, data.size()), data.data(), data.size());
    return buffer.address;
  }

  MaybeFailure download(llvm::StringRef name, llvm::MutableArrayRef<std::byte> data,
                        std::optional<GuardViolation> &) override {
    const Buffer &buffer = buffers[name];
    assert(buffer.address && buffer.bytes == data.size() && "download of what was uploaded");
    if (!data.empty()) // outside its allocations the emulator has no memory: it has found such an access itself
      std::memcpy(data.data(), memory.find(buffer.address, data.size()), data.size());
    return std::nullopt;
  }

  Outcome<LaunchOutcome> launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) override;

private:
  struct Buffer {
    uint64_t address = 0, bytes = 0;
  };
  MaybeFailure launchKernel(const ptx::Module &module, const ptx::KernelInfo &kernel, const LaunchArgs &args,
                            const LaunchChoice &choice, bool maySample, bool overlapped, LaunchOutcome &outcome);

  unsigned threads;
  emu::CheckOptions check;
  int64_t numSms;
  std::string chip; ///< Empty: the target's.
  emu::Timeline *timeline;
  emu::Memory memory;
  llvm::StringMap<Buffer> buffers;
};

MaybeFailure encodeForEmulator(llvm::StringRef name, const TensorMapArgs &map, std::byte *out) {
  emu::TensorMapValues values;
  values.type = map.type;
  values.address = map.address;
  values.dims.assign(map.dims.begin(), map.dims.end());
  values.strides.assign(map.strides.begin(), map.strides.end());
  values.box.assign(map.box.begin(), map.box.end());
  values.swizzle = map.swizzle;
  emu::EncodedMap encoded = emu::encodeTensorMap(values);
  if (!encoded.error.empty())
    return Failure::make(Diag::run_tensor_map, name, encoded.error);
  std::memcpy(out, encoded.bytes.data(), encoded.bytes.size());
  return std::nullopt;
}

/// Of a naive kernel with one cluster: 16 instructions for 32 products, and as much for each element of D as for 64.
/// Small products have whole tiles, too.
uint64_t mostSteps(const LaunchArgs &args) {
  constexpr int64_t tile = 256;
  return std::min(0.5 * double(std::max<int64_t>(1, args.batch)) * double(std::max(args.m, tile)) *
                      double(std::max(args.n, tile)) * (double(args.k) + 64),
                  0x1p62);
}

/// `ptx:123: error [MB-5] ...: cta (0, 1, 0), thread 32`
std::string describe(const emu::Finding &finding) {
  if (!finding.line)
    return llvm::formatv("error [{0}] {1}", finding.code, finding.message).str();
  return llvm::formatv("ptx:{0}: {1} [{2}] {3}; cta ({4}, {5}, {6}), thread {7}", finding.line,
                       finding.verdict == emu::Verdict::incomplete ? "incomplete" : "error", finding.code,
                       finding.message, finding.cta[0], finding.cta[1], finding.cta[2], finding.thread)
      .str();
}

MaybeFailure Emulator::launchKernel(const ptx::Module &module, const ptx::KernelInfo &kernel, const LaunchArgs &args,
                                    const LaunchChoice &choice, bool maySample, bool overlapped,
                                    LaunchOutcome &outcome) {
  PreparedKernel prepared;
  if (auto failed = prepareKernel(kernel, args, sms(choice), encodeForEmulator, prepared))
    return failed;
  if (prepared.empty)
    return std::nullopt;
  auto loaded = emu::Kernel::load(module, kernel.name);
  if (!loaded)
    return Failure::make(Diag::launch_no_entry, kernel.name);
  emu::LaunchParams params;
  params.grid = prepared.grid;
  params.block = kernel.block;
  params.cluster = kernel.cluster;
  params.dynamicShared = kernel.dynamicShared;
  params.overlapped = overlapped;
  for (const ptx::RegionInfo &region : kernel.memory)
    params.regions.push_back({region.name, region.offset, region.bytes, region.stages});
  params.params.assign(prepared.params.begin(), prepared.params.begin() + prepared.paramBytes);

  emu::Options options;
  options.threads = threads;
  options.check = check;
  options.timeline = timeline;
  options.maxSteps = choice.maxInstructions ? choice.maxInstructions : std::max(options.stepLimit(), mostSteps(args));
  outcome.ctasPerCluster = kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2];
  uint64_t total = uint64_t(prepared.grid[0]) * prepared.grid[1] * prepared.grid[2] / outcome.ctasPerCluster;
  outcome.clustersTotal = total; // of the last kernel, as is what is run of it
  if (maySample && choice.sampleClusters && choice.sampleClusters < total) {
    options.clusters = sampleOf(total, choice.sampleClusters, choice.seed);
    outcome.sampled = true;
  }
  outcome.clustersRun = outcome.sampled ? options.clusters.size() : total;

  auto start = std::chrono::steady_clock::now();
  emu::Result result = loaded->launch(params, memory, options);
  outcome.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.stats += result.stats;
  outcome.incomplete |= result.verdict == emu::Verdict::incomplete;
  Once seen;
  for (const emu::Finding &finding : result.findings) {
    if (!seen.isNew(finding))
      continue;
    if (finding.verdict != emu::Verdict::review && finding.verdict != emu::Verdict::clean)
      outcome.findings.push_back(describe(finding));
    outcome.witnesses.push_back(finding);
  }
  if (result.verdict != emu::Verdict::clean && result.findings.empty())
    outcome.findings.push_back("the emulator's verdict is not clean, without a finding");
  return std::nullopt;
}

/// The workspace around the kernels that only ready it.
class ReadyWorkspace {
public:
  ReadyWorkspace(emu::Memory &memory, const LaunchArgs &args)
      : bytes(args.workspaceBytes ? memory.find(args.workspace, args.workspaceBytes) : nullptr),
        size(bytes ? args.workspaceBytes : 0) {}

  void beforeReadying() {
    if (before.empty())
      before.assign(bytes, bytes + size);
  }
  void afterReadying() { after.assign(bytes, bytes + size); }
  /// Behind the last kernel: what they wrote must be there again, as the next launch may leave them out.
  std::optional<emu::Finding> changed() const {
    for (uint64_t i = 0; i < after.size(); ++i)
      if (before[i] != after[i] && bytes[i] != after[i]) {
        emu::Finding finding;
        finding.code = "workspace";
        finding.message =
            llvm::formatv("byte {0} of the workspace is {1} behind the last kernel, and was {2} when it was readied: "
                          "the next launch on it leaves that out (`readies: 1`)",
                          i, unsigned(bytes[i]), unsigned(after[i]));
        return finding;
      }
    return std::nullopt;
  }

private:
  const std::byte *bytes;
  uint64_t size;
  std::vector<std::byte> before, after;
};

Outcome<LaunchOutcome> Emulator::launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) {
  Diags diags;
  auto module = ptx::parse(diags.addSource("kernel.ptx", code.ptx), diags);
  if (!module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    diags.print(os);
    return Failure::make(Diag::run_ptx, text);
  }
  if (!chip.empty())
    module->target = chip;
  LaunchOutcome outcome;
  ReadyWorkspace workspace(memory, args);
  bool first = true;
  for (const ptx::KernelInfo &kernel : code.info.kernels) {
    if (kernel.readies && args.workspaceReady)
      continue;
    memory.unknownInFront = first && kernel.overlaps;
    first = false;
    bool last = &kernel == &code.info.kernels.back(), overlapped = !last && (&kernel)[1].overlaps;
    bool maySample = last && code.info.blockM; // the last one reads what all CTAs of earlier ones wrote
    if (kernel.readies)
      workspace.beforeReadying();
    if (auto failed = launchKernel(*module, kernel, args, choice, maySample, overlapped, outcome))
      return *failed;
    if (kernel.readies)
      workspace.afterReadying();
    if (!outcome.findings.empty())
      return outcome;
  }
  if (outcome.sampled) // CTAs that did not run would have left it ready
    return outcome;
  if (auto finding = workspace.changed()) {
    outcome.findings.push_back(describe(*finding));
    outcome.witnesses.push_back(std::move(*finding));
  }
  return outcome;
}
} // namespace

std::unique_ptr<Executor> makeEmulator(unsigned threads, const emu::CheckOptions &check, int64_t sms,
                                       llvm::StringRef chip, emu::Timeline *timeline) {
  return std::make_unique<Emulator>(threads, check, sms, chip, timeline);
}

} // namespace gemmc::run
