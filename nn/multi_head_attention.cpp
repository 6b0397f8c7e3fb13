// SPDX-License-Identifier: Apache-2.0
#include "nn/multi_head_attention.h"

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

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options) const {
  return with_hooks(x, [&] { return forward(x, options); });
}

void MultiHeadAttention::fields(Visitor& v) {
  v("qkv", qkv);
  v("proj", proj);
}

int64_t MultiHeadAttention::flops(const Shape& x, const Shape&) const { return 4 * x.numel() * x[1]; }

}  // namespace weft::nn
