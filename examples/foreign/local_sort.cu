// Local memory: arrays with dynamic indices, a function that is not inlined and takes their address, a switch that
// becomes a jump table, divergent loops.
// nvcc: local_sort -arch=sm_80
__device__ __noinline__ int insertSorted(int *list, int count, int value) {
  int at = count;
  for (; at > 0 && list[at - 1] > value; --at)
    list[at] = list[at - 1];
  list[at] = value;
  return at;
}

__device__ __noinline__ int mix(int kind, int x) {
  switch (kind) {
  case 0: return x + 7;
  case 1: return x * 3;
  case 2: return x ^ 0x55;
  case 3: return x / 3;
  case 4: return x % 5;
  case 5: return __popc(x);
  case 6: return __brev(x) >> 24;
  case 7: return -x;
  default: return x;
  }
}

struct Pair {
  int low, high;
  short kind;
};
__device__ __noinline__ Pair ordered(Pair p) {
  if (p.low > p.high) {
    int t = p.low;
    p.low = p.high;
    p.high = t;
  }
  p.kind += 1;
  return p;
}

// Each thread sorts `count` numbers of its own; what[i] is the sum of where they were put.
extern "C" __global__ void sortLocal(const int *in, int *out, int *moves, int *mixed, int count) {
  int list[16];
  int thread = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  for (int i = 0; i < count; ++i)
    sum += insertSorted(list, i, in[thread * count + i]);
  for (int i = 0; i < count; ++i)
    out[thread * count + i] = list[i];
  moves[thread] = sum;
  Pair pair = ordered({list[thread % count], list[(thread + 1) % count], short(thread)});
  mixed[thread] = mix(thread % 9, thread) + (pair.low > pair.high) * 1000 + (pair.kind - thread);
}
