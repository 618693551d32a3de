#include "Stress.h"
#include "gemmc/Run/Executor.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::run {
namespace {
/// Counts in *count whether any of `vectors` times 16 bytes differ.
constexpr const char *compareText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry compare(.param .u64 left, .param .u64 right, .param .u64 vectors, .param .u64 count)
{
  .reg .pred %p, %q;
  .reg .u32 %t, %c, %n, %a<4>, %b<4>;
  .reg .u64 %i, %step, %x, %y, %v, %at, %left, %right;
  ld.param.u64 %x, [left];
  ld.param.u64 %y, [right];
  ld.param.u64 %v, [vectors];
  ld.param.u64 %at, [count];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.u32 %t, %c, %n, %t;
  cvt.u64.u32 %i, %t;
  mov.u32 %c, %nctaid.x;
  mul.wide.u32 %step, %c, %n;
  shl.b64 %v, %v, 4;
  shl.b64 %i, %i, 4;
  shl.b64 %step, %step, 4;
next:
  setp.ge.u64 %p, %i, %v;
  @%p ret;
  add.u64 %left, %x, %i;
  add.u64 %right, %y, %i;
  ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%left];
  ld.global.v4.u32 {%b0, %b1, %b2, %b3}, [%right];
  xor.b32 %a0, %a0, %b0;
  xor.b32 %a1, %a1, %b1;
  xor.b32 %a2, %a2, %b2;
  xor.b32 %a3, %a3, %b3;
  or.b32 %a0, %a0, %a1;
  or.b32 %a2, %a2, %a3;
  or.b32 %a0, %a0, %a2;
  setp.ne.u32 %q, %a0, 0;
  @%q atom.global.or.b32 %a1, [%at], 1;
  add.u64 %i, %i, %step;
  bra next;
}
)";

/// A call of the comparison; parameters as the entry declares them.
struct Comparison {
  uint64_t left, right, vectors, count;
};

class Stress {
public:
  Stress(std::shared_ptr<const Device> device, const GpuModule &module, const LaunchArgs &args)
      : device(std::move(device)), module(module), args(args) {}
  ~Stress() {
    Device::Scope scope(*device);
    if (comparer)
      device->api().moduleUnload(comparer);
  }
  Outcome<uint64_t> go(uint64_t count);

private:
  MaybeFailure setUp(uint64_t count);
  MaybeFailure one(uint64_t index);
  MaybeFailure compare(uint64_t index);
  const Driver &driver() const { return device->driver(); }

  std::shared_ptr<const Device> device;
  const GpuModule &module;
  const LaunchArgs &args;
  LaunchArgs loadArgs;
  cuda::Module comparer = nullptr;
  cuda::Function function = nullptr;
  uint64_t bytes = 0, from = 0, extent = 0; ///< Of D; the whole vectors around it.
  DeviceMemory expected, flags, loadD, loadWorkspace;
  std::optional<DeviceStream> stream, load;
};

MaybeFailure Stress::setUp(uint64_t count) {
  for (std::optional<DeviceStream> *each : {&stream, &load}) {
    auto made = DeviceStream::create(device);
    if (!made)
      return made.failure();
    *each = std::move(*made);
  }
  const ptx::OperandInfo &d = module.info().d;
  bytes = matrixBytes(d.type, d.order, args.m, args.n, args.ldd, args.batch, args.strideD).value_or(0);
  from = args.d & ~uint64_t(15);
  extent = llvm::alignTo(args.d + bytes, 16) - from;
  loadArgs = args;
  std::tuple<DeviceMemory &, uint64_t, const char *> wanted[] = {{expected, extent, "the first result"},
                                                                 {flags, 4 * count, "the comparisons"},
                                                                 {loadD, bytes + 256, "the load's D"},
                                                                 {loadWorkspace, args.workspaceBytes, "the workspace"}};
  for (auto &[memory, size, what] : wanted) {
    auto made = DeviceMemory::allocate(device, size, what);
    if (!made)
      return made.failure();
    memory = std::move(*made);
  }
  loadArgs.d = loadD.address() + args.d % 256;
  loadArgs.workspace = loadWorkspace.address();
  const cuda::DriverTable &api = device->api();
  if (auto failed =
          driver().check(api.moduleLoad(&comparer, compareText, 0, nullptr, nullptr), "loading the comparison"))
    return failed;
  if (auto failed = driver().check(api.moduleFunction(&function, comparer, "compare"), "finding the comparison"))
    return failed;
  return driver().check(api.memset16(flags.address(), 0, 2 * count, stream->get()), "clearing the comparisons");
}

MaybeFailure Stress::compare(uint64_t index) {
  Comparison call{from, expected.address(), extent / 16, flags.address() + 4 * index};
  void *params[] = {&call.left, &call.right, &call.vectors, &call.count};
  cuda::LaunchConfig config{2 * device->sms, 1, 1, 512, 1, 1, 0, stream->get(), nullptr, 0};
  return driver().check(device->api().launch(&config, function, params, nullptr), "launching the comparison");
}

MaybeFailure Stress::one(uint64_t index) {
  const cuda::DriverTable &api = device->api();
  if (auto failed = driver().check(api.memset16(args.d, poison, bytes / 2, stream->get()), "filling D"))
    return failed;
  // As a program would that launches again and again: what readies a workspace runs once.
  LaunchArgs own = args;
  own.workspaceReady = loadArgs.workspaceReady = index > 0;
  if (auto failed = module.launch(load->get(), loadArgs))
    return failed;
  if (auto failed = module.launch(stream->get(), own))
    return failed;
  if (index == 0)
    return driver().check(api.copyOnDevice(expected.address(), from, extent, stream->get()),
                          "keeping the first result");
  return compare(index);
}

Outcome<uint64_t> Stress::go(uint64_t count) {
  Device::Scope scope(*device);
  if (auto failed = setUp(count))
    return *failed;
  for (uint64_t i = 0; i < count; ++i) {
    if (auto failed = one(i))
      return *failed;
    constexpr uint64_t ahead = 50; // launches that wait in the streams
    if (i % ahead == 0 || i + 1 == count)
      for (const DeviceStream *each : {&*load, &*stream})
        if (auto failed = each->synchronize("repeating launches"))
          return *failed;
  }
  std::vector<uint32_t> found(count);
  if (auto failed = driver().check(device->api().copyToHost(found.data(), flags.address(), 4 * count, stream->get()),
                                   "reading the comparisons"))
    return *failed;
  if (auto failed = stream->synchronize("reading the comparisons"))
    return *failed;
  return static_cast<uint64_t>(std::count_if(found.begin(), found.end(), [](uint32_t flag) { return flag != 0; }));
}
} // namespace

Outcome<uint64_t> stressLaunches(std::shared_ptr<const Device> device, const GpuModule &module, const LaunchArgs &args,
                                 uint64_t count) {
  return Stress(std::move(device), module, args).go(count);
}

} // namespace gemmc::run
