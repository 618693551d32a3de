// What the device's mathematical functions and conversions become: bit tricks, approximations, fused multiply-adds,
// double division, half and bfloat16 arithmetic, saturation.
// nvcc: math -arch=sm_80
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__constant__ float table[4] = {0.25f, 0.5f, 1.0f, 2.0f};
__device__ const float *chosen = table + 2;
__device__ int offsets[2][3] = {{1, 2, 3}, {40, 50, 60}};

extern "C" __global__ void functions(const float *in, float *out, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  float y[] = {sinf(x), cosf(x), expf(x), logf(fabsf(x) + 1), powf(fabsf(x), 1.5f), tanhf(x), erff(x),
               sqrtf(fabsf(x)), rsqrtf(fabsf(x) + 1), 1 / (x * x + 1), fmodf(x, 0.75f), atan2f(x, 2.0f), cbrtf(x),
               exp2f(x), log1pf(fabsf(x)), sinf(1e5f * x), __expf(x), __sinf(x), __fdividef(x, 3.0f)};
  for (int j = 0; j < sizeof y / sizeof *y; ++j)
    out[j * stride + i] = y[j];
}

extern "C" __global__ void conversions(const float *in, long long *out, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  double wide = double(x) / 3.0;
  half h = __float2half_rn(x);
  __nv_bfloat16 b = __float2bfloat16_rn(x);
  long long y[] = {int(x), (long long)__float2int_ru(x), __float2int_rd(x), __float2uint_rz(x), __float2ll_rn(x * 1e9f),
                   (long long)(wide * 1e6), __half_as_ushort(h), __bfloat16_as_ushort(b), __half2int_rn(h),
                   __half_as_ushort(__hmul(h, h)), __half_as_ushort(__hfma(h, h, h)), __bfloat16_as_ushort(__hadd(b, b)),
                   (signed char)int(x), (unsigned char)int(x), __float_as_int(__saturatef(x)), __double2hiint(wide),
                   __float_as_int(float(wide)), __float_as_int(__double2float_rz(wide)), __mulhi(int(x * 1e6f), 12345),
                   (long long)__umul64hi((unsigned long long)(x * x * 1e12f), 0x123456789abcdefull), __ffs(int(x)),
                   __clz(int(x)), __byte_perm(int(x), 0x01020304, 0x3604), __vadd4(int(x), 0x7f7f7f7f), __sad(int(x), 5, 1),
                   int(x) / 7, int(x) % 7, offsets[i & 1][i % 3], (long long)(*chosen * 8), (long long)(table[i & 3] * 8),
                   __float2half_rn(x) > __float2half_rn(1.0f), __funnelshift_l(int(x), 99, 5), llabs((long long)x) % 13,
                   __dp4a(int(x), 0x01010101, 7), long(rint(x)), long(round(x)), long(floorf(x)), long(truncf(x))};
  for (int j = 0; j < sizeof y / sizeof *y; ++j)
    out[j * stride + i] = y[j];
}
