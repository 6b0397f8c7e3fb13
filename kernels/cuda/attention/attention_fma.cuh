// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_shape.cuh"

// Attention by fused multiply-add: f32 and f64, and half precision without tensor-core kernels (more than 128 channels
// per head, or rows that are no multiple of 16 bytes).
//
// A block of 4 warps owns 16 rows, 4 per warp. It streams the rows of the other side through shared memory, 32 at a
// time (forward and dq: owns queries, streams keys; dk, dv: the other way round):
//
//   scores       lane = streamed row: 4 dot products over the channels       own rows: broadcast, streamed: own bank
//   softmax      a warp's row is spread over its lanes; weights are stored to shared memory, read by the same warp only
//   sums         lane = channels lane, lane + 32, …: 4 rows x kPerLane sums in registers

namespace weft::kernels::cuda {

/// kPerLane: channels per lane, for heads of at most 32 kPerLane.
template <class A, int kPerLaneCount>
struct FmaAttention {
  static constexpr int kPerLane = kPerLaneCount, kWarps = 4, kThreads = kWarps * 32, kRows = 16;
  static constexpr int kRowsPerWarp = kRows / kWarps;
  /// Rows per step; half as many if 32 rows of f64 would not fit.
  static constexpr int kStream = sizeof(A) == 8 && kPerLane == 8 ? 16 : 32;
  static constexpr unsigned kAllLanes = 0xffffffffu;

  /// An odd number of elements per row, so that a column's elements are in different banks.
  static constexpr __host__ __device__ int pitch(int D) { return D | 1; }

  /// Adds weights [4][kStream] times streamed [kStream][D] to a warp's accumulators.
  static __device__ __forceinline__ void add_product(A (&sums)[kRowsPerWarp][kPerLane], const A* weights,
                                                     const A* streamed, int D, int lane) {
    WEFT_UNROLL_BY(2)
    for (int j = 0; j < kStream; ++j) {
      A weight[kRowsPerWarp];
      WEFT_UNROLL
      for (int r = 0; r < kRowsPerWarp; ++r) weight[r] = weights[r * kStream + j];
      WEFT_UNROLL
      for (int t = 0; t < kPerLane; ++t) {
        const int d = lane + t * 32;
        const A value = d < D ? streamed[j * pitch(D) + d] : A(0);
        WEFT_UNROLL
        for (int r = 0; r < kRowsPerWarp; ++r) sums[r][t] += weight[r] * value;
      }
    }
  }

  /// scores[r] = own row r times streamed row `lane`, for the 4 rows of a warp.
  static __device__ __forceinline__ void multiply(A (&scores)[kRowsPerWarp], const A* own, const A* streamed, int D,
                                                  int lane) {
    WEFT_UNROLL
    for (int r = 0; r < kRowsPerWarp; ++r) scores[r] = A(0);
    if (lane >= kStream) return;
    WEFT_UNROLL_BY(2)
    for (int d = 0; d < D; ++d) {
      const A value = streamed[lane * pitch(D) + d];
      WEFT_UNROLL
      for (int r = 0; r < kRowsPerWarp; ++r) scores[r] += own[r * pitch(D) + d] * value;
    }
  }

  /// Loads rows first … first + count - 1 of a head into shared memory; rows from `end` on become 0.
  template <class T>
  static __device__ void load(A* shared, const AttentionTensor<const T>& tensor, const T* head, int first, int count,
                              int end, int D) {
    for (int i = static_cast<int>(threadIdx.x); i < count * D; i += kThreads) {
      const int row = i / D, d = i % D;
      shared[row * pitch(D) + d] = first + row < end ? from<A>(head[(first + row) * tensor.row_stride + d]) : A(0);
    }
  }

  /// Stores the 4 rows of a warp, times `factor`.
  template <class T>
  static __device__ void store(const AttentionTensor<T>& tensor, T* head, int first, int end, int D, int lane,
                               const A (&sums)[kRowsPerWarp][kPerLane], const A (&factor)[kRowsPerWarp]) {
    WEFT_UNROLL
    for (int r = 0; r < kRowsPerWarp; ++r) WEFT_UNROLL
    for (int t = 0; t < kPerLane; ++t) {
      const int d = lane + t * 32;
      if (first + r < end && d < D) head[(first + r) * tensor.row_stride + d] = to<T>(sums[r][t] * factor[r]);
    }
  }
};

/// Calls `body.operator()<Tile>()` for heads of D channels.
template <class A, class Body>
void with_fma_attention(int64_t D, Body&& body) {
  if (D <= 64)
    body.template operator()<FmaAttention<A, 2>>();
  else if (D <= 128)
    body.template operator()<FmaAttention<A, 4>>();
  else
    body.template operator()<FmaAttention<A, 8>>();
}

}  // namespace weft::kernels::cuda
