// A tiled GEMM in shared memory with a ragged edge: C = alpha * A * B + beta * C, all row-major f32.
// nvcc: sgemm_tiled -arch=sm_80
// nvcc: sgemm_missing_sync -arch=sm_80 -DMISSING_SYNC
constexpr int tile = 16;

#ifdef MISSING_SYNC // sgemm_missing_sync.ptx: the next tile overwrites what slow warps still read
#define AFTER_USE
#else
#define AFTER_USE __syncthreads()
#endif

extern "C" __global__ void sgemm(int m, int n, int k, float alpha, const float *a, const float *b, float beta,
                                 float *c) {
  __shared__ float sa[tile][tile], sb[tile][tile + 1];
  int row = blockIdx.y * tile + threadIdx.y, col = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; at += tile) {
    int ka = at + threadIdx.x, kb = at + threadIdx.y;
    sa[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
    sb[threadIdx.y][threadIdx.x] = kb < k && col < n ? __ldg(&b[kb * n + col]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < tile; ++i)
      sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    AFTER_USE;
  }
  if (row < m && col < n)
    c[row * n + col] = alpha * sum + beta * c[row * n + col];
}
