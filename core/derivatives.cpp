// SPDX-License-Identifier: Apache-2.0
#include "core/derivatives.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"

namespace weft::autograd {
namespace {

/// f at x, recorded from `x` on.
struct Call {
  Tensor x, y;

  Call(const char* who, const Function& f, const Tensor& given, DerivativeOptions options) {
    WEFT_CHECK(given.defined() && given.is_floating(), who, ": expected a floating tensor, got ", given);
    x = options.create_graph && given.requires_grad() ? given : given.detach().requires_grad_();
    const NoGrad switched(true);
    y = f(x);
    WEFT_CHECK(y.defined() && y.requires_grad(), who, ": the result ", y, " does not depend on ", x);
  }
};

void check_like(const char* who, const Tensor& v, const Tensor& x) {
  WEFT_CHECK(v.defined() && v.sizes() == x.sizes() && v.dtype() == x.dtype() && v.device() == x.device(), who,
             ": expected a vector like ", x, ", got ", v);
}

/// A gradient that does not depend on anything is zero.
Tensor gradient(const Tensor& y, const Tensor& x, const Tensor& v, bool create_graph, bool retain_graph) {
  if (!y.requires_grad()) return zeros_like(x);
  const Tensor found = grad({y}, {x},
                            {.create_graph = create_graph,
                             .grad_outputs = {v},
                             .retain_graph = create_graph || retain_graph,
                             .allow_unused = true})[0];
  return found.defined() ? found : zeros_like(x);
}

Tensor finished(const Tensor& x, DerivativeOptions options) { return options.create_graph ? x : x.detach(); }

Shape joined(const Shape& a, const Shape& b) {
  Shape sizes = a;
  for (const int64_t size : b) sizes.push_back(size);
  return sizes;
}

/// The gradient of each element of y, [elements of y, sizes of x] in the sizes of y and of x.
Tensor rows_of(const Tensor& y, const Tensor& x, DerivativeOptions options) {
  std::vector<Tensor> rows;
  const Tensor flat = y.reshape({y.numel()});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    Tensor row = gradient(flat.select(0, i), x, {}, options.create_graph, true);
    rows.push_back(row.reshape({1, x.numel()}));
  }
  return rows.empty() ? Tensor::zeros(joined(y.sizes(), x.sizes()), x.dtype(), x.device())
                      : concat(rows, 0).reshape(joined(y.sizes(), x.sizes()));
}

}  // namespace

std::pair<Tensor, Tensor> vjp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options) {
  const Call call("autograd::vjp", f, x, options);
  check_like("autograd::vjp", v, call.y);
  const Tensor product = gradient(call.y, call.x, v, options.create_graph, false);
  return {finished(call.y, options), product};
}

std::pair<Tensor, Tensor> jvp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options) {
  const Call call("autograd::jvp", f, x, options);
  check_like("autograd::jvp", v, call.x);
  // w^T J is linear in w: its gradient along v is J v, whatever w is.
  const Tensor w = zeros_like(call.y).requires_grad_();
  const NoGrad switched(true);
  const Tensor rows = gradient(call.y, call.x, w, true, true);
  return {finished(call.y, options), gradient(rows, w, v, options.create_graph, false)};
}

Tensor jacobian(const Function& f, const Tensor& x, DerivativeOptions options) {
  const Call call("autograd::jacobian", f, x, options);
  const NoGrad switched(true);
  return finished(rows_of(call.y, call.x, options), options);
}

Tensor hessian(const Function& f, const Tensor& x, DerivativeOptions options) {
  const Call call("autograd::hessian", f, x, options);
  const NoGrad switched(true);
  return finished(rows_of(gradient(call.y, call.x, {}, true, true), call.x, options), options);
}

std::pair<Tensor, Tensor> hvp(const Function& f, const Tensor& x, const Tensor& v, DerivativeOptions options) {
  const Call call("autograd::hvp", f, x, options);
  check_like("autograd::hvp", v, call.x);
  const NoGrad switched(true);
  const Tensor slope = gradient(call.y, call.x, {}, true, true);
  return {finished(call.y, options), gradient(slope, call.x, v, options.create_graph, false)};
}

}  // namespace weft::autograd
