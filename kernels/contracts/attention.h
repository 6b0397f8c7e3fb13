// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/random.h"

namespace weft::kernels {

struct AttentionArguments {
  double scale = 1;     ///< positive
  bool causal = false;  ///< query i sees keys 0 … i
  double dropout = 0;   ///< probability that a weight becomes 0; the others are divided by 1 - dropout
  RandomArguments random;
  int64_t window = 0;  ///< with `causal`: query i sees the keys i - window + 1 … i; 0: keys 0 … i
};

// Attention by blocks of queries and keys (Dao et al. 2022, Dao 2023): no array of queries by keys is ever stored.
//   s[b,h,i,j] = scale sum over d of q[b,i,h,d] k[b,j,g,d];  p = softmax of s over the keys that query i sees.
//   y[b,i,h,d] = sum over j of drop(p)[b,h,i,j] v[b,j,g,d];  lse[b,h,i] = ln of the sum over j of exp(s[b,h,i,j]).
// q, y, dy, dq [B, N, H, D]; k, v, dk, dv [B, M, G, D]: one floating dtype, D at most 256, any strides with stride 1 in
// the last dimension. So they may be slices of a packed [B, N, 3, H, D]; inputs may have stride 0. G divides H: the
// H / G heads h of a group share head g = h / (H / G) of k and v (Ainslie et al. 2023), whose gradients add theirs. lse
// [B, H, N], contiguous, f32 (f64 for f64 q); sums are kept in that type. A query sees key j of its batch element if
// j < key_lengths[b] and key_mask[b,j] and, with `causal`, j <= i. With `window` it sees a key if also i - j < window:
// tiles of keys that no query of a tile sees are neither loaded nor multiplied. key_lengths is i64 [B], key_mask bool
// [B, M], contiguous, or none. A query that sees no key has y = 0, lse = -infinity, gradients 0. With dropout, `state`
// is the generator's (kernels/contracts/random.h), else none: p[b,h,i,j] is dropped where uniform01(word 2 (i % 2) + j
// % 2 of block B) is below `dropout`. Philox block B: base + offset + ((b H + h) ceil(N / 2) + i / 2) ceil(M / 2) + j
// / 2. Two queries by two keys share a block, which suits kernels that hold s or its transpose.

WEFT_KERNEL(attention_forward, const Queue& queue, const View& y, const View& lse, const View& q, const View& k,
            const View& v, const View& key_lengths, const View& key_mask, const View& state,
            AttentionArguments arguments);

/// dq, dk, dv are overwritten: ds = p (drop(dp) - delta) with dp = dy v^T and delta[i] = sum over d of dy y. Results
/// are bit-identical in every run. dk and dv, or dq, may be none. arguments, masks, state as in the forward.
WEFT_KERNEL(attention_backward, const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
            const View& q, const View& k, const View& v, const View& y, const View& lse, const View& key_lengths,
            const View& key_mask, const View& state, AttentionArguments arguments);

}  // namespace weft::kernels
