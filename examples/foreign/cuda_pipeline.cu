// cuda::pipeline of libcu++ with block scope: mbarriers and cp.async behind a C++ interface. out = in * factor.
// nvcc: cuda_pipeline -arch=sm_80
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
constexpr int stages = 2, chunk = 256;

extern "C" __global__ void scaleChunks(const int *in, int *out, int chunks, int factor) {
  __shared__ alignas(16) int buffer[stages][chunk];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  in += size_t(blockIdx.x) * chunks * chunk;
  out += size_t(blockIdx.x) * chunks * chunk;
  int fetched = 0;
  for (int done = 0; done < chunks; ++done) {
    for (; fetched < chunks && fetched < done + stages; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[fetched % stages], in + fetched * chunk,
                         cuda::aligned_size_t<16>(chunk * sizeof(int)), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int i = threadIdx.x; i < chunk; i += blockDim.x)
      out[done * chunk + i] = buffer[done % stages][i] * factor;
    pipe.consumer_release();
  }
}
