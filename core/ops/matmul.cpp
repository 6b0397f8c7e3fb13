// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/multiply.h"
#include "core/trace.h"

namespace weft {
namespace {

/// One rank (2 or 3), equal batches. The gradients come in the dtypes that a and b had before autocast.
Tensor product(const Tensor& a, const Tensor& b, DType da_dtype, DType db_dtype) {
  const Tensor y = multiply(a, b, {}, a.dtype(), true);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(
      y, "matmul", {a, b},
      [da_dtype, db_dtype, a = db ? Saved(a) : Saved(), b = da ? Saved(b) : Saved()](const Tensor& dy) {
        Grads grads(2);
        if (grad_enabled()) {
          if (b) grads[0] = product(dy, b.get().transpose(-2, -1), dy.dtype(), dy.dtype());
          if (a) grads[1] = product(a.get().transpose(-2, -1), dy, dy.dtype(), dy.dtype());
          return grads;
        }
        if (b) grads[0] = multiply(dy, b.get().transpose(-2, -1), {}, da_dtype);
        if (a) grads[1] = multiply(a.get().transpose(-2, -1), dy, {}, db_dtype);
        return grads;
      });
}

Shape without_last(const Shape& sizes, int count) {
  Shape result;
  for (int d = 0; d + count < sizes.rank(); ++d) result.push_back(sizes[d]);
  return result;
}

/// `batch` dimensions followed by the last two of x, as one batch dimension.
Tensor batched(const Tensor& x, Shape batch) {
  const int64_t count = batch.numel(), rows = x.size(-2), columns = x.size(-1);
  batch.push_back(rows);
  batch.push_back(columns);
  return x.expand(batch).reshape({count, rows, columns});
}

}  // namespace

Tensor matmul(const Tensor& left, const Tensor& right) {
  const OpScope scope("matmul");
  WEFT_CHECK(left.defined() && right.defined() && left.dim() >= 1 && right.dim() >= 1,
             "matmul: expected two tensors of at least one dimension, got ", left, " and ", right);
  WEFT_CHECK(left.device() == right.device(), "matmul: expected tensors on one device, got ", left, " and ", right);
  Tensor a = autocast_low(left), b = autocast_low(right);
  WEFT_CHECK(a.dtype() == b.dtype() && a.is_floating(), "matmul: expected one floating dtype, got ", a, " and ", b,
             a.is_floating() || b.is_floating() ? ". Convert one" : ". Convert both", " with to(dtype)");
  const DType da = left.dtype(), db = right.dtype();
  if (a.dim() == 1) return matmul(a.unsqueeze(0), b).squeeze(b.dim() == 1 ? 0 : -2);
  if (b.dim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  WEFT_CHECK(a.size(-1) == b.size(-2), "matmul: columns of the left ", left, " are ", a.size(-1),
             ", rows of the right ", right, " are ", b.size(-2));
  if (a.dim() == 2 && b.dim() == 2) return product(a, b, da, db);
  Shape sizes = a.sizes();
  sizes[a.dim() - 1] = b.size(-1);
  if (b.dim() == 2) {
    const int64_t rows = without_last(a.sizes(), 1).numel();
    return product(a.reshape({rows, a.size(-1)}), b, da, db).reshape(sizes);
  }
  const Shape batch = broadcast_shapes("matmul", without_last(a.sizes(), 2), without_last(b.sizes(), 2));
  sizes = batch;
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return product(batched(a, batch), batched(b, batch), da, db).reshape(sizes);
}

}  // namespace weft
