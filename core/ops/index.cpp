// SPDX-License-Identifier: Apache-2.0
#include "core/ops/index.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/trace.h"
#include "kernels/contracts/index.h"

namespace weft {
namespace {

/// The view that numbers, slices and new axes make of x, and the positions that tensors choose from its dimensions.
struct Chosen {
  Tensor view;
  std::vector<Tensor> positions;  ///< for each dimension, undefined where all of it is meant
};

bool is_mask(const Index& part) {
  const Tensor* tensor = std::get_if<Tensor>(&part);
  return tensor != nullptr && tensor->defined() && tensor->dtype() == DType::boolean;
}

/// How many dimensions of x a part stands for.
int64_t dimensions_of(const Index& part) {
  if (is_mask(part)) return std::get<Tensor>(part).dim();
  return std::holds_alternative<Ellipsis>(part) || std::holds_alternative<NewAxis>(part) ? 0 : 1;
}

Tensor sliced(const Tensor& x, int64_t dim, const Slice& slice) {
  WEFT_CHECK(slice.step >= 1, "index: expected a step of at least 1, got ", slice.step);
  const int64_t n = x.size(dim);
  const auto end = [n](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
  const int64_t start = end(slice.start.value_or(0)), stop = end(slice.stop.value_or(n));
  return x.slice(dim, start, stop > start ? (stop - start + slice.step - 1) / slice.step : 0, slice.step);
}

void add_mask(Chosen& chosen, const Tensor& mask) {
  const Tensor& x = chosen.view;
  const auto first = static_cast<int64_t>(chosen.positions.size());
  for (int64_t d = 0; d < mask.dim(); ++d)
    WEFT_CHECK(mask.size(d) == x.size(first + d), "index: mask ", mask, " does not have the sizes of ", x,
               " from dimension ", first, " on");
  const Tensor at = nonzero(mask);
  for (int64_t d = 0; d < mask.dim(); ++d) chosen.positions.push_back(at.select(1, d));
}

Chosen choose(const Tensor& x, const std::vector<Index>& parts) {
  int64_t named = 0;
  for (const Index& part : parts) named += dimensions_of(part);
  WEFT_CHECK(named <= x.dim(), "index: ", named, " dimensions are too many for ", x);
  Chosen chosen{x, {}};
  bool had_ellipsis = false;
  for (const Index& part : parts) {
    const auto d = static_cast<int64_t>(chosen.positions.size());
    if (const Integer* number = std::get_if<Integer>(&part)) {
      chosen.view = chosen.view.select(d, *number);
    } else if (const Slice* slice = std::get_if<Slice>(&part)) {
      chosen.view = sliced(chosen.view, d, *slice);
      chosen.positions.emplace_back();
    } else if (std::holds_alternative<NewAxis>(part)) {
      chosen.view = chosen.view.unsqueeze(d);
      chosen.positions.emplace_back();
    } else if (std::holds_alternative<Ellipsis>(part)) {
      WEFT_CHECK(!had_ellipsis, "index: expected one ellipsis, got several");
      had_ellipsis = true;
      chosen.positions.resize(static_cast<size_t>(d + x.dim() - named));
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&part)) {
      chosen.positions.push_back(Tensor::from(*list).to(x.device()));
    } else {
      const Tensor& tensor = std::get<Tensor>(part);
      WEFT_CHECK(tensor.defined() && tensor.device() == x.device(), "index: expected a tensor on the device of ", x,
                 ", got ", tensor);
      if (is_mask(part)) {
        WEFT_CHECK(tensor.dim() >= 1, "index: expected a mask of at least one dimension, got ", tensor);
        add_mask(chosen, tensor);
      } else {
        WEFT_CHECK(tensor.dtype() == DType::i64 || tensor.dtype() == DType::i32,
                   "index: expected positions in i64 or i32 or a bool mask, got ", tensor);
        chosen.positions.push_back(tensor.to(DType::i64));
      }
    }
  }
  chosen.positions.resize(static_cast<size_t>(chosen.view.dim()));
  return chosen;
}

/// The elements at the chosen positions: the indexed dimensions become one, whose positions index_select takes.
Tensor take(const Chosen& chosen) {
  const Tensor& x = chosen.view;
  Shape order, rest, sizes;  // x's dimensions, indexed ones first; the others' sizes; the positions' sizes
  int64_t count = 1, first = -1, last = -1;
  for (int d = 0; d < x.dim(); ++d) {
    const Tensor& at = chosen.positions[static_cast<size_t>(d)];
    if (!at.defined()) continue;
    sizes = first < 0 ? at.sizes() : broadcast_shapes("index", sizes, at.sizes());
    first = first < 0 ? d : first;
    last = d;
    order.push_back(d);
    count *= x.size(d);
  }
  const bool together = last - first + 1 == order.rank();
  const Tensor positions = Tensor::zeros(sizes, DType::i64, x.device());
  for (const Tensor& at : chosen.positions)
    if (at.defined())
      kernels::ravel_index(x.queue(), positions, at.expand(sizes).contiguous(),
                           x.size(static_cast<int64_t>(&at - chosen.positions.data())));
  for (int d = 0; d < x.dim(); ++d) {
    if (chosen.positions[static_cast<size_t>(d)].defined()) continue;
    order.push_back(d);
    rest.push_back(x.size(d));
  }
  const Tensor rows = x.permute(order).reshape({count, rest.numel()});
  const Tensor y = index_select(rows, 0, positions.reshape({sizes.numel()}));
  Shape wanted = sizes, back;
  for (int d = 0; d < rest.rank(); ++d) wanted.push_back(rest[d]);
  const int ahead = together ? static_cast<int>(first) : 0;  // dimensions of `rest` that come before the positions'
  for (int d = 0; d < ahead; ++d) back.push_back(sizes.rank() + d);
  for (int d = 0; d < sizes.rank(); ++d) back.push_back(d);
  for (int d = ahead; d < rest.rank(); ++d) back.push_back(sizes.rank() + d);
  return y.reshape(wanted).permute(back);
}

}  // namespace

Tensor Tensor::index(const std::vector<Index>& at) const {
  WEFT_CHECK(defined(), "index: expected a tensor, got none");
  const OpScope scope("index");
  const Chosen chosen = choose(*this, at);
  const bool by_tensors = std::ranges::any_of(chosen.positions, &Tensor::defined);
  return by_tensors ? take(chosen) : chosen.view;
}

Tensor index_put(const Tensor& x, const std::vector<Index>& at, const Tensor& values, bool accumulate) {
  WEFT_CHECK(x.defined() && values.defined() && values.dtype() == x.dtype() && values.device() == x.device(),
             "index_put: expected values of the dtype and on the device of ", x, ", got ", values);
  WEFT_CHECK(!accumulate || x.is_floating(), "index_put: expected a floating tensor to accumulate in, got ", x);
  const OpScope scope("index_put");
  const int64_t n = x.numel();
  Tensor positions;
  {
    const NoGrad no_grad;
    positions = Tensor::arange(n, DType::i64, x.device()).reshape(x.sizes()).index(at);
  }
  const int64_t count = positions.numel();
  const Tensor v = values.expand(positions.sizes()).reshape({count}).contiguous();
  positions = positions.reshape({count}).contiguous();
  if (accumulate) {
    const Tensor sums = Tensor::empty({n}, x.dtype(), x.device());
    kernels::index_select_backward(sums.queue(), sums, v, positions, 0);
    if (!wants_gradient(v)) return add(x, sums.reshape(x.sizes()));
    const auto backward = [positions = Saved(positions)](const Tensor& dy) {
      return Grads{index_select(dy, 0, positions)};
    };
    return add(x, differentiable(sums, "index_put", {v}, backward).reshape(x.sizes()));
  }
  const Tensor y = x.detach().clone();
  kernels::index_put(y.queue(), y.flatten(), v, positions);
  if (!wants_gradient(x) && !wants_gradient(v)) return y;
  return differentiable(y, "index_put", {x, v}, [=, positions = Saved(positions)](const Tensor& dy) {
    const bool recorded = grad_enabled();
    Tensor dx;
    {
      const NoGrad no_grad;
      dx = recorded ? Tensor::ones(dy.sizes(), dy.dtype(), dy.device()) : dy.clone();
      kernels::index_put(dx.queue(), dx.flatten(), Tensor::zeros({count}, dy.dtype(), dy.device()), positions);
    }
    if (recorded) dx = where(eq(dx, 0), 0, dy);
    // Only the last value of equal positions stayed.
    const Tensor number = Tensor::arange(count, DType::i64, dy.device());
    const Tensor winner = Tensor::empty({n}, DType::i64, dy.device());
    kernels::index_put(winner.queue(), winner, number, positions);
    const Tensor stayed = eq(index_select(winner, 0, positions), number);
    return Grads{dx, where(stayed, index_select(dy.reshape({n}), 0, positions), 0)};
  });
}

Tensor index_put(const Tensor& x, const std::vector<Index>& at, Number value) {
  WEFT_CHECK(x.defined(), "index_put: expected a tensor, got none");
  return index_put(x, at, Tensor::full({}, value, x.dtype(), x.device()));
}

}  // namespace weft
