// SPDX-License-Identifier: Apache-2.0
#include "nn/transformer_block.h"

#include "core/ops/binary.h"

namespace weft::nn {
namespace {

std::shared_ptr<Module> make_feed_forward(const TransformerBlockOptions& options) {
  if (options.feed_forward == FeedForward::swiglu) return std::make_shared<SwiGlu>(options.width, options.hidden);
  return std::make_shared<Mlp>(options.width, options.hidden);
}

std::shared_ptr<LayerScale> make_scale(const TransformerBlockOptions& options) {
  return options.layer_scale == 0 ? nullptr : std::make_shared<LayerScale>(options.width, options.layer_scale);
}

/// What goes into the residual stream.
Tensor scaled(const Tensor& branch, const std::shared_ptr<LayerScale>& scale, const DropPath& drop_path) {
  return drop_path(scale ? (*scale)(branch) : branch);
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerBlockOptions& options)
    : norm1(options.width, options.eps),
      attn(options.width, options.heads),
      ls1(make_scale(options)),
      drop_path1(options.drop_path),
      norm2(options.width, options.eps),
      mlp(make_feed_forward(options)),
      ls2(make_scale(options)),
      drop_path2(options.drop_path) {}

Tensor TransformerBlock::forward(const Tensor& x) const {
  const NormedSum stream = norm2.add(x, scaled(attn(norm1(x)), ls1, drop_path1));
  return stream.sum + scaled((*mlp)(stream.y), ls2, drop_path2);
}

void TransformerBlock::fields(Visitor& v) {
  v("norm1", norm1);
  v("attn", attn);
  v("ls1", ls1);
  v("drop_path1", drop_path1);
  v("norm2", norm2);
  v("mlp", mlp);
  v("ls2", ls2);
  v("drop_path2", drop_path2);
}

}  // namespace weft::nn
