// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/softmax/softmax.cuh"

// 5. Vectorised: 16 bytes per access.
//
//   row      lane 0: 0-3   lane 1: 4-7   …   lane 31: 124-127 | lane 0: 128-131 …
//
// Saves: a quarter of the load and store instructions, and of their index arithmetic. And the quotient: one division
// per row, then products. Predicted: little where memory was the limit already; a copy's rate, 85% of the data sheet's
// bandwidth or more, on short rows too. Others: cuDNN's RMS norm, a similar kernel, moves 3.2 to 3.85 of an H200's 4.8
// TB/s (NVIDIA/cudnn-frontend, benchmark/norms/results/h200).
//
// Limit: memory. Rows longer than 1024 need more lanes: the last step.

namespace weft::kernels::cuda::softmax_5 {

constexpr int kThreads = 128, kRows = kThreads / 32, kMost = 1024;
constexpr unsigned kAllLanes = 0xffffffffu;
using Vec4 = Vec<float, 4>;

__global__ void softmax_kernel(float* y, const float* x, int M, int C) {
  const int m = static_cast<int>(blockIdx.x * kRows + threadIdx.x / 32), lane = static_cast<int>(threadIdx.x) % 32;
  if (m >= M) return;  // the whole warp
  const float* const in = x + m * C;
  Vec4 value[kMost / 128];
  float most = -INFINITY;
  WEFT_UNROLL
  for (int i = 0; i < kMost / 128; ++i) {
    const int c = (lane + i * 32) * 4;
    value[i] = c < C ? Vec4::load(in + c) : Vec4{{-INFINITY, -INFINITY, -INFINITY, -INFINITY}};
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) most = fmaxf(most, value[i][e]);
  }
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, d));
  float sum = 0;
  WEFT_UNROLL
  for (int i = 0; i < kMost / 128; ++i) {
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) {
      value[i][e] = expf(value[i][e] - most);
      sum += value[i][e];
    }
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
  const float scale = 1 / sum;
  WEFT_UNROLL
  for (int i = 0; i < kMost / 128; ++i) {
    const int c = (lane + i * 32) * 4;
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) value[i][e] *= scale;
    if (c < C) value[i].store(y + m * C + c);
  }
}

void run(const Queue& queue, const View& y, const View& x) {
  const Rows p("softmax/5_vectorised", y, x, 4, kMost);
  launch(queue, "softmax/5_vectorised", dim3(tiles(p.M, kRows)), dim3(kThreads), 0, softmax_kernel, p.y, p.x, p.M, p.C);
}

const Rung<run> rung("softmax/5_vectorised", "16 bytes per access, one division per row", Sizes::multiples);

}  // namespace weft::kernels::cuda::softmax_5
