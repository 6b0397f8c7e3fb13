// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include "kernels/error.h"
#include "kernels/philox.h"

namespace weft::data {

Sampler::Sampler(int64_t set_size, SamplerOptions options) : set_size_(set_size), options_(options) {
  WEFT_CHECK(set_size > 0, "sampler: expected a set of at least one image, got ", set_size);
  WEFT_CHECK(options.world > 0 && options.rank >= 0 && options.rank < options.world,
             "sampler: expected a rank from 0 to world - 1, got rank ", options.rank, " of ", options.world);
  const int64_t whole = set_size / options.world, rest = set_size % options.world;
  size_ = whole;
  if (options.tail == Tail::repeat && rest > 0) size_ += 1;
  if (options.tail == Tail::uneven && options.rank < rest) size_ += 1;
}

int64_t Sampler::index(int64_t epoch, int64_t position) const {
  WEFT_CHECK(position >= 0 && position < size_, "sampler: expected a position below ", size_, ", got ", position);
  const int64_t global = (options_.rank + position * options_.world) % set_size_;
  if (!options_.shuffle) return global;
  constexpr uint64_t kShuffle = 0x5A3B1E5000000000ull;
  return permuted(options_.seed ^ kShuffle, static_cast<uint64_t>(epoch), set_size_, global);
}

}  // namespace weft::data
