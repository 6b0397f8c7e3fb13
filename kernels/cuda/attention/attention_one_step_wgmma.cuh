// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_plan.h"
#include "kernels/cuda/attention/attention_wgmma.cuh"

// Attention's forward if all keys of a head fit one step: 129 to 224 keys of at most 64 channels, e.g. a vision
// transformer's 197. There is no loop over keys, accumulators are never rescaled, and a head's k and v are loaded once.
//
// Grid: a block owns consecutive tiles of 64 queries. Its three consumer warpgroups process the tiles round-robin. They
// synchronise only through the loads, so that a softmax overlaps the other warpgroups' GEMMs.
//
//   memory --TMA--> q (2 tiles a consumer) | k and v of 3 heads --wgmma--> s = q k^T, 128 and 96 keys, in registers.
//   -> maximum of the first part while the second is in flight -> p of the first part --wgmma--> accumulators;
//   meanwhile p of the second part is computed.
//   -> accumulators -> q's buffer in shared memory --TMA--> y, stored while the next tile is computed.
//
// Warps whose 16 queries are all out of bounds compute no weights, but still take part in wgmma.
//
// Shared memory: 6 tiles of q of 8 KiB, 3 heads of 56 KiB. Registers per consumer thread: s 112, then p 56 and
// accumulators 32. SM cycles per tile: GEMMs 896, exponentials 896 (of 224 keys). Bytes: each tensor once; 197 tokens
// need 100 flops per byte, so that memory takes about as long: expected 50% of the bandwidth.

namespace weft::kernels::cuda {

/// The maximum of `most` and a lane's scores of one row: half 0 is row lane / 4, half 1 the row 8 below.
template <int kCount>
__device__ __forceinline__ float most_of_lane(const float (&s)[kCount], int half, float most) {
  WEFT_UNROLL
  for (int j = 2 * half; j < kCount; j += 4) most = fmaxf(most, fmaxf(s[j], s[j + 1]));
  return most;
}
/// The maximum over the four lanes that hold a row.
__device__ __forceinline__ float most_of_row(float most) {
  WEFT_UNROLL
  for (int distance = 1; distance < 4; distance *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, distance));
  return most;
}
__device__ __forceinline__ float sum_of_row(float sum) {
  WEFT_UNROLL
  for (int distance = 1; distance < 4; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  return sum;
}
/// The offset subtracted from s scale, so that the greatest exponent is 0; 0 for rows without a key.
__device__ __forceinline__ float exponent_base(float most, float scale) {
  return most > -INFINITY ? most * scale : 0.0f;
}
/// Replaces s of a row by 2^(s scale - base). Returns the lane's sum.
template <int kCount>
__device__ __forceinline__ float exponentials(float (&s)[kCount], int half, float scale, float base) {
  float sum = 0;
  WEFT_UNROLL
  for (int j = 2 * half; j < kCount; j += 4) WEFT_UNROLL
  for (int e = 0; e < 2; ++e) {
    s[j + e] = ptx::exp2_approx(s[j + e] * scale - base);
    sum += s[j + e];
  }
  return sum;
}

struct OneStep {
  static constexpr int kChannels = 64, kConsumers = 3, kThreads = (1 + kConsumers) * 128;
  static constexpr int kQueryStages = 2, kHeads = 3, kConsumerRegisters = 160;
  using Own = OwnedTile<kChannels>;
  using Keys = WgmmaTileOf<kOneStepKeys, kChannels>;
  using First = WgmmaTileOf<128, kChannels>;
  using Second = WgmmaTileOf<kOneStepKeys - First::kRows, kChannels>;

  struct Barriers {
    AttentionRing<kQueryStages, 4> q[kConsumers];
    AttentionRing<kHeads, 4 * kConsumers> k, v;
  };
  static constexpr int kFirstK = kConsumers * kQueryStages * Own::kBytes, kFirstV = kFirstK + kHeads * Keys::kBytes;
  static constexpr int kTileBytes = kFirstV + kHeads * Keys::kBytes;
  static constexpr int kSharedBytes = kTileBytes + static_cast<int>(sizeof(Barriers));
  /// The descriptor offset from a tile's first part to its second.
  static constexpr uint64_t kToSecond = First::kBytes / 16;

  static __device__ __forceinline__ unsigned char* q(unsigned char* shared, int consumer, int stage) {
    return shared + (consumer * kQueryStages + stage) * Own::kBytes;
  }
};

struct OneStepCall {
  TensorMap q, k, v;  ///< boxes of 64 queries; of all keys
  TensorMap y;        ///< boxes of 16 queries
  AttentionProblem<float> problem;
  int count, per_head, per_block;  ///< tiles of 64 queries: in total, per head, per block

  __device__ int begin() const { return static_cast<int>(blockIdx.x) * per_block; }
  __device__ int end() const { return min(begin() + per_block, count); }
};

__device__ __forceinline__ void attention_one_step_produce(const OneStepCall& call, unsigned char* shared,
                                                           OneStep::Barriers& barriers) {
  using Keys = OneStep::Keys;
  RingPosition<OneStep::kQueryStages> at_q;
  RingPosition<OneStep::kHeads> at;
  int head = call.begin() / call.per_head, tile = call.begin() % call.per_head;
  bool loaded = false;  // whether k and v of the head are loaded
  for (int index = call.begin(); index < call.end();) {
    for (int consumer = 0; consumer < OneStep::kConsumers && index < call.end(); ++consumer, ++index) {
      const int b = head / call.problem.H, h = head % call.problem.H;
      if (!loaded)
        Keys::load(shared + OneStep::kFirstK + at.stage * Keys::kBytes, call.k, barriers.k.begin(at, Keys::kBytes), 0,
                   b, h);
      OneStep::Own::load(OneStep::q(shared, consumer, at_q.stage), call.q,
                         barriers.q[consumer].begin(at_q, OneStep::Own::kBytes), tile * 64, b, h);
      if (!loaded) {
        Keys::load(shared + OneStep::kFirstV + at.stage * Keys::kBytes, call.v, barriers.v.begin(at, Keys::kBytes), 0,
                   b, h);
        at.advance();
      }
      loaded = ++tile < call.per_head;
      if (!loaded) {
        tile = 0;
        ++head;
      }
    }
    at_q.advance();
  }
}

template <class T>
__device__ __forceinline__ void attention_one_step_consume(const OneStepCall& call, unsigned char* shared,
                                                           OneStep::Barriers& barriers, int consumer) {
  using First = OneStep::First;
  using Second = OneStep::Second;
  using Keys = OneStep::Keys;
  const AttentionProblem<float>& problem = call.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const float scale = problem.scale * 1.44269504f;  // exponentials are powers of 2
  AttentionRing<OneStep::kQueryStages, 4>& queries = barriers.q[consumer];
  RingPosition<OneStep::kQueryStages> at_q;
  RingPosition<OneStep::kHeads> at;
  const int end = call.end();
  int index = call.begin() + consumer;
  bool stored = false;  // whether q's other buffer holds y of an earlier tile
  for (int head = call.begin() / call.per_head; head * call.per_head < end; ++head, at.advance()) {
    const int b = head / problem.H, h = head % problem.H, head_end = min((head + 1) * call.per_head, end);
    const uint64_t k = Keys::descriptor(shared + OneStep::kFirstK + at.stage * Keys::kBytes);
    const uint64_t v = Keys::descriptor(shared + OneStep::kFirstV + at.stage * Keys::kBytes);
    barriers.k.wait(at);
    for (; index < head_end; index += OneStep::kConsumers, at_q.advance()) {
      const int first = (index - head * call.per_head) * 64, query = first + warp * 16;
      unsigned char* const own = OneStep::q(shared, consumer, at_q.stage);
      const uint64_t q = OneStep::Own::descriptor(own);
      float s[First::kRows / 2], t[Second::kRows / 2];
      queries.wait(at_q);
      ptx::wgmma_fence();
      issue_scores<T, First>(s, q, k);
      ptx::wgmma_commit();
      issue_scores<T, Second>(t, q, k + OneStep::kToSecond);
      ptx::wgmma_commit();
      if (stored) {
        if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
        queries.release(at_q.stage ^ 1, lane);
      }
      stored = true;
      const bool there = query < problem.N;
      float most[2] = {-INFINITY, -INFINITY}, base[2], total[2] = {};
      ptx::wgmma_wait<1>();
      if (there) {
        mask_scores(s, problem, b, 0, problem.M, query, lane);
        for (int half = 0; half < 2; ++half) most[half] = most_of_lane(s, half, most[half]);
      }
      ptx::wgmma_wait<0>();
      if (there) {
        mask_scores(t, problem, b, First::kRows, problem.M, query, lane);
        for (int half = 0; half < 2; ++half) {
          most[half] = most_of_row(most_of_lane(t, half, most[half]));
          base[half] = exponent_base(most[half], scale);
          total[half] = exponentials(s, half, scale, base[half]);
        }
      }
      float sums[OneStep::kChannels / 2] = {};
      uint32_t p[First::kRows / 16][4], more[Second::kRows / 16][4];
      pack_left<T>(p, s);
      barriers.v.wait(at);
      ptx::wgmma_fence();
      issue_weighted<T, First>(sums, p, v);
      ptx::wgmma_commit();
      if (there)
        for (int half = 0; half < 2; ++half) total[half] += exponentials(t, half, scale, base[half]);
      pack_left<T>(more, t);
      ptx::wgmma_fence();
      issue_weighted<T, Second>(sums, more, v + OneStep::kToSecond);
      ptx::wgmma_commit();

      float factor[2];
      WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float sum = sum_of_row(total[half]);
        factor[half] = sum == 0.0f ? 0.0f : 1 / sum;
        const int i = query + half * 8 + lane / 4;
        if (lane % 4 == 0 && i < problem.N)
          problem.lse[static_cast<int64_t>(head) * problem.N + i] =
              sum == 0.0f ? -INFINITY : most[half] * problem.scale + logf(sum);
      }
      ptx::named_barrier_sync(kWarpgroupBarrier + consumer, 128);  // all threads have read q
      ptx::wgmma_wait<0>();
      store_rows<T, OneStep::kChannels>(call.y, own, warp, lane, first, problem.N, b, h, sums, factor);
    }
    barriers.v.wait(at);
    barriers.k.release(at.stage, lane);
    barriers.v.release(at.stage, lane);
  }
  if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
}

template <class T>
__global__ void __launch_bounds__(OneStep::kThreads, 1)
    attention_one_step_wgmma_kernel(const __grid_constant__ OneStepCall call) {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  auto& barriers = *reinterpret_cast<OneStep::Barriers*>(shared + OneStep::kTileBytes);
  if (threadIdx.x == 0) {
    for (int consumer = 0; consumer < OneStep::kConsumers; ++consumer) barriers.q[consumer].init();
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
      attention_one_step_produce(call, shared, barriers);
      ptx::allow_next_kernel();
    }
    __syncwarp();
  } else {
    ptx::acquire_registers<OneStep::kConsumerRegisters>();
    attention_one_step_consume<T>(call, shared, barriers, warpgroup - 1);
  }
}

/// Requires tensors that TMA can access, 129 to kOneStepKeys keys and at most 64 channels; no dropout, causal mask,
/// lengths or shared keys.
template <class T>
void attention_forward_in_one_step(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                                   const AttentionShape& shape, const AttentionProblem<float>& problem) {
  const auto up = [](int64_t count, int64_t of) { return (count + of - 1) / of; };
  const int64_t per_head = up(shape.N, 64), count = per_head * shape.B * shape.H;
  const int64_t per_block =
      up(up(count, std::max(1, multiprocessors(queue))), OneStep::kConsumers) * OneStep::kConsumers;
  const OneStepCall call{attention_map(q, 64),
                         attention_map(k, kOneStepKeys),
                         attention_map(v, kOneStepKeys),
                         attention_map(y, 16),
                         problem,
                         static_cast<int>(count),
                         static_cast<int>(per_head),
                         static_cast<int>(per_block)};
  note_kernel_variant("sm90");
  launch_overlapped(queue, "attention_forward_sm90", dim3(static_cast<unsigned>(up(count, per_block))),
                    dim3(OneStep::kThreads), OneStep::kSharedBytes, dim3(1), &attention_one_step_wgmma_kernel<T>, call);
}

}  // namespace weft::kernels::cuda
