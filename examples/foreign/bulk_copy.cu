// cuda::ptx and cuda::barrier: bulk copies into shared memory, work there, a bulk copy back. out = in + 1.
// nvcc: bulk_copy -arch=sm_90
// nvcc: bulk_missing_fence -arch=sm_90 -DMISSING_FENCE
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/utility>
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int chunk = 1024;

extern "C" __global__ void addOne(const int *in, int *out) {
  __shared__ alignas(16) int buffer[chunk];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier arrived;
  in += size_t(blockIdx.x) * chunk;
  out += size_t(blockIdx.x) * chunk;
  if (threadIdx.x == 0) {
    init(&arrived, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(buffer, in, cuda::aligned_size_t<16>(sizeof buffer), arrived);
    token = cuda::device::barrier_arrive_tx(arrived, 1, sizeof buffer);
  } else
    token = arrived.arrive();
  arrived.wait(cuda::std::move(token));
  for (int i = threadIdx.x; i < chunk; i += blockDim.x)
    buffer[i] += 1;
#ifndef MISSING_FENCE // bulk_missing_fence.ptx: the copy may read what was there before the additions
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, buffer, sizeof buffer);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
