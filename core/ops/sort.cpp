// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sort.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/index.h"
#include "kernels/sort.h"

namespace weft {
namespace {

/// dy's elements where they stood in a tensor of these sizes, zero elsewhere. `indices`: along the last dimension, each
/// position of a row at most once.
Tensor put_back(const Tensor& dy, const Tensor& indices, const Shape& sizes) {
  const Tensor dx = Tensor::zeros(sizes, dy.dtype(), dy.device());
  if (dy.numel() == 0) return dx;
  const int64_t n = sizes[sizes.rank() - 1], rows = sizes.numel() / n;
  const Tensor begins = Tensor::arange(rows, DType::i64, dy.device(), 0, static_cast<double>(n)).unsqueeze(1);
  const Tensor positions = add(indices.reshape({rows, indices.size(-1)}), begins).flatten();
  kernels::index_put(dx.queue(), dx.flatten(), dy.contiguous().flatten(), positions);
  return dx;
}

/// The first k of the order; -1: all.
Sorted first(const char* op, const Tensor& x, int64_t k, int64_t dim, bool descending) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, op, ": expected a tensor of at least one dimension, got ", x);
  const OpScope scope(op);
  const int at = wrap_dim(op, dim, x.dim());
  WEFT_CHECK(k >= -1 && k <= x.size(at), op, ": expected k from 0 to ", x.size(at), " for dimension ", dim, " of ", x,
             ", got ", k);
  Sorted sorted;
  Shape sizes;  // of x with the dimension at the end
  {
    const NoGrad no_grad;
    const Tensor rows = x.transpose(at, -1).contiguous();
    sizes = rows.sizes();
    Shape kept = sizes;
    kept[x.dim() - 1] = k < 0 ? x.size(at) : k;
    sorted = {Tensor::empty(kept, x.dtype(), x.device()), Tensor::empty(kept, DType::i64, x.device())};
    kernels::sort(x.queue(), sorted.values, sorted.indices, rows, descending);
  }
  const Tensor indices = sorted.indices;
  sorted = {sorted.values.transpose(at, -1), sorted.indices.transpose(at, -1)};
  if (!wants_gradient(x)) return sorted;
  sorted.values = differentiable(sorted.values, op, {x}, [=, indices = Saved(indices)](const Tensor& dy) {
    return Grads{put_back(dy.transpose(at, -1), indices, sizes).transpose(at, -1)};
  });
  return sorted;
}

}  // namespace

Sorted sort(const Tensor& x, Integer dim, bool descending) { return first("sort", x, -1, dim, descending); }

Tensor argsort(const Tensor& x, Integer dim, bool descending) {
  const NoGrad no_grad;
  return first("argsort", x, -1, dim, descending).indices;
}

Sorted topk(const Tensor& x, Integer k, Integer dim, bool largest) {
  WEFT_CHECK(k >= 0, "topk: expected k of at least 0, got ", k);
  return first("topk", x, k, dim, largest);
}

}  // namespace weft
