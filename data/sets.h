// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <optional>

#include "data/collation.h"
#include "kernels/contracts/permutation.h"

// Sets made of other sets: anything with `size()` and `get(index)` or `get(index, draw)`, as a Loader takes it.
namespace weft::data {

/// Some samples of a set, in the given order.
template <class Set>
class Subset {
 public:
  /// Errors: no set, an index outside of it.
  Subset(std::shared_ptr<Set> set, std::vector<int64_t> indices) : set_(std::move(set)), indices_(std::move(indices)) {
    WEFT_CHECK(set_, "subset: expected a set, got a null pointer");
    for (const int64_t index : indices_)
      WEFT_CHECK(index >= 0 && index < set_->size(), "subset: expected indices from 0 to ", set_->size() - 1, ", got ",
                 index);
  }
  int64_t size() const { return static_cast<int64_t>(indices_.size()); }
  auto get(int64_t index, Draw& draw) const {
    WEFT_CHECK(index >= 0 && index < size(), "subset: expected an index from 0 to ", size() - 1, ", got ", index);
    return sample_of(*set_, indices_[static_cast<size_t>(index)], draw);
  }
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  std::shared_ptr<Set> set_;
  std::vector<int64_t> indices_;
};

/// Errors: those of Subset.
template <class Set>
std::shared_ptr<Subset<Set>> subset(std::shared_ptr<Set> set, std::vector<int64_t> indices) {
  return std::make_shared<Subset<Set>>(std::move(set), std::move(indices));
}

/// Cuts a set at random into parts whose sizes are these shares of it; the first parts get what rounding leaves. A seed
/// gives the same parts on every machine. Errors: shares below 0 or whose sum is not 1, a part without a sample.
template <class Set>
std::vector<std::shared_ptr<Subset<Set>>> random_split(std::shared_ptr<Set> set, const std::vector<double>& shares,
                                                       uint64_t seed = 0) {
  WEFT_CHECK(set, "random_split: expected a set, got a null pointer");
  const auto n = static_cast<int64_t>(set->size());
  double sum = 0;
  int64_t left = n;
  std::vector<int64_t> sizes(shares.size());
  for (const double share : shares) {
    WEFT_CHECK(share >= 0, "random_split: expected shares of at least 0, got ", share);
    sum += share;
  }
  WEFT_CHECK(std::abs(sum - 1) < 1e-6, "random_split: expected shares whose sum is 1, got ", sum);
  for (size_t i = 0; i < sizes.size(); ++i)
    left -= sizes[i] = static_cast<int64_t>(std::floor(shares[i] / sum * static_cast<double>(n) + 1e-9));
  for (size_t i = 0; left > 0; i = (i + 1) % sizes.size(), --left) ++sizes[i];
  std::vector<std::shared_ptr<Subset<Set>>> parts;
  const Permutation order = permutation_of(seed, 0, n);
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    WEFT_CHECK(sizes[i] > 0, "random_split: expected at least one sample for the share ", shares[i], ", got none of ",
               n);
    std::vector<int64_t> indices;
    for (const int64_t end = at + sizes[i]; at < end; ++at) indices.push_back(order(at));
    parts.push_back(subset(set, std::move(indices)));
  }
  return parts;
}

/// Sets one after another. Their samples have one type, and a Loader holds them to equal sizes.
template <class Set>
class Concat {
 public:
  /// Errors: no sets, a null pointer.
  explicit Concat(std::vector<std::shared_ptr<Set>> sets) : sets_(std::move(sets)) {
    WEFT_CHECK(!sets_.empty(), "concat: expected at least one set, got none");
    for (const auto& set : sets_) {
      WEFT_CHECK(set, "concat: expected sets, got a null pointer");
      ends_.push_back(size() + static_cast<int64_t>(set->size()));
    }
  }
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  auto get(int64_t index, Draw& draw) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    WEFT_CHECK(index >= 0 && end != ends_.end(), "concat: expected an index from 0 to ", size() - 1, ", got ", index);
    const auto number = static_cast<size_t>(end - ends_.begin());
    return sample_of(*sets_[number], index - (number > 0 ? ends_[number - 1] : 0), draw);
  }

 private:
  std::vector<std::shared_ptr<Set>> sets_;
  std::vector<int64_t> ends_;
};

/// Errors: those of Concat.
template <class Set, std::same_as<Set>... Sets>
std::shared_ptr<Concat<Set>> concat(std::shared_ptr<Set> first, std::shared_ptr<Sets>... others) {
  return std::make_shared<Concat<Set>>(std::vector<std::shared_ptr<Set>>{std::move(first), std::move(others)...});
}

/// A set whose samples a function changes as they are read: `function(sample)`, or `function(sample, draw)` for random
/// ones. Several threads call it at once.
template <class Set, class Function>
class Mapped {
 public:
  Mapped(std::shared_ptr<Set> set, Function function) : set_(std::move(set)), function_(std::move(function)) {
    WEFT_CHECK(set_, "map: expected a set, got a null pointer");
  }
  int64_t size() const { return static_cast<int64_t>(set_->size()); }
  auto get(int64_t index, Draw& draw) const {
    if constexpr (std::invocable<const Function&, SampleOf<Set>, Draw&>)
      return function_(sample_of(*set_, index, draw), draw);
    else
      return function_(sample_of(*set_, index, draw));
  }

 private:
  std::shared_ptr<Set> set_;
  Function function_;
};

/// `function(sample)` in place of each sample, computed when it is read.
template <class Set, class Function>
std::shared_ptr<Mapped<Set, Function>> map(std::shared_ptr<Set> set, Function function) {
  return std::make_shared<Mapped<Set, Function>>(std::move(set), std::move(function));
}

/// The samples for which `keep(sample)` is true; each is read once, now. A sample that is random is judged by its draw
/// of epoch 0.
template <class Set, class Predicate>
std::shared_ptr<Subset<Set>> filter(std::shared_ptr<Set> set, Predicate keep) {
  WEFT_CHECK(set, "filter: expected a set, got a null pointer");
  std::vector<int64_t> indices;
  const ThreadGenerators own;  // samples draw nothing from the caller's
  for (int64_t index = 0; index < static_cast<int64_t>(set->size()); ++index) {
    Draw draw = Draw::of_sample(0, 0, index);
    if (keep(sample_of(*set, index, draw))) indices.push_back(index);
  }
  return subset(std::move(set), std::move(indices));
}

/// Rows of tensors as samples: sample i is {a[i], b[i], …}, an array of N tensors (PyTorch's TensorDataset).
template <size_t N>
class TensorRows {
 public:
  /// Errors: tensors off the CPU or without dimensions, other numbers of rows.
  explicit TensorRows(std::array<Tensor, N> tensors) : tensors_(std::move(tensors)) {
    for (const Tensor& one : tensors_)
      WEFT_CHECK(
          one.defined() && one.device().kind == DeviceKind::cpu && one.dim() > 0 && one.size(0) == tensors_[0].size(0),
          "rows: expected tensors on the CPU with as many rows as the first, ", tensors_[0], ", got ", one);
  }
  int64_t size() const { return tensors_[0].size(0); }
  std::array<Tensor, N> get(int64_t index) const {
    std::array<Tensor, N> row;
    for (size_t i = 0; i < N; ++i) row[i] = tensors_[i].select(0, index);
    return row;
  }

 private:
  std::array<Tensor, N> tensors_;
};

/// Errors: those of TensorRows.
template <std::same_as<Tensor>... Tensors>
std::shared_ptr<TensorRows<sizeof...(Tensors)>> rows(Tensors... tensors) {
  return std::make_shared<TensorRows<sizeof...(Tensors)>>(
      std::array<Tensor, sizeof...(Tensors)>{std::move(tensors)...});
}

}  // namespace weft::data
