// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/attention.h"
#include "kernels/ladder/attention/attention.cuh"
#include "kernels/runtime/allocator.h"

// 5. Weft: kernels/cuda/attention*.cu.
//
// Any head dimension up to 256, any length, causal and key-padding masks, dropout. q, k and v may be slices of
// one packed array. From the logarithm of each row's sum the backward recomputes the weights, which are never
// stored.
//
// Predicted: the share of step 4 and more on an A100; on Hopper what wgmma allows.

namespace weft::kernels::cuda::attention_5 {

/// [G,L,D] as the contract's [B=1, L, H=G, D].
View by_heads(View view, const Attention& a) {
  view.rank = 4;
  view.sizes = {1, a.L, a.G, kHeadDim};
  view.strides = {int64_t{a.G} * a.L * kHeadDim, kHeadDim, int64_t{a.L} * kHeadDim, 1};
  return view;
}

void run(const Queue& queue, const View& y, const View& q, const View& k, const View& v) {
  const Attention a("attention/5_weft", y, q, k, v);
  AttentionArguments arguments;
  arguments.scale = a.scale;
  const Workspace lse(queue, sizeof(float) * static_cast<size_t>(a.G) * static_cast<size_t>(a.L), "attention/5_weft");
  attention_forward(queue, by_heads(y, a), View::dense(lse.data(), DType::f32, {1, a.G, a.L}), by_heads(q, a),
                    by_heads(k, a), by_heads(v, a), View::none(), View::none(), View::none(), arguments);
}

const Rung<run> rung("attention/5_weft", "Weft's kernel: masks, dropout, any head dimension, packed qkv");

}  // namespace weft::kernels::cuda::attention_5
