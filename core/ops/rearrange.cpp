// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rearrange.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/trace.h"

namespace weft {

Tensor flip(const Tensor& x, const std::vector<int64_t>& dims) {
  WEFT_CHECK(x.defined(), "flip: expected a tensor, got none");
  if (dims.empty()) return x;
  const OpScope scope("flip");
  Tensor y = x;
  {
    const NoGrad no_grad;  // the gradient is a flip, too: cheaper than that of any selection
    for (const int64_t dim : dims) {
      const int64_t n = x.size(dim);
      y = index_select(y, dim, Tensor::arange(n, DType::i64, x.device(), static_cast<double>(n - 1), -1));
    }
  }
  return differentiable(y, "flip", {x}, [=](const Tensor& dy) { return Grads{flip(dy, dims)}; });
}

Tensor roll(const Tensor& x, Integer shift, Integer dim) {
  WEFT_CHECK(x.defined(), "roll: expected a tensor, got none");
  const int64_t n = x.size(dim);
  const int64_t moved = n ? (shift % n + n) % n : 0;  // elements that come in at the front
  if (moved == 0) return x;
  return concat({x.slice(dim, n - moved, moved), x.slice(dim, 0, n - moved)}, dim);
}

Tensor repeat(const Tensor& x, const std::vector<int64_t>& counts) {
  WEFT_CHECK(x.defined() && static_cast<int64_t>(counts.size()) >= x.dim(),
             "repeat: expected a count for each dimension of ", x, ", got ", counts.size());
  Tensor y = x;
  while (y.dim() < static_cast<int64_t>(counts.size())) y = y.unsqueeze(0);
  for (int d = y.dim() - 1; d >= 0; --d) {
    WEFT_CHECK(counts[d] >= 0, "repeat: expected no negative count, got ", counts[d]);
    if (counts[d] == 1) continue;
    Shape sizes = y.sizes();
    int64_t before = 1, after = 1;  // [before, count, after]: a rank that does not grow with x's
    for (int k = 0; k < y.dim(); ++k) (k < d ? before : after) *= sizes[k];
    sizes[d] *= counts[d];
    y = y.reshape({before, 1, after}).expand({before, counts[d], after}).reshape(sizes);
  }
  return y;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "split: expected a tensor of at least one dimension, got ", x);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    WEFT_CHECK(size >= 0 && size <= x.size(dim) - start, "split: the sizes do not sum up to ", x.size(dim), " of ", x);
    parts.push_back(x.slice(dim, start, size));
    start += size;
  }
  WEFT_CHECK(start == x.size(dim), "split: the sizes sum up to ", start, ", expected ", x.size(dim), " of ", x);
  return parts;
}

std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "split: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(size >= 1, "split: expected parts of at least 1, got ", size);
  std::vector<int64_t> sizes;
  for (int64_t left = x.size(dim); left > 0; left -= size) sizes.push_back(std::min<int64_t>(size, left));
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "chunk: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(count >= 1, "chunk: expected at least one part, got ", count);
  return split(x, std::max<int64_t>(1, (x.size(dim) - 1) / count + 1), dim);
}

}  // namespace weft
