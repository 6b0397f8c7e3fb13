// SPDX-License-Identifier: Apache-2.0
#include "core/ops/linear.h"

#include <algorithm>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/multiply.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/unary.h"

namespace weft {
namespace {

void check_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, op, ": expected an input [..., features], got ", x);
  WEFT_CHECK(weight.defined() && weight.dim() == 2, "linear: expected a weight [out, in], got ", weight);
  WEFT_CHECK(x.size(-1) == weight.size(1), op, ": weight ", weight, " wants ", weight.size(1), " features, input ", x,
             " has ", x.size(-1), ". Was the input flattened?");
  WEFT_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), op, ": expected a bias [",
             weight.size(0), "], got ", bias);
  WEFT_CHECK(weight.device() == x.device() && (!bias.defined() || bias.device() == x.device()), op,
             ": expected tensors on one device, got input ", x, ", weight ", weight, ", bias ", bias);
}

/// y = f(x weight^T + bias); where f is something, what it is applied to is kept for the backward.
Tensor apply(const char* op, const Tensor& input, const Tensor& weight, const Tensor& input_bias,
             kernels::Activation activation) {
  const OpScope scope(op);
  check_operands(op, input, weight, input_bias);
  const Tensor x = autocast_low(input), w = autocast_low(weight), bias = autocast_low(input_bias);
  WEFT_CHECK(x.is_floating() && x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), op,
             ": expected one floating dtype, got input ", x, ", weight ", w, ", bias ", bias);
  const int64_t in = w.size(1), out = w.size(0);
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = out;
  const bool dx = wants_gradient(x), dw = wants_gradient(w), db = wants_gradient(bias);
  Tensor rows, y, pre;  // x as [M, in]; the sums as [M, out]
  {
    const NoGrad no_grad;
    rows = x.dim() == 2 ? x : x.reshape({sizes.numel() / std::max<int64_t>(out, 1), in});
    if (out == 0) return Tensor::empty(sizes, x.dtype(), x.device());
    if (activation == kernels::Activation::none) {
      y = multiply(rows, w.transpose(0, 1), bias, x.dtype());
    } else {
      y = Tensor::empty({rows.size(0), out}, x.dtype(), x.device());
      if (dx || dw || db) pre = empty_like(y);
      multiply_fused_into(y, pre, rows, w.transpose(0, 1), bias, activation);
    }
    y = y.reshape(sizes);
  }
  if (!dx && !dw && !db) return y;
  // From the gradient of the sums.
  const auto backward = [db, out, x_sizes = x.sizes(), x_dtype = input.dtype(), w_dtype = weight.dtype(),
                         bias_dtype = db ? input_bias.dtype() : DType::f32, rows = dw ? Saved(rows) : Saved(),
                         w = dx ? Saved(w) : Saved()](const Tensor& d, BackwardContext& context) {
    Grads grads(3);
    if (w) {
      const TakenActivation taken = context.take_activation(0, x_dtype);
      grads[0] = taken.saved.defined() ? multiply_backward(d, w, taken.saved, taken.f) : multiply(d, w, {}, x_dtype);
      grads[0] = grads[0].reshape(x_sizes);
    }
    if (rows) {
      const Tensor kept = rows;
      grads[1] = context.gradient_target(1, {out, kept.size(1)}, w_dtype, kept.device());
      if (db) {
        grads[2] = context.gradient_target(2, {out}, bias_dtype, kept.device());
        multiply_rows_into(grads[1], grads[2], d, kept);
      } else {
        multiply_into(grads[1], d.transpose(0, 1), kept, {});
      }
    } else if (db) {
      grads[2] = sum(d, {0});
    }
    return grads;
  };
  const auto flat = [out](const Tensor& dy) { return dy.reshape({dy.numel() / out, out}); };
  if (!pre.defined())
    return differentiable(y, op, {x, w, bias}, [backward, flat](const Tensor& dy, BackwardContext& context) {
      return backward(flat(dy), context);
    });
  return differentiable_activation(
      y, op, {x, w, bias}, activation, pre,
      [backward, flat, activation, pre = Saved(pre)](const Tensor& dy, BackwardContext& context) {
        const Tensor d = flat(dy);
        if (context.activation_is_taken()) return backward(d, context);
        const Tensor ds = empty_like(d);
        kernels::unary_backward(d.queue(), kernels::unary_of(activation), ds, d, Tensor(pre), {});
        return backward(ds, context);
      });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply("linear", x, weight, bias, kernels::Activation::none);
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu approximate) {
  return apply("linear_gelu", x, weight, bias,
               approximate == Gelu::erf ? kernels::Activation::gelu : kernels::Activation::gelu_tanh);
}

}  // namespace weft
