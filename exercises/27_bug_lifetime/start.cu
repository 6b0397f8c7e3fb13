// SPDX-License-Identifier: Apache-2.0
// y[i] = n x[i] - (the sum of x). This code has a bug.

__global__ void sum_kernel(const float* x, float* sum, int n) {
  float value = 0;
  for (int i = threadIdx.x; i < n; i += 32) value += x[i];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x == 0) *sum = value;
}

__global__ void shift_kernel(const float* x, float* y, const float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * n - *sum;
}

/// Work in `stream`; the second kernel runs in `side`, beside what `stream` is given next. `done` is recorded when y is
/// there.
void shift(const float* x, float* y, int n, cudaStream_t stream, cudaStream_t side, cudaEvent_t done) {
  float* sum;
  cudaMallocAsync(&sum, sizeof(float), stream);
  sum_kernel<<<1, 32, 0, stream>>>(x, sum, n);
  cudaEvent_t summed;
  cudaEventCreateWithFlags(&summed, cudaEventDisableTiming);
  cudaEventRecord(summed, stream);
  cudaStreamWaitEvent(side, summed);
  cudaEventDestroy(summed);
  shift_kernel<<<(n + 255) / 256, 256, 0, side>>>(x, y, sum, n);
  cudaEventRecord(done, side);
  cudaFreeAsync(sum, stream);
}
