// Softmax of rows, a block a row: warp shuffles, a second round through shared memory, a dynamic array.
// nvcc: softmax -arch=sm_80
__device__ float warpMax(float x) {
  for (int step = 16; step; step >>= 1)
    x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}
__device__ float warpSum(float x) {
  for (int step = 16; step; step >>= 1)
    x += __shfl_down_sync(~0u, x, step);
  return __shfl_sync(~0u, x, 0);
}
template <typename Reduce> __device__ float blockReduce(float x, float none, float *partial, Reduce reduce) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  x = reduce(x);
  if (lane == 0)
    partial[warp] = x;
  __syncthreads();
  x = lane < blockDim.x / 32 ? partial[lane] : none;
  x = reduce(x);
  __syncthreads();
  return x;
}

extern "C" __global__ void softmax(const float *in, float *out, int columns) {
  extern __shared__ float shared[]; // the row, then one number a warp
  float *row = shared, *partial = shared + columns;
  in += size_t(blockIdx.x) * columns;
  out += size_t(blockIdx.x) * columns;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    most = fmaxf(most, row[i] = in[i]);
  most = blockReduce(most, -INFINITY, partial, warpMax);
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    sum += row[i] = expf(row[i] - most);
  sum = blockReduce(sum, 0.0f, partial, warpSum);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[i] = row[i] / sum;
}
