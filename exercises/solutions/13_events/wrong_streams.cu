// SPDX-License-Identifier: Apache-2.0
// The first event is recorded before the copy: it marks nothing.
// out[i] = 2 * in[i]. `in` and `out` are pinned memory of the host, `device` holds n numbers.

__global__ void twice_kernel(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= 2;
}

void twice(const float* in, float* out, float* device, int n, cudaStream_t copies, cudaStream_t work) {
  cudaEvent_t copied, doubled;
  cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&doubled, cudaEventDisableTiming);
  cudaEventRecord(copied, copies);
  cudaMemcpyAsync(device, in, n * sizeof(float), cudaMemcpyHostToDevice, copies);
  cudaStreamWaitEvent(work, copied);
  twice_kernel<<<(n + 255) / 256, 256, 0, work>>>(device, n);
  cudaEventRecord(doubled, work);
  cudaStreamWaitEvent(copies, doubled);
  cudaMemcpyAsync(out, device, n * sizeof(float), cudaMemcpyDeviceToHost, copies);
  cudaStreamSynchronize(copies);
  cudaEventDestroy(copied);
  cudaEventDestroy(doubled);
}
