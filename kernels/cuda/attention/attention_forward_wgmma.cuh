// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_one_step_wgmma.cuh"
#include "kernels/cuda/attention/attention_plan.h"

// Attention's forward on TMA and wgmma, after FlashAttention-3 (Shah et al. 2024).
//
// Grid: persistent; a block walks over tiles of 128 queries of one head. Each consumer warpgroup owns 64 queries and
// iterates over the keys, kKeys at a time:
//
//   memory --TMA--> q (2 tiles) | k ring | v ring --wgmma--> s = q k^T in registers -> masks, online softmax -> p.
//   p (registers) and v --wgmma--> sums -> q's buffer in shared memory --TMA--> y.
//
// Two kinds of GEMMs overlap the softmax, whose exponentials are slow. Within a warpgroup: s of the next keys is issued
// before p v of the present keys. The softmax of s runs while p v is in flight. Between the consumers, a ping-pong
// schedule (kPingPongBarrier): one consumer's GEMMs run during the other's softmax.
//
//   consumer 0:  s1, p0 v0 | softmax 1 ……… | s2, p1 v1 | softmax 2 ………
//   consumer 1:  … softmax | s1, p0 v0 | softmax 1 ……… | s2, p1 v1 | …
//
// With dropout, the mask of the next weights is drawn (Philox, one bit each) while their scores are in flight. The mask
// is applied when p is rounded. The sum of weights and lse include dropped weights.
//
// Whether a key is visible (length, key mask, end of the array) is one bit per key, from a ballot. Only steps with a
// hidden key or on an edge of the causal mask or window test single weights. Steps before the first query's window are
// skipped. y and lse are not written beyond the last query.
//
// Shared memory: q 2 tiles of 16 KiB (64 channels) or 32 KiB; k and v 2 to 8 stages, 192 KiB in all at most.
// Registers per consumer thread at 64 channels and 128 keys: s 64, p 32, accumulators of y 32 (at 128 channels 64).
// Work: 4 N M D flops and N M exponentials per head. Bytes at least 2 (2 N + 2 M) D; k and v come from L2 for each tile
// of queries: 128 flops per byte. Limit: tensor cores (4096 flops per clock and SM), and the exponentials (16 per
// clock: half of the GEMMs' time at 64 channels, a quarter at 128), which the ping-pong schedule hides. Expected on an
// H100 for long sequences at 128 channels: 60 to 70% of the peak; for 197 tokens of 64 channels, where 256 x 256
// weights are computed for 197 x 197, at most 59% of that. With dropout, Philox takes about 20 instructions per weight
// of a lane, 2600 issue slots for 128 queries by 128 keys; the GEMMs take 1024 clocks (64 channels) or 2048: expected a
// third or half of the speed.

namespace weft::kernels::cuda {

template <int kChannelCount, int kKeyCount>
struct ForwardWgmma {
  static constexpr int kChannels = kChannelCount, kKeys = kKeyCount;
  static constexpr int kQueryStages = 2, kStages = 32768 / (kChannels * kKeys);
  using Own = OwnedTile<kChannels>;
  using Keys = WgmmaTileOf<kKeys, kChannels>;
  static constexpr int kQueryBytes = kAttentionConsumers * Own::kBytes;

  struct Barriers {
    OwnedRing<kQueryStages> q;
    AttentionRing<kStages> k, v;
  };
  static constexpr int kFirstK = kQueryStages * kQueryBytes, kFirstV = kFirstK + kStages * Keys::kBytes;
  static constexpr int kTileBytes = kFirstV + kStages * Keys::kBytes;
  static constexpr int kSharedBytes = kTileBytes + static_cast<int>(sizeof(Barriers));
};

struct AttentionForwardCall {
  TensorMap q, k, v;  ///< boxes of 64 queries; of kKeys keys
  TensorMap y;        ///< boxes of 16 queries
  AttentionProblem<float> problem;
  AttentionTiles tiles;

  /// The first step of kKeys keys that a tile needs, and the one past its last.
  template <int kKeys>
  __device__ int begin(const AttentionPosition& position) const {
    return problem.key_begin(position.first) / kKeys;
  }
  template <int kKeys>
  __device__ int end(const AttentionPosition& position, int keys) const {
    return (problem.key_end(keys, position.first + kAttentionRows) + kKeys - 1) / kKeys;
  }
};

template <class Shape>
__device__ __forceinline__ void attention_forward_produce(const AttentionForwardCall& call, unsigned char* shared,
                                                          typename Shape::Barriers& barriers) {
  using Own = typename Shape::Own;
  using Keys = typename Shape::Keys;
  RingPosition<Shape::kQueryStages> at_q;
  RingPosition<Shape::kStages> at_k, at_v;
  int index = static_cast<int>(blockIdx.x);
  for (; index < call.tiles.count; index = call.tiles.after(index)) {
    const AttentionPosition position = call.tiles.position(index);
    const int begin = call.begin<Shape::kKeys>(position);
    const int end = call.end<Shape::kKeys>(position, call.problem.keys_of(position.b));
    const int key_head = position.h / call.problem.group;
    ptx::Barrier* const full = barriers.q.begin(at_q, Shape::kQueryBytes, index);
    for (int c = 0; c < kAttentionConsumers; ++c)
      Own::load(shared + at_q.stage * Shape::kQueryBytes + c * Own::kBytes, call.q, full, position.first + c * 64,
                position.b, position.h);
    at_q.advance();
    // Loads in the order of use: k 0, k 1, v 0, k 2, v 1, …
    for (int step = begin; step <= end; ++step) {
      if (step < end) {
        Keys::load(shared + Shape::kFirstK + at_k.stage * Keys::kBytes, call.k, barriers.k.begin(at_k, Keys::kBytes),
                   step * Shape::kKeys, position.b, key_head);
        at_k.advance();
      }
      if (step > begin) {
        Keys::load(shared + Shape::kFirstV + at_v.stage * Keys::kBytes, call.v, barriers.v.begin(at_v, Keys::kBytes),
                   (step - 1) * Shape::kKeys, position.b, key_head);
        at_v.advance();
      }
    }
  }
  barriers.q.begin(at_q, 0, index);
}

/// The online softmax of two rows, this lane's and the row 8 below; 4 lanes hold a row's weights.
struct OnlineSoftmax {
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};

  /// Replaces s by weights, 2^(s scale - maximum). Accumulators of earlier steps must be multiplied by `again`.
  template <int kCount>
  __device__ __forceinline__ void update(float (&s)[kCount], float scale, float (&again)[2]) {
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float most = most_of_row(most_of_lane(s, half, maximum[half]));
      const float base = exponent_base(most, scale);
      again[half] = ptx::exp2_approx(maximum[half] * scale - base);
      maximum[half] = most;
      // The sum over the four lanes is taken here and not once at the end: this makes the compiler compute the
      // exponentials before the wait for p v, so that they overlap that GEMM.
      total[half] = total[half] * again[half] + sum_of_row(exponentials(s, half, scale, base));
    }
  }
};

/// The ping-pong order in which the two consumers issue GEMMs; consumer 0 begins.
class IssueTurns {
 public:
  __device__ __forceinline__ explicit IssueTurns(int consumer) : consumer_(consumer) {
    if (consumer == 1) ptx::named_barrier_arrive(kPingPongBarrier, 2 * 128);
  }
  __device__ __forceinline__ void begin() { ptx::named_barrier_sync(kPingPongBarrier + consumer_, 2 * 128); }
  __device__ __forceinline__ void end() { ptx::named_barrier_arrive(kPingPongBarrier + 1 - consumer_, 2 * 128); }
  /// Completes the barrier's last phase: consumer 1 has arrived once more than consumer 0 has waited.
  __device__ __forceinline__ void finish() {
    if (consumer_ == 0) begin();
  }

 private:
  int consumer_;
};

template <class Shape, bool with_dropout, class T>
__device__ __forceinline__ void attention_forward_consume(const AttentionForwardCall& call, unsigned char* shared,
                                                          typename Shape::Barriers& barriers, int consumer) {
  using Own = typename Shape::Own;
  using Keys = typename Shape::Keys;
  constexpr int kKeys = Shape::kKeys, kChannels = Shape::kChannels;
  const AttentionProblem<float>& problem = call.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  unsigned char *const k_ring = shared + Shape::kFirstK, *const v_ring = shared + Shape::kFirstV;
  RingPosition<Shape::kQueryStages> at_q;
  RingPosition<Shape::kStages> at_k, at_v;
  IssueTurns turns(consumer);
  for (int index; (index = barriers.q.wait(at_q)) < call.tiles.count;) {
    const AttentionPosition position = call.tiles.position(index);
    const int keys = problem.keys_of(position.b);
    const int begin = call.begin<kKeys>(position), end = call.end<kKeys>(position, keys);
    const int first = position.first + consumer * 64, query = first + warp * 16;
    unsigned char* const own = shared + at_q.stage * Shape::kQueryBytes + consumer * Own::kBytes;
    float sums[kChannels / 2] = {};
    OnlineSoftmax softmax;
    const auto draw = [&](int step) {
      KeptWeights<with_dropout, kKeys / 2> kept{};
      if constexpr (with_dropout)
        kept.template draw<false>(problem.kept(position.b, position.h), problem.dropout, query, step * kKeys, lane);
      return kept;
    };
    if (begin < end) {
      const uint64_t q = Own::descriptor(own);
      float s[kKeys / 2], again[2];
      uint32_t p[kKeys / 16][4];
      barriers.k.wait(at_k);
      turns.begin();
      ptx::wgmma_fence();
      issue_scores<T, Keys>(s, q, Keys::descriptor(k_ring + at_k.stage * Keys::kBytes));
      ptx::wgmma_commit();
      turns.end();
      auto kept = draw(begin);
      ptx::wgmma_wait<0>();
      barriers.k.release(at_k.stage, lane);
      at_k.advance();
      mask_scores(s, problem, position.b, begin * kKeys, keys, query, lane);
      softmax.update(s, scale, again);
      pack_left<T>(p, s, kept);
      for (int step = begin + 1; step < end; ++step) {
        barriers.k.wait(at_k);
        barriers.v.wait(at_v);
        turns.begin();
        ptx::wgmma_fence();
        issue_scores<T, Keys>(s, q, Keys::descriptor(k_ring + at_k.stage * Keys::kBytes));
        ptx::wgmma_commit();
        issue_weighted<T, Keys>(sums, p, Keys::descriptor(v_ring + at_v.stage * Keys::kBytes));
        ptx::wgmma_commit();
        turns.end();
        kept = draw(step);
        ptx::wgmma_wait<1>();
        barriers.k.release(at_k.stage, lane);
        at_k.advance();
        mask_scores(s, problem, position.b, step * kKeys, keys, query, lane);
        softmax.update(s, scale, again);
        ptx::wgmma_wait<0>();
        barriers.v.release(at_v.stage, lane);
        at_v.advance();
        WEFT_UNROLL
        for (int j = 0; j < kChannels / 2; ++j) sums[j] *= again[j / 2 % 2];
        pack_left<T>(p, s, kept);
      }
      barriers.v.wait(at_v);
      unsigned char* const v = v_ring + at_v.stage * Keys::kBytes;
      if (end * kKeys > keys && keys < problem.M) Keys::clear_from(v, keys - (end - 1) * kKeys);
      ptx::wgmma_fence();
      issue_weighted<T, Keys>(sums, p, Keys::descriptor(v));
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      barriers.v.release(at_v.stage, lane);
      at_v.advance();
    }

    float factor[2];
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float sum = softmax.total[half];
      factor[half] = sum == 0.0f ? 0.0f : problem.keep_scale / sum;
      const int i = query + half * 8 + lane / 4;
      if (lane % 4 == 0 && i < problem.N)
        problem.lse[(static_cast<int64_t>(position.b) * problem.H + position.h) * problem.N + i] =
            sum == 0.0f ? -INFINITY : softmax.maximum[half] * problem.scale + logf(sum);
    }
    ptx::named_barrier_sync(kWarpgroupBarrier + consumer, 128);  // all threads have read q
    store_rows<T, kChannels>(call.y, own, warp, lane, first, problem.N, position.b, position.h, sums, factor);
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    barriers.q.release(at_q.stage, lane);
    at_q.advance();
  }
  turns.finish();
}

template <class Shape, bool with_dropout, class T>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    attention_forward_wgmma_kernel(const __grid_constant__ AttentionForwardCall call) {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  auto& barriers = *reinterpret_cast<typename Shape::Barriers*>(shared + Shape::kTileBytes);
  if (threadIdx.x == 0) {
    barriers.q.init();
    barriers.k.init();
    barriers.v.init();
    ptx::mbarrier_init_fence();
    ptx::prefetch_tensor_map(call.q);
    ptx::prefetch_tensor_map(call.k);
    ptx::prefetch_tensor_map(call.v);
    ptx::prefetch_tensor_map(call.y);
  }
  __syncthreads();
  ptx::wait_for_previous_kernel();
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);  // uniform: see gemm_wgmma.cuh
  const int warpgroup = warp / 4;
  if (warpgroup == 0) {
    ptx::release_registers<kAttentionProducerRegisters>();
    if (warp == 0 && ptx::elect_one()) {
      attention_forward_produce<Shape>(call, shared, barriers);
      ptx::allow_next_kernel();
    }
    __syncwarp();
  } else {
    ptx::acquire_registers<kAttentionConsumerRegisters>();
    attention_forward_consume<Shape, with_dropout, T>(call, shared, barriers, warpgroup - 1);
  }
}

template <class T>
bool attention_forward_on_wgmma(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                                const AttentionShape& shape, const AttentionProblem<float>& problem) {
  if (!has_wgmma(queue) || attention_tiles(shape.B * shape.H, shape.N) > kMostAttentionTiles) return false;
  for (const View* view : {&y, &q, &k, &v})
    if (!fits_attention_wgmma(*view)) return false;
  const Workspace drawn(queue, sizeof(int), "attention_forward");
  const auto run = [&]<class Shape>() {
    const AttentionForwardCall call{attention_map(q, 64),
                                    attention_map(k, Shape::kKeys),
                                    attention_map(v, Shape::kKeys),
                                    attention_map(y, 16),
                                    problem,
                                    attention_schedule(queue, shape, problem, false, drawn)};
    launch_attention_wgmma(queue, "attention_forward_sm90", call.tiles, Shape::kSharedBytes,
                           problem.dropout > 0 ? &attention_forward_wgmma_kernel<Shape, true, T>
                                               : &attention_forward_wgmma_kernel<Shape, false, T>,
                           call);
  };
  const bool plain = !problem.causal && problem.key_lengths == nullptr && problem.dropout == 0 && problem.group == 1;
  const int keys = attention_plan(shape.M, shape.D, plain).keys;
  if (keys == kOneStepKeys) {
    attention_forward_in_one_step<T>(queue, y, q, k, v, shape, problem);
    return true;
  }
  if (shape.D <= 64)
    keys == 64 ? run.template operator()<ForwardWgmma<64, 64>>() : run.template operator()<ForwardWgmma<64, 128>>();
  else
    keys == 64 ? run.template operator()<ForwardWgmma<128, 64>>() : run.template operator()<ForwardWgmma<128, 128>>();
  return true;
}

}  // namespace weft::kernels::cuda
