// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_fma.cuh"

// Grid: 16 queries (dq) or 16 keys (dk, dv) of one head of each per block; ownership as in attention_fma.cuh. Each of
// the two launches owns its outputs: no atomics, bit-identical results in every run. Shared memory: 2 16 owned and 2 32
// streamed rows of D | 1 elements, and weights: 28 KiB for f32 at 64 channels. Work: 6 N M D flops per head for dq, 8 N
// M D for dk and dv (s and dp are computed in both). Limit as forward.

namespace weft::kernels::cuda {

/// for_keys: owns keys (k, v), streams queries (q, dy), writes dk and dv. Else owns queries (q, dy), streams keys
/// (k, v), writes dq. own_first, streamed_first: k or q.
template <class Tile, bool for_keys, class T, class A>
__global__ void __launch_bounds__(Tile::kThreads, 2)
    attention_backward_fma_kernel(const AttentionTensor<T> d_first, const AttentionTensor<T> d_second,
                                  const AttentionTensor<const T> q, const AttentionTensor<const T> k,
                                  const AttentionTensor<const T> v, const AttentionTensor<const T> dy,
                                  const AttentionProblem<A> problem) {
  constexpr int kRowsPerWarp = Tile::kRowsPerWarp, kStream = Tile::kStream, kRows = Tile::kRows;
  A* const shared = dynamic_shared<A>();
  const int D = problem.D, pitch = Tile::pitch(D);
  A *const own_first = shared, *const own_second = own_first + kRows * pitch;
  A *const streamed_first = own_second + kRows * pitch, *const streamed_second = streamed_first + kStream * pitch;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  A* const slopes = streamed_second + kStream * pitch + warp * 2 * kRowsPerWarp * kStream;  // this warp's
  A* const weights = slopes + kRowsPerWarp * kStream;

  const int own_count = for_keys ? problem.M : problem.N;
  const AttentionPosition position(own_count, kRows, for_keys ? problem.G : problem.H);
  const int b = position.b, h = position.h, row = warp * kRowsPerWarp;
  const int key_count = problem.keys_of(b);
  const int own_end = for_keys ? key_count : problem.N;
  const AttentionTensor<const T>&own_a = for_keys ? k : q, &own_b = for_keys ? v : dy;
  const AttentionTensor<const T>&streamed_a = for_keys ? q : k, &streamed_b = for_keys ? dy : v;
  Tile::load(own_first, own_a, own_a.head(b, h), position.first, kRows, own_end, D);
  Tile::load(own_second, own_b, own_b.head(b, h), position.first, kRows, own_end, D);

  // Keys stream the queries of all heads of their group. With a causal mask they are seen by their own and by later
  // queries.
  const int first_head = for_keys ? h * problem.group : h, heads = for_keys ? problem.group : 1;
  const int begin =
      (for_keys ? (problem.causal ? position.first : 0) : problem.key_begin(position.first)) / kStream * kStream;
  const int end = for_keys ? (position.first < key_count ? problem.query_end(position.first + kRows) : 0)
                           : problem.key_end(key_count, position.first + kRows);
  const int streamed_end = for_keys ? problem.N : key_count;
  A sums_first[kRowsPerWarp][Tile::kPerLane] = {}, sums_second[kRowsPerWarp][Tile::kPerLane] = {};
  for (int at = begin; at < end; at += kStream)
    for (int head = first_head; head < first_head + heads; ++head) {
      const int streamed_head = for_keys ? head : head / problem.group;
      const int64_t statistics = (static_cast<int64_t>(b) * problem.H + head) * problem.N;
      __syncthreads();
      Tile::load(streamed_first, streamed_a, streamed_a.head(b, streamed_head), at, kStream, streamed_end, D);
      Tile::load(streamed_second, streamed_b, streamed_b.head(b, streamed_head), at, kStream, streamed_end, D);
      __syncthreads();
      A scores[kRowsPerWarp], slope[kRowsPerWarp];
      Tile::multiply(scores, own_first + row * pitch, streamed_first, D, lane);
      Tile::multiply(slope, own_second + row * pitch, streamed_second, D, lane);
      WEFT_UNROLL
      for (int r = 0; r < kRowsPerWarp; ++r) {
        const int owned = position.first + row + r, streamed = at + lane;
        const int i = for_keys ? streamed : owned, j = for_keys ? owned : streamed;
        const bool sees = lane < kStream && i < problem.N && problem.has_key(b, j, key_count) && problem.sees(i, j);
        A weight = sees ? exp(scores[r] * problem.scale - problem.lse[statistics + i]) : A(0);
        const A delta = sees ? problem.delta[statistics + i] : A(0);
        A factor = problem.keep_scale;
        if (problem.dropout > 0) {
          const Philox4 block = problem.kept(b, head).block(i / 2, j / 2);
          if (uniform01(block.word[i % 2 * 2 + j % 2]) < problem.dropout) factor = 0;
        }
        if (lane < kStream) {
          slopes[r * kStream + lane] = weight * (slope[r] * factor - delta);
          if (for_keys) weights[r * kStream + lane] = weight * factor;
        }
      }
      __syncwarp();
      Tile::add_product(sums_first, slopes, streamed_first, D, lane);
      if (for_keys) Tile::add_product(sums_second, weights, streamed_second, D, lane);
    }

  A scale[kRowsPerWarp], one[kRowsPerWarp];
  WEFT_UNROLL
  for (int r = 0; r < kRowsPerWarp; ++r) {
    scale[r] = problem.scale;
    one[r] = A(1);
  }
  Tile::store(d_first, d_first.head(b, h), position.first + row, own_count, D, lane, sums_first, scale);
  if (for_keys) Tile::store(d_second, d_second.head(b, h), position.first + row, own_count, D, lane, sums_second, one);
}

/// problem.delta must hold rowsum(dy y).
template <class T>
void attention_backward_fma(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                            const View& q, const View& k, const View& v, const AttentionShape& shape,
                            const AttentionProblem<Accumulate<T>>& problem) {
  using A = Accumulate<T>;
  const AttentionTensor<const T> from_q(q), from_k(k), from_v(v), from_dy(dy);
  with_fma_attention<A>(shape.D, [&]<class Tile>() {
    const int rows = 2 * Tile::kRows + 2 * Tile::kStream, weights = 2 * Tile::kRows * Tile::kStream;
    const size_t bytes = static_cast<size_t>(rows * Tile::pitch(problem.D) + weights) * sizeof(A);
    if (dq)
      launch(queue, "attention_backward (dq)", attention_grid(shape.B * shape.H, shape.N, Tile::kRows),
             dim3(Tile::kThreads), bytes, &attention_backward_fma_kernel<Tile, false, T, A>, AttentionTensor<T>(dq),
             AttentionTensor<T>(dq), from_q, from_k, from_v, from_dy, problem);
    if (dk)
      launch(queue, "attention_backward (dk, dv)", attention_grid(shape.B * shape.G, shape.M, Tile::kRows),
             dim3(Tile::kThreads), bytes, &attention_backward_fma_kernel<Tile, true, T, A>, AttentionTensor<T>(dk),
             AttentionTensor<T>(dv), from_q, from_k, from_v, from_dy, problem);
  });
}

}  // namespace weft::kernels::cuda
