// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_backward_joint_wgmma.cuh"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/runtime/allocator.h"

// Attention's backward on TMA and wgmma. As in attention_backward_mma.cuh, one kernel owns queries and writes dq,
// another owns keys and writes dk and dv: no atomics, bit-identical results in every run, 7 GEMMs instead of 5
// (5 for short sequences: attention_backward_joint_wgmma.cuh).
//
// Grid: persistent; a block walks over tiles of 128 owned rows of one head. Each consumer warpgroup owns 64 rows and
// iterates over the other side's rows, kStream at a time. Owned keys iterate over the queries of all heads that share
// them, so that dk and dv are summed in registers:
//
//   memory --TMA--> owned pair (2 buffers) | ring of streamed pairs --wgmma--> registers -> owned pair --TMA--> memory
//
//   owned queries: s = q k^T,   dp = dy v^T,   ds = p (dp - delta),  dq += ds k
//   owned keys:    s^T = k q^T, dp^T = v dy^T, dv += p^T dy,         dk += ds^T q
//
// p and ds are computed from the accumulators in registers and, rounded to T, are the left operands of the next GEMMs.
// With owned queries, s and dp of the next keys are issued before ds k. The next ds is computed while that GEMM is in
// flight. With owned keys, at 64 channels, the exponentials overlap dp^T and the computation of ds^T overlaps p^T
// dy. The two consumers fill each other's gaps.
//
// With dropout, the mask of the next weights is drawn (Philox, one bit each) while their scores are in flight.
//
// A first kernel computes statistics: for each 64 queries lse (base 2), then delta = rowsum(dy y), 512 bytes. With
// owned keys the producer loads them together with q and dy. Queries beyond the last have lse = infinity, so their
// weights are 0.
//
// Shared memory: two owned pairs of 32 KiB (64 channels) or 64 KiB, and stages of 16 KiB (64 rows of 64 channels)
// or 32. Registers per consumer thread at 128 channels, keys owned: dk and dv 128, s and dp 64, rounded p and ds 32.
// Work: 6 N M D flops per head for dq, 8 N M D for dk and dv, N M exponentials each. Bytes at least 2 (4 N + 2 M) D and
// 2 (2 N + 4 M) D; streamed rows are loaded from L2 for every 128 owned rows. Limit: tensor cores; at 64 streamed rows,
// reading the left operands from shared memory (128 bytes per clock) takes as long as the GEMMs. Expected on an H100:
// 50 to 60% of the peak for the 7 GEMMs. With dropout the draws, about 20 instructions per weight and kernel, take half
// of the GEMMs' time at 128 channels, all of it at 64.

namespace weft::kernels::cuda {

/// Computes dq of this consumer's 64 queries of each tile.
template <class Shape, bool with_dropout, class T>
__device__ __forceinline__ void attention_dq_consume(const AttentionBackwardCall& call, unsigned char* shared,
                                                     typename Shape::Barriers& barriers, int consumer) {
  using Own = typename Shape::Own;
  using Keys = typename Shape::Streamed;
  constexpr int kKeys = Shape::kStream, kChannels = Shape::kChannels;
  const AttentionProblem<float>& problem = call.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  RingPosition<Shape::kOwnedBuffers> at_own;
  RingPosition<Shape::kStages> at;
  for (int index; (index = barriers.own.wait(at_own)) < call.tiles.count;) {
    const AttentionPosition position = call.tiles.position(index);
    const int keys = problem.keys_of(position.b);
    const StreamedSteps steps = OwnedQueries::steps<kKeys>(problem, position, keys);
    const int first = position.first + consumer * 64, query = first + warp * 16;
    unsigned char* const own = Shape::own(shared, at_own.stage, 0) + consumer * Own::kBytes;
    float lse[2] = {}, delta[2] = {};
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int i = query + half * 8 + lane / 4;
      if (i >= problem.N) continue;
      const float* const statistics = call.statistics_of(position.b, position.h, i);
      lse[half] = statistics[0];
      delta[half] = statistics[kStatisticsRows];
    }

    float dq[kChannels / 2] = {};
    if (steps.begin < steps.end) {
      const uint64_t q = Own::descriptor(own);
      const uint64_t dy = Own::descriptor(Shape::own(shared, at_own.stage, 1) + consumer * Own::kBytes);
      float s[kKeys / 2], dp[kKeys / 2];
      uint32_t ds[kKeys / 16][4];
      KeptWeights<with_dropout, kKeys / 2> kept{};
      const auto wait_for = [&](int step) {
        barriers.streamed.wait(at);
        if ((step + 1) * kKeys > keys && keys < problem.M)
          Keys::clear_from(Shape::streamed(shared, at.stage, 0), keys - step * kKeys);
      };
      const auto draw = [&](int step) {
        if constexpr (with_dropout)
          kept.template draw<false>(problem.kept(position.b, position.h), problem.dropout, query, step * kKeys, lane);
      };
      const auto issue = [&] {
        issue_scores<T, Keys>(s, q, Keys::descriptor(Shape::streamed(shared, at.stage, 0)));
        issue_scores<T, Keys>(dp, dy, Keys::descriptor(Shape::streamed(shared, at.stage, 1)));
        ptx::wgmma_commit();
      };
      const auto slopes = [&](int step) {
        const auto of = [&]<bool kMasked>() {
          WEFT_UNROLL
          for (int j = 0; j < kKeys / 2; ++j) {
            const int half = j / 2 % 2;
            const float weight = ptx::exp2_approx(s[j] * scale - lse[half]);
            const float slope = with_dropout ? kept(j, dp[j] * problem.keep_scale) : dp[j];
            s[j] = !kMasked || s[j] > -INFINITY ? weight * (slope - delta[half]) : 0.0f;
          }
        };
        if (mask_scores(s, problem, position.b, step * kKeys, keys, query, lane))
          of.template operator()<true>();
        else
          of.template operator()<false>();
      };
      wait_for(steps.begin);
      ptx::wgmma_fence();
      issue();
      draw(steps.begin);
      ptx::wgmma_wait<0>();
      slopes(steps.begin);
      pack_left<T>(ds, s);
      for (int step = steps.begin + 1; step < steps.end; ++step) {
        const uint64_t k = Keys::descriptor(Shape::streamed(shared, at.stage, 0));
        const int previous = at.stage;
        at.advance();
        wait_for(step);
        ptx::wgmma_fence();
        issue();
        issue_weighted<T, Keys>(dq, ds, k);
        ptx::wgmma_commit();
        draw(step);
        ptx::wgmma_wait<1>();
        slopes(step);
        ptx::wgmma_wait<0>();
        barriers.streamed.release(previous, lane);
        pack_left<T>(ds, s);
      }
      ptx::wgmma_fence();
      issue_weighted<T, Keys>(dq, ds, Keys::descriptor(Shape::streamed(shared, at.stage, 0)));
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      barriers.streamed.release(at.stage, lane);
      at.advance();
    }
    ptx::named_barrier_sync(kWarpgroupBarrier + consumer, 128);  // all threads have read q
    store_rows<T, kChannels>(call.to[0], own, warp, lane, first, problem.N, position.b, position.h, dq,
                             {problem.scale, problem.scale});
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    barriers.own.release(at_own.stage, lane);
    at_own.advance();
  }
}

/// Computes dk and dv of this consumer's 64 keys of each tile.
template <class Shape, bool with_dropout, class T>
__device__ __forceinline__ void attention_dkv_consume(const AttentionBackwardCall& call, unsigned char* shared,
                                                      typename Shape::Barriers& barriers, int consumer) {
  using Own = typename Shape::Own;
  using Queries = typename Shape::Streamed;
  constexpr int kQueries = Shape::kStream, kChannels = Shape::kChannels;
  static_assert(kQueries == kStatisticsRows);
  const AttentionProblem<float>& problem = call.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  RingPosition<Shape::kOwnedBuffers> at_own;
  RingPosition<Shape::kStages> at;
  for (int index; (index = barriers.own.wait(at_own)) < call.tiles.count;) {
    const AttentionPosition position = call.tiles.position(index);
    const int keys = problem.keys_of(position.b);
    const StreamedSteps steps = OwnedKeys::steps<kQueries>(problem, position, keys);
    const int first = position.first + consumer * 64, key = first + warp * 16;
    unsigned char* const own_k = Shape::own(shared, at_own.stage, 0) + consumer * Own::kBytes;
    unsigned char* const own_v = Shape::own(shared, at_own.stage, 1) + consumer * Own::kBytes;
    bool there[2];  // whether the keys of this lane's rows are visible
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) there[half] = problem.has_key(position.b, key + half * 8 + lane / 4, keys);
    // Every query of a step sees all keys of the warp if the first one lies within `wholes` queries from first_whole
    // on.
    const int first_whole = problem.causal ? key + 15 : 0;
    const unsigned wholes = !__all_sync(0xffffffffu, there[0] && there[1]) ? 0
                            : problem.causal ? max(problem.window - (kQueries - 1) - 15, 0)
                                             : ~0u;

    float dk[kChannels / 2] = {}, dv[kChannels / 2] = {};
    for (int step = steps.begin; step < steps.end; ++step)
      for (int member = 0; member < problem.group; ++member, at.advance()) {
        barriers.streamed.wait(at);
        const uint64_t q = Queries::descriptor(Shape::streamed(shared, at.stage, 0));
        const uint64_t dy = Queries::descriptor(Shape::streamed(shared, at.stage, 1));
        const float* const lse = Shape::statistics(shared, at.stage) + lane % 4 * 2;
        const float* const delta = lse + kStatisticsRows;
        float p[kQueries / 2], ds[kQueries / 2];
        uint32_t left_p[kQueries / 16][4], left_ds[kQueries / 16][4];
        const auto issue_dp = [&] {
          issue_scores<T, Queries>(ds, Own::descriptor(own_v), dy);
          ptx::wgmma_commit();
        };
        ptx::wgmma_fence();
        issue_scores<T, Queries>(p, Own::descriptor(own_k), q);
        ptx::wgmma_commit();
        const int query = step * kQueries;
        KeptWeights<with_dropout, kQueries / 2> kept{};
        const auto draw = [&] {
          if constexpr (with_dropout)
            kept.template draw<true>(problem.kept(position.b, position.h * problem.group + member), problem.dropout,
                                     key, query, lane);
        };
        // At 128 channels dp, p and rounded p do not fit the registers together.
        if constexpr (kChannels == 64) {
          issue_dp();
          draw();
          ptx::wgmma_wait<1>();
        } else {
          draw();
          ptx::wgmma_wait<0>();
        }
        // Most steps are fully visible; they have separate code without masks.
        const bool whole = static_cast<unsigned>(query - first_whole) < wholes;
        const auto sees = [&](int j) {
          const int i = query + j / 4 * 8 + lane % 4 * 2 + j % 2, row = key + j / 2 % 2 * 8 + lane / 4;
          return there[j / 2 % 2] && problem.sees(i, row);
        };
        const auto weights = [&]<bool kMasked>() {
          WEFT_UNROLL
          for (int j = 0; j < kQueries / 2; j += 4) {
            const float2 base = *reinterpret_cast<const float2*>(lse + j * 2);
            WEFT_UNROLL
            for (int e = 0; e < 4; ++e) {
              const float weight = ptx::exp2_approx(p[j + e] * scale - (e % 2 == 0 ? base.x : base.y));
              p[j + e] = !kMasked || sees(j + e) ? weight : 0.0f;
            }
          }
        };
        if (whole)
          weights.template operator()<false>();
        else
          weights.template operator()<true>();
        pack_left<T>(left_p, p, kept);
        ptx::wgmma_fence();
        issue_weighted<T, Queries>(dv, left_p, dy);
        ptx::wgmma_commit();
        if constexpr (kChannels == 64) {
          ptx::wgmma_wait<1>();
        } else {
          ptx::wgmma_wait<0>();
          ptx::wgmma_fence();
          issue_dp();
          ptx::wgmma_wait<0>();
        }
        const auto slopes = [&]<bool kMasked>() {
          WEFT_UNROLL
          for (int j = 0; j < kQueries / 2; j += 4) {
            const float2 base = *reinterpret_cast<const float2*>(delta + j * 2);
            WEFT_UNROLL
            for (int e = 0; e < 4; ++e) {
              const float dp = with_dropout ? kept(j + e, ds[j + e] * problem.keep_scale) : ds[j + e];
              const float slope = p[j + e] * (dp - (e % 2 == 0 ? base.x : base.y));
              ds[j + e] = !kMasked || p[j + e] > 0.0f ? slope : 0.0f;  // v of a hidden key may be anything
            }
          }
        };
        if (whole)
          slopes.template operator()<false>();
        else
          slopes.template operator()<true>();
        pack_left<T>(left_ds, ds);
        ptx::wgmma_fence();
        issue_weighted<T, Queries>(dk, left_ds, q);
        ptx::wgmma_commit();
        ptx::fence_proxy_async();  // orders the threads' reads of lse and delta before TMA's next write
        ptx::wgmma_wait<0>();
        barriers.streamed.release(at.stage, lane);
      }
    ptx::named_barrier_sync(kWarpgroupBarrier + consumer, 128);  // all threads have read k and v
    store_rows<T, kChannels>(call.to[0], own_k, warp, lane, first, problem.M, position.b, position.h, dk,
                             {problem.scale, problem.scale});
    store_rows<T, kChannels>(call.to[1], own_v, warp, lane, first, problem.M, position.b, position.h, dv,
                             {problem.keep_scale, problem.keep_scale});
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    barriers.own.release(at_own.stage, lane);
    at_own.advance();
  }
}

template <class Shape, class Owned, bool with_dropout, class T>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    attention_backward_wgmma_kernel(const __grid_constant__ AttentionBackwardCall call) {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  auto& barriers = *reinterpret_cast<typename Shape::Barriers*>(shared + Shape::kFirstBarrier);
  if (threadIdx.x == 0) {
    barriers.own.init();
    barriers.streamed.init();
    ptx::mbarrier_init_fence();
    for (int i = 0; i < 2; ++i) {
      ptx::prefetch_tensor_map(call.own[i]);
      ptx::prefetch_tensor_map(call.streamed[i]);
    }
  }
  __syncthreads();
  ptx::wait_for_previous_kernel();
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);  // uniform: see gemm_wgmma.cuh
  const int warpgroup = warp / 4;
  if (warpgroup == 0) {
    ptx::release_registers<kAttentionProducerRegisters>();
    if (warp == 0 && ptx::elect_one()) {
      attention_backward_produce<Shape, Owned>(call, shared, barriers);
      ptx::allow_next_kernel();
    }
    __syncwarp();
  } else {
    ptx::acquire_registers<kAttentionConsumerRegisters>();
    if constexpr (Owned::kStatistics)
      attention_dkv_consume<Shape, with_dropout, T>(call, shared, barriers, warpgroup - 1);
    else
      attention_dq_consume<Shape, with_dropout, T>(call, shared, barriers, warpgroup - 1);
  }
}

/// Computes lse and delta of 64 queries of a head per block. kLanes lanes share a row, 16 bytes of dy and y at a time.
/// Reads 4 D bytes and writes 8 per query: memory-bound, expected 80% of the bandwidth.
template <int kLanes, class T>
__global__ void __launch_bounds__(128)
    attention_statistics_kernel(float* statistics, const AttentionTensor<const T> dy, const AttentionTensor<const T> y,
                                const AttentionProblem<float> problem) {
  constexpr int kRowsAtOnce = 128 / kLanes;
  const AttentionPosition position(problem.N, kStatisticsRows, problem.H);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, row = static_cast<int>(threadIdx.x) / kLanes;
  const T *const left = dy.head(position.b, position.h), *const right = y.head(position.b, position.h);
  const float* const lse = problem.lse + (static_cast<int64_t>(position.b) * problem.H + position.h) * problem.N;
  float* const to = statistics + static_cast<int64_t>(blockIdx.x) * (2 * kStatisticsRows);
  WEFT_UNROLL
  for (int first = 0; first < kStatisticsRows; first += kRowsAtOnce) {
    const int i = position.first + first + row;
    const bool there = i < problem.N;
    float sum = 0;
    if (there && lane * 8 < problem.D) {
      const auto a = Vec<T, 8>::load(left + i * dy.row_stride + lane * 8);
      const auto b = Vec<T, 8>::load(right + i * y.row_stride + lane * 8);
      WEFT_UNROLL
      for (int e = 0; e < 8; ++e) sum += from<float>(a[e]) * from<float>(b[e]);
    }
    WEFT_UNROLL
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (lane == 0) {
      to[first + row] = there ? lse[i] * 1.44269504f : INFINITY;
      to[kStatisticsRows + first + row] = there ? sum : 0.0f;
    }
  }
}

template <class T>
bool attention_backward_on_wgmma(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                                 const View& q, const View& k, const View& v, const View& y,
                                 const AttentionShape& shape, const AttentionProblem<float>& problem) {
  if (!has_wgmma(queue) || attention_tiles(shape.B * shape.H, std::max(shape.N, shape.M)) > kMostAttentionTiles)
    return false;
  for (const View* view : {&dq, &dk, &dv, &dy, &q, &k, &v, &y})
    if (!fits_attention_wgmma(*view)) return false;
  const bool plain = dq && dk && problem.dropout == 0 && !problem.causal;
  const bool jointly = attention_backward_is_joint(shape.N, shape.M, shape.D, plain);
  const int64_t blocks = (shape.N + kStatisticsRows - 1) / kStatisticsRows * shape.B * shape.H;
  const Workspace statistics(queue, static_cast<size_t>(blocks) * 2 * kStatisticsRows * sizeof(float),
                             "attention_backward");
  const auto measure = [&](auto kernel) {
    launch(queue, "attention_backward_sm90 (delta)", attention_grid(shape.B * shape.H, shape.N, kStatisticsRows),
           dim3(128), 0, kernel, statistics.as<float>(), AttentionTensor<const T>(dy), AttentionTensor<const T>(y),
           problem);
  };
  shape.D <= 64 ? measure(&attention_statistics_kernel<8, T>) : measure(&attention_statistics_kernel<16, T>);
  if (jointly)
    return attention_backward_jointly<T>(queue, dq, dk, dv, dy, q, k, v, shape, problem, statistics.as<float>()), true;
  const auto run = [&]<class Shape, class Owned>(const char* name, const View* const(&own)[2],
                                                 const View* const(&streamed)[2], const View* const(&to)[2]) {
    AttentionBackwardCall call{};
    for (int i = 0; i < 2; ++i) {
      call.own[i] = attention_map(*own[i], 64);
      call.streamed[i] = attention_map(*streamed[i], Shape::kStream);
      if (to[i] != nullptr) call.to[i] = attention_map(*to[i], 16);
    }
    call.problem = problem;
    call.statistics = statistics.as<float>();
    const Workspace drawn(queue, sizeof(int), "attention_backward");
    call.tiles = attention_schedule(queue, shape, problem, Owned::kStatistics, drawn);
    launch_attention_wgmma(queue, name, call.tiles, Shape::kSharedBytes,
                           problem.dropout > 0 ? &attention_backward_wgmma_kernel<Shape, Owned, true, T>
                                               : &attention_backward_wgmma_kernel<Shape, Owned, false, T>,
                           call);
  };
  const auto both = [&]<class ForQueries, class ForKeys>() {
    if (dq)
      run.template operator()<ForQueries, OwnedQueries>("attention_backward_sm90 (dq)", {&q, &dy}, {&k, &v},
                                                        {&dq, nullptr});
    if (dk)
      run.template operator()<ForKeys, OwnedKeys>("attention_backward_sm90 (dk, dv)", {&k, &v}, {&q, &dy}, {&dk, &dv});
  };
  if (shape.D <= 64)
    both.template operator()<BackwardWgmma<64, 64, 6>, BackwardWgmma<64, 64, 6>>();
  else
    both.template operator()<BackwardWgmma<128, 64, 3>, BackwardWgmma<128, 64, 3>>();
  return true;
}

}  // namespace weft::kernels::cuda
