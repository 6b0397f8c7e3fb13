// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_backward_stage.cuh"
#include "kernels/cuda/attention/attention_plan.h"

// Attention's backward in one kernel, 5 GEMMs, if a head has at most 256 keys of at most 64 channels: k and v stay in
// shared memory while q and dy of the heads that share them pass, 64 queries a step. No atomics, no partial sums.
//
// Grid: persistent; a block walks over heads of keys. Each of the two consumer warpgroups owns one or two tiles of 64
// keys and sums their dk and dv in registers. Both store ds^T in shared memory. The consumers alternate in computing
// dq, while the other consumer begins the next step:
//
//   memory --TMA--> k, v (2 heads) | ring of q, dy, lse and delta --wgmma--> s^T = k q^T, dp^T = v dy^T, in registers
//   -> p^T, ds^T: left operands of dv += p^T dy, dk += ds^T q, in registers.  ds^T -> shared memory.
//   ds^T of all keys --wgmma--> dq = ds k -> shared memory --TMA--> memory.
//   dv, then dk -> the consumer's rows of v --TMA--> memory.  The next head begins meanwhile.
//
// Named barriers: the other consumer has stored a step's ds^T (kSlopesFull), or has read it all (kSlopesFree + its
// number: a warp may come to the other's while this one is open).
//
// Shared memory with two tiles: 2 heads of 64 KiB, ds^T 32, dq 16, three stages of 16.5. Registers per consumer thread:
// dk and dv 128, s and dp 64, rounded p 16. Work: 10 N M D flops and N M exponentials; keys round up to 64, queries as
// well, and dq's depth to 16. Bytes: each tensor once. SM cycles for 64 queries and 256 keys: GEMMs 2560, shared memory
// 2432, exponentials 1024.

namespace weft::kernels::cuda {

constexpr int kSlopesFull = 4, kSlopesFree = 5 /* and 6 */;

template <int kTileCount>
struct JointBackward {
  static constexpr int kTiles = kTileCount, kChannels = 64, kHeads = 2, kStages = kTiles == 1 ? 6 : 3;
  using Tile = OwnedTile<kChannels>;  // 64 keys or queries
  using Keys = WgmmaTileOf<kAttentionConsumers * kTiles * 64, kChannels>;
  static constexpr int kStatisticsBytes = 2 * kStatisticsRows * static_cast<int>(sizeof(float));

  struct Barriers {
    AttentionRing<kHeads> keys;
    AttentionRing<kStages> queries;
  };
  static constexpr int kFirstSlopes = kHeads * 2 * Keys::kBytes, kFirstDq = kFirstSlopes + Keys::kBytes;
  static constexpr int kFirstStage = kFirstDq + kAttentionConsumers * Tile::kBytes;
  static constexpr int kFirstStatistics = kFirstStage + kStages * 2 * Tile::kBytes;
  static constexpr int kFirstBarrier = kFirstStatistics + kStages * kStatisticsBytes;
  static constexpr int kSharedBytes = kFirstBarrier + static_cast<int>(sizeof(Barriers));

  static __device__ __forceinline__ unsigned char* keys(unsigned char* shared, int head, int tensor) {
    return shared + (2 * head + tensor) * Keys::kBytes;
  }
  static __device__ __forceinline__ unsigned char* queries(unsigned char* shared, int stage, int tensor) {
    return shared + kFirstStage + (2 * stage + tensor) * Tile::kBytes;
  }
  static __device__ __forceinline__ float* statistics(unsigned char* shared, int stage) {
    return reinterpret_cast<float*>(shared + kFirstStatistics + stage * kStatisticsBytes);
  }
};

/// own: boxes of all keys of a head; streamed: of 64 queries; tiles.count: heads of keys.
struct JointBackwardCall : AttentionBackwardCall {
  TensorMap dq;  ///< boxes of 16 rows
};

template <class Shape>
__device__ __forceinline__ void attention_joint_produce(const JointBackwardCall& call, unsigned char* shared,
                                                        typename Shape::Barriers& barriers) {
  using Keys = typename Shape::Keys;
  using Tile = typename Shape::Tile;
  RingPosition<Shape::kHeads> at_head;
  RingPosition<Shape::kStages> at;
  for (int head = static_cast<int>(blockIdx.x); head < call.tiles.count; head += static_cast<int>(gridDim.x)) {
    const int b = head / call.problem.G, g = head % call.problem.G;
    ptx::Barrier* const full = barriers.keys.begin(at_head, 2 * Keys::kBytes);
    for (int tensor = 0; tensor < 2; ++tensor)
      Keys::load(Shape::keys(shared, at_head.stage, tensor), call.own[tensor], full, 0, b, g);
    at_head.advance();
    WEFT_UNROLL_BY(1)
    for (int first = 0; first < call.problem.N; first += Tile::kRows) {
      WEFT_UNROLL_BY(1)
      for (int h = g * call.problem.group; h < (g + 1) * call.problem.group; ++h, at.advance()) {
        ptx::Barrier* const landed = barriers.queries.begin(at, 2 * Tile::kBytes + Shape::kStatisticsBytes);
        for (int tensor = 0; tensor < 2; ++tensor)
          Tile::load(Shape::queries(shared, at.stage, tensor), call.streamed[tensor], landed, first, b, h);
        ptx::bulk_load(Shape::statistics(shared, at.stage), call.statistics_of(b, h, first), Shape::kStatisticsBytes,
                       landed);
      }
    }
  }
}

template <class Shape, class T>
__device__ __forceinline__ void attention_joint_consume(const JointBackwardCall& call, unsigned char* shared,
                                                        typename Shape::Barriers& barriers, int consumer) {
  using Keys = typename Shape::Keys;
  using Tile = typename Shape::Tile;
  constexpr int kTiles = Shape::kTiles, kChannels = Shape::kChannels, kThreads = 128 * kAttentionConsumers;
  const AttentionProblem<float>& problem = call.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  const int own_tiles = consumer * kTiles;
  unsigned char* const slopes = shared + Shape::kFirstSlopes;
  unsigned char* const to_dq = shared + Shape::kFirstDq + consumer * Tile::kBytes;
  const auto stored = [] {  // this warp's stores have been read
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    __syncwarp();
  };
  RingPosition<Shape::kHeads> at_head;
  RingPosition<Shape::kStages> at;
  bool makes_dq = consumer == 0, is_first = true;
  for (int head = static_cast<int>(blockIdx.x); head < call.tiles.count; head += static_cast<int>(gridDim.x)) {
    const int b = head / problem.G, g = head % problem.G, keys = problem.keys_of(b);
    const int depth = max((keys + 15) / 16, 1);  // steps of dq's product; without a key ds^T is 0
    unsigned char* const k = Shape::keys(shared, at_head.stage, 0);
    unsigned char* const v = Shape::keys(shared, at_head.stage, 1);
    unsigned hidden = 0;  // bit 2 tile + half: this lane's key; bit 8 + tile: some key of the warp
    WEFT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int key = (own_tiles + tile) * Tile::kRows + warp * 16 + half * 8 + lane / 4;
        hidden |= static_cast<unsigned>(!problem.has_key(b, key, keys)) << (2 * tile + half);
      }
      hidden |= static_cast<unsigned>(__any_sync(0xffffffffu, (hidden >> (2 * tile) & 3) != 0)) << (8 + tile);
    }
    barriers.keys.wait(at_head);
    if (keys < problem.M) Keys::clear_from(k, keys);

    float dk[kTiles][kChannels / 2] = {}, dv[kTiles][kChannels / 2] = {};
    bool is_begun = false;  // whether the head before has been released
    for (int first = 0; first < problem.N; first += Tile::kRows)
      for (int member = 0; member < problem.group; ++member, at.advance()) {
        barriers.queries.wait(at);
        const uint64_t q = Tile::descriptor(Shape::queries(shared, at.stage, 0));
        const uint64_t dy = Tile::descriptor(Shape::queries(shared, at.stage, 1));
        const float* const lse = Shape::statistics(shared, at.stage) + lane % 4 * 2;
        const float* const delta = lse + kStatisticsRows;
        WEFT_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          const int row = (own_tiles + tile) * Tile::kBytes;
          const bool is_there = (own_tiles + tile) * Tile::kRows < 16 * depth;
          uint32_t left_p[Tile::kRows / 16][4], left_ds[Tile::kRows / 16][4];
          const auto hide = [&](auto& left) {
            if ((hidden >> (8 + tile) & 1) == 0) return;
            WEFT_UNROLL
            for (int i = 0; i < Tile::kRows / 16; ++i) WEFT_UNROLL
            for (int r = 0; r < 4; ++r) left[i][r] &= (hidden >> (2 * tile + r % 2) & 1) - 1;
          };
          if (is_there) {
            float p[Tile::kRows / 2], ds[Tile::kRows / 2];
            ptx::wgmma_fence();
            issue_scores<T, Tile>(p, Tile::descriptor(k + row), q);
            ptx::wgmma_commit();
            issue_scores<T, Tile>(ds, Tile::descriptor(v + row), dy);
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            WEFT_UNROLL
            for (int j = 0; j < Tile::kRows / 2; j += 4) {
              const float2 base = *reinterpret_cast<const float2*>(lse + j * 2);
              WEFT_UNROLL
              for (int e = 0; e < 4; ++e)
                p[j + e] = ptx::exp2_approx(p[j + e] * scale - (e % 2 == 0 ? base.x : base.y));
            }
            pack_left<T>(left_p, p);
            hide(left_p);
            ptx::wgmma_fence();
            issue_weighted<T, Tile>(dv[tile], left_p, dy);
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            WEFT_UNROLL
            for (int j = 0; j < Tile::kRows / 2; j += 4) {
              const float2 base = *reinterpret_cast<const float2*>(delta + j * 2);
              WEFT_UNROLL
              for (int e = 0; e < 4; ++e) ds[j + e] = p[j + e] * (ds[j + e] - (e % 2 == 0 ? base.x : base.y));
            }
            if constexpr (kTiles > 1) ptx::wgmma_wait<0>();  // the registers do not hold left_p beside
            pack_left<T>(left_ds, ds);
            hide(left_ds);
            ptx::wgmma_fence();
            issue_weighted<T, Tile>(dk[tile], left_ds, q);
            ptx::wgmma_commit();
          }
          if (tile == 0 && makes_dq && !is_first) ptx::named_barrier_sync(kSlopesFree + 1 - consumer, kThreads);
          if (is_there) {
            unsigned char* const lines = slopes + row + (warp * 16 + lane % 16) * kAttentionLine;
            WEFT_UNROLL
            for (int i = 0; i < Tile::kRows / 16; ++i)
              ptx::stmatrix_x4(lines + ((2 * i + lane / 16) ^ (lane & 7)) * 16, left_ds[i]);
          }
          if (tile + 1 < kTiles) ptx::wgmma_wait<0>();
        }
        if (!is_begun && !is_first) {
          stored();
          barriers.keys.release(at_head.stage ^ 1, lane);
        }
        is_begun = true;
        ptx::fence_proxy_async();  // ds^T for wgmma; the reads of lse and delta before TMA's next write
        if (makes_dq)
          ptx::named_barrier_sync(kSlopesFull, kThreads);
        else
          ptx::named_barrier_arrive(kSlopesFull, kThreads);
        ptx::wgmma_wait<0>();
        barriers.queries.release(at.stage, lane);
        if (makes_dq) {
          float dq[kChannels / 2] = {};
          uint64_t left = Keys::descriptor(slopes), right = Keys::descriptor(k);
          WEFT_UNROLL_BY(1)
          for (int i = depth; i > 0; --i, left += 2048 / 16, right += 2048 / 16) {
            ptx::wgmma_fence();
            ptx::wgmma<T, kChannels, ptx::Along::rows, ptx::Along::rows>(dq, left, right);
            ptx::wgmma_commit();
          }
          ptx::wgmma_wait<0>();
          ptx::named_barrier_arrive(kSlopesFree + consumer, kThreads);
          stored();
          store_rows<T, kChannels>(call.dq, to_dq, warp, lane, first, problem.N, b, g * problem.group + member, dq,
                                   {problem.scale, problem.scale});
        }
        makes_dq = !makes_dq;
        is_first = false;
      }
    ptx::named_barrier_sync(kWarpgroupBarrier + consumer, 128);  // all threads have read v
    WEFT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile)
      store_rows<T, kChannels>(call.to[1], v + (own_tiles + tile) * Tile::kBytes, warp, lane,
                               (own_tiles + tile) * Tile::kRows, problem.M, b, g, dv[tile], {1, 1});
    stored();
    WEFT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile)
      store_rows<T, kChannels>(call.to[0], v + (own_tiles + tile) * Tile::kBytes, warp, lane,
                               (own_tiles + tile) * Tile::kRows, problem.M, b, g, dk[tile],
                               {problem.scale, problem.scale});
    at_head.advance();
  }
  if (makes_dq && !is_first) ptx::named_barrier_sync(kSlopesFree + 1 - consumer, kThreads);  // no arrival is left over
  stored();
}

template <class Shape, class T>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    attention_backward_joint_wgmma_kernel(const __grid_constant__ JointBackwardCall call) {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  auto& barriers = *reinterpret_cast<typename Shape::Barriers*>(shared + Shape::kFirstBarrier);
  if (threadIdx.x == 0) {
    barriers.keys.init();
    barriers.queries.init();
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
      attention_joint_produce<Shape>(call, shared, barriers);
      ptx::allow_next_kernel();
    }
    __syncwarp();
  } else {
    ptx::acquire_registers<kAttentionConsumerRegisters>();
    attention_joint_consume<Shape, T>(call, shared, barriers, warpgroup - 1);
  }
}

/// Requires what attention_backward_is_joint() does, tensors that TMA can access, and the statistics of the queries.
template <class T>
void attention_backward_jointly(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                                const View& q, const View& k, const View& v, const AttentionShape& shape,
                                const AttentionProblem<float>& problem, const float* statistics) {
  const auto run = [&]<class Shape>() {
    JointBackwardCall call{};
    call.own[0] = attention_map(k, Shape::Keys::kRows);
    call.own[1] = attention_map(v, Shape::Keys::kRows);
    call.streamed[0] = attention_map(q, Shape::Tile::kRows);
    call.streamed[1] = attention_map(dy, Shape::Tile::kRows);
    call.to[0] = attention_map(dk, 16);
    call.to[1] = attention_map(dv, 16);
    call.dq = attention_map(dq, 16);
    call.problem = problem;
    call.statistics = statistics;
    call.tiles.count = static_cast<int>(shape.B * shape.G);
    launch_attention_wgmma(queue, "attention_backward_sm90 (dq, dk, dv)", call.tiles, Shape::kSharedBytes,
                           &attention_backward_joint_wgmma_kernel<Shape, T>, call);
  };
  if (shape.M <= 128)
    run.template operator()<JointBackward<1>>();
  else
    run.template operator()<JointBackward<2>>();
}

}  // namespace weft::kernels::cuda
