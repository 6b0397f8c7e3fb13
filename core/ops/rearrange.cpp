// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rearrange.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/trace.h"

namespace weft {

Tensor flip(const Tensor& x, const std::vector<int64_t>& dims) {
  WEFT_CHECK(x.defined(), "flip: expected a tensor, got none");
  if (dims.empty()) return x.clone();
  const OpScope scope("flip");
  std::set<int64_t> places;
  for (const int64_t dim : dims)
    WEFT_CHECK(places.insert(dim < 0 ? dim + x.dim() : dim).second, "flip: expected each dimension once, got ", dim,
               " again");
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
  if (moved == 0) return x.clone();
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
    WEFT_CHECK(y.numel() == 0 || counts[d] <= (int64_t{1} << 60) / y.numel(),
               "repeat: expected at most 2^60 elements, got more: ", counts[d], " times ", y);
    Shape sizes = y.sizes();
    int64_t before = 1, after = 1;  // [before, count, after]: a rank that does not grow with x's
    for (int k = 0; k < y.dim(); ++k) (k < d ? before : after) *= sizes[k];
    sizes[d] *= counts[d];
    y = y.reshape({before, 1, after}).expand({before, counts[d], after}).reshape(sizes);
  }
  return y.storage() == x.storage() ? y.clone() : y;
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
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "chunk: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(count >= 1, "chunk: expected at least one part, got ", count);
  if (x.size(dim) == 0) return split(x, std::vector<int64_t>(static_cast<size_t>(count), 0), dim);
  return split(x, (x.size(dim) - 1) / count + 1, dim);
}

Tensor rot90(const Tensor& x, Integer quarters, Integer from, Integer to) {
  const OpScope scope("rot90");
  WEFT_CHECK(x.defined() && x.dim() >= 2, "rot90: expected a tensor of at least two dimensions, got ", x);
  const int a = wrap_dim("rot90", from, x.dim()), b = wrap_dim("rot90", to, x.dim());
  WEFT_CHECK(a != b, "rot90: expected two dimensions, got ", from, " and ", to);
  switch ((quarters % 4 + 4) % 4) {
    case 1:
      return flip(x, {b}).transpose(a, b);
    case 2:
      return flip(x, {a, b});
    case 3:
      return flip(x.transpose(a, b), {b});
    default:
      return x;
  }
}

Tensor repeat_interleave(const Tensor& x, Integer count, Integer dim) {
  const OpScope scope("repeat_interleave");
  WEFT_CHECK(x.defined() && x.dim() >= 1 && count >= 0,
             "repeat_interleave: expected a tensor of at least one dimension and no negative count, got ", x, " and ",
             count);
  const int at = wrap_dim("repeat_interleave", dim, x.dim());
  const Tensor places = Tensor::arange(x.size(at), DType::i64, x.device()).unsqueeze(1);
  return index_select(x, at, places.expand({x.size(at), count}).flatten());
}

Tensor repeat_interleave(const Tensor& x, const Tensor& counts, Integer dim) {
  const OpScope scope("repeat_interleave");
  WEFT_CHECK(x.defined() && counts.defined() && counts.dtype() == DType::i64 && counts.dim() == 1 && x.dim() >= 1 &&
                 counts.size(0) == x.size(dim) && counts.device() == x.device(),
             "repeat_interleave: expected a count for each slice along dimension ", dim, " of ", x, ", got ", counts);
  WEFT_CHECK(!any(lt(counts, 0)), "repeat_interleave: expected no negative count");
  const int64_t n = counts.size(0);
  if (n == 0) return x;
  const Tensor ends = cumsum(counts, 0);
  const Tensor places = Tensor::arange(ends.select(0, n - 1).item<int64_t>(), DType::i64, x.device());
  return index_select(x, dim, searchsorted(ends, places, /*right=*/true));
}

Tensor linspace(double start, double end, Integer count, DType dtype, Device device) {
  WEFT_CHECK(count >= 1 && is_floating(dtype), "linspace: expected at least one number of a floating dtype, got ",
             count, " of ", dtype);
  const OpScope scope("linspace");
  const NoGrad no_grad;
  const Tensor places = Tensor::arange(count, DType::f64, device);
  const double step = count == 1 ? 0 : (end - start) / static_cast<double>(count - 1);
  // The second half counts from the end, so that it is met exactly.
  const Tensor from_end = add(mul(sub(places, count - 1), step), count == 1 ? start : end);
  return where(lt(places, static_cast<double>(count) / 2), add(mul(places, step), start), from_end).to(dtype);
}

Tensor logspace(double start, double end, Integer count, double base, DType dtype, Device device) {
  const OpScope scope("logspace");
  const NoGrad no_grad;
  WEFT_CHECK(is_floating(dtype), "logspace: expected a floating dtype, got ", dtype);
  return pow(Tensor::full({}, base, DType::f64, device), linspace(start, end, count, DType::f64, device)).to(dtype);
}

Tensor full_like(const Tensor& x, Number value) {
  WEFT_CHECK(x.defined(), "full_like: expected a tensor, got none");
  return Tensor::full(x.sizes(), value, x.dtype(), x.device());
}
Tensor ones_like(const Tensor& x) { return full_like(x, 1); }

Tensor block_diag(const std::vector<Tensor>& blocks) {
  const OpScope scope("block_diag");
  WEFT_CHECK(!blocks.empty(), "block_diag: expected at least one matrix");
  int64_t columns = 0, before = 0;
  std::vector<Tensor> matrices;
  for (const Tensor& block : blocks) {
    WEFT_CHECK(block.defined() && (block.dim() == 1 || block.dim() == 2) && block.dtype() == blocks[0].dtype() &&
                   block.device() == blocks[0].device(),
               "block_diag: expected matrices or vectors of one dtype on one device, got ", block, " beside ",
               blocks[0]);
    matrices.push_back(block.dim() == 1 ? block.unsqueeze(0) : block);
    columns += matrices.back().size(1);
  }
  for (Tensor& matrix : matrices) {
    const int64_t own = matrix.size(1);
    matrix = pad(matrix, 1, before, columns - before - own);
    before += own;
  }
  return concat(matrices);
}

Tensor tril_indices(Integer rows, Integer columns, Integer offset, Device device) {
  const OpScope scope("tril_indices");
  return nonzero(tril(Tensor::ones({rows, columns}, DType::u8, device), offset)).transpose(0, 1).contiguous();
}
Tensor triu_indices(Integer rows, Integer columns, Integer offset, Device device) {
  const OpScope scope("triu_indices");
  return nonzero(triu(Tensor::ones({rows, columns}, DType::u8, device), offset)).transpose(0, 1).contiguous();
}

Tensor eye(Integer n, DType dtype, Device device) {
  WEFT_CHECK(n >= 0, "eye: expected no negative size, got ", n);
  const OpScope scope("eye");
  const Tensor places = Tensor::arange(n, DType::i64, device);
  return eq(places, places.unsqueeze(1)).to(dtype);
}

Tensor diagonal(const Tensor& x, Integer offset) {
  WEFT_CHECK(x.defined() && x.dim() >= 2, "diagonal: expected matrices [..., R, C], got ", x);
  const OpScope scope("diagonal");
  const int64_t R = x.size(-2), C = x.size(-1), row = std::max<int64_t>(-offset, 0),
                column = std::max<int64_t>(offset, 0);
  const int64_t n = std::max<int64_t>(std::min(R - row, C - column), 0);
  return x.flatten(-2, -1).slice(-1, n == 0 ? 0 : row * C + column, n, C + 1);
}

Tensor diag_embed(const Tensor& x, Integer offset) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "diag_embed: expected vectors [..., m], got ", x);
  const OpScope scope("diag_embed");
  const int64_t n = x.size(-1) + std::abs(int64_t{offset});
  // Row i has element i, or, below the main diagonal, i + offset.
  const Tensor rows = pad(x, -1, std::max<int64_t>(-offset, 0), std::max<int64_t>(offset, 0)).unsqueeze(-1);
  const Tensor places = Tensor::arange(n, DType::i64, x.device());
  return masked_fill(rows, ne(sub(places, places.unsqueeze(1)), offset), 0);  // which keeps bool
}

Tensor diag(const Tensor& x, Integer offset) {
  WEFT_CHECK(x.defined() && (x.dim() == 1 || x.dim() == 2), "diag: expected a vector or a matrix, got ", x);
  return x.dim() == 1 ? diag_embed(x, offset) : diagonal(x, offset);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes) {
  Shape sizes;
  for (const Tensor& axis : axes) {
    WEFT_CHECK(axis.defined() && axis.dim() == 1, "meshgrid: expected vectors, got ", axis);
    sizes.push_back(axis.size(0));
  }
  std::vector<Tensor> grids;
  for (int d = 0; d < sizes.rank(); ++d) {
    Shape alone;
    for (int k = 0; k < sizes.rank(); ++k) alone.push_back(k == d ? sizes[k] : 1);
    grids.push_back(axes[static_cast<size_t>(d)].reshape(alone).expand(sizes));
  }
  return grids;
}

std::vector<Tensor> unbind(const Tensor& x, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "unbind: expected a tensor of at least one dimension, got ", x);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.size(dim); ++i) parts.push_back(x.select(dim, i));
  return parts;
}

}  // namespace weft
