// wgmma with descriptors by inline assembly: one warpgroup, 64x64 of D, both operands by TMA with 128-byte swizzle.
// A is m x k and B n x k, both row-major f16, D m x n f32.
// nvcc: wgmma_gemm -arch=sm_90a
#include <cuda.h>
#include <cuda_fp16.h>
#include <cstdint>
constexpr int bm = 64, bn = 64, bk = 64, stages = 2;
struct __align__(1024) Shared {
  half a[stages][bm * bk], b[stages][bn * bk];
  uint64_t full[stages];
};

__device__ uint32_t sharedAddress(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ uint64_t descriptor(const half *tile) { // K-major, 128-byte swizzle, 1024 bytes between groups of 8 rows
  uint64_t at = (sharedAddress(tile) & 0x3ffff) >> 4;
  return at | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}
__device__ void copyBox(const CUtensorMap &map, half *to, uint64_t *barrier, int k, int row) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
               "[%2];" ::"r"(sharedAddress(to)),
               "l"(&map), "r"(sharedAddress(barrier)), "r"(k), "r"(row)
               : "memory");
}
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, "
      "0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b));
}

extern "C" __global__ __launch_bounds__(128) void wgmmaGemm(const __grid_constant__ CUtensorMap mapA,
                                                            const __grid_constant__ CUtensorMap mapB, float *d, int n,
                                                            int k) {
  extern __shared__ __align__(1024) char memory[];
  Shared &shared = *reinterpret_cast<Shared *>(memory);
  int t = threadIdx.x, steps = k / bk, row0 = blockIdx.y * bm, col0 = blockIdx.x * bn;
  if (t == 0) {
    for (int i = 0; i < stages; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(&shared.full[i])));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  auto fetch = [&](int step) {
    if (t != 0 || step >= steps)
      return;
    int stage = step % stages;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(&shared.full[stage])),
                 "r"(uint32_t((bm + bn) * bk * sizeof(half)))
                 : "memory");
    copyBox(mapA, shared.a[stage], &shared.full[stage], step * bk, row0);
    copyBox(mapB, shared.b[stage], &shared.full[stage], step * bk, col0);
  };
  float sum[32] = {};
  fetch(0);
  for (int step = 0; step < steps; ++step) {
    int stage = step % stages;
    fetch(step + 1);
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W;\n}" ::"r"(
                     sharedAddress(&shared.full[stage])),
                 "r"(step / stages & 1)
                 : "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < bk / 16; ++i)
      multiply(sum, descriptor(shared.a[stage] + i * 16), descriptor(shared.b[stage] + i * 16));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads(); // the stage is free
  }
  int row = row0 + t / 32 * 16 + t % 32 / 4, col = col0 + t % 4 * 2;
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
    *reinterpret_cast<float2 *>(&d[size_t(row) * n + col + i * 2]) = make_float2(sum[i], sum[i + 1]);
    *reinterpret_cast<float2 *>(&d[size_t(row + 8) * n + col + i * 2]) = make_float2(sum[i + 2], sum[i + 3]);
  }
}
