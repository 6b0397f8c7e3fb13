// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.h"

#include <algorithm>
#include <utility>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/linear.h"
#include "kernels/runtime/variants.h"

namespace weft::nn {
namespace {

thread_local const ScaledLinear* innermost = nullptr;

}  // namespace

ScaledLinear::ScaledLinear(const Linear& layer, const Tensor& factors)
    : layer_(&layer), factors_(factors), outer_(std::exchange(innermost, this)) {}
ScaledLinear::~ScaledLinear() { innermost = outer_; }

const Tensor* ScaledLinear::factors_of(const Linear& layer) {
  return innermost && innermost->layer_ == &layer ? &innermost->factors_ : nullptr;
}

Linear::Linear(Integer in, Integer out, LinearOptions options) {
  WEFT_CHECK(in > 0 && out > 0, "Linear: expected positive sizes, got in = ", in, ", out = ", out);
  weight = Tensor::empty({out, in});
  init_weight_(weight, options.init);
  weight.requires_grad_();
  if (!options.bias) return;
  bias = Tensor::empty({out});
  init_bias_(bias, weight, options.init);
  bias.requires_grad_();
}

bool Linear::is_in_fp8(const Tensor& x) const {
  return fp8 && x.defined() &&
         (x.dtype() == DType::bf16 || (x.dtype() == DType::f32 && autocast_dtype() == DType::bf16));
}

Tensor Linear::forward(const Tensor& x) const {
  if (is_in_fp8(x)) return linear_fp8(x, weight, bias, fp8, is_training());
  const Tensor* const factors = ScaledLinear::factors_of(*this);
  if (!factors) return linear(x, weight, bias);
  return linear(x, mul(weight, factors->reshape({-1, 1})), bias.defined() ? mul(bias, *factors) : bias);
}

bool Linear::takes_factors(const Tensor& x, const Tensor& factors) const {
  if (!x.defined() || x.dim() == 0 || !takes_factors(x.numel() / std::max<int64_t>(x.size(-1), 1), weight.size(1)))
    return false;
  // In f16 a scaled weight can be subnormal. A sharded weight may be there in 16 bits alone. A frozen weight would get
  // a gradient for the factors' sake.
  const bool is_f16 = x.dtype() == DType::f16 || autocast_dtype() == DType::f16;
  return !is_f16 && !is_in_fp8(x) && weight.raw_data() != nullptr && weight.dtype() == factors.dtype() &&
         (wants_gradient(weight) || !wants_gradient(factors)) && !kernels::takes(kernels::Variant::scaled_branches);
}

Tensor Linear::forward_gelu(const Tensor& x, Gelu approximate) const {
  return with_hooks(x, [&] {
    if (!is_in_fp8(x)) return linear_gelu(x, weight, bias, approximate);
    return linear_fp8(x, weight, bias, fp8, is_training(),
                      approximate == Gelu::erf ? kernels::Activation::gelu : kernels::Activation::gelu_tanh);
  });
}

void Linear::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
  if (!fp8) return;
  v.buffer("fp8_amaxes", fp8->amaxes);
  v.buffer("fp8_latest", fp8->latest);
  v.counter("fp8_measured", fp8->measured);
}

int64_t use_fp8(Module& module, Fp8Recipe recipe) {
  int64_t count = 0;
  for (const auto& [name, child] : module.modules()) {
    auto* const linear = dynamic_cast<Linear*>(child);
    if (linear == nullptr) continue;
    linear->fp8 = std::make_shared<Fp8Scaling>(recipe);
    for (Tensor* const state : {&linear->fp8->amaxes, &linear->fp8->latest})
      *state = state->to(linear->weight.device());
    ++count;
  }
  return count;
}

bool is_fp8_state(const std::string& name) { return name.compare(name.rfind('.') + 1, 4, "fp8_") == 0; }

int64_t Linear::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * weight.size(1); }

}  // namespace weft::nn
