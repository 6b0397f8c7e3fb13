// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/tensor.h"

namespace weft {

struct AttentionOptions {
  std::optional<double> scale = {};    ///< factor of the products, positive; 1 / sqrt(D) where not given
  bool causal = false;                 ///< query i sees the keys 0 … i
  std::optional<int64_t> window = {};  ///< with `causal`: query i sees its last keys i - window + 1 … i alone
  Tensor key_lengths = {};             ///< i64 [B]: batch entry b has the keys 0 … key_lengths[b] - 1; undefined: all
  Tensor key_mask = {};                ///< bool [B, M]: the keys that may be seen; undefined: all
  Tensor bias = {};                    ///< added to scale q k^T, or (bool) which keys a query may see; broadcasts to
                                       ///< [B, H, N, M]
  double dropout = 0;                  ///< a weight becomes 0 with this probability, else is divided by 1 - dropout
};

/// softmax(scale q k^T) v for each head (Vaswani et al. 2017): q [B, N, H, D], k and v [B, M, G, D], result
/// [B, N, H, D]; one floating dtype, D at most 256. G divides H: H / G heads of queries in a row share a head of keys
/// and values (Ainslie et al. 2023), which is not copied. Computed by blocks (Dao et al. 2022), so that memory grows
/// with N + M, and time with a window instead of M; the backward computes the weights again, dropout's mask included.
/// Sums are kept in f32 (f64 for f64). q, k, v may be slices of larger tensors: nothing is copied where the last
/// dimension has stride 1. A query that sees no key gives 0. With a bias, ops compute it and store the weights. Every
/// run gives the same bits, backward too. Under autocast in the low precision. Errors: sizes that do not fit, two
/// dtypes, two devices, a scale that is not positive, dropout outside [0, 1]; a window below 1 or without `causal`; on
/// the CPU a key length outside 0 … M, which a GPU cuts to it.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

/// As attention(), with q, k, v side by side in qkv [B, N, 3, H, D], the layout that a fused projection gives. The
/// gradient has the same layout and is written in place.
Tensor attention_packed(const Tensor& qkv, const AttentionOptions& options = {});

}  // namespace weft
