// SPDX-License-Identifier: Apache-2.0
// One atomic operation for each warp.
__global__ void compact_kernel(const float* in, float* out, int* count, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
  const float value = i < n ? in[i] : 0.0f;
  const unsigned kept = __ballot_sync(0xffffffff, value > 0);
  int first = lane == 0 ? atomicAdd(count, __popc(kept)) : 0;
  first = __shfl_sync(0xffffffff, first, 0);
  if (value > 0) out[first + __popc(kept & ((1u << lane) - 1))] = value;
}

void compact(const float* in, float* out, int* count, int n) {
  cudaMemset(count, 0, sizeof(int));
  compact_kernel<<<(n + 255) / 256, 256>>>(in, out, count, n);
}
