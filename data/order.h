// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::data {

/// Which sample of a set comes at which position of an epoch, counted over all ranks. Derive from it for an order of
/// your own; a Sampler shares its positions out among the ranks. A pure function of (seed, epoch, position), so that
/// resumed runs and any number of ranks see the same samples. A sample that comes twice has two draws. Several threads
/// call it at once.
class Order {
 public:
  virtual ~Order() = default;
  virtual int64_t set_size() const = 0;  ///< samples of the set
  virtual int64_t size() const = 0;      ///< positions of an epoch
  /// In 0 … set_size() - 1.
  virtual int64_t index(uint64_t seed, int64_t epoch, int64_t position) const = 0;
};

struct WeightedOptions {
  int64_t samples = 0;      ///< an epoch's; 0: as many as the set has
  bool replacement = true;  ///< a sample may come several times in an epoch
};

/// Each sample is drawn in proportion to its weight (PyTorch's WeightedRandomSampler; without replacement by Efraimidis
/// and Spirakis 2006). Errors: no weights, one that is negative or not finite, all 0; without replacement, more samples
/// than there are weights above 0.
std::shared_ptr<const Order> weighted(std::vector<double> weights, WeightedOptions options = {});

/// Weights with which each class is drawn equally often: 1 / (samples of the sample's class). Errors: no labels.
std::vector<double> class_weights(const std::vector<int64_t>& labels);

struct ByLengthOptions {
  int64_t batch_size = 64;  ///< all ranks' together
  int64_t pool = 100;       ///< batches that are sorted together: more is less padding, and less random
};

/// Batches of samples of similar lengths, for sets that a collate function pads: the shuffled set is cut into pools,
/// each is sorted, cut into batches, and all whole batches are shuffled. Each sample comes once. Errors: no lengths,
/// one below 0, sizes below 1.
std::shared_ptr<const Order> by_length(std::vector<int64_t> lengths, ByLengthOptions options = {});

}  // namespace weft::data
