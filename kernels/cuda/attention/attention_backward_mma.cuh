// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_mma.cuh"

// Attention's backward on the tensor cores. Each of two kernels owns its outputs, so there are no atomics and results
// are bit-identical in every run: the first owns queries and writes dq, the second owns keys and writes dk and dv. Both
// compute s and dp = dy v^T, 7 GEMMs in total; a kernel that adds dq across blocks needs 5. Partial dq in memory, added
// in order, would cost 8 bytes (f32, written and read) per channel; the second s and dp cost 4 flops per key of a
// block. At 64 keys these are 32 flops per byte of memory traffic, and an H100 has 300.
//
// Grid: a block of 4 warps owns 16 kSquares rows per warp of one head (dq: queries; dk, dv: keys) and iterates over the
// other side's rows, kStream at a time. Owned keys iterate over the queries of all heads that share them, so that dk
// and dv are summed in registers:
//
//   memory --cp.async--> stage 0 | stage 1 (kStream rows of two tensors each, and for keys lse and delta of queries)
//   owned queries: s = q k^T,   dp = dy v^T,   ds = p (dp - delta),  dq += ds k
//   owned keys:    s^T = k q^T, dp^T = v dy^T, dv += p^T dy,         dk += ds^T q
//
// p and ds are computed from the accumulators in registers and, rounded to T, are the left operands of the next GEMMs.
// Both owned tensors stay in shared memory; queries beyond the last are zeros and add nothing.
//
// Shared memory: owned + 2 stages; at 64 channels dq 2 16 KiB (128 queries) + 2 16 KiB (64 keys); dk and dv 2 16 KiB
// (128 keys) + 2 8.25 KiB (32 queries); at 128 channels both 2 16 KiB (64) + 2 16 KiB (32). The bound is the reading of
// fragments: a fragment of streamed rows serves all of a warp's tiles, a fragment of owned rows all streamed rows of a
// step. Two 16-row tiles by 32 (dq: 64) streamed rows need three quarters of the shared-memory bandwidth while tensor
// cores are busy; one tile by 64 rows would need 1.25 times the bandwidth. Work: 6 N M D flops per head for dq, 8 N M D
// for dk and dv, N M exponentials each. Bytes at least 2 (4 N + 2 M) D and 2 (2 N + 4 M) D. Limit: tensor cores, then
// registers (one or two blocks per SM); expected on an A100: 50 to 60% of the peak.

namespace weft::kernels::cuda {

template <int kChannels, int kWarpCount, int kSquareCount, int kStreamRows>
struct BackwardMma {
  using Tile = AttentionTile<kChannels>;
  static constexpr int kWarps = kWarpCount, kThreads = kWarps * 32, kSquares = kSquareCount, kStream = kStreamRows;
  static constexpr int kWarpRows = 16 * kSquares, kOwned = kWarps * kWarpRows;
  static constexpr int kStageElements = 2 * kStream * kChannels;
  static constexpr int kTileElements = 2 * kOwned * kChannels + 2 * kStageElements;
  /// Floats after the tiles: lse and delta of both stages' queries.
  static constexpr int kStatistics = 2 * 2 * kStream;

  /// Multiplies owned rows (from the warp's first on) by streamed rows, K = channels. Not unrolled: the owned tile's
  /// addresses are the same in every step, and the compiler would keep all of them in registers.
  template <class T>
  static __device__ __forceinline__ void multiply(float (&sums)[kSquares][kStream / 8][4], ptx::SharedAddress owned,
                                                  ptx::SharedAddress streamed, int left_lane, int right_lane) {
    WEFT_UNROLL_BY(1)
    for (int c = 0; c < kChannels / 16; ++c) {
      uint32_t a[kSquares][4];
      unrolled<kSquares>([&](auto p) { Tile::template read<p.value * 16>(a[p.value], owned, c * 16, left_lane); });
      unrolled<kStream / 16>([&](auto n) {
        uint32_t w[4];
        Tile::template read<n.value * 16>(w, streamed, c * 16, right_lane);
        WEFT_UNROLL
        for (int p = 0; p < kSquares; ++p) {
          ptx::mma_m16n8k16<T>(sums[p][2 * n.value], a[p], {w[0], w[1]});
          ptx::mma_m16n8k16<T>(sums[p][2 * n.value + 1], a[p], {w[2], w[3]});
        }
      });
    }
  }

  /// sums += weights (owned rows by streamed rows, in registers) times streamed rows.
  template <class T>
  static __device__ __forceinline__ void add_product(float (&sums)[kSquares][Tile::kRuns][4],
                                                     const float (&weights)[kSquares][kStream / 8][4],
                                                     ptx::SharedAddress streamed, int left_lane) {
    unrolled<kStream / 16>([&](auto c) {
      uint32_t a[kSquares][4];
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) attention_left<T>(a[p], weights[p][2 * c.value], weights[p][2 * c.value + 1]);
      WEFT_UNROLL
      for (int n = 0; n < Tile::kRuns; n += 2) {
        uint32_t w[4];
        Tile::template read_over_rows<c.value * 16>(w, streamed, n * 8, left_lane);
        WEFT_UNROLL
        for (int p = 0; p < kSquares; ++p) {
          ptx::mma_m16n8k16<T>(sums[p][n], a[p], {w[0], w[1]});
          ptx::mma_m16n8k16<T>(sums[p][n + 1], a[p], {w[2], w[3]});
        }
      }
    });
  }
};

inline constexpr float kLog2E = 1.44269504f;  // exponentials are powers of 2

template <class Shape, bool with_dropout, class T>
__global__ void __launch_bounds__(Shape::kThreads)
    attention_dq_mma_kernel(const AttentionTensor<T> dq, const AttentionTensor<const T> q,
                            const AttentionTensor<const T> k, const AttentionTensor<const T> v,
                            const AttentionTensor<const T> dy, const AttentionProblem<float> problem) {
  using Tile = typename Shape::Tile;
  constexpr int kSquares = Shape::kSquares, kKeys = Shape::kStream, kChannels = Tile::kChannels;
  constexpr unsigned kAllLanes = 0xffffffffu;
  T* const shared = dynamic_shared<T>();
  constexpr int q_tile = 0, dy_tile = Shape::kOwned * kChannels, kFirstStage = 2 * dy_tile;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, row = thread / 32 * Shape::kWarpRows;
  const int left_lane = Tile::left_lane(lane), right_lane = Tile::right_lane(lane);
  const ptx::SharedAddress own_q = ptx::to_shared(shared + q_tile + row * kChannels);
  const ptx::SharedAddress own_dy = ptx::to_shared(shared + dy_tile + row * kChannels);
  const AttentionPosition position(problem.N, Shape::kOwned, problem.H, /*last_first=*/problem.causal);
  const int b = position.b, h = position.h, query = position.first + row, N = problem.N;
  const int keys = problem.keys_of(b), end = problem.key_end(keys, position.first + Shape::kOwned);
  const int begin = problem.key_begin(position.first) / kKeys;
  const T *const k_head = k.head(b, h / problem.group), *const v_head = v.head(b, h / problem.group);

  const auto fill = [&](int step) {
    if (step * kKeys < end) {
      T* const stage = shared + kFirstStage + step % 2 * Shape::kStageElements;
      Tile::template load<kKeys, Shape::kThreads>(stage, k, k_head, step * kKeys, keys, problem.D);
      Tile::template load<kKeys, Shape::kThreads>(stage + kKeys * kChannels, v, v_head, step * kKeys, keys, problem.D);
    }
    ptx::cp_async_commit();
  };
  Tile::template load<Shape::kOwned, Shape::kThreads>(shared + q_tile, q, q.head(b, h), position.first, N, problem.D);
  Tile::template load<Shape::kOwned, Shape::kThreads>(shared + dy_tile, dy, dy.head(b, h), position.first, N,
                                                      problem.D);
  fill(begin);

  const float scale = problem.scale * kLog2E;
  const int64_t statistics = (static_cast<int64_t>(b) * problem.H + h) * N;
  float lse[kSquares][2], delta[kSquares][2];  // lse in powers of 2
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int i = query + p * 16 + half * 8 + lane / 4;
    lse[p][half] = i < N ? problem.lse[statistics + i] * kLog2E : 0.0f;
    delta[p][half] = i < N ? problem.delta[statistics + i] : 0.0f;
  }

  float sums[kSquares][Tile::kRuns][4] = {};
  for (int step = begin; step * kKeys < end; ++step) {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    fill(step + 1);
    const int key = step * kKeys;
    const ptx::SharedAddress keys_at = ptx::to_shared(shared + kFirstStage + step % 2 * Shape::kStageElements);
    const ptx::SharedAddress values_at = keys_at + kKeys * Tile::kRowBytes;
    float s[kSquares][kKeys / 8][4] = {}, slope[kSquares][kKeys / 8][4] = {};
    Shape::template multiply<T>(s, own_q, keys_at, left_lane, right_lane);
    Shape::template multiply<T>(slope, own_dy, values_at, left_lane, right_lane);

    unsigned there[kKeys / 32];
    bool whole = problem.all_see(query, Shape::kWarpRows, key, kKeys);
    WEFT_UNROLL
    for (int w = 0; w < kKeys / 32; ++w) {
      there[w] = __ballot_sync(kAllLanes, problem.has_key(b, key + w * 32 + lane, keys));
      whole = whole && there[w] == kAllLanes;
    }
    WEFT_UNROLL
    for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      bool kept[4] = {true, true, true, true};
      if constexpr (with_dropout)
        attention_kept<false>(kept, problem.kept(b, h), problem.dropout, query + p * 16, key + n * 8, lane);
      WEFT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float weight = ptx::exp2_approx(s[p][n][e] * scale - lse[p][e / 2]);
        float dp = slope[p][n][e];
        if constexpr (with_dropout) dp = kept[e] ? dp * problem.keep_scale : 0.0f;
        s[p][n][e] = weight * (dp - delta[p][e / 2]);
      }
    }
    if (!whole) {
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) WEFT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int column = n * 8 + lane % 4 * 2 + e % 2, i = query + p * 16 + e / 2 * 8 + lane / 4;
        const bool sees = (there[n / 4] >> (column % 32) & 1) != 0 && problem.sees(i, key + column);
        s[p][n][e] = sees ? s[p][n][e] : 0.0f;
      }
    }
    Shape::template add_product<T>(sums, s, keys_at, left_lane);
  }

  float factor[kSquares][2];
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) factor[p][0] = factor[p][1] = problem.scale;
  ptx::cp_async_wait_all();
  __syncthreads();
  Tile::store(dq, dq.head(b, h), shared + q_tile, row, position.first, N, problem.D, lane, sums, factor);
}

template <class Shape, bool with_dropout, class T>
__global__ void __launch_bounds__(Shape::kThreads)
    attention_dkv_mma_kernel(const AttentionTensor<T> dk, const AttentionTensor<T> dv, const AttentionTensor<const T> q,
                             const AttentionTensor<const T> k, const AttentionTensor<const T> v,
                             const AttentionTensor<const T> dy, const AttentionProblem<float> problem) {
  using Tile = typename Shape::Tile;
  constexpr int kSquares = Shape::kSquares, kQueries = Shape::kStream, kChannels = Tile::kChannels;
  T* const shared = dynamic_shared<T>();
  constexpr int k_tile = 0, v_tile = Shape::kOwned * kChannels, kFirstStage = 2 * v_tile;
  float* const statistics = reinterpret_cast<float*>(shared + Shape::kTileElements);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, row = thread / 32 * Shape::kWarpRows;
  const int left_lane = Tile::left_lane(lane), right_lane = Tile::right_lane(lane);
  const ptx::SharedAddress own_k = ptx::to_shared(shared + k_tile + row * kChannels);
  const ptx::SharedAddress own_v = own_k + Shape::kOwned * Tile::kRowBytes;
  const AttentionPosition position(problem.M, Shape::kOwned, problem.G);
  const int b = position.b, N = problem.N, keys = problem.keys_of(b);
  // In a causal problem keys are seen by themselves and by later queries. No query sees padding.
  const int begin = problem.causal ? position.first / kQueries : 0;
  const int end =
      position.first < keys ? (problem.query_end(position.first + Shape::kOwned) + kQueries - 1) / kQueries : 0;

  // A step of queries of each head of the group in turn, then the next step.
  const auto fill = [&](int step, int member, int at) {  // recomputes the head's address: no register is left for it
    if (step < end) {
      T* const stage = shared + kFirstStage + at * Shape::kStageElements;
      const int first = step * kQueries, h = position.h * problem.group + member;
      const int64_t row_statistics = (static_cast<int64_t>(b) * problem.H + h) * N;
      Tile::template load<kQueries, Shape::kThreads>(stage, q, q.head(b, h), first, N, problem.D);
      Tile::template load<kQueries, Shape::kThreads>(stage + kQueries * kChannels, dy, dy.head(b, h), first, N,
                                                     problem.D);
      // lse, then delta. Both are 0 for queries beyond the last: their weights are 1, but dy and q are 0.
      static_assert(2 * kQueries <= Shape::kThreads);
      if (thread < 2 * kQueries) {
        const int i = first + thread % kQueries;
        const float* const from = thread < kQueries ? problem.lse : problem.delta;
        ptx::cp_async_zfill<4>(statistics + at * 2 * kQueries + thread, from + row_statistics + (i < N ? i : 0),
                               i < N ? 4 : 0);
      }
    }
    ptx::cp_async_commit();
  };
  Tile::template load<Shape::kOwned, Shape::kThreads>(shared + k_tile, k, k.head(b, position.h), position.first, keys,
                                                      problem.D);
  Tile::template load<Shape::kOwned, Shape::kThreads>(shared + v_tile, v, v.head(b, position.h), position.first, keys,
                                                      problem.D);
  fill(begin, 0, 0);

  const auto has_row = [&](int p, int half) {
    return problem.has_key(b, position.first + row + p * 16 + half * 8 + lane / 4, problem.keys_of(b));
  };
  bool all_there = true;  // whether all keys of this lane's rows are visible
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) all_there = all_there && has_row(p, 0) && has_row(p, 1);

  const float scale = problem.scale * kLog2E;
  float dk_sums[kSquares][Tile::kRuns][4] = {}, dv_sums[kSquares][Tile::kRuns][4] = {};
  for (int step = begin, member = 0, at = 0; step < end; at ^= 1) {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    const int query = step * kQueries, key = position.first + row;
    [[maybe_unused]] const int h = position.h * problem.group + member;
    if (++member == problem.group) {
      member = 0;
      ++step;
    }
    fill(step, member, at ^ 1);
    const ptx::SharedAddress queries_at = ptx::to_shared(shared + kFirstStage + at * Shape::kStageElements);
    const ptx::SharedAddress slopes_at = queries_at + kQueries * Tile::kRowBytes;
    const float *const lse = statistics + at * 2 * kQueries, *const delta = lse + kQueries;
    float p_t[kSquares][kQueries / 8][4] = {};
    Shape::template multiply<T>(p_t, own_k, queries_at, left_lane, right_lane);
    WEFT_UNROLL
    for (int n = 0; n < kQueries / 8; ++n) {
      const float2 lse_pair = *reinterpret_cast<const float2*>(lse + n * 8 + lane % 4 * 2);
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
      for (int e = 0; e < 4; ++e)
        p_t[p][n][e] = ptx::exp2_approx(p_t[p][n][e] * scale - (e % 2 == 0 ? lse_pair.x : lse_pair.y) * kLog2E);
    }
    // Visibility is recomputed: no register is left, and few steps need masks.
    if (!all_there || !problem.all_see(query, kQueries, key, Shape::kWarpRows)) {
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const bool there = has_row(p, half);
        WEFT_UNROLL
        for (int n = 0; n < kQueries / 8; ++n) WEFT_UNROLL
        for (int e = half * 2; e < half * 2 + 2; ++e) {
          const int i = query + n * 8 + lane % 4 * 2 + e % 2, j = key + p * 16 + half * 8 + lane / 4;
          p_t[p][n][e] = there && problem.sees(i, j) ? p_t[p][n][e] : 0.0f;
        }
      }
    }
    float ds_t[kSquares][kQueries / 8][4] = {};
    Shape::template multiply<T>(ds_t, own_v, slopes_at, left_lane, right_lane);
    WEFT_UNROLL
    for (int n = 0; n < kQueries / 8; ++n) {
      const float2 delta_pair = *reinterpret_cast<const float2*>(delta + n * 8 + lane % 4 * 2);
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) {
        bool kept[4] = {true, true, true, true};
        if constexpr (with_dropout)
          attention_kept<true>(kept, problem.kept(b, h), problem.dropout, key + p * 16, query + n * 8, lane);
        WEFT_UNROLL
        for (int e = 0; e < 4; ++e) {
          float dp = ds_t[p][n][e];
          if constexpr (with_dropout) dp = kept[e] ? dp * problem.keep_scale : 0.0f;
          ds_t[p][n][e] = p_t[p][n][e] * (dp - (e % 2 == 0 ? delta_pair.x : delta_pair.y));
          if constexpr (with_dropout) p_t[p][n][e] = kept[e] ? p_t[p][n][e] : 0.0f;
        }
      }
    }
    Shape::template add_product<T>(dv_sums, p_t, slopes_at, left_lane);
    Shape::template add_product<T>(dk_sums, ds_t, queries_at, left_lane);
  }

  float dk_factor[kSquares][2], dv_factor[kSquares][2];
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) {
    dk_factor[p][0] = dk_factor[p][1] = problem.scale;
    dv_factor[p][0] = dv_factor[p][1] = problem.keep_scale;
  }
  ptx::cp_async_wait_all();
  __syncthreads();
  Tile::store(dk, dk.head(b, position.h), shared + k_tile, row, position.first, problem.M, problem.D, lane, dk_sums,
              dk_factor);
  Tile::store(dv, dv.head(b, position.h), shared + v_tile, row, position.first, problem.M, problem.D, lane, dv_sums,
              dv_factor);
}

/// problem.delta must hold rowsum(dy y).
template <class T>
void attention_backward_mma(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                            const View& q, const View& k, const View& v, const AttentionShape& shape,
                            const AttentionProblem<float>& problem) {
  const AttentionTensor<const T> from_q(q), from_k(k), from_v(v), from_dy(dy);
  const auto run = [&]<class ForQueries, class ForKeys, bool with_dropout>() {
    if (dq)
      launch(queue, "attention_backward (dq)", attention_grid(shape.B * shape.H, shape.N, ForQueries::kOwned),
             dim3(ForQueries::kThreads), sizeof(T) * ForQueries::kTileElements,
             &attention_dq_mma_kernel<ForQueries, with_dropout, T>, AttentionTensor<T>(dq), from_q, from_k, from_v,
             from_dy, problem);
    if (dk)
      launch(queue, "attention_backward (dk, dv)", attention_grid(shape.B * shape.G, shape.M, ForKeys::kOwned),
             dim3(ForKeys::kThreads), sizeof(T) * ForKeys::kTileElements + sizeof(float) * ForKeys::kStatistics,
             &attention_dkv_mma_kernel<ForKeys, with_dropout, T>, AttentionTensor<T>(dk), AttentionTensor<T>(dv),
             from_q, from_k, from_v, from_dy, problem);
  };
  // With dropout, half the weights at a time: the masks need registers.
  if (shape.D <= 64) {
    if (problem.dropout > 0)
      run.template operator()<BackwardMma<64, 4, 2, 32>, BackwardMma<64, 4, 1, 64>, true>();
    else
      run.template operator()<BackwardMma<64, 4, 2, 64>, BackwardMma<64, 4, 2, 32>, false>();
  } else {
    using Shape = BackwardMma<128, 4, 1, 32>;
    if (problem.dropout > 0)
      run.template operator()<Shape, Shape, true>();
    else
      run.template operator()<Shape, Shape, false>();
  }
}

}  // namespace weft::kernels::cuda
