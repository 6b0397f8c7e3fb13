// SPDX-License-Identifier: Apache-2.0
__global__ void twice_kernel(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= 2;
}

void twice(const float* in, float* out, float* device, int n, int chunks, cudaStream_t stream, cudaStream_t* side) {
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  for (int s = 0; s < 2; ++s) cudaStreamWaitEvent(side[s], event);
  const int each = (n + chunks - 1) / chunks;
  for (int first = 0, s = 0; first < n; first += each, s = 1 - s) {
    const int count = std::min(each, n - first);
    cudaMemcpyAsync(device + first, in + first, count * sizeof(float), cudaMemcpyHostToDevice, side[s]);
    twice_kernel<<<(count + 255) / 256, 256, 0, side[s]>>>(device + first, count);
    cudaMemcpyAsync(out + first, device + first, count * sizeof(float), cudaMemcpyDeviceToHost, side[s]);
  }
  for (int s = 0; s < 2; ++s) {
    cudaEventRecord(event, side[s]);
    cudaStreamWaitEvent(stream, event);
  }
  cudaEventDestroy(event);
}
