// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/trace.h"
#include "kernels/index.h"

namespace weft {

Tensor gather(const Tensor& input, int64_t dim, const Tensor& where) {
  const OpScope scope("gather");
  WEFT_CHECK(input.defined() && input.dim() >= 1, "gather: expected a tensor of at least one dimension, got ", input);
  const int at = wrap_dim("gather", dim, input.dim());
  WEFT_CHECK(where.defined() && where.dim() == input.dim() && !where.is_floating() && where.dtype() != DType::boolean,
             "gather: expected an i64 index of ", input.dim(), " dimensions for ", input, ", got ", where);
  const Shape sizes = where.sizes();
  for (int d = 0; d < input.dim(); ++d)
    WEFT_CHECK(d == at || sizes[d] == input.size(d), "gather: index ", where, " and input ", input,
               " may differ in dimension ", dim, " only");
  WEFT_CHECK(where.device() == input.device(), "gather: expected tensors on one device, got ", input, " and ", where);
  const Tensor x = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::gather(y.queue(), y, x, index, at);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "gather", {x}, [at, index = Saved(index), x_sizes = x.sizes()](const Tensor& dy) {
    const Tensor dx = Tensor::empty(x_sizes, dy.dtype(), dy.device());
    kernels::gather_backward(dx.queue(), dx, dy.contiguous(), index, at);
    return Grads{dx};
  });
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& where, const Tensor& input) {
  const OpScope scope("scatter_add");
  WEFT_CHECK(x.defined() && x.dim() >= 1 && x.is_floating(),
             "scatter_add: expected a floating tensor of at least one dimension, got ", x);
  const int at = wrap_dim("scatter_add", dim, x.dim());
  WEFT_CHECK(where.defined() && input.defined() && !where.is_floating() && where.dtype() != DType::boolean &&
                 where.sizes() == input.sizes() && where.dim() == x.dim(),
             "scatter_add: expected an i64 index of the source's sizes and of ", x.dim(), " dimensions, got index ",
             where, " and source ", input);
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(d == at || where.size(d) == x.size(d), "scatter_add: source ", input, " and ", x,
               " may differ in dimension ", dim, " only");
  WEFT_CHECK(x.dtype() == input.dtype() && x.device() == input.device() && x.device() == where.device(),
             "scatter_add: expected one dtype and one device, got ", x, ", index ", where, ", source ", input);
  const Tensor source = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor sums = Tensor::empty(x.sizes(), x.dtype(), x.device());
  kernels::gather_backward(sums.queue(), sums, source, index, at);
  if (!wants_gradient(source)) return add(x, sums);
  return add(x, differentiable(sums, "scatter_add", {source},
                               [at, index = Saved(index)](const Tensor& dy) { return Grads{gather(dy, at, index)}; }));
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& where) {
  const OpScope scope("index_select");
  WEFT_CHECK(input.defined() && input.dim() >= 1, "index_select: expected a tensor of at least one dimension, got ",
             input);
  const int at = wrap_dim("index_select", dim, input.dim());
  WEFT_CHECK(where.defined() && where.dim() == 1 && !where.is_floating() && where.dtype() != DType::boolean,
             "index_select: expected an index i64[n], got ", where);
  Shape sizes = input.sizes();
  sizes[at] = where.size(0);
  WEFT_CHECK(where.device() == input.device(), "index_select: expected tensors on one device, got ", input, " and ",
             where);
  const Tensor x = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::index_select(y.queue(), y, x, index, at);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "index_select", {x}, [at, index = Saved(index), x_sizes = x.sizes()](const Tensor& dy) {
    const Tensor dx = Tensor::empty(x_sizes, dy.dtype(), dy.device());
    kernels::index_select_backward(dx.queue(), dx, dy.contiguous(), index, at);
    return Grads{dx};
  });
}

Tensor one_hot(const Tensor& labels, int64_t classes, DType dtype) {
  WEFT_CHECK(labels.defined() && !labels.is_floating() && labels.dtype() != DType::boolean,
             "one_hot: expected integer labels, got ", labels);
  WEFT_CHECK(classes > 0, "one_hot: expected at least one class, got ", classes);
  if (labels.device().kind == DeviceKind::cpu)
    for (const int64_t label : labels.to_vector<int64_t>())
      WEFT_CHECK(label >= 0 && label < classes, "one_hot: expected labels from 0 to ", classes - 1, ", got ", label);
  return eq(labels.unsqueeze(-1), Tensor::arange(classes, labels.dtype(), labels.device())).to(dtype);
}

}  // namespace weft
