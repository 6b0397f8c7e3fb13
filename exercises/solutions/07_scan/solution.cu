// SPDX-License-Identifier: Apache-2.0
__device__ int warp_scan(int value) {
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 >= step) value += before;
  }
  return value;
}

__global__ void scan_kernel(const int* in, int* out, int n) {
  __shared__ int sums[32];
  const int i = threadIdx.x;
  int value = warp_scan(i < n ? in[i] : 0);
  if (i % 32 == 31) sums[i / 32] = value;
  __syncthreads();
  if (i < 32) sums[i] = warp_scan(sums[i]);
  __syncthreads();
  if (i >= 32) value += sums[i / 32 - 1];
  if (i < n) out[i] = value;
}

void scan(const int* in, int* out, int n) { scan_kernel<<<1, 1024>>>(in, out, n); }
