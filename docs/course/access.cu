// SPDX-License-Identifier: Apache-2.0
// Unit 2 of the course: the same bytes, asked for in four orders. docs/course/2_coalescing.md reads the counts of each line.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kCount = 1 << 12;
struct Particle {
  float x, y, z, mass;
};

__global__ void neighbours(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

__global__ void shifted(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i + 1];
}

__global__ void runs(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 32; ++k) {
    out[i * 32 + k] = in[i * 32 + k];
  }
}

__global__ void structures(const Particle* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i].mass;
}

__global__ void vectors(const float4* in, float4* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

int main() {
  float *in, *out;
  cudaMalloc(&in, (kCount + 1) * sizeof(Particle));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaMemset(in, 0, (kCount + 1) * sizeof(Particle));
  neighbours<<<kCount / 256, 256>>>(in, out);
  shifted<<<kCount / 256, 256>>>(in, out);
  runs<<<1, kCount / 32>>>(in, out);
  structures<<<kCount / 256, 256>>>(reinterpret_cast<const Particle*>(in), out);
  vectors<<<kCount / 1024, 256>>>(reinterpret_cast<const float4*>(in), reinterpret_cast<float4*>(out));
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
