// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "data/collation.h"
#include "data/sampler.h"

namespace weft::data {

struct LoaderOptions {
  int64_t batch_size = 64;  ///< samples per batch of this rank
  int workers = 2;          ///< threads; 0: the caller assembles each batch itself
  int prefetch = 2;         ///< batches assembled ahead
  bool drop_last = false;   ///< leave out the last, smaller batch (Tail::joined: that of all ranks)
  uint64_t seed = 0;        ///< seeds the samples' draws
  Device device{};          ///< where batches arrive
};

/// How the time of the consumer went.
struct LoaderStatistics {
  int64_t batches = 0;
  int64_t samples = 0;
  double waited_seconds = 0;  ///< inside next(), waiting for workers
};

/// A batch of samples that have no type of their own for it: a tensor for each field.
struct Stacked {
  std::vector<Tensor> tensors;  ///< [count, …]
  int64_t count = 0;            ///< the last batch of an epoch may be smaller; 0: one sample, a dummy batch
  int64_t epoch = 0;
  int64_t step = 0;  ///< position in the epoch
};

/// Calls visit(name, tensor) for each field of a batch.
template <class Batch, class Visit>
void each_tensor(Batch& batch, Visit&& visit) {
  const auto checked = [&]<class Field>(const char* name, Field& field) {
    static_assert(std::is_same_v<Field, Tensor>, "a batch's fields() names its Tensors, and is not const");
    visit(name, field);
  };
  static_assert(
      requires { batch.fields(checked); },
      "a batch names its tensors, which are found by these names: give it "
      "`void fields(auto& v) { v(\"x\", x), v(\"y\", y); }`; its count, epoch and step need no name");
  batch.fields(checked);
}

/// Loads batches onto a device. Worker threads assemble them in a ring of slots (pinned memory for a GPU, the batch's
/// own on the CPU); copies run on a stream of their own, one batch ahead of the model. A batch's content depends on
/// (seed, epoch, step) alone: not on the number of workers, nor on where the loader was started.
///   loader.start(epoch);                       // or start(epoch, step) to resume.
///   while (auto batch = loader.next()) { … }.
/// An exception in a worker is thrown by the next() that would have returned the batch. The weft::Error names the
/// sample and nests the original; start() again after. Random numbers that a sample draws from
/// Weft's generators are a function of (manual_seed(), LoaderOptions::seed, epoch, index), and leave the caller's as
/// they are. Use a queue from one thread. Errors: a sampler of another size than the set, a batch size below 1, workers
/// outside 0 … 1024; with drop_last, a batch size above the number of samples.
class BatchQueue {
 public:
  BatchQueue(Collation collation, Sampler sampler, LoaderOptions options);
  ~BatchQueue();
  BatchQueue(BatchQueue&&) noexcept;

  int64_t samples_per_epoch() const;  ///< samples of this rank's epoch
  int64_t steps_per_epoch() const;    ///< batches of this rank's epoch
  /// Samples of batch `step`, a mean over the ranks.
  double mean_count(int64_t step) const;
  /// Whatever is under way is dropped; the next batch is `step` of `epoch`, and workers begin with it at once. Where
  /// that is so already, nothing is dropped: start(epoch + 1) before validation, and again before training, has the
  /// first batches made in between. Errors: a step outside 0 … steps_per_epoch().
  void start(int64_t epoch, int64_t step = 0);
  /// The next batch; none at the end of the epoch, once. Errors: not started, or not again since the end; the worker's.
  std::optional<Stacked> next();
  /// Where a value of batch `step` comes from: `sample 7 (1979.h5, time 3, channel 0)`. `place`: within tensor
  /// `number`.
  std::string origin(int64_t epoch, int64_t step, size_t number, const Shape& place) const;
  /// Names of the batch's tensors; empty if they have none.
  const std::vector<std::string>& names() const;

  const LoaderOptions& options() const;
  LoaderStatistics statistics() const;

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

namespace detail {
/// Which of the tensors `names` each of a batch's fields is; without names, the one at its place. Errors: others than
/// these, or one twice.
std::vector<size_t> places_of(const std::vector<std::string>& fields, const std::vector<std::string>& names);
}  // namespace detail

/// Sample::Batch where a sample has one, else Stacked.
template <class Sample>
struct BatchOf {
  using type = Stacked;
};
template <class Sample>
requires requires { typename Sample::Batch; }
struct BatchOf<Sample> {
  using type = typename Sample::Batch;
};

template <class Sample>
using BatchOfSample = typename BatchOf<Sample>::type;

/// Batches of any set with `size()` and `get(index)`: see stacking() for its samples.
///   data::Loader loader(readings, data::Sampler(readings->size()), {.batch_size = 32, .device = device});
/// A Collation adds what a set cannot say: work on the device, or samples that are written straight into the batch, as
/// ImageLoader's and FieldLoader's are. A batch's fields() names its tensors. They are found by name: those of the
/// samples' fields, or Collation::names. Errors: other names.
template <class Batch>
class Loader : public BatchQueue {
 public:
  Loader(Collation collation, Sampler sampler, LoaderOptions options)
      : BatchQueue(std::move(collation), sampler, options) {
    if constexpr (!std::is_same_v<Batch, Stacked>) {
      Batch batch{};
      std::vector<std::string> fields;
      each_tensor(batch, [&](const char* name, Tensor&) { fields.emplace_back(name); });
      places_ = detail::places_of(fields, names());
    }
  }
  template <class Set>
  Loader(std::shared_ptr<Set> set, Sampler sampler, LoaderOptions options = {})
      : Loader(stacking(std::move(set)), sampler, options) {}
  /// `collate` makes the tensors of a batch, on the host and in a worker: for samples of several sizes. Where a batch
  /// has a type, they are in the order of its fields().
  template <class Set>
  Loader(std::shared_ptr<Set> set, Sampler sampler, LoaderOptions options,
         std::function<std::vector<Tensor>(std::vector<SampleOf<Set>>)> collate)
      : Loader(collating(std::move(set), std::move(collate)), sampler, options) {}
  std::optional<Batch> next() {
    auto from = BatchQueue::next();
    if constexpr (std::is_same_v<Batch, Stacked>) {
      return from;
    } else {
      if (!from) return std::nullopt;
      WEFT_CHECK(from->tensors.size() == places_.size(), "loader: expected ", places_.size(),
                 " tensors for a batch, got ", from->tensors.size());
      std::optional<Batch> batch(std::in_place);
      auto place = places_.begin();
      each_tensor(*batch, [&](const char*, Tensor& tensor) { tensor = from->tensors[*place++]; });
      if constexpr (requires { batch->count; }) batch->count = from->count;
      if constexpr (requires { batch->epoch; }) batch->epoch = from->epoch;
      if constexpr (requires { batch->step; }) batch->step = from->step;
      return batch;
    }
  }

 private:
  std::vector<size_t> places_;
};

template <class Set>
Loader(std::shared_ptr<Set>, Sampler, LoaderOptions = {}) -> Loader<BatchOfSample<SampleOf<Set>>>;
template <class Set, class Collate>
Loader(std::shared_ptr<Set>, Sampler, LoaderOptions, Collate) -> Loader<BatchOfSample<SampleOf<Set>>>;

}  // namespace weft::data
