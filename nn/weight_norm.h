// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/autograd.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/reduce.h"
#include "nn/module.h"

namespace weft::nn {

/// A layer (Linear, a convolution) whose weight is weight_norm(weight_v, weight_g): its length for each output trains
/// apart from its direction (Salimans and Kingma 2016). The layer begins as it was given; names are those of PyTorch's
/// torch.nn.utils.weight_norm: bias, weight_g, weight_v.
///   auto conv = std::make_shared<WeightNorm<Conv2d>>(std::make_shared<Conv2d>(3, 8, Size2d{3, 3}));
template <class Layer>
struct WeightNorm : Module {
  Tensor weight_g, weight_v;

  explicit WeightNorm(std::shared_ptr<Layer> given) : layer_(std::move(given)) {
    WEFT_CHECK(layer_ && layer_->weight.defined(), "WeightNorm: expected a layer with a weight, got ",
               layer_ ? layer_->kind() + " without one" : "null");
    const NoGrad no_grad;
    weight_v = layer_->weight.detach().clone();
    Shape lengths;
    std::vector<int64_t> dims;
    for (int d = 0; d < weight_v.dim(); ++d) {
      lengths.push_back(d == 0 ? weight_v.size(0) : 1);
      if (d > 0) dims.push_back(d);
    }
    weight_g = norm(weight_v, dims, true).reshape(lengths);
    weight_v.requires_grad_();
    weight_g.requires_grad_();
    layer_->weight = {};
  }
  Tensor forward(const Tensor& x) const override {
    layer_->weight = weight_norm(weight_v, weight_g);
    Tensor y = layer_->forward(x);
    layer_->weight = {};
    return y;
  }
  void fields(Visitor& v) override {
    const Layout layout = weight_v.dim() > 2 ? Layout::ohwi : Layout::as_stored;
    v("bias", layer_->bias);
    v("weight_g", weight_g, layout);
    v("weight_v", weight_v, layout);
  }

 private:
  std::shared_ptr<Layer> layer_;  // its weight is computed again in each forward
};

}  // namespace weft::nn
