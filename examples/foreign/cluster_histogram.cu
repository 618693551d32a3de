// Cooperative groups over a cluster: each block counts a part of the bins in its shared memory, the others reach them by
// map_shared_rank (mapa, distributed shared memory, atomics there).
// nvcc: cluster_histogram -arch=sm_90
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
constexpr int binsPerBlock = 32;

extern "C" __global__ void histogram(const unsigned *in, unsigned *bins, int count) {
  __shared__ unsigned mine[binsPerBlock];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < binsPerBlock; i += blockDim.x)
    mine[i] = 0;
  cluster.sync(); // all bins are zero
  int threads = gridDim.x * blockDim.x, bins_total = binsPerBlock * cluster.num_blocks();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    unsigned bin = in[i] % bins_total;
    unsigned *there = cluster.map_shared_rank(mine, bin / binsPerBlock);
    atomicAdd(there + bin % binsPerBlock, 1u);
  }
  cluster.sync(); // nobody counts any more; no block has left
  for (int i = threadIdx.x; i < binsPerBlock; i += blockDim.x)
    atomicAdd(&bins[cluster.block_rank() * binsPerBlock + i], mine[i]);
}
