// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/linear.h"

#include <algorithm>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/copy.h"
#include "core/ops/layers/linear_fp8.h"
#include "core/ops/matmul.h"
#include "core/ops/multiply.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/fp8.h"
#include "kernels/contracts/reduce.h"
#include "kernels/contracts/unary.h"

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

/// y = f(x weight^T + bias); if there is an f, its argument is kept for the backward.
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
      y = multiply(rows, w.transpose(0, 1), bias, x.dtype(), true);
    } else {
      y = Tensor::empty({rows.size(0), out}, x.dtype(), x.device());
      if (dx || dw || db) pre = empty_like(y);
      multiply_fused_into(y, pre, rows, w.transpose(0, 1), bias, activation);
    }
    y = y.reshape(sizes);
  }
  if (!dx && !dw && !db) return y;
  // From the gradient of the sums.
  const auto backward = [db, out, x_sizes = x.sizes(), x_dtype = gradient_dtype(x), w_dtype = weight.dtype(),
                         bias_dtype = db ? input_bias.dtype() : DType::f32, rows = dw ? Saved(rows, x) : Saved(),
                         w = dx ? Saved(w) : Saved()](const Tensor& d, BackwardContext& context) {
    Grads grads(3);
    if (grad_enabled()) {
      if (w && context.wants(0)) grads[0] = matmul(d, w).reshape(x_sizes);
      if (rows && context.wants(1)) grads[1] = matmul(d.transpose(0, 1), rows);
      if (db) grads[2] = sum(d, {0});
      return grads;
    }
    if (w && context.wants(0)) {
      const TakenActivation taken = context.take_activation(0, x_dtype);
      grads[0] = taken.saved.defined() ? multiply_backward(d, w, taken.saved, taken.f) : multiply(d, w, {}, x_dtype);
      grads[0] = grads[0].reshape(x_sizes);
    }
    if (rows && context.wants(1)) {
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
      [op, backward, flat, activation, pre, x_sizes = x.sizes(), rows_sizes = rows.sizes(), w_sizes = w.sizes(),
       rows = dw ? Saved(rows, x) : Saved(), w = dx ? Saved(w) : Saved()](const Tensor& dy, BackwardContext& context) {
        const Tensor d = flat(dy);
        if (grad_enabled()) {  // the sums are there: of inputs that were not saved their history is enough
          const auto history = [&](size_t i, const Shape& of_input) {
            return context.history(i, of_input, d.dtype(), d.device());
          };
          Grads grads = gradients_by_ops(
              [&](const std::vector<Tensor>& of) {
                return unary(op, kernels::unary_of(activation), with_history_of(linear(of[0], of[1], of[2]), pre));
              },
              {rows ? rows.get() : history(0, rows_sizes), w ? w.get() : history(1, w_sizes), history(2, {w_sizes[0]})},
              d, context);
          if (grads[0].defined()) grads[0] = grads[0].reshape(x_sizes);
          return grads;
        }
        if (context.activation_is_taken()) return backward(d, context);
        const Tensor ds = empty_like(d);
        kernels::unary_backward(d.queue(), kernels::unary_of(activation), ds, d, pre, {});
        return backward(ds, context);
      });
}

// Fp8Scaling's tensors.
constexpr int64_t kInput = 0, kWeight = 1, kGradient = 2;

Tensor part(const Tensor& three, int64_t which) { return three.slice(0, which, 1); }

void measure(const Tensor& amax, const Tensor& x) {
  kernels::fp8_quantize(x.queue(), {}, {}, amax, x, {}, kernels::Fp8::e4m3);
}

/// The codes of a matrix and of its transpose, each undefined if not requested.
struct Codes {
  Tensor across, down;
};

Codes quantize(const Tensor& x, kernels::Fp8 format, const Tensor& scale, const Tensor& amax, bool across, bool down) {
  const auto codes = [&](int64_t rows, int64_t columns) {
    return Tensor::empty({rows, kernels::fp8_pitch(columns)}, DType::u8, x.device()).slice(1, 0, columns);
  };
  Codes made;
  if (across) made.across = codes(x.size(0), x.size(1));
  if (down) made.down = codes(x.size(1), x.size(0));
  kernels::fp8_quantize(x.queue(), made.across, made.down, amax, x, scale, format);
  return made;
}

/// The scales of a forward of these matrices.
Tensor scales_of(Fp8Scaling& scaling, const Tensor& rows, const Tensor& w, bool moves_on) {
  const int both = 1 << kInput | 1 << kWeight;
  const bool first = (scaling.measured & both) != both;
  if (!moves_on && !first && scaling.scale.defined() && scaling.scale.device() == rows.device()) return scaling.scale;
  const Tensor scale = Tensor::empty({3}, DType::f32, rows.device());
  // A first forward that is not to be recorded measures aside.
  const Tensor latest = moves_on ? scaling.latest : Tensor::zeros({3}, DType::f32, rows.device());
  if (first) measure(part(latest, kInput), rows), measure(part(latest, kWeight), w);
  if (moves_on) scaling.measured |= both;
  const kernels::Fp8ScaleArguments arguments{.margin = scaling.recipe.margin, .gradients = 1};
  if (moves_on)
    kernels::fp8_update_scale(rows.queue(), scale, scaling.amaxes, latest, arguments);
  else
    kernels::fp8_update_scale(rows.queue(), scale, first ? latest.reshape({3, 1}) : scaling.amaxes, {}, arguments);
  if (moves_on || !first) scaling.scale = scale;
  return scale;
}

}  // namespace

Fp8Scaling::Fp8Scaling(Fp8Recipe given) : recipe(given) {
  WEFT_CHECK(recipe.history >= 1, "fp8: expected a history of at least one step, got ", recipe.history);
  amaxes = Tensor::zeros({3, recipe.history});
  latest = Tensor::zeros({3});
}

Tensor linear_fp8(const Tensor& input, const Tensor& weight, const Tensor& input_bias,
                  const std::shared_ptr<Fp8Scaling>& scaling, bool records, kernels::Activation activation) {
  constexpr const char* kOp = "linear_fp8";
  const OpScope scope(kOp);
  check_operands(kOp, input, weight, input_bias);
  const Tensor x = autocast_low(input), w = autocast_low(weight), bias = autocast_low(input_bias);
  const auto fits = [](const Tensor& t) { return t.dtype() == DType::bf16; };
  WEFT_CHECK(fits(x) && fits(w) && (!bias.defined() || fits(bias)), kOp,
             ": expected bf16, under Autocast or as it is, got input ", x, ", weight ", w, ", bias ", bias);
  WEFT_CHECK(scaling->amaxes.device() == x.device(), kOp, ": its scaling is on ", scaling->amaxes.device(), ", input ",
             x, ". Move the model after use_fp8(), or call that again");
  const int64_t in = w.size(1), out = w.size(0);
  if (x.numel() == 0 || out == 0) return apply(kOp, input, weight, input_bias, activation);
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = out;
  const bool dx = wants_gradient(x), dw = wants_gradient(w), db = wants_gradient(bias);
  const bool moves_on = records && !recomputing();
  Tensor y, pre, scale;
  Codes of_x, of_w;
  {
    const NoGrad no_grad;
    for (Tensor* const state : {&scaling->amaxes, &scaling->latest})
      if (state->dtype() != DType::f32) state->set_data(state->to(DType::f32));  // Module::to(DType)
    const Tensor rows = x.reshape({sizes.numel() / out, in}).contiguous(), weights = w.contiguous();
    scale = scales_of(*scaling, rows, weights, moves_on);
    const auto quantized = [&](const Tensor& matrix, int64_t which, bool down) {
      return quantize(matrix, kernels::Fp8::e4m3, part(scale, which),
                      moves_on ? part(scaling->latest, which) : Tensor(), true, down);
    };
    of_x = quantized(rows, kInput, dw);
    of_w = quantized(weights, kWeight, dx);
    y = Tensor::empty({rows.size(0), out}, DType::bf16, x.device());
    if (activation != kernels::Activation::none && (dx || dw || db)) pre = empty_like(y);
    kernels::fp8_matmul(y.queue(), y, pre, of_x.across, of_w.across, bias, part(scale, kInput), part(scale, kWeight),
                        {.activation = activation});
    y = y.reshape(sizes);
  }
  return differentiable(
      y, kOp, {x, w, bias},
      [db, in, out, records, activation, scaling, scale, x_sizes = x.sizes(), x_dtype = gradient_dtype(x),
       w_dtype = weight.dtype(), bias_dtype = db ? input_bias.dtype() : DType::f32,
       pre = pre.defined() ? Saved(pre) : Saved(), x_down = dw ? Saved(of_x.down) : Saved(),
       w_down = dx ? Saved(of_w.down) : Saved()](const Tensor& dy, BackwardContext& context) {
        refuse_create_graph(kOp);
        Grads grads(3);
        Tensor d = dy.reshape({dy.numel() / out, out}).contiguous();
        if (pre) {
          const Tensor ds = empty_like(d);
          kernels::unary_backward(d.queue(), kernels::unary_of(activation), ds, d, Tensor(pre), {});
          d = ds;
        }
        const Tensor latest = records ? part(scaling->latest, kGradient) : Tensor(), unit = part(scale, kGradient);
        if (const int bit = 1 << kGradient; (scaling->measured & bit) == 0) {
          const Tensor aside = records ? latest : Tensor::zeros({1}, DType::f32, d.device());
          measure(aside, d);
          kernels::fp8_update_scale(d.queue(), unit, aside.reshape({1, 1}), {},
                                    {.margin = scaling->recipe.margin, .gradients = 1});
          if (records) scaling->measured |= bit;
        }
        const Codes of_d =
            quantize(d, kernels::Fp8::e5m2, unit, latest, static_cast<bool>(w_down), static_cast<bool>(x_down));
        const auto product = [&](const Tensor& to, const Tensor& a, const Tensor& b, int64_t which) {
          kernels::fp8_matmul(to.queue(), to, {}, a, b, {}, unit, part(scale, which), {.a = kernels::Fp8::e5m2});
        };
        if (w_down) {
          const Tensor to = Tensor::empty({d.size(0), in}, x_dtype, d.device());
          product(to, of_d.across, w_down, kWeight);
          grads[0] = to.reshape(x_sizes);
        }
        if (x_down) {
          grads[1] = context.gradient_target(1, {out, in}, w_dtype, d.device());
          product(grads[1], of_d.down, x_down, kInput);
        }
        if (db) {
          grads[2] = context.gradient_target(2, {out}, bias_dtype, d.device());
          kernels::reduce(d.queue(), kernels::Reduce::sum, grads[2].reshape({1, out}), d);
        }
        return grads;
      });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply("linear", x, weight, bias, kernels::Activation::none);
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu approximate) {
  return apply("linear_gelu", x, weight, bias,
               approximate == Gelu::erf ? kernels::Activation::gelu : kernels::Activation::gelu_tanh);
}

}  // namespace weft
