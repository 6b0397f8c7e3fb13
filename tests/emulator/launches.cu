// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels (nvcc -rdc=true). With an argument a child writes beyond its memory.
#include <cuda_runtime.h>

#include <cstdio>

struct Pair {
  char tag;
  double value;
};

__global__ void child(int* to, Pair pair, int add) { atomicAdd(to + blockIdx.x * blockDim.x + threadIdx.x, static_cast<int>(pair.value) * pair.tag + add); }

__global__ void parent(int* to, int* errors) {
  if (threadIdx.x != 0) return;
  to[blockIdx.x] = 1000;  // children see what their parent wrote before
  child<<<dim3(2), dim3(16)>>>(to, Pair{3, 5.0}, 1);
  child<<<2, 16, 0, cudaStreamFireAndForget>>>(to, Pair{1, 100.0}, 0);
  child<<<1, 2048>>>(to, Pair{1, 1.0}, 0);
  errors[2 * blockIdx.x] = cudaGetLastError();
  errors[2 * blockIdx.x + 1] = cudaGetLastError();
}

/// Sums 0 .. n - 1, a launch for each number: 24 levels are the most.
__global__ void recursive(int* sum, int n) {
  *sum += n;
  if (n > 0) recursive<<<1, 1>>>(sum, n - 1);
}

__global__ void copy(const int* from, int* to) { *to = *from; }
/// The tail comes after all other descendants, those of a later launch, too.
__global__ void with_tail(int* sum, int* to) {
  copy<<<1, 1, 0, cudaStreamTailLaunch>>>(sum, to);
  recursive<<<1, 1>>>(sum, 10);
}

__global__ void fill(int* at) { at[threadIdx.x] = 7 * static_cast<int>(threadIdx.x); }
__global__ void take(int* at, int* to) {
  *to = at[31];
  if (cudaFree(at) != cudaSuccess || cudaFree(to) != cudaErrorInvalidValue) *to = -1;
}
/// A child in a stream of its own writes to memory that its parent allocates.
__global__ void with_memory(int* to) {
  int* at = nullptr;
  cudaStream_t stream;
  if (cudaMalloc(&at, 32 * sizeof(int)) != cudaSuccess) return;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return;
  fill<<<1, 32, 0, stream>>>(at);
  cudaStreamDestroy(stream);
  take<<<1, 1, 0, cudaStreamTailLaunch>>>(at, to);
}

int main(int argc, char**) {
  int *out = nullptr, *errors = nullptr, got[32] = {}, codes[4] = {}, sum[2] = {};
  if (cudaMalloc(&out, sizeof got) != cudaSuccess || cudaMalloc(&errors, sizeof codes) != cudaSuccess) return 1;
  cudaMemset(out, 0, sizeof got);
  parent<<<2, 32>>>(argc > 1 ? out + 1 : out, errors);
  const cudaError_t ended = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(ended));
  if (ended != cudaSuccess) return 1;
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  cudaMemcpy(codes, errors, sizeof codes, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i)
    if (got[i] != (i < 2 ? 1000 : 0) + 2 * (16 + 100)) {
      std::printf("number %d: %d\n", i, got[i]);
      return 1;
    }
  for (int block = 0; block < 2; ++block)
    if (codes[2 * block] != cudaErrorInvalidConfiguration || codes[2 * block + 1] != cudaSuccess) {
      std::printf("errors %d, %d\n", codes[2 * block], codes[2 * block + 1]);
      return 1;
    }
  cudaMemset(out, 0, 8);
  with_tail<<<1, 1>>>(out, out + 1);
  if (cudaMemcpy(sum, out, sizeof sum, cudaMemcpyDeviceToHost) != cudaSuccess || sum[0] != 55 || sum[1] != 55) {
    std::printf("sums %d, %d\n", sum[0], sum[1]);
    return 1;
  }
  with_memory<<<1, 1>>>(out + 1);
  if (cudaMemcpy(sum, out, sizeof sum, cudaMemcpyDeviceToHost) != cudaSuccess || sum[1] != 217) {
    std::printf("last %d, not 217\n", sum[1]);
    return 1;
  }
  return 0;
}
