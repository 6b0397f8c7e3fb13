// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "data/draw.h"
#include "kernels/contracts/permutation.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

constexpr uint64_t kWeighted = 0x3E1647ED00000000ull, kPools = 0xB0C4E75000000000ull, kBatches = 0xBA7C4E5000000000ull;

/// In (0, 1), of 53 bits: a set may have more samples than one word of Draw tells apart.
double fine_uniform(Draw& draw) {
  const auto high = static_cast<uint64_t>(draw.word() >> 5), low = static_cast<uint64_t>(draw.word() >> 6);
  return (static_cast<double>(high << 26 | low) + 0.5) * 0x1p-53;
}

Draw draw_at(uint64_t seed, int64_t epoch, int64_t position) {
  return Draw::of_sample(seed ^ kWeighted, epoch, position);
}

/// An order that is made as a whole for each epoch. Two epochs stay: workers prefetch the next one.
class WholeOrder : public Order {
 public:
  int64_t index(uint64_t seed, int64_t epoch, int64_t position) const override {
    const std::lock_guard lock(mutex_);
    auto& kept = kept_[static_cast<size_t>(epoch) % 2];
    if (kept.order.empty() || kept.epoch != epoch || kept.seed != seed) kept = {seed, epoch, make(seed, epoch)};
    return kept.order[static_cast<size_t>(position)];
  }

 private:
  virtual std::vector<int64_t> make(uint64_t seed, int64_t epoch) const = 0;

  struct Kept {
    uint64_t seed = 0;
    int64_t epoch = 0;
    std::vector<int64_t> order = {};
  };
  mutable std::mutex mutex_;
  mutable Kept kept_[2];
};

class WithReplacement : public Order {
 public:
  WithReplacement(const std::vector<double>& weights, int64_t samples) : sums_(weights), samples_(samples) {
    std::partial_sum(sums_.begin(), sums_.end(), sums_.begin());
  }
  int64_t set_size() const override { return static_cast<int64_t>(sums_.size()); }
  int64_t size() const override { return samples_; }
  int64_t index(uint64_t seed, int64_t epoch, int64_t position) const override {
    Draw draw = draw_at(seed, epoch, position);
    // The last sum may be rounded up to: the sample is then the last whose weight is above 0.
    const double at = std::min(fine_uniform(draw) * sums_.back(), std::nextafter(sums_.back(), 0.0));
    return std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
  }

 private:
  std::vector<double> sums_;
  int64_t samples_;
};

class WithoutReplacement : public WholeOrder {
 public:
  WithoutReplacement(std::vector<double> weights, int64_t samples) : weights_(std::move(weights)), samples_(samples) {}
  int64_t set_size() const override { return static_cast<int64_t>(weights_.size()); }
  int64_t size() const override { return samples_; }

 private:
  std::vector<int64_t> make(uint64_t seed, int64_t epoch) const override {
    std::vector<std::pair<double, int64_t>> keys;
    for (int64_t i = 0; i < set_size(); ++i) {
      const double weight = weights_[static_cast<size_t>(i)];
      Draw draw = draw_at(seed, epoch, i);
      if (weight > 0) keys.emplace_back(-std::log(fine_uniform(draw)) / weight, i);
    }
    std::partial_sort(keys.begin(), keys.begin() + samples_, keys.end());
    std::vector<int64_t> order;
    for (int64_t k = 0; k < samples_; ++k) order.push_back(keys[static_cast<size_t>(k)].second);
    return order;
  }

  std::vector<double> weights_;
  int64_t samples_;
};

class ByLength : public WholeOrder {
 public:
  ByLength(std::vector<int64_t> lengths, ByLengthOptions options) : lengths_(std::move(lengths)), options_(options) {}
  int64_t set_size() const override { return static_cast<int64_t>(lengths_.size()); }
  int64_t size() const override { return set_size(); }

 private:
  std::vector<int64_t> make(uint64_t seed, int64_t epoch) const override {
    const int64_t n = set_size(), batch = options_.batch_size, pool = std::min(options_.pool, n / batch + 1) * batch;
    std::vector<int64_t> shuffled(lengths_.size());
    const Permutation pools = permutation_of(seed ^ kPools, static_cast<uint64_t>(epoch), n);
    for (int64_t i = 0; i < n; ++i) shuffled[static_cast<size_t>(i)] = pools(i);
    for (int64_t begin = 0; begin < n; begin += pool)
      std::stable_sort(
          shuffled.begin() + begin, shuffled.begin() + std::min(begin + pool, n),
          [&](int64_t a, int64_t b) { return lengths_[static_cast<size_t>(a)] < lengths_[static_cast<size_t>(b)]; });
    std::vector<int64_t> order;
    const int64_t whole = n / batch;
    const Permutation batches = permutation_of(seed ^ kBatches, static_cast<uint64_t>(epoch), whole);
    for (int64_t b = 0; b < whole; ++b) {
      const auto from = shuffled.begin() + batches(b) * batch;
      order.insert(order.end(), from, from + batch);
    }
    order.insert(order.end(), shuffled.begin() + whole * batch, shuffled.end());
    return order;
  }

  std::vector<int64_t> lengths_;
  ByLengthOptions options_;
};

}  // namespace

std::shared_ptr<const Order> weighted(std::vector<double> weights, WeightedOptions options) {
  double sum = 0;
  int64_t positive = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    WEFT_CHECK(weights[i] >= 0 && std::isfinite(weights[i]), "weighted: expected weights of at least 0, got ",
               weights[i], " for sample ", i);
    sum += weights[i];
    positive += weights[i] > 0 ? 1 : 0;
  }
  WEFT_CHECK(sum > 0 && std::isfinite(sum), "weighted: expected ",
             weights.empty() ? "" : "at least one weight above 0 and ", "weights with a finite sum, got ",
             weights.size(), " with the sum ", sum);
  const auto size = static_cast<int64_t>(weights.size());
  const int64_t samples = options.samples == 0 ? size : options.samples;
  WEFT_CHECK(samples > 0, "weighted: expected at least one sample in an epoch, got ", samples);
  if (options.replacement) return std::make_shared<WithReplacement>(weights, samples);
  WEFT_CHECK(samples <= positive, "weighted: expected at most ", positive,
             " samples without replacement, as many as have a weight above 0, got ", samples);
  return std::make_shared<WithoutReplacement>(std::move(weights), samples);
}

std::vector<double> class_weights(const std::vector<int64_t>& labels) {
  WEFT_CHECK(!labels.empty(), "class_weights: expected at least one label, got none");
  std::unordered_map<int64_t, int64_t> counts;
  for (const int64_t label : labels) ++counts[label];
  std::vector<double> weights;
  for (const int64_t label : labels) weights.push_back(1.0 / static_cast<double>(counts[label]));
  return weights;
}

std::shared_ptr<const Order> by_length(std::vector<int64_t> lengths, ByLengthOptions options) {
  WEFT_CHECK(!lengths.empty(), "by_length: expected at least one length, got none");
  WEFT_CHECK(options.batch_size > 0 && options.pool > 0,
             "by_length: expected a batch size and a pool of at least 1, got ", options.batch_size, " and ",
             options.pool);
  for (size_t i = 0; i < lengths.size(); ++i)
    WEFT_CHECK(lengths[i] >= 0, "by_length: expected lengths of at least 0, got ", lengths[i], " for sample ", i);
  return std::make_shared<ByLength>(std::move(lengths), options);
}

}  // namespace weft::data
