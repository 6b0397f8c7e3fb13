// SPDX-License-Identifier: Apache-2.0
// Right, by one block.
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  return value;
}

__global__ void sum_kernel(const float* in, float* out, int n) {
  __shared__ float sums[32];
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += in[i];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  value = warp_sum(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) atomicAdd(out, value);
}

void sum(const float* in, float* out, int n) {
  cudaMemset(out, 0, sizeof(float));
  sum_kernel<<<1, 256>>>(in, out, n);
}
