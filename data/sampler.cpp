// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include <algorithm>
#include <utility>

#include "kernels/contracts/permutation.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

int64_t positions_of(const std::shared_ptr<const Order>& order) {
  WEFT_CHECK(order, "sampler: expected an order, got a null pointer");
  return order->size();
}

}  // namespace

Sampler::Sampler(std::shared_ptr<const Order> order, SamplerOptions options) : Sampler(positions_of(order), options) {
  order_ = std::move(order);
}

Sampler::Sampler(int64_t set_size, SamplerOptions options) : count_(set_size), options_(options) {
  WEFT_CHECK(set_size > 0, "sampler: expected a set of at least one image, got ", set_size);
  WEFT_CHECK(options.world > 0 && options.rank >= 0 && options.rank < options.world,
             "sampler: expected a rank from 0 to world - 1, got rank ", options.rank, " of ", options.world);
  const int64_t whole = set_size / options.world, rest = set_size % options.world;
  size_ = whole;
  WEFT_CHECK(options.tail != Tail::drop || whole > 0, "sampler: expected at least one image for each of ",
             options.world, " ranks, got ", set_size, ", all of which Tail::drop leaves out");
  if (options.tail == Tail::repeat && rest > 0) size_ += 1;
  if ((options.tail == Tail::uneven || options.tail == Tail::joined) && options.rank < rest) size_ += 1;
  if (options.step == 0) return;
  WEFT_CHECK(options.tail == Tail::joined && options.step >= options.world,
             "sampler: expected a step of at least one image for each of ", options.world, " ranks, joined, got ",
             options.step);
  const auto share = [&](int64_t images) { return (images - options.rank + options.world - 1) / options.world; };
  batch_size_ = share(options.step);
  size_ = set_size / options.step * batch_size_ + std::max<int64_t>(share(set_size % options.step), 0);
}

int64_t Sampler::size_of_all() const {
  const bool once = options_.tail == Tail::uneven || options_.tail == Tail::joined;
  return once ? count_ : size_ * options_.world;
}

int64_t Sampler::global(int64_t position) const {
  const int64_t end = size_ + (options_.tail == Tail::joined ? 1 : 0);
  WEFT_CHECK(position >= 0 && position < end, "sampler: expected a position below ", end, ", got ", position);
  const int64_t first = batch_size_ > 0 ? position / batch_size_ * options_.step : 0;
  const int64_t in_step = batch_size_ > 0 ? position % batch_size_ : position;
  return (first + options_.rank + in_step * options_.world) % count_;
}

int64_t Sampler::draw_of(int64_t epoch, int64_t position) const {
  return order_ ? set_size() + global(position) : index(epoch, position);
}

int64_t Sampler::index(int64_t epoch, int64_t position) const {
  const int64_t at = global(position);
  if (order_) {
    const int64_t index = order_->index(options_.seed, epoch, at);
    WEFT_CHECK(index >= 0 && index < set_size(), "sampler: expected an index from 0 to ", set_size() - 1,
               " of the order at position ", at, ", got ", index);
    return index;
  }
  if (!options_.shuffle) return at;
  constexpr uint64_t kShuffle = 0x5A3B1E5000000000ull;
  return permutation_of(options_.seed ^ kShuffle, static_cast<uint64_t>(epoch), count_)(at);
}

}  // namespace weft::data
