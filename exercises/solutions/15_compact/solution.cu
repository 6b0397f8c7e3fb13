// SPDX-License-Identifier: Apache-2.0
__global__ void compact_kernel(const float* in, float* out, int* count, int n) {
  __shared__ int place[8];  // per warp: number of kept elements, then their beginning in out
  const int i = blockIdx.x * 256 + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float value = i < n ? in[i] : 0.0f;
  const unsigned kept = __ballot_sync(0xffffffff, value > 0);
  if (lane == 0) place[warp] = __popc(kept);
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int w = 0; w < 8; ++w) {
      const int more = place[w];
      place[w] = total;
      total += more;
    }
    const int first = atomicAdd(count, total);
    for (int w = 0; w < 8; ++w) place[w] += first;
  }
  __syncthreads();
  if (value > 0) out[place[warp] + __popc(kept & ((1u << lane) - 1))] = value;
}

void compact(const float* in, float* out, int* count, int n) {
  cudaMemset(count, 0, sizeof(int));
  compact_kernel<<<(n + 255) / 256, 256>>>(in, out, count, n);
}
