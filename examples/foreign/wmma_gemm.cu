// The wmma API of mma.h: f16 in, f32 sums, a warp a 16x16 tile, fragments straight from global memory.
// nvcc: wmma_gemm -arch=sm_80
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void wmmaGemm(const half *a, const half *b, float *c, int m, int n, int k, float alpha) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, tilesN = n / 16;
  int row = warp / tilesN * 16, col = warp % tilesN * 16;
  if (row >= m)
    return;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int at = 0; at < k; at += 16) {
    wmma::load_matrix_sync(fa, a + row * k + at, k);
    wmma::load_matrix_sync(fb, b + col * k + at, k);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i)
    sum.x[i] *= alpha;
  wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
}
