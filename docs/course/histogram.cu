// SPDX-License-Identifier: Apache-2.0
// Unit 6 of the course: a histogram, with fewer and fewer lanes that meet. docs/course/6_atomics.md reads the counts of
// each line.
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

constexpr int kBins = 64, kCount = 1 << 14, kThreads = 256, kBlocks = 8;

__global__ void one_for_all(const unsigned char* in, unsigned* bins) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  atomicAdd(&bins[in[i]], 1u);
}

__global__ void one_a_block(const unsigned char* in, unsigned* bins) {
  __shared__ unsigned own[kBins];
  if (threadIdx.x < kBins) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCount; i += kBlocks * kThreads) {
    atomicAdd(&own[in[i]], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void agreed(const unsigned char* in, unsigned* bins) {
  __shared__ unsigned own[kBins];
  if (threadIdx.x < kBins) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCount; i += kBlocks * kThreads) {
    const unsigned same = __match_any_sync(0xffffffff, in[i]);  // the lanes with this lane's value
    if (__ffs(same) - 1 == threadIdx.x % 32) {
      atomicAdd(&own[in[i]], __popc(same));
    }
  }
  __syncthreads();
  if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main() {
  std::vector<unsigned char> values(kCount);
  std::vector<unsigned> expected(kBins), counted(kBins);
  for (int i = 0; i < kCount; ++i) {  // three of four are 0, like the background of an image
    values[i] = i % 4 == 0 ? i / 4 % kBins : 0;
    ++expected[values[i]];
  }
  unsigned char* in;
  unsigned* bins;
  cudaMalloc(&in, kCount);
  cudaMalloc(&bins, kBins * sizeof(unsigned));
  cudaMemcpy(in, values.data(), kCount, cudaMemcpyHostToDevice);
  int wrong = 0;
  for (int version = 0; version < 3; ++version) {
    cudaMemset(bins, 0, kBins * sizeof(unsigned));
    if (version == 0) one_for_all<<<kCount / kThreads, kThreads>>>(in, bins);
    if (version == 1) one_a_block<<<kBlocks, kThreads>>>(in, bins);
    if (version == 2) agreed<<<kBlocks, kThreads>>>(in, bins);
    cudaMemcpy(counted.data(), bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost);
    for (int b = 0; b < kBins; ++b) wrong += counted[b] != expected[b];
  }
  std::printf("%d of %d bins wrong\n", wrong, 3 * kBins);
  return wrong;
}
