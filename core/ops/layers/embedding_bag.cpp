// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/embedding_bag.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {
namespace {

void check(const Tensor& weight, const Tensor& index, int dims) {
  WEFT_CHECK(weight.defined() && weight.is_floating() && weight.dim() == 2,
             "embedding_bag: expected a floating table [count, size], got ", weight);
  WEFT_CHECK(index.defined() && !index.is_floating() && index.dim() == dims, "embedding_bag: expected integers ",
             dims == 2 ? "[bags, length]" : "[n] with offsets", ", got ", index);
}

/// The rows that are looked up, [n, size], and [n, 1] true where they count.
std::pair<Tensor, Tensor> looked_up(const Tensor& weight, const Tensor& index, int64_t padding) {
  return {index_select(weight, 0, index), ne(index, static_cast<double>(padding)).unsqueeze(1)};
}

/// total / number, where the number is 0 total.
Tensor mean_of(const Tensor& total, const Tensor& number) { return div(total, where(gt(number, 0.0), number, 1.0)); }

/// The bag of each of n indices.
Tensor bags_of(const Tensor& offsets, int64_t n) {
  const std::vector<int64_t> begins = offsets.to(DType::i64).to_vector<int64_t>();
  WEFT_CHECK(
      !begins.empty() && begins.front() == 0 && begins.back() <= n && std::is_sorted(begins.begin(), begins.end()),
      "embedding_bag: expected offsets that ascend from 0 to at most ", n, ", got ", offsets);
  std::vector<int64_t> bags(static_cast<size_t>(n));
  for (size_t b = 0; b < begins.size(); ++b) {
    const int64_t end = b + 1 < begins.size() ? begins[b + 1] : n;
    std::fill(bags.begin() + begins[b], bags.begin() + end, static_cast<int64_t>(b));
  }
  return Tensor::from(bags, offsets.device());
}

}  // namespace

Tensor embedding_bag(const Tensor& weight, const Tensor& index, const EmbeddingBagOptions& options) {
  const OpScope scope("embedding_bag");
  check(weight, index, 2);
  const auto [bags, length] = index.dims<2>();
  const int64_t size = weight.size(1);
  if (length == 0) return Tensor::zeros({bags, size}, weight.dtype(), weight.device());
  const auto [rows, counts] = looked_up(weight, index.flatten(), options.padding);
  const Tensor number = sum(counts.reshape({bags, length}).to(weight.dtype()), {1}, true);  // in each bag
  const Shape sizes{bags, length, size};
  if (options.mode == Bag::max)
    return where(gt(number, 0.0), max(where(counts, rows, -INFINITY).reshape(sizes), {1}), 0.0);
  const Tensor total = sum(where(counts, rows, 0.0).reshape(sizes), {1});
  return options.mode == Bag::sum ? total : mean_of(total, number);
}

Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets,
                     const EmbeddingBagOptions& options) {
  const OpScope scope("embedding_bag");
  check(weight, index, 1);
  WEFT_CHECK(offsets.defined() && !offsets.is_floating() && offsets.dim() == 1 && offsets.device() == index.device(),
             "embedding_bag: expected integer offsets [bags], got ", offsets);
  WEFT_CHECK(options.mode != Bag::max, "embedding_bag: the maximum needs bags of one length, [bags, length]");
  const int64_t n = index.size(0), bags = offsets.size(0);
  const Tensor bag = bags_of(offsets, n).unsqueeze(1);
  const auto [rows, counts] = looked_up(weight, index, options.padding);
  const auto gathered = [&](const Tensor& values) {
    const int64_t width = values.size(1);
    return scatter_add(Tensor::zeros({bags, width}, values.dtype(), values.device()), 0,
                       bag.expand({n, width}).contiguous(), values);
  };
  const Tensor total = gathered(where(counts, rows, 0.0));
  return options.mode == Bag::sum ? total : mean_of(total, gathered(counts.to(weight.dtype())));
}

}  // namespace weft
