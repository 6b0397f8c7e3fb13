// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_mma.cuh"
#include "kernels/cuda/capability.cuh"

// Attention's forward on the tensor cores, with the online softmax of FlashAttention-2 (Dao 2023).
//
// Grid: a block owns 128 queries of one head and iterates over the keys, kKeys at a time; a warp owns 32 queries, or 16
// (8 warps, 128 channels with dropout). Fragments of q stay in registers if 32 registers hold them:
//
//   memory --cp.async--> stage 0 | stage 1 (k and v: kKeys rows each) --ldmatrix--> registers.
//   s = q k^T (mma.sync) -> masks -> maximum and exponentials, per row within 4 lanes -> sums = sums again + p v.
//
// One stage is filled while the other is used: one barrier per step. A row's maximum, its sum of weights and its
// accumulators stay in registers; weights are rounded to T for the second GEMM, and the sum adds unrounded weights.
// Whether a key is visible (length, key mask, end of the array) is one bit per key, from a ballot; only steps with a
// hidden key or on an edge of the causal mask or window test single weights. Rows beyond the last query are zeros.
// Steps before the first query's window are skipped.
//
// Shared memory: q 16 KiB + 2 stages of 16 KiB = 48 KiB at 64 channels (with dropout 32 KiB), 64 KiB at 128 (96 KiB).
// Registers allow 2 blocks of 4 warps per SM, or 1 of 8. At 128 channels each fragment of k and v serves two 16-query
// tiles, but q is reloaded in each step: this needs three quarters of the shared-memory bandwidth while tensor cores
// are busy; 16 queries with fragments in registers would need 1.14 times the bandwidth. Work: 4 N M D flops and N M
// exponentials per head. Bytes at least 2 (2 N + 2 M) D; k and v are loaded from L2 by each of N / 128 blocks: 128
// flops per byte. Limit: tensor cores, then the exponentials (at 64 channels 256 flops each, 16 per clock and SM on
// sm_80: a quarter of the GEMMs' time). Expected on an A100: 60 to 70% of the peak for long sequences; on sm_90
// mma.sync reaches about 60% of wgmma's peak.

namespace weft::kernels::cuda {

template <int kChannels, int kWarpCount, int kSquareCount, int kKeyCount>
struct ForwardMma {
  using Tile = AttentionTile<kChannels>;
  static constexpr int kWarps = kWarpCount, kThreads = kWarps * 32, kSquares = kSquareCount, kKeys = kKeyCount;
  static constexpr int kWarpRows = 16 * kSquares, kQueries = kWarps * kWarpRows;
  static constexpr int kFirstStage = kQueries * kChannels, kStageElements = 2 * kKeys * kChannels;
  static constexpr int kSharedElements = kFirstStage + 2 * kStageElements;
  static constexpr bool kKeepsQ = kSquares * kChannels <= 128;  ///< whether 32 registers hold q's fragments
  /// Not used on sm_90a, where ptxas would spill: there 16 queries per warp suffice, since nearly all attention runs on
  /// wgmma.
  static constexpr bool kBeforeHopper = !kKeepsQ;
};

template <class Shape, bool with_dropout, class T>
__global__ void __launch_bounds__(Shape::kThreads)
    attention_forward_mma_kernel(const AttentionTensor<T> y, const AttentionTensor<const T> q,
                                 const AttentionTensor<const T> k, const AttentionTensor<const T> v,
                                 const AttentionProblem<float> problem) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (Shape::kBeforeHopper) return;  // never launched
#endif
  using Tile = typename Shape::Tile;
  constexpr int kSquares = Shape::kSquares, kKeys = Shape::kKeys, kChannels = Tile::kChannels;
  constexpr unsigned kAllLanes = 0xffffffffu;
  T* const shared = dynamic_shared<T>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, row = thread / 32 * Shape::kWarpRows;
  const int left_lane = Tile::left_lane(lane), right_lane = Tile::right_lane(lane);
  const AttentionPosition position(problem.N, Shape::kQueries, problem.H, /*last_first=*/problem.causal);
  const int b = position.b, h = position.h, query = position.first + row;
  const int keys = problem.keys_of(b), end = problem.key_end(keys, position.first + Shape::kQueries);
  const int begin = problem.key_begin(position.first) / kKeys;
  const T *const k_head = k.head(b, h / problem.group), *const v_head = v.head(b, h / problem.group);

  const auto fill = [&](int step) {
    if (step * kKeys < end) {
      T* const stage = shared + Shape::kFirstStage + step % 2 * Shape::kStageElements;
      Tile::template load<kKeys, Shape::kThreads>(stage, k, k_head, step * kKeys, keys, problem.D);
      Tile::template load<kKeys, Shape::kThreads>(stage + kKeys * kChannels, v, v_head, step * kKeys, keys, problem.D);
    }
    ptx::cp_async_commit();
  };
  Tile::template load<Shape::kQueries, Shape::kThreads>(shared, q, q.head(b, h), position.first, problem.N, problem.D);
  fill(begin);

  uint32_t of_q[Shape::kKeepsQ ? kChannels / 16 : 1][kSquares][4];
  const auto read_q = [&](uint32_t(&to)[kSquares][4], int c) {
    const ptx::SharedAddress own = ptx::to_shared(shared + row * kChannels);
    unrolled<kSquares>([&](auto p) { Tile::template read<p.value * 16>(to[p.value], own, c * 16, left_lane); });
  };
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  float sums[kSquares][Tile::kRuns][4] = {}, maximum[kSquares][2], total[kSquares][2] = {};
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) maximum[p][0] = maximum[p][1] = -INFINITY;

  for (int step = begin; step * kKeys < end; ++step) {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    fill(step + 1);
    const int key = step * kKeys;
    const ptx::SharedAddress keys_at = ptx::to_shared(shared + Shape::kFirstStage + step % 2 * Shape::kStageElements);
    const ptx::SharedAddress values_at = keys_at + kKeys * Tile::kRowBytes;

    float s[kSquares][kKeys / 8][4] = {};
    const auto times_keys = [&](const uint32_t(&q)[kSquares][4], int c) {
      unrolled<kKeys / 16>([&](auto n) {
        uint32_t w[4];
        Tile::template read<n.value * 16>(w, keys_at, c * 16, right_lane);
        WEFT_UNROLL
        for (int p = 0; p < kSquares; ++p) {
          ptx::mma_m16n8k16<T>(s[p][2 * n.value], q[p], {w[0], w[1]});
          ptx::mma_m16n8k16<T>(s[p][2 * n.value + 1], q[p], {w[2], w[3]});
        }
      });
    };
    if constexpr (Shape::kKeepsQ) {
      if (step == begin) {
        WEFT_UNROLL
        for (int c = 0; c < kChannels / 16; ++c) read_q(of_q[c], c);
      }
      WEFT_UNROLL
      for (int c = 0; c < kChannels / 16; ++c) times_keys(of_q[c], c);
    } else {
      // Not unrolled: q's addresses are the same in every step, and the compiler would keep all of them in registers.
      WEFT_UNROLL_BY(1)
      for (int c = 0; c < kChannels / 16; ++c) {
        read_q(of_q[0], c);
        times_keys(of_q[0], c);
      }
    }

    unsigned there[kKeys / 32];
    bool whole = problem.all_see(query, Shape::kWarpRows, key, kKeys);
    WEFT_UNROLL
    for (int w = 0; w < kKeys / 32; ++w) {
      there[w] = __ballot_sync(kAllLanes, problem.has_key(b, key + w * 32 + lane, keys));
      whole = whole && there[w] == kAllLanes;
    }
    if (!whole) {
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) WEFT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int column = n * 8 + lane % 4 * 2 + e % 2, i = query + p * 16 + e / 2 * 8 + lane / 4;
        const bool sees = (there[n / 4] >> (column % 32) & 1) != 0 && problem.sees(i, key + column);
        s[p][n][e] = sees ? s[p][n][e] : -INFINITY;
      }
    }

    WEFT_UNROLL
    for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      float most = maximum[p][half];
      WEFT_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) most = fmaxf(most, fmaxf(s[p][n][half * 2], s[p][n][half * 2 + 1]));
      WEFT_UNROLL
      for (int distance = 1; distance < 4; distance *= 2)
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
      const float base = most > -INFINITY ? most * scale : 0.0f;
      const float again = ptx::exp2_approx(maximum[p][half] * scale - base);
      maximum[p][half] = most;
      float sum = 0;
      WEFT_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) WEFT_UNROLL
      for (int e = half * 2; e < half * 2 + 2; ++e) {
        s[p][n][e] = ptx::exp2_approx(s[p][n][e] * scale - base);
        sum += s[p][n][e];
      }
      total[p][half] = total[p][half] * again + sum;
      WEFT_UNROLL
      for (int n = 0; n < Tile::kRuns; ++n) {
        sums[p][n][half * 2] *= again;
        sums[p][n][half * 2 + 1] *= again;
      }
    }
    if constexpr (with_dropout) {
      const AttentionDropout dropout = problem.kept(b, h);
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) {
        bool kept[4];
        attention_kept<false>(kept, dropout, problem.dropout, query + p * 16, key + n * 8, lane);
        WEFT_UNROLL
        for (int e = 0; e < 4; ++e) s[p][n][e] = kept[e] ? s[p][n][e] : 0.0f;
      }
    }

    unrolled<kKeys / 16>([&](auto c) {
      uint32_t a[kSquares][4];
      WEFT_UNROLL
      for (int p = 0; p < kSquares; ++p) attention_left<T>(a[p], s[p][2 * c.value], s[p][2 * c.value + 1]);
      WEFT_UNROLL
      for (int n = 0; n < Tile::kRuns; n += 2) {
        uint32_t w[4];
        Tile::template read_over_rows<c.value * 16>(w, values_at, n * 8, left_lane);
        WEFT_UNROLL
        for (int p = 0; p < kSquares; ++p) {
          ptx::mma_m16n8k16<T>(sums[p][n], a[p], {w[0], w[1]});
          ptx::mma_m16n8k16<T>(sums[p][n + 1], a[p], {w[2], w[3]});
        }
      }
    });
  }

  float factor[kSquares][2];
  WEFT_UNROLL
  for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    float sum = total[p][half];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factor[p][half] = sum == 0.0f ? 0.0f : problem.keep_scale / sum;
    const int i = query + p * 16 + half * 8 + lane / 4;
    if (lane % 4 == 0 && i < problem.N)
      problem.lse[(static_cast<int64_t>(b) * problem.H + h) * problem.N + i] =
          sum == 0.0f ? -INFINITY : maximum[p][half] * problem.scale + logf(sum);
  }
  ptx::cp_async_wait_all();  // if there is no key, q's copies are still in flight
  __syncthreads();
  Tile::store(y, y.head(b, h), shared, row, position.first, problem.N, problem.D, lane, sums, factor);
}

template <class T>
void attention_forward_mma(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                           const AttentionShape& shape, const AttentionProblem<float>& problem) {
  const auto run = [&]<class Shape, bool with_dropout>() {
    launch(queue, "attention_forward", attention_grid(shape.B * shape.H, shape.N, Shape::kQueries),
           dim3(Shape::kThreads), sizeof(T) * Shape::kSharedElements,
           &attention_forward_mma_kernel<Shape, with_dropout, T>, AttentionTensor<T>(y), AttentionTensor<const T>(q),
           AttentionTensor<const T>(k), AttentionTensor<const T>(v), problem);
  };
  // With dropout, half the keys per step: the masks need registers.
  if (shape.D <= 64) {
    if (problem.dropout > 0)
      run.template operator()<ForwardMma<64, 4, 2, 32>, true>();
    else
      run.template operator()<ForwardMma<64, 4, 2, 64>, false>();
  } else {
    if (problem.dropout > 0)
      run.template operator()<ForwardMma<128, 8, 1, 64>, true>();
    else if (compute_capability(queue) >= 90)
      run.template operator()<ForwardMma<128, 8, 1, 64>, false>();
    else
      run.template operator()<ForwardMma<128, 4, 2, 32>, false>();
  }
}

}  // namespace weft::kernels::cuda
