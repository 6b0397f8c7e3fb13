// SPDX-License-Identifier: Apache-2.0
#include "nn/multi_head_attention.h"

#include "core/ops/concat.h"

namespace weft::nn {

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t head_count, MultiHeadAttentionOptions options)
    : heads(head_count),
      dropout(options.dropout),
      qkv(width, 3 * width, {.bias = options.bias, .init = Init::transformer}),
      proj(width, width, {.bias = options.bias, .init = Init::transformer}) {
  WEFT_CHECK(heads > 0 && width % heads == 0,
             "MultiHeadAttention: expected a width that is a multiple of the heads, got ", width, " and ", heads);
}

Tensor MultiHeadAttention::forward(const Tensor& x, const AttentionOptions& options) const {
  const auto [N, tokens, width] = x.dims<3>();
  AttentionOptions with_dropout = options;
  with_dropout.dropout = is_training() ? dropout : 0;
  const Tensor y = attention_packed(qkv(x).reshape({N, tokens, 3, heads, width / heads}), with_dropout);
  return proj(y.reshape({N, tokens, width}));
}

Tensor MultiHeadAttention::extend(const Tensor& x, KeysAndValues& past) const {
  return with_hooks(x, [&] {
    const auto [N, tokens, width] = x.dims<3>();
    WEFT_CHECK(!past.keys.defined() || tokens == 1, "MultiHeadAttention: expected one token after ", past.keys.size(1),
               ", got ", x);
    const Tensor packed = qkv(x).reshape({N, tokens, 3, heads, width / heads});
    const Tensor keys = packed.select(2, 1), values = packed.select(2, 2);
    const bool first = !past.keys.defined();
    past.keys = first ? keys : concat({past.keys, keys}, 1);
    past.values = first ? values : concat({past.values, values}, 1);
    const Tensor y = attention(packed.select(2, 0), past.keys, past.values, {.causal = first});
    return proj(y.reshape({N, tokens, width}));
  });
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options) const {
  return with_hooks(x, [&] { return forward(x, options); });
}

void MultiHeadAttention::fields(Visitor& v) {
  v("qkv", qkv);
  v("proj", proj);
}

int64_t MultiHeadAttention::flops(const Shape& x, const Shape&) const { return 4 * x.numel() * x[1]; }

}  // namespace weft::nn
