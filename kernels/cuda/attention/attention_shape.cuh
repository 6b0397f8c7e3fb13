// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/contracts/attention_shape.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"

// Shared by all attention kernels: a head's rows, the keys that a query sees, and dropout.

namespace weft::kernels::cuda {

/// One of q, k, v, y or their gradients: rows of D neighbouring elements.
template <class T>
struct AttentionTensor {
  T* data;
  int64_t batch_stride, row_stride, head_stride;

  AttentionTensor() = default;
  explicit AttentionTensor(const View& view)
      : data(static_cast<T*>(view.data)),
        batch_stride(view.strides[0]),
        row_stride(view.strides[1]),
        head_stride(view.strides[2]) {}

  /// Row 0 of a head of a batch element.
  __device__ T* head(int b, int h) const { return data + b * batch_stride + h * head_stride; }
};

/// The constants of a launch. Sizes fit 32 bits; A is the type of lse.
template <class A>
struct AttentionProblem {
  int B, N, M, H, D;
  int G, group;         ///< heads of keys; heads of queries that share one of them
  int window;           ///< keys that a query of a causal problem sees at most
  A scale, keep_scale;  ///< keep_scale: 1 / (1 - dropout), or 0 if dropout is 1
  float dropout;
  bool causal;
  uint64_t offset;
  const int64_t* key_lengths;
  const bool* key_mask;
  const int64_t* state;
  A* lse;
  A* delta;  ///< backward only: rowsum(dy y), as lse

  /// The number of keys of batch element b: keys 0 … keys_of(b) - 1, of which key_mask may hide some.
  __device__ int keys_of(int b) const {
    if (key_lengths == nullptr) return M;
    const int64_t length = key_lengths[b];
    return length < 0 ? 0 : length < M ? static_cast<int>(length) : M;
  }

  /// The first of `keys` keys that is hidden from all queries before `query_end`.
  __device__ int key_end(int keys, int query_end) const { return causal && query_end < keys ? query_end : keys; }

  /// No query from `query` on sees a key before this one.
  __device__ int key_begin(int query) const { return causal && query >= window ? query - window + 1 : 0; }

  /// No query from this one on sees a key before `key_end`.
  __device__ int query_end(int key_end) const { return causal && N - window >= key_end ? key_end - 1 + window : N; }

  /// Whether the causal mask and the window leave key j to query i.
  __device__ bool sees(int i, int j) const {
    return !causal || static_cast<unsigned>(i - j) < static_cast<unsigned>(window);
  }
  /// Whether they leave each of `keys` keys from j on to each of `queries` queries from i on.
  __device__ bool all_see(int i, int queries, int j, int keys) const {
    return !causal || (j + keys - 1 <= i && i + queries - 1 - j < window);
  }

  /// Whether any query of batch element b may see key j.
  __device__ bool has_key(int b, int j, int keys) const {
    return j < keys && (key_mask == nullptr || key_mask[static_cast<int64_t>(b) * M + j]);
  }

  __device__ AttentionDropout kept(int b, int h) const {
    return AttentionDropout(static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]) + offset,
                            static_cast<int64_t>(b) * H + h, N, M);
  }
};

template <class A>
AttentionProblem<A> attention_problem(const AttentionShape& shape, const View& lse, const View& key_lengths,
                                      const View& key_mask, const View& state, const AttentionArguments& arguments) {
  constexpr int64_t kMost = int64_t{1} << 30;
  WEFT_CHECK(shape.N <= kMost && shape.M <= kMost && shape.B * shape.H <= kMost, "attention: ", shape.B, " entries of ",
             shape.H, " heads with ", shape.N, " queries and ", shape.M, " keys are too many");
  return {static_cast<int>(shape.B),
          static_cast<int>(shape.N),
          static_cast<int>(shape.M),
          static_cast<int>(shape.H),
          static_cast<int>(shape.D),
          static_cast<int>(shape.G),
          static_cast<int>(shape.group()),
          static_cast<int>(arguments.window > 0 ? std::min(arguments.window, kMost) : kMost),
          static_cast<A>(arguments.scale),
          static_cast<A>(arguments.dropout < 1 ? 1 / (1 - arguments.dropout) : 0),
          static_cast<float>(arguments.dropout),
          arguments.causal,
          arguments.random.offset,
          static_cast<const int64_t*>(key_lengths.data),
          static_cast<const bool*>(key_mask.data),
          static_cast<const int64_t*>(state.data),
          static_cast<A*>(lse.data),
          nullptr};
}

/// Blocks of `rows` rows over `heads` heads of all batch elements.
inline dim3 attention_grid(int64_t heads, int64_t count, int rows) {
  return dim3(static_cast<unsigned>((count + rows - 1) / rows * heads));
}

/// The head and rows that a block owns; blocks of one head have consecutive indices, so that its rows stay in L2.
struct AttentionPosition {
  int first, b, h;

  /// Tile `index` of `rows` rows; a head has `count` rows. last_first: a head's tiles in descending order, for heads
  /// whose last rows need the most work.
  __device__ AttentionPosition(int count, int rows, int H, bool last_first = false,
                               int index = static_cast<int>(blockIdx.x)) {
    const int tiles = (count + rows - 1) / rows, head = index / tiles, tile = index % tiles;
    first = (last_first ? tiles - 1 - tile : tile) * rows;
    b = head / H;
    h = head % H;
  }
};

}  // namespace weft::kernels::cuda
