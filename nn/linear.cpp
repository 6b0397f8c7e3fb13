// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.h"

#include "core/autocast.h"
#include "core/ops/layers/linear.h"

namespace weft::nn {

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
  return is_in_fp8(x) ? linear_fp8(x, weight, bias, fp8, is_training()) : linear(x, weight, bias);
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
