// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_wgmma.cuh"

// Shared memory, tiles and producer of attention_backward_wgmma.cuh: a kernel that owns queries streams keys, and vice
// versa.

namespace weft::kernels::cuda {

template <int kChannelCount, int kStreamCount, int kStageCount>
struct BackwardWgmma {
  static constexpr int kChannels = kChannelCount, kStream = kStreamCount, kStages = kStageCount, kOwnedBuffers = 2;
  using Own = OwnedTile<kChannels>;
  using Streamed = WgmmaTileOf<kStream, kChannels>;
  /// Bytes of 128 owned rows of one tensor.
  static constexpr int kOwnBytes = kAttentionConsumers * Own::kBytes;
  static constexpr int kStatisticsBytes = kStream * 2 * static_cast<int>(sizeof(float));

  struct Barriers {
    OwnedRing<kOwnedBuffers> own;
    AttentionRing<kStages> streamed;
  };
  static constexpr int kFirstStage = kOwnedBuffers * 2 * kOwnBytes;
  static constexpr int kFirstStatistics = kFirstStage + kStages * 2 * Streamed::kBytes;
  static constexpr int kFirstBarrier = kFirstStatistics + kStages * kStatisticsBytes;
  static constexpr int kSharedBytes = kFirstBarrier + static_cast<int>(sizeof(Barriers));

  static __device__ __forceinline__ unsigned char* own(unsigned char* shared, int position, int tensor) {
    return shared + (2 * position + tensor) * kOwnBytes;
  }
  static __device__ __forceinline__ unsigned char* streamed(unsigned char* shared, int stage, int tensor) {
    return shared + kFirstStage + (2 * stage + tensor) * Streamed::kBytes;
  }
  static __device__ __forceinline__ float* statistics(unsigned char* shared, int stage) {
    return reinterpret_cast<float*>(shared + kFirstStatistics + stage * kStatisticsBytes);
  }
};

constexpr int kStatisticsRows = 64;  ///< queries per block of statistics

struct AttentionBackwardCall {
  TensorMap own[2], streamed[2];  ///< boxes of 64 and kStream rows: q, dy and k, v; or k, v and q, dy
  TensorMap to[2];                ///< boxes of 16 rows: dq; or dk, dv
  AttentionProblem<float> problem;
  const float* statistics;
  AttentionTiles tiles;

  __device__ const float* statistics_of(int b, int h, int query) const {
    const int blocks = (problem.N + kStatisticsRows - 1) / kStatisticsRows;
    const int64_t head = static_cast<int64_t>(b) * problem.H + h;
    return statistics + (head * blocks + query / kStatisticsRows) * (2 * kStatisticsRows) + query % kStatisticsRows;
  }
};

/// A tile's range of streamed rows, in steps. Each step is done for heads() heads from first_head() on.
struct StreamedSteps {
  int begin, end;
};

/// Owned queries stream the batch element's keys between the first that the tile's first query sees and the last that
/// its last query sees.
struct OwnedQueries {
  static constexpr bool kStatistics = false;

  static __device__ int first_head(const AttentionProblem<float>& problem, int h) { return h / problem.group; }
  static __device__ int heads(const AttentionProblem<float>&) { return 1; }
  template <int kStream>
  static __device__ StreamedSteps steps(const AttentionProblem<float>& problem, const AttentionPosition& position,
                                        int keys) {
    return {problem.key_begin(position.first) / kStream,
            (problem.key_end(keys, position.first + kAttentionRows) + kStream - 1) / kStream};
  }
};

/// Owned keys stream the queries of all heads that share them. With a causal mask a key is visible to its own query and
/// later queries, within a window; padding is visible to none.
struct OwnedKeys {
  static constexpr bool kStatistics = true;

  static __device__ int first_head(const AttentionProblem<float>& problem, int h) { return h * problem.group; }
  static __device__ int heads(const AttentionProblem<float>& problem) { return problem.group; }
  template <int kStream>
  static __device__ StreamedSteps steps(const AttentionProblem<float>& problem, const AttentionPosition& position,
                                        int keys) {
    return {problem.causal ? position.first / kStream : 0,
            position.first < keys ? (problem.query_end(position.first + kAttentionRows) + kStream - 1) / kStream : 0};
  }
};

template <class Shape, class Owned>
__device__ __forceinline__ void attention_backward_produce(const AttentionBackwardCall& call, unsigned char* shared,
                                                           typename Shape::Barriers& barriers) {
  using Own = typename Shape::Own;
  using Streamed = typename Shape::Streamed;
  RingPosition<Shape::kOwnedBuffers> at_own;
  RingPosition<Shape::kStages> at;
  int index = static_cast<int>(blockIdx.x);
  for (; index < call.tiles.count; index = call.tiles.after(index)) {
    const AttentionPosition position = call.tiles.position(index);
    const StreamedSteps steps =
        Owned::template steps<Shape::kStream>(call.problem, position, call.problem.keys_of(position.b));
    ptx::Barrier* const full = barriers.own.begin(at_own, 2 * Shape::kOwnBytes, index);
    for (int tensor = 0; tensor < 2; ++tensor)
      for (int c = 0; c < kAttentionConsumers; ++c)
        Own::load(Shape::own(shared, at_own.stage, tensor) + c * Own::kBytes, call.own[tensor], full,
                  position.first + c * 64, position.b, position.h);
    at_own.advance();
    int h = Owned::first_head(call.problem, position.h), left = Owned::heads(call.problem);
    WEFT_UNROLL_BY(1)
    for (int row = steps.begin * Shape::kStream; row < steps.end * Shape::kStream; at.advance()) {
      ptx::Barrier* const landed =
          barriers.streamed.begin(at, 2 * Streamed::kBytes + (Owned::kStatistics ? Shape::kStatisticsBytes : 0));
      for (int tensor = 0; tensor < 2; ++tensor)
        Streamed::load(Shape::streamed(shared, at.stage, tensor), call.streamed[tensor], landed, row, position.b, h);
      if constexpr (Owned::kStatistics)
        ptx::bulk_load(Shape::statistics(shared, at.stage), call.statistics_of(position.b, h, row),
                       Shape::kStatisticsBytes, landed);
      ++h;
      if (--left == 0) {
        left = Owned::heads(call.problem);
        h -= left;
        row += Shape::kStream;
      }
    }
  }
  barriers.own.begin(at_own, 0, index);
}

}  // namespace weft::kernels::cuda
