// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/random_fields.h"

#include <algorithm>

#include "data/draw.h"

namespace weft::nersc {

RandomFields::RandomFields(const RandomFieldsOptions& options, const data::Sampler& sampler)
    : options_(options), sampler_(sampler) {
  WEFT_CHECK(steps_per_epoch() > 0, "data: expected at least the ", options.batch_size,
             " samples of a batch on each rank, got ", sampler.size());
}

void RandomFields::start(int64_t epoch) {
  ahead_.clear();  // waits for what is under way
  epoch_ = epoch;
  asked_ = 0;
  make_ahead();
}

void RandomFields::make_ahead() {
  const auto wanted = static_cast<size_t>(std::max(options_.workers, 1));
  const auto policy = options_.workers > 0 ? std::launch::async : std::launch::deferred;
  while (ahead_.size() < wanted && asked_ < steps_per_epoch())
    ahead_.push_back(std::async(policy, [this, epoch = epoch_, step = asked_++] { return make(epoch, step); }));
}

std::optional<FieldBatch> RandomFields::next() {
  if (ahead_.empty()) return std::nullopt;
  const FieldBatch host = ahead_.front().get();
  ahead_.pop_front();
  make_ahead();
  return FieldBatch{host.x.to(options_.device), host.y.to(options_.device)};
}

FieldBatch RandomFields::make(int64_t epoch, int64_t step) const {
  const auto& [samples, size, in, out, batch_size, workers, seed, device] = options_;
  const FieldBatch batch{Tensor::empty({batch_size, size, size, in}), Tensor::empty({batch_size, size, size, out})};
  const int64_t inputs = size * size * in, outputs = size * size * out;
  for (int64_t i = 0; i < batch_size; ++i) {
    data::Draw draw = data::Draw::of_sample(seed, epoch, sampler_.index(epoch, step * batch_size + i));
    float* const x = batch.x.data<float>() + i * inputs;
    float* const y = batch.y.data<float>() + i * outputs;
    for (int64_t j = 0; j < inputs; ++j) x[j] = static_cast<float>(draw.uniform());
    for (int64_t j = 0; j < outputs; ++j) y[j] = static_cast<float>(draw.uniform());
  }
  return batch;
}

}  // namespace weft::nersc
