// cp.async through cuda_pipeline.h, two stages: f32 A (row) times B (row), a thread two elements of C.
// nvcc: pipeline_gemm -arch=sm_80
#include <cuda_pipeline.h>
constexpr int tile = 32, depth = 16;

extern "C" __global__ void pipelineGemm(const float *a, const float *b, float *c, int n, int k) {
  __shared__ __align__(16) float sa[2][tile][depth], sb[2][depth][tile];
  int t = threadIdx.x, row0 = blockIdx.y * tile, col0 = blockIdx.x * tile;
  auto load = [&](int stage, int at) { // 128 threads, 16 bytes of each operand
    int ra = t / 4, ca = t % 4 * 4, rb = t / 8, cb = t % 8 * 4;
    __pipeline_memcpy_async(&sa[stage][ra][ca], &a[size_t(row0 + ra) * k + at + ca], 16);
    __pipeline_memcpy_async(&sb[stage][rb][cb], &b[size_t(at + rb) * n + col0 + cb], 16);
    __pipeline_commit();
  };
  float sum[8] = {};
  int row = t / 4, col = t % 4 * 8, steps = k / depth;
  load(0, 0);
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) {
      load((step + 1) & 1, (step + 1) * depth);
      __pipeline_wait_prior(1);
    } else
      __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = 0; i < depth; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sum[j] += sa[step & 1][row][i] * sb[step & 1][i][col + j];
    __syncthreads();
  }
  float4 *to = reinterpret_cast<float4 *>(&c[size_t(row0 + row) * n + col0 + col]);
  to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
  to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
}
