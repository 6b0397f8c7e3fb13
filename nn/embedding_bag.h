// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/embedding_bag.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

/// embedding_bag() with a table of `count` rows of `size` numbers, which begin normal, as PyTorch's do.
struct EmbeddingBag : Module {
  Tensor weight;
  EmbeddingBagOptions options;

  EmbeddingBag(int64_t count, int64_t size, EmbeddingBagOptions bag = {})
      : weight(Tensor::empty({count, size})), options(bag) {
    WEFT_CHECK(count > 0 && size > 0, "EmbeddingBag: expected positive sizes, got ", count, " rows of ", size);
    init_normal_(weight, 1);
    if (options.padding >= 0) weight.select(0, options.padding).zero_();
    weight.requires_grad_();
  }
  /// x [bags, length], or [n] with the offsets of the bags.
  Tensor forward(const Tensor& x) const override { return embedding_bag(weight, x, options); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& offsets) const {
    return with_hooks(x, [&] { return embedding_bag(weight, x, offsets, options); });
  }
  void fields(Visitor& v) override { v("weight", weight); }
};

}  // namespace weft::nn
