// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "nn/module.h"

namespace weft::nn {

struct SpectralNormOptions {
  int64_t iterations = 1;  ///< the power method's, in each forward of training
  double eps = 1e-12;      ///< the least length by which a vector is divided
};

/// A layer (Linear, a convolution that is not transposed) whose weight is divided by its largest singular value, as a
/// matrix [out, …] (Miyato et al. 2018). Names are those of PyTorch's torch.nn.utils.spectral_norm: bias, weight_orig,
/// and the buffers weight_u and weight_v, the singular vectors as far as the power method has come.
///   auto conv = std::make_shared<SpectralNorm<Conv2d>>(std::make_shared<Conv2d>(3, 8, Size2d{3, 3}));
template <class Layer>
struct SpectralNorm : Module {
  Tensor weight_orig, weight_u, weight_v;
  SpectralNormOptions options;

  explicit SpectralNorm(std::shared_ptr<Layer> given, SpectralNormOptions how = {})
      : options(how), layer_(std::move(given)) {
    WEFT_CHECK(options.iterations >= 1, "SpectralNorm: expected at least one iteration, got ", options.iterations);
    WEFT_CHECK(layer_ && layer_->weight.defined(), "SpectralNorm: expected a layer with a weight, got ",
               layer_ ? layer_->kind() + " without one" : "null");
    const NoGrad no_grad;
    weight_orig = layer_->weight.detach().clone();
    const Tensor w = matrix();
    weight_u = unit(normal({w.size(0)}));
    weight_v = unit(normal({w.size(1)}));
    weight_orig.requires_grad_();
    layer_->weight = {};
  }
  Tensor forward(const Tensor& x) const override {
    layer_->weight = normed();
    Tensor y = layer_->forward(x);
    layer_->weight = {};
    return y;
  }
  void fields(Visitor& v) override {
    v("bias", layer_->bias);
    v("weight_orig", weight_orig, weight_orig.dim() > 2 ? Layout::ohwi : Layout::as_stored);
    v.buffer("weight_u", weight_u);
    v.buffer("weight_v", weight_v);
  }

 private:
  /// The weight over its largest singular value, which Autocast does not round to 16 bits.
  Tensor normed() const {
    const Autocast full(DType::f32);
    const Tensor w = matrix();
    if (is_training() && !recomputing()) {
      const NoGrad no_grad;
      for (int64_t i = 0; i < options.iterations; ++i) {
        weight_v.copy_(unit(matmul(weight_u, w)));
        weight_u.copy_(unit(matmul(w, weight_v)));
      }
    }
    const Tensor u = weight_u.clone(), v = weight_v.clone();  // the next forward changes both
    return div(weight_orig, sum(mul(u, matmul(w, v))));
  }
  /// The weight [out, …] with PyTorch's order of columns: channels first.
  Tensor matrix() const {
    Shape order;
    for (int d = 0; d < weight_orig.dim(); ++d) order.push_back(d == 0 ? 0 : d == 1 ? weight_orig.dim() - 1 : d - 1);
    return weight_orig.permute(order).reshape({weight_orig.size(0), -1});
  }
  Tensor unit(const Tensor& x) const { return normalize(x, 0, options.eps); }

  std::shared_ptr<Layer> layer_;  // its weight is computed again in each forward
};

}  // namespace weft::nn
