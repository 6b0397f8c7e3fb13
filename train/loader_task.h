// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "core/autograd.h"
#include "data/loader.h"
#include "train/engine.h"

namespace weft::train {

/// A task whose batches a loader makes: loss() gets its tensors. One that says fewer samples() ends its epochs there.
class LoaderTask : public Task {
 public:
  int64_t samples() const override {
    return std::min(loader_->samples_per_epoch(), loader_->steps_per_epoch() * batch_size());
  }
  int64_t batch_size() const override { return loader_->options().batch_size; }
  int64_t batches() const override {
    return samples() < LoaderTask::samples() ? Task::batches() : loader_->steps_per_epoch();
  }
  double mean_samples(int64_t batch) const override { return loader_->mean_count(batch); }
  void start_epoch(int64_t epoch, int64_t batch) override { loader_->start(epoch, batch); }
  std::optional<Batch> next() override;
  std::string origin(int64_t epoch, int64_t batch, size_t number, const Shape& place) const override;

 protected:
  explicit LoaderTask(std::shared_ptr<data::BatchQueue> loader) : loader_(std::move(loader)) {}
  data::BatchQueue& loader() const { return *loader_; }

 private:
  std::shared_ptr<data::BatchQueue> loader_;
};

/// A LoaderTask whose batches have a type. Its fields() names the tensors in the loader's order; before_step() sets
/// fields that the loader does not have.
template <class Typed>
class TypedTask : public LoaderTask {
 protected:
  using LoaderTask::LoaderTask;
  static Typed typed(const std::vector<Tensor>& tensors) {
    Typed batch{};
    auto from = tensors.begin();
    data::each_tensor(batch, [&](const char*, Tensor& tensor) {
      if (from != tensors.end()) tensor = *from++;
    });
    return batch;
  }
  virtual void before_step(Typed&) {}
  virtual Measured loss(const Typed& batch) = 0;

 private:
  void before_step(Batch& batch) final {
    Typed all = typed(batch.tensors);
    before_step(all);
    batch.tensors.clear();
    data::each_tensor(all, [&](const char*, const Tensor& tensor) { batch.tensors.push_back(tensor); });
  }
  Measured loss(const std::vector<Tensor>& tensors) final { return loss(typed(tensors)); }
};

/// Calls `each` with the batches of an epoch of `loader` (null: this rank has none), without gradients. A sharded model
/// needs all ranks for each forward pass: a rank calls `idle` as often as others have more batches.
template <class Loader>
void evaluate_batches(const dist::World& ranks, const Strategy& strategy, Progress& progress, const char* label,
                      Loader* loader, auto&& each, auto&& idle) {
  const NoGrad no_grad;
  const int64_t steps = loader ? loader->steps_per_epoch() : 0, idle_steps = strategy.steps_to_join(ranks, steps);
  progress.begin(label, steps);
  if (loader) {
    loader->start(0);
    while (const auto batch = loader->next()) {
      each(*batch);
      progress.step({.images = batch->count * ranks.size()});
    }
  }
  progress.drop();
  for (int64_t step = 0; step < idle_steps; ++step) idle();
}

}  // namespace weft::train
