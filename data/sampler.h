// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::data {

/// What happens when the set does not divide by the number of ranks.
enum class Tail : uint8_t {
  repeat,  ///< ranks take images from the start again, so that all have the same number
  drop,    ///< images are left out, so that all have the same number
  uneven,  ///< every image once; the first ranks may have one more
};

struct SamplerOptions {
  uint64_t seed = 0;
  bool shuffle = true;
  int rank = 0;
  int world = 1;
  Tail tail = Tail::repeat;
};

/// Which image comes when: a pure function of (seed, epoch, position), so that resuming is setting a counter. Rank r
/// of W takes positions r, r + W, r + 2W … of one global order (PyTorch's DistributedSampler), so that W ranks with
/// batches of B see together what one rank with batches of W B sees. Errors: an empty set, a rank outside the world.
class Sampler {
 public:
  Sampler(int64_t set_size, SamplerOptions options = {});

  /// Images of this rank in one epoch.
  int64_t size() const { return size_; }
  /// Index into the set of the image at `position` (0 … size() - 1) of this rank's epoch.
  int64_t index(int64_t epoch, int64_t position) const;
  const SamplerOptions& options() const { return options_; }

 private:
  int64_t set_size_;
  SamplerOptions options_;
  int64_t size_;
};

}  // namespace weft::data
