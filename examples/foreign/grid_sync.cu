// A cooperative launch: each block adds up its part, all blocks meet, each adds up all parts; three times over.
// nvcc: grid_sync -arch=sm_90a
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void sums(const unsigned *in, unsigned *parts, unsigned *out, unsigned count) {
  __shared__ unsigned sum;
  cg::grid_group grid = cg::this_grid();
  for (unsigned turn = 0; turn < 3; ++turn) {
    if (threadIdx.x == 0)
      sum = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
      atomicAdd(&sum, in[i] + turn);
    __syncthreads();
    if (threadIdx.x == 0)
      parts[blockIdx.x] = sum;
    grid.sync();
    if (threadIdx.x < gridDim.x)
      atomicAdd(&out[blockIdx.x], parts[threadIdx.x]);
    grid.sync();
  }
}
