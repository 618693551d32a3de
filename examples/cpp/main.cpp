// A GEMM from a spec, launched from C++: D = A * B^T for bf16 matrices of ones, so each element of D is k.
// Then a batch of them. CUDA is used through gemmc alone here; with the CUDA runtime, pass your own pointers and
// stream.
#include <cstdio>
#include <gemmc/gemmc.h>

using namespace gemmc;

namespace {
constexpr const char *spec = R"(
target: sm_90a
problem: {m: dynamic, n: dynamic, k: dynamic}
a: {type: bf16, layout: row}
b: {type: bf16, layout: col}
d: {type: bf16, layout: row}
accumulator: f32
)";

constexpr const char *specOfBatch = R"(
problem: {m: 100, n: 600, k: 128, batch: dynamic}
b: {layout: col, batch_stride: 0}
)";

int complain(const Failure &failure) {
  std::fprintf(stderr, "%s\n", failure.str().c_str());
  return 3;
}
} // namespace

int main() {
  auto gemm = Gemm::create(spec), batch = Gemm::create(specOfBatch);
  for (auto *made : {&gemm, &batch})
    if (!*made)
      return complain(made->failure());
  auto device = openDevice();
  if (!device)
    return complain(device.failure());
  auto stream = DeviceStream::create(*device);
  if (!stream)
    return complain(stream.failure());

  GemmArgs args;
  constexpr int64_t mostRows = 5000;
  args.n = 600, args.k = 128;
  args.lda = args.ldb = args.k;
  args.ldc = args.ldd = args.n;
  auto a = DeviceMemory::allocate(*device, mostRows * args.k * 2, "a");
  auto b = DeviceMemory::allocate(*device, args.n * args.k * 2, "b");
  auto d = DeviceMemory::allocate(*device, mostRows * args.n * 2, "d");
  for (auto *memory : {&a, &b, &d})
    if (!*memory)
      return complain(memory->failure());
  args.a = a->address(), args.b = b->address(), args.d = d->address();

  const Driver &driver = (*device)->driver();
  Device::Scope scope(**device);
  constexpr unsigned short one = 0x3f80; // 1.0 in bf16
  driver.api().memset16(args.a, one, mostRows * args.k, stream->get());
  driver.api().memset16(args.b, one, args.n * args.k, stream->get());
  auto run = [&](const Gemm &product) {
    const int64_t elements = args.batch * args.m * args.n;
    driver.api().memset16(args.d, 0, elements, stream->get());
    if (auto failed = product.launch(stream->get(), args))
      return complain(*failed);

    std::vector<unsigned short> result(elements);
    driver.api().copyToHost(result.data(), args.d, result.size() * 2, stream->get());
    if (auto failed = stream->synchronize("running the GEMM"))
      return complain(*failed);
    constexpr unsigned short expected = 0x4300; // 128.0 in bf16
    for (unsigned short value : result)
      if (value != expected) {
        std::fprintf(stderr, "m %lld: wrong result: %04x\n", (long long)args.m, value);
        return 1;
      }
    std::printf("%lld of %lld x %lld x %lld on %s: all elements are 128\n", (long long)args.batch, (long long)args.m,
                (long long)args.n, (long long)args.k, (*device)->name.c_str());
    return 0;
  };
  for (int64_t m :
       {int64_t(3), int64_t(60), int64_t(1000), mostRows}) { // each with a kernel that is planned for its like
    args.m = m;
    if (int code = run(**gemm))
      return code;
  }
  // Seven products, A and D end to end, one B for all.
  args.batch = 7, args.m = 100;
  args.strideA = args.m * args.k, args.strideD = args.m * args.n;
  return run(**batch);
}
