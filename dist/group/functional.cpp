// SPDX-License-Identifier: Apache-2.0
#include "dist/group/functional.h"

#include <numeric>

#include "core/autograd.h"

namespace weft::dist {
namespace {

void check(const char* op, const Tensor& x, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, op, ": expected a group, got none");
  WEFT_CHECK(x.defined() && x.dim() > 0, op, ": expected a tensor of at least one dimension, got ", x);
}

/// A new tensor like x with another number of rows.
Tensor with_rows(const Tensor& x, int64_t rows) {
  std::vector<int64_t> sizes{rows};
  for (int d = 1; d < x.dim(); ++d) sizes.push_back(x.size(d));
  return Tensor::empty(Shape(sizes), x.dtype(), x.device());
}

int64_t sum_of(const std::vector<int64_t>& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

CollectiveOptions options_of(const char* name, const std::vector<int64_t>& rows = {}) {
  return {.name = name, .scale = {}, .at_once = true, .after = {}, .rows = rows};
}

}  // namespace

Tensor all_reduce(const Tensor& x, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, "all_reduce: expected a group, got none");
  WEFT_CHECK(x.defined(), "all_reduce: expected a tensor, got none");
  const Tensor y = x.detach().contiguous().clone();
  group->all_reduce(y, ReduceOp::sum, options_of("differentiable"))->wait();
  return differentiable(y, "all_reduce", {x}, [group](const Tensor& dy) { return Grads{all_reduce(dy, group)}; });
}

Tensor all_gather(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& rows) {
  check("all_gather", x, group);
  const Tensor y = with_rows(x, rows.empty() ? group->size() * x.size(0) : sum_of(rows));
  group->all_gather(y, x.detach().contiguous(), options_of("differentiable", rows))->wait();
  return differentiable(y, "all_gather", {x},
                        [group, rows](const Tensor& dy) { return Grads{reduce_scatter(dy, group, rows)}; });
}

Tensor reduce_scatter(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& rows) {
  check("reduce_scatter", x, group);
  const int n = group->size();
  WEFT_CHECK(!rows.empty() || x.size(0) % n == 0, "reduce_scatter: expected rows that divide by ", n, " ranks, got ",
             x);
  const auto rank = static_cast<size_t>(group->rank());
  const Tensor y = with_rows(x, rows.empty() ? x.size(0) / n : rank < rows.size() ? rows[rank] : 0);
  group->reduce_scatter(y, x.detach().contiguous(), ReduceOp::sum, options_of("differentiable", rows))->wait();
  return differentiable(y, "reduce_scatter", {x},
                        [group, rows](const Tensor& dy) { return Grads{all_gather(dy, group, rows)}; });
}

Tensor all_to_all(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& output_rows,
                  const std::vector<int64_t>& input_rows) {
  check("all_to_all", x, group);
  const bool even = output_rows.empty() && input_rows.empty();
  const Tensor y = with_rows(x, even ? x.size(0) : sum_of(output_rows)), in = x.detach().contiguous();
  (even ? group->all_to_all(y, in, options_of("differentiable"))
        : group->all_to_all(y, in, output_rows, input_rows, options_of("differentiable")))
      ->wait();
  return differentiable(y, "all_to_all", {x}, [group, output_rows, input_rows](const Tensor& dy) {
    return Grads{all_to_all(dy, group, input_rows, output_rows)};
  });
}

}  // namespace weft::dist
