// Grid-stride sum, minimum and bit counts with warp reductions and atomics; the last block to come writes the mean.
// nvcc: reduce_atomics -arch=sm_80
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Result {
  unsigned long long sum;
  int least;
  unsigned odd, mean;
};
__device__ unsigned blocksDone = 0;

extern "C" __global__ void reduce(const int *in, Result *result, int count) {
  long long sum = 0;
  int least = 0x7fffffff;
  unsigned odd = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += in[i];
    least = min(least, in[i]);
    odd += __popc(__ballot_sync(__activemask(), in[i] & 1)) ? in[i] & 1 : 0;
    if (in[i] == 13) { // rarely: the lanes that are here count together
      cg::coalesced_group here = cg::coalesced_threads();
      if (here.thread_rank() == 0)
        atomicAdd(&result->mean, 0u * here.size());
    }
  }
  least = __reduce_min_sync(~0u, least);
  odd = __reduce_add_sync(~0u, odd);
  for (int step = 16; step; step /= 2)
    sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&result->sum, (unsigned long long)sum);
    atomicMin(&result->least, least);
    atomicAdd(&result->odd, odd);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicInc(&blocksDone, gridDim.x - 1) == gridDim.x - 1) {
      __threadfence();
      result->mean = unsigned(*(volatile unsigned long long *)&result->sum / count);
    }
  }
}
