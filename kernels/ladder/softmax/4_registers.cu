// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/softmax/softmax.cuh"

// 4. Registers: read the row once and keep it.
//
//   row of up to 1024      lane 0: value[0] value[1] … value[31]     32 registers a lane x 32 lanes = 1024 elements
//                          lane 1: value[0] value[1] … value[31]     all 32 loads are under way before the first is
//                          needed
//
// With the row in registers the online trick is not needed any more: maximum first, then the exponentials, which are
// kept as well: one exponential per element instead of two.
//
// The loop over value[] must have a constant count and be unrolled, since registers have no addresses: an index that is
// not known to the compiler would move the array to (slow) local memory.
//
// Saves: the second read: 12 bytes per element become the 8 that must be. Predicted: 1.5 times where the cache did not
// help; then a copy's rate.
//
// Limit: memory, if enough loads are under way; each moves 4 bytes.

namespace weft::kernels::cuda::softmax_4 {

constexpr int kThreads = 128, kRows = kThreads / 32, kMost = 1024;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void softmax_kernel(float* y, const float* x, int M, int C) {
  const int m = static_cast<int>(blockIdx.x * kRows + threadIdx.x / 32), lane = static_cast<int>(threadIdx.x) % 32;
  if (m >= M) return;  // the whole warp
  const float* const in = x + m * C;
  float value[kMost / 32];
  float most = -INFINITY;
#pragma unroll
  for (int i = 0; i < kMost / 32; ++i) {
    const int c = lane + i * 32;
    value[i] = c < C ? in[c] : -INFINITY;
    most = fmaxf(most, value[i]);
  }
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, d));
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMost / 32; ++i) {
    value[i] = expf(value[i] - most);
    sum += value[i];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
#pragma unroll
  for (int i = 0; i < kMost / 32; ++i) {
    const int c = lane + i * 32;
    if (c < C) y[m * C + c] = value[i] / sum;
  }
}

void run(const Queue& queue, const View& y, const View& x) {
  const Rows p("softmax/4_registers", y, x, 1, kMost);
  launch(queue, "softmax/4_registers", dim3(tiles(p.M, kRows)), dim3(kThreads), 0, softmax_kernel, p.y, p.x, p.M, p.C);
}

const Rung<run> rung("softmax/4_registers", "the row stays in registers: read once");

}  // namespace weft::kernels::cuda::softmax_4
