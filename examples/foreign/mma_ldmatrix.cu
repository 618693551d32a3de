// ldmatrix and mma.sync by inline assembly, in scopes of their own: bf16 A (row) times B (col), f32 sums, bf16 out.
// nvcc: mma_ldmatrix -arch=sm_80
#include <cuda_bf16.h>
#include <cstdint>
constexpr int bm = 32, bn = 32, bk = 32, skew = 8;

__device__ uint32_t sharedAddress(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void loadFour(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("{\n"
               ".reg .b32 t<4>;\n" // a scope with names of its own
               "mov.b32 t0, %4; mov.b32 t1, %5; mov.b32 t2, %6; mov.b32 t3, %7;\n"
               "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {t0, t1, t2, t3}, {%8, %9}, "
               "{%0, %1, %2, %3};\n"
               "}\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four warps, each 16x16 of the block's 32x32.
extern "C" __global__ __launch_bounds__(128) void mmaGemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b,
                                                          __nv_bfloat16 *d, int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 sa[bm][bk + skew], sb[bn][bk + skew];
  int t = threadIdx.x, warp = t / 32, lane = t % 32, wr = warp / 2 * 16, wc = warp % 2 * 16;
  size_t row0 = size_t(blockIdx.y) * bm, col0 = size_t(blockIdx.x) * bn;
  float sum[2][4] = {};
  for (int at = 0; at < k; at += bk) {
    int r = t / 4, c = t % 4 * 8;
    *reinterpret_cast<uint4 *>(&sa[r][c]) = *reinterpret_cast<const uint4 *>(&a[(row0 + r) * k + at + c]);
    *reinterpret_cast<uint4 *>(&sb[r][c]) = *reinterpret_cast<const uint4 *>(&b[(col0 + r) * k + at + c]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < bk; i += 16) {
      uint32_t fa[4], fb[4];
      loadFour(fa, sharedAddress(&sa[wr + lane % 16][i + lane / 16 * 8]));
      loadFour(fb, sharedAddress(&sb[wc + lane % 8 + lane / 16 * 8][i + lane / 8 % 2 * 8]));
      multiply(sum[0], fa, fb[0], fb[1]);
      multiply(sum[1], fa, fb[2], fb[3]);
    }
    __syncthreads();
  }
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 2; ++j) {
      size_t row = row0 + wr + lane / 4 + half * 8, col = col0 + wc + j * 8 + lane % 4 * 2;
      *reinterpret_cast<__nv_bfloat162 *>(&d[row * n + col]) =
          __floats2bfloat162_rn(sum[j][half * 2], sum[j][half * 2 + 1]);
    }
}
