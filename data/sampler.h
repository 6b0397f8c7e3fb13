// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>

#include "data/order.h"

namespace weft::data {

/// The treatment of a set that is not divisible by the number of ranks.
enum class Tail : uint8_t {
  repeat,  ///< ranks take images from the start again, so that all have the same number
  drop,    ///< images are left out, so that all have the same number
  uneven,  ///< every image once; the first ranks may have one more
  joined,  ///< as uneven, in as many steps on all ranks: a rank that has no image left for the last step
           ///< gets a dummy batch, which counts nothing
};

struct SamplerOptions {
  uint64_t seed = 0;
  bool shuffle = true;
  int rank = 0;
  int world = 1;
  Tail tail = Tail::repeat;
  /// Images of a step of all ranks together, which need not divide by them: the first ranks then have one more in each
  /// step. 0: as many on all ranks, as many as the loader says. With Tail::joined only.
  int64_t step = 0;
};

/// Which image comes when: a pure function of (seed, epoch, position), so that resuming is setting a counter. Rank r
/// of W takes positions r, r + W, r + 2W … of one global order (PyTorch's DistributedSampler). So W ranks with batches
/// of B see the samples of one rank with batches of W B. manual_seed() does not change the sampler's seed. Errors: an
/// empty set, or fewer images than ranks under Tail::drop; a rank outside the world; a step that leaves a rank without
/// an image.
class Sampler {
 public:
  Sampler(int64_t set_size, SamplerOptions options = {});
  /// With samples in the order that `order` says; `shuffle` is not asked.
  explicit Sampler(std::shared_ptr<const Order> order, SamplerOptions options = {});

  int64_t set_size() const { return order_ ? order_->set_size() : count_; }
  /// Images of this rank in one epoch, of all ranks, and of the rank that has most.
  int64_t size() const { return size_; }
  int64_t size_of_all() const;
  int64_t most() const { return (size_of_all() + options_.world - 1) / options_.world; }
  /// Images of this rank in a whole step; 0: what the loader says.
  int64_t batch_size() const { return batch_size_; }
  /// Index into the set of the image at `position` (0 … size() - 1) of this rank's epoch; with Tail::joined, of the
  /// dummy batch at size().
  int64_t index(int64_t epoch, int64_t position) const;
  /// The number that names a sample's draws: its index; with an order, which may repeat samples, another one for each
  /// position.
  int64_t draw_of(int64_t epoch, int64_t position) const;
  const SamplerOptions& options() const { return options_; }

 private:
  int64_t global(int64_t position) const;

  int64_t count_;  ///< positions of an epoch
  SamplerOptions options_;
  std::shared_ptr<const Order> order_ = {};
  int64_t size_, batch_size_ = 0;
};

}  // namespace weft::data
