// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/attention.h"
#include "kernels/contracts/philox.h"

// Shared by the implementations of kernels/contracts/attention.h.

namespace weft::kernels {

inline constexpr int64_t kMaxHeadDim = 256;

/// B batch elements, N queries, M keys, H heads of queries and G heads of keys, D channels.
struct AttentionShape {
  int64_t B, N, M, H, D, G;

  /// Heads of queries that share a head of keys.
  int64_t group() const { return G > 0 ? H / G : 1; }
};

/// Checks the arguments that both directions have; `op` starts the error texts.
inline AttentionShape attention_shape(const char* op, const View& q, const View& k, const View& v, const View& lse,
                                      const View& key_lengths, const View& key_mask, const View& state,
                                      const AttentionArguments& arguments) {
  WEFT_CHECK(q.rank == 4 && k.rank == 4 && k.same_sizes(v) && k.sizes[0] == q.sizes[0] && k.sizes[3] == q.sizes[3] &&
                 k.dtype == q.dtype && v.dtype == q.dtype,
             op, ": expected q [B,N,H,D] and k, v [B,M,G,D] of one dtype, got ", q, ", ", k, ", ", v);
  const AttentionShape s{q.sizes[0], q.sizes[1], k.sizes[1], q.sizes[2], q.sizes[3], k.sizes[2]};
  WEFT_CHECK(s.H == s.G || (s.G > 0 && s.H > 0 && s.H % s.G == 0), op,
             ": expected heads of q that are a multiple of those of k, got ", q, " and ", k);
  WEFT_CHECK(s.D >= 1 && s.D <= kMaxHeadDim, op, ": expected 1 to ", kMaxHeadDim, " channels per head, got ", q);
  for (const View* view : {&q, &k, &v})
    WEFT_CHECK(view->strides[3] == 1 || s.D == 1, op, ": expected stride 1 in the last dimension of ", *view);
  const DType wide = q.dtype == DType::f64 ? DType::f64 : DType::f32;
  WEFT_CHECK(lse.rank == 3 && lse.is_contiguous() && lse.dtype == wide && lse.sizes[0] == s.B && lse.sizes[1] == s.H &&
                 lse.sizes[2] == s.N,
             op, ": expected lse ", wide, "[", s.B, ",", s.H, ",", s.N, "], got ", lse);
  WEFT_CHECK(!key_lengths || (key_lengths.rank == 1 && key_lengths.sizes[0] == s.B && key_lengths.dtype == DType::i64 &&
                              key_lengths.is_contiguous()),
             op, ": expected key_lengths i64[", s.B, "], got ", key_lengths);
  WEFT_CHECK(!key_mask || (key_mask.rank == 2 && key_mask.sizes[0] == s.B && key_mask.sizes[1] == s.M &&
                           key_mask.dtype == DType::boolean && key_mask.is_contiguous()),
             op, ": expected key_mask bool[", s.B, ",", s.M, "], got ", key_mask);
  WEFT_CHECK(arguments.scale > 0 && arguments.dropout >= 0 && arguments.dropout <= 1, op,
             ": expected a positive scale and dropout in [0, 1], got ", arguments.scale, " and ", arguments.dropout);
  WEFT_CHECK(arguments.window == 0 || (arguments.window > 0 && arguments.causal), op,
             ": expected a window of at least 1 key of a causal mask, or 0, got ", arguments.window);
  WEFT_CHECK(arguments.dropout == 0 || (state && state.dtype == DType::i64 && state.numel() == 2), op,
             ": expected a state i64[2], got ", state);
  return s;
}

inline void check_attention_like(const char* op, const View& view, const View& like) {
  WEFT_CHECK(view.same_sizes(like) && view.dtype == like.dtype && (view.strides[3] == 1 || view.sizes[3] == 1), op,
             ": expected ", like, " with stride 1 in the last dimension, got ", view);
}

/// Checks the arguments that only the backward has.
inline void check_attention_backward(const char* op, const View& dq, const View& dk, const View& dv, const View& dy,
                                     const View& q, const View& k, const View& y) {
  check_attention_like(op, y, q);
  check_attention_like(op, dy, q);
  if (dq) check_attention_like(op, dq, q);
  WEFT_CHECK(static_cast<bool>(dk) == static_cast<bool>(dv), op, ": expected dk and dv, or none of both");
  if (dk) check_attention_like(op, dk, k);
  if (dv) check_attention_like(op, dv, k);
}

/// The Philox blocks of one head's weights (kernels/contracts/attention.h).
struct AttentionDropout {
  uint64_t seed, first;
  int64_t row_blocks;  ///< ceil(M / 2)

  WEFT_HD AttentionDropout(uint64_t seed_, uint64_t base, int64_t head, int64_t N, int64_t M)
      : seed(seed_),
        first(base + static_cast<uint64_t>(head * ((N + 1) / 2) * ((M + 1) / 2))),
        row_blocks((M + 1) / 2) {}

  /// The block of queries 2 i, 2 i + 1 and keys 2 j, 2 j + 1.
  WEFT_HD Philox4 block(int64_t i, int64_t j) const {
    return philox(seed, first + static_cast<uint64_t>(i * row_blocks + j));
  }
};

}  // namespace weft::kernels
