// SPDX-License-Identifier: Apache-2.0
// Unit 13 of the course: attention with a matrix of scores in memory, and without. docs/course/13_attention.md reads
// the counts of each line.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kHeads = 8, kLength = 256, kDim = 32, kKeys = 32, kThreads = 64;
#ifndef RESCALE
#define RESCALE 1
#endif

/// s = q k^T / sqrt(kDim): a thread per score.
__global__ void scores(const float* q, const float* k, float* s) {
  const int key = blockIdx.x * 128 + threadIdx.x, query = blockIdx.y;  // counted over all heads
  const int head = query / kLength;
  float sum = 0;
  for (int d = 0; d < kDim; ++d) sum += q[query * kDim + d] * k[(head * kLength + key) * kDim + d];
  s[query * kLength + key] = sum * rsqrtf(kDim);
}

/// The softmax of each row, in place: a warp per row.
__global__ void softmax(float* s) {
  float* const row = s + blockIdx.x * kLength;
  float most = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < kLength; c += 32) most = fmaxf(most, row[c]);
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
  for (int c = threadIdx.x; c < kLength; c += 32) sum += row[c] = expf(row[c] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int c = threadIdx.x; c < kLength; c += 32) row[c] /= sum;
}

/// y = s v: a thread per element.
__global__ void values(const float* s, const float* v, float* y) {
  const int query = blockIdx.x, head = query / kLength;
  float sum = 0;
  for (int key = 0; key < kLength; ++key)
    sum += s[query * kLength + key] * v[(head * kLength + key) * kDim + threadIdx.x];
  y[query * kDim + threadIdx.x] = sum;
}

/// All three: a thread keeps a query, its maximum, its sum and its row of y in registers, while tiles of keys pass.
__global__ void fused(const float* q, const float* k, const float* v, float* y) {
  __shared__ float tile_k[kKeys][kDim], tile_v[kKeys][kDim];
  const int query = blockIdx.x * kThreads + threadIdx.x, head = query / kLength;
  float own[kDim], out[kDim] = {}, most = -INFINITY, sum = 0;
  for (int d = 0; d < kDim; ++d) own[d] = q[query * kDim + d] * rsqrtf(kDim);
  for (int first = 0; first < kLength; first += kKeys) {
    for (int i = threadIdx.x; i < kKeys * kDim; i += kThreads) {
      tile_k[i / kDim][i % kDim] = k[(head * kLength + first) * kDim + i];
      tile_v[i / kDim][i % kDim] = v[(head * kLength + first) * kDim + i];
    }
    __syncthreads();
#pragma unroll 1
    for (int key = 0; key < kKeys; ++key) {
      float score = 0;
      for (int d = 0; d < kDim; ++d) score += own[d] * tile_k[key][d];
      const float now = fmaxf(most, score), shrink = RESCALE ? expf(most - now) : 1, weight = expf(score - now);
      most = now;
      sum = sum * shrink + weight;
      for (int d = 0; d < kDim; ++d) out[d] = out[d] * shrink + weight * tile_v[key][d];
    }
    __syncthreads();
  }
  for (int d = 0; d < kDim; ++d) y[query * kDim + d] = out[d] / sum;
}

int main() {
  constexpr int n = kHeads * kLength * kDim, rows = kHeads * kLength;
  std::vector<float> q(n), k(n), v(n), y(n), z(n);
  for (int i = 0; i < n; ++i) {
    q[i] = static_cast<float>(i % 7 - 3) / 2;
    k[i] = static_cast<float>(i % 11 - 5) / 4;
    v[i] = static_cast<float>(i % 5 - 2);
  }
  float *dq, *dk, *dv, *dy, *s;
  for (float** const p : {&dq, &dk, &dv, &dy}) cudaMalloc(p, n * sizeof(float));
  cudaMalloc(&s, rows * kLength * sizeof(float));
  cudaMemcpy(dq, q.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dk, k.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dv, v.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  scores<<<dim3(kLength / 128, rows), 128>>>(dq, dk, s);
  softmax<<<rows, 32>>>(s);
  values<<<rows, kDim>>>(s, dv, dy);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  fused<<<rows / kThreads, kThreads>>>(dq, dk, dv, dy);
  cudaMemcpy(z.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  // exp and 256 additions in another order differ by some 1e-5 of the largest value, 2.
  for (int i = 0; i < n; ++i) wrong += !(std::fabs(y[i] - z[i]) < 1e-4f);
  std::printf("%d of %d elements differ\n", wrong, n);
  return wrong != 0;
}
