// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_fma.cuh"

// Grid: 16 queries of one head per block; ownership as in attention_fma.cuh.
// Shared memory: (16 + 2 32) rows of D | 1 elements and 16 x 32 weights: 23 KiB for f32 at 64 channels.
// Work: 4 N M D flops per head; 2 (N + M) D elements at least. Every streamed element is read from L2 by each block of
// 16 queries: 16 flops per byte of f32. Limit: reads of shared memory, one per 4 multiply-adds and lane, next to 4
// broadcasts; a quarter of the peak of f32.

namespace weft::kernels::cuda {

template <class Tile, class T, class A>
__global__ void __launch_bounds__(Tile::kThreads)
    attention_forward_fma_kernel(const AttentionTensor<T> y, const AttentionTensor<const T> q,
                                 const AttentionTensor<const T> k, const AttentionTensor<const T> v,
                                 const AttentionProblem<A> problem) {
  constexpr int kRowsPerWarp = Tile::kRowsPerWarp, kStream = Tile::kStream;
  A* const shared = dynamic_shared<A>();
  const int D = problem.D, pitch = Tile::pitch(D);
  A *const own = shared, *const keys = own + Tile::kRows * pitch, *const values = keys + kStream * pitch;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  A* const weights = values + kStream * pitch + warp * kRowsPerWarp * kStream;  // this warp's

  const AttentionPosition position(problem.N, Tile::kRows, problem.H);
  const int row = warp * kRowsPerWarp, query = position.first + row;
  const int key_count = problem.keys_of(position.b), end = problem.key_end(key_count, position.first + Tile::kRows);
  const int key_head = position.h / problem.group;
  Tile::load(own, q, q.head(position.b, position.h), position.first, Tile::kRows, problem.N, D);

  A sums[kRowsPerWarp][Tile::kPerLane] = {}, maximum[kRowsPerWarp], total[kRowsPerWarp] = {};
  WEFT_UNROLL
  for (int r = 0; r < kRowsPerWarp; ++r) maximum[r] = -INFINITY;
  for (int key = problem.key_begin(position.first) / kStream * kStream; key < end; key += kStream) {
    __syncthreads();
    Tile::load(keys, k, k.head(position.b, key_head), key, kStream, key_count, D);
    Tile::load(values, v, v.head(position.b, key_head), key, kStream, key_count, D);
    __syncthreads();
    A scores[kRowsPerWarp];
    Tile::multiply(scores, own + row * pitch, keys, D, lane);
    const int j = key + lane;
    const bool has_key = lane < kStream && problem.has_key(position.b, j, key_count);
    WEFT_UNROLL
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int i = query + r;
      const A score = has_key && problem.sees(i, j) ? scores[r] * problem.scale : A(-INFINITY);
      A most = score;
      for (int distance = 16; distance > 0; distance /= 2) {
        const A other = __shfl_xor_sync(Tile::kAllLanes, most, distance);
        most = other > most ? other : most;
      }
      most = maximum[r] > most ? maximum[r] : most;
      const A base = most > A(-INFINITY) ? most : A(0), again = exp(maximum[r] - base);
      A weight = exp(score - base);
      maximum[r] = most;
      total[r] = total[r] * again + weight;
      if (problem.dropout > 0) {
        const Philox4 block = problem.kept(position.b, position.h).block(i / 2, j / 2);
        if (uniform01(block.word[i % 2 * 2 + j % 2]) < problem.dropout) weight = 0;
      }
      if (lane < kStream) weights[r * kStream + lane] = weight;
      WEFT_UNROLL
      for (int t = 0; t < Tile::kPerLane; ++t) sums[r][t] *= again;
    }
    __syncwarp();
    Tile::add_product(sums, weights, values, D, lane);
  }

  A factor[kRowsPerWarp];
  WEFT_UNROLL
  for (int r = 0; r < kRowsPerWarp; ++r) {
    for (int distance = 16; distance > 0; distance /= 2)
      total[r] += __shfl_xor_sync(Tile::kAllLanes, total[r], distance);
    factor[r] = total[r] == A(0) ? A(0) : problem.keep_scale / total[r];
    if (lane == 0 && query + r < problem.N)
      problem.lse[(static_cast<int64_t>(position.b) * problem.H + position.h) * problem.N + query + r] =
          total[r] == A(0) ? A(-INFINITY) : maximum[r] + log(total[r]);
  }
  Tile::store(y, y.head(position.b, position.h), query, problem.N, D, lane, sums, factor);
}

template <class T>
void attention_forward_fma(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                           const AttentionShape& shape, const AttentionProblem<Accumulate<T>>& problem) {
  using A = Accumulate<T>;
  with_fma_attention<A>(shape.D, [&]<class Tile>() {
    const int rows = Tile::kRows + 2 * Tile::kStream, weights = Tile::kRows * Tile::kStream;
    launch(queue, "attention_forward", attention_grid(shape.B * shape.H, shape.N, Tile::kRows), dim3(Tile::kThreads),
           static_cast<size_t>(rows * Tile::pitch(problem.D) + weights) * sizeof(A),
           &attention_forward_fma_kernel<Tile, T, A>, AttentionTensor<T>(y), AttentionTensor<const T>(q),
           AttentionTensor<const T>(k), AttentionTensor<const T>(v), problem);
  });
}

}  // namespace weft::kernels::cuda
