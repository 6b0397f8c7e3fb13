// SPDX-License-Identifier: Apache-2.0
// out[2 g] = the sum of in[32 g + 0, 2, 4, …], out[2 g + 1] of in[32 g + 1, 3, 5, …]. A warp has a group. This kernel has a bug.

__global__ void halves_kernel(const float* in, float* out, int groups) {
  __shared__ float sums[4][2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = blockIdx.x * 4 + warp;
  float value = group < groups ? in[group * 32 + lane] : 0.0f;
  if (lane % 2 == 0) {
    for (int step = 16; step > 1; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    if (lane == 0) sums[warp][0] = value;
  } else {
    __syncthreads();
    for (int step = 16; step > 1; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    if (lane == 1) sums[warp][1] = value;
  }
  __syncthreads();
  if (lane < 2 && group < groups) out[group * 2 + lane] = sums[warp][lane];
}

void halves(const float* in, float* out, int groups) { halves_kernel<<<(groups + 3) / 4, 128>>>(in, out, groups); }
