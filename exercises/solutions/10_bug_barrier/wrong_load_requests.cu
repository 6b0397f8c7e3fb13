// SPDX-License-Identifier: Apache-2.0
// Right: a launch for each step, through global memory.
__global__ void step_kernel(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = ((i > 0 ? in[i - 1] : 0.0f) + in[i] + (i + 1 < n ? in[i + 1] : 0.0f)) / 4;
}

void smooth(const float* in, float* out, int n, int steps) {
  float* values;
  cudaMalloc(&values, n * sizeof(float));
  cudaMemcpy(values, in, n * sizeof(float), cudaMemcpyDeviceToDevice);
  for (int step = 0; step < steps; ++step) {
    step_kernel<<<1, 256>>>(values, out, n);
    cudaMemcpy(values, out, n * sizeof(float), cudaMemcpyDeviceToDevice);
  }
  cudaFree(values);
}
