// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/attention/attention.cuh"
#include "kernels/runtime/allocator.h"

// 1. Three kernels: the formula, with its L x L matrix in memory.
//
//     s = q k^T / sqrt(D)          [L,L]  written             q [L,D]   k [L,D]   v [L,D]     D = 64
//     p = softmax of the rows      [L,L]  read twice, written
//     y = p v                      [L,D]  read again
//
// Cost: with L = 2048 and 64 heads in f32 the matrix has 1.07 GB; five passes move 5.4 GB, 1.6 ms at 3.35 TB/s. q, k,
// v and y together have 67 MB (0.02 ms). The 69 GFLOP of both products take 0.09 ms at 790 TFLOP/s. So the matrix,
// which is no part of the result, takes most of the time with any speed of products. Its memory grows with the square
// of L.
//
// Here the products are naive as well, a thread per element (the way to fast ones: ladder matmul_bf16).
//
// Limit: the matrix's traffic (and, in these products, scattered loads of k).

namespace weft::kernels::cuda::attention_1 {

constexpr int kBlock = 32, kThreads = 128;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void scores_kernel(float* s, const bf16* q, const bf16* k, int L, float scale) {
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  const int64_t head = blockIdx.z;
  if (j >= L) return;
  float sum = 0;
  for (int d = 0; d < kHeadDim; ++d)
    sum += from<float>(q[(head * L + i) * kHeadDim + d]) * from<float>(k[(head * L + j) * kHeadDim + d]);
  s[(head * L + i) * L + j] = sum * scale;
}

/// A warp per row, in place: ladder softmax, third step.
__global__ void softmax_kernel(float* s, int64_t rows, int L) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows) return;  // the whole warp
  float* const at = s + row * L;
  float most = -INFINITY, sum = 0;
  for (int j = lane; j < L; j += 32) {
    const float value = at[j], before = most;
    most = fmaxf(most, value);
    sum = sum * expf(before - most) + expf(value - most);
  }
  float of_row = most;
  for (int d = 16; d > 0; d /= 2) of_row = fmaxf(of_row, __shfl_xor_sync(kAllLanes, of_row, d));
  sum = sum > 0 ? sum * expf(most - of_row) : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
  for (int j = lane; j < L; j += 32) at[j] = expf(at[j] - of_row) / sum;
}

__global__ void values_kernel(bf16* y, const float* p, const bf16* v, int L) {
  const int i = static_cast<int>(blockIdx.x), d = static_cast<int>(threadIdx.x);
  const int64_t head = blockIdx.y;
  float sum = 0;
  for (int j = 0; j < L; ++j) sum += p[(head * L + i) * L + j] * from<float>(v[(head * L + j) * kHeadDim + d]);
  y[(head * L + i) * kHeadDim + d] = to<bf16>(sum);
}

void run(const Queue& queue, const View& y, const View& q, const View& k, const View& v) {
  const Attention a("attention/1_three_kernels", y, q, k, v);
  const unsigned L = static_cast<unsigned>(a.L), G = static_cast<unsigned>(a.G);
  const int64_t rows = int64_t{a.G} * a.L;
  const Workspace scores(queue, static_cast<size_t>(rows * a.L) * sizeof(float), "attention/1_three_kernels");
  float* const s = scores.as<float>();
  launch(queue, "attention/1_three_kernels (scores)", dim3(tiles(a.L, kBlock), L, G), dim3(kBlock), 0, scores_kernel, s,
         a.q, a.k, a.L, a.scale);
  launch(queue, "attention/1_three_kernels (softmax)", dim3(tiles(rows, kThreads / 32)), dim3(kThreads), 0,
         softmax_kernel, s, rows, a.L);
  launch(queue, "attention/1_three_kernels (values)", dim3(L, G), dim3(kHeadDim), 0, values_kernel, a.y,
         static_cast<const float*>(s), a.v, a.L);
}

const Rung<run> rung("attention/1_three_kernels", "scores, softmax, values, with an L x L matrix in memory");

}  // namespace weft::kernels::cuda::attention_1
