// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/layers/losses.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

struct EmbeddingOptions {
  double std = 1;        ///< standard deviation of the rows' initial values
  int64_t padding = -1;  ///< the row of this number is 0 at first and gets no gradient; -1: none
};

/// y [..., size] = the rows of weight [count, size] at the integers x [...]. Errors: an integer outside of the table
/// (on the CPU; NaN on other devices).
struct Embedding : Module {
  Tensor weight;
  int64_t padding;  ///< EmbeddingOptions::padding

  Embedding(Integer count, Integer size, EmbeddingOptions options = {});
  /// With these rows, a parameter.
  explicit Embedding(Tensor rows) : weight(std::move(rows)), padding(-1) {}
  Tensor forward(const Tensor& x) const override;
  /// x [..., size] weight^T, [..., count]: an output layer with the weight of this table (Press and Wolf 2017). The
  /// module is called a second time by it: hooks see x, and sharding gathers the weight for it.
  virtual Tensor tied_linear(const Tensor& x) const;
  /// cross_entropy(tied_linear(x), targets) without holding all logits.
  virtual Tensor tied_loss(const Tensor& x, const Tensor& targets, const LinearCrossEntropyOptions& options = {}) const;
  void fields(Visitor& v) override;
  /// The product of tied_linear() counts; rows cost none.
  int64_t flops(const Shape& x, const Shape& y) const override;
};

/// embedding_bag() with a table of `count` rows of `size` numbers, which begin normal, as PyTorch's do.
struct EmbeddingBag : Module {
  Tensor weight;
  EmbeddingBagOptions options;

  EmbeddingBag(Integer count, Integer size, EmbeddingBagOptions bag = {});
  /// x [bags, length], or [n] with the offsets of the bags.
  Tensor forward(const Tensor& x) const override { return embedding_bag(weight, x, options); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& offsets) const;
  void fields(Visitor& v) override { v("weight", weight); }
};

}  // namespace weft::nn
