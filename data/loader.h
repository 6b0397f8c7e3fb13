// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "data/recipe.h"
#include "data/sampler.h"

namespace weft::data {

struct LoaderOptions {
  int64_t batch_size = 64;  ///< of this rank
  int workers = 2;          ///< threads; 0: the caller assembles each batch itself
  int prefetch = 2;         ///< batches assembled ahead
  bool drop_last = false;   ///< leave out the last, smaller batch (Tail::joined: that of all ranks)
  uint64_t seed = 0;        ///< of the samples' draws
  Device device{};          ///< where batches arrive
};

/// How the time of the consumer went, since the last reset.
struct LoaderStatistics {
  int64_t batches = 0;
  int64_t samples = 0;
  double waited_seconds = 0;  ///< inside next(), waiting for workers
};

/// A batch of samples that have no type of their own for it: a tensor for each field.
struct Stacked {
  std::vector<Tensor> tensors;  ///< [count, …]
  int64_t count = 0;            ///< the last batch of an epoch may be smaller; 0: one sample, a stand-in
  int64_t epoch = 0;
  int64_t step = 0;  ///< position in the epoch
};

/// `from` as an aggregate of its tensors, count, epoch and step. Errors: another number of tensors.
template <class Batch, size_t... I>
Batch batch_as(const Stacked& from, std::index_sequence<I...>) {
  static_assert(sizeof...(I) > 0, "a batch is an aggregate of at most 8 tensors, count, epoch and step");
  if constexpr (requires { Batch{from.tensors[I]..., from.count, from.epoch, from.step}; }) {
    WEFT_CHECK(from.tensors.size() == sizeof...(I), "loader: expected ", sizeof...(I), " tensors for a batch, got ",
               from.tensors.size());
    return {from.tensors[I]..., from.count, from.epoch, from.step};
  } else {
    return batch_as<Batch>(from, std::make_index_sequence<sizeof...(I) - 1>());
  }
}

/// Brings batches to a device. Worker threads assemble them in a ring of slots (pinned memory for a GPU, the batch's
/// own on the CPU); copies run on a stream of their own, one batch ahead of the model. What is in a batch depends on
/// (seed, epoch, step) alone: not on the number of workers, nor on where the loader was started.
///   loader.start(epoch);                       // or start(epoch, step) to resume
///   while (auto batch = loader.next()) { … }
/// An exception in a worker is thrown again by the next() that would have returned the batch; after it, start anew.
/// Use it from one thread. Errors: a batch size below 1, workers below 0; with drop_last, a batch size above the number
/// of samples.
class LoaderEngine {
 public:
  LoaderEngine(Recipe recipe, Sampler sampler, LoaderOptions options);
  ~LoaderEngine();
  LoaderEngine(LoaderEngine&&) noexcept;

  int64_t samples_per_epoch() const;  ///< of this rank
  int64_t steps_per_epoch() const;
  /// Samples of batch `step`, a mean over the ranks.
  double mean_count(int64_t step) const;
  /// Whatever is under way is dropped; the next batch is `step` of `epoch`, and workers begin with it at once. Where
  /// that is so already, nothing is dropped: start(epoch + 1) before validation, and again before training, has the
  /// first batches made in between. Errors: a step outside 0 … steps_per_epoch().
  void start(int64_t epoch, int64_t step = 0);
  /// The next batch; none at the end of the epoch. Errors: not started; the worker's.
  std::optional<Stacked> next();

  const LoaderOptions& options() const;
  LoaderStatistics statistics() const;
  void reset_statistics();

 private:
  class Workshop;
  std::unique_ptr<Workshop> workshop_;
};

/// The engine with batches of a type: see batch_as.
template <class Batch>
class BatchLoader : public LoaderEngine {
 public:
  using LoaderEngine::LoaderEngine;
  std::optional<Batch> next() {
    auto batch = LoaderEngine::next();
    if constexpr (std::is_same_v<Batch, Stacked>)
      return batch;
    else
      return batch ? std::optional(batch_as<Batch>(*batch, std::make_index_sequence<8>())) : std::nullopt;
  }
};

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

/// Batches of any set with `size()` and `get(index)`: see stacking() for its samples.
///   data::Loader loader(readings, data::Sampler(readings->size()), {.batch_size = 32, .device = device});
/// A Recipe adds what a set cannot say: work on the device, or samples that are written straight into the batch, as
/// ImageLoader's and FieldLoader's are.
template <class Sample>
class Loader : public BatchLoader<typename BatchOf<Sample>::type> {
 public:
  using Base = BatchLoader<typename BatchOf<Sample>::type>;
  using Base::Base;
  template <class Set>
  Loader(std::shared_ptr<Set> set, Sampler sampler, LoaderOptions options = {})
      : Base(stacking(std::move(set)), sampler, options) {}
  /// `collate` makes the tensors of a batch, on the host and in a worker: for samples of several sizes.
  template <class Set>
  Loader(std::shared_ptr<Set> set, Sampler sampler, LoaderOptions options,
         std::function<std::vector<Tensor>(std::vector<Sample>)> collate)
      : Base(collating(std::move(set), std::move(collate)), sampler, options) {}
};
template <class Set>
Loader(std::shared_ptr<Set>, Sampler, LoaderOptions = {}) -> Loader<SampleOf<Set>>;

}  // namespace weft::data
