// SPDX-License-Identifier: Apache-2.0
constexpr int kTable = 12288, kThreads = 1024;

__global__ void __launch_bounds__(kThreads, 2) look_up_kernel(const float* table, const int* index, float* out, int n) {
  __shared__ float copy[kTable];
  for (int t = threadIdx.x; t < kTable; t += kThreads) copy[t] = table[t];
  __syncthreads();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) out[i] = copy[index[i]];
}

void look_up(const float* table, const int* index, float* out, int n) {
  look_up_kernel<<<(n + kThreads - 1) / kThreads, kThreads>>>(table, index, out, n);
}
