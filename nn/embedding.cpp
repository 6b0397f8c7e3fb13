// SPDX-License-Identifier: Apache-2.0
#include "nn/embedding.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/linear.h"

namespace weft::nn {

Embedding::Embedding(Integer count, Integer size, EmbeddingOptions options)
    : weight(Tensor::empty({count, size})), padding(options.padding) {
  WEFT_CHECK(count > 0 && size > 0, "Embedding: expected positive sizes, got ", count, " rows of ", size);
  WEFT_CHECK(padding >= -1 && padding < count, "Embedding: expected a padding row below ", count, ", got ", padding);
  // A draw that is deferred would come after the zeros.
  const DeferredInit::Scope now(padding >= 0 ? nullptr : DeferredInit::current());
  init_normal_(weight, options.std);
  if (padding >= 0) weight.select(0, padding).zero_();
  weight.requires_grad_();
}

Tensor Embedding::forward(const Tensor& x) const {
  WEFT_CHECK(!x.is_floating(), "Embedding: expected integers, got ", x);
  const Tensor index = x.flatten();
  // FSDP may gather the rows in low precision alone; with a sum of them the model goes on in f32.
  const Tensor y =
      weight.raw_data() ? index_select(weight, 0, index) : autocast_full(index_select(autocast_low(weight), 0, index));
  if (padding >= 0 && y.requires_grad()) {
    const Tensor counts = ne(index, padding).unsqueeze(1);
    y.register_hook([counts](const Tensor& dy) { return mul(dy, counts.to(dy.dtype())); });
  }
  Shape sizes = x.sizes();
  sizes.push_back(weight.size(1));
  return y.reshape(sizes);
}

Tensor Embedding::tied_linear(const Tensor& x) const {
  return with_hooks(x, [&] { return linear(x, weight); });
}

Tensor Embedding::tied_loss(const Tensor& x, const Tensor& targets, const LinearCrossEntropyOptions& options) const {
  return with_hooks(x, [&] { return linear_cross_entropy(x, weight, targets, options); });
}

int64_t Embedding::flops(const Shape& x, const Shape& y) const {
  return x.rank() == y.rank() ? 2 * y.numel() * x[x.rank() - 1] : 0;
}

void Embedding::fields(Visitor& v) { v("weight", weight); }

EmbeddingBag::EmbeddingBag(Integer count, Integer size, EmbeddingBagOptions bag)
    : weight(Tensor::empty({count, size})), options(bag) {
  WEFT_CHECK(count > 0 && size > 0, "EmbeddingBag: expected positive sizes, got ", count, " rows of ", size);
  WEFT_CHECK(options.padding >= -1 && options.padding < count, "EmbeddingBag: expected a padding row below ", count,
             ", got ", options.padding);
  const DeferredInit::Scope now(options.padding >= 0 ? nullptr : DeferredInit::current());
  init_normal_(weight, 1);
  if (options.padding >= 0) weight.select(0, options.padding).zero_();
  weight.requires_grad_();
}

Tensor EmbeddingBag::operator()(const Tensor& x, const Tensor& offsets) const {
  return with_hooks(x, [&] { return embedding_bag(weight, x, offsets, options); });
}

}  // namespace weft::nn
