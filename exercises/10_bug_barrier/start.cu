// SPDX-License-Identifier: Apache-2.0
// Smooths n <= 256 numbers `steps` times. This kernel has a bug.

__global__ void smooth_kernel(const float* in, float* out, int n, int steps) {
  __shared__ float values[258];
  const int i = threadIdx.x;
  values[i + 1] = i < n ? in[i] : 0.0f;
  if (i == 0) values[0] = values[257] = 0.0f;
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const float mean = (values[i] + values[i + 1] + values[i + 2]) / 4;
    if (i < n) values[i + 1] = mean;
    __syncthreads();
  }
  if (i < n) out[i] = values[i + 1];
}

void smooth(const float* in, float* out, int n, int steps) { smooth_kernel<<<1, 256>>>(in, out, n, steps); }
