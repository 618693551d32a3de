// A tensor map as a __grid_constant__ parameter: tiles come by TMA, are transposed and leave by ordinary stores.
// nvcc: tma_transpose -arch=sm_90
#include <cuda.h>
#include <cstdint>
constexpr int tile = 32;

__device__ uint32_t sharedAddress(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void await(uint64_t *barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra over;\n"
               "bra again;\n"
               "over:\n"
               "}" ::"r"(sharedAddress(barrier)),
               "r"(parity)
               : "memory");
}

extern "C" __global__ void transpose(const __grid_constant__ CUtensorMap map, float *out, int rows, int tiles) {
  __shared__ __align__(128) float box[tile][tile];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  uint32_t parity = 0;
  for (int at = blockIdx.x; at < tiles; at += gridDim.x, parity ^= 1) {
    int col0 = at * tile, row0 = blockIdx.y * tile;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(&full)),
                   "r"(uint32_t(sizeof box))
                   : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
                   "[%2];" ::"r"(sharedAddress(box)),
                   "l"(&map), "r"(sharedAddress(&full)), "r"(col0), "r"(row0)
                   : "memory");
    }
    await(&full, parity);
    for (int i = threadIdx.x; i < tile * tile; i += blockDim.x)
      out[size_t(col0 + i / tile) * rows + row0 + i % tile] = box[i % tile][i / tile];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads(); // before the next box overwrites this one
  }
}
