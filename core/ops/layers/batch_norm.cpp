// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/batch_norm.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/unary.h"
#include "kernels/runtime/variants.h"

namespace weft {
namespace {

DType vector_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void check_vector(const char* what, const Tensor& vector, const Tensor& x) {
  if (!vector.defined()) return;
  WEFT_CHECK(vector.dim() == 1 && vector.size(0) == x.size(-1) && vector.dtype() == vector_dtype(x) &&
                 vector.device() == x.device() && vector.is_contiguous(),
             "batch_norm: expected ", what, " ", vector_dtype(x), "[", x.size(-1), "] for input ", x, ", got ", vector,
             vector.dim() == 1 && vector.size(0) != x.size(-1) ? ". Is the input NHWC?" : "");
}

struct Wanted {
  bool x, weight, bias, residual;
};

/// The gradients of a norm by fixed statistics: a scale and a shift per channel.
Grads inference_backward(Tensor dy, const Tensor& x, const Tensor& y, const Tensor& weight, const Tensor& mean,
                         const Tensor& var, double eps, bool with_relu, Wanted wanted) {
  if (with_relu && grad_enabled()) {
    dy = where(le(y.detach(), 0), 0, dy);
  } else if (with_relu) {
    const Tensor masked = empty_like(y);
    kernels::unary_backward(dy.queue(), kernels::Unary::relu, masked, dy, y, {});
    dy = masked;
  }
  const Tensor invstd = rsqrt(affine(var, 1, eps));
  const std::vector<int64_t> rows = x.dim() == 4 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0};
  const Tensor wide = dy.to(invstd.dtype());
  Grads grads(6);
  if (wanted.x) grads[0] = mul(wide, weight.defined() ? mul(weight, invstd) : invstd).to(x.dtype());
  if (wanted.weight) grads[1] = sum(mul(wide, mul(sub(x.to(invstd.dtype()), mean), invstd)), rows);
  if (wanted.bias) grads[2] = sum(wide, rows);
  if (wanted.residual) grads[3] = dy;
  return grads;
}

/// The norm by ops, with the batch's statistics, for second derivatives; without bias, residual and relu.
Tensor normalize_by_ops(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor rows = x.to(vector_dtype(x)).reshape({-1, x.size(-1)}), centred = sub(rows, mean(rows, {0}, true));
  const Tensor normed = mul(centred, rsqrt(affine(mean(square(centred), {0}, true), 1, eps)));
  return (weight.defined() ? mul(normed, weight) : normed).reshape(x.sizes()).to(x.dtype());
}

}  // namespace

void check_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                      const Tensor& running_var, const BatchNormOptions& options) {
  WEFT_CHECK(x.defined() && x.is_floating() && (x.dim() == 4 || x.dim() == 2),
             "batch_norm: expected a floating input [N, H, W, C] or [N, C], got ", x);
  WEFT_CHECK(options.training ? options.eps > 0 : options.eps >= 0, "batch_norm: expected an eps ",
             options.training ? "above 0 in training" : "of at least 0", ", got ", options.eps);
  check_vector("weight", weight, x);
  check_vector("bias", bias, x);
  check_vector("running_mean", running_mean, x);
  check_vector("running_var", running_var, x);
  WEFT_CHECK(
      !options.residual.defined() || (options.residual.sizes() == x.sizes() && options.residual.device() == x.device()),
      "batch_norm: expected a residual of the input's sizes ", x, ", got ", options.residual);
  WEFT_CHECK(!options.statistics.defined() ||
                 (options.statistics.numel() == 2 * x.size(-1) + 1 && options.statistics.dtype() == vector_dtype(x) &&
                  options.statistics.device() == x.device() && options.statistics.is_contiguous()),
             "batch_norm: expected statistics ", vector_dtype(x), "[", 2 * x.size(-1) + 1, "] for input ", x, ", got ",
             options.statistics);
  if (options.training) {
    WEFT_CHECK(running_mean.defined() == running_var.defined(),
               "batch_norm: expected both running statistics or none, got ", running_mean, " and ", running_var);
  } else {
    WEFT_CHECK(running_mean.defined() && running_var.defined(),
               "batch_norm: inference needs running_mean and running_var, got ", running_mean, " and ", running_var);
  }
}

Tensor BatchNormOptions::mask_of(const Tensor& x, const Tensor& like) const {
  const auto aligned = [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.raw_data()) % 16 == 0; };
  if (!relu || !like.defined() || x.device().kind == DeviceKind::cpu || size_of(x.dtype()) != 2 ||
      x.size(-1) % 8 != 0 || !aligned(x) || !aligned(like) || kernels::takes(kernels::Variant::whole_masks))
    return {};
  return Tensor::empty({x.numel() / x.size(-1), x.size(-1) / 8}, DType::u8, x.device());
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options) {
  const OpScope scope("batch_norm");
  check_batch_norm(input, weight, bias, running_mean, running_var, options);
  WEFT_CHECK(!options.training || input.numel() / std::max<int64_t>(input.size(-1), 1) > 1,
             "batch_norm: expected more than one value per channel when training, got ", input);
  const Tensor x = input.contiguous();
  const Tensor residual = options.residual.defined() ? options.residual.to(x.dtype()).contiguous() : Tensor();
  const kernels::BatchNormArguments arguments{options.eps, options.momentum, options.relu};
  const Tensor y = empty_like(x);
  const Wanted wanted{wants_gradient(x), wants_gradient(weight), wants_gradient(bias), wants_gradient(residual)};
  const bool recorded = wanted.x || wanted.weight || wanted.bias || wanted.residual;

  if (!options.training) {
    kernels::batch_norm_inference(y.queue(), rows_of(y), rows_of(x), running_mean, running_var, weight, bias,
                                  rows_of(residual), arguments);
    if (!recorded) return y;
    return differentiable(y, "batch_norm", {x, weight, bias, residual, running_mean, running_var},
                          [=, x = Saved(x), y = arguments.relu ? Saved(y) : Saved(), weight = Saved(weight),
                           mean = Saved(running_mean), var = Saved(running_var)](const Tensor& dy) {
                            return inference_backward(dy, x, y, weight, mean, var, arguments.eps, arguments.relu,
                                                      wanted);
                          });
  }

  const int64_t C = x.size(-1);
  const Tensor mean = Tensor::empty({C}, vector_dtype(x), x.device()), invstd = empty_like(mean);
  const bool move = running_mean.defined() && !recomputing();
  const kernels::View none = kernels::View::none();
  const Tensor mask = recorded ? options.mask_of(x, residual) : Tensor();
  const kernels::View moving_mean = move ? running_mean.view() : none, moving_var = move ? running_var.view() : none;
  if (options.statistics.defined()) {
    kernels::batch_norm_of_parts(y.queue(), rows_of(y), mean, invstd, none, moving_mean, moving_var, rows_of(x), weight,
                                 bias, rows_of(residual), options.statistics.reshape({1, 2 * C + 1}), rows_of(mask),
                                 arguments);
  } else {
    kernels::batch_norm_forward(y.queue(), rows_of(y), mean, invstd, moving_mean, moving_var, rows_of(x), weight, bias,
                                rows_of(residual), rows_of(mask), arguments);
  }
  if (move) {
    running_mean.storage()->bump_version();
    running_var.storage()->bump_version();
  }
  if (!recorded) return y;
  return differentiable(
      y, "batch_norm", {x, weight, bias, residual},
      [arguments, wanted, mask = Saved(mask), x = Saved(x), y = arguments.relu ? Saved(y) : Saved(),
       weight = Saved(weight), bias = arguments.relu && !residual.defined() ? Saved(bias) : Saved(), mean = Saved(mean),
       invstd = Saved(invstd)](const Tensor& gradient, BackwardContext& context) {
        if (grad_enabled()) {
          const Tensor masked = arguments.relu ? where(le(y.get().detach(), 0), 0, gradient) : gradient;
          Grads grads = gradients_by_ops([&](const auto& in) { return normalize_by_ops(in[0], in[1], arguments.eps); },
                                         {x, weight}, masked, context);
          const Tensor sums = masked.to(mean.dtype()).reshape({-1, mean.sizes()[0]});
          grads.push_back(wanted.bias ? sum(sums, {0}) : Tensor());
          grads.push_back(wanted.residual ? masked : Tensor());
          return grads;
        }
        const Tensor dy = gradient.contiguous(), input_x = x;
        const Tensor dx = empty_like(input_x);
        const auto vector = [&](size_t i) {
          return context.gradient_target(i, mean.sizes(), mean.dtype(), dy.device());
        };
        Grads grads{dx, wanted.weight ? vector(1) : Tensor(), wanted.bias ? vector(2) : Tensor(),
                    wanted.residual && arguments.relu ? empty_like(input_x) : Tensor()};
        kernels::batch_norm_backward(dy.queue(), rows_of(dx), rows_of(grads[3]), grads[1], grads[2], rows_of(dy),
                                     rows_of(input_x), rows_of(mask ? mask.get() : y.get()), weight, bias, mean, invstd,
                                     arguments);
        if (wanted.residual && !arguments.relu) grads[3] = dy;
        return grads;
      });
}

}  // namespace weft
