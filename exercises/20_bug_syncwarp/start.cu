// SPDX-License-Identifier: Apache-2.0
// out[64 g + j] = in[64 g + 2 j] for j < 32, out[64 g + 32 + j] = in[64 g + 2 j + 1]. This kernel has a bug.

__global__ void split_kernel(const float* in, float* out, int groups) {
  __shared__ float words[4][64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int g = blockIdx.x * 4 + warp; g < groups; g += gridDim.x * 4) {
    words[warp][lane] = in[64 * g + lane];
    words[warp][lane + 32] = in[64 * g + lane + 32];
    out[64 * g + lane] = words[warp][2 * lane];
    out[64 * g + lane + 32] = words[warp][2 * lane + 1];
  }
}

void split(const float* in, float* out, int groups) { split_kernel<<<2, 128>>>(in, out, groups); }
