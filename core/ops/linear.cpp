// SPDX-License-Identifier: Apache-2.0
#include "core/ops/linear.h"

#include <algorithm>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/gradient_target.h"
#include "core/ops/multiply.h"
#include "core/ops/sum.h"
#include "core/trace.h"

namespace weft {
namespace {

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "linear: expected an input [..., features], got ", x);
  WEFT_CHECK(weight.defined() && weight.dim() == 2, "linear: expected a weight [out, in], got ", weight);
  WEFT_CHECK(x.size(-1) == weight.size(1), "linear: weight ", weight, " wants ", weight.size(1), " features, input ", x,
             " has ", x.size(-1), ". Was the input flattened?");
  WEFT_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "linear: expected a bias [",
             weight.size(0), "], got ", bias);
  WEFT_CHECK(weight.device() == x.device() && (!bias.defined() || bias.device() == x.device()),
             "linear: expected tensors on one device, got input ", x, ", weight ", weight, ", bias ", bias);
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& input_bias) {
  const OpScope scope("linear");
  check(input, weight, input_bias);
  const Tensor x = autocast_low(input), w = autocast_low(weight), bias = autocast_low(input_bias);
  WEFT_CHECK(x.is_floating() && x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
             "linear: expected one floating dtype, got input ", x, ", weight ", w, ", bias ", bias);
  const int64_t in = w.size(1), out = w.size(0);
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = out;
  Tensor rows, y;  // x as [M, in]
  {
    const NoGrad no_grad;
    rows = x.dim() == 2 ? x : x.reshape({sizes.numel() / std::max<int64_t>(out, 1), in});
    if (out == 0) return Tensor::empty(sizes, x.dtype(), x.device());
    y = multiply(rows, w.transpose(0, 1), bias, x.dtype()).reshape(sizes);
  }
  const bool dx = wants_gradient(x), dw = wants_gradient(w), db = wants_gradient(bias);
  if (!dx && !dw && !db) return y;
  return differentiable(y, "linear", {x, w, bias},
                        [db, out, x_sizes = x.sizes(), x_dtype = input.dtype(), w_dtype = weight.dtype(),
                         rows = dw ? Saved(rows) : Saved(), w = dx ? Saved(w) : Saved()](const Tensor& dy) {
                          const Tensor d = dy.reshape({dy.numel() / out, out});
                          Grads grads(3);
                          if (w) grads[0] = multiply(d, w, {}, x_dtype).reshape(x_sizes);
                          if (rows) {
                            const Tensor kept = rows;
                            grads[1] = gradient_target(1, {out, kept.size(1)}, w_dtype, kept.device());
                            multiply_into(grads[1], d.transpose(0, 1), kept, {});
                          }
                          if (db) grads[2] = sum(d, {0});
                          return grads;
                        });
}

}  // namespace weft
